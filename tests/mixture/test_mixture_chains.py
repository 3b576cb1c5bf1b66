"""Chains as a user meets them: seeds, the trace, labels, data of every kind, weights, starts, priors.

Compiled here: full covariance, single Gaussian columns, a table of four kinds, count vectors, Bernoulli columns under
each prior and in sub-clusters, Student columns.
"""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from partita import DPGaussian, DPMultinomial, Mixture

pytestmark = pytest.mark.filterwarnings("ignore:.*(Do not trust K|too short to be judged)")
SHORT = {"n_chains": 2, "n_draws": 12, "burn_in": 4, "random_state": 0}
PRIORS = ["mfm", "dirichlet_process", "pitman_yor", "finite", "stick_breaking"]


def short(family="auto", **parameters):
    """A mixture with chains that are short, for data that need no long ones."""
    return Mixture(family, **(SHORT | parameters))


@pytest.fixture
def mixed(global_random_seed):
    """Columns of four kinds, two of them real; two groups of 35 and 25 rows; cells missing in each column."""
    rng = np.random.default_rng(global_random_seed)
    z = np.repeat([0, 1], [35, 25])
    table = pd.DataFrame(
        {
            "height": rng.normal(10.0 * z, 1.0),
            "weight": rng.normal(-10.0 * z, 1.0),
            "visits": rng.poisson(2 + 20 * z),
            "flag": pd.array(rng.random(60) < 0.1 + 0.8 * z, dtype="boolean"),
            "color": np.where(rng.random(60) < 0.9, np.array(["red", "blue"])[z], "green"),
        }
    )
    for j, name in enumerate(table.columns):
        table[name] = table[name].mask(np.arange(60) % 11 == j)
    return table, z


def same_trace(a, b):
    return all(np.array_equal(x, y, equal_nan=True) for x, y in zip(a.trace_, b.trace_, strict=True))


# ---- seeds and shapes ------------------------------------------------------------------------------------------


def test_the_seed_decides_everything(two_groups, global_random_seed):
    X, _ = two_groups
    one, two, other = (short(random_state=global_random_seed + seed).fit(X) for seed in (0, 0, 1))
    assert same_trace(one, two) and not same_trace(one, other)
    assert np.array_equal(one.labels_, two.labels_) and np.array_equal(one.confidence_, two.confidence_)
    assert one.log_likelihood_ == two.log_likelihood_ and one.prior_.gamma == two.prior_.gamma
    assert np.array_equal(one.predict_proba(X), two.predict_proba(X))


@pytest.mark.parametrize("inference", ["gibbs", "subclusters"])
def test_row_52_number_of_jobs(two_groups, inference):
    X, _ = two_groups
    first, *others = (
        short("gaussian", inference=inference, n_chains=3, n_jobs=n).fit(X) for n in (None, 1, 2, -1)
    )
    for other in others:
        assert same_trace(first, other) and np.array_equal(first.labels_, other.labels_)
        assert first.log_likelihood_ == other.log_likelihood_


@pytest.mark.parametrize("n_chains, n_draws, burn_in, thin", [(1, 5, 0, 1), (3, 4, 2, 3)])
def test_the_trace_has_the_draws_that_were_asked_for(two_groups, n_chains, n_draws, burn_in, thin):
    model = short(n_chains=n_chains, n_draws=n_draws, burn_in=burn_in, thin=thin).fit(two_groups[0])
    trace = model.trace_
    assert trace.labels.shape == (n_chains * n_draws, 80)
    assert np.array_equal(trace.chain, np.repeat(np.arange(n_chains), n_draws))
    assert all(len(field) == n_chains * n_draws for field in trace)
    assert np.isfinite(trace.log_joint).all() and (trace.concentration > 0).all()
    assert np.array_equal([len(np.unique(row)) for row in trace.labels], trace.n_clusters)
    assert model.n_iter_ == burn_in + n_draws * thin
    assert sum(model.n_clusters_posterior_.values()) == pytest.approx(1.0)


