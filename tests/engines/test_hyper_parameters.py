"""Hyper-parameters drawn given the clusters, against the exact density on a grid."""

import numpy as np
import pytest
from scipy.special import gammaln

from partita.engines.gibbs import chain as chains
from partita.engines.gibbs.chain import HYPER_CUT, HYPER_SPREAD, learn_cells
from partita.families import Poisson
from partita.testing import effective_size

CENTER = Poisson(np.array([1.3, 2.0]), np.array([0.7, 0.5]))
SIZES = np.array([3.0, 2.0, 2.0])
COUNTS = np.array([[4.0, 1.0, 9.0], [2.0, 12.0, 0.0]])  # [column, cluster]
N_DRAWS = 6000
STANDARD_ERRORS = 5.5  # 8 means: false alarm below 1e-6, with room for the error of the effective size


def exact_moments(d):
    """Means of the logs of shape and rate of a column, and of their squares; the grid is that of the hyperprior."""
    gap = np.linspace(-HYPER_CUT * HYPER_SPREAD, HYPER_CUT * HYPER_SPREAD, 500)
    log_a, log_b = np.log(CENTER.a[d]) + gap, np.log(CENTER.b[d]) + gap
    a, b = np.exp(log_a)[:, None, None], np.exp(log_b)[None, :, None]
    evidence = gammaln(a + COUNTS[d]) - gammaln(a) + a * np.log(b) - (a + COUNTS[d]) * np.log(b + SIZES)
    prior = -0.5 * (gap / HYPER_SPREAD) ** 2
    log_p = evidence.sum(axis=2) + prior[:, None] + prior
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    return np.array([p.sum(1) @ log_a, p.sum(1) @ log_a**2, p.sum(0) @ log_b, p.sum(0) @ log_b**2])


def deviations(columns, rng):
    """Differences between the means of draws and the exact ones, in standard errors."""
    center = Poisson(CENTER.a[columns], CENTER.b[columns])
    S = np.zeros((3 * len(columns), len(SIZES)))
    S[0::3], S[1::3] = SIZES, COUNTS[columns]
    family, draws = center, []
    for _ in range(N_DRAWS):
        family = learn_cells(family, center, S, rng)
        draws.append([np.log(family.a), np.log(family.b)])
    found = []
    for j, d in enumerate(columns):
        log_a, log_b = np.array(draws)[100:, :, j].T
        for values, expected in zip((log_a, log_a**2, log_b, log_b**2), exact_moments(d), strict=True):
            found.append((values.mean() - expected) / (values.std() / np.sqrt(effective_size(values))))
    return np.abs(found)


@pytest.mark.parametrize("columns", [[0, 1], [0]], ids=["walks", "slices"])
def test_hyper_parameters_have_their_exact_density(columns, rng):
    assert deviations(columns, rng).max() < STANDARD_ERRORS


def test_a_narrow_hyperprior_is_noticed(monkeypatch, rng):
    monkeypatch.setattr(chains, "HYPER_SPREAD", 0.75)
    assert deviations([0, 1], rng).max() > STANDARD_ERRORS
