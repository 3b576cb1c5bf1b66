"""Base of the consensus methods that cut a tree of distinct rows: leaves, known rows and new rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from partita.consensus.base import ConsensusEstimator, Found
from partita.consensus.labelings import Labelings

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


class TreeConsensus(ConsensusEstimator):
    """Base of the methods that cut a tree.

    A subclass puts ``leaf_attributes(...)`` into ``Found.attributes`` and ``{TREE_CLUSTERS: arange(K)}`` into
    ``Found.clusters``, and implements ``_links(codes)``: how well each row fits each cluster, as a log weight.
    """

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
        leaves = np.full(len(codes), -1)
        leaves[labelings.rows] = self._object_leaves
        self.row_leaves_ = leaves
        del self._object_leaves
        if len(labelings.rows) < len(codes):
            others = np.setdiff1d(np.arange(len(codes)), labelings.rows)
            self.labels_[others] = self._labels_of(codes[others])

    def predict(self, X):
        """Cluster of each row of new labels: that of the same row in ``fit``, otherwise the one with the best link.

        Parameters
        ----------
        X : as in ``fit``, with the same members

        Returns
        -------
        ndarray (n_rows,)
        """
        return self._labels_of(self._new_codes(X))

    def _links(self, codes: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _labels_of(self, codes: np.ndarray) -> np.ndarray:
        labels = self._probabilities(codes).argmax(axis=1)
        known = self._known_labels(codes)
        return np.where(known >= 0, known, labels)

    def _log_scores(self, codes: np.ndarray) -> np.ndarray:
        scores = self._links(codes)
        # rows without information about the clusters are scored by the shares of the clusters
        silent = (codes < 0).all(axis=1) | ~np.isfinite(scores).any(axis=1)
        sizes = np.bincount(self._leaf_labels(), self._leaf_sizes)
        scores[silent] = np.log(sizes / sizes.sum())
        return scores

    def _clusters_of_leaves(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Codes, sizes and labels of the leaves, and the levels of the members."""
        return self._leaf_codes, self._leaf_sizes, self._leaf_labels(), self._n_levels

    def _leaf_labels(self) -> np.ndarray:
        tree_clusters = getattr(self, TREE_CLUSTERS)
        place = np.empty_like(tree_clusters)
        place[tree_clusters] = np.arange(len(place))
        return place[self._leaf_clusters]
