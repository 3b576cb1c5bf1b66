"""Chains: starts, several chains, and the one partition that summarizes their draws."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from partita.engines.checkpoints import Checkpoint
from partita.engines.climb.seeding import label_statistics
from partita.engines.gibbs import outliers
from partita.engines.gibbs.chain import (
    Algorithm,
    Schedule,
    Start,
    average_families,
    cache_dtype,
    collapsed_gibbs,
    mixture_sampler,
)
from partita.engines.gibbs.starts import find_start
from partita.engines.gibbs.sweep import NO_LIMIT
from partita.engines.nonconjugate import neal8
from partita.engines.nonconjugate import parameters as explicit
from partita.engines.passes.replicates import any_partly_seen
from partita.engines.passes.rows import Parameters, Statistics, assign_rows, n_cache, n_stats, predictive
from partita.engines.run import Chains, Run, Sampler, run_chains
from partita.engines.subclusters import chain as subclusters
from partita.execution import Serial
from partita.families import FAMILIES, Block, Ordinal, entry_of, take
from partita.families.contract import expect, is_conjugate
from partita.fitting.contract import EngineResult, Request
from partita.fitting.objects import check_exchangeable, log_shares, rows_of_objects
from partita.fitting.outliers import OutlierModel, Verdict, fit_background, log_density, summarize_draws
from partita.fitting.settling import CHECKS, ONE_CHAIN, settling
from partita.labels import canonical
from partita.partitions import FiniteDirichlet, bind, specify, with_concentration
from partita.posterior import confidence, map_draw, point_estimate, vote
from partita.posterior.agreement import draws_to_sum
from partita.trace import Trace, join, select_draws, trace_bytes

STAND_INS = {"real": "gaussian", "count": "poisson", "binary": "bernoulli", "categorical": "categorical"}
MAX_LABELS = 50_000_000  # labels of draws that the search for one partition reads
MIN_DRAWS = 40
MAX_ITERATIONS_PER_SECOND = 1000  # of one chain: with a time limit no more draws are expected
N_COMPLETIONS = 5  # rounds in which hidden coordinates are replaced by their expectation
N_LATENT = 25  # the same for ordinal columns, in which no cell shows its latent variable


def resolve_sampling_prior(
    prior: Any, n_clusters: int | None, max_clusters: int | None, concentration: float | None
) -> Any:
    """The prior of a chain: any prior; with a given number of clusters, the symmetric Dirichlet.

    Examples
    --------
    >>> resolve_sampling_prior("dirichlet_process", None, None, 2.0)
    DirichletProcess(concentration=2.0)
    >>> resolve_sampling_prior("auto", 3, None, None)
    FiniteDirichlet(concentration=3.0, n_components=3)
    """
    if n_clusters is not None:
        return FiniteDirichlet(float(n_clusters if concentration is None else concentration), int(n_clusters))
    if isinstance(prior, str):
        bounded = prior in ("finite", "stick_breaking") and max_clusters is not None
        options = {"n_components": int(max_clusters)} if bounded and max_clusters is not None else {}
        prior = specify("mfm" if prior == "auto" else prior, **options)
    return prior if concentration is None else with_concentration(prior, concentration)


def bytes_of_chains(blocks: Sequence[Block], weights: np.ndarray, ask: Request) -> int:
    """Approximate peak memory of the chains in bytes, without the table."""
    N, K = int(weights.sum()), 100
    rows = sum(
        n_stats(block.family) + (n_cache(block.family) if is_conjugate(block.family) else 0)
        for block in blocks
    )
    state = 8 * (3 * N + 2 * K * rows)
    n_draws = max(CHECKS[-1], ONE_CHAIN[1]) if ask.n_draws is None else ask.n_draws
    n_draws = int(min(n_draws, ask.control.time_limit * MAX_ITERATIONS_PER_SECOND / ask.thin + 1))
    return ask.n_chains * (state + trace_bytes(n_draws, N, K)) + trace_bytes(n_draws * ask.n_chains, N, K)


def fit_chains(blocks: Sequence[Block], weights: np.ndarray, ask: Request) -> EngineResult:
    """Collapsed Gibbs with split-merge moves; auxiliary clusters where a family is not conjugate."""
    rows = rows_of_objects(weights)
    whole = len(rows) == len(weights) and bool(np.all(weights == 1))
    objects = blocks if whole else [block._replace(data=take(block.data, rows)) for block in blocks]
    if explicit.non_conjugate(blocks):
        algorithm = neal8.algorithm()
    elif ask.outliers:
        algorithm = outliers.algorithm(log_density(fit_background(blocks, weights), objects))
    else:
        families = [block.family for block in blocks]
        algorithm = collapsed_gibbs(cache_dtype(ask.precision, families, len(rows)))
    return _fit(algorithm, objects, blocks, rows, weights, ask)


def fit_subclusters(blocks: Sequence[Block], weights: np.ndarray, ask: Request) -> EngineResult:
    """The sampler whose steps are sums over rows: for large tables and many cores."""
    rows = rows_of_objects(weights)
    check_exchangeable("subclusters", ask.prior)
    executor = ask.executor if ask.n_chains == 1 else Serial()
    counts = weights.astype(np.int64)
    return _fit(subclusters.algorithm(counts, executor), blocks, blocks, rows, weights, ask, counts)


def _fit(algorithm: Algorithm, objects, blocks, rows, weights, ask: Request, counts=None) -> EngineResult:
    """Run the chains, find the one partition, and the statistics that go with it."""
    rule = settling(ask.n_chains, algorithm.warm_up) if None in (ask.n_draws, ask.burn_in) else None
    burn_in, n_draws = ask.burn_in, ask.n_draws
    if rule is None:
        burn_in = ONE_CHAIN[0] if burn_in is None else burn_in
        n_draws = ONE_CHAIN[1] if n_draws is None else n_draws
    schedule = Schedule(
        n_draws=n_draws,
        burn_in=burn_in,
        thin=ask.thin,
        learn_concentration=ask.learn_concentration,
        learn_likelihood=ask.learn_likelihood,
        limit=_limit(ask),
        warm_up=algorithm.warm_up if burn_in is None else None,
    )
    seeds = [int(rng.integers(2**63)) for rng in ask.rngs]

    def make(number: int) -> Sampler:
        begin = partial(_start, objects, rows, weights, ask, schedule, number, seeds[number], counts)
        return mixture_sampler(algorithm, objects, begin, schedule, seed=seeds[number], number=number)

    def checkpoint(number: int) -> Checkpoint | None:
        if ask.folder is None:
            return None
        model = (algorithm.name, ask.prior, ask.precision, ask.init, schedule)
        families = [block.family for block in blocks]  # the folder has a digest of the data
        return Checkpoint(ask.folder, number, (seeds[number], model, families))

    chains = run_chains(
        make, ask.n_chains, schedule, control=ask.control, executor=ask.executor, checkpoint=checkpoint,
        settling=rule,
    )  # fmt: skip
    return _summarized(chains, blocks, rows, weights, ask)


def _limit(ask: Request) -> int:
    """Largest number of clusters of a chain: partitions with more clusters have no mass under a finite prior."""
    limit = NO_LIMIT if ask.limit is None else ask.limit
    return min(limit, ask.prior.n_components) if isinstance(ask.prior, FiniteDirichlet) else limit


def _start(objects, rows, weights, ask: Request, schedule: Schedule, number: int, seed: int, counts) -> Start:
    """Where a chain starts: from a sample of the rows, from random labels, or from the user's labels."""
    families = tuple(block.family for block in objects)
    if not isinstance(ask.init, str):
        z = ask.init[rows]
        return Start(_spread_labels(objects, z) if counts is None else canonical(z), ask.prior, families)
    if ask.init == "random":
        K = min(ask.limit or 10, len(rows), getattr(ask.prior, "n_components", len(rows)))
        z = np.random.default_rng(seed).integers(K, size=len(rows))
        return Start(canonical(z), ask.prior, families)
    shared = None if counts is None or np.all(counts == 1) else rows
    stand_ins = [_stand_in(block) for block in objects]
    start = find_start(stand_ins, ask.prior, schedule, seed=seed, apart=number % 2 == 1, object_rows=shared)
    kept = [
        learned if is_conjugate(family) else family
        for learned, family in zip(start.families, families, strict=True)
    ]
    return start._replace(families=tuple(kept))


