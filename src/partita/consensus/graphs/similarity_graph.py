"""The co-association of distinct rows as a sparse graph."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse as sp

from partita.labels import one_hot

__all__ = ["coassociation_graph"]

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
    """Edges between rows: their co-association times the number of pairs of objects they stand for.

    The co-association is the weight of the members that give both rows one label over the weight of those that saw
    both. With `n_neighbors` an edge stays where one end is among the nearest of the other; None keeps every pair with
    a label in common, and refuses before it would hold more than 4 GiB.

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
        likeness = (weighted[start:stop] @ ones.T).toarray()
        if whole:
            likeness /= member_weights.sum()
        else:
            both = (saw[start:stop] * member_weights) @ saw.T
            np.divide(likeness, both, out=likeness, where=both > 0)
        likeness[np.arange(stop - start), np.arange(start, stop)] = 0.0
        if n_neighbors is not None and n_neighbors < n - 1:
            far = np.argpartition(likeness, n - n_neighbors, axis=1)[:, : n - n_neighbors]
            np.put_along_axis(likeness, far, 0.0, axis=1)
        blocks.append(sp.csr_array(likeness))
    graph = sp.vstack(blocks, format="csr")
    graph = graph.maximum(graph.T)
    return sp.csr_array(graph.multiply(sizes[:, None]).multiply(sizes[None, :]))


def _check_memory(n: int, n_neighbors: int) -> None:
    needed = n * n_neighbors * BYTES_PER_PAIR
    if needed > MAX_BYTES:
        raise MemoryError(
            f"the graph of {n} distinct rows with {n_neighbors} neighbours each needs about "
            f"{needed / 2**30:.0f} GiB: give a smaller n_neighbors (100, say)"
        )
