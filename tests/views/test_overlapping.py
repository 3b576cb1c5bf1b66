"""OverlappingViews as an estimator: planted views, units, noise columns, faulty input."""

import numpy as np
import pytest

from partita import OverlappingViews, load
from partita.datasets import make_planted_views
from partita.families import GaussianDiagonal
from partita.families.rows import add_statistics, log_marginals
from partita.metrics import match_labelings, normalized_mutual_info
from partita.views.overlapping.additive import AdditiveScores, Effects, read_reals

SHORT = {"n_init": 1, "n_chains": 1, "n_draws": 4, "burn_in": 2}


@pytest.fixture(scope="module")
def planted(global_random_seed):
    return make_planted_views(2, 400, 24, 3, separation=2.5, n_shared=3, random_state=global_random_seed + 11)


@pytest.fixture(scope="module")
def fitted(planted):
    return OverlappingViews(random_state=0, **SHORT).fit(planted.X)


def test_planted_views_are_found(planted, fitted):
    found = match_labelings(planted.view_labels, fitted.view_labels_)
    assert fitted.n_views_ == 3
    assert found.average > 0.95
    order = found.pairs[:, 1]
    assert (fitted.membership_[:, order] == planted.feature_views).mean() > 0.95
    assert np.abs(fitted.feature_views_[:, order] - planted.feature_views).mean() < 0.1
    assert all(0.99 < sum(p.values()) < 1.01 for p in fitted.n_clusters_posterior_)


def test_noise_columns_stay_out_of_every_view():
    planted = make_planted_views(1, 300, 12, 2, separation=2.5, random_state=3)
    noise = np.random.default_rng(4).normal(size=(300, 8))
    model = OverlappingViews(random_state=0, **SHORT).fit(np.hstack([planted.X, noise]))
    assert model.n_views_ == 2
    assert not model.membership_[12:].any()
    assert (
        model.membership_[:12].any(axis=1).mean() > 0.8
    )  # a column whose means happen to be near may stay out too
    assert model.feature_views_[12:].mean() < 0.15


def test_pure_noise_has_no_view():
    model = OverlappingViews(random_state=0, **SHORT).fit(np.random.default_rng(0).normal(size=(200, 6)))
    assert model.n_views_ == 0 and model.view_labels_.shape == (200, 0)
    assert "no_view" in model.fit_report_
    assert np.isfinite(model.score_samples(np.zeros((3, 6)))).all()
    assert model.predict(np.zeros((3, 6))).shape == (3, 0)


