"""How a mixture is sampled: copies of rows, starts, several chains, and the one partition that sums them up."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from partita.engines.climb.seeding import label_statistics
from partita.engines.gibbs import outliers
from partita.engines.gibbs.chain import (
    COLLAPSED,
    ChainRun,
    Sampler,
    Schedule,
    average_families,
    collapsed_sampler,
    run_chain,
)
from partita.engines.gibbs.checkpoints import ChainKeeper
from partita.engines.gibbs.starts import Start, find_start
from partita.engines.gibbs.sweep import MANY
from partita.engines.nonconjugate import neal8
from partita.engines.nonconjugate import parameters as explicit
from partita.engines.passes.replicates import any_partly_seen
from partita.engines.passes.rows import Parameters, Statistics, assign_rows, n_cache, n_stats, predictive
from partita.engines.run import Progress, Run
from partita.engines.subclusters import chain
from partita.execution import Serial
from partita.families import FAMILIES, Block, entry_of, take
from partita.families.contract import expect, is_conjugate
from partita.fitting.climb import Fitted, Request
from partita.fitting.outliers import Noise, Verdict, fit_background, log_density, sum_up
from partita.labels import canonical
from partita.partitions import FiniteDirichlet, StickBreaking, bind, log_mass, specify, with_concentration
from partita.posterior import confidence, map_draw, point_estimate, vote
from partita.trace import Trace, join, trace_bytes

__all__ = ["bytes_of_chains", "check_copies", "fit_chains", "fit_subclusters", "resolve_sampling_prior"]

STAND_INS = {"real": "gaussian", "count": "poisson", "binary": "bernoulli", "categorical": "categorical"}
MOST_LABELS = 50_000_000  # labels of draws that the search for one partition looks at
FEWEST_DRAWS = 40
COMPLETIONS = 5  # rounds of filling in hidden coordinates by their expectation


def resolve_sampling_prior(
    prior: Any, n_clusters: int | None, max_clusters: int | None, concentration: float | None
) -> Any:
    """The prior of a chain: any there is, with a given number of clusters the symmetric Dirichlet.

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


def check_copies(weights: np.ndarray) -> np.ndarray:
    """The row of each object: a row of weight w is w objects.

    Examples
    --------
    >>> check_copies(np.array([1.0, 0.0, 2.0]))
    array([0, 2, 2])
    >>> check_copies(np.array([1.0, 0.5]))
    Traceback (most recent call last):
    ...
    ValueError: sample_weight is 0.5 in row 1: chains read a weight as so many copies of a row, so it must be a whole
    number; round it, or use inference='vb', which takes fractions
    """
    bad = np.flatnonzero(weights != np.floor(weights))
    if len(bad):
        raise ValueError(
            f"sample_weight is {weights[bad[0]]:g} in row {bad[0]}: chains read a weight as so many copies of a row, "
            "so it must be a whole number; round it, or use inference='vb', which takes fractions"
        )
    return np.repeat(np.arange(len(weights)), weights.astype(np.int64))


def bytes_of_chains(blocks: Sequence[Block], weights: np.ndarray, ask: Request) -> int:
    """About how much memory the chains take at their peak, beside the table."""
    N, K = int(weights.sum()), 100
    rows = sum(
        n_stats(block.family) + (n_cache(block.family) if is_conjugate(block.family) else 0)
        for block in blocks
    )
    state = 8 * (3 * N + 2 * K * rows)
    return ask.n_chains * (state + trace_bytes(ask.n_draws, N, K)) + trace_bytes(
        ask.n_draws * ask.n_chains, N, K
    )


def fit_chains(blocks: Sequence[Block], weights: np.ndarray, ask: Request) -> Fitted:
    """Collapsed Gibbs with split-merge moves; auxiliary clusters where a family is not conjugate."""
    if getattr(ask.executor, "journal", None) is not None:
        raise ValueError(
            "inference='gibbs' keeps no checkpoints: leave resume= out, or use 'subclusters', 'vb' or 'em'"
        )
    rows = check_copies(weights)
    whole = len(rows) == len(weights) and bool(np.all(weights == 1))
    objects = blocks if whole else [block._replace(data=take(block.data, rows)) for block in blocks]
    collapsed = collapsed_sampler(np.float64) if ask.precision == "double" else COLLAPSED
    sampler = neal8.sampler() if explicit.non_conjugate(blocks) else collapsed
    if ask.noise:
        laws = fit_background(blocks, weights)
        sampler = outliers.sampler(log_density(laws, objects))
    return _fit(objects, blocks, rows, weights, ask, lambda: sampler)


def fit_subclusters(blocks: Sequence[Block], weights: np.ndarray, ask: Request) -> Fitted:
    """The sampler whose steps are a map over rows and a sum: for large tables and many cores."""
    rows = check_copies(weights)
    if isinstance(ask.prior, StickBreaking):
        raise ValueError(
            "inference='subclusters' wants an exchangeable prior: 'mfm', 'dirichlet_process', 'pitman_yor'"
        )
    executor = ask.executor if ask.n_chains == 1 else Serial()
    counts = weights.astype(np.int64)
    return _fit(blocks, blocks, rows, weights, ask, lambda: chain.sampler(counts, executor), counts)


