"""Chains of collapsed Gibbs sampling: an iteration is a list of steps, each of which leaves the posterior invariant.

The steps are a Gibbs sweep over all objects, the hidden coordinates of partly observed ones, a few split-merge moves,
then the hyper-parameters of the prior and of the likelihood. All random numbers come from a counter-based generator
keyed by (seed, iteration), and those of a sweep by (seed, iteration, row): a chain depends on its seed alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from partita.engines import run
from partita.engines.checkpoints import Checkpoint
from partita.engines.gibbs import partly_observed, sweep, tied_values
from partita.engines.gibbs.duplicate_rows import Visits, reseat_copies, visits
from partita.engines.gibbs.split_merge import split_merge
from partita.engines.gibbs.sweep import NO_LIMIT, Seating
from partita.engines.passes.live import refresh_caches
from partita.execution.device import is_on_device
from partita.execution.device_labels import first_names, renamed
from partita.families.contract import (
    breadth,
    constrained,
    faster_in_single,
    held,
    n_columns,
    sample_shape,
    unconstrained,
)
from partita.families.registry import Block
from partita.families.rows import log_marginals
from partita.labels import canonical
from partita.partitions import bind, log_eppf, log_labeled, sample_hyper
from partita.partitions.learning import slice_sample
from partita.trace import Trace, join, label_dtype

SWEEP, MOVES, HIDDEN, COMPLETION, START, TIES = range(6)  # purposes of the random numbers of an iteration
SMALL_TABLE = 5000  # rows; above, predictive caches may be in single precision
HYPER_CUT = 3.0  # where the hyperprior ends, in its standard deviations
HYPER_SPREAD = 1.5  # standard deviation of the hyperprior of each free hyper-parameter, around the default
STEP_SIZES = (1.0, 0.3, 0.1)  # of its random walk, one of them at random: no size suits all data
N_WALKS, N_SLICES = 3, 3  # walks of each hyper-parameter per iteration, or entries of it that are sliced


HeldClusters = tuple[np.ndarray | None, ...] | None  # see MixtureDraw


class Schedule(NamedTuple):
    """How long a chain runs, and which steps an iteration has."""

    n_draws: int | None = 200  # None: as many as the settling of the chains asks for
    burn_in: int | None = 200  # None: as long as the chains take to agree
    thin: int = 1
    n_moves: int = 10  # split-merge moves per iteration
    n_scans: int = 0  # restricted Gibbs scans that build a split; 0: sequential allocation
    limit: int = NO_LIMIT  # largest number of clusters
    learn_concentration: bool = True
    learn_likelihood: bool = True
    warm_up: int | None = None  # iterations whose steps may adapt to the data; None: half of the burn-in

    @property
    def n_adapting(self) -> int:
        """Iterations whose steps need not leave the posterior invariant; burn-in is longer."""
        return (self.burn_in or 0) // 2 if self.warm_up is None else self.warm_up


class Chain(NamedTuple):
    """Where a chain stands."""

    seating: Seating
    prior: Any
    reference: tuple[Any, ...]  # the families that the hyperprior is centered on
    seed: int
    iteration: int
    accepted: dict[str, int]
    shown: tuple[Block, ...]  # the data with their holes; the seating holds a completed copy
    hidden_rows: np.ndarray
    visits: Visits | None = None  # the order of a sweep where rows are duplicates; found by the first one
    rng: Any = None  # generator of the steps after the sweep, within an iteration
    values: tuple[Any, ...] = ()  # standardized columns of blocks with ties, as they are drawn


def start(
    blocks: Sequence[Block],
    prior: Any,
    z: np.ndarray,
    seed: int,
    dtype: type | None = None,
    families: Sequence[Any] | None = None,
) -> Chain:
    """A chain that starts from the labels z, and from the given families if the data have taught some already.

    ``dtype`` is that of the predictive cache, by default chosen by the number of rows.
    """
    fixed = prior.n_components if prior.fixed_labels else None
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
    values: tuple[Any, ...] = ()
    if tied_values.has_ties(shown):
        values, completed = tied_values.start(completed, generator(seed, 0, TIES))
    dtype = dtype or cache_dtype("auto", reference, len(z))
    seating = sweep.seat(completed, z, n_components=fixed, dtype=dtype)
    return Chain(seating, prior, reference, seed, 0, {}, shown, rows, values=values)


def cache_dtype(precision: str, families: Sequence[Any], n_rows: int) -> type:
    """Type of the predictive cache.

    "auto" is single precision for large tables whose families are all faster with it, otherwise that of predictions,
    so that one compilation serves both.

    Examples
    --------
    >>> from partita.families import Categorical, GaussianDiagonal
    >>> discrete, real = Categorical.default([3]), GaussianDiagonal.default(1)
    >>> cache_dtype("auto", [discrete], 100_000), cache_dtype("auto", [discrete, real], 100_000)
    (<class 'numpy.float32'>, <class 'numpy.float64'>)
    """
    is_single = precision == "single"
    if precision == "auto":
        is_single = n_rows > SMALL_TABLE and all(map(faster_in_single, families))
    return np.float32 if is_single else np.float64


def generator(seed: int, iteration: int, purpose: int) -> np.random.Generator:
    """The random numbers of one purpose in one iteration."""
    return np.random.Generator(np.random.Philox(key=seed, counter=[0, purpose, iteration, 0]))


def sweep_rows(chain: Chain, schedule: Schedule) -> Chain:
    """Every object draws its cluster, given those of all others."""
    seating, prior = chain.seating, chain.prior
    N = len(seating.z)
    u = generator(chain.seed, chain.iteration, SWEEP).random(N)
    if chain.iteration == 0 and not (len(chain.hidden_rows) or chain.values or prior.fixed_labels):
        chain = chain._replace(visits=visits(seating.blocks))
    if chain.visits is None:
        seating = sweep.reseat(seating, prior, np.arange(N), u, schedule.limit)
    else:
        seating = reseat_copies(seating, prior, chain.visits, u[chain.visits.rows], schedule.limit)
    return chain._replace(seating=seating)


def sample_hidden(chain: Chain, schedule: Schedule) -> Chain:
    """Draw the hidden coordinates of partly observed vectors, and tied values inside their cells."""
    if len(chain.hidden_rows):
        rng = generator(chain.seed, chain.iteration, HIDDEN)
        shown = tied_values.as_drawn(chain.shown, chain.seating.blocks)
        partly_observed.step(chain.seating, shown, chain.prior, chain.hidden_rows, rng)
    if chain.values:
        rng = generator(chain.seed, chain.iteration + 1, TIES)
        seating = chain.seating
        K = len(seating.n) if chain.prior.fixed_labels else int(seating.K[0])
        tied_values.step(seating.blocks, chain.shown, chain.values, sweep.labels(seating), K, rng)
    return chain


def move_clusters(chain: Chain, schedule: Schedule) -> Chain:
    """Split-merge moves; swaps of labels where the prior has fixed labels."""
    seating, prior = chain.seating, chain.prior
    rng = generator(chain.seed, chain.iteration, MOVES)
    accepted = dict(chain.accepted)
    if prior.fixed_labels:
        outcomes = Counter(swap_labels(seating, prior, rng) for _ in range(schedule.n_moves))
    else:
        seating, outcomes = split_merge(
            seating, prior, rng, schedule.n_scans, schedule.limit, schedule.n_moves
        )
    for outcome, count in outcomes.items():
        accepted[outcome] = accepted.get(outcome, 0) + count
    return chain._replace(seating=seating, accepted=accepted, rng=rng)


def sample_prior(chain: Chain, schedule: Schedule) -> Chain:
    """Draw the hyper-parameters of the partition prior."""
    if not schedule.learn_concentration:
        return chain
    fixed = chain.prior.fixed_labels
    sizes = chain.seating.n if fixed else sweep.sizes(chain.seating)
    return chain._replace(prior=sample_hyper(chain.prior, sizes, chain.rng))


def sample_likelihood(chain: Chain, schedule: Schedule) -> Chain:
    """Draw the hyper-parameters of the likelihood, and compute all caches anew; ends the iteration."""
    seating = chain.seating
    if schedule.learn_likelihood:
        seating = learn_likelihood(seating, chain.reference, chain.rng)
    refresh_caches(seating.blocks)  # also where nothing was learned: single precision loses digits in a sweep
    return chain._replace(seating=seating, iteration=chain.iteration + 1, rng=None)


STEPS = (sweep_rows, sample_hidden, move_clusters, sample_prior, sample_likelihood)


def step(chain: Any, schedule: Schedule, steps: Sequence[Callable] = STEPS) -> Any:
    """One iteration."""
    for one in steps:
        chain = one(chain, schedule)
    return chain


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
    """New hyper-parameters given the clusters: walks column by column where columns have their own, else slices.

    The predictive caches are left as they were.
    """
    K = len(seating.n) if seating.K[0] == len(seating.n) else int(seating.K[0])
    blocks = []
    for live, center in zip(seating.blocks, reference, strict=True):
        family = learn_cells(live.family, center, np.ascontiguousarray(live.S[:, :K]), rng)
        blocks.append(live._replace(family=family))
    return seating._replace(blocks=tuple(blocks))


def learn_cells(family: Any, center: Any, S: np.ndarray, rng: np.random.Generator) -> Any:
    """The family with hyper-parameters drawn given the statistics ``S`` of all cells, [statistic, cluster]."""
    family = sample_shape(family, S, rng)
    for name, mean in unconstrained(center).items():
        if name in held(family):
            continue
        if n_columns(family) > 1 and len(mean) == n_columns(family):
            family = _walk_columns(family, name, mean, S, rng)
        else:
            family = _slice_entries(family, name, mean, S, rng)
    return family


def log_hyperprior(gap: Any, breadth: float = 1.0) -> Any:
    """Log density, up to a constant, of a hyper-parameter so far from its default: a normal law cut off at its tails.

    Its deviation is ``HYPER_SPREAD``, or ``breadth`` times as much.

    Without the cut a constant column would draw its scale to nothing, where the evidence has no bound.

    Examples
    --------
    >>> log_hyperprior(np.array([HYPER_SPREAD, 9.0]))
    array([-0.5, -inf])
    """
    scaled = gap / (breadth * HYPER_SPREAD)
    return np.where(np.abs(scaled) <= HYPER_CUT, -0.5 * scaled**2, -np.inf)


def log_hyper_density(families: Sequence[Any], reference: Sequence[Any]) -> float:
    """Log density, up to a constant, of learned hyper-parameters given the families that they are centered on.

    Examples
    --------
    >>> from partita.families import Bernoulli
    >>> center = Bernoulli.default(1)
    >>> log_hyper_density([center._replace(a=center.a * np.exp(HYPER_SPREAD))], [center])
    -0.5
    """
    total = 0.0
    for family, center in zip(families, reference, strict=True):
        means, values = unconstrained(center), unconstrained(family)
        for name in means.keys() - set(held(family)):
            spread = breadth(family, name) * HYPER_SPREAD
            total -= 0.5 * float((((values[name] - means[name]) / spread) ** 2).sum())
    return total


def _walk_columns(family, name, mean, S, rng):
    """Random walks of one hyper-parameter in all columns at once, each judged by its own column's evidence."""
    value, now = unconstrained(family)[name], log_marginals(family, S).sum(axis=1)
    wide = breadth(family, name)
    prior_now = log_hyperprior(value - mean, wide)
    for _ in range(N_WALKS):
        moved = value + rng.choice(STEP_SIZES) * rng.standard_normal(value.shape)
        then = log_marginals(constrained(family, name, moved), S).sum(axis=1)
        prior_then = log_hyperprior(moved - mean, wide)
        better = np.log(rng.random(len(now))) < then - now + (prior_then - prior_now)
        value, now = np.where(better, moved, value), np.where(better, then, now)
        prior_now = np.where(better, prior_then, prior_now)
    return constrained(family, name, value)


