"""Chains: a sampler is a list of steps, each of which leaves the posterior invariant.

One iteration is a Gibbs sweep over all objects, the hidden coordinates of partly seen ones, a few split-merge moves,
then the hyper-parameters of the prior and of the likelihood. All random numbers come from a counter-based generator
keyed by (seed, iteration), and those of a sweep by (seed, iteration, row): a chain depends on its seed alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from partita.engines.gibbs import partly_observed, sweep
from partita.engines.gibbs.checkpoints import ChainKeeper
from partita.engines.gibbs.duplicate_rows import Visits, reseat_copies, visits
from partita.engines.gibbs.split_merge import split_merge
from partita.engines.gibbs.sweep import MANY, Seating
from partita.families.contract import constrained, n_columns, unconstrained
from partita.families.registry import Block
from partita.families.rows import log_marginals, refresh_clusters
from partita.labels import canonical
from partita.partitions import StickBreaking, bind, log_eppf, log_labeled, sample_hyper
from partita.partitions.learning import slice_sample
from partita.trace import Trace, join, label_dtype

__all__ = [
    "COLLAPSED",
    "Chain",
    "ChainRun",
    "Sampler",
    "Schedule",
    "after_sweep",
    "average_families",
    "collapsed_sampler",
    "generator",
    "learn_cells",
    "log_joint",
    "run_chain",
    "start",
    "step",
]

SWEEP, MOVES, HIDDEN, COMPLETION, START = range(5)  # which random numbers of an iteration are whose
CUT = 3.0  # where the hyperprior ends, in its standard deviations
HYPER_SPREAD = 1.5  # standard deviation of the hyperprior of each free hyper-parameter, around the default
STEPS = (1.0, 0.3, 0.1)  # deviations of its walk, one of them at random: no size suits all data
WALKS, SLICES = 3, 3  # walks of each hyper-parameter an iteration, or entries of it that are sliced


class Schedule(NamedTuple):
    """How long a chain runs, and which steps an iteration has."""

    n_draws: int = 200
    burn_in: int = 200
    thin: int = 1
    n_moves: int = 10  # split-merge moves an iteration
    n_scans: int = 0  # restricted Gibbs scans that build a split; 0: sequential allocation
    limit: int = MANY  # no more clusters than these
    learn_concentration: bool = True
    learn_likelihood: bool = True


class Chain(NamedTuple):
    """Where a chain stands."""

    seating: Seating
    prior: Any
    reference: tuple[Any, ...]  # the families that the hyperprior is centred on
    seed: int
    iteration: int
    accepted: dict[str, int]
    shown: tuple[Block, ...]  # the data with their holes; the seating holds a completed copy
    hidden_rows: np.ndarray
    visits: Visits | None = None  # the order of a sweep where rows repeat; found by the first one


def start(
    blocks: Sequence[Block],
    prior: Any,
    z: np.ndarray,
    seed: int,
    dtype: type = np.float32,
    families: Sequence[Any] | None = None,
) -> Chain:
    """A chain that starts from the labels z, and from the given families if the data have taught some already."""
    fixed = prior.n_components if isinstance(prior, StickBreaking) else None
    z = np.asarray(z) if fixed else canonical(z)
    prior = bind(prior, float(len(z)))
    reference = tuple(block.family for block in blocks)
    shown = tuple(
        block._replace(family=family) for block, family in zip(blocks, families or reference, strict=True)
    )
    rows = partly_observed.rows_with_hidden(shown)
    completed = shown
    if len(rows):
        completed = partly_observed.complete(
            shown, z, fixed or int(z.max()) + 1, generator(seed, 0, COMPLETION)
        )
    seating = sweep.seat(completed, z, n_components=fixed, dtype=dtype)
    return Chain(seating, prior, reference, seed, 0, {}, shown, rows)


def generator(seed: int, iteration: int, purpose: int) -> np.random.Generator:
    """The random numbers of one purpose in one iteration."""
    return np.random.Generator(np.random.Philox(key=seed, counter=[0, purpose, iteration, 0]))


def step(chain: Chain, schedule: Schedule) -> Chain:
    """One iteration."""
    seating, prior, iteration = chain.seating, chain.prior, chain.iteration
    N = len(seating.z)
    u = generator(chain.seed, iteration, SWEEP).random(N)
    if iteration == 0 and not len(chain.hidden_rows) and not isinstance(prior, StickBreaking):
        chain = chain._replace(visits=visits(seating.blocks))
    if chain.visits is None:
        seating = sweep.reseat(seating, prior, np.arange(N), u, schedule.limit)
    else:
        seating = reseat_copies(seating, prior, chain.visits, u[chain.visits.rows], schedule.limit)
    if len(chain.hidden_rows):
        rng = generator(chain.seed, iteration, HIDDEN)
        partly_observed.step(seating, chain.shown, prior, chain.hidden_rows, rng)
    return after_sweep(chain._replace(seating=seating), schedule)


def after_sweep(chain: Chain, schedule: Schedule) -> Chain:
    """The rest of an iteration: splits and merges (or swaps of fixed labels), then the hyper-parameters."""
    seating, prior, iteration = chain.seating, chain.prior, chain.iteration
    rng = generator(chain.seed, iteration, MOVES)
    accepted = dict(chain.accepted)
    fixed = isinstance(prior, StickBreaking)
    for _ in range(schedule.n_moves):
        if fixed:
            outcome = swap_labels(seating, prior, rng)
        else:
            seating, outcome = split_merge(seating, prior, rng, schedule.n_scans, schedule.limit)
        accepted[outcome] = accepted.get(outcome, 0) + 1
    if schedule.learn_concentration:
        prior = sample_hyper(prior, seating.n if fixed else sweep.sizes(seating), rng)
    if schedule.learn_likelihood:
        seating = learn_likelihood(seating, chain.reference, rng)
    else:
        for live in seating.blocks:  # what single precision has lost in a sweep of small changes
            refresh_clusters(live.family, live.S, live.C, len(seating.n))
    return chain._replace(seating=seating, prior=prior, iteration=iteration + 1, accepted=accepted)


def swap_labels(seating: Seating, prior: Any, rng: np.random.Generator) -> str:
    """Exchange two labels of a prior that cares for their order; the likelihood does not notice."""
    K = len(seating.n)
    if K < 2:
        return "rejected"
    j, k = rng.choice(K, size=2, replace=False)
    swapped = seating.n.copy()
    swapped[[j, k]] = swapped[[k, j]]
    if np.log(rng.random()) >= log_labeled(prior, swapped) - log_labeled(prior, seating.n):
        return "rejected"
    seating.n[:] = swapped
    for live in seating.blocks:
        for columns in (live.S, live.C):
            columns[:, [j, k]] = columns[:, [k, j]]
    first, second = seating.z == j, seating.z == k
    seating.z[first], seating.z[second] = k, j
    return "swap"


def learn_likelihood(seating: Seating, reference: Sequence[Any], rng: np.random.Generator) -> Seating:
    """New hyper-parameters given the clusters: walks column by column where columns have their own, else slices."""
    K = len(seating.n) if seating.K[0] == len(seating.n) else int(seating.K[0])
    blocks = []
    for live, centre in zip(seating.blocks, reference, strict=True):
        family = learn_cells(live.family, centre, np.ascontiguousarray(live.S[:, :K]), rng)
        refresh_clusters(family, live.S, live.C, len(seating.n))
        blocks.append(live._replace(family=family))
    return seating._replace(blocks=tuple(blocks))


def learn_cells(family: Any, centre: Any, S: np.ndarray, rng: np.random.Generator) -> Any:
    """The family with hyper-parameters drawn given the statistics ``S`` of all cells, [statistic, cluster]."""
    for name, mean in unconstrained(centre).items():
        if n_columns(family) > 1 and len(mean) == n_columns(family):
            family = _walk_columns(family, name, mean, S, rng)
        else:
            family = _slice_entries(family, name, mean, S, rng)
    return family


def log_hyperprior(gap: Any) -> Any:
    """Log density, up to a constant, of a hyper-parameter so far from its default: a normal law cut off at its tails.

    Without the cut a constant column would draw its scale to nothing, where the evidence has no bound.

    Examples
    --------
    >>> log_hyperprior(np.array([HYPER_SPREAD, 9.0]))
    array([-0.5, -inf])
    """
    return np.where(np.abs(gap) <= CUT * HYPER_SPREAD, -0.5 * (gap / HYPER_SPREAD) ** 2, -np.inf)


def _walk_columns(family, name, mean, S, rng):
    """Random walks of one hyper-parameter in all columns at once, each judged by its own column's evidence."""
    value, now = unconstrained(family)[name], log_marginals(family, S).sum(axis=1)
    for _ in range(WALKS):
        moved = value + rng.choice(STEPS) * rng.standard_normal(value.shape)
        then = log_marginals(constrained(family, name, moved), S).sum(axis=1)
        log_prior = log_hyperprior(moved - mean) - log_hyperprior(value - mean)
        better = np.log(rng.random(len(now))) < then - now + log_prior
        value, now = np.where(better, moved, value), np.where(better, then, now)
    return constrained(family, name, value)


