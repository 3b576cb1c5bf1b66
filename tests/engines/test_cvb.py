"""CVB against exact collapsed inference on enumerated data."""

import numpy as np
import pytest
from scipy.stats import binomtest

from partita.dispatch import lacks
from partita.engines.climb import cvb, vb
from partita.families import FAMILIES
from partita.families.contract import curvature, spread
from partita.partitions import FiniteDirichlet, StickBreaking
from partita.testing import co_clustering, collapsed_update, enumerate_labels

pytestmark = pytest.mark.usefixtures("uncompiled")
PRIORS = [FiniteDirichlet(1.5, 2), StickBreaking(1.2, 2)]
CURVED = [name for name, entry in FAMILIES.items() if not lacks(entry.cls, spread, curvature)]


def sweep(state, block, order):
    weights = np.ones(len(state.R))
    return cvb.step(state, [block], weights, order=order, learn_likelihood=False, learn_concentration=False)


def exact_sweep(exact, R):
    R = R.copy()
    for i in range(len(R)):
        R[i] = collapsed_update(exact, R, i)
    return R


def settled(step, R, n_sweeps=100):
    for _ in range(n_sweeps):
        R, before = step(R), R
        if np.abs(R - before).max() < 1e-8:
            break
    return R


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("prior", PRIORS, ids=["finite", "sticks"])
def test_certain_labels_give_the_gibbs_conditional(family_name, prior, order, make_mixture, rng):
    """Without uncertainty there is nothing to approximate: both orders are exact."""
    if order == 2 and family_name not in CURVED:
        pytest.skip("the second order needs the curvature of the family")
    block = make_mixture(family_name, N=5, K=2, holes=0.0)
    exact = enumerate_labels([block], prior)
    for _ in range(3):
        R = np.eye(2)[rng.integers(2, size=5)]
        state = sweep(cvb.init([block], prior, R, np.ones(5)), block, order)
        np.testing.assert_allclose(state.R[0], collapsed_update(exact, R, 0), atol=1e-8)


@pytest.mark.parametrize("prior", PRIORS, ids=["finite", "sticks"])
def test_second_order_is_closer_to_the_exact_sweep(prior, make_mixture, global_random_seed):
    """One sweep from random responsibilities; pairs over all families, a sign test at 1e-6.

    Measured over 30 fresh seeds: the second order wins 88% of the pairs, and its error is a quarter to a half of the
    first order's. 20,000 resamples of half as many pairs had no ratio above 0.79.
    """
    errors = []
    for name in CURVED:
        for seed in range(24):
            block = make_mixture(name, N=6, K=2, holes=0.0, seed=seed)
            exact = enumerate_labels([block], prior)
            R = np.random.default_rng([global_random_seed, seed]).dirichlet(np.ones(2), size=6)
            right = exact_sweep(exact, R)
            state = cvb.init([block], prior, R, np.ones(6))
            errors.append([np.abs(sweep(state, block, order).R - right).mean() for order in (1, 2)])
    first, second = np.array(errors).T
    assert binomtest(int((second < first).sum()), len(first), alternative="greater").pvalue < 1e-6
    assert second.mean() < 0.8 * first.mean()


def test_fixed_points_are_near_the_exact_ones(make_mixture, global_random_seed):
    """From the same start; probabilities of sharing a cluster, which do not depend on the names of labels.

    Over 30 fresh seeds the second order has a third of the distance to the optimum and half of that to the posterior,
    0.034 and 0.053. None of 20,000 resamples of as many tables reached a ratio of 1, or 0.07 and 0.09.
    """
    prior, rows = FiniteDirichlet(1.5, 2), []
    for name in ("categorical", "gaussian", "multinomial"):
        for seed in range(24):
            block = make_mixture(name, N=5, K=2, holes=0.0, seed=seed)
            exact = enumerate_labels([block], prior)
            start = cvb.init(
                [block],
                prior,
                np.random.default_rng([global_random_seed, seed]).dirichlet(np.ones(2), size=5),
                np.ones(5),
            )

            def together(R):
                P = R @ R.T
                np.fill_diagonal(P, 1.0)
                return P

            found = []
            for order in (1, 2):
                state = start
                for _ in range(100):
                    state = sweep(state, block, order)
                    if state.change < 1e-8:
                        break
                own_optimum = settled(lambda R, exact=exact: exact_sweep(exact, R), state.R)
                found += [
                    np.abs(state.R - own_optimum).mean(),
                    np.abs(together(state.R) - co_clustering(exact)).mean(),
                ]
            rows.append(found)
    to_optimum_1, to_posterior_1, to_optimum_2, to_posterior_2 = np.mean(rows, axis=0)
    assert to_optimum_2 < to_optimum_1
    assert to_optimum_2 < 0.08
    assert to_posterior_2 < to_posterior_1
    assert to_posterior_2 < 0.1


