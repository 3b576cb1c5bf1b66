"""CSPA: a balanced cut of the graph of co-associations."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse as sp
from sklearn.utils._param_validation import Interval, StrOptions

from partita.consensus.graphs.graph_cuts import GraphCut, Partition
from partita.consensus.graphs.partitioner import cut_graph
from partita.consensus.labelings import Labelings
from partita.consensus.linkage.joining import LeafSample, join, pooled_links, sample_leaves
from partita.labels import Signatures, one_hot

MAX_COMPLETE = 2000  # distinct rows up to which "auto" keeps every pair
N_NEIGHBORS = 100  # that "auto" keeps of more


class CSPA(GraphCut):
    """Cluster-based similarity partitioning: the graph of co-associations is cut into parts of bounded size.

    The vertices are the distinct rows of labels, each with the weight of its objects, so that objects with the same
    labels stay together (``identical="apart"`` allows a balanced cut to separate them, as in the paper). The weight of
    an edge is the co-association (members that agree over members that saw both). METIS cuts the graph. Needs the
    extra ``pip install "partita[graph]"``.

    Good for: a strong baseline with a known number of clusters. Not for: very many distinct rows, as all of them are
    compared with each other (HGPA, MCLA, HBGF and QMI are linear in the rows).

    Parameters
    ----------
    n_clusters : int
        Number of clusters. Required: the method has no rule to find it.
    balance : "auto" or float, default="auto"
        How much heavier than its share a cluster may be: 0.05 is the 5% of the paper. "auto" tries several imbalances,
        with equal and unequal shares, and keeps the cut with the highest mean NMI with the members.
    identical : {"together", "apart"}, default="together"
        How objects with the same labels are treated. "together": the vertices are the distinct rows, which is fast.
        "apart": the vertices are the objects, as in the paper, and a small `balance` may separate objects that no
        member separates (``predict`` then gives such rows the label of the first of them).
    n_neighbors : int, "auto" or None, default="auto"
        Number of edges that each distinct row keeps, to the most similar rows. None keeps all pairs, and raises an
        error if that would need more than 4 GiB. "auto" keeps all pairs of up to 2000 distinct rows, and 100 neighbors
        per row otherwise.
    max_exact : int, default=10000
        With more distinct rows, the graph is built on a sample of the objects with at most so many distinct rows, and
        all other rows join the cluster with which the members agree most.
    noise : {"missing", "cluster", "singletons"}, default="missing"
        Meaning of the label -1: not seen, one further cluster of its member, or an object that is alone.
    handle_unknown : {"missing", "error"}, default="missing"
        What ``predict`` does with labels that were not present in ``fit``.
    random_state : int, RandomState, Generator, SeedSequence or None, default=None
        Source of randomness.

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
    mean_nmi_ : float
        Mean normalized mutual information of the cut with the members.
    imbalance_ : float
        Weight of the largest part over that of the mean part, less 1.
    fit_report_ : FitReport
        Notes on the labels and on the fit.
    n_features_in_, feature_names_in_, schema_
        Number, names and labels of the members.

    References
    ----------
    Strehl and Ghosh (2002), Cluster ensembles: a knowledge reuse framework for combining multiple partitions, JMLR 3.

    Examples
    --------
    >>> import numpy as np
    >>> from partita import CSPA
    >>> Y = np.repeat([[0, 0, 1], [0, 0, 2], [1, 1, 0], [1, 2, 0]], 10, axis=0)
    >>> np.bincount(CSPA(2, random_state=0).fit(Y).labels_)
    array([20, 20])
    """

    _parameter_constraints: dict[str, Any] = {
        **GraphCut._parameter_constraints,
        "identical": [StrOptions({"together", "apart"})],
        "n_neighbors": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"}), None],
        "max_exact": [Interval(Integral, 2, None, closed="left")],
    }

    def __init__(
        self,
        n_clusters=None,
        *,
        balance="auto",
        identical="together",
        n_neighbors="auto",
        max_exact=10000,
        noise="missing",
        handle_unknown="missing",
        random_state=None,
    ):
        self.n_clusters = n_clusters
        self.balance = balance
        self.identical = identical
        self.n_neighbors = n_neighbors
        self.max_exact = max_exact
        self.noise = noise
        self.handle_unknown = handle_unknown
        self.random_state = random_state

    def _partition(
        self, distinct: Signatures, labelings: Labelings, K: int, rng: np.random.Generator
    ) -> Partition:
        rows, n_levels, power = distinct.rows, labelings.n_levels, labelings.member_weights
        leaves = LeafSample(np.arange(len(rows)), distinct.weights)
        if len(rows) > self.max_exact:
            leaves = sample_leaves(distinct.weights, max(K, self.max_exact), rng)
            self.fit_report_.add(
                "reduced",
                f"{len(rows)} distinct rows: the graph was built on {len(leaves.rows)} of them, and the others joined "
                f"the cluster with which the members agree most; max_exact={len(rows)} would be exact",
            )
        codes = rows[leaves.rows]
        graph = coassociation_graph(codes, n_levels, leaves.sizes, power, self._n_neighbors(len(codes)))
        seed, gains = int(rng.integers(2**31)), np.repeat(power, n_levels)

        def partition(imbalance: float, shares: np.ndarray | None) -> list[np.ndarray]:
            cuts = cut_graph(graph, leaves.sizes, K, imbalance=imbalance, shares=shares, seed=seed)
            return cuts if len(codes) == len(rows) else [joined(parts) for parts in cuts]

        def joined(parts: np.ndarray) -> np.ndarray:
            used, parts = np.unique(parts, return_inverse=True)  # a part may be empty
            clusters = (codes, leaves.sizes, parts, n_levels)
            return used[
                join(rows, parts, leaves.rows, lambda block: pooled_links(block, *clusters, gains, power))
            ]

        return partition

    def _n_neighbors(self, n_rows: int) -> int | None:
        if self.n_neighbors == "auto":
            return None if n_rows <= MAX_COMPLETE else N_NEIGHBORS
        return self.n_neighbors


# ---- the graph of co-associations --------------------------------------------------------------------------


BLOCK_ENTRIES = 2**22
BYTES_PER_PAIR = 48  # the graph, its integer copies for the partitioner, and what building it needs
MAX_BYTES = 4 * 2**30


def coassociation_graph(
    rows: NDArray[Any],
    n_levels: NDArray[Any],
    sizes: NDArray[np.float64],
    member_weights: NDArray[np.float64],
    n_neighbors: int | None = None,
) -> Any:
    """Sparse graph of the rows: an edge weighs the co-association times the number of pairs of objects.

    The co-association is the weight of the members that give both rows the same label over the weight of those that
    saw both. With `n_neighbors` an edge is kept if one end is among the nearest neighbors of the other; None keeps
    every pair with a common label, and raises an error if that would need more than 4 GiB.

    Examples
    --------
    >>> rows = np.array([[0, 0], [0, 1], [1, -1]])
    >>> coassociation_graph(rows, np.array([2, 2]), np.array([1.0, 2.0, 1.0]), np.ones(2)).toarray()
    array([[0., 1., 0.],
           [1., 0., 0.],
           [0., 0., 0.]])
    """
    n = len(rows)
    _check_memory(n, n - 1 if n_neighbors is None else n_neighbors)
    ones = one_hot(rows, n_levels).matrix
    powers = np.repeat(member_weights, n_levels)
    weighted = sp.csr_array(ones * powers)
    saw = (rows >= 0).astype(np.float64)
    whole = bool((rows >= 0).all())
    blocks = []
    step = max(1, BLOCK_ENTRIES // n)
    for start in range(0, n, step):
        stop = min(start + step, n)
        similarity = (weighted[start:stop] @ ones.T).toarray()
        if whole:
            similarity /= member_weights.sum()
        else:
            both = (saw[start:stop] * member_weights) @ saw.T
            np.divide(similarity, both, out=similarity, where=both > 0)
        similarity[np.arange(stop - start), np.arange(start, stop)] = 0.0
        if n_neighbors is not None and n_neighbors < n - 1:
            far = np.argpartition(similarity, n - n_neighbors, axis=1)[:, : n - n_neighbors]
            np.put_along_axis(similarity, far, 0.0, axis=1)
        blocks.append(sp.csr_array(similarity))
    graph = sp.vstack(blocks, format="csr")
    graph = graph.maximum(graph.T)
    return sp.csr_array(graph.multiply(sizes[:, None]).multiply(sizes[None, :]))


def _check_memory(n: int, n_neighbors: int) -> None:
    needed = n * n_neighbors * BYTES_PER_PAIR
    if needed > MAX_BYTES:
        raise MemoryError(
            f"the graph of {n} distinct rows with {n_neighbors} neighbors each needs about "
            f"{needed / 2**30:.0f} GiB: give a smaller n_neighbors (100, say)"
        )
