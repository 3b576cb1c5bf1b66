"""Chains: starts, several chains, and the one partition that summarizes their draws."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from partita.engines.checkpoints import Checkpoint
from partita.engines.climb.seeding import label_statistics
from partita.engines.gibbs import outliers, tied_values
from partita.engines.gibbs.chain import (
    Algorithm,
    ChainDraw,
    Schedule,
    average_families,
    cache_dtype,
    collapsed_gibbs,
    log_hyper_density,
    mixture_sampler,
)
from partita.engines.gibbs.starts import start_chain
from partita.engines.gibbs.sweep import NO_LIMIT
from partita.engines.nonconjugate import neal8
from partita.engines.nonconjugate import parameters as explicit
from partita.engines.passes.replicates import any_partly_seen
from partita.engines.passes.rows import Parameters, Statistics, n_cache, n_stats
from partita.engines.run import Chains, Run, Sampler, run_chains
from partita.engines.subclusters import chain as subclusters
from partita.execution import Serial, check_memory
from partita.execution.device import is_on_device, namespace
from partita.execution.device_labels import DeviceDraws
from partita.execution.weights import are_ones, total_weight
from partita.families import Block, Ordinal, take_block
from partita.families.contract import expect, is_conjugate
from partita.fitting.contract import EngineResult, Request
from partita.fitting.objects import check_exchangeable, log_shares, rows_of_objects
from partita.fitting.outliers import OutlierModel, Verdict, fit_background, log_density, summarize_draws
from partita.fitting.predictive import summarize_predictive
from partita.fitting.settling import CHECKS, ONE_CHAIN, settling
from partita.labels import canonical
from partita.partitions import (
    FiniteDirichlet,
    bind,
    log_hyperprior,
    specify,
    with_concentration,
    with_parameters,
)
from partita.posterior import confidence, map_draw, point_estimate, vote
from partita.posterior.agreement import draws_to_sum
from partita.posterior.device_votes import best_on_device, confidence_on_device, vote_on_device
from partita.posterior.draws import thin_draws
from partita.trace import Trace, join, select_draws, trace_bytes

MAX_LABELS = 50_000_000  # labels of draws that the search for one partition reads
MIN_DRAWS = 40
N_COMPLETIONS = 5  # rounds in which hidden coordinates are replaced by their expectation
AUTO_GAMMA = 3.0  # Dirichlet parameter of the weights by default: groups of comparable size
ON_DEVICE = ("votes", "map")  # how draws on a device become one partition
N_LATENT = 25  # the same for ordinal columns, in which no cell shows its latent variable


def learns_concentration(
    prior: Any, n_clusters: int | None, concentration: float | None, *, samples: bool
) -> bool:
    """Whether a fit learns the concentration: not if it is given, and chains do not where the prior is not given.

    Learned from tables whose groups are not quite of the family, it lets the tails of a group become clusters of a
    few rows each.

    Examples
    --------
    >>> learns_concentration("mfm", None, None, samples=True)
    True
    >>> learns_concentration("auto", None, None, samples=True)
    False
    """
    held = samples and isinstance(prior, str) and prior == "auto"
    return n_clusters is None and concentration is None and not held


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
        prior = specify("mfm", gamma=AUTO_GAMMA) if prior == "auto" else specify(prior, **options)
    return prior if concentration is None else with_concentration(prior, concentration)


def bytes_of_chains(blocks: Sequence[Block], weights: np.ndarray, ask: Request) -> int:
    """Approximate peak memory of the chains in bytes, without the table."""
    N, K = int(weights.sum()), 100
    rows = sum(
        n_stats(block.family) + (n_cache(block.family) if is_conjugate(block.family) else 0)
        for block in blocks
    )
    state = 8 * (3 * N + 2 * K * rows)
    n_draws = ask.control.most_draws(_most_draws(ask), ask.thin)
    return ask.n_chains * (state + trace_bytes(n_draws, N, K)) + trace_bytes(n_draws * ask.n_chains, N, K)


def _most_draws(ask: Request) -> int:
    """Largest number of draws of a chain."""
    return max(CHECKS[-1], ONE_CHAIN[1]) if ask.n_draws is None else ask.n_draws


def fit_chains(blocks: Sequence[Block], weights: np.ndarray, ask: Request) -> EngineResult:
    """Collapsed Gibbs with split-merge moves; auxiliary clusters where a family is not conjugate."""
    rows = rows_of_objects(weights)
    objects = _of_objects(blocks, rows, weights)
    if explicit.non_conjugate(blocks):
        algorithm = neal8.algorithm()
    elif ask.outliers:
        algorithm = outliers.algorithm(log_density(fit_background(blocks, weights), objects))
    else:
        families = [block.family for block in blocks]
        algorithm = collapsed_gibbs(cache_dtype(ask.precision, families, len(rows)))
    return _fit(algorithm, objects, blocks, rows, weights, ask)


def _of_objects(blocks: Sequence[Block], rows: np.ndarray, weights: np.ndarray) -> Sequence[Block]:
    """Blocks with one row for each object."""
    whole = len(rows) == len(weights) and bool(np.all(weights == 1))
    return blocks if whole else [take_block(block, rows) for block in blocks]


def fit_subclusters(blocks: Sequence[Block], weights: np.ndarray, ask: Request) -> EngineResult:
    """The sampler whose steps are sums over rows: for large tables and many cores, or a device."""
    check_exchangeable("subclusters", ask.prior)
    if is_on_device(getattr(blocks[0].data, "values", None)):
        return _fit_on_device(blocks, weights, ask)
    rows = rows_of_objects(weights)
    executor = ask.executor if ask.n_chains == 1 else Serial()
    if tied_values.has_ties(blocks):  # every copy of a row has tied values of its own
        each = np.ones(len(rows), np.int64)
        algorithm = subclusters.algorithm(each, executor)
        return _fit(algorithm, _of_objects(blocks, rows, weights), blocks, rows, weights, ask)
    counts = weights.astype(np.int64)
    return _fit(subclusters.algorithm(counts, executor), blocks, blocks, rows, weights, ask, counts)


def _fit_on_device(blocks: Sequence[Block], weights: np.ndarray, ask: Request) -> EngineResult:
    """One chain after the other; labels and their summary stay on the device."""
    if not are_ones(weights):
        raise ValueError(
            "on a device every row is one object of a chain: leave sample_weight out, use inference="
            "'vb', or move the table to the host"
        )
    if ask.partition not in ON_DEVICE:
        raise ValueError(
            f"partition={ask.partition!r} searches over draws on the host: use {' or '.join(map(repr, ON_DEVICE))}, "
            "or move the table to the host"
        )
    ones = np.broadcast_to(np.int64(1), len(weights))
    init = ask.init if isinstance(ask.init, str) else canonical(ask.init)
    chains = _run(subclusters.algorithm(ones), blocks, None, ask._replace(executor=Serial(), init=init))
    return _summarized(chains, blocks, None, weights, ask)


def _fit(algorithm: Algorithm, objects, blocks, rows, weights, ask: Request, counts=None) -> EngineResult:
    """Run the chains, find the one partition, and the statistics that go with it."""
    check_memory(
        bytes_of_chains(blocks, weights, ask),
        f"{ask.n_chains} chains of {_most_draws(ask)} draws over {len(rows):,} objects",
        "ask for fewer draws (n_draws, n_chains), or fit a sample of the rows",
    )
    init = ask.init if isinstance(ask.init, str) else ask.init[rows]
    chains = _run(algorithm, objects, None if counts is None else rows, ask._replace(init=init))
    return _summarized(chains, blocks, rows, weights, ask)


def _run(algorithm: Algorithm, objects, object_rows, ask: Request) -> Chains:
    """Run the chains; ``object_rows`` is the row of each object where these are not the rows of ``objects``."""
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
        begin = partial(
            start_chain,
            objects,
            ask.prior,
            schedule,
            ask.init,
            seed=seeds[number],
            number=number,
            object_rows=object_rows,
        )
        return mixture_sampler(algorithm, objects, begin, schedule, seed=seeds[number], number=number)

    def checkpoint(number: int) -> Checkpoint | None:
        if ask.folder is None:
            return None
        model = (algorithm.name, ask.prior, ask.precision, ask.init, schedule)
        families = [block.family for block in objects]  # the folder has a digest of the data
        return Checkpoint(ask.folder, number, (seeds[number], model, families))

    return run_chains(
        make, ask.n_chains, schedule, control=ask.control, executor=ask.executor, checkpoint=checkpoint,
        settling=rule,
    )  # fmt: skip


def _limit(ask: Request) -> int:
    """Largest number of clusters of a chain: partitions with more clusters have no mass under a finite prior."""
    limit = NO_LIMIT if ask.limit is None else ask.limit
    return min(limit, ask.prior.n_components) if isinstance(ask.prior, FiniteDirichlet) else limit


def _summarized(chains: Chains, blocks, rows, weights, ask: Request) -> EngineResult:
    """One partition for all draws, with its statistics and hyper-parameters.

    ``rows`` has the row of each object; None if the rows are on a device, where every row is one.
    """
    trace = _joined(chains.draws)
    if ask.partition == "map":
        reference = [block.family for block in blocks]
        searched = trace._replace(log_joint=log_posterior(chains.draws, reference, ask))
    else:
        searched = trace
    families = average_families([draw.families for draw in chains.draws])
    prior = chains.runs[0].state.prior
    if ask.learn_concentration:
        prior = average_prior(prior, trace, total_weight(weights))
    share, outlying = 0.0, None
    if rows is None:
        z = _estimate_on_device(searched, ask)
        sure = confidence_on_device(trace.labels, z)
    else:
        if ask.outliers:
            verdict, share = summarize_draws(searched, rows, lambda draws: _estimate(draws, ask))
        else:
            estimate = _estimate(searched, ask)
            verdict = Verdict(estimate, confidence(trace.labels, estimate).objects, np.zeros(len(estimate)))
        z, sure, outlying = _of_rows(verdict, rows, weights)
    shown = [block._replace(family=family) for block, family in zip(blocks, families, strict=True)]
    statistics, parameters = _statistics(shown, weights, z, int(ask.rngs[0].integers(2**31)))
    log_weights = log_shares(prior, statistics.n)
    run = Run(None, trace.log_joint.tolist(), chains.reason == "done", chains.reason, 0.0)
    if parameters is not None:
        parameters = Parameters(log_weights, parameters)
    return EngineResult(
        families, prior, statistics, parameters, log_weights, run, [], chains.n_iter,
        trace=trace, provisional=chains.provisional, burn_in=chains.burn_in, agreed_at=chains.agreed_at,
        object_rows=rows, labels=z, confidence=sure,
        draws=summarize_predictive(
            chains.draws, blocks, rows, weights, prior, _limit(ask), outliers=ask.outliers
        ),
        outliers=OutlierModel(fit_background(blocks, weights), share) if ask.outliers else None,
        outlier_probability=outlying,
    )  # fmt: skip


def _joined(draws: Sequence[ChainDraw]) -> Trace:
    """The trace of all draws; their labels stay where they are."""
    traces = [draw.trace for draw in draws]
    if not is_on_device(traces[0].labels):
        return join(traces)
    labels = DeviceDraws([one.labels[0, ...] for one in traces], [one.n_clusters[0] for one in traces])
    numbers = join([one._replace(labels=np.empty((1, 0), np.int8)) for one in traces])
    return numbers._replace(labels=labels)


def _of_rows(verdict: Verdict, rows: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, ...]:
    """Label, confidence and probability of being an outlier of each row; a row has those of its first replicate."""
    first, present = np.searchsorted(rows, np.arange(len(weights))), weights > 0
    z = np.full(len(weights), -1)
    z[present] = verdict.labels[first[present]]
    sure, outlying = np.full(len(weights), np.nan), np.full(len(weights), np.nan)
    sure[present], outlying[present] = verdict.confidence[first[present]], verdict.probability[first[present]]
    return z, sure, outlying


def log_posterior(draws: Sequence[ChainDraw], reference: Sequence[Any], ask: Request) -> np.ndarray:
    """Log joint of each draw with the density of what was learned: hyper-parameters, concentration, discount."""
    out = np.array([draw.trace.log_joint[0] for draw in draws])
    for t, draw in enumerate(draws):
        if ask.learn_likelihood:
            out[t] += log_hyper_density(draw.families, reference)
        if ask.learn_concentration:
            out[t] += log_hyperprior(float(draw.trace.concentration[0]), float(draw.trace.discount[0]))
    return out


def average_prior(prior: Any, trace: Trace, n_objects: float) -> Any:
    """The prior with the geometric mean of the concentration and the mean discount of all draws."""
    concentration = float(np.exp(np.log(trace.concentration).mean()))
    return bind(with_parameters(prior, concentration, float(trace.discount.mean())), n_objects)


def _estimate_on_device(trace: Trace, ask: Request) -> Any:
    """See :func:`_estimate`."""
    if ask.partition == "map":
        return best_on_device(trace.labels, trace.log_joint)
    draws = select_draws(trace, draws_to_sum(trace)).labels
    return vote_on_device(thin_draws(draws, MAX_LABELS, MIN_DRAWS))


def _estimate(trace: Trace, ask: Request) -> np.ndarray:
    """The one partition that summarizes the draws, from as many of them as are quick to search."""
    if ask.partition != "map":
        trace = select_draws(trace, draws_to_sum(trace))
    draws = trace.labels
    if ask.partition == "map":
        return map_draw(draws, trace.log_joint).labels
    draws = thin_draws(draws, MAX_LABELS, MIN_DRAWS)
    if ask.partition == "votes":
        return vote(draws).labels
    return point_estimate(draws, ask.partition, max_clusters=ask.limit, random_state=ask.rngs[0]).labels


def _statistics(blocks, weights, z, seed: int) -> tuple[Statistics, tuple[np.ndarray, ...] | None]:
    """Statistics of the labels, and parameters where a family is not conjugate.

    The parameters then take the place of the statistics of that family.
    """
    K = (int(namespace(z).max(z)) if is_on_device(z) else int(z.max())) + 1
    if explicit.non_conjugate(blocks):
        seen = np.repeat(np.flatnonzero(z >= 0), weights[z >= 0].astype(np.int64))
        objects = [take_block(block, seen) for block in blocks]
        thetas = explicit.parameters(objects, z[seen], K, seed)
        S = tuple(
            explicit.statistics(block, z[seen], K) if is_conjugate(block.family) else theta
            for block, theta in zip(objects, thetas, strict=True)
        )
        n = np.bincount(z[seen], minlength=K).astype(float)
        return Statistics(n, S, np.nan, 0.0, 0.0), thetas
    statistics = label_statistics(blocks, weights, z, K)
    if tied_values.has_ties(blocks):
        rng = np.random.default_rng(seed)
        drawn = [
            label_statistics(tied_values.complete(blocks, weights, z, K, rng), weights, z, K).S
            for _ in range(N_COMPLETIONS)
        ]
        return statistics._replace(S=tuple(np.mean(same, axis=0) for same in zip(*drawn)), entropy=0.0), None
    if any_partly_seen(blocks):
        latent = any(isinstance(block.family, Ordinal) for block in blocks)
        for _ in range(N_LATENT if latent else N_COMPLETIONS):
            thetas = tuple(expect(block.family, S) for block, S in zip(blocks, statistics.S, strict=True))
            statistics = label_statistics(blocks, weights, z, K, thetas)
    return statistics._replace(entropy=0.0), None
