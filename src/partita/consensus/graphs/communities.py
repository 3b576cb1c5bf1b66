"""Modularity of the graph of objects and clusters, maximised by the Leiden algorithm (the extra `community`)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["bipartite_communities", "bipartite_modularity"]


def bipartite_modularity(
    edges: Any, row_parts: NDArray[np.int64], column_parts: NDArray[np.int64], resolution: float = 1.0
) -> float:
    """Barber's modularity: weight of the edges inside parts, less what the degrees alone would put there.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> bipartite_modularity(csr_array(np.eye(2)), np.array([0, 1]), np.array([0, 1]))
    0.5
    """
    edges = edges.tocoo()
    total = edges.data.sum()
    inside = edges.data[row_parts[edges.row] == column_parts[edges.col]].sum()
    n_parts = int(max(row_parts.max(), column_parts.max())) + 1
    rows = np.bincount(row_parts[edges.row], edges.data, minlength=n_parts)
    columns = np.bincount(column_parts[edges.col], edges.data, minlength=n_parts)
    return float(inside / total - resolution * (rows @ columns) / total**2)


def bipartite_communities(
    edges: Any, *, resolution: float = 1.0, n_init: int = 1, seed: int = 0
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Parts of the rows and columns of a matrix of edges, of high modularity; their number is found too.

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