def _stand_in(block: Block) -> Block:
    """A conjugate block over the same columns, for a family without a closed-form predictive."""
    if is_conjugate(block.family):
        return block
    name = STAND_INS[entry_of(block.family).kind]
    context: dict[str, Any] = {"exposure": None}
    if name == "categorical":
        context["n_levels"] = block.data.max(axis=0) + 1
    return FAMILIES[name].block(block.data, block.columns, np.ones(len(block.data)), **context)


def _spread_labels(objects: Sequence[Block], z: np.ndarray) -> np.ndarray:
    """Canonical labels; objects without one (-1) join the cluster that predicts them best."""
    z = np.asarray(z)
    if z.min() >= 0:
        return canonical(z)
    K = int(z.max()) + 1
    statistics = label_statistics(objects, np.ones(len(z)), z, K)
    found = assign_rows(
        predictive(objects, statistics.S, np.log(np.maximum(statistics.n, 1e-9))), len(z)
    ).labels
    return canonical(np.where(z < 0, found, z))


def _summarized(chains: Chains, blocks, rows, weights, ask: Request) -> EngineResult:
    """One partition for all draws, with its statistics and hyper-parameters."""
    trace = join([draw.trace for draw in chains.draws])
    families = average_families([draw.families for draw in chains.draws])
    prior = chains.runs[0].state.prior
    if ask.learn_concentration and np.isfinite(trace.concentration).all():
        prior = with_concentration(prior, float(np.exp(np.log(trace.concentration).mean())))
        prior = bind(prior, float(weights.sum()))
    share = 0.0
    if ask.outliers:
        verdict, share = summarize_draws(trace, rows, lambda draws: _estimate(draws, ask))
    else:
        estimate = _estimate(trace, ask)
        verdict = Verdict(estimate, confidence(trace.labels, estimate).objects, np.zeros(len(estimate)))
    first = np.searchsorted(rows, np.arange(len(weights)))  # a row takes the label of its first replicate
    present = weights > 0
    z = np.full(len(weights), -1)
    z[present] = verdict.labels[first[present]]
    shown = [block._replace(family=family) for block, family in zip(blocks, families, strict=True)]
    statistics, parameters = _statistics(shown, weights, z, int(ask.rngs[0].integers(2**31)))
    log_weights = log_shares(prior, statistics.n)
    sure, outlying = np.full(len(weights), np.nan), np.full(len(weights), np.nan)
    sure[present], outlying[present] = verdict.confidence[first[present]], verdict.probability[first[present]]
    run = Run(None, trace.log_joint.tolist(), chains.reason == "done", chains.reason, 0.0)
    if parameters is not None:
        parameters = Parameters(log_weights, parameters)
    return EngineResult(
        families, prior, statistics, parameters, log_weights, run, [], chains.n_iter,
        trace=trace, provisional=chains.provisional, burn_in=chains.burn_in, agreed_at=chains.agreed_at,
        object_rows=rows, labels=z, confidence=sure,
        outliers=OutlierModel(fit_background(blocks, weights), share) if ask.outliers else None,
        outlier_probability=outlying,
    )  # fmt: skip


