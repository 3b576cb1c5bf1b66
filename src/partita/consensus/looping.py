"""Deterministic consensus loops: one driver for time limit, callback, interrupt and resumption.

A loop consists of a start and a step. A state is a NamedTuple with ``objective`` (which a callback sees), ``change``
(the loop has converged when it is at most ``tol``) and ``n_iter`` (iterations so far, those before a resumption
counted). With a folder the state is written after each iteration, so that the same call after a kill continues there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from partita.engines.checkpoints import pack, unpack
from partita.engines.run import STOPPED_EARLY, Control, iterate
from partita.execution.journal import digest, read_arrays, write_arrays


class LoopResult(NamedTuple):
    """The last state of a loop, and why it ended."""

    state: Any
    reason: str  # "converged", "max_iter", "time_limit", "callback", "interrupted"

    @property
    def converged(self) -> bool:
        """Whether the loop ended by convergence."""
        return self.reason == "converged"


class SavedState:
    """A state in a folder.

    Parameters
    ----------
    folder : path or None
        None keeps nothing.
    name : str
        Name of the file.
    about : anything of numbers and arrays
        What the state depends on; a file of another fit is refused.

    Examples
    --------
    >>> SavedState(None, "search", ()).load() is None
    True
    """

    def __init__(self, folder: Any, name: str, about: Any):
        self._file = None if folder is None else Path(folder) / f"{name}.npz"
        self._about = digest(about)
        if self._file is not None:
            self._file.parent.mkdir(parents=True, exist_ok=True)

    def load(self) -> Any:
        """The state that was saved last; None if there is none."""
        if self._file is None or not self._file.exists():
            return None
        saved = read_arrays(self._file)
        if str(saved["about"]) != self._about:
            raise ValueError(
                f"{self._file} belongs to another fit (other data, parameters or version): give resume= a folder of "
                "its own, or remove this one"
            )
        return unpack(saved)

    def save(self, state: Any) -> None:
        """Replace what was saved."""
        if self._file is not None:
            write_arrays(self._file, {**pack(state), "about": np.array(self._about)})


def run_loop(
    step: Callable[[Any], Any],
    start: Callable[[], Any],
    *,
    max_iter: int,
    tol: float = 0.0,
    n_clusters: Callable[[Any], int],
    number: int = 0,
    control: Control | None = None,
    saved: SavedState | None = None,
) -> LoopResult:
    """Step from ``start()``, or from the saved state, until ``change`` is at most ``tol``.

    Examples
    --------
    >>> class Halving(NamedTuple):
    ...     objective: float
    ...     change: float
    ...     n_iter: int
    >>> step = lambda s: Halving(s.objective / 2, s.objective / 2, s.n_iter + 1)
    >>> found = run_loop(step, lambda: Halving(8.0, np.inf, 0), max_iter=9, tol=1.0, n_clusters=lambda s: 1)
    >>> found.state.n_iter, found.reason
    (3, 'converged')
    """
    saved = SavedState(None, "", ()) if saved is None else saved
    state = saved.load()
    state = start() if state is None else state
    if state.change <= tol:
        return LoopResult(state, "converged")

    def step_and_save(state: Any) -> Any:
        state = step(state)
        saved.save(state)
        return state

    run = iterate(
        step_and_save, state, max_iter=max_iter - state.n_iter, tol=tol, weight=1.0, number=number, monotone=False,
        control=control, n_clusters=n_clusters,
    )  # fmt: skip
    return LoopResult(run.state, run.reason)


def best_of(
    runs: Iterable[Callable[[], LoopResult]], better: Callable[[Any, Any], bool], control: Control
) -> LoopResult:
    """The best of several restarts; a restart that is stopped early is the last one.

    ``better(new, old)`` compares two states. An interrupt before the first iteration of a later restart keeps the best
    of the finished ones where partial results are kept.
    """
    best: LoopResult | None = None
    for run in runs:
        try:
            found = run()
        except KeyboardInterrupt:
            if not control.keep_partial or best is None:
                raise
            control.stop("interrupted")
            return best._replace(reason="interrupted")
        if best is None or better(found.state, best.state):
            best = found
        if found.reason in STOPPED_EARLY:
            return best._replace(reason=found.reason)
    assert best is not None
    return best
