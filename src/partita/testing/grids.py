"""Sums and integrals over all values of a datum, to check that densities sum to 1.

A *rule* consists of nodes and log weights. Integrals over the real line use ``x = center + scale sinh(u)`` and equal
steps in u, which suits both Student tails and narrow peaks; sums over counts are exact for small counts and become an
integral over the smooth tail (Euler-Maclaurin).
"""

from __future__ import annotations

import itertools
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from partita.families import (
    Bernoulli,
    Categorical,
    Counts,
    CountVectors,
    Exponential,
    GaussianDiagonal,
    GaussianFull,
    Levels,
    Multinomial,
    Ordinal,
    Poisson,
    VonMisesFisher,
)
from partita.families.ordinal import levels_of


class Rule(NamedTuple):
    """Nodes and log weights: ``integral of f`` is about ``sum of exp(log_weights) f(nodes)``."""

    nodes: Any
    log_weights: np.ndarray


def real_rule(center: float, scale: float, *, step: float = 0.05, reach: float = 14.0) -> Rule:
    """A rule for integrals over the real line.

    Examples
    --------
    >>> nodes, log_w = real_rule(1.0, 2.0)
    >>> bool(np.isclose(np.exp(log_w - 0.5 * nodes**2).sum(), np.sqrt(2 * np.pi)))
    True
    """
    u = np.arange(-round(reach / step), round(reach / step) + 1) * step
    return Rule(center + scale * np.sinh(u), np.log(scale * np.cosh(u) * step))


def positive_rule(scale: float, *, step: float = 0.05, reach: float = 40.0) -> Rule:
    """A rule for integrals over the positive numbers.

    Examples
    --------
    >>> nodes, log_w = positive_rule(2.0)
    >>> bool(np.isclose(np.exp(log_w - nodes).sum(), 1.0))
    True
    """
    u = np.arange(-round(reach / step), round(reach / step) + 1) * step
    return Rule(scale * np.exp(u), np.log(scale * step) + u)


def interval_rule(lo: float, hi: float, *, scale: float = 1.0, n_nodes: int = 28) -> Rule:
    """A rule for integrals over an interval of which one end may be infinite (Gauss-Legendre).

    Examples
    --------
    >>> nodes, log_w = interval_rule(0.0, np.inf)
    >>> bool(np.isclose(np.exp(log_w - 0.5 * nodes**2).sum(), np.sqrt(np.pi / 2)))
    True
    """
    t, w = np.polynomial.legendre.leggauss(n_nodes)
    if np.isfinite(lo) and np.isfinite(hi):
        return Rule(0.5 * (lo + hi) + 0.5 * (hi - lo) * t, np.log(0.5 * (hi - lo) * w))
    reach, log_w = scale * (1.0 + t) / (1.0 - t), np.log(2.0 * scale * w) - 2.0 * np.log1p(-t)
    return Rule(lo + reach if np.isfinite(lo) else hi - reach, log_w)


def count_rule(exact: int = 60, *, n_tail: int = 40, reach: float = 25.0) -> Rule:
    """A rule for sums over 0, 1, 2, ... of a function that is smooth beyond ``exact``.

    A tail that falls like ``x^-(1 + a)`` is cut off at a relative weight of ``exp(-a reach)``; a longer reach would
    lose the digits of log gamma functions instead.

    Examples
    --------
    >>> nodes, log_w = count_rule()
    >>> bool(np.isclose(np.exp(log_w) @ (1.0 / (1.0 + nodes) ** 2), np.pi**2 / 6, rtol=1e-6))
    True
    """
    u, w = np.polynomial.legendre.leggauss(n_tail)
    tail = (exact - 0.5) * np.exp(0.5 * reach * (u + 1.0))
    return Rule(
        np.concatenate([np.arange(exact), tail]),
        np.concatenate([np.zeros(exact), np.log(0.5 * reach * w * tail)]),
    )


def product_rule(rules: list[Rule]) -> Rule:
    """Nodes [node, coordinate] of the product of several rules.

    Examples
    --------
    >>> product_rule([Rule(np.arange(2.0), np.zeros(2))] * 2).nodes
    array([[0., 0.],
           [0., 1.],
           [1., 0.],
           [1., 1.]])
    """
    nodes = np.stack(np.meshgrid(*(rule.nodes for rule in rules), indexing="ij"), axis=-1)
    weights = np.meshgrid(*(rule.log_weights for rule in rules), indexing="ij")
    return Rule(nodes.reshape(-1, len(rules)), np.sum(weights, axis=0).ravel())


# ---- all values of a datum ---------------------------------------------------------------------


@singledispatch
def grid(lik: Any, d: int) -> Rule:
    """All values of a datum in column ``d``, as data whose other columns are missing, and their log weights.

    Register it for a new family, and :func:`partita.testing.check_family` integrates its densities.

    Examples
    --------
    >>> grid(Categorical.default([2, 3]), 0).nodes
    array([[ 0, -1],
           [ 1, -1]])
    """
    raise NotImplementedError(f"{type(lik).__name__} has no grid()")


def _in_column(values: np.ndarray, d: int, n_columns: int, missing: Any) -> np.ndarray:
    X = np.full((len(values), n_columns), missing)
    X[:, d] = values
    return X


@grid.register(Bernoulli)
def _(lik, d):
    return Rule(_in_column(np.arange(2), d, len(lik.a), -1), np.zeros(2))


@grid.register(Categorical)
def _(lik, d):
    V = int(lik.n_levels[d])
    return Rule(_in_column(np.arange(V), d, len(lik.alpha), -1), np.zeros(V))


