"""What importing costs, and what it brings along."""

import json
import subprocess
import sys

import pytest

import partita

HEAVY = (
    "numba",
    "llvmlite",
    "matplotlib",
    "dask",
    "distributed",
    "pandas",
    "polars",
    "sklearn",
    "scipy",
    "joblib",
)


def run(code):
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    return json.loads(done.stdout.splitlines()[-1])


def loaded(statement):
    code = f"import sys, json\n{statement}\nprint(json.dumps([m for m in {HEAVY!r} if m in sys.modules]))"
    return set(run(code))


def test_import_brings_nothing():
    assert loaded("import partita") == set()


def test_mixture_does_not_compile():
    by_sklearn = loaded("import sklearn.base, sklearn.utils.validation")  # some releases import pandas
    found = loaded("from partita import Mixture, LatentClass, load\nMixture(), LatentClass()")
    assert found <= by_sklearn | {"sklearn", "scipy", "joblib"}
    assert not found & {"numba", "llvmlite", "matplotlib", "dask", "distributed", "polars"}


def test_import_loads_few_modules():
    """What an import costs is what it loads; benchmarks/speed/yardsticks.py has the seconds."""
    code = "import sys, json\nbefore = set(sys.modules)\n{}\nprint(json.dumps(sorted(set(sys.modules) - before)))"
    assert run(code.format("import partita")) == ["partita", "partita._version"]
    ours = [name for name in run(code.format("from partita import Mixture")) if name.startswith("partita.")]
    assert not [
        name for name in ours if name.startswith(("partita.plotting", "partita.report", "partita.cli"))
    ]


@pytest.mark.parametrize("name", partita.__all__)
def test_every_name_is_there(name):
    assert getattr(partita, name) is not None
    assert name in dir(partita)


def test_unknown_name():
    with pytest.raises(AttributeError, match="no attribute 'Mixtur'"):
        partita.Mixtur
