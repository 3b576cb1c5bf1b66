"""The evidence of many categorical columns with one pseudo-count: each term is computed once, not once per column."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from partita.families import Categorical, categorical
from partita.families.contract import log_marginal
from partita.families.rows import add_statistics, log_marginals

pytestmark = pytest.mark.usefixtures("uncompiled")
N_COLUMNS, N_ROWS, K = 120, 40, 3


@pytest.fixture
def cells(rng):
    """Statistics of columns of two to five levels, and what log_marginal says of them one by one."""

    def make(**options):
        levels = rng.integers(2, 6, size=N_COLUMNS)
        lik = Categorical.default(levels, **options)
        codes = np.column_stack([rng.integers(-1, V, size=N_ROWS) for V in levels]).astype(np.int8)
        S = np.zeros((int(lik.offsets[-1]), K))
        add_statistics(lik, codes, rng.integers(K, size=N_ROWS), S)
        return lik, S

    return make


def one_by_one(lik, S):
    parts = zip(lik.offsets[:-1], lik.offsets[1:], strict=True)
    return np.array(
        [[log_marginal(lik, d, S[lo:hi, k]) for k in range(K)] for d, (lo, hi) in enumerate(parts)]
    )


def counted(monkeypatch, lik, S):
    """The evidence, and how many log gammas it took."""
    calls = []
    names = {name: getattr(math, name) for name in ("floor", "isnan", "log")}
    fake = SimpleNamespace(**names, lgamma=lambda x: calls.append(x) or math.lgamma(x))
    with monkeypatch.context() as patch:
        patch.setattr(categorical, "math", fake)
        return log_marginals(lik, S), len(calls)


@pytest.mark.parametrize("power", [1.0, 0.3], ids=["power 1", "power .3"])
def test_whole_counts_share_their_terms(cells, monkeypatch, power):
    lik, S = cells(alpha=0.7, power=power, tied=True)
    found, n_calls = counted(monkeypatch, lik, S)
    np.testing.assert_array_equal(found, one_by_one(lik, S))
    # one per column for the total pseudo-count, one per count, and one per number of levels and total
    assert n_calls <= N_COLUMNS + (N_ROWS + 1) * 5 + 1
    assert n_calls < N_COLUMNS * K * 5 / 4  # one by one it takes at least five per cell


def test_other_cells_are_evaluated_one_by_one(cells, monkeypatch):
    """Fractional counts, pseudo-counts that differ, and so few cells that tables would be larger."""
    lik, S = cells(tied=True)
    fractions = S + 0.25
    apart = lik._replace(alpha=np.linspace(0.2, 2.0, N_COLUMNS))
    few = Categorical.default([3])
    for family, values in (
        (lik, fractions),
        (apart, S),
        (few, np.array([[9.0] * K, [4.0] * K, [3.0] * K, [2.0] * K])),
    ):
        found, n_calls = counted(monkeypatch, family, values)
        np.testing.assert_array_equal(found, one_by_one(family, values))
        assert n_calls == K * sum(V + 3 for V in family.n_levels)
