"""Progress of a fit on standard error, and what Ctrl-C does while a fit runs."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from types import FrameType
from typing import Any

SECONDS_BETWEEN_LINES = 10.0
INTERRUPTED = 130  # exit code of a command that Ctrl-C ended, as in shells
INTERRUPTED_NOTE = "Interrupted by Ctrl-C: this is the result so far."


class FitMonitor:
    """A callback for fits that shows their progress and stops them after Ctrl-C.

    In a terminal each chain, start or member has a progress bar; elsewhere a line is printed every ten seconds.

    A fit that can be stopped ends after its current iteration when Ctrl-C is pressed, and its result is kept; a second
    Ctrl-C ends the process at once. A fit that cannot be stopped is left to Python: Ctrl-C raises KeyboardInterrupt.

    Parameters
    ----------
    task : str
        What is done, for the line that is printed first: "fitting Mixture".
    run_name : str, default="chain"
        What one run of the fit is called: chain, start or member.
    total : int, default=None
        Number of iterations of each run, if it is known.
    quiet : bool, default=False
        Whether to print no progress. Ctrl-C works all the same.
    can_stop : bool, default=True
        Whether the fit ends early, with a result, when this callback returns True.
    """

    def __init__(
        self,
        task: str,
        run_name: str = "chain",
        total: int | None = None,
        quiet: bool = False,
        *,
        can_stop: bool = True,
    ) -> None:
        self.task, self.run_name, self.total, self.quiet, self.can_stop = (
            task,
            run_name,
            total,
            quiet,
            can_stop,
        )
        self.stopped = False  # whether the fit was told to stop
        self._stop_requested = False
        self._bars: Any = None
        self._tasks: dict[int, Any] = {}
        self._lock = threading.Lock()
        self._last_line = time.monotonic()
        self._previous_handler: Any = None

    def __enter__(self) -> FitMonitor:
        if self.can_stop and threading.current_thread() is threading.main_thread():
            self._previous_handler = signal.signal(signal.SIGINT, self._interrupt)
        if not self.quiet:
            print(f"partita: {self.task}", file=sys.stderr, flush=True)
        if not self.quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            self._bars = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.fields[state]}"),
                TimeElapsedColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._bars.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._bars is not None:
            self._bars.stop()
        if self._previous_handler is not None:
            signal.signal(signal.SIGINT, self._previous_handler)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if self._stop_requested:
            if self._bars is not None:
                self._bars.console.show_cursor(True)
            print("partita: interrupted; nothing was written", file=sys.stderr, flush=True)
            # An exception would have to wait for the chains that run in other threads. Nothing is being written yet.
            os._exit(INTERRUPTED)
        self._stop_requested = True
        print(
            "partita: stopping after the current iteration (press Ctrl-C again to end at once)",
            file=sys.stderr,
            flush=True,
        )

    def __call__(self, progress: Any) -> bool:
        """Show the progress; True asks the fit to stop. Fits call this after each iteration."""
        if not self.quiet:
            with self._lock:
                self._show(progress)
        self.stopped = self.stopped or self._stop_requested
        return self.stopped

    def _show(self, progress: Any) -> None:
        if hasattr(progress, "n_members"):  # of an ensemble
            index, done, total = 0, progress.member + 1, progress.n_members
            state = f"{progress.n_clusters} clusters"
        else:
            index, done, total = progress.run, progress.iteration, self.total
            state = f"K = {progress.n_clusters}, log joint {progress.objective:.1f}"
        name = f"{self.run_name} {index + 1}"
        if self._bars is not None:
            if index not in self._tasks:
                self._tasks[index] = self._bars.add_task(name, total=total, state="")
            self._bars.update(self._tasks[index], completed=done, state=state)
        elif time.monotonic() - self._last_line > SECONDS_BETWEEN_LINES:
            self._last_line = time.monotonic()
            of_total = f" of {total}" if total else ""
            print(f"partita: {name}, {done}{of_total}: {state}", file=sys.stderr, flush=True)
