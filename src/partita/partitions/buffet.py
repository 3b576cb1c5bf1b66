"""The two-parameter Indian buffet process: a prior for overlapping groups of features."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import betaln, gammaln

from partita.partitions import contract
from partita.partitions.learning import UNIFORM, UNIT_GAMMA, check_positive, sample_positive
from partita.partitions.registry import register_examples


class IndianBuffet(NamedTuple):
    """Two-parameter Indian buffet process over binary matrices; rows are features (customers), columns views (dishes).

    ``alpha`` is the expected number of dishes of one customer. The larger ``beta``, the fewer dishes are shared: the
    expected number of dishes of D customers is ``alpha * sum_i beta / (beta + i - 1)``. beta = 1 is the one-parameter
    process.

    Good for: an unknown number of overlapping groups, where features may belong to no group. Not for: disjoint groups
    (use a partition prior), nor if every feature certainly belongs to a group.

    References
    ----------
    Ghahramani, Griffiths and Sollich (2007), Bayesian nonparametric latent feature models, Bayesian
    Statistics 8.

    Examples
    --------
    >>> from partita.partitions import IndianBuffet, simulate
    >>> simulate(IndianBuffet(2.0, 1.0), 4, np.random.default_rng(0)).shape
    (4, 7)
    """

    alpha: float = 1.0
    beta: float = 1.0


@contract.checked.register(IndianBuffet)
def _(prior):
    check_positive(alpha=prior.alpha, beta=prior.beta)
    return IndianBuffet(float(prior.alpha), float(prior.beta))


def _sharing(beta: float, D: int) -> float:
    """Return the expected number of dishes per unit of alpha."""
    return float((beta / (beta + np.arange(D))).sum())


def log_probability(prior: IndianBuffet, Z: np.ndarray) -> float:
    """Return the log probability of a binary matrix up to the order of its columns (its left-ordered class).

    Equal columns enter by the factor ``1 / prod_h K_h!`` over the distinct columns h. Empty columns are ignored.

    Examples
    --------
    >>> round(log_probability(IndianBuffet(1.0, 1.0), np.zeros((2, 0))), 6)  # no customer takes a dish
    -1.5
    """
    Z = np.asarray(Z)
    if Z.ndim != 2 or not np.isin(Z, (0, 1)).all():
        raise ValueError("Z must be a matrix of zeros and ones, features x views")
    taken = Z[:, Z.any(axis=0)]
    duplicates = np.unique(taken, axis=1, return_counts=True)[1] if taken.size else np.zeros(0)
    return _log_dishes(prior, taken.sum(axis=0), len(Z)) - float(gammaln(duplicates + 1.0).sum())


def _log_dishes(prior: IndianBuffet, m: np.ndarray, D: int) -> float:
    """Return the part of the log probability that depends on the parameters; m counts the customers of each dish."""
    log_each = np.log(prior.alpha * prior.beta) + betaln(m, D - m + prior.beta)
    return float(log_each.sum() - prior.alpha * _sharing(prior.beta, D))


def left_ordered(Z: np.ndarray) -> np.ndarray:
    """Sort the columns as binary numbers (first row most significant), largest first, and drop empty columns.

    Examples
    --------
    >>> left_ordered(np.array([[0, 1, 0], [1, 0, 0]]))
    array([[1, 0],
           [0, 1]])
    """
    Z = np.asarray(Z)
    Z = Z[:, Z.any(axis=0)]
    return Z[:, np.lexsort(Z[::-1])[::-1]]


def new_dish_rate(prior: IndianBuffet, D: int) -> float:
    """Return the Poisson rate of the dishes that only one given customer of D takes, given the others.

    Examples
    --------
    >>> new_dish_rate(IndianBuffet(2.0, 1.0), 4)
    0.5
    """
    return prior.alpha * prior.beta / (prior.beta + D - 1.0)


def log_odds(prior: IndianBuffet, m_minus: np.ndarray, D: int) -> np.ndarray:
    """Return the log odds that a customer takes a dish that ``m_minus`` of the D - 1 other customers take.

    The probability is ``m_minus / (beta + D - 1)``. For a dish that no other customer takes the log odds are ``-inf``;
    such dishes are described by ``new_dish_rate``.

    Examples
    --------
    >>> np.exp(log_odds(IndianBuffet(1.0, 1.0), np.array([0.0, 1.0, 3.0]), 4)).round(4)
    array([0.    , 0.3333, 3.    ])
    """
    m = np.asarray(m_minus, dtype=float)
    with np.errstate(divide="ignore"):
        return np.log(m) - np.log(prior.beta + D - 1.0 - m)


@contract.simulate.register(IndianBuffet)
def _(prior, N, rng):
    """Columns are in the order in which the dishes were first taken."""
    rows: list[np.ndarray] = []
    m = np.zeros(0)
    for i in range(N):
        taken = rng.random(len(m)) * (prior.beta + i) < m
        n_new = rng.poisson(prior.alpha * prior.beta / (prior.beta + i))
        rows.append(np.concatenate([taken, np.ones(n_new, dtype=bool)]))
        m = np.concatenate([m + taken, np.ones(n_new)])
    Z = np.zeros((N, len(m)), dtype=np.int8)
    for i, row in enumerate(rows):
        Z[i, : len(row)] = row
    return Z


@contract.sample_hyper.register(IndianBuffet)
def _(prior, n, rng, hyperprior=UNIT_GAMMA, discount_hyperprior=UNIFORM):
    """Conjugate gamma update of alpha, slice update of beta; n is the binary matrix."""
    D, m = len(n), n.sum(axis=0)
    m = m[m > 0]
    rate = hyperprior.rate + _sharing(prior.beta, D)
    alpha = max(float(rng.gamma(hyperprior.shape + len(m)) / rate), 1e-300)
    beta = sample_positive(lambda x: _log_dishes(IndianBuffet(alpha, x), m, D), prior.beta, rng, hyperprior)
    return IndianBuffet(alpha, beta)


register_examples(IndianBuffet(1.3, 1.0), IndianBuffet(0.8, 2.5))
