"""k-means in the one-hot space of a label matrix, which maximises the quadratic mutual information with the members.

With one-hot columns less their means, the squared error of a clustering is a constant minus N times the sum over the
members of the category utility ``sum_r p(r) sum_l p(l | r)^2 - sum_l p(l)^2``, which is half the quadratic mutual
information of clustering and member (Mirkin 2001; Topchy, Jain and Punch 2003). Means do not change distances, so
nothing is standardised in fact. A missing label leaves the distance and the mean of its member.

Good for a quick consensus with a known number of clusters. It has k-means' taste for clusters of equal size.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partita.consensus.label_layout import Cells, count_table, level_sums, nearest_seed
from partita.dispatch import kernel


class Means(NamedTuple):
    """Where k-means ended."""

    labels: np.ndarray  # [object]
    error: float  # weighted squared error over the labels that are there
    n_iter: int
    converged: bool


def best_means(cells: Cells, K: int, rng: np.random.Generator, *, n_init: int, max_iter: int) -> Means:
    """The start with the least squared error, from seeds by k-means++ on label agreement."""
    best = None
    for own in rng.spawn(n_init):
        found = _lloyd(cells, nearest_seed(cells, K, own), K, max_iter)
        if best is None or found.error < best.error * (1.0 - 1e-12):
            best = found
    assert best is not None
    return best


def _lloyd(cells: Cells, z: np.ndarray, K: int, max_iter: int) -> Means:
    for iteration in range(1, max_iter + 1):
        new, errors = assign(cells, centres(cells, z, K))
        new = _fill_empty(new, errors * cells.weights, K)
        if np.array_equal(new, z):
            return Means(z, float(errors @ cells.weights), iteration, True)
        z = new
    errors = assign(cells, centres(cells, z, K), z)[1]
    return Means(z, float(errors @ cells.weights), max_iter, False)


def centres(cells: Cells, z: np.ndarray, K: int) -> np.ndarray:
    """Shares of the levels of each member in each cluster [level, cluster]; 0 where a cluster has no labels of it."""
    counts = count_table(cells._replace(powers=np.ones_like(cells.powers)), z, K)
    sums = level_sums(counts, cells.starts)[cells.member_of_level]
    return np.divide(counts, sums, out=np.zeros_like(counts), where=sums > 0)


def assign(cells: Cells, shares: np.ndarray, z: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The nearest centre of each object (or the one given) and the squared distance to it."""
    # |e_l - c|^2 = 1 - 2 c_l + |c|^2
    squares = level_sums(shares**2, cells.starts)[cells.member_of_level]
    table = cells.powers[cells.member_of_level, None] * (1.0 - 2.0 * shares + squares)
    given = z is not None
    labels = z.astype(np.int64) if z is not None else np.zeros(len(cells.positions), dtype=np.int64)
    errors = np.zeros(len(labels))
    nearest_rows(cells.positions, np.ascontiguousarray(table), given, labels, errors)
    return labels, errors


@kernel
def nearest_rows(positions, table, given, labels, errors):
    """The cluster with the least sum of table entries over the labels of each row; the first of equals."""
    N, M = positions.shape
    K = table.shape[1]
    total = np.empty(K)
    for i in range(N):
        total[:] = 0.0
        for m in range(M):
            l = positions[i, m]
            if l >= 0:
                for k in range(K):
                    total[k] += table[l, k]
        best = labels[i] if given else 0
        if not given:
            for k in range(1, K):
                if total[k] < total[best] - 1e-12:  # sums in another order may differ in the last digit
                    best = k
        labels[i] = best
        errors[i] = total[best]


def _fill_empty(z: np.ndarray, errors: np.ndarray, K: int) -> np.ndarray:
    """A cluster that lost all objects takes the worst placed one, if it is misplaced at all."""
    sizes = np.bincount(z, minlength=K)
    empty = np.flatnonzero(sizes == 0)
    if not len(empty):
        return z
    z = z.copy()
    order = iter(np.argsort(-errors, kind="stable"))
    for k in empty:
        worst = next((i for i in order if sizes[z[i]] > 1 and errors[i] > 1e-9), None)
        if worst is None:
            break
        sizes[z[worst]] -= 1
        z[worst], sizes[k] = k, 1
    return z


def mean_share(cells: Cells, shares: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Weighted mean share of an object's labels in its cluster; 1 where it has none."""
    out, total = np.zeros(len(z)), np.zeros(len(z))
    for m, power in enumerate(cells.powers):
        seen = np.flatnonzero(cells.positions[:, m] >= 0)
        out[seen] += power * shares[cells.positions[seen, m], z[seen]]
        total[seen] += power
    return np.where(total > 0, out / np.maximum(total, 1e-300), 1.0)


def utility(cells: Cells, z: np.ndarray, K: int) -> np.ndarray:
    """Category utility of the clustering for each member, over the objects that the member saw.

    Examples
    --------
    >>> from partita.consensus.label_layout import lay_out
    >>> cells = lay_out(np.array([[0, 0], [0, 1], [1, 0], [1, 1]]), np.array([2, 2]), np.ones(4), np.ones(2))
    >>> utility(cells, np.array([0, 0, 1, 1]), 2)
    array([0.5, 0. ])
    """
    counts = count_table(cells._replace(powers=np.ones_like(cells.powers)), z, K)
    sums = level_sums(counts, cells.starts)  # [member, cluster]
    seen = np.maximum(sums.sum(axis=1), 1e-300)
    within = np.divide(level_sums(counts**2, cells.starts), sums, out=np.zeros_like(sums), where=sums > 0)
    alone = level_sums(counts.sum(axis=1, keepdims=True) ** 2, cells.starts)[:, 0]
    return within.sum(axis=1) / seen - alone / seen**2