def _slice_entries(family, name, mean, S, rng):
    """Slice updates of a few entries of one hyper-parameter, judged by the evidence of all columns."""
    value = unconstrained(family)[name]
    for e in rng.permutation(value.size)[:SLICES]:

        def log_density(x, e=e, value=value):
            height = log_hyperprior(x - mean.flat[e])
            if height == -np.inf:
                return -np.inf
            moved = value.copy()
            moved.flat[e] = x
            evidence = log_marginals(constrained(family, name, moved), S).sum()
            return float(evidence + height)

        value = value.copy()
        value.flat[e] = slice_sample(log_density, float(value.flat[e]), rng)
    return constrained(family, name, value)


def log_joint(chain: Chain) -> float:
    """Log probability of data and labels under the present hyper-parameters."""
    seating, prior = chain.seating, chain.prior
    if isinstance(prior, StickBreaking):
        K, total = len(seating.n), log_labeled(prior, seating.n)
    else:
        K = int(seating.K[0])
        total = log_eppf(prior, sweep.sizes(seating), K)
    return float(total + sum(log_marginals(live.family, live.S[:, :K]).sum() for live in seating.blocks))


class Sampler(NamedTuple):
    """What ``run_chain`` runs: ``start(blocks, prior, z, seed, families=)``, ``step(chain, schedule)``,
    ``log_joint(chain)``.

    Any NamedTuple with a ``seating`` (fields ``blocks``, ``z``, ``n``, ``slot_of``), a ``prior`` and an ``iteration``
    will do for the chain. One that can be kept on disk also has ``freeze(chain)``, its state as arrays, and
    ``thaw(blocks, prior, seed, arrays)``.
    """

    start: Callable[..., Any]
    step: Callable[..., Any]
    log_joint: Callable[[Any], float]
    freeze: Callable[[Any], dict[str, np.ndarray]] | None = None
    thaw: Callable[..., Any] | None = None


