"""Gibbs sampling with auxiliary clusters: for families whose parameters cannot be integrated out.

Every cluster keeps explicit parameters. An object chooses among the existing clusters and m empty ones with parameters
drawn from the prior, which share the weight of a new cluster. The parameters of an object that was alone are the first
of these. After each sweep the parameters of all clusters are updated (:mod:`partita.engines.nonconjugate.parameters`).
A table may have both conjugate and other families.

Clusters have slots and names as in :mod:`partita.engines.gibbs.sweep`; the m slots after the last cluster hold the
auxiliary ones. Priors enter as two short tables of log weights, so that the sweep is compiled once for all of them.

Good for: likelihoods without a conjugate prior, any exchangeable prior. Not for: conjugate families alone (collapsed
chains mix better), or tables of many columns from a single starting cluster: a draw from the prior rarely fits an
object there, so start from a clustering of the data. Neal (2000), algorithm 8.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from partita.dispatch import generic, kernel, lacks
from partita.engines.gibbs import chain as chains
from partita.engines.gibbs import sweep as gibbs
from partita.engines.gibbs.chain import (
    HYPER_SPREAD,
    MOVES,
    STEP_SIZES,
    SWEEP,
    Algorithm,
    Schedule,
    generator,
    learn_likelihood,
    sample_prior,
)
from partita.engines.gibbs.drawing import draw_slot, whole_blocks
from partita.engines.gibbs.sweep import NO_LIMIT, Seating
from partita.engines.nonconjugate.parameters import (
    Walk,
    check_blocks,
    first_parameters,
    log_densities,
    statistics,
    tuned,
    update_parameters,
)
from partita.engines.passes.live import Live
from partita.engines.passes.rows import n_cache
from partita.erasure import ErasedBlocks, Ports
from partita.families.contract import (
    breadth,
    constrained,
    datum,
    draw,
    log_prior,
    n_columns,
    project,
    stats_start,
    unconstrained,
)
from partita.families.registry import Block
from partita.labels import canonical
from partita.partitions import bind, log_eppf, log_new_seat, log_seat

DRAWN_AT_ONCE = 2**18  # numbers of auxiliary parameters that are drawn ahead
WARM_UP = 50  # iterations in which the walks are tuned, where burn-in is not given
MAX_WALKED = 64  # hyper-parameters of one kind that are updated per iteration


class Placed(NamedTuple):
    """A block with the parameters of its clusters, one column per slot, and a supply of draws from its prior."""

    family: Any
    data: Any
    theta: np.ndarray
    fresh: np.ndarray  # [draw, parameter]


class ErasedPlaced(ErasedBlocks):
    """Blocks with the parameters of their clusters, erased."""


PORTS = Ports(ErasedPlaced, scores="theta")


class AuxiliaryChain(NamedTuple):
    """Where a chain stands."""

    seating: Seating
    prior: Any
    reference: tuple[Any, ...]  # the families that the hyperprior is centered on
    walks: tuple[Walk | None, ...]
    seed: int
    iteration: int
    accepted: dict[str, float]  # share of accepted steps of each walking block, last iteration
    rng: Any = None  # generator of the steps after the sweep, within an iteration


# ---- the cluster of one object -------------------------------------------------------------------------------


@PORTS.each("int int")
def swap_slots(block, a, b):
    """Exchange the parameters of two slots."""
    for e in range(block.theta.shape[0]):
        held = block.theta[e, a]
        block.theta[e, a] = block.theta[e, b]
        block.theta[e, b] = held


@PORTS.each("int int int")
def fill_slots(block, supply, first, stop):
    """Put draws ``supply``, ``supply + 1``, ... into the slots from first to stop."""
    for k in range(first, stop):
        for e in range(block.theta.shape[0]):
            block.theta[e, k] = block.fresh[supply + k - first, e]


@PORTS.each("int int floats")
def add_log_densities(block, i, H, out):
    """``out[:H] += log density of object i in each of the first H slots``."""
    densities = out[:H].reshape((1, H))
    for d in range(n_columns(block.family)):
        theta = block.theta[stats_start(block.family, d) : stats_start(block.family, d + 1), :H]
        project(block.family, d, theta, datum(block.family, block.data, i, d), densities, 0)


@generic(derived=True)
def leave(blocks, z, n, slot_of, name_of, K, i):
    """Take object i from its seat; returns how many auxiliary clusters there are now: its own, if it sat alone."""
    k = slot_of[z[i]]
    n[k] -= 1.0
    if n[k] > 0.0:
        return 0
    last = K[0] - 1
    slot_of[name_of[k]] = -1
    if k != last:
        swap_slots(blocks, last, k)
        n[k], n[last] = n[last], 0.0
        name_of[k] = name_of[last]
        slot_of[name_of[k]] = k
    K[0] = last
    return 1


@generic(derived=True)
def weigh(blocks, seat, new_seat, n, K, i, m, lp):
    """Log weights of all seats of object i into ``lp[:K + m]``; the m auxiliary clusters share a new seat."""
    for k in range(K[0]):
        lp[k] = seat[int(n[k])]
    for k in range(K[0], K[0] + m):
        lp[k] = new_seat[K[0]] - math.log(m)
    add_log_densities(blocks, i, K[0] + m, lp)


@generic(derived=True)
def sit(blocks, z, n, slot_of, name_of, K, i, k):
    """Object i takes a seat in slot k, which may be that of an auxiliary cluster."""
    if k >= K[0]:
        swap_slots(blocks, K[0], k)
        k, name = K[0], 0
        while slot_of[name] >= 0:
            name += 1
        slot_of[name], name_of[k] = k, name
        K[0] += 1
    z[i] = name_of[k]
    n[k] += 1.0


@kernel
def sweep(blocks, seat, new_seat, z, n, slot_of, name_of, K, rows, u, m, start):
    """Reseat objects ``rows[start:]``, each with its uniform and its m draws; returns where it ran out of slots."""
    room = whole_blocks(n.shape[0])
    lp, w = np.empty(room), np.empty(room)
    for j in range(start, rows.shape[0]):
        if K[0] + m > n.shape[0]:
            return j
        kept = leave(blocks, z, n, slot_of, name_of, K, rows[j])
        fill_slots(blocks, j * m + kept, K[0] + kept, K[0] + m)
        weigh(blocks, seat, new_seat, n, K, rows[j], m, lp)
        k = draw_slot(lp, K[0] + m, u[j], w, -1)
        sit(blocks, z, n, slot_of, name_of, K, rows[j], k)
    return rows.shape[0]


@kernel
def fill_tables(prior, N, seat, new_seat):
    """Log weights of a seat beside n others, and of a new cluster beside K others."""
    for n in range(1, seat.shape[0]):
        seat[n] = log_seat(prior, float(n))
    for K in range(new_seat.shape[0]):
        new_seat[K] = log_new_seat(prior, float(N), K)


def seat_tables(prior: Any, N: int, capacity: int, limit: int = NO_LIMIT) -> tuple[np.ndarray, np.ndarray]:
    """What the sweep knows of the prior; no cluster is opened beside ``limit`` others."""
    seat, new_seat = np.full(N + 1, -np.inf), np.full(min(capacity, N), -np.inf)
    fill_tables(prior, N, seat, new_seat)
    new_seat[limit:] = -np.inf
    return seat, new_seat


# ---- sweeps ------------------------------------------------------------------------------------------------


def reseat(
    seating: Seating, prior: Any, rng: np.random.Generator, n_auxiliary: int = 3, limit: int = NO_LIMIT
) -> Seating:
    """One sweep over all objects, with more slots where they are needed and no more clusters than the limit."""
    N, m = len(seating.z), n_auxiliary
    tallest = sum(len(block.theta) for block in seating.blocks)
    ahead = max(1, DRAWN_AT_ONCE // (m * tallest))
    tables = seat_tables(prior, N, len(seating.n), limit)
    for first in range(0, N, ahead):
        rows = np.arange(first, min(first + ahead, N))
        u = rng.random(len(rows))
        seating = seating._replace(
            blocks=tuple(_supplied(block, m * len(rows), rng) for block in seating.blocks)
        )
        done = 0
        while (done := sweep(PORTS.erase(seating.blocks), *tables, *seating[1:], rows, u, m, done)) < len(
            rows
        ):
            seating = _grown(seating, len(seating.n))
            tables = seat_tables(prior, N, len(seating.n), limit)
    return seating


def _supplied(block: Placed, n_draws: int, rng: np.random.Generator) -> Placed:
    drawn = draw(block.family, np.zeros((len(block.theta), n_draws)), rng)
    return block._replace(fresh=np.ascontiguousarray(drawn.T))


def _grown(seating: Seating, more: int) -> Seating:
    """The same seating with more slots."""

    def widen(array: np.ndarray, value: float = 0.0) -> np.ndarray:
        return np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, more)], constant_values=value)

    return seating._replace(
        blocks=tuple(block._replace(theta=widen(block.theta)) for block in seating.blocks),
        n=widen(seating.n),
        slot_of=widen(seating.slot_of, -1),
        name_of=widen(seating.name_of, -1),
    )


# ---- chains ------------------------------------------------------------------------------------------------


def start(
    blocks: Sequence[Block], prior: Any, z: np.ndarray, seed: int, families: Sequence[Any] | None = None
) -> AuxiliaryChain:
    """A chain that starts from the labels z, with parameters that fit them; from the given families, if any.

    Examples
    --------
    >>> from partita.dispatch import interpreted
    >>> from partita.families import Student
    >>> from partita.partitions import DirichletProcess
    >>> block = Block(Student.default(1), np.array([[-3.0], [-2.0], [2.5]]), ("a",))
    >>> with interpreted():
    ...     chain = start([block], DirichletProcess(1.0), np.array([0, 0, 1]), seed=0)
    ...     chain = step(chain, Schedule())
    >>> chain.iteration, int(chain.seating.n.sum())
    (1, 3)
    """
    check_blocks(blocks)
    reference = tuple(block.family for block in blocks)
    blocks = [
        block._replace(family=family) for block, family in zip(blocks, families or reference, strict=True)
    ]
    missing = lacks(type(prior), log_seat, log_new_seat, log_eppf)
    if missing:
        raise TypeError(
            f"{type(prior).__name__} has no {', '.join(missing)}, which auxiliary clusters need: choose an "
            "exchangeable prior (dirichlet_process, pitman_yor, mfm or finite)"
        )
    z = canonical(z).astype(np.int64)
    K = int(z.max()) + 1
    rng = generator(seed, 0, 4)
    placed, walks = [], []
    for block in blocks:
        theta, walk = first_parameters(block, z, K, rng)
        placed.append(Placed(block.family, block.data, theta, np.zeros((0, len(theta)))))
        walks.append(walk)
    names = np.arange(K)
    seating = Seating(tuple(placed), z, np.bincount(z).astype(float), names, names.copy(), np.array([K]))
    return AuxiliaryChain(_grown(seating, 16), bind(prior, len(z)), reference, tuple(walks), seed, 0, {})


def sweep_rows(chain: AuxiliaryChain, schedule: Schedule, *, n_auxiliary: int = 3) -> AuxiliaryChain:
    """Every object draws its cluster among those there are and ``n_auxiliary`` empty ones."""
    rng = generator(chain.seed, chain.iteration, SWEEP)
    seating = reseat(chain.seating, chain.prior, rng, n_auxiliary, schedule.limit)
    return chain._replace(seating=seating, rng=generator(chain.seed, chain.iteration, MOVES))


def sample_parameters(chain: AuxiliaryChain, schedule: Schedule, *, n_walks: int = 3) -> AuxiliaryChain:
    """Draw hyper-parameters and parameters of all clusters; walks are tuned at first. Ends the iteration."""
    seating, iteration, rng = chain.seating, chain.iteration, chain.rng
    K, z = int(seating.K[0]), gibbs.labels(seating)
    blocks, walks, accepted = [], [], {}
    for b, (placed, center, walk) in enumerate(
        zip(seating.blocks, chain.reference, chain.walks, strict=True)
    ):
        S = statistics(Block(placed.family, placed.data, ()), z, K) if walk is None else None
        if schedule.learn_likelihood:
            placed = learn_family(placed, center, S, seating, rng)
        block = Block(placed.family, placed.data, ())
        theta, walk = update_parameters(
            block, z, np.ascontiguousarray(placed.theta[:, :K]), walk, rng, S=S, n_walks=n_walks
        )
        placed.theta[:, :K] = theta
        if walk is not None:
            accepted[f"{type(block.family).__name__} {b}"] = float(walk.accepted.mean())
            walk = tuned(walk, iteration) if iteration < schedule.n_adapting else walk
        blocks.append(placed)
        walks.append(walk)
    return chain._replace(
        seating=seating._replace(blocks=tuple(blocks)),
        walks=tuple(walks),
        iteration=iteration + 1,
        accepted=accepted,
        rng=None,
    )


def steps(n_auxiliary: int = 3, n_walks: int = 3) -> tuple[Any, ...]:
    """The steps of an iteration; of the schedule they read how long they adapt, what to learn, and the limit."""
    return (
        partial(sweep_rows, n_auxiliary=n_auxiliary),
        sample_prior,
        partial(sample_parameters, n_walks=n_walks),
    )


def step(chain: AuxiliaryChain, schedule: Schedule, n_auxiliary: int = 3, n_walks: int = 3) -> AuxiliaryChain:
    """One iteration."""
    return chains.step(chain, schedule, steps(n_auxiliary, n_walks))


def learn_family(
    placed: Placed, center: Any, S: np.ndarray | None, seating: Seating, rng: np.random.Generator
) -> Placed:
    """Walk over the hyper-parameters of one block.

    A conjugate family judges them with its parameters integrated out, and draws those next: together an exact update
    of both. Another family judges them by the prior density of its parameters, if it says which may be learned.
    """
    K = int(seating.K[0])
    if S is not None:
        cache = np.zeros((n_cache(placed.family), K))
        live = Live(placed.family, placed.data, S, cache, S[:, :0], cache[:, :0])
        collapsed = Seating((live,), seating.z, seating.n[:K], *seating[3:])
        return placed._replace(family=learn_likelihood(collapsed, (center,), rng).blocks[0].family)
    family = placed.family
    if unconstrained.dispatch(type(family)) is unconstrained.dispatch(object):
        return placed
    theta = placed.theta[:, :K]
    now = log_prior(family, theta).sum()
    for name, mean in unconstrained(center).items():
        value, spread = unconstrained(family)[name].copy(), breadth(family, name) * HYPER_SPREAD
        for e in rng.permutation(value.size)[:MAX_WALKED]:
            moved = value.copy()
            moved.flat[e] += rng.choice(STEP_SIZES) * rng.standard_normal()
            family_moved = constrained(family, name, moved)
            then = log_prior(family_moved, theta).sum()
            gain = ((value - mean) ** 2 - (moved - mean) ** 2).sum() / (2 * spread**2)
            if np.log(rng.random()) < then - now + gain:
                family, value, now = family_moved, moved, then
    return placed._replace(family=family)


def thetas(chain: AuxiliaryChain) -> tuple[np.ndarray, ...]:
    """Parameters of the clusters in use, one array [parameter, cluster] per block, in the order of the slots."""
    return tuple(block.theta[:, : chain.seating.K[0]].copy() for block in chain.seating.blocks)


def held_parameters(chain: AuxiliaryChain) -> chains.HeldClusters:
    """Parameters [parameter, slot] of the blocks that are not conjugate."""
    return tuple(
        None if walk is None else placed.theta
        for placed, walk in zip(chain.seating.blocks, chain.walks, strict=True)
    )


def log_joint(chain: AuxiliaryChain) -> float:
    """Log density of data, labels and parameters under the present hyper-parameters."""
    seating, z = chain.seating, gibbs.labels(chain.seating)
    total = log_eppf(chain.prior, gibbs.sizes(seating), int(seating.K[0]))
    for placed, theta in zip(seating.blocks, thetas(chain), strict=True):
        total += log_prior(placed.family, theta).sum()
        total += log_densities(Block(placed.family, placed.data, ()), z, theta).sum()
    return float(total)


def algorithm(n_auxiliary: int = 3, n_walks: int = 3) -> Algorithm:
    """Neal's algorithm 8 for :func:`partita.engines.gibbs.chain.run_mixture_chain`.

    Examples
    --------
    >>> from partita.dispatch import interpreted
    >>> from partita.engines.gibbs.chain import run_mixture_chain
    >>> from partita.families import Student
    >>> from partita.partitions import DirichletProcess
    >>> block = Block(Student.default(1), np.array([[-3.0], [-2.0], [2.5]]), ("a",))
    >>> prior, z = DirichletProcess(1.0), np.zeros(3, int)
    >>> with interpreted():
    ...     run = run_mixture_chain([block], prior, z, Schedule(5, 2), seed=0, algorithm=algorithm())
    >>> run.trace.labels.shape
    (5, 3)
    """
    return Algorithm("neal8", start, steps(n_auxiliary, n_walks), log_joint, WARM_UP, held_parameters)
