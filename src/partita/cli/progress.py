"""Progress of a fit on standard error, and a first Ctrl-C that asks it to stop."""

from __future__ import annotations

import signal
import sys
import threading
import time
from types import FrameType
from typing import Any

__all__ = ["Watch"]

SECONDS_BETWEEN_LINES = 10.0


class Watch:
    """A callback for fits: shows where they are, and stops them after a Ctrl-C.

    In a terminal there is a bar for each chain or start; elsewhere a line every ten seconds. The first Ctrl-C lets the
    running iteration end and keeps what was found; the second one ends at once.

    Parameters
    ----------
    what : str
        Name of one chain, start or member: "chain".
    total : int, optional
        Iterations of each, where that is known.
    quiet : bool
        Show nothing (a Ctrl-C still stops).
    """

    def __init__(self, what: str = "chain", total: int | None = None, quiet: bool = False) -> None:
        self.what, self.total, self.quiet = what, total, quiet
        self.stopped = False
        self._bars: Any = None
        self._tasks: dict[int, Any] = {}
        self._lock = threading.Lock()
        self._last_line = time.monotonic()
        self._before: Any = None

    def __enter__(self) -> Watch:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._interrupt)
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
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if self.stopped:
            raise KeyboardInterrupt
        self.stopped = True
        print("partita: stopping after this iteration (Ctrl-C again: at once)", file=sys.stderr)

    def __call__(self, progress: Any) -> bool:
        """Called by a fit after each iteration; True asks it to stop."""
        if not self.quiet:
            with self._lock:
                self._show(progress)
        return self.stopped

    def _show(self, progress: Any) -> None:
        if hasattr(progress, "n_members"):  # of an ensemble
            index, done, total = 0, progress.member + 1, progress.n_members
            state = f"{progress.n_clusters} clusters"
        else:
            index, done, total = progress.run, progress.iteration, self.total
            state = f"K = {progress.n_clusters}, log joint {progress.objective:.1f}"
        name = f"{self.what} {index + 1}"
        if self._bars is not None:
            if index not in self._tasks:
                self._tasks[index] = self._bars.add_task(name, total=total, state="")
            self._bars.update(self._tasks[index], completed=done, state=state)
        elif time.monotonic() - self._last_line > SECONDS_BETWEEN_LINES:
            self._last_line = time.monotonic()
            of = f" of {total}" if total else ""
            print(f"partita: {name}, {done}{of}: {state}", file=sys.stderr, flush=True)
