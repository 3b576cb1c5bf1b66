"""Base of the consensus methods that cut a tree of distinct rows: leaves, known rows and new rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from partita.consensus.base import Found, labels_of_known
from partita.consensus.grain import (
    LeafTree,
    RowTreeGrain,
    group_rows,
    make_grain,
    row_agreement,
    support_of_members,
)
from partita.consensus.labelings import Labelings
from partita.fitting.out_of_core import takes_chunks
from partita.posterior import Grain
from partita.posterior.joining import grown_levels

TREE_CLUSTERS = "_tree_clusters"  # for each cluster of the answer, its number in the tree


def leaf_attributes(
    leaf_codes: np.ndarray,
    leaf_sizes: np.ndarray,
    leaf_clusters: np.ndarray,
    object_leaves: np.ndarray,
    n_levels: np.ndarray,
) -> dict[str, Any]:
    """The entries that ``Found.attributes`` must have in a :class:`TreeConsensus`."""
    return {
        "_leaf_codes": leaf_codes,
        "_leaf_sizes": leaf_sizes,
        "_leaf_clusters": leaf_clusters,
        "_object_leaves": object_leaves,
        "_n_levels": np.asarray(n_levels),
    }


class TreeConsensus(RowTreeGrain):
    """Base of the methods that cut a tree.

    A subclass puts ``leaf_attributes(...)`` into ``Found.attributes`` and ``{TREE_CLUSTERS: arange(K)}`` into
    ``Found.clusters``, and implements ``_links(codes, leaf_labels)``: how well each row fits each cluster of leaves, as
    a log weight. The grain is the tree itself: its finest level has twice as many groups as the square root of the
    number of objects, or as many as the answer has clusters, if those are more.

    Attributes
    ----------
    grain_ : Grain
        The upper part of the tree: labels and support at every number of groups (:class:`partita.posterior.Grain`).
        It passes through ``labels_``.
    alternatives_ : list of Alternative
        The best supported coarse (2 or 3), medium (4 to 8) and fine answers; see :meth:`at`.
    """

    _height_kind = "members apart"
    _of_objects = (*RowTreeGrain._of_objects, "row_leaves_")
    _array_laws: tuple[str, ...] = (
        "fitted._tree_clusters int (K) 0..K-1",
        "fitted.linkage_ float (n,4) 0..",
        "fitted._leaf_codes int (R,M) -1..N+N",
        "fitted._leaf_sizes float (R) 0..",
        "fitted._leaf_clusters int (R) 0..K-1",
        "fitted.row_leaves_ int (N) -1..R-1",
    )

    def _levels_used(self, n_levels: np.ndarray) -> np.ndarray:
        return np.maximum(n_levels, self._leaf_codes.max(axis=0, initial=-1) + 1)

    def _settle(self, found: Found, labelings: Labelings, codes: np.ndarray) -> None:
        super()._settle(found, labelings, codes)
        # the base looks up the last of equal rows; reversing the order makes it the first copy
        self._known_rows, self._known = self._leaf_codes[::-1].copy(), self._leaf_labels()[::-1].copy()
        weights = np.zeros(len(codes))
        weights[labelings.rows] = labelings.weights
        self._keep_rows(codes, weights, labelings.member_weights)
        leaves = np.full(len(codes), -1)
        leaves[labelings.rows] = self._object_leaves
        self.row_leaves_ = leaves
        del self._object_leaves
        if len(labelings.rows) < len(codes):
            others = np.setdiff1d(np.arange(len(codes)), labelings.rows)
            self.labels_[others] = self._labels_of(codes[others])

    def predict(self, X, at=None):
        """Cluster of each row of new labels: that of the same row in ``fit``, otherwise the one with the best link.

        Parameters
        ----------
        X : as in ``fit``, with the same members
        at : int or str, optional
            The scale, as in :meth:`at`.

        Returns
        -------
        ndarray (n_rows,)
        """
        return self._labels_in_groups(X, None if at is None else self._groups_at(at))

    @takes_chunks
    def _labels_in_groups(self, X: Any, groups: np.ndarray | None) -> np.ndarray:
        codes = self._new_codes(X)
        if groups is None:
            return self._labels_of(codes)
        known = labels_of_known(self._rows, groups[self._group_tree.row_groups], codes)
        return np.where(known >= 0, known, self._group_probabilities(codes, groups).argmax(axis=1))

    def _links(self, codes: np.ndarray, leaf_labels: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _labels_of(self, codes: np.ndarray) -> np.ndarray:
        labels = self._probabilities(codes).argmax(axis=1)
        known = self._known_labels(codes)
        return np.where(known >= 0, known, labels)

    def _log_scores(self, codes: np.ndarray) -> np.ndarray:
        return self._scores_in(codes, self._leaf_labels())

    def _scores_in(self, codes: np.ndarray, leaf_labels: np.ndarray) -> np.ndarray:
        scores = self._links(codes, leaf_labels)
        # rows without information about the clusters are scored by the shares of the clusters
        silent = (codes < 0).all(axis=1) | ~np.isfinite(scores).any(axis=1)
        sizes = np.bincount(leaf_labels, self._leaf_sizes)
        scores[silent] = np.log(sizes / sizes.sum())
        return scores

    # ---- the grain -----------------------------------------------------------------------------------------

    def _grow_grain(self) -> Grain:
        rows, tree = self._distinct_rows(), self._leaf_tree()
        n_groups = grown_levels(float(rows.weights.sum()), self.n_clusters_, len(tree.codes))
        self._group_tree = group_rows(
            tree,
            n_groups,
            rows,
            self._row_clusters(rows),
            lambda codes, leaf_labels, _: self._scores_in(codes, leaf_labels),
        )
        return make_grain(
            self._group_tree, rows, support_of_members(self._group_tree, rows), self._height_kind
        )

    def _leaf_tree(self) -> LeafTree:
        linkage = self.linkage_
        return LeafTree(linkage[:, :2].astype(np.int64), linkage[:, 2], self._leaf_codes, self._leaf_labels())

    def _group_probabilities(self, codes: np.ndarray, groups: np.ndarray) -> np.ndarray:
        leaf_labels = groups[self._group_tree.leaf_groups]
        return self._normalized(codes, lambda block: self._scores_in(block, leaf_labels))

    def _grain_confidence(self, groups: np.ndarray) -> np.ndarray:
        rows = self._distinct_rows()
        return row_agreement(groups[self._group_tree.row_groups], rows)[rows.of_object]

    def _clusters_of_leaves(
        self, leaf_labels: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Codes, sizes and labels of the leaves, and the levels of the members."""
        return self._leaf_codes, self._leaf_sizes, leaf_labels, self._n_levels

    def _leaf_labels(self) -> np.ndarray:
        tree_clusters = getattr(self, TREE_CLUSTERS)
        place = np.empty_like(tree_clusters)
        place[tree_clusters] = np.arange(len(place))
        return place[self._leaf_clusters]
