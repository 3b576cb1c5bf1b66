"""NBCE as users meet it: what it finds, evidence, holes, weights, faults, storage."""

import numpy as np
import pytest

import partita
from partita import NBCE
from partita.consensus.member_statistics import independent_members
from partita.estimator import DataWarning
from partita.metrics import adjusted_rand

QUICK = {"n_chains": 2, "n_draws": 30, "burn_in": 30, "random_state": 0}


pytestmark = pytest.mark.filterwarnings("ignore::partita.estimator.DataWarning")


@pytest.mark.parametrize(
    "how",
    [{}, {"inference": "vb"}, {"inference": "cvb"}, {"inference": "cvb", "order": 2}, {"prior": "stick_breaking"},
     {"prior": "finite"}, {"n_clusters": 3}, {"inference": "vb", "n_clusters": 3}],
    ids=str,
)  # fmt: skip
def test_planted_groups_are_found(clear_ensemble, how):
    z, Y = clear_ensemble
    model = NBCE(**(QUICK | how)).fit(Y)
    assert model.n_clusters_ == 3
    assert adjusted_rand(model.labels_, z) > 0.95
    assert np.all(np.diff(np.bincount(model.labels_)) <= 0)
    assert model.confidence_.min() >= 0 and model.confidence_.max() <= 1
    assert np.mean(model.predict(Y) == model.labels_) > 0.95
    assert np.allclose(model.predict_proba(Y).sum(axis=1), 1)
    assert 1.0 < model.perplexity(Y) < 3.0
    assert 0.0 <= model.singleton_share_ < 0.05
    if how.get("inference") is None:
        assert sum(model.n_clusters_posterior_.values()) == pytest.approx(1.0)
        assert model.trace_.labels.shape == (60, len(Y))
    else:
        assert np.array_equal(model.predict(Y), model.labels_)
        assert model.converged_


@pytest.mark.slow
@pytest.mark.parametrize("prior", ["pitman_yor", "mfm"])
def test_other_priors(ensemble, prior):
    z, Y = ensemble
    assert adjusted_rand(NBCE(prior, **QUICK).fit(Y).labels_, z) > 0.95


def test_priors_that_an_engine_cannot_take_are_named(ensemble):
    with pytest.raises(ValueError, match=r"inference='vb' works with .*not with PitmanYor"):
        NBCE("pitman_yor", "vb").fit(ensemble[1])


def test_both_hyper_parameters_are_learned(ensemble, global_random_seed):
    """Sharp members have a small pseudo-count, random ones a large one; given ones stay."""
    _, Y = ensemble
    noise = np.random.default_rng(global_random_seed).integers(3, size=Y.shape)
    for inference in ("vb", "gibbs"):
        sharp, blunt = (NBCE(inference=inference, **QUICK).fit(X).smoothing_ for X in (Y, noise))
        assert sharp < 0.5 < blunt
    given = NBCE(inference="vb", smoothing=0.7, concentration=2.0).fit(Y)
    assert given.smoothing_ == 0.7 and given.prior_.concentration == 2.0


# ---- evidence ------------------------------------------------------------------------------------------------


def copies_of_few(seed=0):
    """Three groups; five members that redraw 30% of the labels, each of them four times over."""
    rng = np.random.default_rng(seed)
    z = np.repeat([0, 1, 2], 60)
    few = np.where(rng.random((180, 5)) < 0.3, rng.integers(3, size=(180, 5)), z[:, None])
    return z, np.repeat(few, 4, axis=1)


def test_votes_of_copies_are_those_of_the_originals(global_random_seed):
    z, Y = copies_of_few(seed=global_random_seed)
    ones = np.ones(len(Y))
    votes = independent_members(z, Y, np.full(20, 3), ones, np.ones(20))
    assert 3.5 < votes < 6.5
    weighted = independent_members(z, Y[:, ::4], np.full(5, 3), ones, np.ones(5))
    assert min(votes, 5.0) == pytest.approx(weighted, rel=1e-6)  # five members have five votes at most
    # four columns of weight 1/4 are one member
    quarters = independent_members(z, Y, np.full(20, 3), ones, np.full(20, 0.25))
    assert quarters == pytest.approx(weighted, rel=1e-6)


def test_estimated_evidence_does_not_follow_copies(global_random_seed):
    z, Y = copies_of_few(seed=global_random_seed)
    literal = NBCE(inference="vb", random_state=global_random_seed).fit(Y)
    honest = NBCE(inference="vb", power="estimated", random_state=global_random_seed).fit(Y)
    assert 0.15 < honest.power_ < 0.4
    assert abs(honest.n_clusters_ - 3) < abs(literal.n_clusters_ - 3)
    assert adjusted_rand(honest.labels_, z) > adjusted_rand(literal.labels_, z)
    assert "independent_members" in honest.fit_report_
    assert np.allclose(honest.member_weights_, honest.power_)


