import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import adjusted_rand_score

from partita.datasets import make_categorical_clusters, make_gaussian_clusters, make_mixed_clusters

MAKERS = [make_gaussian_clusters, make_categorical_clusters, make_mixed_clusters]


def arrays(planted):
    X = planted.X
    return list(X.values()) if isinstance(X, dict) else [X]


def test_gaussian_oracle_is_the_posterior_mode():
    planted = make_gaussian_clusters(200, 3, 4, separation=1.0, random_state=1)
    p = planted.parameters
    log_joint = np.log(p["weights"]) + np.column_stack(
        [stats.multivariate_normal(m, c).logpdf(planted.X) for m, c in zip(p["means"], p["covariances"])]
    )
    np.testing.assert_array_equal(planted.oracle, log_joint.argmax(axis=1))


def test_gaussian_rows_follow_their_component():
    planted = make_gaussian_clusters(40_000, 2, 2, separation=5.0, random_state=2)
    p = planted.parameters
    for k in range(2):
        rows = planted.X[planted.labels == k]
        np.testing.assert_allclose(rows.mean(axis=0), p["means"][k], atol=0.05)
        np.testing.assert_allclose(np.cov(rows.T), p["covariances"][k], atol=0.08)
    np.testing.assert_allclose(np.bincount(planted.labels) / 40_000, p["weights"], atol=0.02)
    assert np.linalg.eigvalsh(p["covariances"]).min() >= 0.3 - 1e-12


def test_categorical_oracle_is_the_posterior_mode_of_the_seen_cells():
    planted = make_categorical_clusters(150, 4, [2, 3, 3, 6], 3, missing=0.3, random_state=3)
    weights, probabilities = planted.parameters["weights"], planted.parameters["probabilities"]
    for x, answer in zip(planted.X, planted.oracle):
        joint = weights.copy()
        for d, code in enumerate(x):
            if not np.isnan(code):
                joint = joint * probabilities[d][:, int(code)]
        assert joint.argmax() == answer


def test_categorical_rows_follow_their_component():
    planted = make_categorical_clusters(40_000, 2, 3, 2, random_state=4)
    assert planted.X.dtype.kind == "i"
    for d, p in enumerate(planted.parameters["probabilities"]):
        for k in range(2):
            codes = planted.X[planted.labels == k, d]
            np.testing.assert_allclose(np.bincount(codes, minlength=3) / codes.size, p[k], atol=0.03)


def test_mixed_oracle_is_the_posterior_mode_of_the_seen_cells():
    planted = make_mixed_clusters(150, 3, n_levels=[3, 30], missing=0.2, random_state=5)
    p = planted.parameters
    letters = {"categorical_0": list("abc"), "categorical_1": [f"level_{v}" for v in range(30)]}
    log_joint = np.tile(np.log(p["weights"]), (150, 1))
    for name, column in planted.X.items():
        for i, x in enumerate(column):
            if x is None or x != x:
                continue
            if name.startswith("real"):
                log_joint[i] += stats.norm.logpdf(x, p[name])
            elif name.startswith("count"):
                log_joint[i] += stats.poisson.logpmf(x, p[name])
            elif name.startswith("binary"):
                log_joint[i] += stats.bernoulli.logpmf(x, p[name])
            else:
                log_joint[i] += np.log(p[name][:, letters[name].index(x)])
    np.testing.assert_array_equal(planted.oracle, log_joint.argmax(axis=1))


def test_separation_helps_the_oracle():
    def score(separation):
        made = [make_gaussian_clusters(400, 4, 4, separation, random_state=seed) for seed in range(5)]
        return np.mean([adjusted_rand_score(planted.labels, planted.oracle) for planted in made])

    assert score(0.5) < score(1.5) < score(4.0)
    assert score(4.0) > 0.9


@pytest.mark.parametrize("make", MAKERS)
def test_any_source_of_randomness(make):
    def same(left, right):
        return all(np.array_equal(a, b) for a, b in zip(arrays(left), arrays(right), strict=True))

    first = make(random_state=7)
    assert same(first, make(random_state=7))
    assert same(first, make(random_state=np.random.default_rng(7)))
    assert same(first, make(random_state=np.random.SeedSequence(7)))
    assert not same(first, make(random_state=8))
    assert same(
        make(random_state=np.random.RandomState(7)),
        make(random_state=np.random.RandomState(7)),
    )
    before = np.random.get_state()[1].copy()
    make()
    np.testing.assert_array_equal(before, np.random.get_state()[1])


@pytest.mark.parametrize("make", [make_categorical_clusters, make_mixed_clusters])
def test_share_of_missing_cells(make):
    planted = make(5_000, missing=0.25, random_state=0)
    unseen = [x is None or x != x for column in arrays(planted) for x in column.ravel()]
    assert abs(np.mean(unseen) - 0.25) < 0.02


def test_edges():
    assert make_gaussian_clusters(1, 1, 1, random_state=0).X.shape == (1, 1)
    assert make_categorical_clusters(5, 2, 1, 1, random_state=0).X.tolist() == [[0, 0]] * 5
    only_counts = make_mixed_clusters(5, n_real=0, n_binary=0, n_categorical=0, random_state=0)
    assert list(only_counts.X) == ["count_0", "count_1"]


@pytest.mark.parametrize(
    ("make", "arguments", "message"),
    [
        (make_gaussian_clusters, {"n_samples": 0}, "n_samples must be at least 1"),
        (make_gaussian_clusters, {"separation": -1.0}, "separation must not be negative"),
        (make_gaussian_clusters, {"weights_concentration": 0.0}, "weights_concentration must be positive"),
        (make_categorical_clusters, {"n_levels": [2, 3]}, "names 2 columns, and there are 10"),
        (make_categorical_clusters, {"n_levels": 0}, "n_levels must be at least 1"),
        (make_categorical_clusters, {"missing": 1.0}, r"missing must lie in \[0, 1\)"),
        (make_mixed_clusters, {"n_real": -1}, "must not be negative"),
    ],
)
def test_errors_name_the_argument(make, arguments, message):
    with pytest.raises(ValueError, match=message):
        make(**arguments)
