"""A fit that was stopped says so first, in JSON and on the page, and has every attribute of one that was not."""

import json
import warnings

import numpy as np
import pytest

import partita
from partita import load
from partita.cli import main
from partita.dispatch import interpreted
from partita.estimator import early_end

SHORT = {"n_chains": 2, "n_draws": 6, "burn_in": 4, "random_state": 0}
RNG = np.random.default_rng(0)
Z = np.repeat([0, 1], 8)
X = RNG.normal(size=(16, 2)) + 6.0 * Z[:, None]
Y = np.where(RNG.random((16, 4)) < 0.15, 1 - Z[:, None], Z[:, None])
B = (RNG.random((10, 8)) < np.where(np.arange(10)[:, None] % 2 == np.arange(8) % 2, 0.9, 0.1)).astype(float)

FITS = {
    "mixture": (partita.Mixture, SHORT, X),
    "mixture outliers": (partita.Mixture, SHORT | {"family": "gaussian", "outliers": True}, X),
    "mixture em": (partita.Mixture, {"inference": "em", "n_clusters": 2, "random_state": 0}, X),
    "mixture vb": (partita.Mixture, {"inference": "vb", "random_state": 0}, X),
    "latent classes": (partita.LatentClass, {"n_clusters": 2, "random_state": 0}, Y),
    "nbce": (partita.NBCE, SHORT, Y),
    "nbce vb": (partita.NBCE, {"inference": "vb", "random_state": 0}, Y),
    "bce": (partita.BCE, {"n_clusters": 2, "random_state": 0}, Y),
    "mixture consensus": (partita.MixtureConsensus, {"random_state": 0}, Y),
    "crosscat": (partita.CrossCat, SHORT, X),
    "overlapping": (partita.OverlappingViews, SHORT | {"n_init": 1}, X),
    "blocks": (partita.RelationalBlocks, SHORT | {"n_moves": 2}, B),
    "tree": (partita.BayesianTree, {"random_state": 0}, X),
}


def public(model):
    """Names of the results of a fit."""
    names = [name for name in dir(model) if name.endswith("_") and not name.startswith("_")]
    return {name for name in names if hasattr(model, name)}


def fit(cls, options, data, **more):
    with interpreted(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cls(**options, **more).fit(data)


@pytest.mark.parametrize("name", FITS)
def test_a_stopped_fit_has_every_attribute(name, tmp_path):
    cls, options, data = FITS[name]
    whole = fit(cls, options, data)
    stopped = fit(cls, options, data, callback=lambda progress: True)
    assert early_end(whole) is None
    end = early_end(stopped)
    assert end is not None and end.reason == "callback" and "by the callback" in end.message
    assert public(stopped) == public(whole)
    for result in public(stopped):
        getattr(stopped, result)
    stopped.set_params(callback=None).save(tmp_path / "model.npz")
    assert early_end(load(tmp_path / "model.npz")) == end


@pytest.fixture
def table(tmp_path):
    lines = [f"{x:.3f},{y:.3f}" for x, y in np.repeat(X, 4, axis=0) + RNG.normal(0, 0.1, (64, 2))]
    (tmp_path / "table.csv").write_text("\n".join(["x,y", *lines]) + "\n")
    return tmp_path / "table.csv"


def test_the_first_line_says_it(table, capsys):
    assert main(["cluster", str(table), "--inference", "gibbs", "--time-limit", "0.000001", "-q"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Stopped early: the chains were stopped by the time limit")
    assert "group" in lines[1]
    assert "Stopped early</strong>" in (table.parent / "table-partita" / "report.html").read_text()
    assert main(["cluster", str(table), "--time-limit", "0.000001", "-q", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["stopped_early"] is True and found["stopped_by"] == "time_limit"
    assert not found["interrupted"]


def test_a_finished_fit_says_nothing_of_it(table, capsys):
    assert main(["cluster", str(table), "--inference", "em", "-K", "2", "-q", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["stopped_early"] is False and found["stopped_by"] is None


def test_an_ensemble_within_its_time(table, capsys):
    out = str(table.with_name("members.csv"))
    limited = ["ensemble", str(table), "-m", "50", "-o", out, "--time-limit", "0.000001", "--json", "-q"]
    assert main(limited) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["stopped_by"] == "time_limit" and 0 < found["n_members"] < 50


def test_the_folder_names_no_place_of_this_machine(table, monkeypatch, capsys):
    monkeypatch.chdir(table.parent)
    for path in (str(table), "table.csv"):
        assert main(["cluster", path, "--inference", "em", "-K", "2", "-q"]) == 0
        source = (table.parent / "table-partita" / "source.json").read_text()
        assert json.loads(source)["file"] == "../table.csv" and str(table.parent) not in source
    (table.parent / "elsewhere").mkdir()
    (table.parent / "table.csv").rename(table.parent / "elsewhere" / "table.csv")
    (table.parent / "table-partita").rename(table.parent / "elsewhere" / "table-partita")
    assert main(["report", "elsewhere/table-partita"]) == 0  # both were moved together
