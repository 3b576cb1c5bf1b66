"""The verdict on a Bayesian tree: whether searches that know nothing of the tree, and another method, agree with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from partita.fitting.second_opinion import ask_ensemble
from partita.metrics import adjusted_rand
from partita.posterior.diagnostics import grade_of, tell_grade

SEARCHES = "searches from other starts"
ADVICE = "Compare with Mixture, which averages over partitions."


class TreeDiagnostics(NamedTuple):
    """How far the groups of a tree can be relied on.

    A tree has one partition and no draws, so it cannot say from within how well it is determined. It is compared with
    the partitions that searches from one cluster and from many clusters find with the same hyper-parameters, and with
    the groups that an ensemble of k-means clusterings finds.
    """

    grade: str  # "firm", "fair" or "weak"; empty for one group and where nothing was compared
    agreement: float  # mean adjusted Rand index between the answer and the partitions of the searches
    second_opinion: float  # the same between the answer and another method
    n_clusters_of_searches: tuple[int, ...]
    trust_n_clusters: bool  # whether the tree and all searches have the same number of groups
    sentence: str

    def __str__(self) -> str:
        return self.sentence


def judge_tree(
    labels: np.ndarray, others: Sequence[np.ndarray], table: Any, n_clusters: int | None = None
) -> TreeDiagnostics:
    """Compare the labels of a tree with those of the searches; ``n_clusters`` is the number that was asked for.

    Examples
    --------
    >>> from partita.table import read_table
    >>> z = np.repeat([0, 1, 2], 20)
    >>> X = np.random.default_rng(0).normal(size=(60, 2)) + 9.0 * np.column_stack([z == 1, z == 2])
    >>> print(judge_tree(z, [z, z], read_table(X)))
    Firm: searches from other starts agree on the groups (adjusted Rand index 1.00), and another method agrees with the
    result (1.00).
    >>> print(judge_tree(z, [z, np.minimum(z, 1)], read_table(X)))  # doctest: +ELLIPSIS
    Fair: ... Searches from other starts find 2 and 3 groups. Compare with Mixture, which averages over partitions.
    """
    K, nan = int(labels.max()) + 1, float("nan")
    if n_clusters is not None:
        return TreeDiagnostics("", nan, nan, (), False, "Not graded: the number of groups was given.")
    if not others:
        sentence = (
            "Not graded: the fit was stopped before the tree was compared with searches from other starts."
        )
        return TreeDiagnostics("", nan, nan, (), False, sentence)
    found = tuple(int(z.max()) + 1 for z in others)
    same_number = set(found) == {K}
    agreement = float(np.mean([adjusted_rand(labels, z) for z in others]))
    opinion = ask_ensemble(table, labels) if K > 1 else None
    second = nan if opinion is None else opinion.agreement(labels)
    grade = grade_of(agreement, second) if K > 1 else ""
    parts = [tell_grade(grade, agreement, second, SEARCHES)] if grade else []
    if not same_number:
        numbers = " and ".join(map(str, sorted(set(found))))
        noun = "group" if set(found) == {1} else "groups"
        parts.append(f"{SEARCHES.capitalize()} find {numbers} {noun}.")
    elif K == 1:
        parts.append(f"{SEARCHES.capitalize()} find one group, too.")
    if grade == "weak" or not same_number:
        parts.append(ADVICE)
    return TreeDiagnostics(grade, agreement, second, found, same_number, " ".join(parts))
