import importlib
import sys

import walk_code
from walk_code import Class, Figures, Function, Walk


def test_changes_are_counted_between_neighbors():
    assert walk_code.count_changes([]) == walk_code.count_changes(["a"]) == 0
    assert walk_code.count_changes(["a", "a", "b", "a", "a"]) == 2


def test_the_package_is_the_first_part_of_the_path():
    assert walk_code.package_of("views/overlapping/search.py") == "views"
    assert walk_code.package_of("trace.py") == "trace"


def test_new_functions_are_counted_below_their_first_callers():
    #   0 -> 1 -> 2, 1 -> 3, 0 -> 4; 5 is called from outside
    assert walk_code.count_new([None, 0, 1, 1, 0, None]) == [4, 2, 0, 0, 0, 0]


WALK = Walk(
    "a walk",
    [
        Function("cli/start.py", "main", None),
        Function("mixture/model.py", "fit", 0),
        Function("mixture/model.py", "_plan", 1),
        Function("mixture/model.py", "_tell", 1),
        Function("engines/em.py", "climb", 1),
        Function("engines/em.py", "step", 4),
        Function("engines/em.py", "log_joint", 5),
        Function("engines/em.py", "normalize", 5),
    ],
    {(0, 1), (1, 2), (1, 3), (1, 4), (4, 5), (5, 6), (5, 7)},
    [
        Class("partita.Plan", "NamedTuple", frozenset({2})),
        Class("partita.Run", "NamedTuple", frozenset({1, 4})),
    ],
)


def test_the_main_line_leaves_files_and_leads_to_something_new():
    # `climb` leads to three new functions, but stays in its file
    assert walk_code.main_line(WALK) == [0, 1]
    assert walk_code.count(WALK, [0, 1]) == Figures(functions=2, files=2, packages=2, changes=1, classes=1)
    assert walk_code.count(WALK, range(8)) == Figures(functions=8, files=3, packages=3, changes=2, classes=2)


def test_listed_functions_are_indented_under_listed_ones():
    assert list(walk_code.describe(WALK, [1, 5])) == [
        "    mixture/model.py: fit",
        "      engines/em.py: step",
        "    class partita.Run (NamedTuple)",
    ]


FIRST = """
from typing import NamedTuple

class State(NamedTuple):
    n: int

def square(n):
    return State(n * n)

def squares(n):
    for i in range(n):
        yield square(i)

ready = square(1)

def run(n):
    from walked.inner.second import total
    return total(squares(n))
"""
SECOND = """
from dataclasses import dataclass

@dataclass
class Sum:
    value: int

def total(states):
    return Sum(sum(state.n for state in states))
"""


def test_the_tracer_follows_first_calls(tmp_path, monkeypatch):
    folder = tmp_path / "walked"
    (folder / "inner").mkdir(parents=True)
    for file, text in {
        "__init__.py": "",
        "first.py": FIRST,
        "inner/__init__.py": "",
        "inner/second.py": SECOND,
    }.items():
        (folder / file).write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    run = importlib.import_module("walked.first").run
    tracer = walk_code.Tracer(str(folder))
    before = sys.getprofile()
    sys.setprofile(tracer.watch)
    try:
        result = run(3)
    finally:
        sys.setprofile(before)
    assert result.value == 5
    walk = tracer.result("squares")
    assert walk.functions == [
        Function("first.py", "run", None),
        Function("inner/second.py", "total", 0),
        Function("first.py", "squares", 1),
        Function("first.py", "square", 2),
    ]
    assert walk.calls == {(0, 1), (1, 2), (2, 3)}
    assert walk.classes == [
        Class("walked.first.State", "NamedTuple", frozenset({3})),
        Class("walked.inner.second.Sum", "dataclass", frozenset({1})),
    ]
