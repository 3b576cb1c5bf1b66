"""Compiled code that comes with the package is used where it can run, and only there."""

import json
import os
import subprocess
import sys

import pytest

from partita.compilation import processor
from partita.kernel_files import can_run

# Calls one kernel from Python and prints how many functions were compiled. The folder of shipped code is the argument.
CALL = """
import pathlib, sys
import numpy as np
from numba.core import event
from partita import kernel_files
kernel_files.SHIPPED = pathlib.Path(sys.argv[1])
kernel_files.SHIPPED_RECORD = kernel_files.SHIPPED / "record.json"
from partita.families.cholesky import log_determinant
compiled = event.RecordingListener()
event.register("numba:compile", compiled)
assert log_determinant(2.0 * np.eye(2), 2) == 4 * np.log(2.0)
print(len([one for _, one in compiled.buffer if one.is_start]))
"""


def call_kernel(shipped, cache, **env):
    """Number of functions that a process compiles which has only this shipped code and this cache."""
    env = {**os.environ, "NUMBA_CACHE_DIR": str(cache), **env}
    done = subprocess.run([sys.executable, "-c", CALL, str(shipped)], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.fixture(scope="module")
def shipped(tmp_path_factory):
    """Code that was compiled for a processor with few features, as a wheel holds it."""
    folder, cache = tmp_path_factory.mktemp("shipped"), tmp_path_factory.mktemp("cache")
    few = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    assert call_kernel(folder, cache, **few) > 0
    (folder / "families").mkdir()
    for file in cache.rglob("*.nb[ic]"):
        file.rename(folder / "families" / file.name)
    (folder / "record.json").write_text(json.dumps({"processor": [processor()[0], "generic", ""]}))
    return folder


def test_shipped_code_is_used_without_compilation(shipped, tmp_path):
    assert call_kernel(shipped, tmp_path) == 0
    assert not list(tmp_path.rglob("*.nbc"))


def test_code_for_another_processor_is_not_used(shipped, tmp_path):
    record = shipped / "record.json"
    before = record.read_text()
    try:
        record.write_text(json.dumps({"processor": [processor()[0], "generic", "+a-feature-of-the-future"]}))
        assert call_kernel(shipped, tmp_path) > 0
        record.write_text("damaged")
        assert call_kernel(shipped, tmp_path / "other") > 0
    finally:
        record.write_text(before)


def test_code_compiled_here_comes_first(shipped, tmp_path):
    assert call_kernel(tmp_path / "nothing shipped", tmp_path) > 0
    (code,) = (file for file in tmp_path.rglob("*.nbc"))
    damaged = shipped / "families" / next(iter(shipped.rglob("*.nbc"))).name
    before = damaged.read_bytes()
    try:
        damaged.write_bytes(b"damaged")
        assert call_kernel(shipped, tmp_path) == 0
    finally:
        damaged.write_bytes(before)
    assert code.exists()


def test_a_processor_runs_what_needs_no_more_than_it_has():
    here = ("linux", "some", "+avx,-avx2,+fma")
    assert can_run(("linux", "older", "+avx,-fma"), here)
    assert can_run(here, here)
    assert not can_run(("linux", "newer", "+avx,+avx2"), here)
    assert not can_run(("macos", "older", "+avx"), here)


@pytest.mark.parametrize("place", ["save", "load"])
def test_row_82_a_full_disk_under_the_kernel_cache(place, monkeypatch, caplog):
    """The code is compiled in memory, and one line says that it is not kept."""
    from partita import kernel_files
    from partita.dispatch import Kernel

    def full(self, *args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(kernel_files, "_told", [])
    # nothing is found on the disk, whatever earlier runs of this test have kept there
    monkeypatch.setattr(kernel_files.KernelFiles, "load", lambda self, key: None)
    monkeypatch.setattr(kernel_files.KernelFiles, place, full)
    for times, function in ((2, doubled), (3, tripled)):
        assert Kernel(function)(4) == 4 * times
    told = [record.message for record in caplog.records if "cannot be kept on disk" in record.message]
    assert len(told) == 1 and "No space left on device" in told[0]


def doubled(x):
    return 2 * x


def tripled(x):
    return 3 * x