def _fit(objects, blocks, rows, weights, ask, make_sampler: Callable[[], Sampler], counts=None) -> Fitted:
    """Run the chains, find the one partition, and the statistics that go with it."""
    schedule = Schedule(
        n_draws=ask.n_draws,
        burn_in=ask.burn_in,
        thin=ask.thin,
        learn_concentration=ask.learn_concentration,
        learn_likelihood=ask.learn_likelihood,
        limit=_limit(ask),
    )
    began, halt, reasons = time.perf_counter(), threading.Event(), []
    seeds = [int(rng.integers(2**63)) for rng in ask.rngs]

    def one(index: int) -> ChainRun:
        keeper = _keeper(ask, index, (seeds[index], len(rows), *map(int, schedule[:3])), blocks)
        if keeper is not None and keeper.begun:
            start = Start(np.zeros(0, np.int64), ask.prior, tuple(block.family for block in blocks))
        else:
            start = _start(objects, rows, weights, ask, schedule, index, seeds[index], counts)
        started = time.perf_counter()
        share = math.inf if ask.time_limit is None else ask.time_limit / _rounds(ask)

        def after(iteration: int, n_clusters: int, log_joint: float) -> bool:
            seconds = time.perf_counter() - began
            progress = Progress(index, iteration, log_joint, n_clusters, seconds)
            if ask.callback is not None and ask.callback(progress):
                reasons.append("stopped")
                halt.set()
            late = time.perf_counter() - started > share
            if late:
                reasons.append("time_limit")
            return halt.is_set() or late

        return run_chain(
            objects, start.prior, start.z, schedule, seed=seeds[index], index=index, families=start.families,
            callback=after, sampler=make_sampler(), keep_partial=ask.keep_partial, keeper=keeper,
        )  # fmt: skip

    runs = _run_all(one, ask, halt, reasons)
    drawn = [run for run in runs if run.chain.iteration >= ask.burn_in + ask.thin]
    return _summed_up(drawn or runs, blocks, rows, weights, ask, next(iter(reasons), "done"))


def _keeper(ask: Request, index: int, about: tuple[int, ...], blocks: Sequence[Block]) -> ChainKeeper | None:
    """Where a chain is kept on disk, if the user has named a folder."""
    journal = getattr(ask.executor, "journal", None)
    if journal is None:
        return None
    return ChainKeeper(journal.folder, index, (*about, *(tuple(block.family) for block in blocks)))


def _limit(ask: Request) -> int:
    """How many clusters a chain may have: no more than a finite prior has, so that none starts where it has no mass."""
    most = MANY if ask.limit is None else ask.limit
    return min(most, ask.prior.n_components) if isinstance(ask.prior, FiniteDirichlet) else most


def _run_all(one: Callable[[int], ChainRun], ask: Request, halt: threading.Event, reasons: list[str]):
    """Run the chains. Once one has been stopped or interrupted no other begins, those in threads end after the
    iteration they are in, and all of them are waited for.
    """
    done: dict[int, ChainRun] = {}
    busy: set[int] = set()
    change = threading.Condition()

    def watched(index: int) -> None:
        if halt.is_set() and done:
            return
        with change:
            busy.add(index)
        try:
            done[index] = one(index)
            if done[index].reason == "interrupted":
                reasons.append("interrupted")
                halt.set()
        finally:
            with change:
                busy.discard(index)
                change.notify_all()

    try:
        for _ in ask.executor.map(watched, range(ask.n_chains)):
            pass
    except BaseException as error:  # Ctrl-C reaches the main thread, whatever the others do
        halt.set()
        with change:
            change.wait_for(lambda: not busy)
        if not (isinstance(error, KeyboardInterrupt) and ask.keep_partial and done):
            raise
        reasons.insert(0, "interrupted")
    return [done[index] for index in sorted(done)]


