"""Generics and kernels: resolution, laziness, the disk cache, and the detection of stale code."""

import logging
import os
import pickle
import subprocess
import sys
import textwrap
from typing import NamedTuple

import numpy as np
import pytest

from partita import compilation, dispatch
from partita.dispatch import generic, interpreted, kernel, lacks
from partita.families import FAMILIES
from partita.families.rows import normalize_rows, project_rows


class Metres(NamedTuple):
    scale: float


class Feet(NamedTuple):
    scale: float


@generic
def convert(unit, x):
    """A generic without a default."""


@generic(derived=True)
def twice(unit, x):
    return 2 * convert(unit, x)


@convert.register(Metres)
def _(unit, x):
    return x * unit.scale


@convert.register(Feet)
def _(unit, x):
    return shift(x) * unit.scale


@twice.register(Feet)
def _(unit, x):
    return -convert(unit, x)


@kernel
def shift(x):
    return x + 1.0


@kernel
def total(unit, X):
    out = 0.0
    for i in range(X.shape[0]):
        out += twice(unit, X[i])
    return out


@pytest.mark.parametrize("unit", [Metres(3.0), Feet(0.5)])
def test_compiled_and_interpreted_agree(unit):
    X = np.arange(5.0)
    expected = sum(twice(unit, x) for x in X)
    assert total(unit, X) == pytest.approx(expected)
    with interpreted():
        assert total(unit, X) == pytest.approx(expected)


def test_each_type_has_its_own_implementation():
    assert twice(Metres(3.0), 2.0) == 12.0  # derived from convert
    assert twice(Feet(0.5), 2.0) == -1.5  # its own


def test_a_missing_implementation_is_named():
    class Yards(NamedTuple):
        scale: float

    with pytest.raises(TypeError, match=r"Yards has no implementation of convert\(\)"):
        convert(Yards(1.0), 2.0)
    assert lacks(Yards, convert, twice) == ["convert"]
    assert lacks(Feet, convert, twice) == []


def test_interpreted_is_restored_after_an_error():
    with pytest.raises(ValueError, match="inside"), interpreted():
        raise ValueError("inside")
    assert not dispatch._interpreting


def test_kernels_pickle_by_name():
    assert pickle.loads(pickle.dumps(project_rows)) is project_rows


def test_kernels_release_the_lock():
    assert project_rows.compiled.targetoptions["nogil"]


def test_importing_families_does_not_import_numba():
    code = "import sys, partita.families, partita.partitions, partita.engines.climb.vb; print('numba' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"


def test_the_same_source_runs_without_a_compiler():
    code = """
        import numpy as np
        from partita.families.rows import normalize_rows
        L = np.log(np.array([[0.1, 0.3], [0.4, 0.4]])); sums = np.zeros(2)
        normalize_rows(L, np.ones(2), sums)
        print(L.ravel().tolist(), sums.tolist())
    """
    env = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    run = [sys.executable, "-c", textwrap.dedent(code)]
    plain = subprocess.run(run, capture_output=True, text=True, check=True, env=env)
    L, sums = np.log(np.array([[0.1, 0.3], [0.4, 0.4]])), np.zeros(2)
    normalize_rows(L, np.ones(2), sums)
    assert plain.stdout.strip() == f"{L.ravel().tolist()} {sums.tolist()}"


FAMILY = """
from typing import NamedTuple
from partita.dispatch import generic

class Unit(NamedTuple):
    scale: float

@generic
def convert(unit, x): ...

@convert.register(Unit)
def _(unit, x):
    return FACTOR * x * unit.scale
"""

LOOP = """
import logging
import sys
from family import Unit, convert
from partita.dispatch import kernel

logging.getLogger("partita").setLevel(logging.ERROR)

@kernel
def run(unit, x):
    return OFFSET + convert(unit, x)

value = run(Unit(1.0), 2.0)
hits = sum(run.compiled.stats.cache_hits.values())
print(value, "cached" if hits else "compiled")
"""


