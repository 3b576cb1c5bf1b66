"""Nearest neighbors of rows under any comparison, and the graphs of their dissimilarities or weights."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse as sp
from sklearn.neighbors import NearestNeighbors

from partita.execution.memory import check_memory
from partita.similarity.comparison import learn_comparison
from partita.similarity.dissimilarities import Rows, row_chunks
from partita.table import Table, read_table

SQUARED = ("squared_euclidean", "ordinal", "hamming")
MIN_INDEXED_ROWS = 500  # an index over fewer rows does not save time
MAX_INDICATORS = 200  # maximum number of indicator columns of levels; with more, pairs are compared in chunks
SCALE_NEIGHBOR = 7  # the dissimilarity to this neighbor is the local scale (Zelnik-Manor and Perona 2004)
MIN_WEIGHT = 1e-9  # of an edge, so that nodes that have an edge stay connected
# power of the share of common neighbors: 1 joins noisy moons, 2 cuts a single chain where it is thin
SHARED_POWER = 1.5
PAIRS_PER_CHUNK = 1 << 16


class Nearest(NamedTuple):
    """The nearest others of each row, the nearest first: their numbers and dissimilarities."""

    rows: np.ndarray
    dissimilarities: np.ndarray


def neighbor_graph(
    X: Any,
    n_neighbors: int = 20,
    metric: Any = "auto",
    *,
    weights: Any = None,
    orders: Any = None,
    kinds: Any = None,
    standardize: bool = True,
) -> Any:
    """The dissimilarities of each row to its nearest others, as a sparse graph.

    Two rows have an edge if one of them is among the nearest of the other. Memory grows with the number of edges; so
    does time, up to a logarithm, if no cell is missing and there are few columns. Otherwise all pairs are compared, in
    chunks.

    Parameters
    ----------
    X : array, data frame or partita.table.Table
        The rows.
    n_neighbors : int, default=20
        Number of nearest rows per row.
    metric, weights, orders, kinds, standardize
        As in :func:`dissimilarity`.

    Returns
    -------
    scipy.sparse.csr_array (n_rows, n_rows)
        Symmetric. A stored 0 is an edge between equal rows.

    Examples
    --------
    >>> graph = neighbor_graph([[0.0], [1.0], [5.0]], 1, "city_block", kinds="real", standardize=False)
    >>> graph.toarray()
    array([[0., 1., 0.],
           [1., 0., 4.],
           [0., 4., 0.]])
    """
    table = (
        X
        if isinstance(X, Table)
        else read_table(X, kinds, infer_ordinal=False, estimator_name="neighbor_graph")
    )
    rows = Rows.of(table, learn_comparison(table, metric, weights, orders, standardize))
    if isinstance(n_neighbors, bool) or not isinstance(n_neighbors, (int, np.integer)) or n_neighbors < 1:
        raise ValueError(f"n_neighbors is {n_neighbors!r}: give a number of neighbors, 1 or more")
    return join_graph(nearest(rows, min(int(n_neighbors), rows.n_rows - 1)))


def join_graph(found: Nearest) -> Any:
    """Edges in both directions: a symmetric graph of dissimilarities, with zeros stored."""
    n, k = found.rows.shape
    start = np.repeat(np.arange(n), k)
    stop, values = found.rows.ravel(), found.dissimilarities.ravel()
    low, high = np.minimum(start, stop), np.maximum(start, stop)
    _, once = np.unique(low * n + high, return_index=True)  # a mutual edge occurs twice
    low, high, values = low[once], high[once], values[once]
    ends = (np.concatenate([low, high]), np.concatenate([high, low]))
    return sp.csr_array((np.concatenate([values, values]), ends), shape=(n, n))


def nearest(rows: Rows, k: int, of: Rows | None = None) -> Nearest:
    """The k nearest of ``rows`` to each row of ``of``; by default to each of ``rows``, not counting itself.

    Examples
    --------
    >>> from partita.table import read_table
    >>> table = read_table([[0.0], [1.0], [5.0]], "real")
    >>> rows = Rows.of(table, learn_comparison(table, "city_block", standardized=False))
    >>> nearest(rows, 1).rows.ravel().tolist()
    [1, 0, 1]
    """
    asked = rows if of is None else of
    check_memory(
        32 * asked.n_rows * (k + 1), f"{k} neighbors of {asked.n_rows:,} rows", "set n_neighbors lower"
    )
    if k < 1:
        return Nearest(np.empty((asked.n_rows, 0), np.intp), np.empty((asked.n_rows, 0)))
    points, power = _as_points(rows)
    others, _ = (points, power) if of is None else _as_points(of, rows)
    # rounding in matrix products depends on their shape: the result for one row must not depend on the others
    if points is None or others is None or (of is not None and rows.n_rows <= MIN_INDEXED_ROWS):
        return _by_chunks(rows, asked, k, of is None)
    index = NearestNeighbors(n_neighbors=k, p=power, algorithm="auto" if of is None else "kd_tree").fit(
        points
    )
    far, found = index.kneighbors(None if of is None else others)
    return Nearest(found, far**2 if power == 2 else far)


def _as_points(rows: Rows, like: Rows | None = None) -> tuple[np.ndarray | None, int]:
    """Points whose squared Euclidean (2) or city block (1) distance is the dissimilarity; None if there are none."""
    like = rows if like is None else like
    metrics = {group.metric for group in rows.comparison.groups}
    if any(holes.any() for holes in (*rows.holes, *like.holes)):
        return None, 0
    if metrics == {"city_block"}:
        return rows.values[0] * rows.comparison.groups[0].weights, 1
    if not metrics <= set(SQUARED):
        return None, 0
    parts = []
    for group, values, known in zip(rows.comparison.groups, rows.values, like.values, strict=True):
        if group.metric != "hamming":
            parts.append(values * np.sqrt(group.weights))
            continue
        levels = [np.unique(column) for column in known.T]
        if sum(map(len, levels)) > MAX_INDICATORS:
            return None, 0
        for weight, column, own in zip(group.weights, values.T, levels, strict=True):
            if not np.isin(column, own).all():  # a value without an indicator in the index
                return None, 0
            parts.append((column[:, None] == own) * np.sqrt(weight / 2.0))
    return np.hstack(parts), 2


def _by_chunks(rows: Rows, asked: Rows, k: int, itself: bool) -> Nearest:
    found, far = np.empty((asked.n_rows, k), np.intp), np.empty((asked.n_rows, k))
    for here in row_chunks(asked.n_rows, rows.n_rows):
        part = asked.between(here, rows, slice(None))
        if itself:
            part[np.arange(len(part)), np.arange(here.start, here.stop)] = np.inf
        order = np.argpartition(part, k - 1, axis=1)[:, :k]
        values = np.take_along_axis(part, order, axis=1)
        sorting = np.argsort(values, axis=1, kind="stable")
        found[here] = np.take_along_axis(order, sorting, axis=1)
        far[here] = np.take_along_axis(values, sorting, axis=1)
    return Nearest(found, far)


# ---- graphs of weights -------------------------------------------------------------------------------------


def local_scales(found: Nearest) -> np.ndarray:
    """The scale of each object: the dissimilarity to its seventh neighbor, or to the last one if there are fewer."""
    last = min(SCALE_NEIGHBOR, found.dissimilarities.shape[1]) - 1
    return np.maximum(found.dissimilarities[:, last], np.finfo(np.float64).tiny)


def self_tuning_graph(found: Nearest, one_sided: float = 1.0) -> Any:
    """Weights ``J_ij^1.5 exp(-d_ij / sqrt(s_i s_j))`` of the edges between neighbors, s being the local scales.

    With squared distances d the second factor is the self-tuning similarity: dense and sparse regions are equally well
    connected. J is the share of the neighbors of either object that are neighbors of both (an object counts as its own
    neighbor): it is small for edges across a gap. The weight of an edge that is not mutual is multiplied by
    ``one_sided``.

    Examples
    --------
    >>> found = Nearest(np.array([[1], [0], [1]]), np.array([[1.0], [1.0], [4.0]]))
    >>> self_tuning_graph(found).toarray().round(3)
    array([[0.   , 0.368, 0.   ],
           [0.368, 0.   , 0.026],
           [0.   , 0.026, 0.   ]])
    """
    graph = sp.coo_array(join_graph(found))
    i, j = graph.row, graph.col
    roots = np.sqrt(local_scales(found))
    weights = (
        _weight(graph.data, roots[i], roots[j])
        * _in_common(found.rows, i, found.rows, j, True) ** SHARED_POWER
    )
    if one_sided != 1.0:
        mutual = (found.rows[i] == j[:, None]).any(axis=1) & (found.rows[j] == i[:, None]).any(axis=1)
        weights *= np.where(mutual, 1.0, one_sided)
    return sp.csr_array((np.maximum(weights, MIN_WEIGHT), (i, j)), shape=graph.shape)


def weights_to(found: Nearest, neighbors: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Weights of new objects to their nearest known objects, whose neighbors and scales are given."""
    n, k = found.rows.shape
    here = np.sqrt(local_scales(found))[:, None]
    weights = _weight(found.dissimilarities, here, np.sqrt(scales)[found.rows])
    i, j = np.repeat(np.arange(n), k), found.rows.ravel()
    common = _in_common(found.rows, i, neighbors, j, False).reshape(n, k)
    return np.maximum(weights * common**SHARED_POWER, MIN_WEIGHT)


