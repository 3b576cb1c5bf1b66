"""What a fitted mixture says: clusters, scores, profiles, draws."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score

from partita import LatentClass, Mixture
from partita.datasets import make_categorical_clusters, make_gaussian_clusters, make_mixed_clusters

FAST = {"n_init": 2, "random_state": 0}


def frame_of(planted):
    return pd.DataFrame(planted.X)


def kinds_of(frame):
    return {name: name.split("_")[0] for name in frame.columns}


# ---- planted clusters ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("inference", ["em", "vb"])
@pytest.mark.parametrize("kind", ["real", "count", "binary", "categorical", "mixed"])
def test_recovers_planted_clusters(kind, inference, global_random_seed):
    """Agreement with the oracle, who knows the parameters.

    A planted set is easy or hard by itself, so the claim is about ten of them: the mean adjusted Rand index, for
    groups that the oracle tells apart almost surely (ten or more informative columns), is above 0.8. A method
    that merged two of three groups half of the time would have a mean of about 0.7, labels at random 0.
    """
    columns = {"n_real": 0, "n_count": 0, "n_binary": 0, "n_categorical": 0}
    sizes = {"real": 8, "count": 8, "binary": 24, "categorical": 12}
    wanted = sizes if kind != "mixed" else dict.fromkeys(sizes, 3)
    columns |= {f"n_{k}": n for k, n in wanted.items() if kind in (k, "mixed")}
    scores = []
    for seed in range(10):
        planted = make_mixed_clusters(200, 3, **columns, missing=0.1, random_state=global_random_seed + seed)
        frame = frame_of(planted)
        model = Mixture(
            inference=inference,
            n_clusters=3,
            kinds=kinds_of(frame),
            family={"real": "gaussian"},
            max_iter=2000,
            **FAST,
        )
        scores.append(adjusted_rand_score(planted.oracle, model.fit_predict(frame)))
    assert np.mean(scores) > 0.8, scores


def test_recovers_tilted_groups(global_random_seed):
    """Six sets of three groups with full covariances, means 5 sqrt(6) = 12 apart; 5% of the cells hidden."""
    scores = []
    for seed in range(6):
        planted = make_gaussian_clusters(150, 3, 3, separation=5.0, random_state=global_random_seed + seed)
        X = planted.X.copy()
        X[np.random.default_rng([global_random_seed, seed]).random(X.shape) < 0.05] = np.nan
        labels = Mixture(
            inference="vb", n_init=1, max_clusters=6, max_iter=2000, random_state=global_random_seed
        ).fit_predict(X)
        scores.append(adjusted_rand_score(planted.oracle, labels))
    assert np.mean(scores) > 0.8, scores


def test_recovers_exponential_and_multinomial_groups(global_random_seed):
    """Rates 200 times apart, topics that share no word: every label right."""
    rng = np.random.default_rng(global_random_seed)
    z = np.repeat([0, 1], 60)
    X = rng.exponential(np.array([1.0, 200.0])[z][:, None], (120, 5))
    X[rng.random(X.shape) < 0.1] = np.nan
    found = Mixture(family="exponential", n_clusters=2, **FAST).fit_predict(X)
    assert adjusted_rand_score(z, found) > 0.9
    words = np.array([[0.3, 0.3, 0.3, 0.05, 0.05], [0.05, 0.05, 0.3, 0.3, 0.3]])
    counts = np.array([rng.multinomial(60, words[k]) for k in z])
    dense = Mixture(family="multinomial", max_clusters=6, **FAST).fit(counts)
    sparse = Mixture(family="multinomial", max_clusters=6, **FAST).fit(sp.csr_matrix(counts))
    assert adjusted_rand_score(z, dense.labels_) == 1.0
    assert np.array_equal(sparse.labels_, dense.labels_)
    assert np.allclose(sparse.score_samples(sp.csc_array(counts)), dense.score_samples(counts))
    assert sparse.perplexity(sp.coo_array(counts)) == pytest.approx(dense.perplexity(counts))
    shares = np.column_stack([dense.profiles_[f"x{j}"]["share"] for j in range(5)])
    assert np.allclose(shares.sum(axis=1), 1.0)


def test_exposure(global_random_seed):
    """Two rates, 2 and 6; exposures from 1 to 20 drown them in the raw counts.

    Every row counts six columns, so at an exposure of 1 the totals are Poisson(12) and Poisson(36): nearly apart.
    """
    rng = np.random.default_rng(global_random_seed)
    z, e = np.repeat([0, 1], 100), rng.uniform(1, 20, 200)
    counts = rng.poisson(np.array([2.0, 6.0])[z][:, None] * e[:, None], (200, 6))
    frame = pd.DataFrame(counts, columns=[f"c{j}" for j in range(6)]).assign(e=e)
    kinds = {f"c{j}": "count" for j in range(6)}
    model = Mixture(exposure="e", kinds=kinds, family={"count": "poisson"}, max_clusters=6, **FAST).fit(frame)
    assert adjusted_rand_score(z, model.labels_) > 0.95
    assert np.allclose(np.sort(model.profiles_["c0"]["rate"]), [2.0, 6.0], rtol=0.1)  # 5 standard errors
    assert "e" not in model.profiles_
    assert np.array_equal(model.predict(frame), model.labels_)
    with pytest.raises(ValueError, match=r"exposure column 'e' is -1.0 in row 0: .* above zero"):
        model.predict(frame.assign(e=-1.0))


@pytest.mark.parametrize(
    "columns, parameters",
    [
        ({"r": [1.5, 2.5, 3.5]}, {}),
        ({"c": [3, 4, 30]}, {"family": {"count": "multinomial"}, "kinds": {"c": "count"}}),
    ],
)
def test_exposure_that_nobody_reads(columns, parameters):
    frame = pd.DataFrame(columns).assign(e=[1.0, 2.0, 3.0])
    with pytest.raises(
        ValueError, match=r"exposure='e' is read by the family 'poisson' only.*leave exposure out"
    ):
        Mixture(exposure="e", **parameters).fit(frame)


# ---- scores ----------------------------------------------------------------------------------------------------


def test_score_is_in_the_users_units(mixture, two_groups):
    X, _ = two_groups
    X[0, 0] = np.nan
    a, b = mixture().fit(X), mixture().fit(X * [1000.0, 0.25])
    difference = b.score_samples(X * [1000.0, 0.25]) - a.score_samples(X)
    expected = np.full(80, -np.log(1000.0) - np.log(0.25))
    expected[0] = -np.log(0.25)  # the hidden cell has no units
    assert np.allclose(difference, expected, atol=1e-6)
    assert a.score(X) == pytest.approx(a.score_samples(X).mean())
    assert a.log_likelihood_ == pytest.approx(a.score_samples(X).sum())
    weights = np.arange(80.0)
    assert a.score(X, sample_weight=weights) == pytest.approx(np.average(a.score_samples(X), weights=weights))


def test_score_integrates_to_one(mixture, global_random_seed):
    """The density over a fine grid, one real column: in the user's units it has mass one."""
    x = np.random.default_rng(global_random_seed).normal(50.0, 10.0, (60, 1))
    model = mixture(n_clusters=2, n_init=1, max_iter=3000).fit(x)
    grid = np.linspace(-2000, 2100, 200_001)
    mass = np.exp(model.score_samples(grid[:, None])).sum() * (grid[1] - grid[0])
    assert mass == pytest.approx(1.0, abs=0.01)  # the predictive has Student tails


