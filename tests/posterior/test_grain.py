"""The tree over groups: levels, alternatives, joins by misclassification, and the support of levels."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import linkage
from scipy.special import softmax

from partita.metrics import adjusted_rand
from partita.posterior import Grain, coclustering_matrix, confidence
from partita.posterior.grain import checked_grain
from partita.posterior.joining import (
    MIN_CONFUSION,
    Joins,
    confusion,
    join_most_confused,
    renumbered,
    top_of_tree,
    without_empty_groups,
)
from partita.posterior.support import confidence_at, support_of_draws, support_of_responsibilities
from partita.trees.choosing import cut_linkage


def random_joins(G, rng):
    """A tree over G groups, two random ones joined in each step."""
    nodes, joins = list(range(G)), []
    for t in range(G - 1):
        pair = sorted(nodes.pop(int(rng.integers(len(nodes)))) for _ in range(2))
        joins.append(pair)
        nodes.append(G + t)
    return np.array(joins).reshape(-1, 2)


def random_grain(rng, G=9, n=60):
    labels = np.concatenate([np.arange(G), rng.integers(-1, G, n - G)])
    sizes = np.bincount(labels[labels >= 0], minlength=G).astype(float)
    order = np.argsort(-sizes, kind="stable")
    labels = np.append(np.argsort(order), -1)[labels]
    joins = random_joins(G, rng)
    return Grain(labels, joins, rng.random(G - 1), rng.random(G), sizes[order], "confusion", "probability")


# ---- levels ------------------------------------------------------------------------------------------------------


def test_levels_are_nested_and_the_largest_group_is_first(rng):
    grain = random_grain(rng)
    inlying = grain.labels >= 0
    for K in range(1, grain.n_groups + 1):
        labels = grain.at(K)
        np.testing.assert_array_equal(labels < 0, ~inlying)
        sizes = np.bincount(labels[inlying])
        assert len(sizes) == K and (np.diff(sizes) <= 0).all()
        if grain.n_groups > K:
            finer = grain.at(K + 1)
            pairs = np.unique(np.stack([labels, finer])[:, inlying], axis=1)
            assert pairs.shape[1] == K + 1  # each finer group is in one group


def test_one_step_joins_the_two_nodes_of_the_tree(rng):
    grain = random_grain(rng)
    for t, (a, b) in enumerate(grain.joins):
        before, after = grain.groups(grain.n_groups - t), grain.groups(grain.n_groups - t - 1)
        leaves = [leaves_below(grain.joins, node) for node in (a, b)]
        assert len(set(before[leaves[0]])) == len(set(before[leaves[1]])) == 1
        assert len(set(after[leaves[0] + leaves[1]])) == 1


def leaves_below(joins, node):
    G = len(joins) + 1
    return [node] if node < G else [leaf for child in joins[node - G] for leaf in leaves_below(joins, child)]


def test_groups_of_equal_size_are_in_the_order_of_their_first_parts():
    grain = Grain(
        np.repeat([0, 1, 2, 3], 5), np.array([[1, 2], [0, 3], [4, 5]]), np.zeros(3), np.zeros(4), np.full(4, 5.0),
        "confusion", "probability",
    )  # fmt: skip
    assert grain.groups(2).tolist() == [0, 1, 1, 0]
    assert grain.groups(3).tolist() == [1, 0, 0, 2]


def test_parts_and_splits_describe_what_lies_between_two_levels(rng):
    grain = random_grain(rng)
    parts = grain.parts(3, 7)
    assert sorted(g for own in parts.values() for g in own) == list(range(7))
    coarse, fine = grain.at(3), grain.at(7)
    for k, own in parts.items():
        assert set(fine[coarse == k]) == set(own)
    assert grain.splits(3, 7) == {k: own for k, own in parts.items() if len(own) > 1}
    assert grain.splits(4, 4) == {}
    with pytest.raises(ValueError, match="finer is 2: give at least n_clusters, 3"):
        grain.parts(3, 2)


def test_alternatives_are_the_best_supported_levels_of_their_bands(rng):
    grain = random_grain(rng, G=12)
    found = grain.alternatives()
    assert [one.name for one in found] == ["coarse", "medium", "fine"]
    for one, (low, high) in zip(found, [(2, 3), (4, 8), (9, 12)], strict=True):
        assert low <= one.n_clusters <= high
        assert one.support == grain.support[low - 1 : high].max() == grain.support[one.n_clusters - 1]
        np.testing.assert_array_equal(one.labels, grain.at(one.n_clusters))
    assert found[0].splits == {}
    assert found[1].splits == grain.splits(found[0].n_clusters, found[1].n_clusters)
    assert found[2].splits == grain.splits(found[1].n_clusters, found[2].n_clusters)


def test_there_are_fewer_alternatives_where_there_are_fewer_groups(rng):
    names = [[one.name for one in random_grain(rng, G=G).alternatives()] for G in (1, 2, 3, 4, 8, 9)]
    assert names == [[], ["coarse"], ["coarse"], ["coarse", "medium"], ["coarse", "medium"],
                     ["coarse", "medium", "fine"]]  # fmt: skip
    own = random_grain(rng, G=9).alternatives({"few": (2, 5), "many": (6, None)})
    assert [one.name for one in own] == ["few", "many"]


def test_errors_name_what_is_possible(rng):
    grain = random_grain(rng, G=6)
    for wrong in (0, 7, 2.5, True):
        with pytest.raises(ValueError, match=r"has groups for 1 to 6; fit the model with n_clusters="):
            grain.at(wrong)
    with pytest.raises(
        ValueError,
        match=r"no alternative 'fine': it has 'coarse' \(\d groups\), 'medium' \(\d groups\); a number",
    ):
        grain.n_clusters_at("fine")
    assert grain.n_clusters_at("coarse") in (2, 3) and grain.n_clusters_at(5) == 5
    with pytest.raises(ValueError, match="it has no alternatives"):
        random_grain(rng, G=1).n_clusters_at("coarse")


def test_heights_and_supports_have_a_meaning_in_words(rng):
    grain = random_grain(rng)
    assert "confused" in grain.height_meaning and "group" in grain.support_meaning


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("joins", np.array([[0, 1], [0, 3]]), "not a tree"),
        ("joins", np.array([[0, 4], [1, 2]]), "not a tree"),
        ("joins", np.array([[0.0, 1.0], [2.0, 3.0]]), "not a tree"),
        ("heights", np.zeros(3), "heights of the grain has the shape"),
        ("support", np.zeros(2), "support of the grain has the shape"),
        ("labels", np.array([0, 1, 2, 3]), "the labels of the grain are not -1 to 2"),
        ("labels", np.array([0.0, 1.0, 2.0, 0.0]), "the labels of the grain are not -1 to 2"),
        ("height_kind", "depth", "heights 'depth'"),
    ],
)
def test_a_grain_that_is_no_tree_is_refused(field, value, message):
    grain = Grain(
        np.array([0, 1, 2, -1]), np.array([[0, 1], [2, 3]]), np.zeros(2), np.zeros(3), np.ones(3), "confusion",
        "probability",
    )  # fmt: skip
    assert checked_grain(grain, 4) is grain
    with pytest.raises(ValueError, match=message):
        checked_grain(grain._replace(**{field: value}), 4)


# ---- joins by misclassification ------------------------------------------------------------------------------------


class Distances:
    """A separation by a given matrix; of joined groups the smaller loss counts."""

    def __init__(self, matrix):
        self.matrix = matrix.copy()

    def losses(self):
        return self.matrix

    def join(self, k, l):
        self.matrix[k] = np.minimum(self.matrix[k], self.matrix[l])
        self.matrix[:, k] = self.matrix[k]
        self.matrix = np.delete(np.delete(self.matrix, l, axis=0), l, axis=1)


def brute_force(R, weights, losses):
    """Labels of the components at each number of groups, and heights, straight from the definition."""
    G = R.shape[1]
    groups, losses = [[g] for g in range(G)], Distances(losses)
    partitions, heights = [groups], []
    while len(groups) > 1:
        S = np.column_stack([R[:, own].sum(axis=1) for own in groups])
        best = S.argmax(axis=1)
        P = {}
        for k in range(len(groups)):
            for l in range(k + 1, len(groups)):
                mass = [(weights * S[:, a] * (best == b)).sum() / (weights * S[:, a]).sum()
                        for a, b in ((k, l), (l, k))]  # fmt: skip
                P[k, l] = max(mass)
        top = max(P.values())
        loss = losses.losses()
        if top < MIN_CONFUSION:
            k, l = min(P, key=lambda pair: loss[pair])
        else:
            k, l = min((pair for pair in P if P[pair] == top), key=lambda pair: loss[pair])
        heights.append(P[k, l])
        losses.join(k, l)
        groups = [own + groups[l] if i == k else own for i, own in enumerate(groups) if i != l]
        partitions.append(groups)
    return partitions, heights


@pytest.mark.parametrize("sharpness", [1.0, 3.0, 30.0])
def test_joins_are_those_of_the_definition(sharpness, rng):
    R = softmax(sharpness * rng.normal(size=(50, 6)), axis=1)
    weights = rng.integers(1, 4, 50).astype(float)
    losses = rng.random((6, 6))
    losses += losses.T
    found = join_most_confused(R, weights, np.zeros(6), Distances(losses))
    partitions, heights = brute_force(R, weights, losses)
    np.testing.assert_allclose(found.heights, heights)
    sizes = np.ones(6)
    grain = Grain(np.arange(6), found.joins, found.heights, np.zeros(6), sizes, "confusion", "probability")
    for groups in partitions:
        z = np.empty(6, int)
        for k, own in enumerate(groups):
            z[own] = k
        assert adjusted_rand(grain.groups(len(groups)), z) == 1.0


def test_rows_that_are_certain_may_be_given_as_totals(rng):
    R = softmax(2.0 * rng.normal(size=(30, 5)), axis=1)
    z = rng.integers(5, size=80)
    weights = rng.random(80)
    losses = rng.random((5, 5))
    losses += losses.T
    certain = np.bincount(z, weights, minlength=5)
    apart = join_most_confused(R, np.ones(30), certain, Distances(losses))
    whole = join_most_confused(
        np.concatenate([R, np.eye(5)[z]]),
        np.concatenate([np.ones(30), weights]),
        np.zeros(5),
        Distances(losses),
    )
    np.testing.assert_array_equal(apart.joins, whole.joins)
    np.testing.assert_allclose(apart.heights, whole.heights)


def test_joins_do_not_depend_on_the_order_of_rows_and_weights_are_duplicates(rng):
    R = softmax(2.0 * rng.normal(size=(40, 6)), axis=1)
    weights = rng.integers(1, 4, 40)
    losses = np.zeros((6, 6))
    one = join_most_confused(R, weights.astype(float), np.zeros(6), Distances(losses))
    mixed = np.repeat(np.arange(40), weights)
    rng.shuffle(mixed)
    other = join_most_confused(R[mixed], np.ones(len(mixed)), np.zeros(6), Distances(losses))
    np.testing.assert_array_equal(one.joins, other.joins)
    np.testing.assert_allclose(one.heights, other.heights)


def test_separate_groups_are_joined_by_what_their_union_loses():
    losses = np.array([[0.0, 9.0, 2.0], [9.0, 0.0, 5.0], [2.0, 5.0, 0.0]])
    found = join_most_confused(np.zeros((0, 3)), np.zeros(0), np.ones(3), Distances(losses))
    assert found.joins.tolist() == [[0, 2], [1, 3]] and found.heights.tolist() == [0.0, 0.0]


def test_the_confusion_of_a_few_rows_does_not_count():
    losses = np.array([[0.0, 9.0, 5.0], [9.0, 0.0, 2.0], [5.0, 2.0, 0.0]])
    R = np.array([[0.4, 0.6, 0.0]])
    few = join_most_confused(R, np.ones(1), np.full(3, 1000.0), Distances(losses))
    assert few.joins[0].tolist() == [1, 2] and 0.0 < MIN_CONFUSION < 0.1
    many = join_most_confused(R, np.full(1, 1000.0), np.full(3, 1000.0), Distances(losses))
    assert many.joins[0].tolist() == [0, 1]


def test_the_confusion_of_a_group_without_rows_is_zero():
    from scipy import sparse

    R = sparse.csr_array(np.array([[0.6, 0.4, 0.0]]))
    assert confusion(R, np.ones(1), np.array([1.0, 0.0, 0.0])).tolist() == [
        [0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0],
    ]  # fmt: skip


# ---- trees that exist already --------------------------------------------------------------------------------------


def test_the_top_of_a_tree_is_its_last_cuts(rng):
    X = rng.normal(size=(40, 2))
    tree = linkage(X, "average")
    groups, found = top_of_tree(tree[:, :2].astype(int), tree[:, 2], 9)
    grain = Grain(
        groups,
        found.joins,
        found.heights,
        np.zeros(9),
        np.bincount(groups).astype(float),
        "dissimilarity",
        "lifetime",
    )
    for K in range(1, 10):
        assert adjusted_rand(grain.at(K), cut_linkage(tree, K)) == 1.0
    np.testing.assert_array_equal(found.heights, tree[-8:, 2])


def test_empty_groups_are_left_out_and_the_others_keep_their_levels(rng):
    G = 8
    tree = Joins(random_joins(G, rng), rng.random(G - 1))
    onto = np.full(G, -1)
    kept = np.sort(rng.choice(G, 5, replace=False))
    onto[kept] = rng.permutation(5)
    found, become = without_empty_groups(tree, onto)
    whole = Grain(np.arange(G), *tree, np.zeros(G), np.ones(G), "confusion", "probability")
    part = Grain(np.arange(5), *found, np.zeros(5), np.ones(5), "confusion", "probability")
    for K in range(1, G + 1):
        z = whole.groups(K)[kept]
        assert become[K - 1] == len(np.unique(z))
        assert adjusted_rand(z, part.groups(int(become[K - 1]))[onto[kept]]) == 1.0
    sizes, clusters = rng.integers(0, 3, G).astype(float), rng.integers(0, 3, G)
    sizes[0] = 1.0
    order = renumbered(tree, sizes, clusters)[1]
    used = np.flatnonzero(order >= 0)
    np.testing.assert_array_equal(used, np.flatnonzero(sizes > 0))
    ranked = used[np.argsort(order[used])]
    assert (np.diff(clusters[ranked]) >= 0).all()


# ---- support and confidence ----------------------------------------------------------------------------------------


def margins_by_pairs(C, labels, joins):
    """Margins from the matrix of all pairs."""
    G = len(joins) + 1
    grain = Grain(labels, joins, np.zeros(G - 1), np.zeros(G), np.ones(G), "confusion", "probability")
    out = []
    for K in range(1, G + 1):
        z = grain.groups(K)[labels]
        total = 0.0
        for i in range(len(z)):
            others = np.flatnonzero((z == z[i]) & (np.arange(len(z)) != i))
            own = C[i, others].mean() if len(others) else 0.0
            next_best = max([C[i, z == k].mean() for k in range(K) if k != z[i]], default=0.0)
            total += own - next_best
        out.append(max(total / len(z), 0.0))
    return np.array(out)


def test_support_of_draws_is_the_margin_over_all_pairs(rng):
    labels = np.concatenate([np.arange(5), rng.integers(5, size=25)])
    draws = np.where(rng.random((12, 30)) < 0.2, rng.integers(6, size=(12, 30)), labels)
    joins = random_joins(5, rng)
    found = support_of_draws(draws, labels, joins)
    np.testing.assert_allclose(found, margins_by_pairs(coclustering_matrix(draws), labels, joins), atol=1e-12)


def test_support_of_responsibilities_is_the_margin_over_all_pairs(rng):
    R = softmax(2.0 * rng.normal(size=(30, 4)), axis=1)
    labels = np.concatenate([np.arange(4), R[4:].argmax(axis=1)])
    joins = random_joins(4, rng)
    found = support_of_responsibilities(R, labels, np.ones(30), joins)
    np.testing.assert_allclose(found, margins_by_pairs(R @ R.T, labels, joins), atol=1e-12)
    times = rng.integers(1, 4, 30)
    twice = np.repeat(np.arange(30), times)
    np.testing.assert_allclose(
        support_of_responsibilities(R, labels, times.astype(float), joins),
        support_of_responsibilities(R[twice], labels[twice], np.ones(len(twice)), joins),
    )


def test_the_support_of_planted_groups_has_its_maximum_there(rng):
    z = np.repeat(np.arange(4), 20)
    halves = 2 * z + np.tile([0, 1], 40)  # each planted group in two
    draws = np.where(rng.random((40, 80)) < 0.05, rng.integers(4, size=(40, 80)), z)
    joins = np.array([[0, 1], [2, 3], [4, 5], [6, 7], [8, 9], [10, 11], [12, 13]])
    support = support_of_draws(draws, halves, joins)
    assert support.argmax() == 3
    assert (np.diff(support[:4]) > 0).all() and support[4] < support[3]


def test_every_join_of_certain_groups_lowers_the_support(rng):
    G = 6
    labels, joins = (
        np.concatenate([np.repeat(np.arange(G), 2), rng.integers(G, size=30)]),
        random_joins(G, rng),
    )
    draws = np.stack([rng.permutation(G)[labels] for _ in range(4)])  # the same partition under other names
    by_draws = support_of_draws(draws, labels, joins)
    by_responsibilities = support_of_responsibilities(np.eye(G)[labels], labels, np.ones(len(labels)), joins)
    np.testing.assert_allclose(by_draws, by_responsibilities)
    assert by_draws[-1] == pytest.approx(1.0) and (np.diff(by_draws) > 0).all()


def test_confidence_at_the_finest_level_is_that_of_the_draws(rng):
    labels = np.concatenate([np.arange(4), rng.integers(4, size=26)])
    draws = np.where(rng.random((15, 30)) < 0.3, rng.integers(5, size=(15, 30)), labels)
    finest = confidence_at(draws, labels, np.arange(4))
    np.testing.assert_allclose(finest, confidence(draws, labels).objects)
    np.testing.assert_allclose(confidence_at(draws, labels, np.zeros(4, int)), 1.0)
    names = np.stack([rng.permutation(8)[row] for row in draws])  # other names of the clusters of the draws
    np.testing.assert_allclose(
        confidence_at(names, labels, np.array([0, 1, 1, 0])),
        confidence_at(draws, labels, np.array([0, 1, 1, 0])),
    )
