"""The driver of all engines: iterations, chains, restarts, convergence, time limit, callback, Ctrl-C, checkpoints.

An engine provides a state and its steps. A deterministic engine is run by :func:`iterate` until it converges, a sampler
by :func:`run_chain` through burn-in and draws, several chains by :func:`run_chains`. The rules are the same for all:

- The time limit is in wall seconds for the whole fit, compilation included. No iteration begins after it. Chains that
  run one after the other have equal shares of the remaining time.
- A callback is called after every iteration; if it returns True, the whole fit stops.
- Ctrl-C raises, or with ``keep_partial`` ends the fit with the result so far.
- Draws begin after burn-in. If some chains have draws, chains without a draw are left out of the result. If no chain
  has a draw, the result is the most probable of the last states, and it is marked as provisional.
- Burn-in and the number of draws are given, or they follow from the run: chains stop when their draws agree.
- With a checkpoint, a chain that was killed continues as if it had not been interrupted.
- The display of the progress counts the iterations of all runs together, and is closed when the fit ends in any way.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple, Protocol

import numpy as np

from partita.engines.checkpoints import Checkpoint
from partita.execution.executors import n_workers
from partita.progress import Display

STOPPED_EARLY = ("time_limit", "callback", "interrupted")


class EngineError(RuntimeError):
    """An engine violated one of its own invariants: a defect of the library, not of the data."""


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
        self.deadline = math.inf if time_limit is None else self.began + time_limit
        self.callback, self.keep_partial = callback, keep_partial
        self.reason = (
            ""  # why the fit ends early: "time_limit", "callback", "interrupted"; empty if it does not
        )
        self._halt = threading.Event()
        self._lock = threading.RLock()
        self.display = Display()
        self._showing: AbstractContextManager[Display] = (
            self.display if showing is None else showing(self.deadline)
        )
        self._n_groups = 0

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


# ---- engines that climb ------------------------------------------------------------------------------------------


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
    >>> first = lambda: Halving(8.0, np.inf, 0)
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


# ---- chains --------------------------------------------------------------------------------------------------------


class HasSchedule(Protocol):
    """How long a chain runs: ``burn_in`` iterations, then ``n_draws`` draws, one every ``thin`` iterations.

    What is None follows from the run, which needs a :class:`Settling`.
    """

    @property
    def n_draws(self) -> int | None: ...
    @property
    def burn_in(self) -> int | None: ...
    @property
    def thin(self) -> int: ...


class Settling(NamedTuple):
    """When chains have run long enough: after one of the ``checks``, if the draws of their second half agree."""

    checks: Sequence[int]  # numbers of iterations, increasing; after the last one the chains end in any case
    agree: Callable[[list[list[Any]]], bool]  # from the draws of each chain
    min_draws: int  # of all chains together, if their number is not given


class Sampler(NamedTuple):
    """What a model provides for a chain: its start, the steps of an iteration, and the values read from a state.

    Each step leaves the posterior invariant (some only after burn-in). All random numbers come from the state.
    """

    start: Callable[[], Any]
    steps: Sequence[Callable[[Any], Any]]
    log_joint: Callable[[Any], float]
    draw: Callable[[Any, float], Any]  # (state, its log joint) -> what is kept of it
    n_clusters: Callable[[Any], int]
    given: Any = ()  # what states refer to and no checkpoint has to hold: data, layouts


class ChainResult(NamedTuple):
    """The result of a chain."""

    draws: list[Any]  # all of them from after burn-in
    state: Any
    log_joint: np.ndarray  # of each iteration
    reason: str  # "done", "time_limit", "callback", "interrupted"
    last: Any = None  # the last state as a draw, where there is no other

    @property
    def n_iter(self) -> int:
        """Number of iterations, including those before a checkpoint."""
        return len(self.log_joint)


class Chains(NamedTuple):
    """The chains from which the result is computed."""

    runs: list[ChainResult]
    reason: str  # "done", or why the fit ended early
    provisional: bool  # no chain came to its first draw: `runs` holds one chain, its draw is its last state
    burn_in: int = 0
    agreed_at: int | None = (
        None  # iteration after which the draws agreed; None: they did not, or were not compared
    )

    @property
    def draws(self) -> list[Any]:
        """Draws of all chains, one chain after the other."""
        return [draw for run in self.runs for draw in run.draws]

    @property
    def n_iter(self) -> int:
        """Iterations of the longest chain."""
        return max(run.n_iter for run in self.runs)


class _ChainRun:
    """A chain that runs in one or several parts; it continues from the checkpoint if there is one."""

    def __init__(
        self,
        sampler: Sampler,
        first: int,
        thin: int,
        *,
        number: int,
        control: Control,
        checkpoint: Checkpoint | None,
    ):
        self.sampler, self.first, self.thin = sampler, first, thin
        self.number, self.control, self.checkpoint = number, control, checkpoint
        self.values: list[float] = []
        self.reason = "done"
        draws: list[Any] = []
        if checkpoint is not None and checkpoint.begun:
            self.state, self.values, draws = checkpoint.load(sampler.given)
        else:
            self.state = sampler.start()
        self.n_drawn = len(draws)
        self._draws = {first + (j + 1) * thin: draw for j, draw in enumerate(draws)}  # by iteration, from 1

    def advance(self, end: int, deadline: float | None) -> None:
        """Run to iteration ``end``, or until the fit must stop."""
        sampler, control = self.sampler, self.control
        try:
            for iteration in range(len(self.values) + 1, end + 1):
                for step in sampler.steps:
                    self.state = step(self.state)
                self.values.append(float(sampler.log_joint(self.state)))
                if iteration > self.first and (iteration - self.first) % self.thin == 0:
                    self._add_draw(iteration)
                n_clusters = sampler.n_clusters(self.state)
                progress = Progress(self.number, iteration, self.values[-1], n_clusters, control.seconds)
                stop = control.after(progress, deadline)
                if self.checkpoint is not None:
                    at_once = stop or iteration == end
                    self.checkpoint.save(
                        self.state, self.values, self.n_drawn, sampler.given, at_once=at_once
                    )
                if stop and iteration < end:
                    self.reason = control.reason
                    break
        except KeyboardInterrupt:
            if not control.keep_partial or not self.values:
                raise
            control.stop("interrupted")
            self.reason = "interrupted"

    def _add_draw(self, iteration: int) -> None:
        draw = self.sampler.draw(self.state, self.values[-1])
        self._draws[iteration] = draw
        if self.checkpoint is not None:
            self.checkpoint.add_draw(self.n_drawn, draw)
        self.n_drawn += 1

    def draws(self, after: int, until: int | None = None) -> list[Any]:
        """The draws from after an iteration, until another one."""
        return [draw for t, draw in self._draws.items() if t > after and (until is None or t <= until)]

    def forget(self, until: int) -> None:
        """Give up the memory of draws that are no longer needed."""
        self._draws = {t: draw for t, draw in self._draws.items() if t > until}

    def result(self, burn_in: int, n_draws: int | None = None) -> ChainResult:
        """The draws from after burn-in, and the last state."""
        draws = self.draws(burn_in)
        draws = draws if n_draws is None else draws[-n_draws:]
        last = None if draws else self.sampler.draw(self.state, self.values[-1])
        return ChainResult(draws, self.state, np.array(self.values), self.reason, last)


def run_chain(
    sampler: Sampler,
    schedule: HasSchedule,
    *,
    number: int = 0,
    control: Control | None = None,
    checkpoint: Checkpoint | None = None,
) -> ChainResult:
    """Burn in, then draw; continue from the checkpoint if there is one."""
    control = Control() if control is None else control
    burn_in, end = _given_length(schedule)
    run = _ChainRun(sampler, burn_in, schedule.thin, number=number, control=control, checkpoint=checkpoint)
    run.advance(end, None)
    return run.result(burn_in)


def _given_length(schedule: HasSchedule) -> tuple[int, int]:
    """Burn-in and iterations of a schedule that gives both burn-in and the number of draws."""
    assert schedule.burn_in is not None and schedule.n_draws is not None
    return schedule.burn_in, schedule.burn_in + schedule.n_draws * schedule.thin


def run_chains(
    make: Callable[[int], Sampler],
    n_chains: int,
    schedule: HasSchedule,
    *,
    control: Control,
    executor: Any,
    checkpoint: Callable[[int], Checkpoint | None] = lambda number: None,
    settling: Settling | None = None,
) -> Chains:
    """Run the chains that ``make`` makes.

    After the fit was stopped or interrupted, or its time limit has passed, no further chain begins (but at least one
    does). Chains in threads end after their current iteration, and all of them are waited for.

    With ``settling`` the chains run in rounds, from check to check. Once their draws agree, they continue until they
    have as many draws as wanted. Burn-in, if it is not given, is half of the iterations before that check.
    """
    pool = _ChainPool(make, n_chains, schedule, control, executor, checkpoint)
    if settling is not None:
        before = schedule.burn_in or 0
        with control.runs(n_chains, "chain", before + settling.checks[-1]):
            return _run_until_settled(pool, schedule, settling)
    burn_in, end = _given_length(schedule)
    with control.runs(n_chains, "chain", end, is_limit=False):
        pool.run_to(end)
    return pool.result(burn_in)


def _run_until_settled(pool: _ChainPool, schedule: HasSchedule, settling: Settling) -> Chains:
    burn_in, agreed_at = schedule.burn_in, None
    for n_iter in settling.checks:
        check = n_iter + (schedule.burn_in or 0)
        if not pool.run_to(check, is_last=False):
            return pool.result(burn_in)  # stopped: the draws are those after the burn-in of the check before
        burn_in = check // 2 if schedule.burn_in is None else schedule.burn_in
        if settling.agree(pool.draws(burn_in, check)):
            agreed_at = check
            break
        pool.forget(burn_in)
    assert burn_in is not None
    n_before, n_had = ((t - pool.first) // schedule.thin for t in (burn_in, check))
    wanted = schedule.n_draws or max(n_had - n_before, -(-settling.min_draws // pool.n_chains))
    pool.run_to(pool.first + (n_before + wanted) * schedule.thin)
    return pool.result(burn_in, wanted, agreed_at)


class _ChainPool:
    """Several chains, which run to the same iterations."""

    def __init__(
        self,
        make: Callable[[int], Sampler],
        n_chains: int,
        schedule: HasSchedule,
        control: Control,
        executor: Any,
        checkpoint: Callable[[int], Checkpoint | None],
    ):
        self.n_chains, self.first = n_chains, schedule.burn_in or 0
        self._make, self._thin, self._checkpoint = make, schedule.thin, checkpoint
        self._control, self._executor = control, executor
        self._runs: dict[int, _ChainRun] = {}  # those that have had an iteration
        self._end = 0

    def run_to(self, end: int, *, is_last: bool = True) -> bool:
        """Run all chains to iteration ``end``, where they end or are continued; whether they came to it."""
        control = self._control
        left, busy = set(range(self.n_chains)), set[int]()
        change = threading.Condition()
        at_once = n_workers(self._executor)
        self._end = end

        def one(number: int) -> None:
            with change:
                if (control.halted or control.late) and (self._runs or busy):
                    control.stop("time_limit", everything=False)  # keeps an earlier reason
                    return
                deadline = control.share(len(left), at_once)
                left.discard(number)
                busy.add(number)
            try:
                run = self._runs.get(number) or self._begin(number)
                run.advance(end, deadline)
                if is_last:
                    control.display.end_run(number)
                with change:
                    self._runs[number] = run
            except BaseException:
                control.stop("failed")
                raise
            finally:
                with change:
                    busy.discard(number)
                    change.notify_all()

        try:
            for _ in self._executor.map(one, range(self.n_chains)):
                pass
        except BaseException as error:  # Ctrl-C reaches the main thread, whatever the others do
            control.stop("interrupted")
            with change:
                change.wait_for(lambda: not busy)
            if not (isinstance(error, KeyboardInterrupt) and control.keep_partial and self._runs):
                raise
            control.reason = "interrupted"
        return self._complete

    def _begin(self, number: int) -> _ChainRun:
        return _ChainRun(
            self._make(number), self.first, self._thin, number=number, control=self._control,
            checkpoint=self._checkpoint(number),
        )  # fmt: skip

    @property
    def _complete(self) -> bool:
        return len(self._runs) == self.n_chains and all(
            len(run.values) >= self._end for run in self._runs.values()
        )

    def draws(self, after: int, until: int) -> list[list[Any]]:
        """The draws of each chain between two iterations."""
        return [self._runs[number].draws(after, until) for number in range(self.n_chains)]

    def forget(self, until: int) -> None:
        """Give up the memory of draws that are no longer needed."""
        for run in self._runs.values():
            run.forget(until)

    def result(self, burn_in: int | None, n_draws: int | None = None, agreed_at: int | None = None) -> Chains:
        """What the chains have found; without a burn-in there is no draw."""
        runs = [self._runs[number] for number in sorted(self._runs)]
        if burn_in is None:
            burn_in = max(len(run.values) for run in runs)
        reason = "done" if self._complete else self._control.reason
        found = pool_chains([run.result(burn_in, n_draws) for run in runs], reason)
        return found._replace(burn_in=burn_in, agreed_at=agreed_at)


def pool_chains(runs: Sequence[ChainResult], reason: str) -> Chains:
    """The chains that have draws; if none has, the most probable of the last states, marked as provisional."""
    drawn = [run for run in runs if run.draws]
    if drawn:
        return Chains(drawn, reason, provisional=False)
    best = max(runs, key=lambda run: run.log_joint[-1])
    return Chains([best._replace(draws=[best.last])], reason, provisional=True)
