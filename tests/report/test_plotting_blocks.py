import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

from partita import RelationalBlocks  # noqa: E402
from partita.plotting import plot_blocks, plot_n_clusters, plot_side_clusters  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::partita.estimator.DataWarning")


@pytest.fixture(scope="module")
def fitted():
    X = np.kron([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]], np.ones((5, 4)))[::-1]
    X = X[np.random.default_rng(0).permutation(10)]
    X[3, 5] = np.nan
    return RelationalBlocks(n_chains=1, n_draws=30, burn_in=30, random_state=0).fit(X), X


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def test_a_block_map_shows_every_cell_in_the_order_of_the_clusters(fitted):
    model, X = fitted
    names = [f"row {i}" for i in range(10)]
    ax = plot_blocks(model, X, row_names=names)
    shown = ax.images[0].get_array()
    assert shown.shape == X.shape and shown.mask.sum() == 1
    order = [int(tick.get_text().split()[1]) for tick in ax.get_yticklabels()]
    assert sorted(order) == list(range(10)) and np.all(np.diff(model.row_labels_[order]) >= 0)
    across = np.lexsort((-model.column_confidence_, model.column_labels_))
    np.testing.assert_array_equal(shown.filled(-1), np.nan_to_num(X[order][:, across], nan=-1))
    assert len(ax.lines) == model.n_row_clusters_ + model.n_column_clusters_ - 2
    assert len(ax.get_xticks()) == 0


def test_a_block_map_wants_the_relation_that_was_fitted(fitted):
    model, X = fitted
    with pytest.raises(ValueError, match="give the relation that was fitted"):
        plot_blocks(model, X[:5])
    with pytest.raises(ValueError, match="3 names for 10"):
        plot_blocks(model, X, row_names="abc")


def test_numbers_of_clusters_of_each_side(fitted):
    model, _ = fitted
    for side, shares in (
        ("rows", model.n_row_clusters_posterior_),
        ("columns", model.n_column_clusters_posterior_),
    ):
        ax = plot_side_clusters(model, side, reference=3)
        heights = {round(bar.get_x() + bar.get_width() / 2): bar.get_height() for bar in ax.patches}
        assert {K: p for K, p in heights.items() if p} == shares
    with pytest.raises(ValueError, match="give 'rows' or 'columns'"):
        plot_side_clusters(model, "cells")
    assert plot_n_clusters(model).get_ylabel() == "probability"
