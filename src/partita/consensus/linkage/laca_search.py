"""Latent cluster analysis (Xie et al. 2013): a partition, and for every member two rates of putting pairs together.

The search alternates between two steps. Given the rates, the log-likelihood ratios of pairs are agglomerated by average
linkage, and the tree is cut where they become negative. Given the partition, the rates follow from contingency tables.
Both steps are exact on weighted distinct rows (`agglomeration`, `pair_agreement`); no matrix of pairs is formed.

Log ratios are rounded to a grid on which the sums over pairs are exact unless there are very many objects. Pairs on
which the same members agree are then exactly tied, whatever the order of summation.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partita.consensus.linkage.agglomeration import Tree, agglomerate, cut, label_leaves, pair_link
from partita.consensus.linkage.joining import average_links, join, sample_leaves
from partita.consensus.linkage.pair_agreement import (
    CrossedMembers,
    MemberPairCounts,
    Rates,
    cross_members,
    fitted_rates,
    initial_rates,
    log_likelihood,
    pair_counts,
)
from partita.engines.checkpoints import open_checkpoint
from partita.engines.run import Control, iterate_from_checkpoint
from partita.labels import canonical

MAX_DIGITS, MIN_DIGITS = 40, 20  # binary digits of the log ratios after the point


class LogRatios(NamedTuple):
    """What a pair adds to the log-likelihood ratio of "one cluster": with one label in a member, with two."""

    same: NDArray[np.float64]
    different: NDArray[np.float64]


class LacaResult(NamedTuple):
    """The partition that was kept, and the tree it was cut from.

    The leaves of the tree are the distinct rows `leaf_rows` (indices), each `leaf_sizes` times. With `from_copies` they
    are single objects: the rows in order, each as often as its size. `labels` are those of the distinct rows (of the
    first copy, if the copies of a row are in different clusters), `leaf_labels` those of the leaves.
    """

    labels: NDArray[np.int64]
    leaf_labels: NDArray[np.int64]
    leaf_rows: NDArray[np.int64]
    leaf_sizes: NDArray[np.float64]
    from_copies: bool
    tree: Tree
    log_ratios: LogRatios  # of the tree
    rates: Rates
    counts: MemberPairCounts
    log_likelihood: float
    history: list[float]  # log-likelihood of the partition of each iteration
    n_iter: int
    converged: bool
    cycle: int  # length of the cycle the search ended in, 0 if it did not
    crossed: CrossedMembers
    kept_together: bool  # copies of a row were joined first although the rates of the members do not imply it
    reason: str  # why the search ended, as in LoopResult


class _Leaves(NamedTuple):
    rows: NDArray[np.int64]
    sizes: NDArray[np.float64]
    from_copies: bool = False


class _Step(NamedTuple):
    labels: NDArray[np.int64]  # of all rows, or of all copies
    leaf_labels: NDArray[np.int64]
    leaves: _Leaves
    tree: Tree
    log_ratios: LogRatios
    rates: Rates
    counts: MemberPairCounts
    log_likelihood: float


class _Search(NamedTuple):
    """The search after some iterations."""

    rates: Rates
    kept: _Step | None  # the partition that would be kept if the search ended here
    visited: dict[str, int]  # partition -> iteration
    history: list[float]
    cycle: int
    objective: float
    change: float  # sum of the changes of all rates; 0 once a partition has occurred again
    n_iter: int


class _Problem(NamedTuple):
    rows: NDArray[Any]
    n_levels: NDArray[Any]
    sizes: NDArray[np.float64]
    member_weights: NDArray[np.float64]
    sample: _Leaves | None  # the leaves where the rows are too many
    max_leaves: int
    min_clusters: int
    prior_pairs: float


def laca(
    rows: NDArray[Any],
    n_levels: NDArray[Any],
    sizes: NDArray[np.float64],
    member_weights: NDArray[np.float64],
    *,
    n_clusters: int | None = None,
    min_clusters: int = 2,
    prior_pairs: float = 30.0,
    max_iter: int = 100,
    tol: float = 1e-6,
    max_leaves: int = 4000,
    rng: np.random.Generator | None = None,
    control: Control | None = None,
    folder: Any = None,
) -> LacaResult:
    """Fit the model to distinct rows of labels in lexicographic order, `sizes` copies of each.

    Parameters
    ----------
    rows : (S, M) array of int
        Labels, -1 missing, at least one label per row.
    n_levels, member_weights : (M,)
        Levels of each member; power on its likelihood.
    sizes : (S,)
    n_clusters : int, optional
        Cut the last tree into this number of clusters (k-LACA); the search itself always finds its own number.
    min_clusters : int
        Smallest number of clusters of the search (2 in the paper).
    prior_pairs : float
        Number of pairs at one half that are added to the counts of every rate.
    max_iter, tol : int, float
        Largest number of trees; the search ends when the changes of all rates sum to at most `tol`.
    max_leaves : int
        With more rows, the tree is built on a systematic sample of the objects with at most so many distinct rows;
        all other rows join the cluster with the best average link, and the rates come from all rows.
    rng : Generator, optional
        For that sample only.
    control : Control, optional
        What may end the search early.
    folder : path, optional
        Keeps the state of the search after each iteration.

    Returns
    -------
    LacaResult

    Examples
    --------
    >>> rows = np.array([[0, 0, 0], [0, 1, 0], [1, 2, 1], [1, 2, 2]])
    >>> fit = laca(rows, np.array([2, 3, 3]), np.array([9.0, 8.0, 9.0, 8.0]), np.ones(3))
    >>> fit.labels.tolist(), fit.converged
    ([0, 0, 1, 1], True)
    """
    sample = None
    if len(rows) > max_leaves:
        sample = _Leaves(*sample_leaves(sizes, max_leaves, np.random.default_rng(0) if rng is None else rng))
    problem = _Problem(rows, n_levels, sizes, member_weights, sample, max_leaves, min_clusters, prior_pairs)
    columns = [np.ascontiguousarray(column, dtype=np.int32) for column in rows.T]
    crossed = cross_members(columns, sizes)
    start = initial_rates(crossed, member_weights, prior_pairs)
    about = (rows, sizes, member_weights, max_leaves, min_clusters, prior_pairs, *(sample or ())[:2])
    found = iterate_from_checkpoint(
        _search_step(problem, columns, tol), lambda: _Search(start, None, {}, [], 0, -np.inf, np.inf, 0),
        max_iter=max_iter, tol=tol, n_clusters=lambda state: int(state.kept.leaf_labels.max()) + 1,
        control=control, checkpoint=open_checkpoint(folder, 0, about, "search"),
    )  # fmt: skip
    search = found.state
    best = search.kept
    if n_clusters is not None:
        best = _recut(problem, columns, best, min(n_clusters, len(best.leaf_labels)))
    labels, leaves = best.labels, best.leaves
    if leaves.from_copies:
        labels = labels[np.unique(leaves.rows, return_index=True)[1]]
    return LacaResult(
        labels,
        best.leaf_labels,
        leaves.rows,
        leaves.sizes,
        leaves.from_copies,
        best.tree,
        best.log_ratios,
        best.rates,
        best.counts,
        best.log_likelihood,
        search.history,
        search.n_iter,
        found.converged and not search.cycle,
        search.cycle,
        crossed,
        not leaves.from_copies and not _copies_join_first(problem, best.log_ratios),
        found.reason,
    )


def log_ratios(rates: Rates, member_weights: NDArray[np.float64], total: float) -> LogRatios:
    """Rounded log-likelihood ratios of a pair, the likelihood of each member raised to its weight.

    Examples
    --------
    >>> found = log_ratios(Rates(np.array([0.5]), np.array([0.25])), np.ones(1), total=100.0)
    >>> np.exp(found.same).round(6), np.exp(found.different).round(6)
    (array([2.]), array([0.666667]))
    """
    same = member_weights * (np.log(rates.within) - np.log(rates.between))
    different = member_weights * (np.log1p(-rates.within) - np.log1p(-rates.between))
    largest = np.abs(same - different).sum() + np.abs(different).sum()
    needed = int(np.ceil(np.log2(max(largest * total * total / 4, 1.0))))
    grid = 2.0 ** min(max(52 - needed, MIN_DIGITS), MAX_DIGITS)
    return LogRatios(np.rint(same * grid) / grid, np.rint(different * grid) / grid)


# ---- the search ------------------------------------------------------------------------------------------------


def _search_step(
    problem: _Problem, columns: list[NDArray[np.int32]], tol: float
) -> Callable[[_Search], _Search]:
    """One iteration; the search ends when the rates no longer change, or when a partition occurs again."""

    def step(state: _Search) -> _Search:
        new = _step(problem, columns, state.rates)
        change = sum(
            float(np.abs(after - before).sum()) for after, before in zip(new.rates, state.rates, strict=True)
        )
        name = _fingerprint(new)
        kept, cycle, visited = state.kept, 0, state.visited
        if change > tol and name in visited:
            cycle, change = state.n_iter - visited[name], 0.0
        elif change <= tol or kept is None or new.log_likelihood > kept.log_likelihood:
            kept = new
        history = [*state.history, new.log_likelihood]
        visited = {**visited, name: state.n_iter}
        return _Search(new.rates, kept, visited, history, cycle, new.log_likelihood, change, state.n_iter + 1)

    return step


def _fingerprint(step: _Step) -> str:
    """Equal for equal partitions, whether they are partitions of rows or of their copies."""
    labels = step.labels
    if step.leaves.from_copies:
        _, first, inverse = np.unique(step.leaves.rows, return_index=True, return_inverse=True)
        if np.array_equal(labels, labels[first][inverse]):
            labels = labels[first]
    return hashlib.blake2b(canonical(labels).tobytes(), digest_size=16).hexdigest()


def _step(problem: _Problem, columns: list[NDArray[np.int32]], rates: Rates) -> _Step:
    """One tree, its automatic cut, and the rates given that partition."""
    total = float(problem.sizes.sum() if problem.sample is None else problem.sample.sizes.sum())
    ratios = log_ratios(rates, problem.member_weights, total)
    leaves = _leaves(problem, ratios)
    histograms = label_leaves(problem.rows[leaves.rows], problem.n_levels, leaves.sizes)
    tree = agglomerate(histograms, pair_link(histograms, ratios.same, ratios.different))
    negative = np.flatnonzero(tree.links < 0)
    n_merges = negative[0] if negative.size else tree.links.size
    K = max(len(leaves.rows) - n_merges, min(problem.min_clusters, len(leaves.rows)))
    labels, leaf_labels = _partition(problem, leaves, tree, ratios, int(K))
    counts = _count_pairs(problem, columns, leaves, labels)
    rates = fitted_rates(counts, problem.prior_pairs)
    value = log_likelihood(counts, rates, problem.member_weights)
    return _Step(labels, leaf_labels, leaves, tree, ratios, rates, counts, value)


def _partition(
    problem: _Problem, leaves: _Leaves, tree: Tree, ratios: LogRatios, K: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Labels of all rows (or copies) and of the leaves when the tree is cut into K clusters."""
    leaf_labels = cut(tree, K)
    if problem.sample is None:
        return leaf_labels, leaf_labels
    clusters = (problem.rows[leaves.rows], leaves.sizes, leaf_labels, problem.n_levels)
    labels = join(
        problem.rows, leaf_labels, leaves.rows, lambda block: average_links(block, *clusters, *ratios)
    )
    return labels, leaf_labels


