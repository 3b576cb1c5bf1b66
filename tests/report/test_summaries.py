"""The numbers behind the page and the pictures, against slow arithmetic."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.cluster.hierarchy import linkage
from scipy.special import logsumexp
from scipy.stats import norm, poisson

from partita import NBCE, Consensus, EvidenceAccumulation, Voting
from partita.descriptions.information import _information
from partita.labels import Coassociation
from partita.metrics import adjusted_rand
from partita.summaries import (
    PairMap,
    block_map,
    cluster_counts,
    find_uncertain,
    flow,
    pair_map,
    summarize_clusters,
    summarize_members,
    tree_top,
    view_map,
)
from partita.summaries.pairs import order_objects, spread
from partita.summaries.uncertainty import rival_ratios
from partita.table import read_table
from partita.trace import Trace

pytestmark = pytest.mark.filterwarnings("ignore:cells that hold the missing code")


@pytest.fixture(scope="module")
def ensemble():
    rng = np.random.default_rng(0)
    z = np.repeat([0, 1], 15)
    Y = np.where(rng.random((30, 6)) < 0.2, 1 - z[:, None], z[:, None])
    Y[0, 0] = -1
    return Y


def test_rows_that_another_number_of_clusters_would_divide_are_uncertain():
    """Seven of ten draws have two clusters of ten, three divide four rows from the first: these four are uncertain."""
    two, three = np.repeat([0, 1], 10), np.repeat([0, 2, 1], [6, 4, 10])
    labels = np.array([two] * 7 + [three] * 3)
    zeros = np.zeros(10)
    trace = Trace(labels, zeros, labels.max(axis=1) + 1, zeros, zeros, np.arange(10) % 2)
    confidence = np.full(20, 0.9)  # no row is below the threshold
    model = SimpleNamespace(
        labels_=two, trace_=trace, object_rows_=np.arange(20), confidence_=confidence, weights_=np.ones(2)
    )
    found = find_uncertain(model, None, 0.8)
    np.testing.assert_array_equal(np.flatnonzero(found.uncertain), [6, 7, 8, 9])
    decided = trace._replace(labels=np.array([two] * 8 + [three] * 2), n_clusters=np.repeat([2, 3], [8, 2]))
    model.trace_ = decided
    assert not find_uncertain(model, None, 0.8).uncertain.any()


def test_pairs_of_a_consensus_are_its_coclustering(ensemble):
    model = Consensus(random_state=0).fit(ensemble)
    found = pair_map(model)
    assert sorted(found.objects) == list(range(30)) and found.source == "consensus"
    np.testing.assert_allclose(
        found.values, model.coclustering().dense()[np.ix_(found.objects, found.objects)]
    )
    np.testing.assert_array_equal(found.labels, model.labels_[found.objects])
    assert (np.diff(found.labels) >= 0).all()
    for k in np.unique(found.labels):
        assert (np.diff(model.confidence_[found.objects[found.labels == k]]) <= 0).all()


def test_pairs_of_labels_are_votes_of_those_who_saw_both(ensemble):
    model = EvidenceAccumulation().fit(ensemble)
    assert pair_map(model) is None  # the tree does not keep the labels
    found = pair_map(model, ensemble)
    votes = Coassociation(ensemble).pairs(found.objects[:, None], found.objects[None, :])
    np.testing.assert_allclose(found.values, votes)
    assert found.source == "votes"


def test_pairs_of_draws_are_shares_of_the_draws():
    draws = np.array([[0, 0, 1, 1], [0, 1, 1, 1]])
    model = SimpleNamespace(labels_=np.array([0, 0, 1, 1]), trace_=SimpleNamespace(labels=draws))
    found = pair_map(model)
    assert found.values.tolist() == [[1, 0.5, 0, 0], [0.5, 1, 0.5, 0.5], [0, 0.5, 1, 1], [0, 0.5, 1, 1]]
    weighted = SimpleNamespace(  # row 0 stands for two objects, row 2 for none
        labels_=np.array([0, 1, 1]),
        object_rows_=np.array([0, 0, 1]),
        trace_=SimpleNamespace(labels=draws[:, :3]),
    )
    found = pair_map(weighted)
    assert found.objects.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(found.values, [[1, 0, np.nan], [0, 1, np.nan], [np.nan] * 3])


def test_large_maps_are_an_even_sample():
    labels = np.arange(10_000) % 7
    R = np.eye(7)[labels]
    model = SimpleNamespace(labels_=labels, memberships_=R, n_clusters_=7)
    found = pair_map(model, size=70)
    assert len(found.objects) == 70 and found.n_objects == 10_000
    assert np.bincount(found.labels).tolist() == [10] * 7
    np.testing.assert_array_equal(found.values, found.labels[:, None] == found.labels[None, :])
    assert len(found.take(20).objects) == 20


def test_order_and_spread():
    assert order_objects(np.array([2, -1, 0, 2]), np.array([0.1, 1, 1, np.nan])).tolist() == [2, 0, 3, 1]
    assert spread(10, 4).tolist() == [0, 3, 6, 9]


def test_a_rival_is_the_mean_with_another_cluster_over_that_with_ones_own():
    rng = np.random.default_rng(1)
    S = rng.random((9, 9))
    S = (S + S.T) / 2
    z = np.array([0, 0, 0, 1, 1, 1, 2, 2, 5])
    found = rival_ratios(PairMap(np.arange(9), z, S, 9, "votes"))
    for i in range(8):
        means = {k: np.mean([S[i, j] for j in range(9) if z[j] == k and j != i]) for k in (0, 1, 2, 5)}
        own = means.pop(z[i])
        assert found[i] == pytest.approx(max(means.values()) / own)
    assert np.isnan(found[8])  # alone: there is nobody to be with
    assert rival_ratios(PairMap(np.arange(3), np.zeros(3, int), np.ones((3, 3)), 3, "votes")).tolist() == [
        0,
        0,
        0,
    ]


def test_uncertainty_follows_what_confidence_means(ensemble):
    of = {}
    for model in (
        Consensus(random_state=0),
        Voting(2, random_state=0),
        NBCE(n_clusters=2, inference="vb", random_state=0),
    ):
        model.fit(ensemble)
        found = find_uncertain(model, pair_map(model, ensemble), 0.8)
        of[type(model).__name__] = found.rule
        if found.rule == "probability":
            np.testing.assert_array_equal(found.uncertain, model.confidence_ < 0.8)
    assert of == {"Consensus": "rival", "Voting": "rival", "NBCE": "probability"}
    plain = SimpleNamespace(labels_=np.array([0, 1]), confidence_=np.array([0.2, 0.9]))
    assert find_uncertain(plain, None, 0.8).rule == "confidence"
    assert find_uncertain(SimpleNamespace(labels_=np.array([0, 1])), None, 0.8) is None


def test_counts_of_a_consensus(ensemble):
    model = Consensus(random_state=0).fit(ensemble)
    found = cluster_counts(model)
    assert dict(zip(found.n_clusters.tolist(), found.posterior.tolist())) == model.n_clusters_posterior_
    assert found.scores == model.n_clusters_scores_ and np.isnan(found.prior).all()


def test_counts_of_draws_have_the_prior_beside_them(sampled):
    from partita.partitions import n_clusters_prior

    found = cluster_counts(sampled)
    before = n_clusters_prior(sampled.prior_, 40)  # its concentration is held
    np.testing.assert_allclose(found.prior, before[found.n_clusters])
    known = {K: p for K, p in zip(found.n_clusters.tolist(), found.posterior.tolist()) if p > 0}
    assert known == pytest.approx(sampled.n_clusters_posterior_)


def test_members_have_weights_clusters_holes_and_agreement(ensemble):
    model = Consensus(random_state=0).fit(ensemble)
    found = summarize_members(model, ensemble)
    np.testing.assert_array_equal(found.weights, model.member_weights_)
    assert found.n_clusters.tolist() == [2] * 6 and found.missing[0] == pytest.approx(1 / 30)
    assert found.agreement[1] == pytest.approx(adjusted_rand(model.labels_, ensemble[:, 1]))
    a, b = found.compared[:2]
    seen = (ensemble[:, a] >= 0) & (ensemble[:, b] >= 0)
    assert found.similarity[0, 1] == pytest.approx(adjusted_rand(ensemble[seen, a], ensemble[seen, b]))
    assert summarize_members(model).n_clusters is None
    assert summarize_members(SimpleNamespace(labels_=np.zeros(3))) is None


@pytest.mark.parametrize("size", [2, 5, 12, 50])
def test_the_top_of_a_tree(size):
    X = np.random.default_rng(0).normal(size=(12, 2))
    Z = linkage(X, "average")
    model = SimpleNamespace(linkage_=Z, labels_=np.arange(12) % 2, log_odds_=np.arange(11.0))
    top = tree_top(model, size)
    shown = min(size, 12)
    assert top.width() == shown and top.leaf_sizes.sum() == 12
    np.testing.assert_array_equal(top.heights, Z[-(shown - 1) :, 2])
    np.testing.assert_array_equal(top.log_odds, np.arange(11.0)[-(shown - 1) :])
    # a merge stands over the middle of its branches, and branches begin where they were merged
    middle = dict(zip(top.merges.tolist(), top.places.mean(axis=1)))
    for row, places, feet in zip(top.merges, top.places, top.feet):
        for child, place, foot in zip(Z[row, :2].astype(int), places, feet):
            if child - 12 in middle:
                assert place == middle[child - 12] and foot == Z[child - 12, 2]
            else:
                assert place == round(place) and foot == 0


def test_branches_have_the_cluster_of_their_objects():
    Z = np.array([[0, 1, 1.0, 2], [2, 3, 2.0, 2], [4, 5, 5.0, 4]])
    top = tree_top(SimpleNamespace(linkage_=Z, labels_=np.array([1, 1, 0, 0])), 2)
    assert top.leaf_labels.tolist() == [1, 0]
    mixed = tree_top(SimpleNamespace(linkage_=Z, labels_=np.array([1, 0, 0, 0])), 2)
    assert mixed.leaf_labels.tolist() == [-1, 0]
    reduced = SimpleNamespace(
        linkage_=Z, labels_=np.array([1, 1, 0, 0, 0]), row_leaves_=np.array([0, 1, 2, 3, -1])
    )
    assert tree_top(reduced, 4).leaf_labels.tolist() == [1, 1, 0, 0]


def test_a_deep_tree_does_not_recurse():
    n = 20_000
    Z = np.column_stack(
        [np.r_[0, np.arange(n, 2 * n - 2)], np.arange(1, n), np.arange(1.0, n), np.arange(2, n + 1)]
    )
    top = tree_top(SimpleNamespace(linkage_=Z, labels_=np.zeros(n, int)), 30)
    assert top.width() == 30 and top.leaf_sizes.sum() == n


def test_blocks_are_means_of_their_cells():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 5))
    X[0, 0] = np.nan
    rows, columns = np.array([0, 1, 0, 1, 2, 2]), np.array([0, 1, 1, 0, 0])
    found = block_map(SimpleNamespace(row_labels_=rows, column_labels_=columns), X)
    for k in range(3):
        for j in range(2):
            assert found.values[k, j] == pytest.approx(np.nanmean(X[rows == k][:, columns == j]))
    told = np.arange(12.0).reshape(1, 3, 2, 2)
    model = SimpleNamespace(
        row_labels_=rows, column_labels_=columns, block_values_=told, levels_=[("no", "yes")]
    )
    assert (
        block_map(model).values.tolist() == told[0, :, :, 1].tolist() and "'yes'" in block_map(model).meaning
    )
    assert block_map(SimpleNamespace(row_labels_=rows, column_labels_=columns)) is None


def test_views_list_their_columns():
    P = np.array([[0.0, 1.0], [0.6, 0.4], [0.0, 0.0], [0.9, 0.9]])
    model = SimpleNamespace(
        view_labels_=np.array([[0, 0], [1, 0], [1, 2]]),
        feature_views_=P,
        n_clusters_posterior_=[{2: 1.0}, {2: 0.5}],
    )
    found = view_map(model)
    assert [name for name, _ in found.views[0].columns] == ["x3", "x1"]
    assert [name for name, _ in found.views[1].columns] == ["x0", "x3"]  # a column may be in two
    assert found.home.tolist() == [1, 0, -1, 0] and found.order.tolist() == [1, 3, 0, 2]
    assert found.views[1].sizes.tolist() == [2, 1] and found.views[0].n_clusters_posterior == {2: 1.0}


def test_flow_matches_the_columns_to_the_rows():
    a = np.array([0] * 5 + [1] * 3 + [2] * 4)
    b = np.array(["z"] * 5 + ["y"] * 3 + ["x"] * 4)
    found = flow(a, b)
    assert found.row_names == ["0", "2", "1"] and found.column_names == ["z", "x", "y"]
    assert (found.counts == np.diag([5, 4, 3])).all() and found.adjusted_rand == 1
    assert flow([0, 0, 1], [0, 1, -1]).n_left_out == 1
    with pytest.raises(ValueError, match="a has 2 labels and b 3"):
        flow([0, 1], [0, 1, 2])
    with pytest.raises(ValueError, match="nothing to compare"):
        flow([None, 1], [1, None])


@pytest.mark.parametrize("K", [3, 250])
def test_information_of_many_clusters_is_interpolated_closely(K):
    rng = np.random.default_rng(0)
    weights = rng.dirichlet(np.ones(K))
    for law in (norm(rng.normal(0, 3, K), rng.uniform(0.2, 2, K)), poisson(rng.gamma(2, 3, K))):
        x = law.ppf((np.arange(60)[:, None] + 0.5) / 60)
        log_density = law.logpmf if law.dist.name == "poisson" else law.logpdf
        L = log_density(x[:, :, None])
        exact = (np.diagonal(L, axis1=1, axis2=2) - logsumexp(L + np.log(weights), axis=2)).mean(axis=0)
        np.testing.assert_allclose(_information(x, log_density, weights), exact, rtol=0.02, atol=0.001)


def test_any_clustering_is_described_by_a_table():
    rng = np.random.default_rng(0)
    z = np.repeat([0, 1, -1], [20, 10, 5])
    table = read_table(np.column_stack([rng.normal(size=35) + 5 * z, rng.normal(size=35)]))
    found = summarize_clusters(SimpleNamespace(labels_=z), table=table)
    assert found.sizes.tolist() == [20, 10] and found.informative_columns[0][0] == "x0"
    assert [trait.column for trait in found.traits[1]][0] == "x0"
    assert np.isnan(found.confidence).all() and found.uncertainty is None
