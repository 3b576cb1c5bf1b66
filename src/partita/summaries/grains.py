"""The grain of a model: its levels for pictures, its alternatives as a table, and the model as it is at one level."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partita.posterior.grain import AGREED, Grain
from partita.wording import count, percent

MAX_LEVELS = 12  # that are shown
MAX_SIZES, MAX_SPLITS = 8, 3  # sizes and splits that a line names
OWN_TO_ANSWER = (  # attributes that are about the clusters of the answer
    "profiles_", "weights_", "predict_proba", "coclustering", "memberships_", "votes_", "_own_profiles",
)  # fmt: skip


class Level(NamedTuple):
    """One level of a grain."""

    n_clusters: int
    name: str  # "coarse", "medium", "fine", "agreed", or "" where it is no alternative
    groups: NDArray[np.int64]  # the group of each finest group
    sizes: NDArray[np.float64]  # total weight of the rows of each group
    support: float


class GrainLevels(NamedTuple):
    """Some levels of a grain, from few groups to many."""

    levels: list[Level]
    answer: int  # number of groups of the answer of the model
    row_groups: NDArray[np.int64]  # finest group of each row, -1 in none
    support_meaning: str
    same_as_answer: bool  # whether the level with as many groups as the answer is the answer

    def flows(self, at: int) -> NDArray[np.float64]:
        """Total weight of the rows from each group of level number ``at`` to each group of the next."""
        here, there, finest = self.levels[at], self.levels[at + 1], self.levels[-1]
        sizes = np.zeros((here.n_clusters, there.n_clusters))
        parts = [np.flatnonzero(finest.groups == k)[0] for k in range(finest.n_clusters)]
        np.add.at(sizes, (here.groups[parts], there.groups[parts]), finest.sizes)
        return sizes

    @property
    def top_support(self) -> float:
        """A tenth that the support of no level exceeds, for the end of a color scale."""
        return max(float(np.ceil(10.0 * max(level.support for level in self.levels) - 1e-9)) / 10.0, 0.1)

    def boxes(self, widest: float, least: float) -> list[NDArray[np.float64]]:
        """Left end and width of a box per group of each level, from 0 to 1, widths in proportion to sizes.

        The boxes of the last level are side by side, parts of one group beside each other, and take the share
        ``widest`` of the width together. A box of a coarser level is over the middle of its parts. No box is narrower
        than ``least``.
        """
        last = self.levels[-1]
        order, total = self._order(len(self.levels) - 1), last.sizes.sum()
        gap = (1.0 - widest) / max(last.n_clusters - 1, 1)
        widths = np.maximum(widest * last.sizes / total, least)
        widths *= widest / widths.sum()
        starts = np.empty(last.n_clusters)
        starts[order] = np.concatenate([[0.0], np.cumsum(widths[order] + gap)[:-1]])
        boxes = [np.stack([starts, widths], axis=1)]
        for at in range(len(self.levels) - 2, -1, -1):
            joined, below = self.flows(at) > 0, boxes[-1]
            lefts = np.array([below[parts, 0].min() for parts in joined])
            rights = np.array([below[parts].sum(axis=1).max() for parts in joined])
            widths = np.minimum(np.maximum(widest * self.levels[at].sizes / total, least), rights - lefts)
            boxes.append(np.stack([(lefts + rights - widths) / 2.0, widths], axis=1))
        return boxes[::-1]

    def _order(self, at: int) -> list[int]:
        """Groups of a level from left to right."""
        if at == 0:
            return list(range(self.levels[0].n_clusters))
        flows = self.flows(at - 1)
        return [int(part) for k in self._order(at - 1) for part in np.flatnonzero(flows[k])]


class AlternativeRow(NamedTuple):
    """One line of the table of alternatives."""

    name: str
    n_clusters: int
    support: float
    sizes: list[int]  # numbers of rows
    splits: dict[int, tuple[int, ...]]  # groups of the line before that have several parts in this one
    is_answer: bool
    agreement: float | None = None  # with k-means clusterings, at the level where it is highest

    @property
    def remarks(self) -> list[str]:
        """What is special about the level, in words."""
        found = ["the answer"] if self.is_answer else []
        if self.agreement is not None:
            found.append("agrees best with k-means clusterings")
        return found


class AtLevel:
    """A model as it is at another level of its grain, for summaries that read labels, confidence and profiles."""

    def __init__(self, model: Any, n_clusters: int | str) -> None:
        level = model.at(n_clusters)
        self._model = model
        self.labels_, self.confidence_, self.n_clusters_ = level.labels, level.confidence, level.n_clusters
        if isinstance(level.profiles, dict):
            self.profiles_ = level.profiles
            sizes = np.bincount(level.labels[level.labels >= 0], minlength=level.n_clusters)
            self.weights_ = sizes / max(sizes.sum(), 1)

    def __getattr__(self, name: str) -> Any:
        if name in OWN_TO_ANSWER or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.__dict__["_model"], name)


def grain_of(model: Any) -> Grain | None:
    """The grain of a fitted model; None where it has none, or one for each view."""
    try:
        grain = getattr(model, "grain_", None)
    except (NotImplementedError, ValueError):  # a model without what its grain is made of
        return None
    return grain if isinstance(grain, Grain) and grain.n_groups > 0 else None


def grain_levels(
    model: Any, max_levels: int = MAX_LEVELS, *, also: Iterable[int] = (), grain: Grain | None = None
) -> GrainLevels | None:
    """The levels of the grain of a fitted model that are shown.

    These are the answer, the alternatives, the numbers of groups in ``also``, and then the smallest numbers of groups
    from 2.

    Parameters
    ----------
    model : fitted estimator
    max_levels : int, default=12
        Largest number of levels, as far as the answer and the alternatives allow it.
    also : iterable of int
        Further numbers of groups.
    grain : Grain, default=None
        The grain, if it is not that of the model (one of the views of a model of views).

    Returns
    -------
    GrainLevels or None
        None if the model has no grain, or only one group.

    Examples
    --------
    >>> from partita import Consensus
    >>> model = Consensus(random_state=0).fit([[0, 0], [0, 0], [1, 1], [1, 2], [2, 3]])
    >>> found = grain_levels(model)
    >>> [(level.n_clusters, level.sizes.tolist()) for level in found.levels]
    [(2, [3.0, 2.0]), (3, [2.0, 2.0, 1.0]), (4, [1.0, 1.0, 2.0, 1.0])]
    """
    own = grain is None
    grain = grain_of(model) if grain is None else grain
    if grain is None or grain.n_groups < 2:
        return None
    answer = int(model.n_clusters_) if own else -1
    low, high = 1 if answer == 1 else 2, grain.n_groups
    names: dict[int, str] = {}
    for one in grain.alternatives():
        names.setdefault(one.n_clusters, one.name)
    if grain.agreed is not None:
        names.setdefault(grain.agreed, AGREED)
    chosen = {K for K in (*names, answer, *also) if low <= K <= high}
    for K in range(low, high + 1):
        if len(chosen) >= max_levels:
            break
        chosen.add(K)
    levels = []
    for K in sorted(chosen):
        groups = grain.groups(K)
        sizes = np.bincount(groups, grain.sizes, minlength=K).astype(float)
        levels.append(Level(K, names.get(K, ""), groups, sizes, float(grain.support[K - 1])))
    same = own and answer <= high and bool(np.array_equal(grain.at(answer), np.asarray(model.labels_)))
    return GrainLevels(levels, answer, grain.labels, grain.support_meaning, same)


def alternatives_table(model: Any) -> list[AlternativeRow]:
    """The alternatives of a fitted model with the sizes of their groups; empty if it has no grain.

    Examples
    --------
    >>> from partita import Consensus
    >>> model = Consensus(random_state=0).fit([[0, 0], [0, 0], [1, 1], [1, 2], [2, 3]])
    >>> [(row.name, row.n_clusters, row.sizes) for row in alternatives_table(model)]
    [('coarse', 3, [2, 2, 1]), ('medium', 4, [1, 1, 2, 1])]
    """
    grain = grain_of(model)
    return [] if grain is None else alternatives_rows(grain, int(model.n_clusters_))


def alternatives_rows(grain: Grain, answer: int) -> list[AlternativeRow]:
    """The alternatives of a grain, whose answer has so many groups, and the level that agrees best with an ensemble."""
    named = {one.n_clusters: one.name for one in grain.alternatives()}
    if grain.agreed is not None:
        named.setdefault(grain.agreed, AGREED)
    rows: list[AlternativeRow] = []
    for K, name in sorted(named.items()):
        labels = grain.at(K)
        sizes = np.bincount(labels[labels >= 0], minlength=K).tolist()
        splits = grain.splits(rows[-1].n_clusters, K) if rows else {}
        agreement = None
        if grain.agreement is not None and grain.agreed == K:
            agreement = float(grain.agreement[K - 1])
        support = float(grain.support[K - 1])
        rows.append(AlternativeRow(name, K, support, sizes, splits, answer == K, agreement))
    return rows


def alternatives_lines(rows: list[AlternativeRow]) -> list[str]:
    """The table of alternatives as lines of text, with groups from 1; empty if there is none but the answer.

    Examples
    --------
    >>> rows = [
    ...     AlternativeRow("coarse", 2, 0.61, [30, 20], {}, True),
    ...     AlternativeRow("fine", 3, 0.4, [30, 15, 5], {}, False),
    ... ]
    >>> print(*alternatives_lines(rows), sep="\\n")
      alternatives   groups  support  sizes
      coarse              2     0.61  30, 20  (the answer)
      fine                3     0.40  30, 15, 5
    """
    if not rows or (len(rows) == 1 and rows[0].is_answer):
        return []
    lines = ["  alternatives   groups  support  sizes"]
    for row in rows:
        sizes = ", ".join(f"{n}" for n in row.sizes[:MAX_SIZES])
        sizes += f" and {len(row.sizes) - MAX_SIZES} more" if len(row.sizes) > MAX_SIZES else ""
        told = [sizes]
        if row.remarks:
            told.append(f"({'; '.join(row.remarks)})")
        if row.splits:
            told.append(f"[{splits_in_words(row.splits)}]")
        lines.append(f"  {row.name:12} {row.n_clusters:8} {row.support:8.2f}  {'  '.join(told)}")
    return lines


def splits_in_words(splits: dict[int, tuple[int, ...]]) -> str:
    """What is split from the coarser line to this one; groups are numbered from 1.

    Examples
    --------
    >>> splits_in_words({0: (0, 2), 1: (1, 3, 4)})
    'splits group 1 into 1, 3; group 2 into 2, 4, 5'
    """
    named = [(k + 1, ", ".join(str(part + 1) for part in parts)) for k, parts in splits.items()]
    parts = [f"group {k} into {to}" for k, to in named[:MAX_SPLITS]]
    more = f"; {count(len(splits) - MAX_SPLITS, 'further group')}" if len(splits) > MAX_SPLITS else ""
    return f"splits {'; '.join(parts)}{more}"


def level_title(level: Level) -> str:
    """A level in words, for axes and labels.

    Examples
    --------
    >>> level_title(Level(3, "coarse", np.arange(3), np.ones(3), 0.5))
    '3 groups (coarse), support 50%'
    """
    name = f" ({level.name})" if level.name else ""
    return f"{count(level.n_clusters, 'group')}{name}, support {percent(level.support)}"
