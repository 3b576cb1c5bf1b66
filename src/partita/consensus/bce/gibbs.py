"""Collapsed Gibbs sampling for the admixture of labels: memberships and level distributions integrated out.

Each latent cluster is redrawn from ``p(z_im = k | rest) ~ (alpha_k + n_ik) (eta + n_kmy) / (J_m eta + n_km)``, where
the counts exclude the label itself. The sampler runs on all rows, as equal rows may have different latent clusters.
Weights, of members and of objects, are whole numbers: a member of weight 2 gives two labels with their own latent
clusters, and an object of weight 2 is two objects.

Good for memberships with their uncertainty for some thousands of objects. Labels of clusters may be exchanged between
draws: tables are aligned to the mean of those before them by optimal assignment. Griffiths and Steyvers (2004).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import gammaln

from partita.consensus.bce.concentration import log_memberships, walk_alpha
from partita.consensus.label_layout import LabelLayout, level_sums, nearest_seed
from partita.dispatch import kernel
from partita.engines.run import Sampler
from partita.trace import Trace, label_dtype

CHUNK_ROWS = 2**14  # rows whose uniforms are drawn at once


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
    """Sums over the draws of a chain, clusters aligned; one array, so that a draw is added as a whole or not at all."""

    sums: np.ndarray  # [row, cluster]: memberships of the objects, beta, table, alpha, number of draws
    n_objects: int

    @property
    def n_levels(self) -> int:
        """Levels of all members."""
        return (len(self.sums) - self.n_objects - 2) // 2

    @property
    def memberships(self) -> np.ndarray:
        """Of each object, [object, cluster]."""
        return self.sums[: self.n_objects]

    @property
    def beta(self) -> np.ndarray:
        """Distributions of the levels, [level, cluster]."""
        return self.sums[self.n_objects : self.n_objects + self.n_levels]

    @property
    def table(self) -> np.ndarray:
        """Counts of the levels, [level, cluster], to which draws are aligned."""
        return self.sums[self.n_objects + self.n_levels : -2]

    @property
    def alpha(self) -> np.ndarray:
        """Of each cluster."""
        return self.sums[-2]

    @property
    def n_draws(self) -> int:
        """Number of draws."""
        return int(self.sums[-1, 0])


class PooledChain(NamedTuple):
    """A chain with the sums over its draws and its random numbers."""

    chain: CellsChain
    pool: Pool
    rng: np.random.Generator


def admixture_sampler(
    cells: LabelLayout,
    members: np.ndarray,
    alpha: np.ndarray,
    smoothing: float,
    rng: np.random.Generator,
    *,
    learn_alpha: str | bool,
    number: int = 0,
) -> Sampler:
    """The sampler for the driver; a draw is a trace of length one, and memberships are summed in the state."""

    def start() -> PooledChain:
        chain = init(cells, members, alpha, smoothing, rng)
        return PooledChain(chain, new_pool(len(cells.weights), int(cells.starts[-1]), len(alpha)), rng)

    def labels(state: PooledChain) -> PooledChain:
        return state._replace(chain=sweep(state.chain, state.rng))

    def concentration(state: PooledChain) -> PooledChain:
        if not learn_alpha:
            return state
        chain, symmetric = state.chain, learn_alpha == "symmetric"
        return state._replace(
            chain=chain._replace(alpha=walk_alpha(chain.alpha, chain.counts, state.rng, symmetric=symmetric))
        )

    def draw(state: PooledChain, value: float) -> Trace:
        return _trace(state.chain, add_draw(state.pool, state.chain), value, number)

    return Sampler(
        start=start,
        steps=[labels, concentration],
        log_joint=lambda state: log_joint(state.chain),
        draw=draw,
        n_clusters=lambda state: len(state.chain.alpha),
        given=(cells.positions, members, cells.starts),
    )


def _trace(chain: CellsChain, memberships: np.ndarray, value: float, number: int) -> Trace:
    """A draw: every object in the cluster of its largest expected membership."""
    z = memberships.argmax(axis=1)
    return Trace(
        z.astype(label_dtype(len(chain.alpha)))[None],
        np.array([value]),
        np.array([len(np.unique(z))]),
        np.array([float(chain.alpha.sum())]),
        np.array([np.nan]),
        np.array([number]),
    )


def join_pools(pools: Sequence[Pool]) -> Pool:
    """The pools of all chains as one, clusters aligned to those of the first."""
    total = pools[0]._replace(sums=pools[0].sums.copy())
    for pool in pools[1:]:
        order = linear_sum_assignment(total.table.T @ pool.table, maximize=True)[1]
        total.sums[...] += pool.sums[:, order]
    return total


def mean_over_copies(memberships: np.ndarray, row_of: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Memberships of the rows from those of their replicates; ``row_of`` is the row of each replicate."""
    if len(row_of) == len(weights):
        return memberships
    first = np.searchsorted(row_of, np.arange(len(weights)))
    return np.add.reduceat(memberships, first, axis=0) / weights[:, None]


