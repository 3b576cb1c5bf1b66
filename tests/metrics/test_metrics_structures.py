"""Pairs, trees, perplexity and the matching of several labelings."""

import itertools
import math
from functools import partial

import numpy as np
import pytest
import sklearn.metrics as peer
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster.hierarchy import linkage

from partita import metrics

two_labelings = st.integers(1, 14).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(0, 4), min_size=n, max_size=n)] * 2)
)

# ---------------------------------------------------------------------------------------------- pairs


@given(two_labelings)
def test_pair_counts_by_visiting_every_pair(two):
    truth, found = two
    counts = {(True, True): 0, (False, True): 0, (True, False): 0, (False, False): 0}
    for i, j in itertools.combinations(range(len(truth)), 2):
        counts[truth[i] == truth[j], found[i] == found[j]] += 1
    assert metrics.pair_counts(truth, found) == tuple(counts.values())
    (tn, fp), (fn, tp) = peer.cluster.pair_confusion_matrix(truth, found) // 2
    assert metrics.pair_counts(truth, found) == (tp, fp, fn, tn)


@given(two_labelings, st.sampled_from([0.5, 1.0, 2.0]))
def test_pairwise_scores_are_those_of_a_classifier_of_pairs(two, beta):
    truth, found = two
    pairs = list(itertools.combinations(range(len(truth)), 2))
    y = [truth[i] == truth[j] for i, j in pairs] + [True, False]
    y_found = [found[i] == found[j] for i, j in pairs] + [True, False]
    precision, recall, f, _ = peer.precision_recall_fscore_support(y, y_found, beta=beta, average="binary")
    tp, fp, fn, _ = metrics.pair_counts(truth, found)
    # the two pairs added keep the peer's ratios defined: add them to ours as well
    assert precision == pytest.approx((tp + 1) / (tp + fp + 1))
    assert recall == pytest.approx((tp + 1) / (tp + fn + 1))
    scores = metrics.pairwise_scores(truth, found, beta=beta)
    if tp:
        p, r = tp / (tp + fp), tp / (tp + fn)
        assert scores == pytest.approx((p, r, (1 + beta**2) * p * r / (beta**2 * p + r)))
    else:
        assert scores.f == (0 if fp + fn else 1)
    assert metrics.pairwise_precision(truth, found) == scores.precision
    assert metrics.pairwise_recall(truth, found) == scores.recall
    assert metrics.pairwise_f(truth, found, beta=beta) == scores.f


