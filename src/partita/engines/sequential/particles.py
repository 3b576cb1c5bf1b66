"""The particle filter: a posterior over partitions that is updated as objects arrive.

Each particle is a partition of the objects seen so far. A new object has one child per particle and cluster that it
may join, and a resampling that keeps all expectations reduces their number again
(:mod:`partita.engines.sequential.population`).

Good for: streams, first results after one pass, and an unbiased estimate of the evidence. Not for: the posterior of a
long table. Early choices are never revised and soon all particles share them, so run Gibbs sweeps afterwards where the
posterior matters. Fearnhead (2004), Statistics and Computing 14; Ulker, Gunsel and Cemgil (2010), AISTATS.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from partita.engines.sequential.population import (
    Population,
    grow,
    keep,
    populate,
    trace_labels,
    widen,
)
from partita.families import n_rows
from partita.families.registry import Block
from partita.families.rows import refresh_clusters
from partita.partitions import log_new_seat, log_seat


class Resample(NamedTuple):
    """Optimal resampling: at most ``n_particles`` children live, and every expected weight stays what it was.

    Of all such draws it loses the least in squared error: children above a threshold keep their weights, the others
    are thinned to equal weights, and none is ever held twice. Fearnhead and Clifford (2003), JRSS B 65.
    """

    n_particles: int


class ParticleFilter(NamedTuple):
    """The posterior after some objects, as weighted partitions; ``update`` gives the next one."""

    families: tuple[Any, ...]
    prior: Any
    rule: Resample
    seed: int
    population: Population
    n_seen: int
    log_evidence: float  # log of an unbiased estimate of the probability of all objects seen
    parent: tuple[np.ndarray, ...] | None  # of each particle after each object, in batches; None: not kept
    seat: tuple[np.ndarray, ...] | None
    forgotten: float = 0.0  # weight of the objects seen that the clusters no longer hold


class Components(NamedTuple):
    """Clusters with their weights: what :func:`partita.engines.passes.rows.predictive` scores new objects with.

    The empty cluster comes last; its weight is the probability that the next object opens a cluster.
    """

    log_weights: np.ndarray
    n: np.ndarray
    S: tuple[np.ndarray, ...]  # statistics of each block, [statistic, cluster]


@keep.register(Resample)
def _(rule, lq, key, M, u, kept, log_w):
    P = log_w.shape[0]
    top, total = -np.inf, 0.0
    for j in range(M):
        top = max(top, lq[j])
    if (
        top == -np.inf
    ):  # the object is impossible everywhere: the evidence says so, the particles stay as they are
        for j in range(min(M, P)):
            kept[j], log_w[j] = j, -math.log(min(M, P))
        return min(M, P), top
    q = np.exp(lq[:M] - top)
    total = q.sum()
    # the threshold 1 / kappa with sum(min(kappa q, 1)) = P: it only ever falls, so this ends after a few rounds
    n_safe, spacing = 0, 0.0
    if np.count_nonzero(q) > P:
        spacing = total / P
        while True:
            safe, tail = 0, 0.0
            for j in range(M):
                if q[j] >= spacing:
                    safe += 1
                else:
                    tail += q[j]
            if safe == n_safe or safe >= P or tail <= 0.0:
                break
            n_safe, spacing = safe, tail / (P - safe)
    m, passed, pointer = 0, 0.0, u * spacing
    for j in range(M):
        if q[j] > 0.0 and q[j] >= spacing:
            kept[m], log_w[m] = j, math.log(q[j] / total)
            m += 1
        elif q[j] > 0.0:
            passed += q[j]
            if pointer < passed and m < P:
                kept[m], log_w[m] = j, math.log(spacing / total)
                m += 1
                pointer += spacing
    return m, top + math.log(total)


# ---- the particle filter -------------------------------------------------------------------------------------


def init(
    families: Sequence[Any], prior: Any, n_particles: int = 100, *, seed: int = 0, keep_labels: bool = True
) -> ParticleFilter:
    """A filter that has seen nothing.

    Parameters
    ----------
    families : sequence
        The family of each block of columns.
    prior : exchangeable prior
        It need not be bound to a total: each object meets the prior of as many objects as there are by then.
    n_particles : int
        Number of partitions that are kept. No two are ever equal, so few are needed.
    seed : int
        The t-th object to come meets the t-th uniform of this seed, in whatever batches it comes.
    keep_labels : bool
        Whether to keep the labels. Costs 8 bytes per particle and object; without it the memory is that of
        the clusters' statistics alone, however long the stream.

    Examples
    --------
    >>> from partita.dispatch import interpreted
    >>> from partita.families import Bernoulli, Block
    >>> from partita.partitions import DirichletProcess
    >>> state = init([Bernoulli.default(1)], DirichletProcess(1.0), n_particles=5)
    >>> block = Block(Bernoulli.default(1), np.array([[1], [1], [0]]), ("a",))
    >>> with interpreted():  # three objects are not worth the compiler
    ...     state = update(state, [block])
    >>> round(state.log_evidence, 4)  # of all five partitions of three objects: exact
    -2.3671
    """
    if n_particles < 1:
        raise ValueError(f"n_particles is {n_particles}: take at least 1")
    population = populate(families, n_particles)
    history = () if keep_labels else None
    rule = Resample(int(n_particles))
    return ParticleFilter(tuple(families), prior, rule, int(seed), population, 0, 0.0, history, history)


def resume(
    families: Sequence[Any],
    prior: Any,
    n: np.ndarray,
    S: Sequence[np.ndarray],
    n_particles: int = 100,
    *,
    seed: int = 0,
) -> ParticleFilter:
    """A filter that continues from one clustering, given by the sizes and statistics of its clusters.

    Labels of the objects to come are not kept; the clusters that were there keep their places 0, 1, ...

    Examples
    --------
    >>> from partita.dispatch import interpreted
    >>> from partita.families import Bernoulli, Block
    >>> from partita.partitions import DirichletProcess
    >>> with interpreted():
    ...     state = resume(
    ...         [Bernoulli.default(1)], DirichletProcess(1.0), np.array([3.0]), [np.array([[3.0], [0.0]])]
    ...     )
    ...     state = update(state, [Block(Bernoulli.default(1), np.array([[0], [1]]), ("a",))])
    >>> state.n_seen, int(clusters(state).n[0]) >= 3
    (5, True)
    """
    state = init(families, prior, n_particles, seed=seed, keep_labels=False)
    pool, K = state.population, len(n)
    while len(pool.n) < K + 2 or pool.columns.shape[1] < K + 1:
        pool = widen(pool)
    for block, known in zip(pool.blocks, S, strict=True):
        block.S[:, 1 : K + 1] = known
        refresh_clusters(block.family, block.S, block.C, K + 1)
    pool.n[1 : K + 1] = n
    pool.columns[0, :K] = np.arange(1, K + 1)
    pool.K[0] = K
    pool.counts[:] = 1, K + 1, K + 1, K
    return state._replace(population=pool, n_seen=round(float(np.sum(n))))


def uniforms(seed: int, start: int, stop: int) -> np.ndarray:
    """Uniforms number ``start`` to ``stop`` of a seed, by a counter-based generator.

    Examples
    --------
    >>> bool((uniforms(3, 0, 10)[6:] == uniforms(3, 6, 10)).all())
    True
    """
    bits = np.random.Philox(key=seed).advance(start // 4)  # it makes four numbers at a time
    return np.random.Generator(bits).random(start % 4 + stop - start)[start % 4 :]


def update(
    state: ParticleFilter,
    blocks: Sequence[Block],
    rows: np.ndarray | None = None,
    u: np.ndarray | None = None,
) -> ParticleFilter:
    """The filter after the objects ``rows`` (by default all) of a batch, in that order.

    Parameters
    ----------
    state : ParticleFilter
        Is not changed.
    blocks : sequence of Block
        The data of the batch; the families are the filter's own.
    rows : array of int, optional
        Which objects, and in which order.
    u : array of float, optional
        One uniform per object, in place of those of the seed.
    """
    rows = np.arange(n_rows(blocks[0].data)) if rows is None else np.asarray(rows)
    stop = state.n_seen + len(rows)
    u = uniforms(state.seed, state.n_seen, stop) if u is None else np.asarray(u, float)
    population, parent, seat, gains = grow(
        state.population, state.rule, state.prior, blocks, rows, u, np.zeros(0, np.int64), _n_held(state)
    )
    new = state._replace(
        population=population, n_seen=stop, log_evidence=state.log_evidence + float(gains.sum())
    )
    if state.parent is None or state.seat is None:
        return new
    return new._replace(parent=(*state.parent, parent), seat=(*state.seat, seat))


def forget(state: ParticleFilter, share: float) -> ParticleFilter:
    """The filter in which the objects seen count for less: ``share`` of their weight is lost, in all clusters alike.

    Clusters keep their places, and the particles their weights.

    Examples
    --------
    >>> from partita.dispatch import interpreted
    >>> from partita.families import Bernoulli
    >>> from partita.partitions import DirichletProcess
    >>> with interpreted():
    ...     state = resume(
    ...         [Bernoulli.default(1)], DirichletProcess(1.0), np.array([8.0]), [np.array([[2.0], [6.0]])]
    ...     )
    ...     clusters(forget(state, 0.25)).n
    array([6., 0.])
    """
    if not 0.0 <= share <= 1.0:
        raise ValueError(f"the share to forget is {share:g}: it is between 0 (nothing) and 1 (everything)")
    if share == 0.0:
        return state
    pool = state.population
    blocks = tuple(block._replace(S=block.S * (1.0 - share), C=block.C.copy()) for block in pool.blocks)
    for block in blocks:
        refresh_clusters(block.family, block.S, block.C, pool.counts[1])
    lost = share * (state.n_seen - state.forgotten)
    pool = pool._replace(blocks=blocks, n=pool.n * (1.0 - share))
    return state._replace(population=pool, forgotten=state.forgotten + lost)


def _n_held(state: ParticleFilter) -> int:
    return round(state.n_seen - state.forgotten)


def weights(state: ParticleFilter) -> np.ndarray:
    """Posterior probability of each particle."""
    w = np.exp(state.population.log_w[: state.population.counts[0]])
    return w / w.sum()


def best_particle(state: ParticleFilter) -> int:
    """The particle of the largest weight (the first of equals)."""
    return int(np.argmax(weights(state)))


def n_clusters_posterior(state: ParticleFilter) -> np.ndarray:
    """Probability of each number of clusters: entry K is P(K clusters | objects seen)."""
    w = weights(state)
    return np.bincount(state.population.K[: len(w)], weights=w)


def draws(state: ParticleFilter) -> tuple[np.ndarray, np.ndarray]:
    """Labels [particle, object] of the objects in the order in which they came, and the particles' weights."""
    w = weights(state)
    if state.parent is None or state.seat is None:
        raise ValueError("the labels were not kept: start the filter with keep_labels=True")
    if not state.parent:
        return np.zeros((1, 0), np.int64), w
    return trace_labels(np.concatenate(state.parent), np.concatenate(state.seat), np.arange(len(w))), w


