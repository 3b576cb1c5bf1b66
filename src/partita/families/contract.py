"""What a family is: the likelihood of one (cluster, column) cell, and nothing else.

A family is a NamedTuple of hyper-parameters. Statistics ``S`` and natural parameters ``theta`` share one layout,
``[statistic, cluster]`` with the cluster axis last, so that ``log p(x | theta_k) = <theta[:, k], t(x)>``. The
statistics of column ``d`` are the rows ``stats_start(lik, d)`` to ``stats_start(lik, d + 1)``; a family whose
datum is a vector (full covariance, count vector) has one column.

Below: first the *generics*, written for one datum ``x`` and one column, compiled into the engines; then the
*array functions*, which run in numpy once an iteration. What can be derived from the rest is derived here, and
a family overrides it only for speed.

A missing datum (NaN, code -1) adds no statistic and no score: each family sees to that itself. The hidden
coordinates of a partly seen vector enter EM and VB by their conditional moments, inside ``project`` (which
integrates them out) and ``scatter`` (which adds their expected statistics).

A family without ``log_marginal`` is *not conjugate*: only the sampler with auxiliary clusters takes it. Then ``theta``
holds its parameters on scales without bounds (the log of a width, not the width), in the same layout;
``project`` adds the log density itself, ``log_prior`` is the density of these very numbers, ``draw(lik, S, rng)`` draws
them from the prior (``S`` says for how many clusters, no more), and ``summarize`` is given ``theta`` for ``S``.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from partita.dispatch import generic

# ---- the layout --------------------------------------------------------------------------------------------


@generic
def n_columns(lik):
    """Number of columns of the block."""


@generic
def stats_start(lik, d):
    """First row of the statistics of column ``d`` (``d = n_columns`` gives the total)."""


@generic(derived=True)
def cache_start(lik, d):
    """First row of the predictive cache of column ``d``; derived: the cache is a copy of the statistics."""
    return stats_start(lik, d)


@generic(derived=True)
def datum(lik, data, i, d):
    """The datum of row ``i`` in column ``d``."""
    return data[i, d]


# ---- one cell ----------------------------------------------------------------------------------------------


@generic
def observe(lik, d, s, x, w):
    """``s += w t(x)``: add ``w`` copies of a datum to a cell (``w = -1`` removes one)."""


@generic
def log_marginal(lik, d, s):
    """Log probability of all the data of a cell, its parameter integrated out."""


# ---- the predictive cache, cluster axis last: what collapsed engines read ------------------------------------


@generic(derived=True)
def refresh(lik, d, s, c, k):
    """Recompute column ``k`` of the predictive cache ``c`` from the statistics ``s``."""
    for j in range(s.shape[0]):
        c[j, k] = s[j]


@generic(derived=True)
def touch(lik, d, s, c, k, x):
    """The part of ``refresh`` that observing (or removing) ``x`` has made stale."""
    refresh(lik, d, s, c, k)


@generic(derived=True)
def ready(lik, d, s, c, x):
    """Make cluster 0 of a scratch cache ready to score ``x`` and nothing else."""
    refresh(lik, d, s, c, 0)


@generic(derived=True)
def score(lik, d, c, x, K, out):
    """``out[:K] += log p(x | data of cluster k)``; what stands past K in ``out`` may change.

    Derived: the log marginal with x minus that without.
    """
    for k in range(K):
        s = c[:, k].copy()
        out[k] -= log_marginal(lik, d, s)
        observe(lik, d, s, x, 1.0)
        out[k] += log_marginal(lik, d, s)


@generic(derived=True)
def score_own(lik, d, s, c, k, x, acc):
    """Log predictive of x in its own cluster k, x taken out, added to ``log(acc[0] / acc[1]) + acc[2]``.

    Most objects stay where they are; this lets a sweep ask what a cluster would say of an object without changing
    the cluster. A family whose predictive is a ratio multiplies its two parts in, and the engine takes one log
    for all columns; any other adds its log to ``acc[2]``.
    """
    scratch, out = np.empty((c.shape[0], 1), c.dtype), np.zeros(1, c.dtype)
    observe(lik, d, s, x, -1.0)
    ready(lik, d, s, scratch, x)
    score(lik, d, scratch, x, 1, out)
    observe(lik, d, s, x, 1.0)
    acc[2] += out[0]


# ---- natural parameters: what EM and VB read -----------------------------------------------------------------
# (a matrix and the number of its row, not a view of the row: making a view costs more than the work inside)


@generic(derived=True)
def project(lik, d, theta, x, L, j):
    """``L[j] += log of the integral of exp <theta_k, t(x)> over the hidden coordinates of x``."""
    t = np.zeros(theta.shape[0])
    observe(lik, d, t, x, 1.0)
    for e in range(t.shape[0]):
        if t[e] != 0.0:  # gathered, so that 0 x (-inf) never arises
            for k in range(L.shape[1]):
                L[j, k] += t[e] * theta[e, k]


@generic(derived=True)
def scatter(lik, d, S, theta, x, R, j):
    """``S[:, k] += R[j, k] E[t(x)]``; returns what the hidden coordinates add to the variational bound."""
    t = np.zeros(S.shape[0])
    observe(lik, d, t, x, 1.0)
    for e in range(t.shape[0]):
        if t[e] != 0.0:
            for k in range(R.shape[1]):
                S[e, k] += t[e] * R[j, k]
    return 0.0


# ---- second-order collapsed variational inference ------------------------------------------------------------


@generic
def spread_start(lik, d):
    """First row of the packed second moments of the statistics of column ``d``."""


@generic
def spread(lik, d, v, x, w):
    """``v += w t(x) t(x)'``, packed as the family likes: the variance that one uncertain label adds to a cell."""