def test_burn_in_and_thinning_choose_among_the_same_iterations(two_groups):
    X, _ = two_groups
    every = short(n_chains=1, n_draws=12, burn_in=0).fit(X).trace_
    thinned = short(n_chains=1, n_draws=3, burn_in=3, thin=3).fit(X).trace_
    assert np.array_equal(thinned.labels, every.labels[5::3])
    assert np.array_equal(thinned.log_joint, every.log_joint[5::3])


def test_a_chain_does_not_know_of_the_others(two_groups):
    X, _ = two_groups
    alone, together = (short(n_chains=n).fit(X).trace_ for n in (1, 2))
    assert np.array_equal(alone.labels, together.labels[:12])


def test_labels_take_the_smallest_type():
    X = 1000.0 * np.arange(150)[:, None] ** 2
    settings = {
        "n_draws": 2,
        "burn_in": 0,
        "concentration": 1e6,
        "learn_hyper": False,
        "init": np.arange(150),
    }
    many = short("gaussian", prior="dirichlet_process", **settings).fit(X)
    assert many.trace_.n_clusters.max() > 127 and many.trace_.labels.dtype == np.int16
    few = short("gaussian", prior="dirichlet_process", n_draws=2).fit(X[:20])
    assert few.trace_.labels.dtype == np.int8


# ---- labels ----------------------------------------------------------------------------------------------------


def test_labels_sum_up_the_draws(two_groups, same_partition):
    X, z = two_groups
    model = short()
    labels = model.fit_predict(X)
    assert np.array_equal(labels, model.labels_)
    same_partition(labels, z)
    assert np.array_equal(model.predict(X), labels)  # nobody can confuse these groups
    assert np.all((model.confidence_ >= 0) & (model.confidence_ <= 1)) and model.confidence_.mean() > 0.9
    assert max(model.n_clusters_posterior_, key=model.n_clusters_posterior_.get) == model.n_clusters_ == 2


