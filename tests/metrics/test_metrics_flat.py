"""Purity, Rand, information, error rate, set matching: known values, scikit-learn, edge cases and properties."""

import itertools
import math
from functools import partial

import numpy as np
import pytest
import sklearn.metrics as peer
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from partita import metrics
from partita.metrics import agreement
from partita.metrics.inputs import align, cross_table

# Murphy figure 25.1 (after Manning et al.): three clusters of 6, 6 and 5 objects.
MURPHY_TRUE = list("AAAAAB" + "ABBBBC" + "AACCC")
MURPHY_FOUND = [1] * 6 + [2] * 6 + [3] * 5

TWO_LABELINGS = [
    metrics.purity,
    metrics.rand,
    metrics.adjusted_rand,
    metrics.mutual_info,
    metrics.normalized_mutual_info,
    metrics.adjusted_mutual_info,
    metrics.variation_of_information,
    metrics.error_rate,
    metrics.set_matching,
    metrics.set_matching_f1,
    metrics.pair_counts,
    metrics.pairwise_scores,
    metrics.pairwise_precision,
    metrics.pairwise_recall,
    metrics.pairwise_f,
    partial(metrics.pairwise_intervals, n_resamples=5, random_state=0),
    partial(metrics.permutation_significance, n_permutations=5, random_state=0),
]
WEIGHTED = [
    metrics.purity,
    metrics.variation_of_information,
    partial(metrics.variation_of_information, normalized=True),
    metrics.error_rate,
    metrics.set_matching,
    metrics.pair_counts,
    metrics.pairwise_scores,
    metrics.pairwise_precision,
    metrics.pairwise_recall,
    metrics.pairwise_f,
]

labelings = st.integers(1, 15).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(0, 4), min_size=n, max_size=n)] * 3)
)


def flat(result):
    """Any result of a metric as a list of numbers."""
    return np.hstack([np.ravel(part) for part in result] if isinstance(result, tuple) else [result]).tolist()


def test_murphy_figure():
    assert metrics.purity(MURPHY_TRUE, MURPHY_FOUND) == pytest.approx(12 / 17)
    assert metrics.rand(MURPHY_TRUE, MURPHY_FOUND) == pytest.approx(92 / 136)
    assert metrics.pair_counts(MURPHY_TRUE, MURPHY_FOUND) == (20, 20, 24, 72)


@given(labelings)
def test_same_as_scikit_learn(three):
    a, b, _ = three
    singletons = [
        len(set(labels)) == len(labels) for labels in (a, b)
    ]  # 0 / 0: versions of scikit-learn disagree
    assert metrics.rand(a, b) == pytest.approx(peer.rand_score(a, b))
    assert metrics.adjusted_rand(a, b) == pytest.approx(peer.adjusted_rand_score(a, b))
    assert metrics.mutual_info(a, b) == pytest.approx(peer.mutual_info_score(a, b))
    for average in ("arithmetic", "geometric", "min", "max"):
        assert metrics.normalized_mutual_info(a, b, average=average) == pytest.approx(
            peer.normalized_mutual_info_score(a, b, average_method=average)
        )
        if not (all(singletons) or (average == "min" and any(singletons))):
            assert metrics.adjusted_mutual_info(a, b, average=average) == pytest.approx(
                peer.adjusted_mutual_info_score(a, b, average_method=average), abs=1e-12
            )


def test_adjusted_information_where_chance_scores_as_much():
    """All singletons tell all about any labeling: 0 / 0, for which scikit-learn returns rounding errors."""
    singletons, pairs = [0, 1, 2, 3], [0, 0, 1, 1]
    assert metrics.adjusted_mutual_info(pairs, singletons, average="min") == 1.0
    assert metrics.adjusted_mutual_info(pairs, singletons) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("metric", TWO_LABELINGS)
