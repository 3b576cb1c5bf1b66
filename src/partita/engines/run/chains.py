"""Runs of samplers: burn-in and draws of one chain, several chains, and when they have run long enough."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from partita.engines.checkpoints import Checkpoint
from partita.engines.run.control import Control, Progress
from partita.execution.executors import n_workers


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
    # iteration after which the draws agreed; None: they did not, or were not compared
    agreed_at: int | None = None

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