def test_perplexity_of_labels(categorical, two_answers):
    X = np.column_stack([two_answers[0], two_answers[0][:, :1] * 2])
    model = categorical().fit(X)
    assert 1.0 <= model.perplexity(X) <= 2.0
    by_hand = np.exp(-model.score_samples(X).sum() / X.size)
    assert model.perplexity(X) == pytest.approx(by_hand)
    holes = X.astype(float)
    holes[:, 0] = np.nan
    observed = X.size - len(X)
    assert model.perplexity(holes) == pytest.approx(np.exp(-model.score_samples(holes).sum() / observed))


def test_confidence_and_probabilities(mixture, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    X = rng.normal(size=(80, 1)) + 2.5 * rng.integers(2, size=(80, 1))
    model = mixture(n_clusters=2, max_iter=5000).fit(X)
    P = model.predict_proba(X)
    assert P.shape == (80, len(model.weights_)) and np.allclose(P.sum(axis=1), 1.0) and (P >= 0).all()
    assert np.array_equal(model.confidence_, P.max(axis=1)) and model.confidence_.min() < 0.95
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = -np.nansum(P * np.log(P))
    assert model.label_entropy_ == pytest.approx(entropy)
    sizes = np.bincount(model.labels_)
    assert (np.diff(sizes) <= 0).all()  # the largest first


# ---- profiles and draws ----------------------------------------------------------------------------------------


def test_profiles_are_in_the_users_units(mixture, global_random_seed):
    """Means within five standard errors of the groups' own: 100 rows of standard deviation 3, so 1.5."""
    rng = np.random.default_rng(global_random_seed)
    z = np.repeat([0, 1], [120, 80])
    frame = pd.DataFrame(
        {
            "height": rng.normal(np.array([150.0, 190.0])[z], 3.0),
            "sex": np.where(rng.random(200) < np.array([0.9, 0.1])[z], "f", "m"),
            "smokes": rng.random(200) < np.array([0.2, 0.7])[z],
        }
    )
    model = mixture(n_clusters=2).fit(frame)
    height = model.profiles_["height"]
    assert np.allclose(height["mean"], [150.0, 190.0], atol=1.5) and np.allclose(height["sd"], 3.0, atol=1.0)
    assert model.profiles_["sex"]["levels"].tolist() == ["f", "m"]
    assert np.allclose(model.profiles_["sex"]["probabilities"][:, 0], [0.9, 0.1], atol=0.17)
    assert model.profiles_["smokes"]["levels"].tolist() == [False, True]
    assert np.allclose(model.profiles_["smokes"]["probabilities"][:, 1], [0.2, 0.7], atol=0.26)
    assert np.allclose(model.weights_, [0.6, 0.4], atol=0.02)


@pytest.mark.parametrize("inference", ["em", "vb"])
def test_draws_look_like_the_data(inference, global_random_seed):
    """Draws have the density that score_samples gives: their mean score is the entropy of the model.

    Two independent sets of draws from one model differ by sampling only, and training rows, which the model has
    seen, score a little better; 0.2 nats a row is five standard errors of 1,000 rows of three columns.
    """
    planted = make_mixed_clusters(
        400, 3, n_real=1, n_count=1, n_binary=0, n_categorical=1, random_state=global_random_seed
    )
    frame = frame_of(planted)
    model = Mixture(inference=inference, n_clusters=3, kinds=kinds_of(frame), max_iter=2000, **FAST).fit(
        frame
    )
    X, z = model.sample(1000)
    assert X.shape == (1000, 3) and set(X[:, 2]) <= set("abcd")
    drawn = pd.DataFrame(X, columns=frame.columns).astype({"real_0": float, "count_0": float})
    assert model.score(drawn) == pytest.approx(model.score(frame), abs=0.3)
    assert np.allclose(np.bincount(z, minlength=3) / 1000, model.weights_, atol=0.08)
    assert np.array_equal(model.sample(1000)[1], z)  # an int seed gives the same draws again


@pytest.mark.parametrize("n", [-1, 2.5, "3"])
def test_bad_number_of_draws(two_groups, n, global_random_seed):
    model = Mixture(n_clusters=2, inference="em", n_init=1, random_state=global_random_seed).fit(
        two_groups[0]
    )
    assert model.sample(0)[0].shape == (0, 2)
    with pytest.raises(ValueError, match=r"n_samples is .*give a number of rows"):
        model.sample(n)


# ---- containers ------------------------------------------------------------------------------------------------


def test_every_frame_gives_the_same(mixture, global_random_seed):
    columns = frame_of(
        make_mixed_clusters(80, 2, missing=0.1, n_count=0, random_state=global_random_seed)
    ).to_dict("list")
    columns = {name: [None if c is None or c != c else c for c in cells] for name, cells in columns.items()}
    frames = [pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns)]
    models = [mixture(n_clusters=2).fit(frame) for frame in frames]
    for model, frame in zip(models, frames, strict=True):
        assert np.array_equal(model.labels_, models[0].labels_)
        assert np.array_equal(models[0].predict(frame), models[0].labels_)
        assert model.feature_names_in_.tolist() == list(columns)


