"""The one driver of the deterministic engines: iterations, convergence, restarts, time limit, callbacks."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

__all__ = ["EngineError", "Progress", "Run", "best_run", "iterate"]


class EngineError(RuntimeError):
    """An engine broke one of its own laws: a defect of the library, not of the data."""


class Progress(NamedTuple):
    """What a callback sees after each iteration; returning True stops the run."""

    restart: int
    iteration: int
    objective: float
    n_clusters: int
    seconds: float


class Run(NamedTuple):
    """Where a run ended and why."""

    state: Any
    objectives: list[float]
    converged: bool
    reason: str  # "converged", "max_iter", "time_limit", "callback", "interrupted"
    worst_fall: float  # largest fall of an objective that must rise (0 where it rose)

    @property
    def objective(self) -> float:
        """The last objective."""
        return self.objectives[-1] if self.objectives else -math.inf


def iterate(
    step: Callable[[Any], Any],
    state: Any,
    *,
    max_iter: int,
    tol: float,
    weight: float,
    restart: int = 0,
    monotone: bool = True,
    deadline: float = math.inf,
    callback: Callable[[Progress], bool | None] | None = None,
    keep_partial: bool = False,
    debug: bool = False,
) -> Run:
    """Step until the objective changes by less than ``tol`` an object.

    An objective that is not a number stops the run with an error that names the iteration. One that falls
    although its engine says it cannot is an :class:`EngineError` with ``debug``, otherwise it is noted in
    ``worst_fall``.
    """
    objectives: list[float] = []
    start, worst, reason = time.perf_counter(), 0.0, "max_iter"
    try:
        for iteration in range(1, max_iter + 1):
            new = step(state)
            if math.isnan(new.objective):
                raise FloatingPointError(
                    f"the objective is not a number at iteration {iteration} (last good: "
                    f"{objectives[-1] if objectives else 'none'}): rescale extreme columns, or raise the prior's weight"
                )
            state = new
            objectives.append(float(new.objective))
            change = objectives[-1] - objectives[-2] if iteration > 1 else math.inf
            if monotone and change < -1e-9 * (1.0 + abs(objectives[-1])) - getattr(state, "rounding", 0.0):
                worst = max(worst, -change)
                if debug:
                    raise EngineError(f"the objective fell by {-change:.3g} at iteration {iteration}")
            n_clusters = int((state.statistics.n >= 0.5).sum())
            progress = Progress(restart, iteration, objectives[-1], n_clusters, time.perf_counter() - start)
            if callback is not None and callback(progress):
                reason = "callback"
                break
            settled = abs(change) if monotone else getattr(state, "change", abs(change)) * weight
            if settled <= tol * weight:
                reason = "converged"
                break
            if time.perf_counter() > deadline:
                reason = "time_limit"
                break
    except KeyboardInterrupt:
        if not keep_partial or not objectives:
            raise
        reason = "interrupted"
    return Run(state, objectives, reason == "converged", reason, worst)


def best_run(runs: Iterable[Run]) -> tuple[Run, list[float]]:
    """The run with the highest objective (the first of equals), and all final objectives."""
    best: Run | None = None
    finals = []
    for run in runs:
        finals.append(run.objective)
        if best is None or run.objective > best.objective:
            best = run
        if run.reason in ("interrupted", "time_limit", "callback"):
            break
    assert best is not None
    return best, finals


def print_progress(progress: Progress) -> None:
    """One line to standard error, overwritten."""
    end = "\r" if sys.stderr.isatty() else "\n"
    print(
        f"start {progress.restart + 1}  iteration {progress.iteration:4d}  clusters {progress.n_clusters:3d}  "
        f"objective {progress.objective:.4f}  {progress.seconds:.1f} s",
        end=end,
        file=sys.stderr,
    )
