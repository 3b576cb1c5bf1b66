"""The evidence of semi-conjugate means by quadrature, against an average over draws of the mean."""

import numpy as np
from scipy.special import logsumexp

from benchmarks.quality.mean_priors import log_evidence_own_width, log_evidence_semi, moments_of


def test_both_priors_agree_with_an_average_over_means(rng):
    p, nu, spread = 2, 6.0, 0.8
    Psi = np.array([[0.7, 0.2], [0.2, 0.5]])
    n, center, scatter = moments_of(rng.normal(size=(7, p)) * 0.6 + 0.5)
    # given the mean, the evidence is that of a normal-inverse-Wishart prior whose mean is known (a large kappa)
    means = rng.normal(size=(40_000, p)) * np.sqrt(spread)
    given = []
    for mean in means[:4000]:
        given.append(log_evidence_own_width(n, center - mean, scatter, nu, Psi, spread, kappa=1e9))
    average = logsumexp(given) - np.log(len(given))
    error = np.std(np.exp(np.array(given) - average)) / np.sqrt(len(given))
    assert abs(np.exp(log_evidence_semi(n, center, scatter, nu, Psi, spread) - average) - 1) < 6 * error
