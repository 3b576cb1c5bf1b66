"""The grain of the consensus methods that cut a tree of distinct rows: from the tree to groups of all objects."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import xlogy

from partita.consensus.base import ConsensusEstimator, labels_of_known
from partita.consensus.default.pair_information import margins_of_cuts
from partita.consensus.member_statistics import own_agreement
from partita.estimator import GrainMixin
from partita.fitting.out_of_core import takes_chunks
from partita.labels import signatures
from partita.posterior.grain import Grain, check_joins
from partita.posterior.joining import Joins, renumbered, top_of_tree
from partita.posterior.support import sampled_rows

LOWEST = -1e300  # score of a group that a row does not fit at all


class MemberRows(NamedTuple):
    """The distinct rows of a label matrix, and where the objects have them."""

    codes: np.ndarray  # [row, member]
    of_object: np.ndarray
    weights: np.ndarray  # total weight of the objects of each row; 0 for rows that took no part
    n_levels: np.ndarray
    member_weights: np.ndarray


class LeafTree(NamedTuple):
    """A tree over leaves that are label rows; the answer is a cut of it, from which rows may have moved."""

    children: np.ndarray
    heights: np.ndarray
    codes: np.ndarray  # of the leaves
    clusters: np.ndarray  # cluster of the answer that each leaf is cut into; -1: it has no rows


class GroupTree(NamedTuple):
    """The upper part of a tree, in groups that the answer divides all rows into.

    Within the clusters of the answer, the finest groups are those of the tree: a leaf keeps its group, unless the
    answer has moved it to another cluster, and every other row has the group of its cluster that it fits best.
    """

    joins: Joins
    leaf_groups: np.ndarray  # finest group of each leaf, -1 where it has no rows
    row_groups: np.ndarray  # finest group of each distinct row
    clusters: np.ndarray  # cluster of the answer that each finest group is a part of
    become: np.ndarray  # for 1, 2, ... groups of the tree, the number of those that have rows


class ConsensusGrain(GrainMixin, ConsensusEstimator):
    """Base of the consensus estimators that have a grain: predictions at a scale.

    A subclass implements ``_group_probabilities(codes, groups)`` beside the methods of
    :class:`~partita.estimator.GrainMixin`: the probability of each group for coded rows, where ``groups`` has the group
    of each finest group.
    """

    _rebuilt = (*ConsensusEstimator._rebuilt, "_grain", "_group_tree")

    def predict(self, X, at=None):
        """Cluster of each row of new labels; a row without known labels is assigned to the largest cluster.

        Parameters
        ----------
        X : as in ``fit``, with the same members
        at : int or str, optional
            The scale, as in :meth:`at`. On the objects of ``fit``, other levels than that of ``labels_`` may differ
            from ``grain_`` for objects between groups.

        Returns
        -------
        ndarray (n_rows,)
        """
        return super().predict(X) if at is None else self.predict_proba(X, at).argmax(axis=1)

    def predict_proba(self, X, at=None):
        """Probability of each cluster for each row of new labels.

        Parameters
        ----------
        X : as in ``fit``, with the same members
        at : int or str, optional
            The scale, as in :meth:`at`.

        Returns
        -------
        ndarray (n_rows, n_clusters)
        """
        return super().predict_proba(X) if at is None else self._proba_in_groups(X, self._groups_at(at))

    @takes_chunks
    def _proba_in_groups(self, X: Any, groups: np.ndarray) -> np.ndarray:
        return self._group_probabilities(self._new_codes(X), groups)

    def _group_probabilities(self, codes: np.ndarray, groups: np.ndarray) -> np.ndarray:
        raise NotImplementedError


class RowTreeGrain(ConsensusGrain):
    """Base of those whose grain is a tree of distinct rows, which they keep.

    A subclass calls ``_keep_rows`` in ``_settle``, and implements ``_leaf_tree()``, which is None for an answer without
    a tree.
    """

    _array_laws: tuple[str, ...] = (
        "fitted._rows int (W,M) -1..N+N",
        "fitted._row_of int (N) -1..W-1",
        "fitted._row_weights float (W) 0..",
        "fitted._column_weights float (M) 0..",
    )
    _of_objects = (*ConsensusGrain._of_objects, "_row_of")
    _n_levels: np.ndarray
    _group_tree: GroupTree

    def _keep_rows(self, codes: np.ndarray, weights: np.ndarray, member_weights: np.ndarray) -> None:
        """Keep the distinct rows; an object that took no part has the weight 0."""
        distinct = signatures(codes)
        self._rows, self._row_of = distinct.rows, distinct.inverse.astype(np.int32)
        self._row_weights = np.bincount(self._row_of, weights, minlength=len(distinct.rows))
        self._column_weights = member_weights

    def _distinct_rows(self) -> MemberRows:
        if self._is_sample():
            raise AttributeError(
                f"{type(self).__name__} was fitted to a sample of the rows (see fit_report_), so it has no answers at "
                "other scales and no probabilities of pairs: fit fewer rows"
            )
        return MemberRows(self._rows, self._row_of, self._row_weights, self._n_levels, self._column_weights)

    def _is_sample(self) -> bool:
        """Whether only some of the objects are among the rows that were kept."""
        return bool(self._row_of.min(initial=0) < 0)

    def _row_clusters(self, rows: MemberRows) -> np.ndarray:
        """Cluster of each distinct row."""
        clusters = np.empty(len(rows.codes), np.int64)
        clusters[rows.of_object] = self.labels_
        return clusters

    def _leaf_tree(self) -> LeafTree | None:
        raise NotImplementedError

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        tree = self._leaf_tree()
        rows = MemberRows(
            self._rows, self._row_of.clip(0), self._row_weights, self._n_levels, self._column_weights
        )
        check_rows(rows, len(self.labels_))
        if tree is not None:
            check_tree(tree, rows.codes.shape[1])


def group_rows(
    tree: LeafTree,
    n_groups: int,
    rows: MemberRows,
    row_clusters: np.ndarray,
    fit: Callable[[np.ndarray, np.ndarray, int], np.ndarray],
) -> GroupTree:
    """The last ``n_groups`` groups of a tree, in the clusters of the answer.

    ``fit(codes, leaf_groups, n_groups)`` tells how well rows of labels fit each group, [row, group].
    """
    leaf_groups, joins = top_of_tree(tree.children, tree.heights, n_groups)
    clusters = np.full(n_groups, -1)
    clusters[leaf_groups] = tree.clusters
    own = labels_of_known(tree.codes[::-1], leaf_groups[::-1], rows.codes)  # the first of equal leaves
    own[(own < 0) | (clusters[own] != row_clusters)] = -1
    left = np.flatnonzero(own < 0)
    if len(left):
        own[left] = _best_groups(fit(rows.codes[left], leaf_groups, n_groups), clusters, row_clusters[left])
    sizes = np.bincount(own, rows.weights, minlength=n_groups).astype(float)
    silent = np.flatnonzero(sizes[own] <= 0.0)  # rows that took no part, in groups of their own
    if len(silent):
        used = np.where(sizes > 0.0, clusters, -1)
        scores = fit(rows.codes[silent], leaf_groups, n_groups)
        own[silent] = _best_groups(scores, used, row_clusters[silent])
    joins, onto, become = renumbered(joins, sizes, clusters)
    kept = np.flatnonzero(onto >= 0)
    return GroupTree(joins, onto[leaf_groups], onto[own], clusters[kept[np.argsort(onto[kept])]], become)


def _best_groups(scores: np.ndarray, clusters: np.ndarray, own: np.ndarray) -> np.ndarray:
    """For each row the group with the best score among those of its cluster."""
    finite = np.nan_to_num(scores, nan=LOWEST, neginf=LOWEST)
    found: np.ndarray = np.where(clusters[None] == own[:, None], finite, -np.inf).argmax(axis=1)
    return found


def make_grain(tree: GroupTree, rows: MemberRows, support: np.ndarray, height_kind: str) -> Grain:
    """The grain of all objects."""
    sizes = np.bincount(tree.row_groups, rows.weights, minlength=len(tree.clusters)).astype(float)
    labels = tree.row_groups[rows.of_object]
    return Grain(labels, tree.joins.joins, tree.joins.heights, support, sizes, height_kind, "members")


def support_of_members(tree: GroupTree, rows: MemberRows) -> np.ndarray:
    """Mean margin of the members at the levels with 1, 2, ... groups, at a sample of the rows."""
    present = np.flatnonzero(rows.weights > 0.0)
    sample = present[sampled_rows(len(present))]
    z = tree.row_groups[sample]
    cuts = [z]
    node = np.arange(len(tree.clusters))
    for t, pair in enumerate(tree.joins.joins):
        merged = np.isin(node, pair)
        node[merged] = len(tree.clusters) + t
        cuts.append(np.unique(node, return_inverse=True)[1][z])
    margins = margins_of_cuts(
        np.stack(cuts[::-1]), rows.codes[sample], rows.weights[sample], rows.n_levels, rows.member_weights
    )
    return (margins @ (rows.member_weights / rows.member_weights.sum())).clip(0.0, 1.0)


def row_agreement(row_groups: np.ndarray, rows: MemberRows) -> np.ndarray:
    """Share of the members that put an object of each distinct row with the others of its group."""
    return own_agreement(row_groups, rows.codes, rows.n_levels, rows.weights, rows.member_weights)


def join_smallest(sizes: np.ndarray) -> Joins:
    """A tree over groups that are all equally different: the two smallest are joined, again and again.

    The height is the information about the groups that is lost, in nats per object.

    Examples
    --------
    >>> join_smallest(np.array([3.0, 1.0, 2.0])).joins.tolist()
    [[1, 2], [0, 3]]
    """
    total = float(np.sum(sizes))
    heap = [(float(n), g) for g, n in enumerate(sizes)]
    heapq.heapify(heap)
    joins, heights = [], []
    for t in range(len(sizes) - 1):
        (n, a), (m, b) = heapq.heappop(heap), heapq.heappop(heap)
        joins.append(sorted((a, b)))
        heights.append(float(xlogy(n + m, n + m) - xlogy(n, n) - xlogy(m, m)) / total)
        heapq.heappush(heap, (n + m, len(sizes) + t))
    return Joins(np.array(joins, np.int64).reshape(-1, 2), np.array(heights))


def check_rows(rows: MemberRows, n_objects: int) -> None:
    """Refuse distinct rows of a file that do not belong together."""
    n_rows, n_members = rows.codes.shape
    if rows.n_levels.shape != (n_members,) or rows.member_weights.shape != (n_members,):
        raise ValueError(f"the distinct rows have {n_members} members, their levels or weights do not")
    if rows.of_object.shape != (n_objects,) or rows.weights.shape != (n_rows,):
        raise ValueError(f"the distinct rows are not those of {n_objects} objects")
    if not ((rows.of_object >= 0) & (rows.of_object < n_rows)).all():
        raise ValueError(f"an object has a row that is not one of the {n_rows} distinct rows")
    if not ((rows.codes >= -1) & (rows.codes < rows.n_levels)).all():
        raise ValueError("the distinct rows have labels that their members do not have")


def check_tree(tree: LeafTree, n_members: int) -> None:
    """Refuse a tree of a file that is none."""
    n_leaves = len(tree.codes)
    if tree.children.shape != (n_leaves - 1, 2) or tree.heights.shape != (n_leaves - 1,):
        raise ValueError(f"the tree does not have {n_leaves} leaves")
    if tree.codes.shape != (n_leaves, n_members) or tree.clusters.shape != (n_leaves,):
        raise ValueError(f"the leaves of the tree are not rows of {n_members} members")
    check_joins(tree.children)
