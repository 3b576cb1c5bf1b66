"""k-means in the one-hot space of a label matrix, which maximizes the quadratic mutual information with the members.

With one-hot columns less their means, the squared error of a clustering is a constant minus N times the sum over the
members of the category utility ``sum_r p(r) sum_l p(l | r)^2 - sum_l p(l)^2``, which is half the quadratic mutual
information of clustering and member (Mirkin 2001; Topchy, Jain and Punch 2003). Subtracting the means does not change
distances, so it is not done. A missing label is left out of the distance and of the mean of its member.

Good for a quick consensus with a known number of clusters. Like k-means in general it prefers clusters of equal size.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np

from partita.consensus.label_layout import LabelLayout, count_table, level_sums, nearest_seed
from partita.dispatch import kernel
from partita.engines.checkpoints import open_checkpoint
from partita.engines.run import Control, Run, iterate_from_checkpoint, run_restarts
from partita.execution import Serial

EQUAL_ERRORS = 1e-12  # relative difference of two errors that are the same number
MIN_MISPLACED = 1e-9  # squared distance below which an object is at its center


class MeansResult(NamedTuple):
    """The best start of k-means."""

    labels: np.ndarray  # [object]
    error: float  # weighted squared error over the labels that are present
    n_iter: int
    reason: str  # why it ended, as in LoopResult

    @property
    def converged(self) -> bool:
        """Whether no object changed its cluster in the last iteration."""
        return self.reason == "converged"


class MeansState(NamedTuple):
    """One start of k-means after some iterations."""

    labels: np.ndarray
    objective: float  # minus the squared error
    change: float  # objects that changed their cluster
    n_iter: int


def best_means(
    cells: LabelLayout,
    K: int,
    rng: np.random.Generator,
    *,
    n_init: int,
    max_iter: int,
    control: Control | None = None,
    folder: Any = None,
) -> MeansResult:
    """The start with the least squared error, from seeds by k-means++ on label agreement.

    With ``folder`` each start keeps its state there.
    """
    control = Control() if control is None else control
    rngs = rng.spawn(n_init)

    def start(number: int) -> Run:
        return _run_start(cells, K, number, rngs[number], max_iter, control, folder)

    runs = run_restarts(start, n_init, control=control, executor=Serial())
    best = runs[0]
    for run in runs[1:]:
        if -run.state.objective < -best.state.objective * (1.0 - EQUAL_ERRORS):
            best = run
    z = best.state.labels
    errors = assign(cells, centers(cells, z, K), z)[1]
    return MeansResult(z, float(errors @ cells.weights), best.state.n_iter, control.reason or best.reason)


def _run_start(
    cells: LabelLayout,
    K: int,
    number: int,
    rng: np.random.Generator,
    max_iter: int,
    control: Control,
    folder: Any,
) -> Run:
    about = (*cells, K, max_iter, deepcopy(rng).integers(2**62))
    return iterate_from_checkpoint(
        _lloyd_step(cells, K), lambda: MeansState(nearest_seed(cells, K, rng), -np.inf, np.inf, 0),
        max_iter=max_iter, n_clusters=lambda state: len(np.unique(state.labels)), number=number, control=control,
        checkpoint=open_checkpoint(folder, number, about, "start"),
    )  # fmt: skip


def _lloyd_step(cells: LabelLayout, K: int) -> Callable[[MeansState], MeansState]:
    def step(state: MeansState) -> MeansState:
        labels, errors = assign(cells, centers(cells, state.labels, K))
        labels = _fill_empty(labels, errors * cells.weights, K)
        moved = float(np.count_nonzero(labels != state.labels))
        return MeansState(labels, -float(errors @ cells.weights), moved, state.n_iter + 1)

    return step


def centers(cells: LabelLayout, z: np.ndarray, K: int) -> np.ndarray:
    """Shares of the levels of each member in each cluster [level, cluster]; 0 where a cluster has no labels of it."""
    counts = count_table(cells._replace(powers=np.ones_like(cells.powers)), z, K)
    sums = level_sums(counts, cells.starts)[cells.member_of_level]
    return np.divide(counts, sums, out=np.zeros_like(counts), where=sums > 0)


def assign(
    cells: LabelLayout, shares: np.ndarray, z: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The nearest center of each object (or the given one) and the squared distance to it."""
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
    """The cluster with the least sum of table entries over the labels of each row; the first of equal ones."""
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
    """Assign to each empty cluster the object with the largest error, if that error is not zero."""
    sizes = np.bincount(z, minlength=K)
    empty = np.flatnonzero(sizes == 0)
    if not len(empty):
        return z
    z = z.copy()
    order = iter(np.argsort(-errors, kind="stable"))
    for k in empty:
        worst = next((i for i in order if sizes[z[i]] > 1 and errors[i] > MIN_MISPLACED), None)
        if worst is None:
            break
        sizes[z[worst]] -= 1
        z[worst], sizes[k] = k, 1
    return z


def utility(cells: LabelLayout, z: np.ndarray, K: int) -> np.ndarray:
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
    return within.sum(axis=1) / seen - alone / seen / seen