def _estimate(trace: Trace, ask: Request) -> np.ndarray:
    """The one partition that summarizes the draws, from as many of them as are quick to search."""
    if ask.partition != "map":
        trace = select_draws(trace, draws_to_sum(trace))
    draws = trace.labels
    if ask.partition == "map":
        return map_draw(draws, trace.log_joint).labels
    n_draws = max(MAX_LABELS // draws.shape[1], MIN_DRAWS)
    if len(draws) > n_draws:
        draws = draws[np.linspace(0, len(draws) - 1, n_draws).round().astype(int)]
    if ask.partition == "votes":
        return vote(draws).labels
    return point_estimate(draws, ask.partition, max_clusters=ask.limit, random_state=ask.rngs[0]).labels


def _statistics(blocks, weights, z, seed: int) -> tuple[Statistics, tuple[np.ndarray, ...] | None]:
    """Statistics of the labels, and parameters where a family is not conjugate.

    The parameters then take the place of the statistics of that family.
    """
    K = int(z.max()) + 1
    if explicit.non_conjugate(blocks):
        seen = np.repeat(np.flatnonzero(z >= 0), weights[z >= 0].astype(np.int64))
        objects = [block._replace(data=take(block.data, seen)) for block in blocks]
        thetas = explicit.parameters(objects, z[seen], K, seed)
        S = tuple(
            explicit.statistics(block, z[seen], K) if is_conjugate(block.family) else theta
            for block, theta in zip(objects, thetas, strict=True)
        )
        n = np.bincount(z[seen], minlength=K).astype(float)
        return Statistics(n, S, np.nan, 0.0, 0.0), thetas
    statistics = label_statistics(blocks, weights, z, K)
    if any_partly_seen(blocks):
        latent = any(isinstance(block.family, Ordinal) for block in blocks)
        for _ in range(N_LATENT if latent else N_COMPLETIONS):
            thetas = tuple(expect(block.family, S) for block, S in zip(blocks, statistics.S, strict=True))
            statistics = label_statistics(blocks, weights, z, K, thetas)
    return statistics._replace(entropy=0.0), None