def _recut(problem: _Problem, columns: list[NDArray[np.int32]], step: _Step, K: int) -> _Step:
    """Cut the last tree into K clusters; the rates remain those of the search."""
    labels, leaf_labels = _partition(problem, step.leaves, step.tree, step.log_ratios, K)
    counts = _count_pairs(problem, columns, step.leaves, labels)
    value = log_likelihood(counts, step.rates, problem.member_weights)
    return step._replace(labels=labels, leaf_labels=leaf_labels, counts=counts, log_likelihood=value)


def _count_pairs(
    problem: _Problem, columns: list[NDArray[np.int32]], leaves: _Leaves, labels: NDArray[np.int64]
) -> MemberPairCounts:
    if leaves.from_copies:
        return pair_counts(labels, [column[leaves.rows] for column in columns], leaves.sizes)
    return pair_counts(labels, columns, problem.sizes)


# ---- leaves ----------------------------------------------------------------------------------------------------


def _leaves(problem: _Problem, ratios: LogRatios) -> _Leaves:
    """Distinct rows where that is exact; otherwise single copies, if the sizes are whole numbers and not too many."""
    if problem.sample is not None:
        return problem.sample
    S, sizes = len(problem.rows), problem.sizes
    if not _copies_join_first(problem, ratios) and _are_counts(sizes) and sizes.sum() <= problem.max_leaves:
        copies = np.repeat(np.arange(S), sizes.astype(np.int64))
        return _Leaves(copies, np.ones(copies.size), True)
    return _Leaves(np.arange(S), sizes)


def _copies_join_first(problem: _Problem, ratios: LogRatios) -> bool:
    """Whether identical rows are joined before any others, so that they can be one leaf.

    Agreement must count for no less than disagreement wherever two rows may differ, and for no less than a missing
    label where labels are missing; and copies must be joined at all.
    """
    repeated = problem.sizes > 1
    if not repeated.any():
        return True
    varied = problem.n_levels > 1
    incomplete = (problem.rows < 0).any(axis=0)
    itself = (problem.rows[repeated] >= 0) @ ratios.same
    return bool(
        (ratios.same >= ratios.different)[varied].all()
        and (ratios.same[incomplete] >= 0).all()
        and itself.min() >= 0
    )


def _are_counts(sizes: NDArray[np.float64]) -> bool:
    return bool((sizes == np.rint(sizes)).all())