def test_labels_are_in_the_order_of_sizes(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    z = np.repeat([0, 1, 2], [10, 40, 25])
    model = short("gaussian").fit(rng.normal(30.0 * z[:, None], 1.0, (75, 2)))
    assert np.bincount(model.labels_).tolist() == [40, 25, 10]
    assert np.all(np.diff(model.weights_) < 0) and model.weights_.sum() == pytest.approx(1.0)
    assert model.profiles_["x0"]["mean"] == pytest.approx([30.0, 60.0, 0.0], abs=3.0)


@pytest.mark.parametrize("partition", ["votes", "vi", "binder", "nvi", "nid", "map"])
def test_every_way_to_one_partition(two_groups, partition, same_partition):
    X, z = two_groups
    same_partition(short(partition=partition).fit(X).labels_, z)


# ---- tables ----------------------------------------------------------------------------------------------------


def test_four_kinds_with_missing_cells(mixed, same_partition):
    table, z = mixed
    model = short(kinds={"visits": "count"}).fit(table)
    assert [model.schema_.column(name).kind for name in table] == [
        "real",
        "real",
        "count",
        "binary",
        "categorical",
    ]
    same_partition(model.labels_, z)
    assert "missing" in model.fit_report_ and np.isfinite(model.score_samples(table)).all()
    assert np.isfinite(model.perplexity(table)) and np.isfinite(model.log_likelihood_)
    rows, labels = model.sample(7)
    assert rows.shape == (7, 5) and set(rows[:, 4]) <= {"red", "blue", "green"} and set(labels) <= {0, 1}


def test_row_4_a_row_without_any_cell(mixed):
    table, z = mixed
    table.iloc[0] = pd.NA
    model = short(kinds={"visits": "count"}, burn_in=20, n_draws=40).fit(table)
    assert len(model.labels_) == 60 and model.n_clusters_ == 2
    np.testing.assert_allclose(model.predict_proba(table.iloc[:1])[0], model.weights_, rtol=1e-6)
    assert model.confidence_[0] < 0.9 and model.confidence_[1:].mean() > 0.9


def test_partly_seen_vectors(two_groups, global_random_seed):
    """Single rows were apart in 1 of 150 fresh tables and in 9 of 190, with scores from 0.97 and from 0.94."""
    X, z = two_groups
    longer = {"n_draws": 40, "burn_in": 40}
    holes = np.where(np.arange(80)[:, None] % 4 == np.arange(2), np.nan, X)
    model = short("gaussian_full", **longer).fit(holes)
    assert adjusted_rand_score(z, model.labels_) > 0.8
    assert np.isfinite(model.score_samples(holes)).all() and np.isfinite(model.trace_.log_joint).all()
    counts = (
        np.random.default_rng(global_random_seed)
        .poisson(np.where(z[:, None] == 0, [9, 1, 1], [1, 1, 9]) * 3.0)
        .astype(float)
    )
    counts[::5, 1] = np.nan
    model = DPMultinomial(**SHORT | longer).fit(counts)
    assert adjusted_rand_score(z, model.labels_) > 0.8


def test_row_7_a_constant_column(two_groups, same_partition):
    X, z = two_groups
    model = short().fit(np.column_stack([X, np.full(80, 3.0)]))
    same_partition(model.labels_, z)
    assert "constant" in model.fit_report_ and np.isfinite(model.log_likelihood_)


@pytest.mark.parametrize("inference", ["gibbs", "subclusters"])
def test_row_8_all_rows_identical(inference):
    model = short("gaussian", inference=inference, burn_in=20).fit(np.ones((30, 2)))
    assert model.n_clusters_ == 1 and set(model.labels_) == {0}


def test_rows_9_and_13_nothing_to_fit():
    with pytest.raises(ValueError, match="0 sample"):
        short().fit(np.empty((0, 2)))
    with pytest.raises(ValueError, match="0 feature"):
        short().fit(np.empty((5, 0)))


@pytest.mark.parametrize("inference", ["gibbs", "subclusters"])
def test_row_10_one_row(inference):
    model = short("gaussian", inference=inference).fit([[1.0, 2.0]])
    assert model.labels_.tolist() == [0] and model.n_clusters_posterior_ == {1: 1.0}
    assert model.confidence_.tolist() == [1.0] and model.predict_proba([[1.0, 2.0]]).tolist() == [[1.0]]


def test_rows_7_and_32_with_hyper_parameters_that_stay(two_groups, same_partition):
    X, z = two_groups
    for more in (np.full(80, 3.0), X[:, 0] * 2.0):
        model = short("gaussian_full", learn_hyper=False).fit(np.column_stack([X, more]))
        same_partition(model.labels_, z)


def test_row_32_more_columns_than_rows(global_random_seed):
    X = np.random.default_rng(global_random_seed).normal(size=(6, 9))
    for family in ("gaussian", "gaussian_full"):
        assert np.isfinite(short(family).fit(X).log_likelihood_)


def test_row_32_collinear_columns(two_groups, same_partition):
    X, z = two_groups
    model = short("gaussian_full").fit(np.column_stack([X, X[:, :1] * 2.0, X.sum(axis=1)]))
    same_partition(model.labels_, z)


def test_row_33_duplicates_on_two_points():
    X = np.repeat([[0.0, 0.0], [1.0, 1.0]], 25, axis=0)
    model = short("gaussian", n_clusters=5).fit(X)
    assert model.n_clusters_ == 2 and len(set(model.labels_[:25])) == len(set(model.labels_[25:])) == 1


@pytest.mark.parametrize("scale, offset", [(1e200, 0.0), (1e-200, 0.0), (1.0, 1e9)])
def test_row_30_scale_and_offset(two_groups, scale, offset, same_partition):
    X, z = two_groups
    model = short().fit(X * scale + offset)
    same_partition(model.labels_, z)
    assert np.isfinite(model.log_likelihood_)
    np.testing.assert_allclose(
        model.profiles_["x0"]["mean"], np.array([-6.0, 6.0]) * scale + offset, rtol=1e-8, atol=scale
    )


def test_row_35_a_thousand_columns(same_partition, global_random_seed):
    """The likelihood of a row is about exp(-1400): below the smallest float."""
    z = np.repeat([0, 1], 15)
    X = np.random.default_rng(global_random_seed).normal(size=(30, 1000)) + 1.0 * z[:, None]
    model = short("gaussian", n_draws=5).fit(X)
    same_partition(model.labels_, z)
    assert np.isfinite(model.trace_.log_joint).all() and np.isfinite(model.predict_proba(X)).all()


# ---- weights ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("inference", ["gibbs", "subclusters"])
def test_row_43_weights_are_repeated_rows(two_groups, inference, same_partition):
    X, z = two_groups
    w = np.arange(80) % 3
    weighted = short("gaussian", inference=inference).fit(X, sample_weight=w)
    copies = short("gaussian", inference=inference).fit(np.repeat(X, w, axis=0))
    same_partition(weighted.labels_, z)  # also of the rows that took no part
    assert np.array_equal(np.repeat(weighted.labels_, w), copies.labels_)
    assert weighted.weight_total_ == w.sum()
    np.testing.assert_allclose(weighted.weights_, copies.weights_, atol=0.02)


@pytest.mark.parametrize("inference", ["gibbs", "subclusters"])
def test_row_43_weight_zero_is_absence(two_groups, inference):
    X, _ = two_groups
    w = (np.arange(80) % 4 > 0).astype(float)
    weighted = short("gaussian", inference=inference).fit(X, sample_weight=w)
    absent = short("gaussian", inference=inference).fit(X[w > 0])
    assert np.array_equal(weighted.labels_[w > 0], absent.labels_)
    assert weighted.n_clusters_posterior_ == absent.n_clusters_posterior_


@pytest.mark.parametrize("inference", ["gibbs", "subclusters"])
def test_row_44_fractions_are_refused(two_groups, inference):
    w = np.ones(80)
    w[3] = 0.5
    with pytest.raises(ValueError, match=r"sample_weight is 0.5 in row 3.* use inference='vb'"):
        short(inference=inference).fit(two_groups[0], sample_weight=w)


# ---- numbers of clusters, starts, priors ------------------------------------------------------------------------


def test_a_given_number_of_clusters(two_groups, same_partition):
    X, z = two_groups
    model = short("gaussian", n_clusters=2).fit(X)
    same_partition(model.labels_, z)
    assert model.trace_.n_clusters.max() <= 2 and model.prior_.n_components == 2
    assert short("gaussian", n_clusters=1).fit(X).n_clusters_posterior_ == {1: 1.0}


@pytest.mark.parametrize("init", ["seeds", "random", "labels"])
def test_no_draw_has_more_clusters_than_allowed(init, global_random_seed):
    X = np.arange(40.0)[:, None] // 8 * 100 + np.random.default_rng(global_random_seed).normal(
        size=(40, 2)
    )  # five groups
    init = np.arange(40) % 3 if init == "labels" else init
    with pytest.warns(
        UserWarning, match="of the draws use all 3 clusters that were allowed: raise max_clusters"
    ):
        model = short("gaussian", max_clusters=3, init=init, n_draws=20).fit(X)
    assert model.trace_.n_clusters.max() <= 3