def test_units_do_not_matter(planted, fitted, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    scale, shift = 10.0 ** rng.uniform(-6, 6, size=24), rng.normal(size=24) * 100
    other = OverlappingViews(random_state=0, **SHORT).fit(planted.X * scale + shift)
    assert np.array_equal(other.membership_, fitted.membership_)
    same = match_labelings(fitted.view_labels_, other.view_labels_)
    assert same.average > 0.99
    gap = fitted.score_samples(planted.X) - other.score_samples(planted.X * scale + shift)
    assert np.allclose(gap, np.log(scale).sum(), atol=1.0)


def unnormalized(X, family, Z):
    """The score of the paper, without normalizing constant: the product of the densities of the views."""
    total = 0.0
    for z in Z:
        S = np.zeros((3, int(z.max()) + 1))
        add_statistics(family, X, z, S)
        total += log_marginals(family, S).sum()
    return total


def test_the_normaliser_cannot_be_dropped():
    """Whether a column joins a second view must not depend on its unit: the score of the paper changes by N log c."""
    rng = np.random.default_rng(1)
    Z = tuple(rng.integers(2, size=(2, 50)))
    x = Z[0][:, None] * 3.0 + rng.normal(size=(50, 1))
    c = 1000.0
    family = GaussianDiagonal.default(1)
    other = GaussianDiagonal(family.m * c, family.k, family.a, family.b * c**2)
    gain = unnormalized(x, family, Z) - unnormalized(x, family, Z[:1])
    gain_other = unnormalized(x * c, other, Z) - unnormalized(x * c, other, Z[:1])
    assert gain_other - gain == pytest.approx(-50 * np.log(c))
    ours = []
    for unit in (1.0, c):
        scores = AdditiveScores(read_reals(x * unit), Z, Effects(b=0.3 * unit**2))
        ours.append(float(scores((0, 1))[0] - scores((0,))[0]))
    assert ours[0] == pytest.approx(ours[1], abs=1e-6)


def test_disjoint_views(planted):
    model = OverlappingViews(max_views_per_feature=1, random_state=0, **SHORT).fit(planted.X)
    assert (model.membership_.sum(axis=1) <= 1).all()
    assert all((draw.membership.sum(axis=1) <= 1).all() for draw in model.draws_)


def test_mixed_table_with_holes(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    one, two = rng.integers(2, size=(2, 250))
    real = [one * 4 + rng.normal(size=250) for _ in range(2)]
    binary = [rng.random(250) < 0.1 + 0.8 * two for _ in range(4)]
    X = np.column_stack([*real, *binary]).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    kinds = dict.fromkeys(range(2, 6), "binary")
    model = OverlappingViews(kinds=kinds, random_state=0, **SHORT).fit(X)
    found = match_labelings([one, two], model.view_labels_)
    assert found.average > 0.6 and model.n_views_ == 2
    filled, unsure = model.impute(X)
    assert not np.isnan(filled.astype(float)).any() and (unsure >= 0).all()


def test_full_covariances(global_random_seed):
    """Correlated columns within clusters; a noise column belongs to no view.

    Chains of 200 fresh seeds all found the clusters exactly; with a burn-in of 8, one in sixty had split them.
    """
    rng = np.random.default_rng(5)
    one = rng.integers(2, size=200)
    tilt = np.array([[1.0, 0.9], [0.0, 0.4]])
    X = np.column_stack(
        [rng.normal(size=(200, 2)) @ tilt + 3.0 * np.outer(one, [0.0, 1.5]), rng.normal(size=200)]
    )
    model = OverlappingViews(
        covariance="full", n_init=1, n_chains=1, n_draws=20, burn_in=30, random_state=global_random_seed
    ).fit(X)
    assert match_labelings([one], model.view_labels_).average > 0.8
    assert (model.membership_.sum(axis=1) <= 1).all() and not model.membership_[2].any()
    with pytest.raises(ValueError, match="diagonal"):
        model.predict(X)
    with pytest.raises(ValueError, match="complete"):
        OverlappingViews(covariance="full").fit(np.where(np.eye(200, 3) > 0, np.nan, X))


def test_words_given_the_length(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    topic, style = rng.integers(2, size=(2, 260))
    weight = np.ones((260, 24))
    for i in range(260):
        weight[i, topic[i] * 5 : topic[i] * 5 + 5] *= 9
        weight[i, 10 + style[i] * 5 : 15 + style[i] * 5] *= 9
    P = weight / weight.sum(axis=1, keepdims=True)
    X = np.array([rng.multinomial(rng.integers(20, 60), p) for p in P])
    model = OverlappingViews(kinds="count", exposure="length", random_state=0, **SHORT).fit(X[:200])
    assert match_labelings([topic[:200], style[:200]], model.view_labels_).average > 0.8
    new, p = X[200:], P[200:]
    truth = np.exp(-(new * np.log(p)).sum() / new.sum())
    alone = X[:200].sum(axis=0) / X[:200].sum()
    one_law = np.exp(-(new * np.log(alone)).sum() / new.sum())
    assert truth < model.perplexity(new) < truth + 0.4 * (one_law - truth)


def test_words_given_the_length_are_normalized(global_random_seed):
    """Over all documents of three words the probabilities sum to one."""
    X = np.array([[3, 0, 1], [0, 4, 1], [5, 1, 0], [1, 3, 2], [4, 0, 0], [0, 3, 1]] * 5)
    model = OverlappingViews(kinds="count", exposure="length", random_state=0, **SHORT).fit(X)
    documents = [(a, b, 3 - a - b) for a in range(4) for b in range(4 - a)]
    total = 0.0
    for document in documents:
        ways = 6.0 / np.prod([[1, 1, 2, 6][n] for n in document])
        total += ways * model.perplexity(np.array([document])) ** -3.0
    assert total == pytest.approx(1.0, abs=0.03)  # 2000 draws stand for the law of the total


def test_confidence_belongs_to_the_labels(fitted, planted):
    assert fitted.confidence_kind_ == "posterior probability"
    assert fitted.confidence_.shape == fitted.view_labels_.shape
    averaged = OverlappingViews(partition="averaged", random_state=0, **SHORT).fit(planted.X)
    assert averaged.confidence_kind_ == "co-clustering probability"
    assert averaged.confidence_.shape == averaged.view_labels_.shape
    assert averaged.trace_.n_views_posterior == averaged.n_views_posterior_


def test_save_and_load(fitted, planted, tmp_path):
    fitted.save(tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    assert np.array_equal(again.view_labels_, fitted.view_labels_)
    assert np.array_equal(again.predict(planted.X), fitted.predict(planted.X))
    assert np.array_equal(again.score_samples(planted.X), fitted.score_samples(planted.X))
    assert again.n_clusters_posterior_ == fitted.n_clusters_posterior_


def test_jobs_do_not_matter(planted, global_random_seed):
    models = [
        OverlappingViews(
            n_init=2, n_chains=2, n_draws=2, burn_in=1, random_state=global_random_seed + 1, n_jobs=n
        ).fit(planted.X[:150])
        for n in (1, 2)
    ]
    assert np.array_equal(models[0].view_labels_, models[1].view_labels_)
    assert np.array_equal(models[0].feature_views_, models[1].feature_views_)


def test_oracle_is_the_best(planted):
    for v in range(3):
        oracle = normalized_mutual_info(planted.view_labels[:, v], planted.oracle[:, v])
        assert oracle > 0.9


# ---- rows of the table of faults -------------------------------------------------------------------------------------


def small(X, **options):
    return OverlappingViews(random_state=0, **SHORT, **options).fit(X)


def test_faults_that_are_errors(global_random_seed):
    X = np.random.default_rng(global_random_seed).normal(size=(20, 3))
    X[4, 1] = np.inf
    with pytest.raises(ValueError, match="x1"):
        small(X)
    with pytest.raises(ValueError):
        small(np.full((5, 2), np.nan))
    with pytest.raises(ValueError):
        small(np.empty((0, 2)))
    with pytest.raises(ValueError, match="buffet"):
        small(X[:3], buffet=(1.0, -1.0))
    with pytest.raises(ValueError, match="perplexity"):
        small(X[:4]).perplexity(X[:4])
    with pytest.raises(ValueError, match="counts"):
        small(X[:4], exposure="length")


@pytest.mark.filterwarnings("ignore")
def test_faults_that_are_fine(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    X = rng.normal(size=(30, 3))
    X[:, 1] = 2.0  # constant
    X[3] = np.nan  # a row of which nothing is known
    model = small(np.column_stack([X, np.full(30, np.nan)]))
    assert model.view_labels_.shape[0] == 30 and not model.membership_[1].any()
    assert small(np.ones((10, 3))).n_views_ == 0
    assert small(np.array([[1.0, 2.0]])).n_views_ == 0
    x = rng.normal(size=(30, 1))
    assert np.isfinite(small(np.column_stack([x, 2 * x, -x])).score_samples(X[:, :3])).all()
    assert small(rng.normal(size=(4, 12))).n_features_in_ == 12