def _slice_entries(family, name, mean, S, rng):
    """Slice updates of a few entries of one hyper-parameter, judged by the evidence of all columns."""
    value, wide = unconstrained(family)[name], breadth(family, name)
    for e in rng.permutation(value.size)[:N_SLICES]:

        def log_density(x, e=e, value=value):
            height = log_hyperprior(x - mean.flat[e], wide)
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
    if prior.fixed_labels:
        K, total = len(seating.n), log_labeled(prior, seating.n)
    else:
        K = int(seating.K[0])
        total = log_eppf(prior, sweep.sizes(seating), K)
    return float(total + sum(log_marginals(live.family, live.S[:, :K]).sum() for live in seating.blocks))


def nothing_held(chain: Any) -> HeldClusters:
    """What a chain holds whose labels and data determine the statistics of all clusters."""
    return None


class Algorithm(NamedTuple):
    """A sampler of mixtures, apart from its data: ``start(blocks, prior, z, seed, families=)``, the steps
    ``step(chain, schedule)`` of an iteration, and ``log_joint(chain)``.

    The chain is any NamedTuple with a ``seating`` (fields ``blocks``, ``z``, ``n``, ``slot_of``), a ``prior`` and an
    ``iteration``.
    """

    name: str
    start: Callable[..., Any]
    steps: Sequence[Callable[..., Any]]
    log_joint: Callable[[Any], float]
    warm_up: int = 0  # iterations that adapt to the data where burn-in is not given
    held: Callable[[Any], HeldClusters] = nothing_held  # see MixtureDraw