@generic
def curvature(lik, d, s, v, x):
    """Half the trace of (Hessian of the log predictive of ``x`` in the statistics) times (their covariance)."""


# ---- array functions: S and theta are [statistic, cluster] --------------------------------------------------


@singledispatch
def expect(lik: Any, S: np.ndarray) -> np.ndarray:
    """Posterior mean of the natural parameters (the M step of VB)."""
    raise NotImplementedError(f"{type(lik).__name__} has no expect()")


@singledispatch
def widened(lik: Any, S: np.ndarray) -> tuple[np.ndarray, np.ndarray | float]:
    """Statistics that expect no more precision than doubles can carry, and what the variational bound then gains.

    The posterior is the best one among those whose expected precision is bounded, so that the bound
    ``log_marginal(widened S) + gain`` is a bound indeed, and rises with every step as it should. Derived: nothing
    to do. Families with a scale override it: under huge weights their variances would fall below the rounding
    error of their own sums.
    """
    return S, 0.0


@singledispatch
def mode(lik: Any, S: np.ndarray) -> np.ndarray:
    """Natural parameters at the posterior mode, in the family's usual parametrization (the M step of EM)."""
    raise NotImplementedError(f"{type(lik).__name__} has no mode()")


@singledispatch
def flat(lik: Any) -> Any:
    """The same family with the hyper-parameters that make ``mode`` the maximum likelihood."""
    raise NotImplementedError(f"{type(lik).__name__} has no flat()")


@singledispatch
def interior(lik: Any) -> Any:
    """The same family with hyper-parameters whose posterior mode never lies on the edge (MAP estimation).

    For pseudo-counts that means one more each: what was added to the mean is then added to the mode.
    """
    return lik


@singledispatch
def log_prior(lik: Any, theta: np.ndarray) -> np.ndarray:
    """Log prior density of each cluster's parameters, up to nothing; the penalty of MAP estimation."""
    raise NotImplementedError(f"{type(lik).__name__} has no log_prior()")


@singledispatch
def draw(lik: Any, S: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One draw of the natural parameters from their posterior."""
    raise NotImplementedError(f"{type(lik).__name__} has no draw()")


@singledispatch
def update(lik: Any, data: Any, z: np.ndarray, theta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """New parameters of every cluster, given its objects: an MCMC update that leaves their posterior invariant.

    Conjugate families have no use for it, and need not be asked: their ``draw`` is exact. For the others it is an
    option; without it the sampler takes random walks on ``theta``.
    """
    raise NotImplementedError(f"{type(lik).__name__} has no update()")


@singledispatch
def simulate(lik: Any, theta: np.ndarray, z: np.ndarray, rng: np.random.Generator) -> Any:
    """Complete data for objects with labels ``z``."""
    raise NotImplementedError(f"{type(lik).__name__} has no simulate()")


@singledispatch
def learn(lik: Any, S: np.ndarray, n: np.ndarray) -> Any:
    """A proposal of better hyper-parameters (empirical Bayes); the engine keeps it where the evidence rises."""
    return lik


@singledispatch
def summarize(lik: Any, S: np.ndarray) -> dict[str, np.ndarray]:
    """Posterior means of the parameters people know (probabilities, means, variances, rates), clusters first."""
    raise NotImplementedError(f"{type(lik).__name__} has no summarize()")


@singledispatch
def n_parameters(lik: Any) -> int:
    """Free parameters of one cluster, for information criteria."""
    raise NotImplementedError(f"{type(lik).__name__} has no n_parameters()")


def is_conjugate(lik: Any) -> bool:
    """Whether the parameters of a cell can be integrated out: whether there is a ``log_marginal``.

    Examples
    --------
    >>> from partita.families import GaussianDiagonal, Student
    >>> is_conjugate(GaussianDiagonal.default(1)), is_conjugate(Student.default(1))
    (True, False)
    """
    return any(cls in log_marginal.table for cls in type(lik).__mro__)


@singledispatch
def hidden_rows(lik: Any, data: Any) -> np.ndarray:
    """Rows whose vector shows only some of its coordinates (none, for families that read single cells)."""
    return np.zeros(0, np.int64)


def partly_seen(lik: Any, data: Any) -> bool:
    """Whether some vector shows only some of its coordinates."""
    return len(hidden_rows(lik, data)) > 0


@singledispatch
def impute(
    lik: Any,
    shown: Any,
    theta: np.ndarray,
    rows: np.ndarray,
    z: np.ndarray,
    rng: np.random.Generator,
    out: Any,
) -> None:
    """Draw the hidden coordinates of ``rows`` given the parameters of their clusters ``z``, into the container ``out``.

    ``out`` is a copy of ``shown``; only what is hidden there is written.
    """


# ---- hyper-parameters on a free scale, for samplers that walk over them ---------------------------------------


@singledispatch
def unconstrained(lik: Any) -> dict[str, np.ndarray]:
    """Each hyper-parameter as numbers without bounds; derived: the log of every array of positive numbers.

    Hyper-parameters of the prior, not numbers that the density of a datum depends on. A family that is not conjugate
    has to say which ones those are, or none is learned.
    """
    return {
        name: np.log(value)
        for name, value in lik._asdict().items()
        if isinstance(value, np.ndarray) and value.dtype == np.float64 and np.all(value > 0)
    }


@singledispatch
def constrained(lik: Any, name: str, value: np.ndarray) -> Any:
    """The family with one hyper-parameter set from the free scale."""
    return lik._replace(**{name: np.exp(value)})
