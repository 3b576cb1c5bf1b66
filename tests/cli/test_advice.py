"""Advice names options, and only those that the command has."""

import re

import pytest

from partita.cli.advice import OPTIONS, in_options
from partita.cli.app import app, options_of
from partita.table.notes import _TEXTS

COMMANDS = [command.name or command.callback.__name__ for command in app.registered_commands]
OF_ESTIMATORS = [
    "Chains of 3 draws are too short to be judged: raise n_draws to know whether they agree.",
    "No draw was kept. Raise time_limit or lower burn_in.",
    "the chains did not agree within 90 iterations: set burn_in and n_draws to run them longer",
    "all 5 clusters that were allowed are in use: raise max_clusters",
    "no consensus: all objects are in one cluster (set n_clusters to get clusters nevertheless)",
    "the best number of clusters, 7, is the largest that was considered: give max_clusters= or n_clusters=",
    "n_clusters=9, but there are only 4 distinct rows: each is a cluster",
    "they leave 3% of the variance open. family={'real': 'gaussian'} models the columns one by one",
    "all rows have the length 1; family='vonmises_fisher' compares them by the angles between them",
    "Gibbs sampling would take about an hour; to use it, set inference='gibbs'",
    "the searches for views were stopped by the time limit: views may be missing; raise time_limit",
    "exposure='length' is for counts, but no column is a count: pass kinds='count'",
    "lower n_draws or n_chains, or fit a sample of the rows",
]
TEXTS = [text.format(columns="'n_draws' (3)") for _, text in _TEXTS.values()] + OF_ESTIMATORS


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_of_an_advice_is_one_of_the_command(command):
    options = options_of(command)
    for text in TEXTS:
        told = in_options(text, options)
        for option in re.findall(r"(?<!\w)--[a-z][a-z-]*", told):
            assert option in options or option in text, (command, told)
        for name, option in OPTIONS.items():  # a parameter that the command has as an option is not named
            if option in options and "_" in name:
                assert not re.search(rf"(?<!['\w]){name}(?!['\w])", told), (command, told)


def test_the_words_of_the_command_line():
    options = options_of("cluster")
    told = [in_options(text, options) for text in OF_ESTIMATORS]
    assert told[0].endswith("raise --draws to know whether they agree.")
    assert told[1].endswith("Raise --time-limit or lower --burn-in.")
    assert told[3].endswith("raise max_clusters (in Python)")
    assert told[5].endswith("give max_clusters= (in Python) or --clusters")
    assert "--family real=gaussian models" in told[7] and told[11].endswith("pass --kind count")
    assert in_options("set n_draws", options_of("tree")) == "set n_draws (in Python)"


def test_names_of_columns_are_not_parameters():
    text = "missing cells, which are left out of the likelihood: 'n_draws' (3), 'family' (2)"
    assert in_options(text, options_of("cluster")) == text
    assert in_options("5 of 90 rows are outliers", options_of("cluster")) == "5 of 90 rows are outliers"


def test_how_a_fit_runs_is_said_in_the_same_way_everywhere():
    for command in ("consensus", "cluster", "views", "tree", "blocks", "ensemble", "demo"):
        assert {"--time-limit", "--jobs", "--seed"} <= options_of(command), command
    for command in ("cluster", "views", "tree", "blocks"):
        assert {"--family", "--output", "--format"} <= options_of(command), command


def test_families(tmp_path, capsys):
    from partita.cli import main

    (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"{i % 5},{i}\n" for i in range(30)))
    quick = [
        str(tmp_path / "t.csv"),
        "--kind",
        "real",
        "--inference",
        "em",
        "-K",
        "2",
        "-q",
        "-c",
        "x",
        "-c",
        "y",
    ]
    assert main(["cluster", *quick, "--family", "real=gaussian_full"]) == 0
    assert main(["cluster", *quick, "--family", "gaussian"]) == 0
    assert main(["cluster", *quick, "--family", "=gaussian"]) == 2
    assert "--family kind=family" in capsys.readouterr().err
    for method, option in (("eac", "--time-limit"), ("cspa", "--jobs")):
        assert main(["consensus", str(tmp_path / "t.csv"), "--method", method, option, "1"]) == 2
        assert f"{method} has no {option}" in capsys.readouterr().err
