"""Background: one broad distribution for rows that belong to no cluster (outliers).

The background of a block is a cluster without rows: a family with fixed hyper-parameters and fixed statistics, whose
predictive is the density of a row. So it needs no formulas of its own, and treats missing values and hidden
coordinates as its family does.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from partita.families.bernoulli import Bernoulli
from partita.families.categorical import Categorical
from partita.families.contract import cache_start, n_columns, stats_start
from partita.families.data import n_rows
from partita.families.exponential import Exponential
from partita.families.gaussian import GaussianDiagonal
from partita.families.gaussian_full import GaussianFull
from partita.families.multinomial import Multinomial
from partita.families.ordinal import Ordinal
from partita.families.poisson import Poisson
from partita.families.rows import refresh_clusters, scatter_rows, score_rows
from partita.families.von_mises_fisher import MIN_CONCENTRATION, VonMisesFisher

FREEDOM = 4.0  # degrees of freedom of the Student distribution of a real column
# the scale of that distribution, in halves of the range of the column: the density is nearly flat inside the range
HALF_RANGES = 0.5
MANY = 1000.0  # degrees of freedom with which Student's distribution is nearly normal


class Background(NamedTuple):
    """A family, and the statistics [statistic, 1] of its predictive."""

    family: Any
    S: np.ndarray


@singledispatch
def background(lik: Any, data: Any, weights: np.ndarray) -> Background:
    """Return the background of a block whose family has default hyper-parameters; derived: its prior predictive.

    Real columns have a Student distribution with four degrees of freedom, centered in the middle of their range, with
    a quarter of the range as scale (vectors have a multivariate one without correlation). It is nearly flat where there
    are data, so that no broad cluster describes scattered rows much better. Codes (ordinal ones too) have the
    frequencies of their levels in the whole column, counts a geometric distribution with the rate of the column,
    durations a Lomax distribution whose median is the mean of the column, count vectors a Dirichlet-multinomial
    around the frequencies of the coordinates, and directions are uniform.

    Examples
    --------
    >>> law = background(Bernoulli.default(1), np.array([[1], [1], [1], [0]], np.int8), np.ones(4))
    >>> np.exp(log_background(law, np.array([[1], [0], [-1]], np.int8)))
    array([0.7, 0.3, 1. ])
    """
    return Background(lik, _no_statistics(lik))


@background.register(Bernoulli)
@background.register(Categorical)
def _(lik, data, weights):
    return Background(lik, _all_statistics(lik, data, weights))


@background.register(GaussianDiagonal)
def _(lik, data, weights):
    middle, width = _range(data, weights)
    a, k = 0.5 * FREEDOM, 1.0
    law = GaussianDiagonal(
        middle, np.full_like(middle, k), np.full_like(middle, a), a * width**2 * k / (k + 1.0)
    )
    return Background(law, _no_statistics(law))


@background.register(GaussianFull)
def _(lik, data, weights):
    middle, width = _range(data, weights)
    p, kappa = len(middle), 1.0
    Psi = np.diag(FREEDOM * width**2 * kappa / (kappa + 1.0))
    law = GaussianFull.of(middle, kappa, FREEDOM + p - 1.0, Psi)
    return Background(law, _no_statistics(law))


@background.register(Ordinal)
def _(lik, data, weights):
    """The cuts are quantiles of the standard normal law, so the levels have their shares in the column."""
    one = np.ones_like(lik.m)
    law = lik._replace(m=0.0 * one, k=one, a=0.5 * MANY * one, b=0.25 * MANY * one)
    return Background(law, _no_statistics(law))


def _range(data: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the middle of the range of each column, and the scale of its Student distribution."""
    seen = data[weights > 0]
    low = np.where(np.isnan(seen), np.inf, seen).min(axis=0)
    high = np.where(np.isnan(seen), -np.inf, seen).max(axis=0)
    varies = high > low
    half = np.where(varies, 0.5 * (high - low), 1.0)
    return np.where(varies, 0.5 * (low + high), np.where(np.isfinite(low), low, 0.0)), HALF_RANGES * half


@background.register(Poisson)
@background.register(Exponential)
def _(lik, data, weights):
    law = type(lik)(np.ones_like(lik.a), lik.b / lik.a)
    return Background(law, _no_statistics(law))


@background.register(Multinomial)
def _(lik, data, weights):
    counts = lik.alpha + _all_statistics(lik, data, weights)[2:, 0]
    law = Multinomial.of(lik.total * counts / counts.sum())
    return Background(law, _no_statistics(law))


@background.register(VonMisesFisher)
def _(lik, data, weights):
    """All directions are about equally probable."""
    return Background(VonMisesFisher.of(lik.mean, MIN_CONCENTRATION, MIN_CONCENTRATION), _no_statistics(lik))


def _no_statistics(lik: Any) -> np.ndarray:
    return np.zeros((int(stats_start(lik, n_columns(lik))), 1))


def _all_statistics(lik: Any, data: Any, weights: np.ndarray) -> np.ndarray:
    """Return the statistics of all rows together; hidden counts of a vector add nothing."""
    S = _no_statistics(lik)
    theta = np.full_like(S, -np.inf)
    scatter_rows(lik, data, np.arange(len(weights)), theta, weights[:, None].astype(float), S)
    return S


def log_background(law: Background, data: Any, rows: np.ndarray | None = None) -> np.ndarray:
    """Return the log density of each row, or of the given rows.

    Examples
    --------
    >>> X = np.array([[-2.0], [0.5], [2.0]])
    >>> law = background(GaussianDiagonal.default(1), X, np.ones(3))
    >>> np.exp(log_background(law, np.array([[0.0], [2.0], [np.nan]]))).round(4)
    array([0.375 , 0.0663, 1.    ])
    """
    rows = np.arange(n_rows(data)) if rows is None else rows
    C, L = np.zeros((int(cache_start(law.family, n_columns(law.family))), 1)), np.zeros((len(rows), 1))
    refresh_clusters(law.family, law.S, C, 1)
    score_rows(law.family, data, rows, C, L)
    return L[:, 0]
