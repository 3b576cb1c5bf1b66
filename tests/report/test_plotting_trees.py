import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

from partita import Agglomerative, BayesianTree  # noqa: E402
from partita.plotting import plot_leaf_curves, plot_leaf_table, plot_node_words, plot_tree  # noqa: E402


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


@pytest.fixture
def points():
    return np.random.default_rng(0).normal(size=(40, 3)) + 9.0 * (np.arange(40) % 2)[:, None]


def test_a_tree_has_one_bracket_a_merge_and_dashes_the_unlikely_ones(points):
    model = BayesianTree().fit(points)
    ax = plot_tree(model)
    (brackets,) = ax.collections
    assert len(brackets.get_segments()) == 39
    dashed = [style[1] is not None for style in brackets.get_linestyles()]
    assert sum(dashed) == (model.log_odds_ < 0).sum() == 1
    assert [text.get_text() for text in ax.texts] == [f"{model.log_odds_[-1]:.3g}"]


def test_brackets_stand_on_those_of_their_children(points):
    model = Agglomerative(linkage="single").fit(points)
    segments = plot_tree(model).collections[0].get_segments()
    for t, (left, right) in enumerate(model.linkage_[:, :2].astype(int)):
        assert segments[t][1, 1] == pytest.approx(model.linkage_[t, 2])
        for node, corner in ((left, 0), (right, 3)):
            below = segments[node - 40][1:3, 0].mean() if node >= 40 else segments[t][corner, 0]
            assert segments[t][corner, 0] == pytest.approx(below)
    feet = sorted(
        segments[t][corner, 0]
        for t, pair in enumerate(model.linkage_[:, :2])
        for corner, node in zip((0, 3), pair)
        if node < 40
    )
    assert feet == list(range(40))


def test_classes_make_a_strip_and_a_legend(points):
    ax = plot_tree(
        Agglomerative().fit(points), classes=np.array(["a", "b"])[np.arange(40) % 2], horizontal=True
    )
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b"]
    assert ax.child_axes[0].images[0].get_array().shape == (40, 1)


def test_a_leaf_table_is_the_table_in_another_order(points):
    model = Agglomerative().fit(points)
    shown = plot_leaf_table(model, points, columns=list("abc")).images[0].get_array()
    assert sorted(map(tuple, shown.tolist())) == sorted(map(tuple, points.tolist()))
    with pytest.raises(ValueError, match="X has 3 rows and the tree 40 leaves"):
        plot_leaf_table(model, points[:3])


def test_curves_have_one_panel_a_cluster(points):
    axes = plot_leaf_curves(Agglomerative(3).fit(points), points, n_columns=2)
    assert axes.shape == (2, 2)
    assert sum(len(ax.lines) - 1 for ax in axes.flat[:3]) == 40 and not axes[1, 1].lines


def test_words_mark_their_side():
    X = np.zeros((40, 4), int)
    X[:20, :2], X[20:, 2:] = 1, 1
    X[0, 3] = X[30, 0] = 1
    model = BayesianTree("bernoulli").fit(X)
    texts = [
        t.get_text()
        for t in plot_node_words(model, X, ["god", "faith", "disk", "mac"], n_nodes=3, n_words=2).texts
    ]
    assert {frozenset(text.split()) for text in texts[1:]} == {
        frozenset(["20", "god", "faith"]),
        frozenset(["20", "disk", "mac"]),
    }
