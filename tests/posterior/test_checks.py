import sys
import types

import numpy as np
import pytest
from scipy.stats import kstest

from partita.posterior import compare_log_scores, held_out_log_scores, predictive_checks, to_datatree
from partita.posterior.datatree import arviz_groups
from partita.trace import Trace


def test_checks_of_the_right_model_are_uniform(global_random_seed):
    """p-values of the mean under the model itself, over 200 data sets: Kolmogorov-Smirnov, false alarm rate 1e-4."""
    rng = np.random.default_rng(global_random_seed)
    values = [
        predictive_checks(
            rng.normal(size=(30, 1)),
            (rng.normal(size=(30, 1)) for _ in range(60)),
            statistics={"mean": lambda x: float(x.mean())},
        )[0].p_value
        for _ in range(200)
    ]
    assert kstest(values, "uniform").pvalue > 1e-4


def test_a_wrong_model_is_seen_in_its_column_only(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    X = rng.normal(size=(300, 2))
    X[:, 1] = rng.standard_t(2, size=300)
    checks = predictive_checks(X, [rng.normal(size=(300, 2)) for _ in range(200)])
    p = {(check.column, check.statistic): check.p_value for check in checks}
    assert p[1, "sd"] == 0.0 and p[0, "sd"] > 0.001


def test_categorical_columns_and_holes(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    X = rng.integers(3, size=(50, 2)).astype(float)
    X[:10, 0] = np.nan
    X[:, 1] = np.nan
    tables = [np.where(np.arange(50)[:, None] < 10, 99.0, rng.integers(3, size=(50, 2))) for _ in range(30)]
    checks = predictive_checks(X, tables, kinds=["categorical", "real"])
    assert [c.statistic for c in checks] == ["levels", "share of the commonest", "entropy"]
    assert checks[0].observed == checks[0].replicated_mean == 3 and checks[0].p_value == 1.0


def test_what_checks_refuse():
    X = np.zeros((3, 1))
    with pytest.raises(ValueError, match="at least 20"):
        predictive_checks(X, [X] * 19)
    with pytest.raises(ValueError, match="simulated table 1 has shape"):
        predictive_checks(X, [X, np.zeros((2, 1))])
    with pytest.raises(ValueError, match="'real' or 'categorical'"):
        predictive_checks(X, [X] * 20, kinds=["text"])


def test_log_scores_average_densities_over_draws(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    log_p = rng.normal(size=(7, 40)) - 900.0  # densities that underflow
    w = rng.random(7)
    found = held_out_log_scores(log_p, weights=w)
    wanted = np.log((w / w.sum()) @ np.exp(log_p + 900.0)) - 900.0
    assert np.allclose(found.rows, wanted)
    assert found.standard_error == pytest.approx(wanted.std(ddof=1) / np.sqrt(40))
    shifted = held_out_log_scores(log_p - 1.0, weights=w)
    difference = compare_log_scores(found, shifted)
    assert difference.mean == pytest.approx(1.0) and difference.standard_error == pytest.approx(
        0.0, abs=1e-12
    )
    with pytest.raises(ValueError, match=r"log_densities\[0, 1\] is NaN"):
        held_out_log_scores([0.0, np.nan])
    with pytest.raises(ValueError, match="score the same rows"):
        compare_log_scores(found, held_out_log_scores([0.0, 1.0]))


@pytest.fixture
def trace(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    labels = rng.integers(3, size=(7, 5)).astype(np.int8)
    return Trace(
        labels,
        np.arange(7.0),
        labels.max(axis=1) + 1,
        np.ones(7),
        np.full(7, np.nan),
        np.array([0, 0, 0, 1, 1, 1, 1]),
    )


def test_groups_of_the_tree(trace):
    groups, attributes = arviz_groups(trace)
    assert set(groups) == {"posterior", "sample_stats"}
    assert set(groups["posterior"]) == {"labels", "n_clusters", "concentration", "size_entropy"}
    dimensions, lp = groups["sample_stats"]["lp"]
    assert dimensions == ("chain", "draw") and lp.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert "1 draws were left out" in attributes["note"]
    even = Trace(*(field[:6] for field in trace))
    assert "note" not in arviz_groups(even)[1]


def test_without_xarray_the_extra_is_named(trace, monkeypatch):
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(ImportError, match=r"partita\[arviz\]"):
        to_datatree(trace)
    monkeypatch.setitem(sys.modules, "xarray", types.ModuleType("xarray"))  # too old: it has no DataTree
    with pytest.raises(ImportError, match=r"2024\.10"):
        to_datatree(trace)


def test_the_tree_in_xarray(trace):
    pytest.importorskip("xarray", minversion="2024.10")
    tree = to_datatree(trace, objects=list("abcde"))
    assert tree["posterior"]["labels"].dims == ("chain", "draw", "object")
    assert tree["posterior"]["labels"].sel(object="b").shape == (2, 3)
    assert tree["sample_stats"]["lp"].values.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert tree.attrs["inference_library"] == "partita"
    with pytest.raises(ValueError, match="5 objects"):
        to_datatree(trace, objects=["a"])
