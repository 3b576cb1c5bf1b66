"""Pictures of pairs, members and two clusterings: the numbers that are drawn."""

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from sklearn.exceptions import NotFittedError  # noqa: E402

from partita import Consensus, EvidenceAccumulation  # noqa: E402
from partita.plotting import (  # noqa: E402
    plot_alluvial,
    plot_coclustering,
    plot_confidence_by_object,
    plot_contingency,
    plot_member_agreement,
    plot_members,
    plot_n_clusters,
    plot_traits,
)
from partita.summaries import flow, pair_map  # noqa: E402


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def ensemble():
    rng = np.random.default_rng(0)
    z = np.repeat([0, 1, 2], 12)
    return z, np.where(rng.random((36, 7)) < 0.15, rng.integers(3, size=(36, 7)), z[:, None])


@pytest.fixture(scope="module")
def consensus(ensemble):
    return Consensus(random_state=0).fit(ensemble[1])


def test_the_heat_map_is_the_coclustering_in_the_order_of_the_clusters(consensus):
    _, own = plt.subplots()
    ax = plot_coclustering(consensus, ax=own)
    assert ax is own
    found = pair_map(consensus)
    np.testing.assert_allclose(ax.images[0].get_array(), found.values)
    assert [tick.get_text() for tick in ax.get_yticklabels()] == [
        str(k + 1) for k in np.unique(consensus.labels_)
    ]
    small = plot_coclustering(consensus, max_objects=10)
    assert small.images[0].get_array().shape == (10, 10) and small.get_title(loc="left") == "10 of 36 objects"


def test_models_that_keep_no_labels_are_asked_for_them(ensemble):
    model = EvidenceAccumulation().fit(ensemble[1])
    with pytest.raises(
        ValueError, match="EvidenceAccumulation does not store what co-clustering needs: pass X"
    ):
        plot_coclustering(model)
    assert plot_coclustering(model, ensemble[1]).images[0].get_array().shape == (36, 36)
    with pytest.raises(NotFittedError):
        plot_coclustering(Consensus())


def test_members_are_bars_from_the_largest_weight(consensus):
    ax = plot_members(consensus)
    drawn = [bar.get_width() for bar in ax.containers[0]]
    np.testing.assert_allclose(drawn, np.sort(consensus.member_weights_)[::-1])
    assert (
        plot_members(consensus, max_members=3).get_title(loc="left") == "the 3 largest weights of 7 members"
    )


def test_members_against_members(consensus, ensemble):
    from partita.ensembles import pairwise_agreement

    ax = plot_member_agreement(consensus, ensemble[1])
    order = [int(tick.get_text()[1:]) for tick in ax.get_yticklabels()]
    np.testing.assert_allclose(
        ax.images[0].get_array(), pairwise_agreement(ensemble[1])[np.ix_(order, order)]
    )
    with pytest.raises(ValueError, match="pass X, the label matrix"):
        plot_member_agreement(consensus)


def test_confidence_by_object_goes_down_within_a_cluster(consensus):
    ax = plot_confidence_by_object(consensus)
    areas = [area.get_paths()[0].vertices for area in ax.collections]
    assert len(areas) == consensus.n_clusters_
    for k, area in enumerate(areas):
        own = consensus.confidence_[consensus.labels_ == k]
        assert area[:, 1].max() == pytest.approx(own.max())
    assert plot_confidence_by_object(consensus, max_objects=9).get_title(loc="left") == "9 of 36 objects"


def test_traits_are_strengths_by_column_and_cluster(consensus, ensemble, model):
    from partita.summaries import summarize_clusters

    ax = plot_traits(model)
    found = summarize_clusters(model)
    strengths = ax.images[0].get_array()
    for k in range(2):
        by_name = {trait.column: trait.strength for trait in found.traits[k]}
        np.testing.assert_allclose(strengths[:, k], [by_name[name] for name, _ in found.informative_columns])
    assert (np.diff([value for _, value in found.informative_columns]) <= 0).all()
    with pytest.raises(ValueError, match="Consensus has no profiles_: pass X"):
        plot_traits(consensus)
    with pytest.raises(ValueError, match="X has 3 rows and the model was fitted to 36"):
        plot_traits(consensus, [[1.5], [2.5], [0.5]])


def test_contingency_has_the_numbers(ensemble, consensus):
    ax = plot_contingency(ensemble[0], consensus.labels_, names=("known", "found"))
    found = flow(ensemble[0], consensus.labels_)
    assert [int(text.get_text()) for text in ax.texts] == found.counts.ravel().tolist()
    np.testing.assert_allclose(
        ax.images[0].get_array(), found.counts / found.counts.sum(axis=1, keepdims=True)
    )
    assert ax.get_ylabel() == "known" and f"{found.adjusted_rand:.2f}" in ax.get_title(loc="left")


def test_alluvial_bands_are_as_wide_as_their_objects():
    a, b = np.array([0, 0, 0, 1, 1, -1]), np.array(["u", "u", "v", "v", "v", "v"])
    ax = plot_alluvial(a, b)
    found = flow(a, b)
    widths = []
    for band in ax.collections:
        vertices = band.get_paths()[0].vertices
        start = vertices[np.isclose(vertices[:, 0], vertices[:, 0].min())][:, 1]
        widths.append(start.max() - start.min())
    np.testing.assert_allclose(np.array(widths) * found.counts.sum(), found.counts[found.counts > 0])
    assert ax.get_title(loc="left").endswith("(1 left out)")
    ax.figure.canvas.draw()


def test_p_of_k_of_a_consensus_has_no_prior(consensus):
    ax = plot_n_clusters(consensus)
    drawn = {round(bar.get_x() + bar.get_width() / 2): bar.get_height() for bar in ax.containers[0]}
    assert {K: p for K, p in drawn.items() if p > 0} == pytest.approx(consensus.n_clusters_posterior_)
    assert not ax.lines
