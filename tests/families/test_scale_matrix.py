"""The scale matrix of full covariances, learned as a whole: the Gibbs step, and the hyper-parameters averaged."""

import numpy as np
import pytest
from scipy.stats import ks_2samp, wishart

from partita import Mixture
from partita.engines.gibbs.chain import average_families
from partita.families import GaussianFull, gaussian_full_arrays
from partita.families.contract import constrained, draw, held, sample_shape, simulate, unconstrained
from partita.families.gaussian_full_arrays import SIZE, SIZE_SPREAD
from partita.families.rows import add_statistics


def draw_prior_size(rng):
    """The size from its prior."""
    step = np.inf
    while abs(step) > 3.0:
        step = rng.standard_normal()
    return SIZE * np.exp(SIZE_SPREAD * step)


def draw_family(rng, p, nu):
    """Hyper-parameters from their prior."""
    size = draw_prior_size(rng)
    L = np.atleast_2d(wishart.rvs(p + 1, size / (p + 1) * np.eye(p), random_state=rng))
    return GaussianFull.of(np.zeros(p), 0.5, nu, (nu - p + 1) * L, 1.0)


def traits(family):
    L = family.Psi / (family.nu - len(family.m) + 1)
    return np.linalg.slogdet(L)[1], np.log(np.trace(L)), L[0, 1] / np.sqrt(L[0, 0] * L[1, 1])


def test_the_size_is_drawn_given_the_shape(rng):
    """Size and matrix from their prior, and the size drawn again given the matrix: both pairs are distributed alike."""
    p, n = 2, 2000
    before, after = [], []
    for pairs, redrawn in ((before, False), (after, True)):
        for _ in range(n):
            size = draw_prior_size(rng)
            L = wishart.rvs(p + 1, size / (p + 1) * np.eye(p), random_state=rng)
            size = gaussian_full_arrays._draw_size(L, rng) if redrawn else size
            pairs.append((np.log(size), np.log(size) - np.log(np.trace(L))))
    for one, other in zip(np.transpose(before), np.transpose(after), strict=True):
        assert ks_2samp(one, other).pvalue > 1e-6


@pytest.mark.usefixtures("uncompiled")
def test_the_step_keeps_the_prior(rng):
    """Family, clusters and data from the prior, then one step given the data: the family has its prior again."""
    p, n_families, n = 2, 1500, 6
    before, after = [], []
    z = np.repeat([0, 1, 2], n // 3)
    for _ in range(n_families):
        family = draw_family(rng, p, p + 3.0)
        S = np.zeros((6, 3))
        X = simulate(family, draw(family, S, rng), z, rng)
        add_statistics(family, X, z, S)
        before.append(traits(draw_family(rng, p, p + 3.0)))
        after.append(traits(sample_shape(family, S, rng)))
    for one, other in zip(np.transpose(before), np.transpose(after), strict=True):
        assert ks_2samp(one, other).pvalue > 1e-6


def test_the_step_needs_to_be_asked_for(rng):
    family = GaussianFull.default(2)
    assert sample_shape(family, np.zeros((6, 1)), rng) is family
    assert held(family) == ("m", "kappa")
    assert held(GaussianFull.default(2, shape=True)) == ("m", "kappa", "Psi")


def test_unconstrained_and_back(rng):
    family = draw_family(rng, 3, 6.0)
    for name, value in unconstrained(family).items():
        again = constrained(family, name, value)
        np.testing.assert_allclose(again.Psi, family.Psi, rtol=1e-9)
        assert again.learns_shape == 1.0
    wider = constrained(family, "nu", unconstrained(family)["nu"] + 1.0)
    np.testing.assert_allclose(
        wider.Psi / (wider.nu - 2), family.Psi / (family.nu - 2), rtol=1e-9
    )  # degrees of freedom leave L as it is
    mean = average_families([(family,), (family,)])[0]
    np.testing.assert_allclose(mean.Psi, family.Psi, rtol=1e-9)


def test_a_shared_correlation_is_learned(rng):
    z = rng.integers(3, size=300)
    noise = rng.multivariate_normal([0, 0], [[1.0, 0.95], [0.95, 1.0]], size=300)
    X = noise + 6.0 * np.column_stack([z == 1, z == 2])
    model = Mixture({"real": ("auto", {"shape": True})}, random_state=0).fit(X)
    family = model._fitted.blocks[0].family
    assert family.Psi[0, 1] / np.sqrt(family.Psi[0, 0] * family.Psi[1, 1]) > 0.6
    assert model.n_clusters_ == 3
