"""How a mixture is fitted by each deterministic engine: starts, restarts by objective, merges, the best of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from partita.engines.climb import cvb, em, vb
from partita.engines.climb.merges import with_merges
from partita.engines.climb.seeding import SAMPLE, Objects, label_statistics, seed_parameters, seed_statistics
from partita.engines.passes.rows import Parameters, Statistics, collect, label_rows, n_stats, pack, plug_in
from partita.engines.run import STOPPED_EARLY, Control, Run, best_run, iterate
from partita.execution import BLOCK_ROWS
from partita.families.contract import interior
from partita.families.registry import Block
from partita.partitions import DirichletProcess, FiniteDirichlet, StickBreaking, mean_log_weights, specify
from partita.trace import Trace

__all__ = ["INFERENCES", "Fitted", "Request", "bytes_needed", "resolve_prior"]


class Request(NamedTuple):
    """What the user asked for, engine aside."""

    n_components: int
    exact: bool  # whether the number of clusters is given, rather than a bound on it
    prior: Any
    learn_concentration: bool
    learn_likelihood: bool
    maximum_likelihood: bool
    order: int
    init: Any  # "seeds", "random" or labels
    rngs: Sequence[np.random.Generator]
    tol: float
    max_iter: int
    control: Control  # what may end the fit early
    debug: bool
    executor: Any
    folder: Any = None  # where chains keep their checkpoints
    n_chains: int = 1
    n_draws: int = 1
    burn_in: int = 0
    thin: int = 1
    limit: int | None = None  # most clusters that chains may have; None: any number
    precision: str = "single"  # of the predictive cache
    partition: str = "votes"  # how draws become one partition
    noise: bool = False  # whether rows may be outliers
    stop: str = (
        "objective"  # when EM has converged: "objective" (it rises no more) or "assignments" (labels stay)
    )
    objects: Objects | None = None  # where rows stand for several objects: whom seeds are drawn among


class Fitted(NamedTuple):
    """What every engine leaves."""

    families: tuple[Any, ...]
    prior: Any
    statistics: Statistics
    parameters: Parameters | None  # what responsibilities are made from; None: from the predictive
    log_weights: np.ndarray  # weights of the predictive density
    run: Run
    finals: list[float]
    n_iter: int
    trace: Trace | None = None  # of chains, over objects: a row of weight w is w of them
    provisional: bool = False  # no chain came to its first draw: the trace holds one state of burn-in
    object_rows: np.ndarray | None = None  # the row of each object
    labels: np.ndarray | None = None  # where they are an estimate rather than the most probable of each row
    confidence: np.ndarray | None = None
    noise: Any = None  # Noise (partita.fitting.outliers), where rows may be outliers
    noise_probability: np.ndarray | None = None  # of each row, NaN where it took no part


def resolve_prior(
    prior: Any, inference: str, n_components: int, exact: bool, concentration: float | None
) -> Any:
    """The finite prior that a deterministic engine works with.

    A Dirichlet process is read as stick-breaking, truncated at ``n_components``; a given number of clusters as
    a symmetric Dirichlet with one pseudo-object a cluster.

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
            f"with {type(prior).__name__}: choose one of these, or a sampler"
        )
    asked = float(prior.concentration if concentration is None else concentration)
    if inference == "em" or exact:
        given = concentration is not None and inference != "em"
        return FiniteDirichlet(asked if given else float(n_components), n_components)
    cls = FiniteDirichlet if isinstance(prior, FiniteDirichlet) else StickBreaking
    return cls(asked, n_components)


def bytes_needed(blocks: Sequence[Block], n_rows: int, ask: Request, inference: str) -> int:
    """About how much memory a fit takes at its peak, beside the table: numbers of 8 bytes.

    Statistics and parameters have a few copies at a time (old, new, best, natural parameters, a block's share);
    collapsed engines and starts by labels hold an objects x clusters matrix; seeds compare a sample of objects.
    """
    K, rows = ask.n_components, sum(n_stats(block.family) for block in blocks)
    sample = min(n_rows, SAMPLE)
    passes = 6 * rows * K + 3 * min(n_rows, BLOCK_ROWS) * K
    by_labels = not (isinstance(ask.init, str) and ask.init == "seeds")
    starts = n_rows * K if by_labels else 3 * rows * sample + 3 * sample * sample
    held = 6 * n_rows * K if inference == "cvb" else 0
    return 8 * (passes + starts + held)