def test_scale_of_member_weights_does_not_matter_to_estimated_evidence(global_random_seed):
    _, Y = copies_of_few(seed=global_random_seed)
    one, ten = (
        NBCE(inference="vb", power="estimated", n_init=1, random_state=global_random_seed).fit(
            Y[::2], member_weight=np.full(20, w)
        )
        for w in (1.0, 10.0)
    )
    assert np.allclose(one.member_weights_, ten.member_weights_)
    assert one.power_ == pytest.approx(10 * ten.power_)


def test_a_number_is_the_power_of_every_member(ensemble, global_random_seed):
    _, Y = ensemble
    model = NBCE(inference="vb", power=0.25, random_state=global_random_seed).fit(
        Y, member_weight=[1, 2, 0, 1, 1, 1]
    )
    assert np.array_equal(model.member_weights_, [0.25, 0.5, 0, 0.25, 0.25, 0.25])
    for bad in (0.0, 1.5, "half"):
        with pytest.raises(ValueError, match="power"):
            NBCE(power=bad).fit(Y)


# ---- faults 12-16, 47-50 -------------------------------------------------------------------------------------


def test_one_labeling_is_its_own_consensus():
    z = np.repeat(["x", "y", "z"], [30, 20, 10])[:, None]
    for inference in ("gibbs", "vb"):
        model = NBCE(inference=inference, **QUICK).fit(z)
        assert np.array_equal(model.labels_, np.repeat([0, 1, 2], [30, 20, 10]))
        assert "one_labeling" in model.fit_report_
        assert np.array_equal(model.predict(z), model.labels_)


def test_identical_labelings_are_their_consensus():
    z = np.repeat([0, 1, 2, 3], [20, 15, 10, 5])
    model = NBCE(**QUICK).fit(np.repeat(z[:, None], 8, axis=1))
    assert adjusted_rand(model.labels_, z) == 1.0
    assert model.confidence_.min() > 0.99


def test_pure_noise_has_no_consensus(global_random_seed):
    """Independent labels: the best point is one cluster; the draws are the prior's, which is said."""
    Y = np.random.default_rng(global_random_seed).integers(3, size=(200, 10))
    assert NBCE(inference="vb", random_state=global_random_seed).fit(Y).n_clusters_ == 1
    model = NBCE(**QUICK).fit(Y)
    assert "no_consensus" in model.fit_report_
    assert max(model.n_clusters_posterior_.values()) < 0.5
    assert model.confidence_.mean() < 0.5


def test_members_that_saw_different_objects(ensemble, global_random_seed):
    z, _ = ensemble
    rng = np.random.default_rng(global_random_seed)
    partial = np.where(rng.random((len(z), 16)) < 0.1, rng.integers(3, size=(len(z), 16)), z[:, None])
    partial = np.where(rng.random(partial.shape) < 0.5, -1, partial)
    assert adjusted_rand(NBCE(inference="vb", random_state=global_random_seed).fit(partial).labels_, z) > 0.9


def test_a_row_without_labels_and_a_row_of_weight_zero(ensemble):
    _, Y = ensemble
    X = np.vstack([Y, np.full((1, 6), -1)])
    weights = np.ones(len(X))
    weights[3] = 0
    model = NBCE(**QUICK).fit(X, sample_weight=weights)
    without = NBCE(**QUICK).fit(np.delete(Y, 3, axis=0))
    assert np.array_equal(np.delete(model.labels_, [3, 90]), without.labels_)
    assert model.labels_[90] == 0 and model.confidence_[90] == pytest.approx(model.weights_[0])
    assert model.labels_[3] == without.predict(Y[3:4])[0]
    assert np.array_equal(model.object_rows_, np.delete(np.arange(90), 3))


def test_weights_are_copies(ensemble, global_random_seed):
    _, Y = ensemble
    w = np.random.default_rng(global_random_seed).integers(1, 4, size=len(Y))
    with pytest.raises(ValueError, match=r"sample_weight is 0.5 in row 2"):
        NBCE(**QUICK).fit(Y, sample_weight=np.where(np.arange(len(Y)) == 2, 0.5, 1.0))
    model = NBCE(**QUICK).fit(Y, sample_weight=w)
    assert model.trace_.labels.shape[1] == w.sum()
    vb, repeated = (
        NBCE(inference="vb", random_state=global_random_seed).fit(Y, sample_weight=w),
        NBCE(inference="vb", random_state=global_random_seed).fit(np.repeat(Y, w, axis=0)),
    )
    assert vb.lower_bound_ == pytest.approx(repeated.lower_bound_, abs=1e-3)
    assert np.array_equal(np.repeat(vb.labels_, w), repeated.labels_)


