"""The tables of `views_real`: groupings are independent, and the columns of one grouping depend on no other."""

import numpy as np
import pytest

from benchmarks.matching import matched_nmi, nmi
from benchmarks.quality import views_real
from benchmarks.quality.drawn_views import make_letters, make_stick_figures, make_turned_digits
from benchmarks.quality.known_views import dependent_columns
from benchmarks.quality.survey_views import make_styled_survey

RECIPES = [make_stick_figures, make_letters, make_turned_digits, make_styled_survey]


def by_group(X, z):
    return np.array([X[z == k].mean(axis=0) for k in range(z.max() + 1)])


def largest_z(X, z):
    """The largest difference of a group's mean from that of all rows, in standard errors, per column."""
    deviation = X.std(axis=0) * np.sqrt(1 / np.bincount(z)[:, None] - 1 / len(z))
    return (abs(by_group(X, z) - X.mean(axis=0)) / np.maximum(deviation, 1e-9)).max(axis=0)


@pytest.mark.parametrize("make", RECIPES)
def test_a_column_of_one_grouping_depends_on_no_other(make, global_random_seed):
    table = make(seed=global_random_seed)
    assert table.X.shape[0] <= 900 and table.X.shape[1] <= 400
    names = list(table.labels)
    for name, columns in table.columns.items():
        assert table.n_groups[name] == len(np.unique(table.labels[name])) and len(columns) >= 8
        for other in names:
            z = largest_z(table.X[:, columns], table.labels[other])
            if other == name:
                assert np.median(z) > 6
            else:
                assert z.max() < 6.5  # at most 1e3 differences of normal means: 1e-7
    assert len(np.unique(np.concatenate(list(table.columns.values())))) == sum(
        map(len, table.columns.values())
    )


@pytest.mark.parametrize("make", [make_stick_figures, make_letters])
def test_all_pixels_share_the_brightness_of_their_picture(make, global_random_seed):
    table = make(seed=global_random_seed)
    brightness = np.median(table.X, axis=1)  # of the background
    of_groups = np.unique(np.column_stack(list(table.labels.values())), axis=0, return_inverse=True)[
        1
    ].ravel()
    within = table.X - by_group(table.X, of_groups)[of_groups]
    r = np.array([np.corrcoef(within[:, d], brightness)[0, 1] for d in range(table.X.shape[1])])
    assert r.min() > 0.2


def test_half_of_the_lit_pixels_of_a_figure_tell_each_half_of_the_body():
    columns = make_stick_figures(9).columns
    upper, lower = len(columns["upper"]), len(columns["lower"])
    assert upper + lower > 200 and 0.7 < upper / lower < 1.4
    assert columns["upper"].mean() < columns["lower"].mean()  # row by row from the top


def test_the_oracle_tells_the_groups_of_the_figures(global_random_seed):
    table = make_stick_figures(seed=global_random_seed)
    for name, z in table.labels.items():
        assert nmi(z, views_real.oracle(table.X, z, table.columns[name], 0)) > 0.99


def test_dependent_columns_are_those_of_a_single_grouping():
    templates = np.zeros((2, 3, 4))
    templates[1, :, 0] = 1  # the first grouping
    templates[:, 2, 1] = 1  # the second one
    templates[1, 2, 2] = 1  # both
    assert [one.tolist() for one in dependent_columns(templates)] == [[0], [1]]


def test_survey_answers_are_shifted_by_the_style_of_the_respondent(global_random_seed):
    table = make_styled_survey(seed=global_random_seed)
    assert table.X.dtype.kind == "i" and set(np.unique(table.X)) == {1, 2, 3, 4, 5}
    other = np.setdiff1d(np.arange(table.X.shape[1]), np.concatenate(list(table.columns.values())))
    halves = table.X[:, other[::2]].mean(axis=1), table.X[:, other[1::2]].mean(axis=1)
    assert np.corrcoef(*halves)[0, 1] > 0.2  # questions of no grouping, and yet dependent


def test_the_oracle_of_unknown_columns_takes_those_that_the_grouping_explains(rng):
    z = np.repeat([0, 1], 100)
    A = rng.normal(size=(200, 40)) * 3
    A[:, 7] = 4 * z + rng.normal(size=200) * 0.3
    A[:, 9] = 4 * z + rng.normal(size=200) * 0.3
    assert set(np.argsort(-views_real.explained(A, z))[:2]) == {7, 9}
    assert nmi(z, views_real.oracle(A, z, None, 0)) > 0.95


def test_a_grouping_without_a_view_scores_zero():
    known = [np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])]
    assert matched_nmi(known, np.empty((4, 0), int)).tolist() == [0, 0]
    assert matched_nmi(known, known[1][:, None]).tolist() == [0, 1]
    assert matched_nmi(np.column_stack(known), np.column_stack([known[1], known[0]])).tolist() == [1, 1]


def test_the_summary_has_all_groupings_and_methods():
    def one(upper, lower, clusters, stopped=False):
        return {
            "nmi": {"upper": upper, "lower": lower},
            "best": {"upper": upper, "lower": upper},
            "n_views": len(clusters),
            "clusters": clusters,
            "cpu_s": 2.0,
            "n_rows": 9,
            "n_columns": 4,
            "n_groups": {"upper": 3, "lower": 3},
            "kinds": {"real": 4},
            "stopped": stopped,
        }

    rows = {
        "crosscat": [one(0.9, 0.5, [27]), one(1.0, 0.5, [3, 3], True)],
        "overlapping": [one(0.5, 0.97, []), one(0.5, 0.97, [2, 3, 4, 5, 9])],
        "oracle": [one(1.0, 1.0, [3, 3])] * 2,
    }
    found = views_real.summarize(rows)
    assert found["groups"]["upper"]["nmi"] == {"crosscat": 0.95, "overlapping": 0.5, "oracle": 1.0}
    assert found["groups"]["lower"]["best"]["crosscat"] == 0.95
    assert found["methods"]["crosscat"] == {
        "n_views": [1, 2],
        "clusters": "27; 3, 3",
        "cpu_s": 2.0,
        "stopped": 1,
    }
    assert found["methods"]["overlapping"]["clusters"] == "none; 2 to 9"
    assert all(views_real.bars({"stick_figures": found}).values())
    assert views_real.bars({"letters": found})["letters, lower: NMI at least 0.8 of the oracle"]


@pytest.mark.parametrize("method", ["crosscat", "decorrelated", "oracle"])
def test_a_method_is_scored_on_a_small_table(method):
    found = views_real.fit_one("stick_figures", method, seed=0, full=False)
    assert set(found["nmi"]) == {"upper", "lower"} and len(found["clusters"]) == found["n_views"]
    assert all(found["best"][name] >= score for name, score in found["nmi"].items())
    assert found["n_rows"] == views_real.SMALL["n_rows"] and not found["stopped"]


def test_a_table_that_is_not_here_is_skipped(monkeypatch):
    monkeypatch.delenv("PARTITA_DATA", raising=False)
    assert "PARTITA_DATA" in views_real.fit_one("faces", "kmeans", seed=0, full=True)["skipped"]
