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


LABELS = "row,cluster\n" + "".join(f"{row},{row % 3}\n" for row in range(30))
OTHERS = "row,cluster\n" + "".join(f"{row},{row // 11}\n" for row in range(30))
READ_OR_REFUSED = {
    "--version": 0,
    "--help": 0,
    "cluster --help": 0,
    "compare labels.csv others.csv --json": 0,
    "compare labels.csv absent.csv": 2,
    "cluster absent.csv": 2,
    "cluster broken.csv": 2,
    "cluster labels.csv --kind cluster=number": 2,
    "cluster labels.csv --inference guess": 2,
    "cluster labels.csv --no-such-option": 2,
    "consensus absent.csv": 2,
    "consensus labels.csv --method guess": 2,
    "views absent.csv": 2,
    "tree absent.csv": 2,
    "blocks absent.csv": 2,
    "ensemble absent.csv -o members.csv": 2,
    "report absent": 2,
    "warm --kind guess": 2,
}


@pytest.mark.parametrize("command", READ_OR_REFUSED)
def test_commands_that_read_or_refuse_load_no_heavy_library(command, tmp_path, monkeypatch):
    """They take 0.3 s of CPU time; `python -m benchmarks startup` has the seconds."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "labels.csv").write_text(LABELS)
    (tmp_path / "others.csv").write_text(OTHERS)
    (tmp_path / "broken.csv").write_text(LABELS + '"')
    code = (
        "import sys, json\nfrom partita.cli import main\n"
        f"status = main({command.split()!r})\n"
        f"print(json.dumps([status, [m for m in {(*HEAVY, 'tqdm')!r} if m in sys.modules]]))"
    )
    assert run(code) == [READ_OR_REFUSED[command], []]


@pytest.mark.parametrize("name", partita.__all__)
def test_every_name_is_there(name):
    assert getattr(partita, name) is not None
    assert name in dir(partita)


def test_unknown_name():
    with pytest.raises(AttributeError, match="no attribute 'Mixtur'"):
        partita.Mixtur
