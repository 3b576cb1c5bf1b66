"""The mixture of finite mixtures: its coefficients V, in exact rational arithmetic and by their recursion."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest

from partita.partitions import bind, expected_n_clusters, log_eppf, log_mass, n_clusters_prior, specify
from partita.partitions.mfm import log_component_sum, tabulate_log_V


def exact_V(p, gamma, N, t):
    """Sum over m of p(m) m(m-1)...(m-t+1) / (gamma m)(gamma m + 1)...(gamma m + N - 1), in fractions."""
    total = Fraction(0)
    for m, weight in enumerate(p, start=1):
        term = weight
        for i in range(t):
            term *= m - i
        for i in range(N):
            term /= gamma * m + i
        total += term
    return total


@pytest.mark.parametrize("gamma", [Fraction(1), Fraction(1, 4), Fraction(5, 2)])
@pytest.mark.parametrize("N", [1, 7, 200])
def test_V_against_fractions(gamma, N):
    weights = [Fraction(9, 10) ** m for m in range(40)]
    p = [w / sum(weights) for w in weights]
    prior = specify("mfm", gamma=float(gamma), rate=0.1, max_components=40)
    ts = [0, 1, 2, 5, 40, 41]
    exact = [exact_V(p, gamma, N, t) for t in ts]
    # fractions are too small for floats: their logarithm from numerator and denominator
    log_exact = [_log(v) for v in exact]
    close = {"rtol": 1e-12, "atol": 1e-14}  # one of them is log 1
    np.testing.assert_allclose(tabulate_log_V(prior, N, np.array(ts)), log_exact, **close)
    np.testing.assert_allclose([log_component_sum(prior, float(N), t) for t in ts], log_exact, **close)
    bound = bind(prior, N)
    assert [log_component_sum(bound, float(N), t) for t in ts] == list(bound.log_V[ts])


def _log(v):
    import math

    return math.log(v.numerator) - math.log(v.denominator) if v else -math.inf


def test_V_recursion():
    """V_n(t) = (n + gamma t) V_{n+1}(t) + gamma V_{n+1}(t+1)."""
    for gamma in (0.3, 1.0, 2.0):
        prior = specify("mfm", gamma=gamma)
        t = np.arange(1, 30)
        for N in (30, 1000):
            here, after = tabulate_log_V(prior, N, t), tabulate_log_V(prior, N + 1, np.append(t, 30))
            right = np.logaddexp(np.log(N + gamma * t) + after[:-1], np.log(gamma) + after[1:])
            np.testing.assert_allclose(here, right, rtol=1e-11)


def test_seats_and_partitions_do_not_depend_on_binding():
    prior = specify("mfm", gamma=0.7, components="poisson", rate=3.0, max_components=60)
    n = np.array([4.0, 1.0, 2.0])
    seats = []
    for p in (prior, bind(prior, 8), bind(prior, 7), bind(prior, 1000)):
        out = np.empty(4)
        log_mass(p, n, 3, out)
        seats.append([*out, log_eppf(p, n, 3)])
    np.testing.assert_allclose(seats, [seats[0]] * 4, rtol=1e-12)


def test_number_of_clusters_is_that_of_components_in_the_limit():
    prior = specify("mfm", gamma=1.0, components=[0.2, 0.5, 0.0, 0.3])
    np.testing.assert_allclose(n_clusters_prior(prior, 20_000)[1:], [0.2, 0.5, 0.0, 0.3], atol=2e-3)
    geometric = specify("mfm", rate=0.1)
    assert expected_n_clusters(geometric, 10**9) == pytest.approx(10.0, rel=1e-3)


def test_number_of_clusters_of_a_uniform_composition():
    """With gamma = 1 all compositions are equally likely: C(m, k) C(N-1, k-1) of C(N+m-1, N) have K = k."""
    N, m = 9, 4
    prior = specify("mfm", gamma=1.0, components=[0.0] * (m - 1) + [1.0])
    expected = [comb(m, k) * comb(N - 1, k - 1) / comb(N + m - 1, N) if k else 0.0 for k in range(m + 1)]
    np.testing.assert_allclose(n_clusters_prior(prior, N), expected, atol=1e-13)


def test_no_seat_beyond_the_last_component():
    prior = specify("mfm", components=[0.5, 0.5])
    out = np.empty(3)
    log_mass(prior, np.array([2.0, 1.0]), 2, out)
    assert np.isneginf(out[2])
    assert np.isneginf(log_eppf(prior, np.ones(3), 3))
