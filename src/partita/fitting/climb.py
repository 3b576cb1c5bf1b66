"""Deterministic engines: EM, VB and CVB from several starts, with merges; the best start is kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from partita.engines.climb import cvb, em, memoized, vb
from partita.engines.climb.births import propose_births
from partita.engines.climb.seeding import SAMPLE, label_statistics, seed_parameters, seed_statistics
from partita.engines.passes.rows import Statistics, collect, label_rows, n_stats, pack, plug_in
from partita.engines.run import STOPPED_EARLY, Run, best_run, iterate
from partita.execution import CHUNK_ROWS, check_memory
from partita.execution.weights import total_weight
from partita.families.contract import interior
from partita.families.registry import Block
from partita.fitting.contract import EngineResult, Request
from partita.fitting.variational_starts import run_vb, start_vb
from partita.partitions import DirichletProcess, FiniteDirichlet, StickBreaking, mean_log_weights, specify


def resolve_prior(
    prior: Any, inference: str, n_components: int, exact: bool, concentration: float | None
) -> Any:
    """The finite prior of a deterministic engine.

    A Dirichlet process is read as stick-breaking, truncated at ``n_components``; a given number of clusters as
    a symmetric Dirichlet with one pseudo-object per cluster.

    Examples
    --------
    >>> resolve_prior("dirichlet_process", "vb", 20, False, None)
    StickBreaking(concentration=1.0, n_components=20)
    """
    if isinstance(prior, str):
        prior = specify("stick_breaking" if prior == "auto" else prior)
    if not isinstance(prior, (FiniteDirichlet, StickBreaking, DirichletProcess)):
        raise ValueError(
            f"inference={inference!r} works with the priors 'dirichlet_process', 'stick_breaking' and 'finite', not "
            f"with {type(prior).__name__}: choose one of these, or inference='gibbs'"
        )
    asked = float(prior.concentration if concentration is None else concentration)
    if inference == "em" or exact:
        given = concentration is not None and inference != "em"
        return FiniteDirichlet(asked if given else float(n_components), n_components)
    cls = FiniteDirichlet if isinstance(prior, FiniteDirichlet) else StickBreaking
    return cls(asked, n_components)


def bytes_needed(blocks: Sequence[Block], n_rows: int, ask: Request, inference: str) -> int:
    """Approximate peak memory of a fit in bytes, without the table.

    Statistics and parameters have a few copies at a time (old, new, best, natural parameters, those of a chunk);
    collapsed engines and starts by labels hold an objects x clusters matrix; seeds compare a sample of objects.
    """
    K, rows = ask.n_components, sum(n_stats(block.family) for block in blocks)
    sample = min(n_rows, SAMPLE)
    passes = 6 * rows * K + 3 * min(n_rows, CHUNK_ROWS) * K
    by_labels = not (isinstance(ask.init, str) and ask.init == "seeds")
    starts = n_rows * K if by_labels else 3 * rows * sample + 3 * sample * sample
    held = 6 * n_rows * K if inference == "cvb" else 0
    return 8 * (passes + starts + held)


def _check_memory(blocks: Sequence[Block], n_rows: int, ask: Request, inference: str) -> None:
    check_memory(
        bytes_needed(blocks, n_rows, ask, inference),
        f"{ask.n_components:,} clusters of {sum(len(block.columns) for block in blocks):,} columns",
        "ask for fewer clusters (n_clusters, max_clusters), or leave columns out",
    )


def fit_em(blocks: Sequence[Block], weights: np.ndarray, ask: Request) -> EngineResult:
    """EM from every start; the one with the best objective is kept."""
    _check_memory(blocks, len(weights), ask, "em")
    if not ask.maximum_likelihood:
        blocks = [block._replace(family=interior(block.family)) for block in blocks]
    blocks = pack(blocks, len(weights))
    watched = ask.stop == "assignments"
    stepping = em.step_labels if watched else em.step
    step = partial(stepping, blocks=blocks, weights=weights, executor=ask.executor)

    def runs() -> Iterator[Run]:
        for restart in range(len(ask.rngs)):
            state = em.init(
                blocks,
                ask.prior,
                _start(blocks, weights, ask, restart),
                maximum_likelihood=ask.maximum_likelihood,
            )
            yield iterate(
                step,
                em.Labeled(state) if watched else state,
                max_iter=ask.max_iter,
                tol=0.0 if watched else ask.tol,
                weight=total_weight(weights),
                number=restart,
                monotone=not watched,
                control=ask.control,
                debug=ask.debug,
            )

    best, finals = best_run(runs(), ask.control, len(ask.rngs))
    state = best.state.em if watched else best.state
    at = em.parameters(state)
    return EngineResult(
        state.families, state.prior, state.statistics, at, at.log_weights, best, finals, len(best.objectives)
    )


def fit_vb(blocks: Sequence[Block], weights: np.ndarray, ask: Request) -> EngineResult:
    """VB from every start, with merges unless the number of clusters is given."""
    _check_memory(blocks, len(weights), ask, "vb")
    blocks = pack(blocks, len(weights))

    def runs() -> Iterator[Run]:
        for restart in range(len(ask.rngs)):
            if _from_seeds(ask):
                state = start_vb(blocks, weights, ask, restart)
            else:
                state = vb.init(blocks, ask.prior, _start(blocks, weights, ask, restart))
            yield run_vb(blocks, weights, state, ask, restart)

    best, finals = best_run(runs(), ask.control, len(ask.rngs))
    state = best.state
    at = vb.parameters(state)
    log_weights = mean_log_weights(state.prior, state.statistics.n)
    return EngineResult(
        state.families, state.prior, state.statistics, at, log_weights, best, finals, len(best.objectives)
    )


def fit_memoized(blocks: Sequence[Block], weights: np.ndarray, ask: Request) -> EngineResult:
    """Memoized VB from the start of the highest bound after one pass over all rows, with merges and births."""
    _check_memory(blocks, len(weights), ask, "memoized")
    blocks = pack(blocks, len(weights))
    starts, finals = [], []
    for restart in range(len(ask.rngs)):
        if restart and (ask.control.halted or ask.control.late):
            break
        state = _start_memoized(blocks, weights, ask, restart)
        starts.append(state)
        finals.append(state.objective)
    first = int(np.argmax(finals))
    births = partial(
        propose_births,
        blocks=blocks,
        weights=weights,
        rng=ask.rngs[first],
        executor=ask.executor,
        control=ask.control,
    )
    run = run_vb(blocks, weights, starts[first], ask, stepping=memoized.step, births=births)
    state = run.state
    finals[first] = run.objective
    at = vb.parameters(state)
    log_weights = mean_log_weights(state.prior, state.statistics.n)
    return EngineResult(
        state.families, state.prior, state.statistics, at, log_weights, run, finals, len(run.objectives)
    )


def _start_memoized(
    blocks: Sequence[Block], weights: np.ndarray, ask: Request, restart: int
) -> memoized.MemoizedState:
    if _from_seeds(ask):
        families, prior, statistics, *_ = start_vb(blocks, weights, ask, restart)
    else:
        families, prior = tuple(block.family for block in blocks), ask.prior
        statistics = _start(blocks, weights, ask, restart)
    bound = vb.bound(families, prior, statistics) if np.isfinite(statistics.entropy) else -np.inf
    return memoized.MemoizedState(families, prior, statistics, bound)


def fit_cvb(blocks: Sequence[Block], weights: np.ndarray, ask: Request) -> EngineResult:
    """CVB, started where VB ends: sweeps over single objects do not leave a bad start.

    VB also finds the number of clusters, if it is not given: the clusters that it does not use stay closed.
    """
    cvb.check(blocks, ask.order)
    _check_memory(blocks, len(weights), ask, "cvb")
    start = fit_vb(blocks, weights, ask)
    if start.run.reason in STOPPED_EARLY or ask.control.halted or ask.control.late:
        return start  # the result so far
    assert start.parameters is not None
    R, _ = label_rows(plug_in(blocks, start.parameters), len(weights), ask.n_components, ask.executor)
    learned = [block._replace(family=family) for block, family in zip(blocks, start.families, strict=True)]
    closed = None if ask.exact else cvb.unused_clusters(start.statistics.n, weights)
    step = partial(
        cvb.step,
        blocks=blocks,
        weights=weights,
        order=ask.order,
        learn_likelihood=ask.learn_likelihood,
        learn_concentration=ask.learn_concentration,
    )
    run = iterate(
        step,
        cvb.init(learned, start.prior, R, weights, closed),
        max_iter=ask.max_iter,
        tol=max(ask.tol, 1e-8),
        weight=float(weights.sum()),
        monotone=False,
        control=ask.control,
    )
    state = run.state
    log_weights = mean_log_weights(state.prior, state.statistics.n)
    return EngineResult(
        state.families,
        state.prior,
        state.statistics,
        None,
        log_weights,
        run,
        start.finals,
        len(run.objectives),
    )


def _start(blocks: Sequence[Block], weights: np.ndarray, ask: Request, restart: int) -> Statistics:
    """Statistics of all objects with labels from seeds, at random, or given by the user."""
    rng, K = ask.rngs[restart], ask.n_components
    if _from_seeds(ask):
        seeds = seed_statistics(blocks, weights, K, rng, ask.objects)
        return collect(blocks, weights, seed_parameters(blocks, seeds), ask.executor)
    z = rng.integers(K, size=len(weights)) if isinstance(ask.init, str) else ask.init
    return label_statistics(blocks, weights, z, K)


def _from_seeds(ask: Request) -> bool:
    return isinstance(ask.init, str) and ask.init == "seeds"
