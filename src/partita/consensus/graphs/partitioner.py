"""Cuts of graphs and hypergraphs into parts of bounded size, by METIS and Mt-KaHyPar (the extra `graph`)."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

MIN_SHARE = 0.02  # smallest target share of a part; the part itself may be smaller
MAX_BISECTED = 0.5  # imbalance up to which METIS also cuts by bisections
MAX_WEIGHT_SUM = 2**29  # METIS may have been built with 32-bit integers


def cut_graph(
    graph: Any,
    vertex_weights: NDArray[Any],
    n_parts: int,
    *,
    imbalance: float = 0.05,
    shares: NDArray[np.float64] | None = None,
    seed: int = 0,
) -> list[NDArray[np.int64]]:
    """Part of each vertex in two cuts by METIS, by bisections and into all parts at once; the lighter cut first.

    Bisection is better on small graphs. With an allowed imbalance above 0.5 it isolates vertices, or runs out of them;
    then the only cut is that into all parts at once.

    Parameters
    ----------
    graph : csr_array (n x n)
        Symmetric, edge weights not negative, nothing on the diagonal. Weights become integers: their sum is
        scaled to 2^29, and an edge never falls below 1.
    vertex_weights : array (n,)
    n_parts : int
    imbalance : float
        A part may weigh 1 + `imbalance` times its share (METIS may exceed it).
    shares : array (n_parts,), optional
        Of the total weight; equal by default.
    seed : int

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> pairs = csr_array(np.kron(np.eye(2), 1 - np.eye(3)))
    >>> edge_cut(pairs, cut_graph(pairs, np.ones(6), 2)[0])
    0.0
    """
    pymetis = _pymetis()
    n = graph.shape[0]
    if n_parts == 1 or n_parts >= n:
        return [np.arange(n) if n_parts > 1 else np.zeros(n, np.int64)]
    if graph.nnz == 0:
        return [_fill(np.asarray(vertex_weights, float), _shares(shares, n_parts, n))]
    index = pymetis.zero_copy_dtype()
    adjacency = pymetis.CSRAdjacency(graph.indptr.astype(index), graph.indices.astype(index))
    found = [
        pymetis.part_graph(
            n_parts,
            adjacency,
            vweights=whole_weights(vertex_weights).astype(index),
            eweights=whole_weights(graph.data).astype(index),
            tpwgts=None if shares is None else _shares(shares, n_parts, n).tolist(),
            recursive=recursive,
            options=pymetis.Options(ufactor=max(1, round(1000 * imbalance)), seed=int(seed)),
        )
        for recursive in ((True, False) if imbalance <= MAX_BISECTED else (False,))
    ]
    found.sort(key=lambda cut: cut.edge_cuts)
    return [np.array(cut.vertex_part, dtype=np.int64) for cut in found]


def cut_hypergraph(
    hyperedges: list[NDArray[np.int64]],
    hyperedge_weights: NDArray[Any],
    vertex_weights: NDArray[Any],
    n_parts: int,
    *,
    imbalance: float = 0.05,
    shares: NDArray[np.float64] | None = None,
    seed: int = 0,
) -> NDArray[np.int64]:
    """Part of each vertex in a cut by Mt-KaHyPar that minimizes the weight of the hyperedges that are cut.

    A hyperedge that touches more than one part costs its weight, however many it touches. Other parameters as in
    `cut_graph`; the same seed gives the same parts.

    Examples
    --------
    >>> halves = [np.arange(3), np.arange(3, 6)]
    >>> np.bincount(cut_hypergraph(halves, np.ones(2), np.ones(6), 2)).tolist()
    [3, 3]
    """
    library, session = _mtkahypar()
    n = len(vertex_weights)
    if n_parts == 1 or n_parts >= n:
        return np.arange(n) if n_parts > 1 else np.zeros(n, np.int64)
    linking = [e for e, vertices in enumerate(hyperedges) if len(vertices) > 1]
    if not linking:
        return _fill(np.asarray(vertex_weights, float), _shares(shares, n_parts, n))
    library.set_seed(int(seed))
    context = session.context_from_preset(library.PresetType.DETERMINISTIC)
    context.logging = False
    context.set_partitioning_parameters(n_parts, float(imbalance), library.Objective.CUT)
    weights = whole_weights(vertex_weights)
    if shares is not None:
        # the bound of a part must allow the heaviest vertex
        allowed = np.ceil((1 + imbalance) * _shares(shares, n_parts, n) * weights.sum()).astype(np.int64)
        context.set_individual_target_block_weights(np.maximum(allowed, weights.max()).tolist())
    graph = session.create_hypergraph(
        context,
        n,
        len(linking),
        [hyperedges[e].tolist() for e in linking],
        weights.tolist(),
        whole_weights(np.asarray(hyperedge_weights)[linking]).tolist(),
    )
    return np.asarray(graph.partition(context).get_partition(), dtype=np.int64)


def edge_cut(graph: Any, parts: NDArray[np.int64]) -> float:
    """Weight of the edges between different parts.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> edge_cut(csr_array([[0.0, 2.0], [2.0, 0.0]]), np.array([0, 1]))
    2.0
    """
    graph = graph.tocoo()
    return float(graph.data[parts[graph.row] != parts[graph.col]].sum() / 2)


def whole_weights(weights: Any) -> NDArray[np.int64]:
    """Positive integers in proportion to the weights, with a sum of about 2^29; small whole weights are kept.

    Examples
    --------
    >>> whole_weights([1.0, 3.0]).tolist()
    [1, 3]
    >>> whole_weights([0.5, 0.25]).tolist()
    [357913941, 178956971]
    """
    weights = np.asarray(weights, dtype=np.float64)
    total = weights.sum()
    if total > MAX_WEIGHT_SUM or (weights != np.rint(weights)).any():
        weights = weights * (MAX_WEIGHT_SUM / total)
    return np.maximum(np.rint(weights), 1).astype(np.int64)


def _shares(shares: NDArray[np.float64] | None, n_parts: int, n: int) -> NDArray[np.float64]:
    """Shares that sum to 1, none so small that METIS finds no vertex for a part (and prints a warning)."""
    if shares is None:
        return np.full(n_parts, 1 / n_parts)
    shares = np.maximum(shares, min(max(MIN_SHARE, 3 / n), 1 / n_parts))
    return shares / shares.sum()


def _fill(weights: NDArray[np.float64], shares: NDArray[np.float64]) -> NDArray[np.int64]:
    """Vertices without edges: the parts are filled one after the other."""
    middles = (np.cumsum(weights) - weights / 2) / weights.sum()
    return np.searchsorted(np.cumsum(shares)[:-1], middles)


def _pymetis() -> Any:
    try:
        import pymetis
    except ImportError:
        raise ImportError(_absent("pymetis", "graphs are cut by METIS")) from None
    return pymetis


@cache
def _mtkahypar() -> tuple[Any, Any]:
    try:
        import mtkahypar
    except ImportError:
        raise ImportError(_absent("mtkahypar", "hypergraphs are cut by Mt-KaHyPar")) from None
    return mtkahypar, mtkahypar.initialize(1, print_warnings=False)  # once per process; one thread


def _absent(package: str, why: str) -> str:
    return f'{why}, and {package} is not installed: install the extra `graph`, pip install "partita[graph]"'
