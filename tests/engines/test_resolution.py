"""Expected precisions held within what doubles can carry: still a bound, still climbed, and no more digits lost."""

from functools import partial

import numpy as np
import pytest
from scipy.special import digamma

from partita.engines.climb import vb
from partita.engines.climb.seeding import label_statistics
from partita.engines.passes.rows import n_stats
from partita.engines.run import iterate
from partita.families import Block, GaussianDiagonal, GaussianFull, gaussian, gaussian_full_arrays
from partita.families.contract import expect, widened
from partita.families.rows import log_marginals, scatter_rows
from partita.families.special import log_gamma_ratio
from partita.partitions import FiniteDirichlet

pytestmark = pytest.mark.usefixtures("uncompiled")
FAMILIES = {"gaussian": GaussianDiagonal.default(3), "gaussian_full": GaussianFull.default(3)}


@pytest.fixture(params=FAMILIES)
def lik(request):
    return FAMILIES[request.param]


@pytest.fixture
def coarse(monkeypatch):
    """A resolution that ordinary data reach: sixty per cent of a column's variance."""
    for module in (gaussian, gaussian_full_arrays):
        monkeypatch.setattr(module, "RESOLUTION", 0.6)
    return 0.6


def statistics(lik, X, R):
    S = np.zeros((n_stats(lik), R.shape[1]))
    scatter_rows(lik, X, np.arange(len(X)), S, R, S)
    return S


def precisions(lik, theta):
    """Eigenvalues of the expected precision of each cluster."""
    if isinstance(lik, GaussianDiagonal):
        return -2 * theta[2::3].T
    return np.linalg.eigvalsh(gaussian_full_arrays.moments(theta, 3)[1])


@pytest.fixture
def sample(rng):
    """Narrow in some directions, wide in others; four clusters, labels in doubt."""
    shape = [[0.4, 0.2, 0.0], [0.0, 0.8, 0.3], [0.0, 0.0, 1.6]]
    return rng.normal(size=(60, 3)) @ shape, rng.dirichlet(np.full(4, 0.3), size=60)


def test_nothing_happens_to_ordinary_data(lik, sample):
    S = statistics(lik, *sample)
    assert widened(lik, S)[0] is S
    np.testing.assert_array_equal(vb.evidence(lik, S), log_marginals(lik, S))


def test_precisions_are_bounded_and_the_rest_is_kept(lik, sample, coarse):
    S = statistics(lik, *sample)
    wide, _ = widened(lik, S)
    before, after = precisions(lik, expect(lik, S)), precisions(lik, expect(lik, wide))
    assert before.max() > 1.5 / coarse  # the bound is felt
    assert before.min() < 0.9 / coarse  # and not by all
    np.testing.assert_allclose(np.sort(after), np.sort(np.minimum(before, 1 / coarse)), rtol=1e-9)


def test_the_evidence_is_a_bound_and_no_other_width_is_better(lik, sample, coarse, rng):
    """E_q log p(x, theta) - E_q log q at the widened q, against wider ones: all of them have bounded precision."""
    S = statistics(lik, *sample)
    evidence = vb.evidence(lik, S)
    raw = log_marginals(lik, S)
    assert (evidence <= raw + 1e-9).all()
    assert (evidence < raw - 0.1).any()

    def bound_at(T):
        # log marginal of T is the bound of T's own posterior; what S adds beyond T is linear in theta
        return log_marginals(lik, T).sum() + np.sum(expect(lik, T) * (S - T))

    wide = widened(lik, S)[0]
    assert evidence.sum() == pytest.approx(bound_at(wide), rel=1e-9)
    second = slice(2, None, 3) if isinstance(lik, GaussianDiagonal) else [4, 6, 9]  # squares
    for _ in range(20):
        other = wide.copy()
        other[second] += rng.exponential(0.3, size=other[second].shape)
        assert bound_at(other) < evidence.sum()


def test_the_bound_never_falls(lik, sample, coarse, rng):
    X, _ = sample
    block, prior, weights = Block(lik, X, ("a", "b", "c")), FiniteDirichlet(1.5, 4), rng.uniform(0.2, 3.0, 60)
    start = vb.init([block], prior, label_statistics([block], weights, rng.integers(4, size=60), 4))
    step = partial(vb.step, blocks=[block], weights=weights)
    run = iterate(step, start, max_iter=40, tol=0.0, weight=weights.sum(), debug=True)
    assert run.objectives[-1] > run.objectives[0]
    assert precisions(lik, vb.parameters(run.state).thetas[0]).max() == pytest.approx(1 / coarse)


def test_point_masses_of_any_weight(lik):
    """A single row that stands for ever more objects: what it adds an object comes to the density at the mode of
    the narrowest Gaussian that there is.
    """
    X, most = np.array([[0.3, -1.7, 2.1]]), 1.5 * np.log(1 / gaussian.RESOLUTION / (2 * np.pi))
    for weight, atol in ((1e14, 1e-3), (1e16, 1e-4)):
        S = statistics(lik, X, np.full((1, 1), weight))
        assert vb.evidence(lik, S).sum() / weight == pytest.approx(most, abs=atol)


@pytest.mark.parametrize("h", [0.5, 1.0, 7.5, 15.0])
def test_log_gamma_ratio(h):
    """Against the integral of its derivative, which loses no digits."""
    nodes, weights = np.polynomial.legendre.leggauss(20)
    for x in (20.0, 0.99e6, 1e6, 1e9, 1e14):
        integral = 0.5 * h * weights @ digamma(x + 0.5 * h * (nodes + 1))
        assert log_gamma_ratio(x, h) == pytest.approx(integral, rel=1e-9)
