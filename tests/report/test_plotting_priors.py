"""Pictures of priors, as data."""

import numpy as np
import pytest

from partita.datasets import sample_dp_mixture, sample_restaurant, sample_stick_breaking, table_growth
from partita.plotting import plot_mixture_draw, plot_stick, plot_stick_weights, plot_table_growth

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


@pytest.fixture
def ax():
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots()
    yield ax
    plt.close(figure)


def test_mixture_draw(ax):
    draw = sample_dp_mixture(200, random_state=0)
    assert plot_mixture_draw(draw, n_samples=80, ax=ax) is ax
    K = draw.labels[:80].max() + 1
    assert len(ax.collections) == len(ax.lines) == K
    assert sum(len(points.get_offsets()) for points in ax.collections) == 80
    sizes = np.bincount(draw.labels[:80])
    widths = [line.get_linewidth() for line in ax.lines]
    assert np.argmax(widths) == np.argmax(sizes)
    # the border lies at two standard deviations
    border = np.column_stack(ax.lines[0].get_data()) - draw.means[0]
    assert np.einsum("ni,ij,nj->n", border, np.linalg.inv(draw.covariances[0]), border) == pytest.approx(4.0)
    with pytest.raises(ValueError, match="give a draw with two"):
        plot_mixture_draw(sample_dp_mixture(5, n_features=3, random_state=0), ax=ax)


def test_sticks(ax):
    weights = sample_stick_breaking(2.0, n_weights=4, random_state=0)[0]
    plot_stick(weights, ax=ax)
    assert [bar.get_width() for bar in ax.patches[::2]] == pytest.approx(weights)
    assert ax.patches[2].get_x() == pytest.approx(weights[0])
    with pytest.raises(ValueError, match="pieces of one stick"):
        plot_stick([0.9, 0.9], ax=ax)


def test_stick_weights(ax):
    weights = sample_stick_breaking(5.0, random_state=0)[0]
    plot_stick_weights(weights, title="five", ax=ax)
    assert [bar.get_height() for bar in ax.patches] == pytest.approx(weights)
    assert ax.get_title("left") == "five"


def test_table_growth(ax):
    for label in ("one", "two"):
        growth = table_growth(sample_restaurant(30, n_draws=3, random_state=0))
        plot_table_growth(growth, expected=growth.mean(axis=0), label=label, ax=ax)
    assert len(ax.lines) == 8 and len({line.get_color() for line in ax.lines}) == 2
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["one", "two"]
