"""Measure how far a reader walks through the code of the package from a command to its result.

Three walks are followed in the interpreter, on small data: ``partita cluster table.csv``,
``partita consensus labels.csv`` and ``OverlappingViews.fit(X)``. Kernels run uncompiled, so the walk goes
through them as a reader does and does not depend on which of them were compiled before.

The order of a walk is the order in which the functions of the package are called for the first time. Reported are
the functions, the files and packages that they are in, the package changes (how often a function is followed by one
of another package) and the state classes (classes of the package of which an instance is made). A package is the
first part of the path below ``partita``: all of ``views/overlapping/`` is in ``views``.

"whole walk" counts every function. "main line" counts those that a reader has to follow to know where the data go:

- the function calls a function of another file, and
- at least `MIN_NEW` functions are called for the first time below it, directly or indirectly.

Leaves, and functions whose callees the reader has met before, are thereby left out. The state classes of the main line
are those of which a function of the main line makes an instance itself. Lambdas, comprehensions and code that runs
while a module is imported are not counted, and the machinery of compilation (`dispatch`, `erasure`, `compilation`,
`kernel_files`) is passed over: a call through it counts as a call of the kernel. All figures are counts, so they are
equal on every machine.

    python scripts/walk_code.py                      the figures of this checkout
    python scripts/walk_code.py --source DIR         those of another checkout (the folder that contains src)
    python scripts/walk_code.py --list main          with the functions and classes of each main line
    python scripts/walk_code.py --list whole         with those of each whole walk
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import dataclasses
import inspect
import io
import itertools
import multiprocessing
import os
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
MACHINERY = ("dispatch", "erasure", "compilation", "kernel_files")
MIN_NEW = 3
TABLE_STEP = 6  # every sixth of the 600 visitors: uncompiled sweeps over all of them take minutes


class Function(NamedTuple):
    """A function of the package, and the first call of it."""

    file: str  # below the package, with forward slashes
    name: str
    parent: int | None  # position in the walk of the function that called it first


class Class(NamedTuple):
    """A class of the package of which the walk makes an instance."""

    name: str
    kind: str
    makers: frozenset[int]  # positions in the walk of the functions that make instances


class Walk(NamedTuple):
    """What was called, in the order of first calls."""

    name: str
    functions: list[Function]
    calls: set[tuple[int, int]]  # positions of caller and callee
    classes: list[Class]


class Figures(NamedTuple):
    """The counts of a walk."""

    functions: int
    files: int
    packages: int
    changes: int
    classes: int


# ---- counting ------------------------------------------------------------------------------------------------------


def package_of(file: str) -> str:
    """The package of a file: ``engines/passes/em.py`` is in engines, ``trace.py`` is trace."""
    return file.split("/", 1)[0].removesuffix(".py")


def count_changes(names: Sequence[str]) -> int:
    """How often a name is followed by a different one."""
    return sum(before != after for before, after in itertools.pairwise(names))


def count_new(parents: Sequence[int | None]) -> list[int]:
    """For each function, the functions that are called for the first time below it.

    ``parents[i]`` is the position of the first caller of function ``i``, which comes before it.
    """
    new = [0] * len(parents)
    for i in range(len(parents) - 1, -1, -1):
        parent = parents[i]
        if parent is not None:
            new[parent] += 1 + new[i]
    return new


def main_line(walk: Walk) -> list[int]:
    """Positions of the functions of the main line, as the head of this file defines it."""
    functions = walk.functions
    new = count_new([function.parent for function in functions])
    leaving = {a for a, b in walk.calls if functions[a].file != functions[b].file}
    return [i for i in range(len(functions)) if i in leaving and new[i] >= MIN_NEW]


def count(walk: Walk, chosen: Sequence[int]) -> Figures:
    """The figures of the chosen functions of a walk."""
    files = [walk.functions[i].file for i in chosen]
    packages = [package_of(file) for file in files]
    n_classes = len(classes_of(walk, chosen))
    return Figures(len(files), len(set(files)), len(set(packages)), count_changes(packages), n_classes)


def classes_of(walk: Walk, chosen: Sequence[int]) -> list[Class]:
    """The classes of which the chosen functions make instances."""
    return [cls for cls in walk.classes if cls.makers & set(chosen)]


# ---- following -----------------------------------------------------------------------------------------------------


class Tracer:
    """Follows the calls between functions of one package; `watch` is what `sys.setprofile` takes."""

    def __init__(self, folder: str):
        self.folder = folder.rstrip(os.sep) + os.sep
        self.package = Path(folder).name
        self.places: dict[CodeType, int] = {}
        self.functions: list[Function] = []
        self.calls: set[tuple[int, int]] = set()
        self.makers: dict[type, set[int]] = {}
        self._files: dict[CodeType, str | None] = {}
        self._importing = threading.local()

    def watch(self, frame: FrameType, event: str, _: Any) -> None:
        """Take note of a call."""
        code = frame.f_code
        if code.co_name == "<module>" and event in ("call", "return"):
            if code.co_filename.startswith(self.folder):
                self._importing.depth = self._depth() + (1 if event == "call" else -1)
        elif event == "call" and not self._depth():
            self._note_instance(frame)
            file = self._file_of(code)
            if file is not None:
                self._note_call(frame, file)

    def _depth(self) -> int:
        return getattr(self._importing, "depth", 0)

    def _file_of(self, code: CodeType) -> str | None:
        """The file of a function that counts; None for all other code."""
        if code not in self._files:
            inside = code.co_filename.startswith(self.folder)
            # the body of a class is run like a function, but has no fast locals
            named = code.co_flags & inspect.CO_OPTIMIZED and not code.co_name.startswith("<")
            file = code.co_filename.removeprefix(self.folder).replace(os.sep, "/")
            counts = inside and named and package_of(file) not in MACHINERY
            self._files[code] = file if counts else None
        return self._files[code]

    def _caller(self, frame: FrameType) -> int | None:
        """Position of the nearest function of the package that waits for this frame."""
        outer = frame.f_back
        while outer is not None and self._file_of(outer.f_code) is None:
            outer = outer.f_back
        return None if outer is None else self.places.get(outer.f_code)

    def _note_call(self, frame: FrameType, file: str) -> None:
        code, caller = frame.f_code, self._caller(frame)
        if code not in self.places:
            self.places[code] = len(self.functions)
            self.functions.append(Function(file, code.co_qualname, caller))
        if caller is not None:
            self.calls.add((caller, self.places[code]))

    def _note_instance(self, frame: FrameType) -> None:
        code = frame.f_code
        if code.co_name == "__init__" and code.co_argcount:
            made = type(frame.f_locals[code.co_varnames[0]])
        elif code.co_name == "<lambda>" and frame.f_globals.get("__name__", "").startswith("namedtuple_"):
            made = frame.f_locals["_cls"]  # the constructor that collections.namedtuple writes
        else:
            return
        package, _, rest = made.__module__.partition(".")
        caller = self._caller(frame) if package == self.package else None
        if caller is not None and rest.split(".")[0] not in MACHINERY:
            self.makers.setdefault(made, set()).add(caller)

    def result(self, name: str) -> Walk:
        """The walk so far."""
        classes = [
            Class(f"{made.__module__}.{made.__qualname__}", kind_of(made), frozenset(makers))
            for made, makers in self.makers.items()
        ]
        return Walk(name, self.functions, self.calls, classes)


def kind_of(cls: type) -> str:
    """NamedTuple, dataclass, exception or plain."""
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return "NamedTuple"
    if issubclass(cls, BaseException):
        return "exception"
    return "dataclass" if dataclasses.is_dataclass(cls) else "plain"


# ---- the three walks -----------------------------------------------------------------------------------------------


def prepare_cluster(folder: Path) -> Callable[[], int]:
    """``partita cluster`` on some rows of the bundled table."""
    from partita.cli import main
    from partita.datasets import load_visitors

    table = load_visitors().frame
    rows = list(zip(*(np.asarray(column, dtype=object)[::TABLE_STEP] for column in table.values())))
    path = folder / "table.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(table)
        writer.writerows(["" if cell is None or cell != cell else cell for cell in row] for row in rows)
    few = ["--chains", "2", "--draws", "4", "--burn-in", "4", "--jobs", "1"]
    return lambda: main(["cluster", str(path), *few, "--quiet", "--out", str(folder / "out")])


def prepare_consensus(folder: Path) -> Callable[[], int]:
    """``partita consensus`` on eight labelings of 60 objects, each with a few labels changed."""
    from partita.cli import main

    rng = np.random.default_rng(0)
    planted = np.repeat(np.arange(3), 20)
    changed = rng.random((60, 8)) < 0.15
    labels = np.where(changed, rng.integers(3, size=(60, 8)), planted[:, None])
    path = folder / "labels.csv"
    header = ",".join(f"member{m}" for m in range(labels.shape[1]))
    np.savetxt(path, labels, fmt="%d", delimiter=",", header=header, comments="")
    return lambda: main(["consensus", str(path), "--quiet", "--out", str(folder / "out")])


def prepare_views(folder: Path) -> Callable[[], int]:
    """``OverlappingViews.fit`` on six columns with two groupings that share one of them."""
    from partita import OverlappingViews

    rng = np.random.default_rng(0)
    one, two = rng.integers(2, size=(2, 60))
    X = 4.0 * np.column_stack([one, one, one + two, two, two, 0 * one]) + rng.normal(size=(60, 6))
    model = OverlappingViews(n_init=1, n_chains=2, n_draws=3, burn_in=2, random_state=0, n_jobs=1)

    def run() -> int:
        model.fit(X)
        return 0

    return run


WALKS = {
    "partita cluster table.csv": prepare_cluster,
    "partita consensus labels.csv": prepare_consensus,
    "OverlappingViews.fit(X)": prepare_views,
}


def follow(name: str, source: str) -> Walk:
    """Take one walk through the package under ``source/src``."""
    sys.path.insert(0, str(Path(source) / "src"))
    import partita
    from partita.dispatch import interpreted

    folder = Path(str(partita.__file__)).parent
    if not folder.is_relative_to(Path(source).resolve()):
        raise RuntimeError(f"partita was loaded from {folder}, not from {source}")
    tracer = Tracer(str(folder))
    with tempfile.TemporaryDirectory() as place, interpreted(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few draws are not to be trusted, as the fit says
        run = WALKS[name](Path(place))
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            threading.setprofile(tracer.watch)
            sys.setprofile(tracer.watch)
            try:
                exit_code = run()
            finally:
                sys.setprofile(None)
                threading.setprofile(None)
    if exit_code:
        raise RuntimeError(f"the command ended with exit code {exit_code}: {said.getvalue()}")
    return tracer.result(name)


def follow_all(source: Path) -> Iterator[Walk]:
    """Take every walk in a process of its own, so that nothing is remembered from the one before."""
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for name in WALKS:
            yield pool.apply(follow, (name, str(source)))


# ---- telling -------------------------------------------------------------------------------------------------------


def describe(walk: Walk, chosen: Sequence[int]) -> Iterator[str]:
    """The functions, indented by the number of chosen functions that they are called from, and the classes."""
    depths: dict[int | None, int] = {None: -1}
    for i, function in enumerate(walk.functions):
        depths[i] = depths[function.parent] + (i in chosen)
    for i in chosen:
        yield f"    {'  ' * depths[i]}{walk.functions[i].file}: {walk.functions[i].name}"
    for cls in classes_of(walk, chosen):
        yield f"    class {cls.name} ({cls.kind})"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Measure how far a reader walks through the code.")
    parser.add_argument("--source", type=Path, default=ROOT, help="checkout to measure: the folder with src")
    parser.add_argument("--list", choices=("main", "whole"), help="also list functions and classes")
    options = parser.parse_args(arguments)

    heads = ("functions", "files", "packages", "changes", "classes")
    print(f"{'walk':30} {'reading':10} " + " ".join(f"{head:>9}" for head in heads))
    for walk in follow_all(options.source.resolve()):
        readings = {"main": main_line(walk), "whole": range(len(walk.functions))}
        for reading, chosen in readings.items():
            print(f"{walk.name:30} {reading:10} " + " ".join(f"{n:9}" for n in count(walk, chosen)))
        if options.list:
            print(*describe(walk, readings[options.list]), sep="\n", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