@pytest.mark.parametrize("inference", ["gibbs", "subclusters"])
def test_starts(two_groups, inference, same_partition):
    X, z = two_groups
    for init in ("seeds", z, np.where(np.arange(80) % 4 == 0, z, -1), np.array(["b", "a"])[z]):
        same_partition(short("gaussian", inference=inference, init=init).fit(X).labels_, z)
    model = short("gaussian", inference=inference, init="random", burn_in=60).fit(X)
    same_partition(model.labels_, z)


def test_bad_starts(two_groups):
    X, z = two_groups
    with pytest.raises(
        ValueError, match="init has 3 labels of 2 clusters: give one label for each of the 80 rows"
    ):
        short(init=[0, 1, 1]).fit(X)
    with pytest.raises(ValueError, match="at most 3 clusters"):
        short(init=np.arange(80), max_clusters=3).fit(X)
    with pytest.raises(ValueError, match="init gives no row a cluster"):
        short(init=np.full(80, -1)).fit(X)


@pytest.mark.parametrize("inference", ["gibbs", "subclusters"])
@pytest.mark.parametrize("prior", PRIORS)
def test_every_prior(two_answers, prior, inference, global_random_seed):
    z = two_answers[1]
    X = np.where(np.random.default_rng(global_random_seed).random((80, 12)) < 0.9, z[:, None], 1 - z[:, None])
    model = short("bernoulli", prior=prior, inference=inference, n_draws=20, burn_in=20)
    if inference == "subclusters" and prior == "stick_breaking":
        with pytest.raises(ValueError, match="needs an exchangeable prior"):
            model.fit(X)
        return
    model.fit(X)
    assert 2 <= model.n_clusters_ <= 4  # a Pitman-Yor process is fond of small clusters
    assert np.mean(model.labels_ == z) > 0.9  # cluster 0 is the larger group
    assert np.isfinite(model.trace_.discount).all() == (prior == "pitman_yor")


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_finite_prior_bounds_the_starts(two_answers):
    """Chains that begin with many clusters begin with no more than the prior has."""
    from partita.partitions import specify

    prior = specify("finite", n_components=3)
    model = short("bernoulli", prior=prior, n_draws=4, burn_in=0).fit(two_answers[0])
    assert model.trace_.n_clusters.max() <= 3


