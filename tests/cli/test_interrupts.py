"""Ctrl-C: a fit that can stop keeps its result, every other command ends and writes nothing."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import partita
from partita import load
from partita.cli.clustering import CONSENSUS_METHODS
from partita.cli.progress import INTERRUPTED_NOTE

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals")

COMMAND = "from partita.cli.start import script; script()"
SECONDS_TO_END = 30
SECONDS_TO_WRITE = 200  # what comes after the iterations may have to be compiled
# stands for the fit of a table that is too large for a test: it runs until it is interrupted
ENDLESS_FIT = """
import time
import partita
def fit(self, X, y=None):
    print("begun", flush=True)
    while True:
        time.sleep(0.05)
partita.{name}.fit = fit
"""
# the first iteration ends only after Ctrl-C
SLOW_ITERATION = """
import time
from partita.cli.progress import FitMonitor
call = FitMonitor.__call__
def wait(self, progress):
    print("begun", flush=True)
    while not self._stop_requested:
        time.sleep(0.05)
    return call(self, progress)
FitMonitor.__call__ = wait
"""
# the first iteration does not end
ENDLESS_ITERATION = SLOW_ITERATION.replace("return call", "time.sleep(600)\n    return call")


def start(folder, *arguments, before="", program=COMMAND):
    return subprocess.Popen(
        [sys.executable, "-c", before + program, *map(str, arguments)],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # a shell that starts the tests in the background makes their children ignore Ctrl-C
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def interrupt(running, seconds=SECONDS_TO_END):
    running.send_signal(signal.SIGINT)
    try:
        out, err = running.communicate(timeout=seconds)
    finally:
        running.kill()
    print(out, err)
    return out, err


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    z = np.repeat([0, 1], 30)
    np.savetxt(
        tmp_path / "table.csv",
        rng.normal(size=(60, 2)) + 8 * z[:, None],
        header="x,y",
        comments="",
        delimiter=",",
    )
    np.savetxt(
        tmp_path / "labels.csv", np.column_stack([z] * 4), "%d", header="a,b,c,d", comments="", delimiter=","
    )
    return tmp_path


def can_stop(name):
    parameters = getattr(partita, name)().get_params()
    return "callback" in parameters and "keep_partial" in parameters


def test_an_interrupted_fit_keeps_what_it_has(folder):
    running = start(
        folder,
        "cluster",
        "table.csv",
        "--draws",
        "1000000",
        "--burn-in",
        "0",
        "-o",
        "out",
        "--json",
        "--progress",
    )
    for line in running.stderr:
        if "chain 1  iteration" in line:
            break
    out, err = interrupt(running, SECONDS_TO_WRITE)
    assert running.returncode == 130 and "stopping after the current iteration" in err
    found = json.loads(out)
    assert found["interrupted"] and found["n_clusters"] == 2
    assert {path.name for path in (folder / "out").iterdir()} == {
        "labels.csv",
        "columns.csv",
        "model.npz",
        "source.json",
        "report.html",
    }
    assert json.loads((folder / "out" / "source.json").read_text())["interrupted"]
    model = load(folder / "out" / "model.npz")
    assert 0 < len(model.trace_.labels) < 1_000_000
    assert INTERRUPTED_NOTE in (folder / "out" / "report.html").read_text()


@pytest.mark.parametrize(
    "command",
    [
        ["cluster", "table.csv", "--inference", "em", "-K", "3"],
        ["consensus", "labels.csv", "--method", "nbce"],
        ["consensus", "labels.csv", "--method", "mixture"],
        ["consensus", "labels.csv", "--method", "bce"],
        ["views", "table.csv"],
        ["blocks", "labels.csv"],
    ],
    ids=lambda command: "-".join(command[::3]),
)
def test_every_fit_that_can_stop_does(folder, command):
    running = start(folder, *command, "-o", "out", "--json", "-q", before=SLOW_ITERATION)
    assert running.stdout.readline() == "begun\n"
    out, err = interrupt(running, SECONDS_TO_WRITE)
    assert running.returncode == 130 and "stopping after the current iteration" in err
    assert json.loads(out.splitlines()[-1])["interrupted"]
    assert json.loads((folder / "out" / "source.json").read_text())["interrupted"]
    assert INTERRUPTED_NOTE in (folder / "out" / "report.html").read_text()


@pytest.mark.parametrize(
    ("command", "name"),
    [(["tree", "table.csv"], "BayesianTree")]
    + [
        (["consensus", "labels.csv", "--method", method], name)
        for method, name in CONSENSUS_METHODS.items()
        if method in ("consensus", "voting", "eac", "hbgf")
    ],
)
def test_other_commands_end_and_write_nothing(folder, command, name):
    if can_stop(name):
        pytest.skip(f"{name} stops and keeps its result")
    before = sorted(folder.iterdir())
    running = start(folder, *command, "--progress", before=ENDLESS_FIT.format(name=name))
    assert running.stdout.readline() == "begun\n"
    out, err = interrupt(running)
    assert running.returncode == 130 and out == ""
    assert err.splitlines()[-2:] == [f"partita {command[0]}: fitting {name}", "partita: interrupted"]
    assert sorted(folder.iterdir()) == before


def test_a_tree_of_a_large_table_ends(folder):
    """Compiled code runs most of the time here: it must not hold the interrupt back."""
    X = np.random.default_rng(0).normal(size=(150_000, 6))
    np.save(folder / "large.npy", X)
    running = start(folder, "tree", "large.npy", "-o", "out", "--progress")
    for line in running.stderr:
        if line == "partita tree: fitting BayesianTree\n":
            break
    with pytest.raises(subprocess.TimeoutExpired):
        running.wait(timeout=3)
    out, err = interrupt(running)
    assert running.returncode == 130 and out == "" and err.endswith("partita: interrupted\n")
    assert not (folder / "out").exists()


def test_a_second_interrupt_ends_at_once(folder):
    running = start(folder, "cluster", "table.csv", "-o", "out", before=ENDLESS_ITERATION)
    assert running.stdout.readline() == "begun\n"
    running.send_signal(signal.SIGINT)
    for line in running.stderr:
        if "press Ctrl-C again" in line:
            break
    out, err = interrupt(running)
    assert (
        running.returncode == 130
        and out == ""
        and err.endswith("partita: interrupted; nothing was written\n")
    )
    assert not (folder / "out").exists()


def test_an_ensemble_keeps_the_members_so_far(folder):
    running = start(
        folder, "ensemble", "table.csv", "-m", "1000000", "-o", "members.csv", "--json", "--progress"
    )
    for line in running.stderr:
        if "ensemble: member 1  " in line:
            break
    out, _ = interrupt(running, SECONDS_TO_WRITE)
    assert running.returncode == 130
    found = json.loads(out)
    assert found["interrupted"] and 0 < found["n_members"] < 1_000_000
    assert len((folder / "members.csv").read_text().splitlines()) == 61


def test_a_fit_that_ends_before_it_can_stop_is_complete(folder, monkeypatch, capsys):
    """The interrupt comes after the last iteration: the result is complete, and nothing else is said of it."""
    from partita.cli import main

    fit = partita.Mixture.fit

    def fit_and_interrupt(self, X, **options):
        fit(self, X, **options)
        os.kill(os.getpid(), signal.SIGINT)
        return self

    monkeypatch.setattr(partita.Mixture, "fit", fit_and_interrupt)
    arguments = ["cluster", str(folder / "table.csv"), "--inference", "em", "-K", "2", "-q", "--json"]
    assert main(arguments) == 0
    assert not json.loads(capsys.readouterr().out)["interrupted"]