def test_names_of_labels_do_not_matter(metric):
    names = {"A": 2.5, "B": None, "C": "C"}
    other = [("x", label) if label == "B" else names[label] for label in MURPHY_TRUE]
    renamed = metric(other, [str(k) for k in MURPHY_FOUND])
    assert flat(renamed) == pytest.approx(flat(metric(MURPHY_TRUE, MURPHY_FOUND)))


@pytest.mark.parametrize("metric", TWO_LABELINGS)
def test_missing_labels_raise_or_drop(metric):
    truth = [0, 0, 1, None, 1, 1, 2, 2, 0]
    found = [5, 5, -1, 6, 6, 6, 5, 6, 6]
    with pytest.raises(ValueError, match=r"labels_true\[3\] is missing"):
        metric(truth, found)
    with pytest.raises(ValueError, match=r"labels_pred\[2\] is missing.*missing='drop'"):
        metric([0, 0, 1, 7, 1, 1, 2, 2, 0], found)
    seen = [0, 1, 4, 5, 6, 7, 8]
    assert flat(metric(truth, found, missing="drop")) == pytest.approx(
        flat(metric([truth[i] for i in seen], [found[i] for i in seen]))
    )
    with pytest.raises(ValueError, match="missing is 'ignore'"):
        metric(truth, found, missing="ignore")
    with pytest.raises(ValueError, match="no object has both"):
        metric([0, None], [None, 0], missing="drop")


def test_dropping_a_whole_cluster_leaves_no_empty_one():
    assert metrics.set_matching([0, 0, 1, None], [0, 0, 1, 2], missing="drop") == (1, 1, 1)


@pytest.mark.parametrize("metric", TWO_LABELINGS)
def test_empty_and_unequal_inputs_are_errors(metric):
    with pytest.raises(ValueError, match="empty"):
        metric([], [])
    with pytest.raises(ValueError, match="labels_true has 3 labels and labels_pred has 2"):
        metric([0, 1, 1], [0, 1])
    with pytest.raises(ValueError, match="one-dimensional"):
        metric([[0], [1]], [0, 1])


EQUAL = dict(rand=1, ari=1, mi=0, nmi=1, ami=1, vi=0, error=0, purity=1, f1=1, pairs=(1, 1, 1))
OPPOSITE = dict(rand=0, ari=0, mi=0, nmi=0, ami=0, vi=math.log(4), error=0.75, f1=0.4)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("truth", "found", "expected"),
    [
        pytest.param([0], ["a"], EQUAL, id="one object"),
        pytest.param([0] * 4, [1] * 4, EQUAL, id="one cluster"),
        pytest.param(range(4), range(4), EQUAL | dict(mi=math.log(4)), id="singletons"),
        pytest.param([0] * 4, range(4), OPPOSITE | dict(purity=1, pairs=(1, 0, 0)), id="split"),
        pytest.param(range(4), [0] * 4, OPPOSITE | dict(purity=0.25, pairs=(0, 1, 0)), id="lumped"),
    ],
)
def test_edges(truth, found, expected):
    truth, found = list(truth), list(found)
    assert metrics.rand(truth, found) == pytest.approx(expected["rand"])
    assert metrics.adjusted_rand(truth, found) == pytest.approx(expected["ari"])
    assert metrics.mutual_info(truth, found) == pytest.approx(expected["mi"])
    assert metrics.normalized_mutual_info(truth, found) == pytest.approx(expected["nmi"])
    assert metrics.adjusted_mutual_info(truth, found) == pytest.approx(expected["ami"])
    assert metrics.variation_of_information(truth, found) == pytest.approx(expected["vi"])
    normalized = metrics.variation_of_information(truth, found, normalized=True)
    assert normalized == pytest.approx(1.0 if expected["vi"] else 0.0)
    assert metrics.error_rate(truth, found) == pytest.approx(expected["error"])
    assert metrics.purity(truth, found) == pytest.approx(expected["purity"])
    assert metrics.set_matching_f1(truth, found) == pytest.approx(expected["f1"])
    assert metrics.pairwise_scores(truth, found) == pytest.approx(expected["pairs"])