def test_a_prior_of_ones_own_keeps_its_number(two_answers):
    from partita.partitions import DirichletProcess

    model = short("bernoulli", prior=DirichletProcess(0.3), concentration=0.5).fit(two_answers[0])
    assert model.prior_.concentration == 0.5 and set(model.trace_.concentration) == {0.5}


def test_subclusters_cannot_be_bounded(two_groups):
    with pytest.raises(ValueError, match="cannot bound the number of clusters"):
        short(inference="subclusters", max_clusters=4).fit(two_groups[0])


# ---- presets and other families ---------------------------------------------------------------------------------


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_dp_gaussian(two_groups, covariance, same_partition):
    X, z = two_groups
    model = DPGaussian(covariance, **SHORT).fit(X)
    same_partition(model.labels_, z)
    assert type(model.prior_).__name__ == "DirichletProcess"
    assert set(model.get_params()) == set(DPGaussian().get_params()) and "family" not in model.get_params()


def test_dp_gaussian_follows_its_parameters(two_groups):
    model = DPGaussian(**SHORT).set_params(covariance="diagonal").fit(two_groups[0])
    assert type(model._fitted.blocks[0].family).__name__ == "GaussianDiagonal"
    assert (
        type(clone(model).set_params(covariance="full").fit(two_groups[0])._fitted.blocks[0].family).__name__
        == "GaussianFull"
    )


def test_dp_gaussian_refuses_other_shapes(two_groups):
    with pytest.raises(ValueError, match="'covariance' parameter of DPGaussian"):
        DPGaussian("round").fit(two_groups[0])


def test_dp_multinomial_reads_sparse_counts(same_partition, global_random_seed):
    from scipy.sparse import csr_matrix

    rng = np.random.default_rng(global_random_seed)
    z = np.repeat([0, 1], [22, 18])
    X = np.array([rng.multinomial(60, [[0.7, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 0.7]][k]) for k in z])
    dense, sparse = DPMultinomial(**SHORT).fit(X), DPMultinomial(**SHORT).fit(csr_matrix(X))
    same_partition(dense.labels_, z)
    assert np.array_equal(dense.labels_, sparse.labels_)


def test_student_by_name(two_groups, same_partition):
    X, z = two_groups
    X = X.copy()
    X[0] = [-40.0, -6.0]
    X[5, 1] = np.nan
    model = short("student").fit(X)
    same_partition(model.labels_[1:], z[1:])
    assert np.isfinite(model.score_samples(X)).all() and np.isfinite(model.trace_.log_joint).all()
    assert model.sample(3)[0].shape == (3, 2) and np.isfinite(model.perplexity(X))
    for engine in ("vb", "cvb"):
        with pytest.raises(ValueError, match=r"is not conjugate.*use inference='gibbs'"):
            short("student", inference=engine).fit(X)
