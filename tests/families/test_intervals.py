"""Cells that stand for an interval: probabilities, moments and draws, also where differences lose all digits."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import log_ndtr

from partita.families.intervals import (
    draw_interval,
    interval_moments,
    log_interval,
    log_student_interval,
)

pytestmark = pytest.mark.usefixtures("uncompiled")

INF = math.inf
# log(Phi(b) - Phi(a)) with 60 digits (mpmath)
EXACT = [
    (-1.0, 1.0, -0.381715146302126072),
    (3.0, INF, -6.60772622151034954),
    (-8.0, -5.0, -15.0649983961589425),
    (40.0, 41.0, -804.608442013753788),
    (100.0, 100.0 + 1e-9, -5021.64220078470382),
    (-1e-12, 1e-12, -27.8568124685732757),
    (-INF, -300.0, -45006.6227321186634),
]


@pytest.mark.parametrize(("a", "b", "right"), EXACT)
def test_probabilities_in_tails_and_narrow_intervals(a, b, right):
    assert log_interval(a, b) == pytest.approx(right, rel=1e-12)
    assert log_interval(-b, -a) == pytest.approx(right, rel=1e-12)


def test_probabilities_add_up(rng):
    for _ in range(200):
        ends = np.sort(rng.normal(size=4) * 10 ** rng.uniform(-6, 1.2)) + rng.normal() * 5
        parts = [log_interval(float(a), float(b)) for a, b in itertools.pairwise(ends)]
        whole = log_interval(float(ends[0]), float(ends[-1]))
        assert np.logaddexp.reduce(parts) == pytest.approx(whole, abs=1e-11 * (1 + abs(whole)))
        left = log_interval(-INF, float(ends[0]))
        assert left == pytest.approx(log_ndtr(ends[0]), rel=1e-12)


@pytest.mark.parametrize(
    ("a", "b"), [(-INF, 0.3), (0.2, INF), (-0.4, 1.9), (2.0, 2.1), (-9.0, -4.0), (6.0, INF)]
)
def test_moments_by_quadrature(a, b):
    lo, hi = max(a, -40.0), min(b, 40.0)
    far = min(abs(lo), abs(hi)) if lo * hi > 0 else 0.0

    def density(x):
        return math.exp(-0.5 * (x * x - far * far))

    peak = [min(max(0.0, lo), hi)]
    moments = [
        integrate.quad(lambda x, p=p: x**p * density(x), lo, hi, points=peak, limit=400, epsabs=0)[0]
        for p in range(3)
    ]
    mean, square = interval_moments(a, b)
    assert mean == pytest.approx(moments[1] / moments[0], rel=1e-8)
    assert square == pytest.approx(moments[2] / moments[0], rel=1e-8)


def test_moments_far_out_are_inside_the_interval():
    for a, b in [(50.0, 51.0), (-INF, -1e6), (1e5, 1e5 + 1.0), (7.0, 7.0 + 1e-10)]:
        mean, square = interval_moments(a, b)
        assert a <= mean <= b
        assert square == pytest.approx(mean**2, rel=1e-2)
    mean, square = interval_moments(-INF, INF)
    assert (mean, square) == (0.0, 1.0)


@pytest.mark.parametrize("freedom", [0.7, 3.0, 40.0, 3000.0, 2e5])
def test_student(freedom, rng):
    law = stats.t(freedom)
    for _ in range(50):
        a = float(rng.normal() * 4)
        b = a + float(rng.exponential())
        right = law.cdf(b) - law.cdf(a) if a < 0 else law.sf(a) - law.sf(b)
        assert math.exp(log_student_interval(a, b, freedom)) == pytest.approx(right, rel=1e-6, abs=1e-14)
        assert log_student_interval(-INF, a, freedom) == pytest.approx(law.logcdf(a), abs=1e-8)
        assert log_student_interval(a, INF, freedom) == pytest.approx(law.logsf(a), abs=1e-8)
    narrow = log_student_interval(1e3, 1e3 + 1e-6, freedom) - math.log(1e-6)
    assert narrow == pytest.approx(law.logpdf(1e3), rel=1e-6)
    assert log_student_interval(-INF, INF, freedom) == 0.0


@pytest.mark.parametrize(
    ("a", "b"),
    [(-INF, INF), (-0.5, 0.7), (-INF, -2.0), (4.0, 4.5), (35.0, INF), (-39.0, -38.0), (2.0, 2.0 + 1e-7)],
)
def test_draws_are_truncated_normal(a, b, rng):
    x = draw_interval(np.full(4000, a), np.full(4000, b), rng.random(4000))
    assert (x >= a).all() and (x <= b).all()
    whole = log_interval(a, b)

    def cdf(values):
        return np.array([math.exp(log_interval(a, float(v)) - whole) if v > a else 0.0 for v in values])

    assert stats.kstest(x, cdf).pvalue > 1e-6