@pytest.mark.parametrize("metric", WEIGHTED)
def test_a_weight_of_two_is_the_object_twice_and_zero_is_absence(metric, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    truth, found = rng.integers(0, 4, (2, 30))
    weights = rng.integers(0, 4, 30)
    found[weights == 0] = 9  # a cluster that does not exist for the weighted data
    repeated = flat(metric(np.repeat(truth, weights), np.repeat(found, weights)))
    assert flat(metric(truth, found, sample_weight=weights)) == pytest.approx(repeated)
    assert flat(metric(truth, found)) != pytest.approx(repeated)
    for bad, message in (([1, 2], "shape"), (-weights - 1, "not negative"), (0 * weights, "all 30")):
        with pytest.raises(ValueError, match=message):
            metric(truth, found, sample_weight=bad)


def test_missing_labels_of_weight_zero_are_absent():
    assert metrics.purity([0, None, 0], [0, 0, 1], sample_weight=[1, 0, 1]) == 1


# ------------------------------------------------------------------------- variation of information


@given(labelings)
def test_variation_of_information_is_a_distance(three):
    for normalized in (False, True):
        vi = partial(metrics.variation_of_information, normalized=normalized)
        a, b, c = three
        assert vi(a, a) == 0
        assert vi(a, b) >= 0
        assert vi(a, b) == pytest.approx(vi(b, a))
        assert vi(a, c) <= vi(a, b) + vi(b, c) + 1e-9
        same = peer.rand_score(a, b) == 1
        assert (vi(a, b) < 1e-12) == same
        assert vi(a, b) <= (1 if normalized else math.log(len(a))) + 1e-12


@given(labelings)
def test_variation_of_information_from_entropies(three):
    a, b, _ = three
    entropies = peer.mutual_info_score(a, a) + peer.mutual_info_score(b, b)
    expected = entropies - 2 * peer.mutual_info_score(a, b)
    assert metrics.variation_of_information(a, b) == pytest.approx(expected, abs=1e-9)
    assert metrics.variation_of_information(a, b, base=2) == pytest.approx(expected / math.log(2), abs=1e-9)
    joint = [f"{i},{j}" for i, j in zip(a, b)]
    joint_entropy = peer.mutual_info_score(joint, joint)
    if joint_entropy > 1e-9:
        normalized = metrics.variation_of_information(a, b, normalized=True)
        assert normalized == pytest.approx(expected / joint_entropy, abs=1e-9)


def test_options_are_checked():
    for base in (0, 1, -2, math.nan):
        with pytest.raises(ValueError, match="base is"):
            metrics.variation_of_information([0], [0], base=base)
    for metric in (metrics.normalized_mutual_info, metrics.adjusted_mutual_info):
        with pytest.raises(ValueError, match="average is 'mean'"):
            metric([0], [0], average="mean")


# --------------------------------------------------------------------------- error rate, set matching


def brute_force_error(truth, found):
    classes, clusters = sorted(set(truth)), sorted(set(found))
    clusters += [None] * max(0, len(classes) - len(clusters))
    hits = 0
    for order in itertools.permutations(clusters, len(classes)):
        partner = dict(zip(classes, order))
        hits = max(hits, sum(partner[t] == f for t, f in zip(truth, found)))
    return 1 - hits / len(truth)


@settings(max_examples=40)
@given(labelings)
def test_error_rate_is_the_best_of_all_matchings(three):
    truth, found, _ = three
    assert metrics.error_rate(truth, found) == pytest.approx(brute_force_error(truth, found))
    table = cross_table(align(truth, found))
    shape = table.class_sizes.size, table.cluster_sizes.size
    assert agreement._match_sparse(table, shape) == agreement._largest_matching(table)


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (6, 6), (20, 45), (50, 50)])
def test_the_matching_of_a_small_table_is_that_of_scipy(shape, rng):
    gains = rng.poisson(2.0, size=shape) * rng.integers(1, 9, size=shape)
    assert agreement._match_small(gains) == gains[linear_sum_assignment(gains, maximize=True)].sum()


