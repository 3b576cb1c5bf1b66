"""The part of a Bayesian tree that prediction needs, the nodes from the root to the clusters, and its storage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from partita.engines.passes.rows import Statistics, n_stats, predictive
from partita.estimator import sum_probabilities
from partita.execution import row_chunks
from partita.families import Block
from partita.fitting.profiles import profile_columns
from partita.fitting.storage import check_array, check_family, pack_block, unpack_block
from partita.table import Schema
from partita.trees.bayesian.cut import descend, upper_nodes
from partita.trees.bayesian.merging import Merges, TreeLeaves, node_sums

CHUNK_CELLS = 1 << 22  # rows x nodes that are computed at a time


class UpperTree(NamedTuple):
    """Clusters 0 to K - 1 and the K - 1 nodes above them, each after its children.

    Statistics [statistic, node] of each block, sizes of the nodes, the children of the nodes above, and the log odds
    that such a node is one cluster.
    """

    blocks: tuple[Block, ...]  # without data
    S: tuple[np.ndarray, ...]
    sizes: np.ndarray
    pairs: np.ndarray
    log_odds: np.ndarray

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return len(self.pairs) + 1

    def profiles(self, schema: Schema) -> dict[str, dict[str, np.ndarray]]:
        """What each cluster looks like, in the user's units."""
        K = self.n_clusters
        S = tuple(np.ascontiguousarray(s[:, :K]) for s in self.S)
        return profile_columns(self.blocks, Statistics(self.sizes[:K], S, 0.0, 0.0, 0.0), schema)


def upper_tree(merges: Merges, nodes: np.ndarray, leaves: TreeLeaves, blocks: Sequence[Block]) -> UpperTree:
    """The part of a tree above and including the clusters ``nodes``."""
    m = len(leaves.n)
    above = upper_nodes(merges, nodes)
    kept = np.concatenate([nodes, above])
    name = np.full(2 * m - 1, -1)
    name[kept] = np.arange(len(kept))
    S = tuple(np.ascontiguousarray(node_sums(merges.children, s)[kept].T) for s in leaves.S)
    pairs = name[merges.children[above - m]].reshape(-1, 2)
    bare = tuple(block._replace(data=None, log_rest=None) for block in blocks)
    sizes = node_sums(merges.children, leaves.n)[kept]
    return UpperTree(bare, S, sizes, pairs, merges.log_odds[above - m])


def coarsened(found: UpperTree, groups: np.ndarray) -> UpperTree:
    """The upper tree above coarser clusters, which must be nodes of it; ``groups`` has that of each cluster."""
    G = found.n_clusters
    own = np.append(groups, np.full(G - 1, -1))
    for t, (i, j) in enumerate(found.pairs):
        if own[i] == own[j] >= 0:
            own[G + t] = own[i]
    top = np.full(int(groups.max()) + 1, -1)
    top[own[own >= 0]] = np.flatnonzero(own >= 0)  # the last node of a group is its uppermost one
    above = np.flatnonzero(own < 0)
    kept = np.concatenate([top, above])
    name = np.full(2 * G - 1, -1)
    name[kept] = np.arange(len(kept))
    return UpperTree(
        found.blocks,
        tuple(np.ascontiguousarray(S[:, kept]) for S in found.S),
        found.sizes[kept],
        name[found.pairs[above - G]].reshape(-1, 2),
        found.log_odds[above - G],
    )


def fine_probabilities(
    fine: UpperTree, clusters: np.ndarray, blocks: Sequence[Block], n_rows: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows and their probabilities of the clusters of a finer tree, chunk by chunk.

    The probability of a cluster of the answer (``clusters`` has that of each finer one) is divided among its parts as
    on the way down the tree.
    """
    coarse = coarsened(fine, clusters)
    scores = [predictive(blocks, tree.S, np.log(tree.sizes)) for tree in (fine, coarse)]
    for rows in row_chunks(n_rows, max(CHUNK_CELLS // (2 * fine.n_clusters), 1)):
        P, _ = descend(scores[0](rows), fine.pairs, fine.log_odds)
        of_cluster, _ = descend(scores[1](rows), coarse.pairs, coarse.log_odds)
        within = sum_probabilities(P, clusters)
        yield rows, P * (of_cluster / np.maximum(within, np.finfo(float).tiny))[:, clusters]


def probabilities(
    found: UpperTree, blocks: Sequence[Block], n_rows: int, own: np.ndarray | None = None
) -> np.ndarray:
    """Probability of each cluster for each row, [row, cluster]; with labels ``own`` only that of each row's label."""
    K = found.n_clusters
    score = predictive(blocks, found.S, np.log(found.sizes))
    out = np.empty((n_rows, K) if own is None else n_rows)
    for rows in row_chunks(n_rows, max(CHUNK_CELLS // (2 * K), 1)):
        P, _ = descend(score(rows), found.pairs, found.log_odds)
        out[rows] = P if own is None else P[np.arange(len(rows)), own[rows]]
    return out


def pack_tree(found: UpperTree) -> dict[str, Any]:
    """The upper tree as plain data, for a model file."""
    nodes = {"S": list(found.S), "sizes": found.sizes, "pairs": found.pairs, "log_odds": found.log_odds}
    return {"blocks": [pack_block(block) for block in found.blocks], "nodes": nodes}


def unpack_tree(state: dict[str, Any], schema: Schema) -> UpperTree:
    """The inverse of ``pack_tree``; a state that is not consistent is refused."""
    blocks = tuple(unpack_block(saved) for saved in state["blocks"])
    nodes = state["nodes"]
    found = UpperTree(blocks, tuple(nodes["S"]), nodes["sizes"], nodes["pairs"], nodes["log_odds"])
    _check(found, schema)
    return found


def _check(found: UpperTree, schema: Schema) -> None:
    K = found.n_clusters
    check_array("pairs", found.pairs, (K - 1, 2), np.int64)
    check_array("odds", found.log_odds, (K - 1,))
    check_array("sizes", found.sizes, (2 * K - 1,))
    later = K + np.arange(K - 1)[:, None]
    if not ((found.pairs >= 0) & (found.pairs < later)).all():
        raise ValueError("the nodes above the clusters are not a tree")
    for block, S in zip(found.blocks, found.S, strict=True):
        check_family(block, schema)
        check_array(f"statistics of {type(block.family).__name__}", S, (n_stats(block.family), 2 * K - 1))
