"""Runs of deterministic engines: iterations until convergence, and several starts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from partita.engines.checkpoints import Checkpoint
from partita.engines.run.control import STOPPED_EARLY, Control, Progress


class EngineError(RuntimeError):
    """An engine violated one of its own invariants: a defect of the library, not of the data."""


class Run(NamedTuple):
    """The final state of a run of a deterministic engine, and why it ended."""

    state: Any
    objectives: list[float]
    converged: bool
    reason: str  # "converged", "max_iter", "time_limit", "callback", "interrupted"
    worst_fall: float  # largest fall of an objective that must rise (0 where it rose)

    @property
    def objective(self) -> float:
        """The last objective."""
        return self.objectives[-1] if self.objectives else -math.inf


def n_occupied(state: Any) -> int:
    """Clusters of a mixture that hold at least half an object."""
    return int((state.statistics.n >= 0.5).sum())


def iterate(
    step: Callable[[Any], Any],
    state: Any,
    *,
    max_iter: int,
    tol: float,
    weight: float,
    number: int = 0,
    monotone: bool = True,
    control: Control | None = None,
    n_clusters: Callable[[Any], int] = n_occupied,
    debug: bool = False,
) -> Run:
    """Step until the objective per object changes by less than ``tol``.

    States have an ``objective``; ``weight`` is the number of objects, ``number`` that of the restart. An engine whose
    objective need not increase (``monotone=False``) is judged by the ``change`` of its states. An objective that is not
    a number stops the run with an error that names the iteration. An objective that decreases although its engine is
    monotone is an :class:`EngineError` with ``debug``; otherwise it is noted in ``worst_fall``.
    """
    control = Control() if control is None else control
    objectives: list[float] = []
    worst, reason = 0.0, "max_iter"
    try:
        with control.run(number, max_iter):
            for iteration in range(1, max_iter + 1):
                new = step(state)
                if math.isnan(new.objective):
                    raise FloatingPointError(
                        f"the objective is not a number at iteration {iteration} (last good: "
                        f"{objectives[-1] if objectives else 'none'}): rescale extreme columns, or raise the "
                        "prior's weight"
                    )
                state = new
                objectives.append(float(new.objective))
                change = objectives[-1] - objectives[-2] if iteration > 1 else math.inf
                if monotone and change < -1e-9 * (1.0 + abs(objectives[-1])) - getattr(
                    state, "rounding", 0.0
                ):
                    worst = max(worst, -change)
                    if debug:
                        raise EngineError(f"the objective fell by {-change:.3g} at iteration {iteration}")
                progress = Progress(number, iteration, objectives[-1], n_clusters(state), control.seconds)
                stop = control.after(progress)
                settled = abs(change) if monotone else getattr(state, "change", abs(change)) * weight
                if settled <= tol * weight and not control.halted:
                    reason = "converged"
                    break
                if stop:
                    reason = control.reason
                    break
    except KeyboardInterrupt:
        if not control.keep_partial or not objectives:
            raise
        control.stop("interrupted")
        reason = "interrupted"
    return Run(state, objectives, reason == "converged", reason, worst)


def best_run(runs: Iterable[Run], control: Control | None = None, n_runs: int = 1) -> tuple[Run, list[float]]:
    """The run with the highest objective (the first of equals), and all final objectives.

    ``n_runs`` is how many there are, for the display.
    After the fit has been stopped or is late no further run begins; the best so far then has the reason of the stop.
    Ctrl-C between two runs raises, or with ``keep_partial`` keeps the best so far.
    """
    control = Control() if control is None else control
    with control.runs(n_runs, "start"):
        return _best_run(runs, control)


def _best_run(runs: Iterable[Run], control: Control) -> tuple[Run, list[float]]:
    best: Run | None = None
    finals: list[float] = []
    waiting = iter(runs)
    while True:
        try:
            run = next(waiting, None)
        except KeyboardInterrupt:
            if not control.keep_partial or best is None:
                raise
            control.stop("interrupted")
            reason = "interrupted"
            break
        if run is None:
            assert best is not None
            return best, finals
        control.display.end_run(len(finals))
        finals.append(run.objective)
        if best is None or run.objective > best.objective:
            best = run
        reason = control.reason or run.reason
        if control.halted or control.late or run.reason in STOPPED_EARLY:
            break
    if reason not in STOPPED_EARLY:  # late, and this was the last run
        return best, finals
    return best._replace(reason=reason, converged=False), finals


def iterate_from_checkpoint(
    step: Callable[[Any], Any],
    start: Callable[[], Any],
    *,
    max_iter: int,
    tol: float = 0.0,
    weight: float = 1.0,
    number: int = 0,
    control: Control | None = None,
    n_clusters: Callable[[Any], int] = n_occupied,
    checkpoint: Checkpoint | None = None,
    given: Any = (),
) -> Run:
    """:func:`iterate` by the ``change`` of the states, from ``start()`` or from the checkpoint.

    A state counts its iterations in ``n_iter``, those before a resumption included; ``given`` are objects that states
    refer to, which checkpoints leave out.

    Examples
    --------
    >>> class Halving(NamedTuple):
    ...     objective: float
    ...     change: float
    ...     n_iter: int
    >>> step = lambda s: Halving(s.objective / 2, s.objective / 2, s.n_iter + 1)
    >>> first = lambda: Halving(8.0, math.inf, 0)
    >>> found = iterate_from_checkpoint(step, first, max_iter=9, tol=1.0, n_clusters=lambda s: 1)
    >>> found.state.n_iter, found.reason
    (3, 'converged')
    """
    state: Any = None
    values: list[float] = []
    if checkpoint is not None and checkpoint.begun:
        state, values, _ = checkpoint.load(given)
    state = start() if state is None else state
    if state.change <= tol:
        return Run(state, values, True, "converged", 0.0)

    def step_and_save(state: Any) -> Any:
        new = step(state)
        values.append(float(new.objective))
        if checkpoint is not None:
            checkpoint.save(new, values, 0, given, at_once=False)
        return new

    run = iterate(
        step_and_save, state, max_iter=max_iter - state.n_iter, tol=tol, weight=weight, number=number,
        monotone=False, control=control, n_clusters=n_clusters,
    )  # fmt: skip
    if (
        checkpoint is not None and run.reason != "interrupted"
    ):  # an interrupted step may have changed arrays in place
        checkpoint.save(run.state, values, 0, given, at_once=True)
    return run._replace(objectives=values)


def run_restarts(
    run: Callable[[int], Any], n_restarts: int, *, control: Control, executor: Any, min_runs: int = 1
) -> list[Any]:
    """Results of ``run(number)`` for all restarts, in their order.

    After the fit has been stopped, or its time is over, no further restart begins, but at least ``min_runs`` do.
    Ctrl-C raises, or with ``keep_partial`` keeps the restarts that are complete.

    Examples
    --------
    >>> from partita.execution import make_executor
    >>> run_restarts(lambda number: number**2, 3, control=Control(), executor=make_executor(1))
    [0, 1, 4]
    """

    def one(number: int) -> Any:
        if number >= min_runs and control.late:
            control.stop("time_limit")
        if control.halted and number >= min_runs:
            return None
        result = run(number)
        control.display.end_run(number)
        return result

    results = []
    try:
        with control.runs(n_restarts, "start"):
            for result in executor.map(one, range(n_restarts)):
                if result is not None:
                    results.append(result)
    except KeyboardInterrupt:
        control.stop("interrupted")
        if not (control.keep_partial and results):
            raise
    return results