# ---- latent classes --------------------------------------------------------------------------------------------


def test_latent_class_criteria_by_hand(global_random_seed):
    planted = make_categorical_clusters(
        300, 5, [2, 3, 4, 2, 3], 2, missing=0.1, random_state=global_random_seed
    )
    X = planted.X
    model = LatentClass(2, random_state=global_random_seed).fit(X)
    log_joint = np.tile(np.log(model.weights_), (300, 1))
    for j in range(5):
        # under maximum likelihood parameters are the weighted shares of the levels
        P = model.predict_proba(X)
        seen = ~np.isnan(X[:, j])
        share = np.array(
            [[P[seen & (X[:, j] == v), k].sum() for v in range(int(np.nanmax(X[:, j])) + 1)] for k in (0, 1)]
        )
        share /= share.sum(axis=1, keepdims=True)
        with np.errstate(divide="ignore"):
            log_joint[seen] += np.log(share[:, X[seen, j].astype(int)]).T
    log_likelihood = np.logaddexp.reduce(log_joint, axis=1).sum()
    assert model.log_likelihood_ == pytest.approx(log_likelihood, rel=1e-4)
    p = 1 + 2 * (1 + 2 + 3 + 1 + 2)
    assert model.n_parameters_ == p
    assert model.aic_ == pytest.approx(-2 * model.log_likelihood_ + 2 * p)
    assert model.bic_ == pytest.approx(-2 * model.log_likelihood_ + p * np.log(300))
    assert model.sabic_ == pytest.approx(-2 * model.log_likelihood_ + p * np.log(302 / 24))
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = -np.nansum(P * np.log(P))
    assert model.entropy_r2_ == pytest.approx(1 - entropy / (300 * np.log(2)))
    assert LatentClass(1).fit(X).entropy_r2_ == 1.0


def test_latent_class_of_one_class_is_the_multinomial():
    X = np.array([[0], [0], [1], [2]] * 5)
    model = LatentClass(1).fit(X)
    assert model.log_likelihood_ == pytest.approx(10 * np.log(0.5) + 10 * np.log(0.25))


def test_latent_class_against_stepmix(global_random_seed):
    stepmix = pytest.importorskip("stepmix")
    X = make_categorical_clusters(300, 6, 3, 2, random_state=global_random_seed).X
    peer = stepmix.StepMix(
        2, measurement="categorical", n_init=10, random_state=global_random_seed, abs_tol=1e-10
    ).fit(X)
    model = LatentClass(2, random_state=global_random_seed).fit(X)
    assert model.log_likelihood_ == pytest.approx(peer.score(X) * 300, abs=0.01)


def test_latent_class_has_a_number_of_classes():
    with pytest.raises(ValueError, match="LatentClass needs n_clusters"):
        LatentClass().fit([[0], [1]])
