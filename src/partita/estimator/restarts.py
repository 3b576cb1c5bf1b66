"""Deterministic fits that can be stopped and resumed: restarts, checkpoints, and the note on an early end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from partita.engines.checkpoints import Checkpoint
from partita.engines.run import Control, Run, iterate
from partita.estimator.judging import REASONS
from partita.estimator.report import FitReport


def open_checkpoint(folder: Any, number: int, about: Any) -> Checkpoint | None:
    """The checkpoint of one run of a fit; None without a folder.

    ``about`` holds the data and parameters that the run depends on: the folder of another fit is refused.
    """
    return None if folder is None else Checkpoint(folder, number, about)


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
        return None if control.halted and number >= min_runs else run(number)

    results = []
    try:
        for result in executor.map(one, range(n_restarts)):
            if result is not None:
                results.append(result)
    except KeyboardInterrupt:
        control.stop("interrupted")
        if not (control.keep_partial and results):
            raise
    return results


def iterate_with_checkpoint(
    step: Callable[[Any], Any],
    start: Callable[[], Any],
    *,
    checkpoint: Checkpoint | None,
    given: Any = (),
    max_iter: int,
    tol: float,
    weight: float = 1.0,
    **options: Any,
) -> Run:
    """:func:`~partita.engines.run.iterate` by the ``change`` of the states, from the checkpoint if there is one.

    A state counts its iterations in ``n_iter``; ``given`` is what states refer to and no checkpoint has to hold.
    """
    state: Any = None
    values: list[float] = []
    if checkpoint is not None and checkpoint.begun:
        state, values, _ = checkpoint.load(given)
        if state.change <= tol:
            return Run(state, values, True, "converged", 0.0)

    def step_and_save(state: Any) -> Any:
        new = step(state)
        values.append(float(new.objective))
        if checkpoint is not None:
            checkpoint.save(new, values, 0, given, at_once=False)
        return new

    state = start() if state is None else state
    run = iterate(
        step_and_save, state, max_iter=max_iter - state.n_iter, tol=tol, weight=weight, monotone=False, **options
    )  # fmt: skip
    if (
        checkpoint is not None and run.reason != "interrupted"
    ):  # an interrupted step may have changed arrays in place
        checkpoint.save(run.state, values, 0, given, at_once=True)
    return run._replace(objectives=values)


def note_stop(report: FitReport, reason: str, kept: str) -> None:
    """Note that a fit ended early, and what is kept; other reasons than those are no news."""
    if reason in REASONS:
        report.add("cut_short", f"the fit was stopped {REASONS[reason]}: {kept}", level="warning")