def test_soft_members(ensemble, global_random_seed):
    z, Y = ensemble
    P = np.where(Y[:, :1] < 0, np.nan, 0.9 * np.eye(3)[Y[:, 0]] + 0.1 / 3)
    soft = NBCE(inference="vb", random_state=global_random_seed).fit([P, *Y.T[1:]])
    assert adjusted_rand(soft.labels_, z) > 0.95
    assert np.allclose(soft.member_weights_, 1.0)
    assert np.array_equal(soft.predict([P, *Y.T[1:]]).shape, z.shape)


# ---- the rest --------------------------------------------------------------------------------------------------


def test_same_seed_same_answer_whatever_the_threads(ensemble):
    _, Y = ensemble
    one, two = (NBCE(**QUICK, n_jobs=jobs).fit(Y) for jobs in (1, 2))
    assert np.array_equal(one.trace_.labels, two.trace_.labels)
    assert np.array_equal(one.labels_, two.labels_)


def test_held_out_perplexity_prefers_the_right_number(ensemble, global_random_seed):
    _, Y = ensemble
    rows = np.random.default_rng(global_random_seed).permutation(len(Y))
    train, test = Y[rows[:68]], Y[rows[68:]]
    free = NBCE(**QUICK).fit(train).perplexity(test)
    assert free < NBCE(**QUICK, n_clusters=1).fit(train).perplexity(test)


@pytest.mark.parametrize("inference", ["gibbs", "vb"])
def test_save_and_load(ensemble, tmp_path, inference):
    _, Y = ensemble
    model = NBCE(inference=inference, **QUICK).fit(Y)
    model.save(tmp_path / "model.npz")
    loaded = partita.load(tmp_path / "model.npz")
    assert np.array_equal(loaded.predict_proba(Y), model.predict_proba(Y))
    assert loaded.prior_ == model.prior_
    if inference == "gibbs":
        assert np.array_equal(loaded.trace_.labels, model.trace_.labels)
        assert loaded.diagnostics_.sentence == model.diagnostics_.sentence
        assert loaded.n_clusters_posterior_ == model.n_clusters_posterior_


def test_a_second_fit_leaves_nothing_of_the_first(ensemble):
    _, Y = ensemble
    model = NBCE(**QUICK).fit(Y)
    model.set_params(inference="vb").fit(Y)
    assert not hasattr(model, "trace_") and hasattr(model, "lower_bound_")


def test_short_chains_and_bounds_are_reported(ensemble, global_random_seed):
    _, Y = ensemble
    for inference in ("vb", "gibbs"):
        bounded = NBCE(inference=inference, max_clusters=2, **QUICK).fit(Y)
        assert bounded.n_clusters_ <= 2 and "bound_reached" in bounded.fit_report_
    assert "bound_reached" not in NBCE(inference="vb", random_state=global_random_seed).fit(Y).fit_report_
    with pytest.raises(ValueError, match="n_clusters"):
        NBCE(inference="vb", n_clusters=10**9, random_state=global_random_seed).fit(
            Y, sample_weight=np.full(len(Y), 10**8)
        )
    few = NBCE(n_chains=1, n_draws=3, burn_in=3, random_state=global_random_seed).fit(Y)
    assert "few_draws" in few.fit_report_ and not few.converged_
    with pytest.warns(DataWarning, match="only 90 objects"):
        NBCE(inference="vb", n_clusters=200, random_state=global_random_seed, max_iter=2000).fit(Y)


@pytest.mark.parametrize("inference", ["vb", "memoized"])
@pytest.mark.parametrize("share", [0.3, 0.5])
def test_few_iterations_over_many_objects(inference, share, global_random_seed):
    """Runs over samples find the clusters, so that few passes over all objects are left (once they were 449)."""
    rng = np.random.default_rng(global_random_seed)
    planted, labels = rng.integers(8, size=20_000), rng.integers(6, size=(8, 12))
    random = rng.random((20_000, 12)) < share
    Y = np.where(random, rng.integers(6, size=random.shape), labels[planted])
    model = NBCE(inference=inference, n_init=1, random_state=global_random_seed).fit(Y)
    assert model.converged_ and model.n_iter_ <= 40
    assert adjusted_rand(planted, model.labels_) > (0.95 if share < 0.4 else 0.6)