def fit_em(blocks: Sequence[Block], weights: np.ndarray, ask: Request) -> Fitted:
    """EM from every start; the best objective wins."""
    if not ask.maximum_likelihood:
        blocks = [block._replace(family=interior(block.family)) for block in blocks]
    blocks = pack(blocks, len(weights))
    watched = ask.stop == "assignments"
    stepping = em.step_labels if watched else em.step
    step = partial(stepping, blocks=blocks, weights=weights, executor=ask.executor)
    options: dict[str, Any] = {"monotone": False, "tol": 0.0} if watched else {}

    def runs() -> Iterator[Run]:
        for restart, run in _starts(blocks, weights, ask):
            state = em.init(
                blocks,
                ask.prior,
                _start(blocks, weights, ask, restart),
                maximum_likelihood=ask.maximum_likelihood,
            )
            yield run(step, em.Labelled(state) if watched else state, **options)

    best, finals = best_run(runs())
    state = best.state.em if watched else best.state
    at = em.parameters(state)
    return Fitted(
        state.families, state.prior, state.statistics, at, at.log_weights, best, finals, len(best.objectives)
    )


def fit_vb(blocks: Sequence[Block], weights: np.ndarray, ask: Request) -> Fitted:
    """VB from every start, with merges unless the number of clusters is given."""
    blocks = pack(blocks, len(weights))
    step = partial(
        vb.step,
        blocks=blocks,
        weights=weights,
        executor=ask.executor,
        learn_likelihood=ask.learn_likelihood,
        learn_concentration=ask.learn_concentration,
    )

    def runs() -> Iterator[Run]:
        for restart, run in _starts(blocks, weights, ask):
            state = vb.init(blocks, ask.prior, _start(blocks, weights, ask, restart))
            if ask.exact:
                yield run(step, state)
            else:
                merging = with_merges(partial(run, step), step, state, keep_partial=ask.control.keep_partial)
                yield _joined(merging)

    best, finals = best_run(runs())
    state = best.state
    at = vb.parameters(state)
    log_weights = mean_log_weights(state.prior, state.statistics.n)
    return Fitted(
        state.families, state.prior, state.statistics, at, log_weights, best, finals, len(best.objectives)
    )


def fit_cvb(blocks: Sequence[Block], weights: np.ndarray, ask: Request) -> Fitted:
    """CVB from where VB ends: a sweep that is one object at a time has no business with bad starts."""
    cvb.check(blocks, ask.order)
    start = fit_vb(blocks, weights, ask)
    if start.run.reason in STOPPED_EARLY:
        return start  # told to stop: what there is by then is the answer
    assert start.parameters is not None
    R, _ = label_rows(plug_in(blocks, start.parameters), len(weights), ask.n_components, ask.executor)
    learned = [block._replace(family=family) for block, family in zip(blocks, start.families, strict=True)]
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
        cvb.init(learned, start.prior, R, weights),
        max_iter=ask.max_iter,
        tol=max(ask.tol, 1e-8),
        weight=float(weights.sum()),
        monotone=False,
        control=ask.control,
    )
    state = run.state
    log_weights = mean_log_weights(state.prior, state.statistics.n)
    return Fitted(
        state.families,
        state.prior,
        state.statistics,
        None,
        log_weights,
        run,
        start.finals,
        len(run.objectives),
    )


INFERENCES = {"em": fit_em, "vb": fit_vb, "cvb": fit_cvb}


def _starts(blocks: Sequence[Block], weights: np.ndarray, ask: Request) -> Iterator[tuple[int, Callable]]:
    """Each restart with its own ``iterate``."""
    for restart in range(len(ask.rngs)):
        yield (
            restart,
            partial(
                iterate,
                max_iter=ask.max_iter,
                tol=ask.tol,
                weight=float(weights.sum()),
                number=restart,
                control=ask.control,
                debug=ask.debug,
            ),
        )


def _start(blocks: Sequence[Block], weights: np.ndarray, ask: Request, restart: int) -> Statistics:
    """Statistics of all objects, labelled by seeds, at random, or as the user says."""
    rng, K = ask.rngs[restart], ask.n_components
    if isinstance(ask.init, str) and ask.init == "seeds":
        seeds = seed_statistics(blocks, weights, K, rng, ask.objects)
        return collect(blocks, weights, seed_parameters(blocks, seeds), ask.executor)
    z = rng.integers(K, size=len(weights)) if isinstance(ask.init, str) else ask.init
    return label_statistics(blocks, weights, z, K)


def _joined(runs: Any) -> Run:
    """Several runs, one after the other, as one."""
    objectives: list[float] = []
    worst = 0.0
    for run in runs:
        objectives += run.objectives
        worst = max(worst, run.worst_fall)
    return run._replace(objectives=objectives, worst_fall=worst)