@grid.register(Poisson)
def _(lik, d):
    """At an exposure of one; the predictive falls at least as fast as a geometric law."""
    top = int(200 + 60 / np.log1p(lik.b[d]))
    X = _in_column(np.arange(top, dtype=float), d, len(lik.a), np.nan)
    return Rule(Counts(X, np.ones(top)), np.zeros(top))


@grid.register(Exponential)
def _(lik, d):
    nodes, log_weights = positive_rule(lik.b[d] / lik.a[d])
    return Rule(_in_column(nodes, d, len(lik.a), np.nan), log_weights)


@grid.register(GaussianDiagonal)
def _(lik, d):
    nodes, log_weights = real_rule(lik.m[d], np.sqrt(lik.b[d] / lik.a[d]))
    return Rule(_in_column(nodes, d, len(lik.m), np.nan), log_weights)


@grid.register(Ordinal)
def _(lik, d):
    """All latent variables, with their levels; the sums over levels alone are tested elsewhere."""
    nodes, log_weights = real_rule(lik.m[d], np.sqrt(lik.b[d] / lik.a[d]))
    values = _in_column(nodes, d, len(lik.m), np.nan)
    return Rule(Levels(levels_of(lik, values), values), log_weights)


@grid.register(GaussianFull)
def _(lik, d):
    p = len(lik.m)
    if p > 3:
        raise NotImplementedError(f"no grid of {p} dimensions")
    step, reach = {1: (0.05, 14.0), 2: (0.125, 10.0), 3: (0.25, 6.0)}[p]
    widths = np.sqrt(np.diag(lik.Psi) / lik.nu)
    return product_rule([real_rule(m, s, step=step, reach=reach) for m, s in zip(lik.m, widths, strict=True)])


@grid.register(VonMisesFisher)
def _(lik, d):
    """The circle by equal steps, the sphere by Gauss-Legendre nodes in one coordinate and equal steps around it."""
    p, n = len(lik.mean), 64
    if p > 3:
        raise NotImplementedError(f"no grid of the sphere in {p} dimensions")
    around = 2 * np.pi * (np.arange(n) + 0.5) / n
    circle = np.column_stack([np.cos(around), np.sin(around)])
    if p == 2:
        return Rule(circle, np.full(n, np.log(2 * np.pi / n)))
    height, w = np.polynomial.legendre.leggauss(n)
    rings = np.sqrt(1.0 - height**2)[:, None, None] * circle
    nodes = np.concatenate([rings, np.broadcast_to(height[:, None, None], (n, n, 1))], axis=2)
    return Rule(nodes.reshape(-1, 3), np.log(np.repeat(w, n) * 2 * np.pi / n))


@grid.register(Multinomial)
def _(lik, d, total: int = 20):
    """Every vector with this total (that of ``simulate``)."""
    V = len(lik.alpha)
    bars = np.array(list(itertools.combinations(range(total + V - 1), V - 1)))
    edges = np.column_stack([np.full(len(bars), -1), bars, np.full(len(bars), total + V - 1)])
    X = np.diff(edges, axis=1) - 1.0
    return Rule(CountVectors.from_dense(X), np.zeros(len(X)))


# ---- all values of the hidden part of a vector ---------------------------------------------------


@singledispatch
def completions(lik: Any, data: Any, i: int) -> Rule | None:
    """The completed data of a partly observed object and their log weights; None if nothing is hidden.

    Examples
    --------
    >>> completions(GaussianFull.default(2), np.array([[7.0, np.nan]]), 0).nodes[[100, 130]].round(2)
    array([[ 7.  , -2.24],
           [ 7.  ,  0.  ]])
    """
    return None


@completions.register(GaussianFull)
def _(lik, data, i):
    x = data[i]
    hidden = np.flatnonzero(np.isnan(x))
    if len(hidden) in (0, len(x)):
        return None
    widths = np.sqrt(np.diag(lik.Psi) / lik.nu)
    rule = product_rule([real_rule(lik.m[a], widths[a], step=0.1, reach=13.0) for a in hidden])
    X = np.tile(x, (len(rule.nodes), 1))
    X[:, hidden] = rule.nodes
    return Rule(X, rule.log_weights)


@completions.register(Ordinal)
def _(lik, data, i):
    """The latent variables inside the intervals of their levels."""
    hidden = np.flatnonzero((data.codes[i] >= 0) & np.isnan(data.latent[i]))
    if not len(hidden):
        return None
    at = lik.starts[hidden] + data.codes[i, hidden]
    ends = zip(lik.cuts[at], lik.cuts[at + 1], strict=True)
    rule = product_rule([interval_rule(float(lo), float(hi)) for lo, hi in ends])
    values = np.tile(data.latent[i], (len(rule.nodes), 1))
    values[:, hidden] = rule.nodes
    return Rule(Levels(np.tile(data.codes[i], (len(values), 1)), values), rule.log_weights)


@completions.register(Multinomial)
def _(lik, data, i):
    """The prior of the total is 1 / total; the constant makes a vector with nothing hidden weigh one."""
    span = slice(data.indptr[i], data.indptr[i + 1])
    indices, counts = data.indices[span], data.counts[span]
    hidden = np.isnan(counts)
    seen = counts[~hidden].sum()
    if not hidden.any() or seen == 0:
        return None
    rule = product_rule([count_rule()] * int(hidden.sum()))
    X = np.zeros((len(rule.nodes), len(lik.alpha)))
    X[:, indices[~hidden]] = counts[~hidden]
    X[:, indices[hidden]] = rule.nodes
    return Rule(CountVectors.from_dense(X), rule.log_weights + np.log(seen) - np.log(X.sum(axis=1)))
