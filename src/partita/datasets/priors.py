"""Draws from nonparametric priors: sticks, restaurants and mixtures of Gaussians (Murphy, figures 25.3 and 25.5)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from partita.partitions import DirichletProcess, PitmanYor, checked, simulate
from partita.randomness import as_generator


class MixtureDraw(NamedTuple):
    """Rows drawn from an infinite mixture of Gaussians, in the order in which they arrived.

    Attributes
    ----------
    X : ndarray (n_samples, n_features)
        The rows; the first n of them are a draw of n rows.
    labels : ndarray of int (n_samples,)
        Their components, numbered in order of appearance.
    means : ndarray (K, n_features)
        Means of the components that occur.
    covariances : ndarray (K, n_features, n_features)
        Their covariances.
    """

    X: np.ndarray
    labels: np.ndarray
    means: np.ndarray
    covariances: np.ndarray


def sample_stick_breaking(
    concentration: float = 1.0,
    discount: float = 0.0,
    *,
    n_weights: int = 20,
    n_draws: int = 1,
    random_state: Any = None,
) -> np.ndarray:
    """Draw the first weights of a Dirichlet or Pitman-Yor process by breaking a stick.

    Piece k is a Beta(1 - discount, concentration + k discount) share of what the pieces before it have left.

    Parameters
    ----------
    concentration : float, default=1.0
        The larger, the more pieces of some size; above minus ``discount``.
    discount : float, default=0.0
        0 for the Dirichlet process; up to 1, the weights then fall as a power.
    n_weights : int, default=20
        How many pieces to break off. They sum to less than 1: the rest of the stick is not broken.
    n_draws : int, default=1
        How many sticks.
    random_state : int, RandomState, Generator, SeedSequence or None, default=None

    Returns
    -------
    ndarray (n_draws, n_weights)

    Examples
    --------
    >>> weights = sample_stick_breaking(2.0, n_weights=5, n_draws=3, random_state=0)
    >>> weights.shape, bool((weights.sum(axis=1) < 1).all())
    ((3, 5), True)
    """
    prior = _prior(concentration, discount)
    rng = as_generator(random_state)
    n_weights, n_draws = _at_least_one(n_weights=n_weights), _at_least_one(n_draws=n_draws)
    d = getattr(prior, "discount", 0.0)
    k = np.arange(1, n_weights + 1)
    shares = rng.beta(1.0 - d, concentration + k * d, size=(n_draws, n_weights))
    left = np.cumprod(1.0 - shares, axis=1)
    return shares * np.column_stack([np.ones(n_draws), left[:, :-1]])


def sample_restaurant(
    n_samples: int = 500,
    concentration: float = 1.0,
    discount: float = 0.0,
    *,
    n_draws: int = 1,
    random_state: Any = None,
) -> np.ndarray:
    """Draw partitions from the Chinese restaurant process, or with a discount from its Pitman-Yor extension.

    Parameters
    ----------
    n_samples : int, default=500
        Customers.
    concentration, discount : float
        A new customer sits at a new table in proportion to ``concentration + discount * tables``, at a table of n in
        proportion to ``n - discount``.
    n_draws : int, default=1
        How many restaurants.
    random_state : int, RandomState, Generator, SeedSequence or None, default=None

    Returns
    -------
    ndarray of int (n_draws, n_samples)
        Tables, numbered in order of appearance.

    Examples
    --------
    >>> sample_restaurant(8, random_state=0)
    array([[0, 0, 1, 2, 2, 2, 2, 0]])
    """
    prior = _prior(concentration, discount)
    rng = as_generator(random_state)
    n_samples, n_draws = _at_least_one(n_samples=n_samples), _at_least_one(n_draws=n_draws)
    return np.stack([simulate(prior, n_samples, rng) for _ in range(n_draws)])


def table_growth(labels: Any) -> np.ndarray:
    """The number of tables after each customer, for labels in order of arrival (draws x customers).

    Examples
    --------
    >>> table_growth([[0, 0, 1, 0, 2]])
    array([[1, 1, 2, 2, 3]])
    """
    labels = np.atleast_2d(np.asarray(labels))
    is_new = np.zeros(labels.shape, np.int64)
    for row, mark in zip(labels, is_new, strict=True):
        mark[np.unique(row, return_index=True)[1]] = 1
    return is_new.cumsum(axis=1)


def sample_dp_mixture(
    n_samples: int = 500,
    concentration: float = 1.0,
    discount: float = 0.0,
    *,
    n_features: int = 2,
    mean_strength: float = 0.02,
    degrees: float | None = None,
    scale: float = 1.0,
    random_state: Any = None,
) -> MixtureDraw:
    """Draw rows from a Dirichlet (or Pitman-Yor) process mixture of Gaussians.

    Rows are seated as in a restaurant; each table has a covariance from an inverse Wishart distribution with
    ``degrees`` degrees of freedom and the scale matrix ``scale * I``, and a mean that is normal around zero with
    ``1 / mean_strength`` times that covariance.

    Parameters
    ----------
    n_samples : int, default=500
    concentration, discount : float
        As in :func:`sample_restaurant`.
    n_features : int, default=2
    mean_strength : float, default=0.02
        The smaller, the farther apart the components.
    degrees : float, default=None
        Above ``n_features - 1``; the larger, the more alike the covariances. By default ``n_features + 3``.
    scale : float, default=1.0
    random_state : int, RandomState, Generator, SeedSequence or None, default=None

    Returns
    -------
    MixtureDraw

    Examples
    --------
    >>> draw = sample_dp_mixture(1000, random_state=3)
    >>> draw.X.shape, draw.means.shape == (draw.labels.max() + 1, 2)
    ((1000, 2), True)
    """
    rng = as_generator(random_state)
    D = _at_least_one(n_features=n_features)
    degrees = D + 3.0 if degrees is None else float(degrees)
    if not degrees > D - 1:
        raise ValueError(f"degrees is {degrees}: give more than n_features - 1 = {D - 1}")
    for name, value in (("mean_strength", mean_strength), ("scale", scale)):
        if not value > 0:
            raise ValueError(f"{name} is {value}: give a positive number")
    labels = sample_restaurant(n_samples, concentration, discount, random_state=rng)[0]
    K = int(labels.max()) + 1
    roots = _inverse_wishart_roots(K, D, degrees, scale, rng)
    means = np.einsum("kij,kj->ki", roots, rng.standard_normal((K, D))) / np.sqrt(mean_strength)
    noise = rng.standard_normal((len(labels), D))
    X = means[labels] + np.einsum("nij,nj->ni", roots[labels], noise)
    return MixtureDraw(X, labels, means, roots @ roots.transpose(0, 2, 1))


def _inverse_wishart_roots(
    K: int, D: int, degrees: float, scale: float, rng: np.random.Generator
) -> np.ndarray:
    """Square roots of covariances: with the Bartlett factor A of a Wishart matrix, inv(A A') = inv(A)' inv(A)."""
    A = np.tril(rng.standard_normal((K, D, D)), -1)
    A[:, np.arange(D), np.arange(D)] = np.sqrt(rng.chisquare(degrees - np.arange(D), size=(K, D)))
    return np.sqrt(scale) * np.linalg.inv(A).transpose(0, 2, 1)


def _prior(concentration: float, discount: float) -> Any:
    if discount == 0:
        return checked(DirichletProcess(float(concentration)))
    return checked(PitmanYor(float(concentration), float(discount)))


def _at_least_one(**number: Any) -> int:
    ((name, value),) = number.items()
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise ValueError(f"{name} is {value!r}: give a whole number, 1 or more")
    return int(value)
