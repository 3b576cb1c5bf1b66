"""Collapsed Gibbs sampling for the admixture of label cells: memberships and level distributions integrated out.

Each latent cluster is redrawn from
``p(z_im = k | rest) ~ (alpha_k + n_ik) (eta + n_kmy) / (J_m eta + n_km)``, counts without the label itself. It runs on
rows: equal rows may have different latent clusters. Weights, of members and of objects, are whole numbers: a member
of weight 2 is two labels with their own latent clusters, an object of weight 2 two objects.

Good for honest memberships of some thousands of objects. Names of clusters may change between draws: tables are
aligned to the mean of those before them by optimal assignment. Griffiths and Steyvers (2004).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import gammaln

from partita.consensus.bce.concentration import log_memberships, walk_alpha
from partita.consensus.label_layout import Cells, level_sums, nearest_seed
from partita.dispatch import kernel

__all__ = [
    "CellsChain",
    "Pool",
    "add_draw",
    "check_counts",
    "copies",
    "init",
    "log_joint",
    "new_pool",
    "run_chain",
    "run_chains",
    "step",
]

BLOCK = 2**14  # rows whose uniforms are drawn at once


class CellsChain(NamedTuple):
    """The state of a chain; the counts follow from z."""

    positions: np.ndarray  # [object, label], int32, -1 where there is none
    members: np.ndarray  # [label], the member that a label is of
    starts: np.ndarray  # [member + 1], where the levels of each member begin
    smoothing: float
    alpha: np.ndarray  # [cluster]
    z: np.ndarray  # [object, label], int16, -1 where there is no label
    table: np.ndarray  # [level, cluster], counts
    sums: np.ndarray  # [member, cluster], counts
    counts: np.ndarray  # [cluster or all, labels], objects with so many labels in the cluster


class Pool(NamedTuple):
    """Sums over draws, clusters aligned."""

    memberships: np.ndarray  # [object, cluster]
    beta: np.ndarray  # [level, cluster]
    alpha: np.ndarray  # [cluster]
    table: np.ndarray  # [level, cluster], what draws are aligned to
    n_draws: int


def run_chains(
    cells: Cells,
    alpha: np.ndarray,
    smoothing: float,
    rngs: Sequence[np.random.Generator],
    *,
    n_draws: int,
    watch: Callable[[int, int, float], bool | None],
    **options: Any,
) -> tuple[Pool, list[np.ndarray]]:
    """Chains, one for each generator, pooled; memberships are those of the rows of ``cells``.

    ``watch(chain, iteration, log joint)`` is called after each iteration; where it returns True, no chain goes on.
    Also returns the log joint of the draws of each chain; ``options`` are those of ``run_chain``.
    """
    objects, row_of, members = copies(cells)
    pool = new_pool(len(row_of), int(cells.starts[-1]), len(alpha))
    traces: list[np.ndarray] = []
    for number, rng in enumerate(rngs):
        chain = init(objects, members, alpha, smoothing, rng)
        pool, trace = run_chain(chain, pool, rng, n_draws=n_draws, watch=partial(watch, number), **options)
        traces.append(trace)
        if len(trace) < n_draws:
            break
    if len(row_of) > len(cells.weights):
        first = np.searchsorted(row_of, np.arange(len(cells.weights)))
        mean = np.add.reduceat(pool.memberships, first, axis=0) / cells.weights[:, None]
        pool = pool._replace(memberships=mean)
    return pool, traces


def copies(cells: Cells) -> tuple[Cells, np.ndarray, np.ndarray]:
    """Objects and labels repeated by their whole weights; with the row of each object and the member of each label.

    Examples
    --------
    >>> cells = Cells(np.zeros((2, 1), np.int32), np.array([0, 2]), np.array([2.0]), np.array([1.0, 2.0]))
    >>> repeated, rows, members = copies(cells)
    >>> repeated.positions.shape, rows, members
    ((3, 2), array([0, 1, 1]), array([0, 0]))
    """
    check_counts(cells)
    rows = np.repeat(np.arange(len(cells.weights)), cells.weights.astype(np.int64))
    members = np.repeat(np.arange(len(cells.powers)), cells.powers.astype(np.int64))
    positions = np.ascontiguousarray(cells.positions[rows][:, members])
    return Cells(positions, cells.starts, np.ones(len(members)), np.ones(len(rows))), rows, members


def check_counts(cells: Cells) -> None:
    """Chains count objects and labels: weights must be whole numbers."""
    for what, remedy, values in (
        ("sample_weight", "inference='vb' takes any weight", cells.weights),
        ("member_weight", "inference='vb' takes any weight, and soft members", cells.powers),
    ):
        wrong = np.flatnonzero(values != np.round(values))
        if len(wrong):
            raise ValueError(
                f"{what} has {values[wrong[0]]:g} at position {wrong[0]}: chains count objects and labels, so give "
                f"whole numbers ({remedy})"
            )


def init(
    cells: Cells, members: np.ndarray, alpha: np.ndarray, smoothing: float, rng: np.random.Generator
) -> CellsChain:
    """All labels of an object start in the cluster of its nearest seed."""
    start = nearest_seed(cells, len(alpha), rng)
    z = np.where(cells.positions >= 0, start[:, None], -1).astype(np.int16)
    return from_latent(cells, members, alpha, smoothing, z)


def from_latent(
    cells: Cells, members: np.ndarray, alpha: np.ndarray, smoothing: float, z: np.ndarray
) -> CellsChain:
    """The chain at given latent clusters."""
    K = len(alpha)
    seen = cells.positions >= 0
    table = np.zeros((int(cells.starts[-1]), K))
    np.add.at(table, (cells.positions[seen], z[seen]), 1.0)
    counts = np.zeros((K + 1, z.shape[1] + 1))
    for k in range(K + 1):
        in_cluster = (z == k if k < K else seen).sum(axis=1)
        counts[k] = np.bincount(in_cluster, minlength=z.shape[1] + 1)
    sums = level_sums(table, cells.starts)
    return CellsChain(
        cells.positions, members, cells.starts, smoothing, np.array(alpha, float), z, table, sums, counts
    )


def step(chain: CellsChain, rng: np.random.Generator, *, learn_alpha: str | bool = False) -> CellsChain:
    """One sweep over all labels (in place), then the concentration."""
    N, M = chain.positions.shape
    chain.counts[:-1] = 0.0
    prior_sums = np.diff(chain.starts) * chain.smoothing
    for lo in range(0, N, BLOCK):
        u = rng.random(
            (min(BLOCK, N - lo), M)
        )  # a stream in the order of the rows: blocks make no difference
        sweep_labels(
            chain.positions[lo : lo + BLOCK], chain.members, chain.alpha, chain.smoothing, prior_sums,
            chain.z[lo : lo + BLOCK], chain.table, chain.sums, chain.counts, u,
        )  # fmt: skip
    if not learn_alpha:
        return chain
    alpha = walk_alpha(chain.alpha, chain.counts, rng, symmetric=learn_alpha == "symmetric")
    return chain._replace(alpha=alpha)


@kernel
def sweep_labels(positions, members, alpha, smoothing, prior_sums, z, table, sums, counts, u):
    """Redraw the latent cluster of every label in turn, from one uniform each."""
    N, M = positions.shape
    K = len(alpha)
    n, p = np.empty(K), np.empty(K)
    for i in range(N):
        n[:] = 0.0
        for m in range(M):
            if positions[i, m] >= 0:
                n[z[i, m]] += 1.0
        for m in range(M):
            l = positions[i, m]
            if l < 0:
                continue
            e = members[m]
            old = z[i, m]
            n[old] -= 1.0
            table[l, old] -= 1.0
            sums[e, old] -= 1.0
            for k in range(K):
                p[k] = (alpha[k] + n[k]) * (smoothing + table[l, k]) / (prior_sums[e] + sums[e, k])
            total = 0.0
            for k in range(K):
                total += p[k]
            left = u[i, m] * total
            new = 0
            while new < K - 1 and left >= p[new]:
                left -= p[new]
                new += 1
            z[i, m] = new
            n[new] += 1.0
            table[l, new] += 1.0
            sums[e, new] += 1.0
        for k in range(K):
            counts[k, int(n[k])] += 1.0


def log_joint(chain: CellsChain) -> float:
    """Log probability of labels and latent clusters, memberships and level distributions integrated out."""
    eta, n_levels = chain.smoothing, np.diff(chain.starts)[:, None]
    of_levels = (gammaln(chain.table + eta) - gammaln(eta)).sum()
    of_sums = (gammaln(n_levels * eta) - gammaln(n_levels * eta + chain.sums)).sum()
    return float(log_memberships(chain.alpha, chain.counts) + of_levels + of_sums)


def new_pool(n_objects: int, n_levels: int, K: int) -> Pool:
    """No draws yet."""
    table = np.zeros((n_levels, K))
    return Pool(np.zeros((n_objects, K)), table.copy(), np.zeros(K), table, 0)


def add_draw(pool: Pool, chain: CellsChain) -> Pool:
    """Add the expected memberships and level distributions given this draw, named as in the draws before."""
    order = np.arange(len(chain.alpha))
    if pool.n_draws:
        order = linear_sum_assignment(pool.table.T @ chain.table, maximize=True)[1]
    alpha = chain.alpha[order]
    names = np.empty_like(order)
    names[order] = np.arange(len(order))
    add_memberships(chain.positions, chain.z, alpha, names, pool.memberships)
    means = chain.table + chain.smoothing
    means /= np.repeat(level_sums(means, chain.starts), np.diff(chain.starts), axis=0)
    pool.beta[...] += means[:, order]
    pool.table[...] += chain.table[:, order]
    return pool._replace(alpha=pool.alpha + alpha, n_draws=pool.n_draws + 1)


@kernel
def add_memberships(positions, z, alpha, names, out):
    """Add the mean memberships of every object given its latent clusters."""
    N, M = positions.shape
    K = len(alpha)
    n = np.empty(K)
    for i in range(N):
        total = 0.0
        for k in range(K):
            n[k] = alpha[k]
            total += alpha[k]
        for m in range(M):
            if positions[i, m] >= 0:
                n[names[z[i, m]]] += 1.0
                total += 1.0
        for k in range(K):
            out[i, k] += n[k] / total


def run_chain(
    chain: CellsChain,
    pool: Pool,
    rng: np.random.Generator,
    *,
    n_draws: int,
    burn_in: int,
    thin: int,
    learn_alpha: str | bool,
    watch: Callable[[int, float], bool | None] | None = None,
) -> tuple[Pool, np.ndarray]:
    """Burn in, then add every ``thin``-th state to the pool; also the log joint of each draw.

    ``watch(iteration, log joint)`` is called after every iteration; returning True ends the chain.
    """
    trace: list[float] = []
    for iteration in range(burn_in + n_draws * thin):
        chain = step(chain, rng, learn_alpha=learn_alpha)
        kept = iteration >= burn_in and (iteration - burn_in + 1) % thin == 0
        if kept:
            pool = add_draw(pool, chain)
            trace.append(log_joint(chain))
        if watch is not None and watch(iteration + 1, trace[-1] if trace else math.nan):
            break
    return pool, np.array(trace)