def test_pair_counts_are_exact_for_many_objects():
    n = 3_000_000_000
    assert metrics.pair_counts([0, 1], [0, 0], sample_weight=[n, 1]) == (n * (n - 1) // 2, n, 0, 0)


def test_pairs_check_their_options():
    with pytest.raises(ValueError, match=r"sample_weight holds 1\.5"):
        metrics.pair_counts([0, 1], [0, 1], sample_weight=[1, 1.5])
    for call in (metrics.pairwise_scores, metrics.pairwise_intervals):
        with pytest.raises(ValueError, match="beta is 0"):
            call([0, 1], [0, 1], beta=0)
    with pytest.raises(ValueError, match="confidence is 95"):
        metrics.pairwise_intervals([0, 1], [0, 1], confidence=95)
    with pytest.raises(ValueError, match="n_resamples is 0"):
        metrics.pairwise_intervals([0, 1], [0, 1], n_resamples=0)


def test_bootstrap_draws_objects_without_their_own_copies(global_random_seed):
    """One resample, redone by hand from the same uniforms."""
    rng = np.random.default_rng([global_random_seed, 0])
    truth, found = rng.integers(0, 3, (2, 25))
    drawn = np.random.default_rng(global_random_seed + 8).integers(25, size=25)
    tp = fp = fn = 0
    for i, j in itertools.combinations(drawn.tolist(), 2):
        if i != j:
            together, true = found[i] == found[j], truth[i] == truth[j]
            tp, fp, fn = tp + (together & true), fp + (together & ~true), fn + (~together & true)
    result = metrics.pairwise_intervals(truth, found, n_resamples=1, random_state=global_random_seed + 8)
    assert result.precision.low == result.precision.high == pytest.approx(tp / (tp + fp))
    assert result.recall.low == pytest.approx(tp / (tp + fn))
    assert result.f.low == pytest.approx(2 * tp / (2 * tp + fp + fn))
    assert [interval.estimate for interval in result] == pytest.approx(metrics.pairwise_scores(truth, found))


def test_bootstrap_interval_covers_the_population_value(global_random_seed):
    """Found labels are true ones with a tenth replaced at random: cover F of a huge sample."""
    rng = np.random.default_rng(global_random_seed)

    def sample(n):
        truth = rng.integers(0, 3, n)
        return truth, np.where(rng.random(n) < 0.1, rng.integers(0, 3, n), truth)

    target = metrics.pairwise_f(*sample(500_000))
    hits, widths = 0, []
    for seed in range(60):
        f = metrics.pairwise_intervals(
            *sample(150), confidence=0.9, n_resamples=150, random_state=global_random_seed + seed
        ).f
        hits += f.low <= target <= f.high
        widths.append(f.high - f.low)
    assert 45 <= hits <= 59
    assert np.mean(widths) < 0.2


# ---------------------------------------------------------------------------------------------- trees


def random_tree(n, rng):
    """Linkage rows that merge random nodes."""
    alive, rows = list(range(n)), []
    for node in range(n, 2 * n - 1):
        left, right = (alive.pop(rng.integers(len(alive))) for _ in range(2))
        rows.append([left, right, -float(node), 0])
        alive.append(node)
    return np.array(rows).reshape(-1, 4)


def brute_force_purity(tree, labels, draw):
    n = len(labels)
    leaves = [{i} for i in range(n)]
    for left, right, *_ in tree:
        leaves.append(leaves[int(left)] | leaves[int(right)])
    terms, weights = [], []
    for i, j in itertools.permutations(range(n), 2):
        if labels[i] == labels[j]:
            smallest = min((s for s in leaves if {i, j} <= s), key=len)
            terms.append(np.mean([labels[k] == labels[i] for k in smallest]))
            others = sum(label == labels[i] for label in labels) - 1
            weights.append(1 / others if draw == "leaf" else 1)
    return np.average(terms, weights=weights) if terms else 1.0


@settings(max_examples=60)
@given(st.integers(1, 14), st.integers(1, 5), st.integers(0, 10**6), st.sampled_from(["leaf", "pair"]))
def test_dendrogram_purity_by_visiting_every_pair(n, n_classes, seed, draw):
    rng = np.random.default_rng(seed)
    tree, labels = random_tree(n, rng), rng.integers(0, n_classes, n).tolist()
    expected = brute_force_purity(tree, labels, draw)
    assert metrics.dendrogram_purity(tree, labels, draw=draw) == pytest.approx(expected)


def test_dendrogram_purity_of_a_scipy_tree():
    X = np.concatenate([np.zeros((5, 1)), 10 * np.ones((3, 1))]) + np.arange(8)[:, None] / 100
    tree = linkage(X, "average")
    assert metrics.dendrogram_purity(tree, ["a"] * 5 + ["b"] * 3) == 1
    assert metrics.dendrogram_purity(tree, ["a"] * 4 + ["b"] * 4) < 1
    assert metrics.dendrogram_purity(tree, range(8)) == 1  # no class has two leaves
    assert metrics.dendrogram_purity(tree, [0] * 8) == 1
    assert metrics.dendrogram_purity(np.empty((0, 4)), ["a"]) == 1


def test_dendrogram_purity_without_unlabelled_leaves():
    # ((0 1) 2) 3: leaf 1 counts nowhere, so that (0, 2) meet in a pure subtree
    tree = [[0, 1, 1, 2], [4, 2, 2, 3], [5, 3, 3, 4]]
    with pytest.raises(ValueError, match=r"labels_true\[1\] is missing"):
        metrics.dendrogram_purity(tree, ["a", None, "a", "b"])
    assert metrics.dendrogram_purity(tree, ["a", None, "a", "b"], missing="drop") == 1
    assert metrics.dendrogram_purity(tree, ["a", "b", "a", "c"]) == pytest.approx(2 / 3)


def test_dendrogram_purity_of_deep_trees_with_many_classes(global_random_seed):
    """A chain is deeper than Python recurses; benchmarks/speed/yardsticks.py watches the time."""
    n = 4000
    rng = np.random.default_rng(global_random_seed)
    chain = np.column_stack([np.r_[0, n : 2 * n - 2], np.arange(1, n), np.arange(1, n), np.arange(2, n + 1)])
    labels = rng.integers(0, n // 4, n)
    _, last = np.nonzero(
        np.triu(labels[:, None] == labels, 1)
    )  # a pair meets among the leaves up to its last
    within = np.cumsum(labels[:, None] == np.arange(labels.max() + 1), axis=0)
    expected = (within[last, labels[last]] / (last + 1)).mean()
    assert metrics.dendrogram_purity(chain, labels, draw="pair") == pytest.approx(expected)


@pytest.mark.parametrize(
    ("tree", "labels", "message"),
    [
        ([[0, 1, 1, 2]], [0, 1, 1], "2 merges"),
        ([[0, 1, 1, 2], [0, 2, 1, 3]], [0, 1, 1], "node 0 more than once"),
        ([[0, 4, 1, 2], [1, 2, 1, 3]], [0, 1, 1], r"linkage\[0\] merges the nodes \[0.0, 4.0\]"),
        ([[0, 1.5, 1, 2], [1, 2, 1, 3]], [0, 1, 1], r"linkage\[0\]"),
        ([[0, np.nan, 1, 2]], [0, 1], r"linkage\[0\]"),
        ([], [], "empty"),
    ],
)
def test_dendrogram_purity_names_what_is_wrong(tree, labels, message):
    with pytest.raises(ValueError, match=message):
        metrics.dendrogram_purity(tree, labels)
    with pytest.raises(ValueError, match="draw is 'class'"):
        metrics.dendrogram_purity(tree, labels, draw="class")


# ----------------------------------------------------------------------------------------- perplexity


def test_perplexity():
    assert metrics.perplexity(20 * math.log(0.5), 20) == pytest.approx(2)
    assert metrics.perplexity(np.log([0.5, 0.5, 0.125, 1]), 4) == pytest.approx((1 / 32) ** (-1 / 4))
    assert metrics.perplexity(0, 3) == 1
    assert metrics.perplexity(-math.inf, 3) == math.inf
    assert metrics.perplexity(-1e9, 1) == math.inf
    with pytest.raises(ValueError, match="NaN"):
        metrics.perplexity([0.0, math.nan], 3)
    with pytest.raises(ValueError, match="n_cells is 0"):
        metrics.perplexity(-1.0, 0)


# ------------------------------------------------------------------------------------------- matching


@settings(max_examples=25)
@given(st.integers(1, 4), st.integers(1, 4), st.integers(0, 10**6))
def test_matching_is_the_best_of_all(n_truths, n_founds, seed):
    rng = np.random.default_rng(seed)
    truths, founds = rng.integers(0, 3, (n_truths, 12)), rng.integers(0, 3, (n_founds, 12))
    result = metrics.match_labelings(list(truths), list(founds))
    scores = np.array([[peer.normalized_mutual_info_score(t, f) for f in founds] for t in truths])
    np.testing.assert_allclose(result.scores, scores)
    wide = scores if n_truths <= n_founds else scores.T
    orders = itertools.permutations(range(wide.shape[1]), len(wide))
    best = max(sum(wide[i, j] for i, j in enumerate(order)) for order in orders)
    assert result.average == pytest.approx(best / n_truths)
    assert result.average_matched == pytest.approx(best / min(n_truths, n_founds))
    assert scores[tuple(result.pairs.T)].sum() == pytest.approx(best)
    assert [len(set(column)) for column in result.pairs.T.tolist()] == [min(n_truths, n_founds)] * 2


def test_matching_reads_matrices_by_columns_and_takes_any_score(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    truths, founds = rng.integers(0, 3, (20, 2)), rng.integers(0, 4, (20, 3))
    for score in (
        metrics.adjusted_rand,
        metrics.normalized_mutual_info,
        partial(metrics.normalized_mutual_info, average="geometric"),
    ):
        by_columns = metrics.match_labelings(truths, founds, score=score)
        by_list = metrics.match_labelings(list(truths.T), list(founds.T), score=score)
        assert by_columns.scores.shape == (2, 3)
        assert by_columns.scores[1, 2] == score(truths[:, 1], founds[:, 2])
        assert by_columns.average == by_list.average


def test_matching_names_what_is_wrong():
    with pytest.raises(ValueError, match="founds is empty"):
        metrics.match_labelings([[0, 1]], [])
    with pytest.raises(ValueError, match=r"truths has shape \(2,\)"):
        metrics.match_labelings(np.array([0, 1]), [[0, 1]])
    with pytest.raises(ValueError, match=r"score\(truths\[0\], founds\[0\]\) is NaN"):
        metrics.match_labelings([[0, 1]], [[0, 1]], score=lambda t, f: math.nan)
    with pytest.raises(ValueError, match="labels_pred"):
        metrics.match_labelings([[0, 1]], [[0, -1]])
