"""Compiled and interpreted generics give the same numbers."""

import numpy as np
import pytest

from partita.dispatch import interpreted, kernel, lacks
from partita.partitions import PRIORS, bind, examples, log_eppf, log_labeled, log_mass, specify

CASES = [pytest.param(examples(type(factory()))[-1], id=name) for name, factory in PRIORS.items()]


@kernel
def seat_twin(prior, n, K, out):
    log_mass(prior, n, K, out)


@kernel
def eppf_twin(prior, n, K):
    return log_eppf(prior, n, K)


@kernel
def labeled_twin(prior, n):
    return log_labeled(prior, n)


@pytest.mark.parametrize("case", CASES)
def test_compiled_twins(case):
    K = getattr(case, "n_components", 3)
    n = np.array([[3.0, 9.0], [1.0, 9.0], [2.0, 9.0], [5.0, 9.0]])[:K, 0]  # a strided view
    compiled, plain = np.zeros((K + 1, 2)), np.zeros((K + 1, 2))
    seat_twin(case, n, K, compiled[:, 1])
    with interpreted():
        seat_twin(case, n, K, plain[:, 1])
    np.testing.assert_allclose(compiled, plain, rtol=1e-13)
    if not lacks(type(case), log_eppf):
        assert eppf_twin(case, n, K) == pytest.approx(log_eppf(case, n, K), rel=1e-13)
    if not lacks(type(case), log_labeled):
        assert labeled_twin(case, n) == pytest.approx(log_labeled(case, n), rel=1e-13)


def test_compiled_mixture_of_finite_reads_its_table():
    prior = specify("mfm", gamma=0.8)
    n, out, table = np.array([4.0, 2.0]), np.empty(3), np.empty(3)
    seat_twin(prior, n, 2, out)
    seat_twin(bind(prior, 7), n, 2, table)
    np.testing.assert_allclose(out, table, rtol=1e-12)
    wrong = bind(prior, 7)
    wrong.log_V[:] = np.arange(len(wrong.log_V))
    seat_twin(wrong, n, 2, table)
    assert table[2] == pytest.approx(np.log(0.8) + 1.0)
