"""EM: its objective never falls, and it agrees with scikit-learn and with a published table."""

from functools import partial

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture

from partita.engines.climb import em
from partita.engines.climb.seeding import label_statistics
from partita.engines.passes.rows import Parameters, label_rows, log_joint_rows, plug_in
from partita.engines.run import best_run, iterate
from partita.families import Block, Categorical, GaussianDiagonal, GaussianFull
from partita.families.contract import interior
from partita.partitions import FiniteDirichlet, StickBreaking

pytestmark = pytest.mark.usefixtures("uncompiled")


def run_em(blocks, weights, K, z, *, maximum_likelihood, prior=None, max_iter=25, tol=0.0):
    prior = FiniteDirichlet(float(K), K) if prior is None else prior
    if not maximum_likelihood:
        blocks = [block._replace(family=interior(block.family)) for block in blocks]
    state = em.init(
        blocks, prior, label_statistics(blocks, weights, z, K), maximum_likelihood=maximum_likelihood
    )
    step = partial(em.step, blocks=blocks, weights=weights)
    return iterate(step, state, max_iter=max_iter, tol=tol, weight=weights.sum(), debug=True)


@pytest.mark.parametrize("maximum_likelihood", [True, False], ids=["ml", "map"])
def test_objective_never_falls(family_name, maximum_likelihood, make_mixture, rng):
    block = make_mixture(family_name)
    weights = rng.uniform(0.2, 3.0, size=40)
    run = run_em([block], weights, 3, rng.integers(3, size=40), maximum_likelihood=maximum_likelihood)
    assert run.worst_fall == 0.0
    assert np.isfinite(run.objective)
    assert run.objectives[-1] > run.objectives[0]


@pytest.mark.parametrize("prior", [FiniteDirichlet(6.0, 3), StickBreaking(2.0, 3)])
def test_objective_of_a_mixed_table_never_falls(prior, make_mixture, rng):
    blocks = [make_mixture(name) for name in ("categorical", "gaussian_full", "poisson", "multinomial")]
    run = run_em(blocks, np.ones(40), 3, rng.integers(3, size=40), maximum_likelihood=False, prior=prior)
    assert run.worst_fall == 0.0


# ---- scikit-learn ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["full", "diag"])
def test_log_likelihood_is_that_of_scikit_learn(kind, rng):
    X = np.concatenate([rng.normal(size=(30, 3)), rng.normal(2.0, 0.5, size=(25, 3))])
    family = GaussianFull.default(3) if kind == "full" else GaussianDiagonal.default(3)
    block = Block(family, X, ("a", "b", "c"))
    run = run_em([block], np.ones(55), 2, rng.integers(2, size=55), maximum_likelihood=True, max_iter=8)
    at = em.parameters(run.state)
    n, S = run.state.statistics.n, run.state.statistics.S[0]
    if kind == "full":
        means = S[1:4].T / n[:, None]
        M = np.zeros((2, 3, 3))
        rows, columns = np.tril_indices(3)
        M[:, rows, columns] = M[:, columns, rows] = (S[4:] / n).T
        cov = M - means[:, :, None] * means[:, None, :]
        cholesky = np.linalg.cholesky(np.linalg.inv(cov))
    else:
        means = (S[1::3] / n).T
        cholesky = 1 / np.sqrt((S[2::3] / n).T - means**2)
    theirs = GaussianMixture(2, covariance_type=kind)
    theirs.weights_, theirs.means_, theirs.precisions_cholesky_ = n / n.sum(), means, cholesky
    ours = np.logaddexp.reduce(log_joint_rows([block], at, np.arange(55)), axis=1)
    np.testing.assert_allclose(ours, theirs.score_samples(X), rtol=1e-9)
    proba, _ = label_rows(plug_in([block], at), 55, 2)
    np.testing.assert_allclose(proba, theirs.predict_proba(X), atol=1e-9)


@pytest.mark.parametrize("kind", ["full", "diag"])
def test_one_step_is_that_of_scikit_learn(kind, rng):
    """From the same responsibilities to the same likelihood, to scikit-learn's ridge of 1e-9."""
    X = np.concatenate([rng.normal(size=(30, 2)), rng.normal(2.0, 0.5, size=(25, 2))])
    z = rng.integers(2, size=55)
    family = GaussianFull.default(2) if kind == "full" else GaussianDiagonal.default(2)
    theirs = GaussianMixture(2, covariance_type=kind, reg_covar=1e-9)
    theirs._initialize(X, np.eye(2)[z])
    run = run_em([Block(family, X, ())], np.ones(55), 2, z, maximum_likelihood=True, max_iter=1)
    assert run.objective == pytest.approx(theirs.score_samples(X).sum(), rel=1e-7)


# ---- Topchy, Jain and Punch (2004), Table 1 ----------------------------------------------------------------

LABELS = np.array([[2] * 4 + [1] + [2, 2, 1, 1, 1, 2, 1], [*map(ord, "BAABAABBBABB")]]).T
OTHERS = np.array([[*map(ord, "XXYXXYYYYYYY")], [*map(ord, "babbbbaabaaa")]]).T
TOPCHY = np.array([np.unique(c, return_inverse=True)[1] for c in np.hstack([LABELS, OTHERS]).T], np.int8).T
CONSENSUS = np.array([0] * 6 + [1] * 6)
PRINTED = [0.999, 0.997, 0.943, 0.999, 0.999, 0.943, 0.124, 0.019, 0.260, 0.115, 0.124, 0.019]


def test_topchy_table_1(global_random_seed):
    """Every restart that reaches the best likelihood gives the printed consensus and (nearly) its posteriors."""
    block = Block(Categorical.default([2, 2, 2, 2]), np.ascontiguousarray(TOPCHY), ("1", "2", "3", "4"))
    rng = np.random.default_rng(global_random_seed)
    runs = [
        run_em(
            [block],
            np.ones(12),
            2,
            rng.integers(2, size=12),
            maximum_likelihood=True,
            max_iter=500,
            tol=1e-10,
        )
        for _ in range(40)
    ]
    best, finals = best_run(runs)
    assert best.objective == pytest.approx(-29.9917, abs=5e-5)
    reached = [run for run in runs if run.objective > best.objective - 1e-3]
    assert len(reached) >= 2
    for run in reached:
        proba, _ = label_rows(plug_in([block], em.parameters(run.state)), 12, 2)
        first = proba[:, proba[0].argmax()]
        np.testing.assert_array_equal(first < 0.5, CONSENSUS.astype(bool))
        np.testing.assert_allclose(first, PRINTED, atol=0.02)


def test_weights_and_missing_rows_in_the_parameters(make_mixture, rng):
    """An object with nothing seen has the weights of the clusters as its probabilities."""
    block = make_mixture("gaussian", holes=0.0)
    block.data[3] = np.nan
    run = run_em([block], np.ones(40), 2, rng.integers(2, size=40), maximum_likelihood=True)
    at = em.parameters(run.state)
    proba, _ = label_rows(plug_in([block], Parameters(at.log_weights, at.thetas)), 40, 2)
    np.testing.assert_allclose(proba[3], np.exp(at.log_weights))
