"""The draws as ArviZ reads them: `xarray.DataTree` needs ArviZ 1.0, which needs Python 3.12."""

import warnings

import numpy as np
import pytest

from partita import Mixture
from partita.dispatch import interpreted
from partita.posterior import to_datatree

arviz = pytest.importorskip(
    "arviz", minversion="1.0", reason="ArviZ 1.0 is not here: make test-arviz runs these"
)
QUANTITIES = ["n_clusters", "concentration", "size_entropy"]


@pytest.fixture(scope="module")
def tree(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    X = np.concatenate([rng.normal(-4, 1, (12, 2)), rng.normal(4, 1, (12, 2))])
    model = Mixture("gaussian", n_chains=2, n_draws=20, burn_in=5, random_state=global_random_seed)
    with interpreted(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # short chains warn
        model.fit(X)
    return to_datatree(model.trace_, objects=[f"row {i}" for i in range(24)])


def test_the_summary_has_a_line_for_each_quantity(tree):
    table = arviz.summary(tree, var_names=QUANTITIES, round_to="none")
    assert list(table.index) == QUANTITIES
    drawn = tree["posterior"]["n_clusters"].values
    assert float(table.loc["n_clusters", "mean"]) == pytest.approx(drawn.mean())
    assert {"ess_bulk", "r_hat"} <= set(table.columns)


def test_convergence_is_measured_as_ours_is(tree):
    from partita.posterior import ess_bulk, rhat

    draws = tree["posterior"]["concentration"].values
    theirs = arviz.summary(tree, var_names=["concentration"], kind="diagnostics", round_to="none").iloc[0]
    assert float(theirs["r_hat"]) == pytest.approx(rhat(draws), rel=1e-6)
    assert float(theirs["ess_bulk"]) == pytest.approx(ess_bulk(draws), rel=0.02)


@pytest.mark.parametrize(
    "name", ["plot_trace", "plot_rank", "plot_dist", "plot_ess", "plot_autocorr", "plot_forest"]
)
def test_pictures_are_drawn(tree, name):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    drawn = getattr(arviz, name)(tree, var_names=["concentration", "size_entropy"], backend="matplotlib")
    assert drawn is not None and plt.get_fignums()
    plt.close("all")


def test_one_object_can_be_selected(tree):
    labels = tree["posterior"]["labels"].sel(object="row 3")
    assert labels.dims == ("chain", "draw") and labels.shape == (2, 20)
