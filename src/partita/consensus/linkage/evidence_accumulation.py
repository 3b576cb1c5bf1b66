"""EvidenceAccumulation: a tree on the share of the members that put two objects together."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from partita.consensus.base import Found
from partita.consensus.labelings import Labelings
from partita.consensus.linkage.agglomeration import (
    Tree,
    agglomerate,
    cut,
    label_leaves,
    pair_link,
    scipy_linkage,
)
from partita.consensus.linkage.joining import LeafSample, join, pooled_links, sample_leaves
from partita.consensus.linkage.pair_links import complete_link, single_link
from partita.consensus.linkage.tree_consensus import TREE_CLUSTERS, TreeConsensus, leaf_attributes
from partita.consensus.member_statistics import own_agreement
from partita.engines.run import Control
from partita.labels import signatures


class EvidenceAccumulation(TreeConsensus):
    """Evidence accumulation: hierarchical clustering of objects by the share of the members that put them together.

    The similarity of two objects is their co-association: the weight of the members that give them the same label,
    over the weight of those that saw both. No N x N matrix is formed: average linkage uses label histograms of the
    distinct rows, single linkage a spanning tree of them; only complete linkage holds a matrix of the distinct rows.

    Good for: a familiar baseline, a tree to look at. Not for: members of different quality (all count the same), or a
    stable number of clusters (the lifetime criterion is a rule of thumb).

    Parameters
    ----------
    n_clusters : int, optional
        Number of clusters into which the tree is cut. None: the number, 2 or more, with the longest lifetime, that is
        the widest range of distances at which the cut has so many clusters (the smallest of equal ones).
    linkage : {"average", "single", "complete"}, default="average"
        With missing labels, "average" is the pooled ratio: agreements over members that saw both, each summed over
        all pairs.
    max_exact : int, default=4000
        With more distinct rows, the tree is built on a sample of the objects with at most so many distinct rows, and
        all other rows join the cluster with which the members agree most.
    noise : {"missing", "cluster", "singletons"}, default="missing"
        Meaning of the label -1: not seen, one further cluster of its member, or an object that is alone.
    handle_unknown : {"missing", "error"}, default="missing"
        What ``predict`` does with labels that were not present in ``fit``.
    random_state : int, RandomState, Generator, SeedSequence or None, default=None
        For the sample of ``max_exact`` (and for soft members) only.

    Attributes
    ----------
    labels_ : ndarray (n_objects,)
        Cluster of each object; 0 is the largest cluster.
    n_clusters_ : int
        Number of clusters that have objects.
    confidence_ : ndarray (n_objects,)
        Weighted share of the members that put the object with the other objects of its cluster.
    confidence_kind_ : str
        "share of members".
    member_weights_ : ndarray (n_members,)
        Weights as given; 0 for members that took no part.
    linkage_ : ndarray (n_leaves - 1, 4)
        The tree in scipy's format; the distance is 1 minus the co-association.
    row_leaves_ : ndarray (n_objects,)
        Leaf of each row of X: its distinct row of labels. -1 for rows that are not in the tree.
    n_clusters_scores_ : dict
        Number of clusters -> its lifetime, the width of the range of distances with so many clusters; high is good.
        The range of one cluster ends at the distance 1.
    fit_report_ : FitReport
        Notes on the labels and on the fit.
    n_features_in_, feature_names_in_, schema_
        Number, names and labels of the members.

    References
    ----------
    Fred and Jain (2005), Combining multiple clusterings using evidence accumulation, IEEE TPAMI 27(6).

    Examples
    --------
    >>> import numpy as np
    >>> from partita import EvidenceAccumulation
    >>> Y = np.repeat([[0, 0, 1], [0, 0, 1], [1, 1, 0], [1, 2, 0]], 10, axis=0)
    >>> EvidenceAccumulation().fit(Y).n_clusters_
    2
    """

    _array_laws: tuple[str, ...] = (
        "fitted._column_gains float (L)",
        "fitted.cluster_weights_ float (L) 0..",
    )
    _parameter_constraints: dict[str, Any] = {
        **TreeConsensus._parameter_constraints,
        "n_clusters": [Interval(Integral, 1, None, closed="left"), None],
        "linkage": [StrOptions({"average", "single", "complete"})],
        "max_exact": [Interval(Integral, 2, None, closed="left")],
    }

    _n_clusters_score = "lifetime in the tree"

    def __init__(
        self,
        n_clusters=None,
        *,
        linkage="average",
        max_exact=4000,
        noise="missing",
        handle_unknown="missing",
        random_state=None,
    ):
        self.n_clusters = n_clusters
        self.linkage = linkage
        self.max_exact = max_exact
        self.noise = noise
        self.handle_unknown = handle_unknown
        self.random_state = random_state

    def _fit_labelings(self, labelings: Labelings, rng: np.random.Generator, control: Control) -> Found:
        distinct = signatures(labelings.codes, labelings.weights)
        rows, n_levels, power = distinct.rows, labelings.n_levels, labelings.member_weights
        leaves = LeafSample(np.arange(len(rows)), distinct.weights)
        if len(rows) > self.max_exact:
            leaves = sample_leaves(distinct.weights, self.max_exact, rng)
            self.fit_report_.add(
                "reduced",
                f"{len(rows)} distinct rows: the tree was built on {len(leaves.rows)} of them, and the others joined "
                f"the cluster with which the members agree most; max_exact={len(rows)} would be exact",
            )
        leaf_codes = rows[leaves.rows]
        gains = self._gains(labelings)
        tree = _tree(self.linkage, leaf_codes, n_levels, leaves.sizes, gains, power)
        lifetimes = _lifetimes(tree)
        K = self._n_clusters(lifetimes)
        leaf_labels = cut(tree, K)
        labels = leaf_labels
        if len(leaves.rows) < len(rows):
            clusters = (leaf_codes, leaves.sizes, leaf_labels, n_levels)
            labels = join(
                rows, leaf_labels, leaves.rows, lambda block: pooled_links(block, *clusters, gains, power)
            )
        leaf_of_row = np.full(len(rows), -1)
        leaf_of_row[leaves.rows] = np.arange(len(leaves.rows))
        return Found(
            labels[distinct.inverse],
            own_agreement(labels[distinct.inverse], *labelings[:4]),
            n_components=K,
            clusters={TREE_CLUSTERS: np.arange(K)},
            attributes={
                "linkage_": scipy_linkage(tree, 1.0),
                "n_clusters_scores_": {k: float(value) for k, value in enumerate(lifetimes, start=1)},
                "_powers": power,
                "_column_gains": gains,
                **leaf_attributes(
                    leaf_codes, leaves.sizes, leaf_labels, leaf_of_row[distinct.inverse], n_levels
                ),
            },
        )

    def _gains(self, labelings: Labelings) -> np.ndarray:
        """What a common label adds to the similarity of a pair, for each level of each member."""
        return np.repeat(labelings.member_weights, labelings.n_levels)

    def _n_clusters(self, lifetimes: np.ndarray) -> int:
        n_leaves = len(lifetimes)
        if self.n_clusters is None:
            return 2 + int(np.argmax(lifetimes[1:])) if n_leaves > 1 else 1
        if self.n_clusters > n_leaves:
            self.fit_report_.add(
                "fewer_clusters",
                f"n_clusters={self.n_clusters}, but there are only {n_leaves} distinct rows: each is a cluster",
                level="warning",
            )
        return min(self.n_clusters, n_leaves)

    def _links(self, codes: np.ndarray, leaf_labels: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.log(
                pooled_links(codes, *self._clusters_of_leaves(leaf_labels), self._column_gains, self._powers)
            )


def _tree(
    linkage: str,
    rows: np.ndarray,
    n_levels: np.ndarray,
    sizes: np.ndarray,
    gains: np.ndarray,
    power: np.ndarray,
) -> Tree:
    if linkage == "single":
        return single_link(rows, power)
    if linkage == "complete":
        return complete_link(rows, power)
    leaves = label_leaves(rows, n_levels, sizes)
    pooled = pair_link(leaves, power, np.zeros_like(power), power)
    pooled.gain[: len(gains)] = gains  # levels of one member may have different gains
    return agglomerate(leaves, pooled)


def _lifetimes(tree: Tree) -> np.ndarray:
    """Range of distances of K = 1, 2, ... clusters; that of one cluster per leaf begins at 0, that of one ends at 1."""
    distances = np.concatenate([[0.0], np.maximum.accumulate(1.0 - tree.links), [1.0]])
    return np.round(np.diff(distances)[::-1], 12)  # without rounding errors equal lifetimes are equal