def _weight(d: np.ndarray, here: np.ndarray, there: np.ndarray) -> np.ndarray:
    # divide by one root at a time: their product may underflow
    return np.exp(-(d / here) / there)


def _in_common(A: np.ndarray, i: np.ndarray, B: np.ndarray, j: np.ndarray, itself: bool) -> np.ndarray:
    """The Jaccard index of the neighbors A of objects i and B of objects j; a new object is no neighbor of others."""
    size = A.shape[1] + B.shape[1] + 2
    out = np.empty(len(i))
    for start in range(0, len(i), PAIRS_PER_CHUNK):
        part = slice(start, start + PAIRS_PER_CHUNK)
        a, b = A[i[part]], np.column_stack([B[j[part]], j[part]])
        shared = (a[:, :, None] == b[:, None, :]).sum(axis=(1, 2))
        if itself:
            shared = shared + (B[j[part]] == i[part, None]).any(axis=1)
        out[part] = shared / (size - shared)
    return out


# ---- equal rows --------------------------------------------------------------------------------------------


def distinct_rows(rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """The first row of each distinct value, and the value of each row; missing cells are equal to each other.

    Examples
    --------
    >>> from partita.table import read_table
    >>> table = read_table([[2.5, None], [1.5, 3.0], [2.5, None]], "real")
    >>> first, value = distinct_rows(Rows.of(table, learn_comparison(table)))
    >>> first.tolist(), value.tolist()
    ([1, 0], [1, 0, 1])
    """
    _, first, value = np.unique(_flat(rows), axis=0, return_index=True, return_inverse=True)
    return first, value.ravel()


def match_rows(known: Rows, new: Rows) -> np.ndarray:
    """For each new row the number of the equal known row, or -1; known rows are distinct."""
    both = np.concatenate([_flat(known), _flat(new)])
    _, first, value = np.unique(both, axis=0, return_index=True, return_inverse=True)
    found = first[value.ravel()[known.n_rows :]]
    return np.where(found < known.n_rows, found, -1)


def _flat(rows: Rows) -> np.ndarray:
    # NaN is not equal to itself, so it becomes inf; + 0.0 turns -0.0 into 0.0
    values = np.hstack(rows.values) + 0.0
    values[np.isnan(values)] = np.inf
    return values