def copies(cells: LabelLayout) -> tuple[LabelLayout, np.ndarray, np.ndarray]:
    """Objects and labels repeated by their whole weights; with the row of each object and the member of each label.

    Examples
    --------
    >>> cells = LabelLayout(
    ...     np.zeros((2, 1), np.int32), np.array([0, 2]), np.array([2.0]), np.array([1.0, 2.0])
    ... )
    >>> repeated, rows, members = copies(cells)
    >>> repeated.positions.shape, rows, members
    ((3, 2), array([0, 1, 1]), array([0, 0]))
    """
    check_counts(cells)
    rows = np.repeat(np.arange(len(cells.weights)), cells.weights.astype(np.int64))
    members = np.repeat(np.arange(len(cells.powers)), cells.powers.astype(np.int64))
    positions = np.ascontiguousarray(cells.positions[rows][:, members])
    return LabelLayout(positions, cells.starts, np.ones(len(members)), np.ones(len(rows))), rows, members


def check_counts(cells: LabelLayout) -> None:
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
    cells: LabelLayout, members: np.ndarray, alpha: np.ndarray, smoothing: float, rng: np.random.Generator
) -> CellsChain:
    """All labels of an object start in the cluster of its nearest seed."""
    start = nearest_seed(cells, len(alpha), rng)
    z = np.where(cells.positions >= 0, start[:, None], -1).astype(np.int16)
    return from_latent(cells, members, alpha, smoothing, z)


def from_latent(
    cells: LabelLayout, members: np.ndarray, alpha: np.ndarray, smoothing: float, z: np.ndarray
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
    """One iteration: a sweep over all labels, then the concentration."""
    chain = sweep(chain, rng)
    if not learn_alpha:
        return chain
    alpha = walk_alpha(chain.alpha, chain.counts, rng, symmetric=learn_alpha == "symmetric")
    return chain._replace(alpha=alpha)


def sweep(chain: CellsChain, rng: np.random.Generator) -> CellsChain:
    """One sweep over all labels, in place."""
    N, M = chain.positions.shape
    chain.counts[:-1] = 0.0
    prior_sums = np.diff(chain.starts) * chain.smoothing
    for lo in range(0, N, CHUNK_ROWS):
        # a stream in the order of the rows: the size of the chunks makes no difference
        u = rng.random((min(CHUNK_ROWS, N - lo), M))
        sweep_labels(
            chain.positions[lo : lo + CHUNK_ROWS], chain.members, chain.alpha, chain.smoothing, prior_sums,
            chain.z[lo : lo + CHUNK_ROWS], chain.table, chain.sums, chain.counts, u,
        )  # fmt: skip
    return chain


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
    return Pool(np.zeros((n_objects + 2 * n_levels + 2, K)), n_objects)


def add_draw(pool: Pool, chain: CellsChain) -> np.ndarray:
    """Add the expected memberships and level distributions given this draw, clusters aligned to the draws before.

    Returns the memberships of this draw.
    """
    order = np.arange(len(chain.alpha))
    if pool.n_draws:
        order = linear_sum_assignment(pool.table.T @ chain.table, maximize=True)[1]
    names = np.empty_like(order)
    names[order] = np.arange(len(order))
    alpha, memberships = chain.alpha[order], np.zeros_like(pool.memberships)
    add_memberships(chain.positions, chain.z, alpha, names, memberships)
    means = chain.table + chain.smoothing
    means /= np.repeat(level_sums(means, chain.starts), np.diff(chain.starts), axis=0)
    rows = (memberships, means[:, order], chain.table[:, order], alpha[None], np.ones((1, len(alpha))))
    pool.sums[...] += np.concatenate(rows)
    return memberships


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
