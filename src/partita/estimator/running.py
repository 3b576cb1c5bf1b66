"""The seven parameters of how a fit runs, which are the same in every iterative estimator."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from numbers import Integral, Real
from typing import Any

from sklearn.utils._param_validation import Interval

from partita.engines.run import Control, Progress
from partita.execution import journaled, make_executor
from partita.progress import Display, show_progress

RUNNING_CONSTRAINTS: dict[str, Any] = {
    "time_limit": [None, Interval(Real, 0, None, closed="neither")],
    "callback": [None, callable],
    "keep_partial": ["boolean"],
    "n_jobs": [None, Integral],
    "executor": "no_validation",
    "resume": "no_validation",
    "verbose": [None, "verbose"],
}


class RunningMixin:
    """How a fit runs: an estimator with this mixin has these parameters; ``fit`` runs within ``with self._control()``.

    Parameters
    ----------
    time_limit : float, optional
        Wall seconds for the whole fit, compilation included; no iteration begins after it.
    callback : callable, optional
        Called after each iteration with a :class:`~partita.engines.run.Progress`; returning True stops the fit.
    keep_partial : bool, default=False
        Whether an interrupt (Ctrl-C) keeps the result so far instead of raising.
    n_jobs : int, optional
        Number of threads; the result does not depend on it.
    executor : None, "threads", "processes", Dask client or address, optional
        Where the work runs; the result does not depend on it.
    resume : path, optional
        A folder that keeps the state of the fit: the same call after a kill continues from there.
    verbose : bool, optional
        Whether to show the progress on standard error. None, the default, shows a bar in terminals and notebooks and
        nothing elsewhere; True prints lines where there is no terminal.
    """

    time_limit: float | None
    callback: Callable[[Progress], Any] | None
    keep_partial: bool
    n_jobs: int | None
    executor: Any
    resume: Any
    verbose: bool | int | None
    _counted = "clusters"  # what the progress counts

    def _control(self) -> Control:
        """What may end this fit early, and the display of its progress; its clock starts now."""
        title, counted = type(self).__name__, self._counted

        def showing(deadline: float) -> AbstractContextManager[Display]:
            return show_progress(title, self.verbose, counted=counted, deadline=deadline)

        return Control(
            time_limit=self.time_limit,
            callback=self.callback,
            keep_partial=bool(self.keep_partial),
            showing=showing,
        )

    def _make_executor(self) -> Any:
        """Where the work runs, with a journal where the user has named a folder."""
        return journaled(make_executor(self.n_jobs, self.executor), self.resume)
