import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from sklearn.exceptions import NotFittedError  # noqa: E402

from partita.plotting import (  # noqa: E402
    plot_confidence,
    plot_n_clusters,
    plot_objective,
    plot_profiles,
    plot_scatter,
    plot_trace,
)


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def test_profiles_of_a_real_column_are_means_and_deviations(model):
    ax = plot_profiles(model, "height")
    drawn = [container.lines[0].get_ydata()[0] for container in ax.containers]
    np.testing.assert_allclose(drawn, model.profiles_["height"]["mean"])


def test_profiles_of_a_categorical_column_are_probabilities(model):
    ax = plot_profiles(model, "flag")
    heights = np.array([[bar.get_height() for bar in container] for container in ax.containers])
    np.testing.assert_allclose(heights, model.profiles_["flag"]["probabilities"])
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["False", "True"]


def test_long_labels_are_shortened_and_dollars_are_no_formula(model):
    ax = plot_profiles(model, "answer")
    assert max(len(tick.get_text()) for tick in ax.get_xticklabels()) <= 24
    ax.figure.canvas.draw()


def test_profiles_of_counts_are_rates(model):
    drawn = [container.lines[0].get_ydata()[0] for container in plot_profiles(model, "visits").containers]
    np.testing.assert_allclose(drawn, model.profiles_["visits"]["rate"])


def test_an_unknown_column_is_named(model):
    with pytest.raises(ValueError, match="no profile of column 'nothing'"):
        plot_profiles(model, "nothing")


def test_confidence_counts_every_object_once(model):
    ax = plot_confidence(model)
    assert sum(bar.get_height() for bar in ax.containers[0]) == (model.confidence_ < 0.8).sum()
    assert sum(bar.get_height() for bar in ax.containers[1]) == (model.confidence_ >= 0.8).sum()


def test_objective_is_the_trace(model):
    ax = plot_objective(model)
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), model.objective_trace_)
    assert ax.lines[0].get_xdata()[0] == 1


def test_scatter_draws_each_object_that_has_both_cells(model, frame):
    _, own = plt.subplots()
    ax = plot_scatter(model, frame, "height", "visits", ax=own)
    assert ax is own
    points = np.concatenate([c.get_offsets() for c in ax.collections])
    assert len(points) == 39  # one height is missing
    assert {tuple(p) for p in points} <= set(zip(frame["height"], frame["visits"], strict=True))


def test_scatter_marks_the_uncertain(model, frame):
    sure = plot_scatter(model, frame, "height", "width", threshold=0.0)
    unsure = plot_scatter(model, frame, "height", "width", threshold=1.1)
    assert sum(len(c.get_offsets()) for c in sure.collections if len(c.get_facecolors())) == 39
    assert sum(len(c.get_offsets()) for c in unsure.collections if not len(c.get_facecolors())) == 39


def test_scatter_says_when_it_draws_fewer(model, frame):
    ax = plot_scatter(model, frame, "height", "width", max_points=10)
    assert ax.get_title(loc="left") == "10 of 39 objects"


def test_scatter_wants_numbers_and_the_fitted_table(model, frame):
    with pytest.raises(ValueError, match="'flag' is binary"):
        plot_scatter(model, frame, "flag", "height")
    with pytest.raises(ValueError, match="20 rows and the model was fitted to 40"):
        plot_scatter(model, frame.iloc[:20], "height", "width")


def test_no_matplotlib_names_the_extra(model, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"partita\[plot\]"):
        plot_objective(model)


def test_the_bars_of_p_k_are_the_posterior_beside_the_prior(sampled):
    from partita.partitions import n_clusters_prior

    ax = plot_n_clusters(sampled)
    drawn = {round(bar.get_x() + bar.get_width() / 2): bar.get_height() for bar in ax.containers[0]}
    assert {K: p for K, p in drawn.items() if p > 0} == pytest.approx(sampled.n_clusters_posterior_)
    K, prior = ax.lines[0].get_data()
    np.testing.assert_allclose(prior, n_clusters_prior(sampled.prior_, 40)[K])
    assert set(drawn) <= set(K) and not plot_n_clusters(sampled, prior=False).lines


@pytest.mark.parametrize("quantity", ["n_clusters", "log_joint", "concentration"])
def test_the_trace_has_a_line_for_each_chain(sampled, quantity):
    ax = plot_trace(sampled, quantity)
    values = np.asarray(getattr(sampled.trace_, quantity), float).reshape(2, 10)
    assert len(ax.lines) == 2
    for line, own in zip(ax.lines, values, strict=True):
        np.testing.assert_array_equal(line.get_ydata(), own)
        assert line.get_xdata()[0] == 1


def test_the_trace_wants_a_quantity_that_is_there(sampled, model):
    with pytest.raises(ValueError, match="quantity is 'sizes': choose one of n_clusters"):
        plot_trace(sampled, "sizes")
    with pytest.raises(ValueError, match="the prior MixtureOfFinite has no discount"):
        plot_trace(sampled, "discount")
    for draw in (plot_trace, plot_n_clusters):
        with pytest.raises(NotFittedError):
            draw(model)  # fitted by EM: it has no draws
