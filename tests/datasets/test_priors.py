"""Draws from priors: their moments and distributions, by tests with false alarm rates below 1e-5."""

import numpy as np
import pytest
from scipy.stats import chi2

from partita.datasets import sample_dp_mixture, sample_restaurant, sample_stick_breaking, table_growth
from partita.partitions import DirichletProcess, PitmanYor, n_clusters_prior

FALSE_ALARM = 1e-5


def is_plausible(counts, probabilities):
    """Pearson's test, cells with few expected draws put together."""
    n = counts.sum()
    large = n * probabilities >= 20
    observed = np.append(counts[large], counts[~large].sum())
    expected = np.append(n * probabilities[large], n * probabilities[~large].sum())
    kept = expected > 0
    statistic = ((observed - expected)[kept] ** 2 / expected[kept]).sum()
    return chi2.sf(statistic, kept.sum() - 1) > FALSE_ALARM


@pytest.mark.parametrize("concentration, discount", [(1.0, 0.0), (2.5, 0.0), (0.5, 0.4)])
def test_number_of_tables(concentration, discount):
    labels = sample_restaurant(12, concentration, discount, n_draws=3000, random_state=0)
    prior = PitmanYor(concentration, discount) if discount else DirichletProcess(concentration)
    probabilities = n_clusters_prior(prior, 12)
    counts = np.bincount(labels.max(axis=1) + 1, minlength=len(probabilities))
    assert is_plausible(counts, probabilities)
    assert (table_growth(labels)[:, -1] == labels.max(axis=1) + 1).all()


@pytest.mark.parametrize("concentration, discount", [(2.0, 0.0), (5.0, 0.0), (1.0, 0.5)])
def test_sticks(concentration, discount):
    n = 4000
    weights = sample_stick_breaking(concentration, discount, n_weights=6, n_draws=n, random_state=1)
    a, b = 1 - discount, concentration + discount * np.arange(1, 7)
    expected = a / (a + b) * np.append(1.0, np.cumprod(b / (a + b)))[:-1]
    error = weights.std(axis=0) / np.sqrt(n)
    assert (np.abs(weights.mean(axis=0) - expected) < 4.9 * error).all()  # 6 tests at 1e-6 each
    assert (weights > 0).all() and (weights.sum(axis=1) < 1).all()


def test_sticks_and_restaurants_agree():
    # two rows share a component with the expected sum of squared weights: 1 / (1 + concentration)
    together = sample_restaurant(2, 3.0, n_draws=4000, random_state=2)
    share = np.mean(together[:, 0] == together[:, 1])
    squares = (sample_stick_breaking(3.0, n_weights=200, n_draws=4000, random_state=3) ** 2).sum(axis=1)
    assert abs(share - 0.25) < 4.5 * np.sqrt(0.25 * 0.75 / 4000)
    assert abs(squares.mean() - 0.25) < 4.5 * squares.std() / np.sqrt(4000)


def test_mixture_components_have_their_moments():
    draw = sample_dp_mixture(4000, 0.5, n_features=3, random_state=4)
    k = np.bincount(draw.labels).argmax()
    rows = draw.X[draw.labels == k]
    root = np.linalg.cholesky(draw.covariances[k])
    white = np.linalg.solve(root, (rows - draw.means[k]).T)
    assert (np.abs(white.mean(axis=1)) * np.sqrt(len(rows)) < 4.5).all()
    assert np.abs(np.cov(white) - np.eye(3)).max() < 6 * np.sqrt(2 / len(rows))


def test_covariances_have_the_mean_of_an_inverse_wishart():
    from partita.datasets.priors import _inverse_wishart_roots

    roots = _inverse_wishart_roots(20_000, 2, 12.0, 3.0, np.random.default_rng(5))
    draws = roots @ roots.transpose(0, 2, 1)
    error = draws.std(axis=0) / np.sqrt(len(draws))
    assert (np.abs(draws.mean(axis=0) - 3.0 * np.eye(2) / (12 - 2 - 1)) < 4.5 * error).all()


def test_first_rows_are_a_smaller_draw():
    draw = sample_dp_mixture(300, 2.0, random_state=6)
    for n in (1, 50, 300):
        assert draw.labels[:n].max() + 1 == len(np.unique(draw.labels[:n]))  # in order of appearance


@pytest.mark.parametrize(
    "call",
    [
        lambda: sample_restaurant(0),
        lambda: sample_restaurant(5, -1.0),
        lambda: sample_stick_breaking(1.0, 1.5),
        lambda: sample_stick_breaking(n_weights=2.5),
        lambda: sample_dp_mixture(5, degrees=0.5),
        lambda: sample_dp_mixture(5, scale=0.0),
    ],
)
def test_invalid_arguments_are_refused(call):
    with pytest.raises(ValueError):
        call()