def test_error_rate_of_many_clusters_forms_no_large_table(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    truth = np.arange(60_000) // 2
    found = rng.permutation(30_000)[truth]
    found[::20] = 30_000 + np.arange(3000)  # a dense table would have 1e9 cells
    assert metrics.error_rate(truth, found) == pytest.approx(0.05)


@given(labelings)
def test_set_matching_by_sets(three):
    truth, found, _ = three
    A = [{i for i, f in enumerate(found) if f == k} for k in set(found)]
    B = [{i for i, t in enumerate(truth) if t == k} for k in set(truth)]
    precision = sum(max(len(a & b) / len(a) for b in B) for a in A) / len(A)
    recall = sum(max(len(a & b) / len(b) for b in B) for a in A) / len(A)
    f1 = 2 * precision * recall / (precision + recall)
    assert metrics.set_matching(truth, found) == pytest.approx((precision, recall, f1))
    assert metrics.set_matching_f1(truth, found) == pytest.approx(f1)


# --------------------------------------------------------------------------------- permutation test


def test_permutation_test_tells_signal_from_noise(global_random_seed):
    truth = np.repeat([0, 1, 2], 20)
    rng = np.random.default_rng(global_random_seed)
    signal = metrics.permutation_significance(
        truth, truth, n_permutations=199, random_state=global_random_seed + 1
    )
    assert signal.score == 1
    assert signal.p_value == 1 / 200
    assert signal.quantiles[0] < signal.quantiles[1] < signal.quantiles[2] < 0.3
    constant = metrics.permutation_significance(
        truth, 0 * truth, n_permutations=19, random_state=global_random_seed + 1
    )
    assert constant.p_value == 1
    p_values = [
        metrics.permutation_significance(
            truth, rng.permutation(truth), n_permutations=19, random_state=s
        ).p_value
        for s in range(60)
    ]
    assert 0.3 < np.mean(p_values) < 0.7


def test_permutation_test_of_a_distance(global_random_seed):
    truth = np.repeat([0, 1], 15)
    vi = metrics.variation_of_information
    test = partial(
        metrics.permutation_significance,
        truth,
        truth,
        score=vi,
        n_permutations=99,
        random_state=global_random_seed,
    )
    assert test(greater_is_better=False).p_value == 0.01
    assert test(greater_is_better=True).p_value == 1
    with pytest.raises(ValueError, match="n_permutations is 0"):
        metrics.permutation_significance(truth, truth, n_permutations=0)


@pytest.mark.parametrize(
    "function",
    [
        partial(metrics.permutation_significance, n_permutations=50),
        partial(metrics.pairwise_intervals, n_resamples=50),
    ],
)
def test_seeds_repeat_and_leave_the_global_generator_alone(function, global_random_seed):
    rng = np.random.default_rng([global_random_seed, 5])
    truth, found = rng.integers(0, 3, (2, 40))
    before = np.random.get_state()[1].copy()
    first = function(truth, found, random_state=global_random_seed + 3)
    assert flat(function(truth, found, random_state=global_random_seed + 3)) == flat(first)
    assert flat(function(truth, found, random_state=np.random.default_rng(global_random_seed + 3))) == flat(
        first
    )
    assert flat(function(truth, found, random_state=global_random_seed + 4)) != flat(first)
    function(truth, found)
    assert np.array_equal(np.random.get_state()[1], before)


def test_everything_public_is_listed():
    assert sorted(metrics.__all__) == metrics.__all__
    assert all(hasattr(metrics, name) for name in metrics.__all__)