def collapsed_gibbs(dtype: type | None = None) -> Algorithm:
    """Collapsed Gibbs sampling with split-merge moves; ``dtype`` is that of the predictive cache, as in ``start``."""
    return Algorithm("gibbs", partial(start, dtype=dtype), STEPS, log_joint, held=held_clusters)


def held_clusters(chain: Any) -> HeldClusters:
    """Statistics [statistic, slot] of each block if hidden coordinates or tied values were drawn.

    Otherwise the labels determine them.
    """
    drawn = len(chain.hidden_rows) > 0 or bool(getattr(chain, "values", ()))
    return tuple(live.S for live in chain.seating.blocks) if drawn else None


class ChainDraw(NamedTuple):
    """One draw of a chain: a trace of length one, and the families with their hyper-parameters.

    ``held`` is what labels and data do not determine, for each block, with one column per label: the statistics of
    drawn coordinates, or the parameters of a family that is not conjugate (None: of other families).
    """

    trace: Trace
    families: tuple[Any, ...]
    held: HeldClusters = None


def mixture_sampler(
    algorithm: Algorithm,
    blocks: Sequence[Block],
    begin: Callable[[], Any],
    schedule: Schedule,
    *,
    seed: int,
    number: int = 0,
) -> run.Sampler:
    """What the driver runs: ``begin()`` gives the labels ``z``, ``prior`` and ``families`` to start from."""

    def first() -> Any:
        found = begin()
        return algorithm.start(blocks, found.prior, found.z, seed, families=found.families)

    return run.Sampler(
        start=first,
        steps=[partial(one, schedule=schedule) for one in algorithm.steps],
        log_joint=algorithm.log_joint,
        draw=partial(make_draw, number=number, held=algorithm.held),
        n_clusters=count_clusters,
        given=tuple(block.data for block in blocks),
    )


