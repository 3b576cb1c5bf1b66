"""The progress of a whole command, and what Ctrl-C does while its fit runs."""

from __future__ import annotations

import functools
import math
import os
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from partita.progress import say, show_progress

INTERRUPTED = 130  # exit code of a command that Ctrl-C ended, as in shells
INTERRUPTED_NOTE = "Interrupted by Ctrl-C: this is the result so far."


def shows_progress(command: Callable[..., Any]) -> Callable[..., Any]:
    """Show one bar for all that a command does: reading, the fit, writing; ``verbose`` as in the estimators."""

    @functools.wraps(command)
    def shown(*arguments: Any, verbose: bool | None = None, **options: Any) -> Any:
        with show_progress(f"partita {command.__name__}", verbose):
            return command(*arguments, verbose=verbose, **options)

    return shown


class FitMonitor:
    """A callback for fits that stops them after Ctrl-C.

    A fit that can be stopped ends after its current iteration when Ctrl-C is pressed, and its result is kept; a second
    Ctrl-C ends the process at once. A fit that cannot be stopped is left to Python: Ctrl-C raises KeyboardInterrupt.

    Parameters
    ----------
    can_stop : bool, default=True
        Whether the fit ends early, with a result, when this callback returns True.
    time_limit : float, default=None
        Seconds after which the fit is stopped, for fits that have no limit of their own.
    """

    def __init__(self, *, can_stop: bool = True, time_limit: float | None = None) -> None:
        self.can_stop = can_stop
        self._deadline = math.inf if time_limit is None else time.perf_counter() + time_limit
        self.stopped = False  # whether the fit was told to stop
        self._stop_requested = False
        self._previous_handler: Any = None

    def __enter__(self) -> FitMonitor:
        if self.can_stop and threading.current_thread() is threading.main_thread():
            self._previous_handler = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._previous_handler is not None:
            signal.signal(signal.SIGINT, self._previous_handler)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if self._stop_requested:
            say("partita: interrupted; nothing was written")
            # An exception would have to wait for the chains that run in other threads. Nothing is being written yet.
            os._exit(INTERRUPTED)
        self._stop_requested = True
        say("partita: stopping after the current iteration (press Ctrl-C again to end at once)")

    def __call__(self, progress: Any) -> bool:
        """Whether the fit must stop. Fits call this after each iteration."""
        self.stopped = self.stopped or self._stop_requested or time.perf_counter() >= self._deadline
        return self.stopped

    @property
    def interrupted(self) -> bool:
        """Whether the fit was stopped by Ctrl-C."""
        return self.stopped and self._stop_requested
