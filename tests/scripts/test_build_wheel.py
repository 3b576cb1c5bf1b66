"""`make wheel`: the wheel with compiled kernels, in a new environment, compiles nothing in its first fit."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FIRST_FIT = """
import sys
import numpy as np
from numba.core import event
from partita import Mixture
compiled = event.RecordingListener()
event.register("numba:compile", compiled)
rng = np.random.default_rng(0)
z = rng.integers(3, size=200)
X = np.column_stack([rng.normal(6.0 * z), rng.poisson(3 + 9 * z), rng.random(200) < 0.1 + 0.4 * z])
model = Mixture(kinds=["real", "count", "binary"], random_state=0).fit(X)
print(len([one for _, one in compiled.buffer if one.is_start]), model.n_clusters_)
"""


@pytest.mark.slow
@pytest.mark.skipif(find_spec("build") is None or find_spec("twine") is None, reason="needs the extra wheel")
def test_the_first_fit_from_the_wheel_compiles_nothing(tmp_path):
    script = ROOT / "scripts" / "build_wheel.py"
    subprocess.run([sys.executable, str(script), "--out", str(tmp_path)], check=True, cwd=tmp_path)
    assert (
        len(list(tmp_path.glob("partita-*"))) == 3
    )  # source, wheel for all platforms, wheel with compiled code
    (wheel,) = tmp_path.glob("partita-*-cp3*.whl")
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    numba = subprocess.run(
        [sys.executable, "-c", "import numba; print(numba.__version__)"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    install = [
        str(python),
        "-m",
        "pip",
        "install",
        "-q",
        "--only-binary=:all:",
        str(wheel),
        f"numba=={numba}",
    ]
    subprocess.run(install, check=True)
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "NUMBA_CACHE_DIR")}
    done = subprocess.run(
        [str(python), "-c", FIRST_FIT], env=env, cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["0", "3"]
