"""BipartiteModularity: communities of the bipartite graph of objects and clusters, which finds their number."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval

from partita.consensus.base import ConsensusEstimator, Found
from partita.consensus.labelings import Labelings
from partita.consensus.member_statistics import own_agreement
from partita.engines.run import Control
from partita.labels import one_hot, signatures


class BipartiteModularity(ConsensusEstimator):
    """Communities in the graph of objects and the members' clusters; finds the number of clusters.

    An object has an edge to every cluster that holds it, as in ``HBGF``. Instead of a cut into a given number of
    parts, the Leiden algorithm searches for the partition of objects and clusters with the highest modularity (that of
    Barber, for bipartite graphs). Objects with the same labels stay together. Needs the extra
    ``pip install "partita[community]"`` (leidenalg, under the GPL).

    Good for: a quick consensus of an unknown number of clusters, many objects. Not for: small clusters beside large
    ones, which modularity merges (its resolution limit), or the uncertainty of the number (use ``Consensus``).

    Parameters
    ----------
    resolution : float, default=1.0
        Higher values give more clusters; 1 is modularity itself.
    n_init : int, default=5
        Number of starts; the one with the highest modularity is kept.
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
    modularity_ : float
        Modularity of the partition of objects and clusters, at the given resolution.
    fit_report_ : FitReport
        Notes on the labels and on the fit.
    n_features_in_, feature_names_in_, schema_
        Number, names and labels of the members.

    References
    ----------
    Barber (2007), Modularity and community detection in bipartite networks, Physical Review E 76.
    Traag, Waltman and van Eck (2019), From Louvain to Leiden: guaranteeing well-connected communities, Scientific
    Reports 9.

    Examples
    --------
    >>> import numpy as np
    >>> from partita import BipartiteModularity
    >>> Y = np.repeat([[0, 0, 1], [0, 0, 1], [1, 1, 0], [1, 2, 0]], 10, axis=0)
    >>> BipartiteModularity(random_state=0).fit(Y).n_clusters_
    2
    """

    _parameter_constraints: dict[str, Any] = {
        **ConsensusEstimator._parameter_constraints,
        "resolution": [Interval(Real, 0, None, closed="neither")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self, resolution=1.0, *, n_init=5, noise="missing", handle_unknown="missing", random_state=None
    ):
        self.resolution = resolution
        self.n_init = n_init
        self.noise = noise
        self.handle_unknown = handle_unknown
        self.random_state = random_state

    def _fit_labelings(self, labelings: Labelings, rng: np.random.Generator, control: Control) -> Found:
        distinct = signatures(labelings.codes, labelings.weights)
        powers = np.repeat(labelings.member_weights, labelings.n_levels)
        edges = one_hot(distinct.rows, labelings.n_levels).matrix * powers * distinct.weights[:, None]
        rows, clusters = bipartite_communities(
            edges, resolution=self.resolution, n_init=self.n_init, seed=int(rng.integers(2**31))
        )
        modularity = bipartite_modularity(edges, rows, clusters, self.resolution)
        labels = rows[distinct.inverse]
        return Found(labels, own_agreement(labels, *labelings[:4]), attributes={"modularity_": modularity})


# ---- modularity, and the Leiden algorithm ------------------------------------------------------------------


def bipartite_modularity(
    edges: Any, row_parts: NDArray[np.int64], column_parts: NDArray[np.int64], resolution: float = 1.0
) -> float:
    """Barber's modularity: share of the edges within parts, less the share expected from the degrees.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> bipartite_modularity(csr_array(np.eye(2)), np.array([0, 1]), np.array([0, 1]))
    0.5
    """
    edges = edges.tocoo()
    total = edges.data.sum()
    within = edges.data[row_parts[edges.row] == column_parts[edges.col]].sum()
    n_parts = int(max(row_parts.max(), column_parts.max())) + 1
    rows = np.bincount(row_parts[edges.row], edges.data, minlength=n_parts)
    columns = np.bincount(column_parts[edges.col], edges.data, minlength=n_parts)
    return float(within / total - resolution * (rows @ columns) / total**2)


def bipartite_communities(
    edges: Any, *, resolution: float = 1.0, n_init: int = 1, seed: int = 0
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Partition of the rows and columns of a matrix of edges with high modularity; the number of parts is found.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> rows, columns = bipartite_communities(csr_array(np.kron(np.eye(2), np.ones((3, 2)))))
    >>> len(set(rows.tolist())), (rows[::3] == columns[::2]).all()
    (2, np.True_)
    """
    igraph, leidenalg = _libraries()
    edges = edges.tocoo()
    n_rows, n_columns = edges.shape
    # edges from rows to columns: modularity for directed graphs is then Barber's
    graph = igraph.Graph(
        n=n_rows + n_columns, edges=np.column_stack([edges.row, edges.col + n_rows]), directed=True
    )
    found = [
        leidenalg.find_partition(
            graph,
            leidenalg.RBConfigurationVertexPartition,
            weights=edges.data.tolist(),
            resolution_parameter=resolution,
            n_iterations=-1,
            seed=(seed + start) % 2**31,
        )
        for start in range(n_init)
    ]
    parts = np.asarray(max(found, key=lambda partition: partition.quality()).membership, dtype=np.int64)
    return parts[:n_rows], parts[n_rows:]


def _libraries() -> tuple[Any, Any]:
    try:
        import igraph
        import leidenalg
    except ImportError:
        raise ImportError(
            "communities are found by leidenalg, which is not installed: install the extra `community`, "
            'pip install "partita[community]"'
        ) from None
    return igraph, leidenalg