class Start(NamedTuple):
    """Where a chain starts: labels of all objects, and hyper-parameters."""

    z: np.ndarray
    prior: Any
    families: Any = None  # None: those of the blocks


class MixtureChain(NamedTuple):
    """A finished chain: its draws, where it stands, and its families with their hyper-parameters averaged."""

    trace: Trace
    chain: Any
    families: tuple[Any, ...]
    reason: str


def run_mixture_chain(
    blocks: Sequence[Block],
    prior: Any,
    z: np.ndarray,
    schedule: Schedule,
    *,
    seed: int,
    number: int = 0,
    families: Sequence[Any] | None = None,
    algorithm: Algorithm | None = None,
    control: run.Control | None = None,
    checkpoint: Checkpoint | None = None,
) -> MixtureChain:
    """One chain from given labels; one that ends before its first draw leaves its last state."""
    sampler = mixture_sampler(
        algorithm or collapsed_gibbs(), blocks, lambda: Start(z, prior, families), schedule,
        seed=seed, number=number,
    )  # fmt: skip
    found = run.run_chain(sampler, schedule, number=number, control=control, checkpoint=checkpoint)
    draws = found.draws or [found.last]
    return MixtureChain(
        join([draw.trace for draw in draws]),
        found.state,
        average_families([draw.families for draw in draws]),
        found.reason,
    )


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


def count_clusters(chain: Any) -> int:
    """Clusters in use."""
    return int(np.count_nonzero(chain.seating.n))


def make_draw(
    chain: Any, value: float, number: int, held: Callable[[Any], HeldClusters] = nothing_held
) -> ChainDraw:
    """What is kept of a chain's state; ``value`` is its log joint, ``number`` that of the chain."""
    labels, columns = _labels_of_draw(chain, held(chain))
    concentration = getattr(chain.prior, "concentration", getattr(chain.prior, "gamma", np.nan))
    discount = getattr(chain.prior, "discount", np.nan)
    trace = Trace(
        labels,
        np.array([value]),
        np.array([count_clusters(chain)]),
        np.array([float(concentration)]),
        np.array([float(discount)]),
        np.array([number]),
    )
    return ChainDraw(
        trace,
        tuple(block.family for block in chain.seating.blocks),
        columns,
    )


def _labels_of_draw(chain: Any, held: HeldClusters) -> tuple[Any, HeldClusters]:
    """Canonical labels [1, object] where the labels of the chain are, and what is held by label."""
    if is_on_device(chain.seating.z):  # its slots are labels without gaps
        z, K = chain.seating.z, count_clusters(chain)
        names = first_names(z, K)
        labels = renamed(z, names, label_dtype(K).name)[None, :]
        return labels, None if held is None else tuple(
            None if columns is None else columns[:, np.argsort(names)] for columns in held
        )
    slots = sweep.labels(chain.seating)
    z = slots if chain.prior.fixed_labels else canonical(slots, missing=-1)
    return z.astype(label_dtype(int(z.max()) + 1))[None], _by_label(held, slots, z)


def _by_label(held: HeldClusters, slots: np.ndarray, z: np.ndarray) -> HeldClusters:
    """Copies of the columns of ``held`` in the order of the labels; zeros for labels without objects."""
    if held is None:
        return None
    K = int(z.max()) + 1
    slot_of_label = np.full(K, -1)
    slot_of_label[z[z >= 0]] = slots[z >= 0]
    return tuple(
        None if columns is None else np.where(slot_of_label >= 0, columns[:, slot_of_label], 0.0)
        for columns in held
    )