def labels(state: ParticleFilter) -> np.ndarray:
    """Labels of the best particle, in the order in which the objects came."""
    return draws(state)[0][best_particle(state)]


def seat_weights(state: ParticleFilter, p: int) -> np.ndarray:
    """Probability of each seat of the next object in particle p; the last one is a new cluster."""
    population = state.population
    sizes = population.n[population.columns[p, : population.K[p]]]
    log_mass = [log_seat(state.prior, size) for size in sizes]
    log_mass.append(log_new_seat(state.prior, float(_n_held(state) + 1), len(sizes)))
    mass = np.exp(np.array(log_mass))
    return mass / mass.sum()


def clusters(state: ParticleFilter, p: int | None = None) -> Components:
    """Clusters of one particle (by default the best), the empty one last."""
    p, pool = best_particle(state) if p is None else p, state.population
    share = np.zeros(len(pool.n))
    at = np.append(pool.columns[p, : pool.K[p]], 0)
    share[at] = seat_weights(state, p)
    return _components(pool, share, at)


def mixture(state: ParticleFilter) -> Components:
    """The predictive density of the next object, averaged over the particles; the empty cluster last.

    A cluster that many particles hold is one component with their weights added up.
    """
    pool, share = state.population, np.zeros(len(state.population.n))
    for p, w in enumerate(weights(state)):
        share[np.append(pool.columns[p, : pool.K[p]], 0)] += w * seat_weights(state, p)
    return _components(pool, share, np.append(np.flatnonzero(share[1:]) + 1, 0))


def _components(pool: Population, share: np.ndarray, at: np.ndarray) -> Components:
    S = tuple(np.ascontiguousarray(block.S[:, at]) for block in pool.blocks)
    with np.errstate(divide="ignore"):
        return Components(np.log(share[at]), pool.n[at], S)
