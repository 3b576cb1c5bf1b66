import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

from partita.plotting import plot_climb, plot_draw  # noqa: E402


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


@pytest.fixture
def points():
    return np.random.default_rng(0).normal(size=(30, 2)) @ [[2.0, 0.0], [1.0, 0.5]]


def test_a_draw_shows_every_point_once_and_the_largest_cluster_first(points):
    ax = plot_draw(points, np.repeat([7, 3, 5], [8, 20, 2]))
    assert [len(c.get_offsets()) for c in ax.collections] == [20, 8, 2]
    assert len(ax.lines) == 2  # two points have no ellipse
    assert ax.get_title(loc="left") == "K = 3"


def test_an_ellipse_is_two_standard_deviations_away_in_every_direction(points):
    ellipse = plot_draw(points, np.zeros(30, int)).lines[0].get_xydata() - points.mean(axis=0)
    distance = np.einsum("ij,jk,ik->i", ellipse, np.linalg.inv(np.cov(points.T)), ellipse)
    np.testing.assert_allclose(distance, 4.0)


def test_a_draw_wants_two_columns_and_as_many_labels(points):
    with pytest.raises(ValueError, match="give two columns and one label per row"):
        plot_draw(points, np.zeros(29, int))


def test_a_climb_draws_every_start_or_the_quantiles():
    runs = np.random.default_rng(0).normal(size=(9, 20))
    every = plot_climb({"Gibbs": runs})
    np.testing.assert_array_equal([line.get_ydata() for line in every.lines[:9]], runs)
    assert [text.get_text() for text in every.get_legend().get_texts()] == ["Gibbs"]
    few = plot_climb({"Gibbs": runs}, quantiles=(0.25, 0.75))
    expected = [np.median(runs, axis=0), *np.quantile(runs, [0.25, 0.75], axis=0)]
    np.testing.assert_allclose([line.get_ydata() for line in few.lines], expected)
