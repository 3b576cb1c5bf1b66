"""The driver: why a run stops, and what it says when an engine breaks its law."""

import math
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest

from partita.engines.run import Control, EngineError, Run, best_run, iterate

SIZES = SimpleNamespace(n=np.array([3.0, 0.2, 1.0]))


class State(NamedTuple):
    objective: float
    statistics: SimpleNamespace = SIZES
    change: float = 1.0


def scripted(*objectives):
    script = iter(objectives)
    return lambda state: State(next(script))


def run(*objectives, **options):
    settings = {"max_iter": len(objectives), "tol": 1e-6, "weight": 1.0} | options
    return iterate(scripted(*objectives), State(-math.inf), **settings)


def test_not_a_number_names_the_iteration_and_the_last_good_value():
    with pytest.raises(FloatingPointError, match=r"at iteration 3 \(last good: -4\.0\)"):
        run(-5.0, -4.0, math.nan)


def test_a_fall_is_an_error_in_debug_and_a_note_otherwise():
    with pytest.raises(EngineError, match="fell by 2 at iteration 3"):
        run(-5.0, -4.0, -6.0, debug=True)
    assert run(-5.0, -4.0, -6.0, -5.0, -5.5).worst_fall == 2.0
    assert run(-5.0, -6.0, debug=True, monotone=False).worst_fall == 0.0


def test_rounding_is_not_a_fall():
    assert run(-5.0, -5.0 - 1e-10, debug=True, tol=0.0).worst_fall == 0.0


def test_an_engine_says_how_far_rounding_may_go():
    class Rounded(NamedTuple):
        objective: float
        rounding: float = 1e-3
        statistics: SimpleNamespace = SIZES

    def fall(by):
        script = iter([-5.0, -5.0 - by])
        options = {"max_iter": 2, "tol": 0.0, "weight": 1.0}
        return iterate(lambda state: Rounded(next(script)), Rounded(-math.inf), **options).worst_fall

    assert fall(0.9e-3) == 0.0
    assert fall(1.1e-3) == pytest.approx(1.1e-3)


def test_convergence_is_per_object():
    result = run(-5.0, -4.0, -3.99, -3.989, max_iter=4, tol=1e-3, weight=10.0)
    assert result.converged
    assert result.reason == "converged"
    assert result.objectives == [-5.0, -4.0, -3.99]
    assert result.objective == -3.99


def test_no_convergence_says_max_iter():
    result = run(-5.0, -4.0, -3.0)
    assert (result.converged, result.reason) == (False, "max_iter")


def test_engines_without_a_bound_stop_by_their_change():
    steps = iter([0.5, 0.1, 1e-7])
    result = iterate(
        lambda state: State(-1.0, change=next(steps)),
        State(0.0),
        max_iter=9,
        tol=1e-6,
        weight=8.0,
        monotone=False,
    )
    assert result.converged
    assert len(result.objectives) == 3


def test_time_limit():
    late = Control(time_limit=-1.0)
    result = run(-5.0, -4.0, -3.0, control=late)
    assert (result.reason, len(result.objectives)) == ("time_limit", 1)


def test_callback_sees_progress_and_may_stop():
    seen = []

    def callback(progress):
        seen.append(progress)
        return progress.iteration == 2

    result = run(-5.0, -4.0, -3.0, control=Control(callback=callback), number=7)
    assert result.reason == "callback"
    assert [(p.run, p.iteration, p.objective, p.n_clusters) for p in seen] == [
        (7, 1, -5.0, 2),
        (7, 2, -4.0, 2),
    ]


def interrupted_at(iteration):
    def step(state):
        step.count += 1
        if step.count == iteration:
            raise KeyboardInterrupt
        return State(float(step.count))

    step.count = 0
    return step


def test_interrupt_keeps_what_there_is_if_asked():
    options = {"max_iter": 9, "tol": 0.0, "weight": 1.0}
    kept = iterate(interrupted_at(3), State(-math.inf), control=Control(keep_partial=True), **options)
    assert (kept.reason, kept.state.objective, kept.converged) == ("interrupted", 2.0, False)
    with pytest.raises(KeyboardInterrupt):
        iterate(interrupted_at(3), State(-math.inf), **options)
    with pytest.raises(KeyboardInterrupt):  # nothing there yet
        iterate(interrupted_at(1), State(-math.inf), control=Control(keep_partial=True), **options)


def ended(objective, reason="converged"):
    return Run(State(objective), [objective], reason == "converged", reason, 0.0)


def test_best_run_takes_the_highest_and_the_first_of_equals():
    runs = [ended(-3.0), ended(-1.0), ended(-2.0), ended(-1.0)]
    best, finals = best_run(runs)
    assert best is runs[1]
    assert finals == [-3.0, -1.0, -2.0, -1.0]


@pytest.mark.parametrize("reason", ["interrupted", "time_limit", "callback"])
def test_best_run_starts_no_more_when_told_to_stop(reason):
    def runs():
        yield ended(-3.0)
        yield ended(-5.0, reason)
        raise AssertionError("another start after the stop")

    best, finals = best_run(runs())
    assert best.objective == -3.0
    assert finals == [-3.0, -5.0]