def test_the_disk_cache_is_used_and_never_stale(tmp_path):
    """An edit of an implementation in another file, or of the kernel's own file, must reach the compiled code."""

    def write(name, text):
        (tmp_path / name).write_text(text)

    def run():
        env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
        out = subprocess.run(
            [sys.executable, "-c", "import loop"], cwd=tmp_path, capture_output=True, text=True, env=env
        )
        assert out.returncode == 0, out.stderr
        return out.stdout.split()

    write("family.py", FAMILY.replace("FACTOR", "10.0"))
    write("loop.py", LOOP.replace("OFFSET", "0.0"))
    assert run() == ["20.0", "compiled"]
    assert run() == ["20.0", "cached"]
    write("family.py", FAMILY.replace("FACTOR", "30.0"))
    assert run() == ["60.0", "compiled"]
    write("loop.py", LOOP.replace("OFFSET", "1.5"))
    assert run() == ["61.5", "compiled"]
    assert run() == ["61.5", "cached"]
    # a class that a cached signature names has moved away: the cache is of no use, and must do no harm
    write("family.py", FAMILY.replace("FACTOR", "30.0").replace("Unit", "Measure") + "\nUnit = Measure\n")
    assert run() == ["61.5", "compiled"]
    write("family.py", FAMILY.replace("FACTOR", "30.0").replace("Unit", "Measure"))
    write("loop.py", LOOP.replace("OFFSET", "1.5").replace("Unit", "Measure"))
    assert run() == ["61.5", "compiled"]


OWN_CLASS = """
import logging
from typing import NamedTuple
import numpy as np
from partita.families import contract, gaussian
from partita.families.rows import shift_rows

logging.getLogger("partita").setLevel(logging.ERROR)

class Own(NamedTuple):
    columns: int

@contract.n_columns.register(TYPE)
def _(family):
    return NUMBER

shift_rows(np.zeros((2, 2)), np.ones(2))
print("cached" if sum(shift_rows.compiled.stats.cache_hits.values()) else "compiled")
"""


def test_a_class_of_your_own_costs_nobody_the_files_of_the_package(tmp_path):
    """Registering a class does not make this process, or later ones, compile the kernels of the package again."""

    def run(code):
        path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
        env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": path}
        (tmp_path / "own_class.py").write_text(code)
        out = subprocess.run(
            [sys.executable, "-c", "import own_class"], capture_output=True, text=True, env=env
        )
        assert out.returncode == 0, out.stderr
        return out.stdout.strip()

    own = OWN_CLASS.replace("TYPE", "Own")
    assert run(own.replace("NUMBER", "1")) == "compiled"
    assert run(own.replace("NUMBER", "2")) == "cached"
    assert run(own.replace("@contract", "# @contract").replace("NUMBER", "2")) == "cached"
    # another rule for a class of the package may be inside anything: such a process has files of its own
    patched = OWN_CLASS.replace("TYPE", "gaussian.GaussianDiagonal")
    assert run(patched.replace("NUMBER", "2")) == "compiled"
    assert run(patched.replace("NUMBER", "2")) == "cached"
    assert run(patched.replace("NUMBER", "3")) == "compiled"
    assert run(own.replace("NUMBER", "2")) == "cached"


def test_classes_from_outside_are_found_in_a_signature():
    from numba import typeof, types

    from partita.kernel_files import foreign_names

    here, number = f"{__name__}.Metres", types.float64
    mine = typeof(Metres(1.0))
    family = FAMILIES["bernoulli"].cls
    theirs = typeof(family._make([1.0] * len(family._fields)))
    assert foreign_names((number, types.Array(number, 2, "C"), types.UniTuple(number, 3), theirs)) == set()
    for kind in (
        mine,
        types.UniTuple(mine, 2),
        types.Tuple((number, mine)),
        types.Tuple((number, types.Tuple((mine,)))),
    ):
        assert foreign_names((number, kind)) == {here}
    assert foreign_names((project_rows._numba_type_, shift._numba_type_)) == {f"{__name__}.shift"}


def test_the_first_compile_is_announced_once(tmp_path):
    code = """
        import numpy as np
        from partita.families.rows import normalize_rows
        for shape in (np.float64, np.float32):
            normalize_rows(np.zeros((2, 2), shape), np.ones(2), np.zeros(2))
    """
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    run = [sys.executable, "-c", textwrap.dedent(code)]
    first = subprocess.run(run, capture_output=True, text=True, check=True, env=env)
    assert first.stderr.count("compiling code that was not needed") == 1
    assert first.stdout == ""
    second = subprocess.run(run, capture_output=True, text=True, check=True, env=env)
    assert second.stderr == ""


def test_the_announcement_can_be_silenced():
    assert compilation.logger is logging.getLogger("partita")


def test_every_family_implements_what_the_engines_need():
    from partita.families import contract

    needed = (contract.n_columns, contract.stats_start, contract.observe, contract.log_marginal)
    for entry in FAMILIES.values():
        assert lacks(entry.cls, *needed) == []
