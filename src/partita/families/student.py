"""Real columns with outliers: Student's t around the location of each cluster. Not conjugate."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from partita.families import contract as family
from partita.families.registry import Block, register_family


class Student(NamedTuple):
    """Student's t: ``(x - location) / exp(log_scale) ~ t(df)``; NaN is missing.

    Priors ``location ~ N(m, s^2)`` and ``log_scale ~ N(a, b^2)``; the degrees of freedom ``df`` are given. Parameters
    of a column: ``location, log_scale``.

    Good for compact groups with a few extreme values, which a Gaussian model would put into clusters of their own. Not
    for correlated columns, nor for data without extreme values: Gaussian chains are faster and mix better.

    Examples
    --------
    >>> Student.default(1)
    Student(m=array([0.]), s=array([2.]), a=array([-0.7]), b=array([1.]), df=array([4.]))
    """

    m: np.ndarray
    s: np.ndarray
    a: np.ndarray
    b: np.ndarray
    df: np.ndarray

    @classmethod
    def default(cls, n_columns: int, *, df: float = 4.0) -> Student:
        """Return priors for columns with mean 0 and deviation 1: clusters about half as wide, anywhere in the range."""
        return cls(*(np.full(n_columns, float(value)) for value in (0.0, 2.0, -0.7, 1.0, df)))


@family.n_columns.register(Student)
def _(lik):
    return lik.m.shape[0]


@family.stats_start.register(Student)
def _(lik, d):
    return 2 * d


@family.project.register(Student)
def _(lik, d, theta, x, L, j):
    if not math.isnan(x):
        df = lik.df[d]
        constant = math.lgamma(0.5 * df + 0.5) - math.lgamma(0.5 * df) - 0.5 * math.log(df * math.pi)
        for k in range(L.shape[1]):
            u = (x - theta[0, k]) * math.exp(-theta[1, k])
            L[j, k] += constant - theta[1, k] - 0.5 * (df + 1.0) * math.log1p(u * u / df)


def log_normal(x, mean, deviation):
    """Log density of the normal distribution."""
    return -0.5 * ((x - mean) / deviation) ** 2 - np.log(deviation) - 0.5 * math.log(2 * math.pi)


@family.log_prior.register(Student)
def _(lik, theta):
    m, s, a, b, _ = (value[:, None] for value in lik)
    return (log_normal(theta[0::2], m, s) + log_normal(theta[1::2], a, b)).sum(axis=0)


@family.draw.register(Student)
def _(lik, S, rng):
    mean = np.stack([lik.m, lik.a], axis=1).reshape(-1, 1)
    deviation = np.stack([lik.s, lik.b], axis=1).reshape(-1, 1)
    return mean + deviation * rng.standard_normal(S.shape)


@family.simulate.register(Student)
def _(lik, theta, z, rng):
    t = rng.standard_t(lik.df, size=(len(z), len(lik.df)))
    return theta[0::2, z].T + np.exp(theta[1::2, z].T) * t


@family.summarize.register(Student)
def _(lik, theta):
    """The variance of the t distribution if it exists (df > 2), otherwise the square of its scale."""
    inflation = np.where(lik.df > 2, lik.df / np.maximum(lik.df - 2, 1e-12), 1.0)
    return {"means": theta[0::2].T, "variances": np.exp(2 * theta[1::2].T) * inflation}


@family.n_parameters.register(Student)
def _(lik):
    return 2 * len(lik.m)


@family.unconstrained.register(Student)
def _(lik):
    return {"m": lik.m, "s": np.log(lik.s), "a": lik.a, "b": np.log(lik.b)}


@family.constrained.register(Student)
def _(lik, name, value):
    return lik._replace(**{name: value if name in ("m", "a") else np.exp(value)})


def block(X, columns, weights, *, df=4.0, **_) -> Block:
    """Set the priors from the quartiles of each column, which outliers do not affect."""
    lik = Student.default(X.shape[1], df=df)
    for d, x in enumerate(X.T):
        x = x[~np.isnan(x) & (weights > 0)]
        if len(x):
            low, middle, high = np.quantile(x, [0.25, 0.5, 0.75])
            bulk = (high - low) / 1.349 or x.std() or 1.0  # 1.349: the middle half of a standard normal
            lik.m[d], lik.s[d], lik.a[d] = middle, 2 * bulk, math.log(0.5 * bulk)
    return Block(lik, X, tuple(columns))


def examples(rng):
    """Two columns with different priors."""
    lik = Student(*np.array([[0.3, -1.0], [1.5, 2.0], [-0.2, 0.4], [0.6, 0.5], [4.0, 7.0]]))
    return [(lik, rng.standard_t(4.0, (8, 2)) * [1.0, 2.0])]


register_family("student", Student, kind="real", block=block, examples=examples)