def _rounds(ask: Request) -> int:
    """How many chains run one after the other."""
    n_jobs = getattr(ask.executor, "n_jobs", 1)
    if n_jobs < 0:
        n_jobs = (os.cpu_count() or 1) + 1 + n_jobs
    return -(-ask.n_chains // max(min(n_jobs, ask.n_chains), 1))


def _start(objects, rows, weights, ask: Request, schedule: Schedule, index: int, seed: int, counts) -> Start:
    """Where a chain starts: on a sample of the rows, from labels at random, or from the user's."""
    families = tuple(block.family for block in objects)
    if not isinstance(ask.init, str):
        z = ask.init[rows]
        return Start(_spread_labels(objects, z) if counts is None else canonical(z), ask.prior, families)
    if ask.init == "random":
        most = min(ask.limit or 10, len(rows), getattr(ask.prior, "n_components", len(rows)))
        z = np.random.default_rng(seed).integers(most, size=len(rows))
        return Start(canonical(z), ask.prior, families)
    shared = None if counts is None or np.all(counts == 1) else rows
    stand_ins = [_stand_in(block) for block in objects]
    start = find_start(stand_ins, ask.prior, schedule, seed=seed, apart=index % 2 == 1, object_rows=shared)
    kept = [
        learned if is_conjugate(family) else family
        for learned, family in zip(start.families, families, strict=True)
    ]
    return start._replace(families=tuple(kept))


def _stand_in(block: Block) -> Block:
    """A conjugate block over the same columns, for a family that has no predictive of its own."""
    if is_conjugate(block.family):
        return block
    name = STAND_INS[entry_of(block.family).kind]
    context: dict[str, Any] = {"exposure": None}
    if name == "categorical":
        context["n_levels"] = block.data.max(axis=0) + 1
    return FAMILIES[name].block(block.data, block.columns, np.ones(len(block.data)), **context)


def _spread_labels(objects: Sequence[Block], z: np.ndarray) -> np.ndarray:
    """Labels for the objects that have none (-1): of the cluster that predicts them best."""
    z = np.asarray(z)
    if z.min() >= 0:
        return canonical(z)
    K = int(z.max()) + 1
    statistics = label_statistics(objects, np.ones(len(z)), z, K)
    found = assign_rows(
        predictive(objects, statistics.S, np.log(np.maximum(statistics.n, 1e-9))), len(z)
    ).labels
    return canonical(np.where(z < 0, found, z))


def _summed_up(runs: Sequence[ChainRun], blocks, rows, weights, ask: Request, reason: str) -> Fitted:
    """One partition for all draws, the statistics and hyper-parameters that go with it."""
    copies = join([run.trace for run in runs])
    families = average_families([run.families for run in runs])
    prior = runs[0].chain.prior
    if ask.learn_concentration and np.isfinite(copies.concentration).all():
        prior = with_concentration(prior, float(np.exp(np.log(copies.concentration).mean())))
        prior = bind(prior, float(weights.sum()))
    share = 0.0
    if ask.noise:
        verdict, share = sum_up(copies, rows, lambda draws: _estimate(draws, ask))
    else:
        estimate = _estimate(copies, ask)
        verdict = Verdict(estimate, confidence(copies.labels, estimate).objects, np.zeros(len(estimate)))
    first = np.searchsorted(rows, np.arange(len(weights)))  # a row speaks with the voice of its first copy
    present = weights > 0
    z = np.full(len(weights), -1)
    z[present] = verdict.labels[first[present]]
    shown = [block._replace(family=family) for block, family in zip(blocks, families, strict=True)]
    statistics, parameters = _statistics(shown, weights, z, int(ask.rngs[0].integers(2**31)))
    log_weights = _log_shares(prior, statistics.n)
    sure, outlying = np.full(len(weights), np.nan), np.full(len(weights), np.nan)
    sure[present], outlying[present] = verdict.confidence[first[present]], verdict.probability[first[present]]
    n_iter = max(int(run.chain.iteration) for run in runs)
    run = Run(None, copies.log_joint.tolist(), reason == "done", reason, 0.0)
    if parameters is not None:
        parameters = Parameters(log_weights, parameters)
    return Fitted(
        families, prior, statistics, parameters, log_weights, run, [], n_iter,
        trace=copies, object_rows=rows, labels=z, confidence=sure,
        noise=Noise(fit_background(blocks, weights), share) if ask.noise else None, noise_probability=outlying,
    )  # fmt: skip


def _estimate(copies: Trace, ask: Request) -> np.ndarray:
    """The one partition that sums the draws up, from as many of them as are quick to search."""
    draws = copies.labels
    if ask.partition == "map":
        return map_draw(draws, copies.log_joint).labels
    n_draws = max(MOST_LABELS // draws.shape[1], FEWEST_DRAWS)
    if len(draws) > n_draws:
        draws = draws[np.linspace(0, len(draws) - 1, n_draws).round().astype(int)]
    if ask.partition == "votes":
        return vote(draws).labels
    return point_estimate(draws, ask.partition, max_clusters=ask.limit, random_state=ask.rngs[0]).labels


def _statistics(blocks, weights, z, seed: int) -> tuple[Statistics, tuple[np.ndarray, ...] | None]:
    """Statistics of the labels; parameters too where a family has no predictive, which then stand in their place."""
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
        for _ in range(COMPLETIONS):
            thetas = tuple(expect(block.family, S) for block, S in zip(blocks, statistics.S, strict=True))
            statistics = label_statistics(blocks, weights, z, K, thetas)
    return statistics._replace(entropy=0.0), None


def _log_shares(prior: Any, n: np.ndarray) -> np.ndarray:
    """Log shares of the clusters in the predictive density; the seat of a new one is shared among them."""
    out = np.empty(len(n))
    log_mass(prior, n, len(n), out)
    return out - np.logaddexp.reduce(out)
