"""The two-parameter Indian buffet process."""

import itertools

import numpy as np
import pytest
from scipy import stats

from partita.partitions import (
    Gamma,
    IndianBuffet,
    checked,
    examples,
    left_ordered,
    log_odds,
    log_probability,
    new_dish_rate,
    sample_hyper,
    simulate,
)

BUFFETS = examples(IndianBuffet)


def matrix_of(counts, D):
    """The left-ordered matrix with counts[h] copies of column h; histories in decreasing binary order."""
    histories = [h for h in itertools.product((1, 0), repeat=D) if any(h)]
    columns = [h for h, c in zip(histories, counts) for _ in range(c)]
    return np.array(columns, dtype=int).reshape(-1, D).T


@pytest.mark.parametrize("buffet", BUFFETS)
@pytest.mark.parametrize(("D", "most"), [(1, 30), (2, 14)])
def test_classes_sum_to_one(buffet, D, most):
    """The number of columns of each history is Poisson: beyond 14 the total probability is below 1e-9."""
    total = sum(
        np.exp(log_probability(buffet, matrix_of(counts, D)))
        for counts in itertools.product(range(most + 1), repeat=2**D - 1)
    )
    assert total == pytest.approx(1.0, abs=1e-8)


@pytest.mark.parametrize("buffet", BUFFETS)
def test_probability_ignores_the_order_of_columns_and_rows(buffet, rng):
    Z = np.array([[1, 0, 1, 1], [0, 1, 1, 0], [0, 1, 0, 0]])
    value = log_probability(buffet, Z)
    for _ in range(5):
        shuffled = Z[rng.permutation(3)][:, rng.permutation(4)]
        assert log_probability(buffet, shuffled) == pytest.approx(value)
    assert log_probability(buffet, np.hstack([Z, np.zeros((3, 2), dtype=int)])) == pytest.approx(value)
    np.testing.assert_array_equal(left_ordered(Z[:, ::-1]), left_ordered(Z))


@pytest.mark.parametrize("buffet", BUFFETS)
def test_odds_of_a_shared_dish_are_the_ratio_of_probabilities(buffet):
    """Distinct columns keep the multiplicity at 1, so the ratio is the odds alone."""
    Z = np.array([[1, 1, 0], [1, 0, 1], [0, 1, 1], [1, 0, 0]])
    with_dish, without = Z.copy(), Z.copy()
    with_dish[3, 1], without[3, 1] = 1, 0
    with_dish[3, 0] = without[3, 0] = 0
    odds = log_probability(buffet, with_dish) - log_probability(buffet, without)
    assert odds == pytest.approx(float(log_odds(buffet, np.array(2.0), 4)))
    assert np.isneginf(log_odds(buffet, np.array(0.0), 4))


@pytest.mark.parametrize("buffet", BUFFETS)
def test_new_dishes_of_one_customer_are_poisson(buffet):
    """Adding j columns that only the last customer takes multiplies the probability by rate^j / j!."""
    base = np.array([[1, 1], [1, 0], [0, 1]])
    own = np.array([[0], [0], [1]])
    rate = new_dish_rate(buffet, 3)
    assert rate == pytest.approx(buffet.alpha * buffet.beta / (buffet.beta + 2))
    for j in (1, 2, 3):
        found = log_probability(buffet, np.hstack([base, np.repeat(own, j, axis=1)])) - log_probability(
            buffet, base
        )
        assert found == pytest.approx(stats.poisson.logpmf(j, rate) - stats.poisson.logpmf(0, rate))


@pytest.mark.parametrize("buffet", BUFFETS)
def test_simulations_have_their_probabilities(buffet, rng):
    D, n_draws = 2, 4000
    observed: dict[bytes, int] = {}
    log_p: dict[bytes, float] = {}
    dishes = []
    for _ in range(n_draws):
        Z = left_ordered(simulate(buffet, D, rng))
        key = Z.tobytes()
        observed[key] = observed.get(key, 0) + 1
        log_p.setdefault(key, log_probability(buffet, Z))
        dishes.append(Z.shape[1])
    expected = {key: n_draws * np.exp(v) for key, v in log_p.items()}
    common = [key for key in observed if expected[key] >= 10]
    cells = np.array([[observed[key], expected[key]] for key in common])
    rest = n_draws - cells.sum(axis=0)
    statistic = sum((o - e) ** 2 / e for o, e in [*cells, rest])
    assert stats.chi2.sf(statistic, len(cells)) > 1e-6
    rate = buffet.alpha * (1 + buffet.beta / (buffet.beta + 1))
    assert abs(np.mean(dishes) - rate) < 5 * np.sqrt(rate / n_draws)


def test_updates_leave_the_posterior_of_both_parameters_invariant(rng):
    Z = np.array([[1, 1, 0], [1, 0, 1], [1, 0, 0], [0, 0, 0], [1, 1, 0]])
    hyperprior = Gamma(1.5, 0.8)
    buffet, chain = IndianBuffet(1.0, 1.0), np.empty((3000, 2))
    for i in range(len(chain)):
        buffet = sample_hyper(buffet, Z, rng, hyperprior)
        chain[i] = np.log(buffet)
    grid = np.linspace(np.log(1e-4), np.log(40.0), 80)
    log_density = np.array(
        [
            [
                log_probability(IndianBuffet(np.exp(a), np.exp(b)), Z)
                + hyperprior.log_density(np.exp(a))
                + hyperprior.log_density(np.exp(b))
                + a
                + b
                for b in grid
            ]
            for a in grid
        ]
    )
    p = np.exp(log_density - log_density.max())
    p /= p.sum()
    batches = np.array([b.mean(axis=0) for b in np.array_split(chain, 30)])
    error = batches.std(axis=0, ddof=1) / np.sqrt(30)
    assert (np.abs(chain.mean(axis=0) - [p.sum(axis=1) @ grid, p.sum(axis=0) @ grid]) < 5.5 * error).all()


def test_update_of_alpha_is_conjugate(rng):
    Z = np.array([[1, 1, 0], [1, 0, 1], [1, 0, 0], [0, 0, 0], [1, 1, 0]])
    start, rate = IndianBuffet(1.0, 5.0), 0.8 + sum(5.0 / (5.0 + i) for i in range(5))
    alpha = [sample_hyper(start, Z, rng, Gamma(1.5, 0.8)).alpha for _ in range(1500)]
    assert stats.kstest(alpha, stats.gamma(1.5 + 3, scale=1 / rate).cdf).pvalue > 1e-6


def test_bad_input():
    with pytest.raises(ValueError, match="zeros and ones"):
        log_probability(BUFFETS[0], np.array([[2, 0]]))
    with pytest.raises(ValueError, match="beta is 0"):
        checked(IndianBuffet(1.0, 0))
