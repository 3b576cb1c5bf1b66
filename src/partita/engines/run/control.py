"""What may end a fit early (time limit, callback, Ctrl-C), and the display of its progress."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple

from partita.progress import Display

STOPPED_EARLY = ("time_limit", "callback", "interrupted")
MAX_ITERATIONS_PER_SECOND = 1000  # of one chain: with a time limit no more draws are expected


class Progress(NamedTuple):
    """The argument of a callback, which is called after each iteration; returning True stops the fit."""

    run: int  # number of the chain or of the restart, from 0
    iteration: int  # of this run, from 1
    objective: float
    n_clusters: int  # of views, in models of views
    seconds: float  # since the fit began


class Control:
    """The conditions that may end a fit early, and the display of its progress; one object for all runs of a fit.

    It is made when the fit begins. The progress is shown within the context ``with control:``.

    Parameters
    ----------
    time_limit : float, optional
        Wall seconds, from now.
    callback : callable, optional
        Called with a :class:`Progress` after each iteration, by one run at a time.
    keep_partial : bool
        Whether Ctrl-C keeps the result so far.
    showing : callable, optional
        Makes the context manager of the display, from the deadline; see :func:`partita.progress.show_progress`.

    Examples
    --------
    >>> control = Control(callback=lambda progress: progress.iteration >= 2)
    >>> [control.after(Progress(0, i, 0.0, 1, 0.0)) for i in (1, 2, 3)]
    [False, True, True]
    >>> control.reason
    'callback'
    """

    def __init__(
        self,
        *,
        time_limit: float | None = None,
        callback: Callable[[Progress], Any] | None = None,
        keep_partial: bool = False,
        showing: Callable[[float], AbstractContextManager[Display]] | None = None,
    ):
        self.began = time.perf_counter()
        self.time_limit = math.inf if time_limit is None else float(time_limit)  # seconds
        self.deadline = math.inf if time_limit is None else self.began + time_limit
        self.callback, self.keep_partial = callback, keep_partial
        # why the fit ends early: "time_limit", "callback", "interrupted"; empty if it does not
        self.reason = ""
        self._halt = threading.Event()
        self._lock = threading.RLock()
        self.display = Display()
        self._showing: AbstractContextManager[Display] = (
            self.display if showing is None else showing(self.deadline)
        )
        self._n_groups = 0

    def most_draws(self, n_draws: int, thin: int = 1) -> int:
        """Return how many draws of a chain need memory: of a huge number, those that the time limit has room for."""
        return int(min(n_draws, self.time_limit * MAX_ITERATIONS_PER_SECOND / thin + 1))

    def __enter__(self) -> Control:
        self.display = self._showing.__enter__()
        self.display.stage("reading")
        return self

    def __exit__(self, *error: Any) -> None:
        self._showing.__exit__(*error)

    @contextmanager
    def runs(
        self, n_runs: int, noun: str, n_iter: int | None = None, *, is_limit: bool = True
    ) -> Iterator[None]:
        """The context of several runs, of at most ``n_iter`` iterations each, for the display."""
        with self._lock:
            self._n_groups += 1
        self.display.begin_runs(n_runs, noun, n_iter, is_limit=is_limit)
        try:
            yield
        finally:
            with self._lock:
                self._n_groups -= 1
            self.display.end_runs()

    @contextmanager
    def run(self, number: int, n_iter: int) -> Iterator[None]:
        """The context of one run of at most ``n_iter`` iterations, for the display; alone if no others were named."""
        if self._n_groups:
            self.display.begin_run(number, n_iter)
            yield
        else:
            with self.runs(1, "start", n_iter):
                yield

    @property
    def seconds(self) -> float:
        """Wall seconds since the fit began."""
        return time.perf_counter() - self.began

    @property
    def halted(self) -> bool:
        """Whether all runs must end."""
        return self._halt.is_set()

    @property
    def late(self) -> bool:
        """Whether the time limit has passed."""
        return time.perf_counter() > self.deadline

    def stop(self, reason: str, *, everything: bool = True) -> None:
        """Note why the fit ends early (the first reason stays); ``everything`` ends all runs."""
        with self._lock:
            self.reason = self.reason or reason
        if everything:
            self._halt.set()

    def after(self, progress: Progress, deadline: float | None = None) -> bool:
        """Whether a run must end after this iteration; ``deadline`` is that of the run, if it has its own."""
        self.display.advance(progress)
        if self.callback is not None and not self.halted:
            with self._lock:
                if not self.halted and self.callback(progress):
                    self.stop("callback")
        if time.perf_counter() > (self.deadline if deadline is None else deadline):
            self.stop("time_limit", everything=False)
            return True
        return self.halted

    def share(self, runs_left: int, at_once: int = 1) -> float:
        """Deadline of a run that begins now, given how many runs are left (with it) and run at once."""
        if math.isinf(self.deadline):
            return math.inf
        now = time.perf_counter()
        rounds = -(-runs_left // max(min(at_once, runs_left), 1))
        return now + max(self.deadline - now, 0.0) / rounds