def test_objective_is_the_bound_of_vb_and_below_the_evidence(family_name, make_mixture, rng):
    block, prior = make_mixture(family_name, N=5, K=2, holes=0.0), PRIORS[0]
    exact = enumerate_labels([block], prior)
    state = cvb.init([block], prior, rng.dirichlet(np.ones(2), size=5), np.ones(5))
    for _ in range(5):
        state = sweep(state, block, 1)
        assert state.objective == pytest.approx(vb.bound(state.families, state.prior, state.statistics))
        assert state.objective < exact.log_evidence
        np.testing.assert_allclose(state.R.sum(axis=1), 1.0)


@pytest.mark.parametrize("order", [1, 2])
def test_closed_clusters_stay_empty(family_name, order, make_mixture, rng):
    """With one of three clusters closed, a sweep is that of the other two (the prior has 0.5 objects per cluster)."""
    if order == 2 and family_name not in CURVED:
        pytest.skip("the second order needs the curvature of the family")
    block = make_mixture(family_name, N=6, K=2, holes=0.0)
    R, ones = rng.dirichlet(np.ones(2), size=6), np.ones(6)
    two = cvb.init([block], FiniteDirichlet(1.0, 2), R, ones)
    wide = np.insert(R, 1, 0.0, axis=1)
    three = cvb.init([block], FiniteDirichlet(1.5, 3), wide, ones, np.array([False, True, False]))
    for _ in range(3):
        two, three = (sweep(state, block, order) for state in (two, three))
    assert (three.R[:, 1] == 0.0).all()
    np.testing.assert_allclose(three.R[:, [0, 2]], two.R, atol=1e-9)


@pytest.mark.parametrize("pull", [-0.4, -1.0, -2.0, -4.0, 0.9])
def test_sweeps_that_turn_back_take_smaller_shares(pull):
    """A map that goes in circles around its fixed point, or runs away from it: part of the way leads there."""
    goal, weights = np.array([[0.4, 0.6], [0.7, 0.3]]), np.array([1.0, 3.0])
    start = np.array([[0.45, 0.55], [0.72, 0.28]])
    state = cvb.CVBState((), None, start, None, 0.0, np.inf)
    shares = []
    for _ in range(80):
        moves = goal + pull * (state.R - goal) - state.R
        share = cvb.next_share(state, moves, weights)
        state = state._replace(R=state.R + state.share * moves, moves=moves, share=share)
        shares.append(share)
    np.testing.assert_allclose(state.R, goal, atol=1e-4)
    assert min(shares) >= cvb.MIN_STEP
    assert (min(shares) == 1.0) == (pull > -0.5)  # no brakes where none are needed


def test_says_what_a_family_lacks(make_tiny):
    with pytest.raises(ValueError, match="partly observed vectors"):
        cvb.check([make_tiny("gaussian_full")], 1)
    with pytest.raises(TypeError, match=r"Exponential has no spread\(\) and no curvature\(\)"):
        cvb.check([make_tiny("exponential")], 2)
    cvb.check([make_tiny("exponential")], 1)


@pytest.mark.parametrize("order", [1, 2])
def test_learning_and_missing_cells(family_name, order, make_mixture, rng):
    """Runs to finite numbers with holes and weights; a row of weight zero changes nothing."""
    if order == 2 and family_name not in CURVED:
        pytest.skip("the second order needs the curvature of the family")
    holes = 0.0 if FAMILIES[family_name].vector or family_name == "ordinal" else 0.2  # none that hide numbers
    block, prior = make_mixture(family_name, N=20, holes=holes), FiniteDirichlet(1.5, 3)
    weights = rng.uniform(0.5, 2.0, size=20)
    weights[4] = 0.0
    R = rng.dirichlet(np.ones(3), size=20)
    state = cvb.init([block], prior, R, weights)
    other = cvb.init([block], prior, np.where(np.arange(20)[:, None] == 4, 1 / 3, R), weights)
    for _ in range(3):
        state, other = (cvb.step(s, [block], weights, order=order) for s in (state, other))
    assert np.isfinite(state.objective)
    np.testing.assert_allclose(state.R, other.R, atol=1e-9)