def collapsed_sampler(dtype: type) -> Sampler:
    """Collapsed Gibbs with split-merge moves, its cache in the given precision."""
    return Sampler(partial(start, dtype=dtype), step, log_joint)


COLLAPSED = collapsed_sampler(np.float32)


class ChainRun(NamedTuple):
    """What a chain leaves: its draws, where it stands, and its families with their hyper-parameters averaged."""

    trace: Trace
    chain: Any
    families: tuple[Any, ...]
    reason: str  # "done", "stopped" (by the callback) or "interrupted"


def run_chain(
    blocks: Sequence[Block],
    prior: Any,
    z: np.ndarray,
    schedule: Schedule,
    *,
    seed: int,
    index: int = 0,
    families: Sequence[Any] | None = None,
    callback: Callable[[int, int, float], Any] | None = None,
    sampler: Sampler = COLLAPSED,
    keep_partial: bool = False,
    keeper: ChainKeeper | None = None,
) -> ChainRun:
    """Burn in, then draw; ``callback(iteration, n_clusters, log_joint)`` after each iteration, returning True stops.

    A chain that is stopped before its first draw leaves the state it is in. So does one that is interrupted (Ctrl-C),
    with ``keep_partial``; without it the interrupt goes on to the caller. With a ``keeper`` the chain goes on from
    where it stood.
    """
    draws: list[Trace] = []
    hyper: list[tuple[Any, ...]] = []
    begin = 0
    if keeper is not None and keeper.begun and sampler.thaw is not None:
        saved = keeper.load()
        chain = sampler.thaw(blocks, prior, seed, saved)
        begin = chain.iteration
        draws, hyper = keeper.draws(int(saved["n_draws"]), [block.family for block in blocks])
    else:
        chain = sampler.start(blocks, prior, z, seed, families=families)
    total, reason = schedule.burn_in + schedule.n_draws * schedule.thin, "done"
    try:
        for iteration in range(begin, total):
            chain = sampler.step(chain, schedule)
            K, value = int(np.count_nonzero(chain.seating.n)), sampler.log_joint(chain)
            if iteration >= schedule.burn_in and (iteration + 1 - schedule.burn_in) % schedule.thin == 0:
                draws.append(_draw(chain, value, K, index))
                hyper.append(tuple(block.family for block in chain.seating.blocks))
                if keeper is not None:
                    keeper.add(len(draws) - 1, draws[-1], hyper[-1])
            if keeper is not None and sampler.freeze is not None:
                keeper.save(sampler.freeze(chain), len(draws))
            if callback is not None and callback(iteration + 1, K, value):
                reason = "stopped"
                break
    except KeyboardInterrupt:
        if not keep_partial:
            raise
        reason = "interrupted"
    if not draws:
        draws.append(_draw(chain, sampler.log_joint(chain), int(np.count_nonzero(chain.seating.n)), index))
    now = tuple(block.family for block in chain.seating.blocks)
    return ChainRun(join(draws), chain, average_families(hyper or [now]), reason)


def average_families(draws: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
    """The families with every hyper-parameter at its mean over the draws, on its free scale.

    Examples
    --------
    >>> from partita.families import Bernoulli
    >>> one, two = (Bernoulli.default(1)._replace(a=np.array([a])) for a in (1.0, 4.0))
    >>> average_families([(one,), (two,)])[0].a
    array([2.])
    """
    out = []
    for same in zip(*draws, strict=True):
        family, free = same[0], [unconstrained(one) for one in same]
        for name in free[0]:
            family = constrained(family, name, np.mean([values[name] for values in free], axis=0))
        out.append(family)
    return tuple(out)


def _draw(chain: Any, value: float, K: int, index: int) -> Trace:
    z = sweep.labels(chain.seating)
    if not isinstance(chain.prior, StickBreaking):
        z = canonical(z, missing=-1)
    concentration = getattr(chain.prior, "concentration", getattr(chain.prior, "gamma", np.nan))
    discount = getattr(chain.prior, "discount", np.nan)
    return Trace(
        z.astype(label_dtype(int(z.max()) + 1))[None],
        np.array([value]),
        np.array([K]),
        np.array([float(concentration)]),
        np.array([float(discount)]),
        np.array([index]),
    )
