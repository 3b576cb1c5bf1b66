"""The contract of a family: the likelihood of one column in one cluster.

A family is a NamedTuple of hyper-parameters. Statistics ``S`` and natural parameters ``theta`` share one layout,
``[statistic, cluster]`` with the cluster axis last, so that ``log p(x | theta_k) = <theta[:, k], t(x)>``. The
statistics of column ``d`` are the rows ``stats_start(lik, d)`` to ``stats_start(lik, d + 1)``. A family whose datum is
a vector (full covariance, count vector) has one column. The statistics of one column in one cluster are called a
*cell*.

The first half of this module holds the *generics*, written for one datum ``x`` and one column and compiled into the
engines; the second half holds the *array functions*, which run in numpy once per iteration. Functions that follow from
others have a derived implementation here, which a family overrides only for speed.

A missing datum (NaN, code -1) adds no statistics and no score; each family implements this itself. The hidden
coordinates of a partly observed vector enter EM and VB by their conditional moments: ``project`` integrates them out,
and ``scatter`` adds their expected statistics.

A family without ``log_marginal`` is *not conjugate*; only the sampler with auxiliary clusters takes it. Then ``theta``
holds its parameters on unbounded scales (the log of a width, not the width) in the same layout, ``project`` adds the
log density, ``log_prior`` is the density of the numbers in ``theta``, ``draw(lik, S, rng)`` draws them from the prior
(only the shape of ``S`` is used), and ``summarize`` receives ``theta`` in place of ``S``.
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
    """``s += w t(x)``: add a datum to a cell with weight ``w`` (``w = -1`` removes it)."""


@generic
def log_marginal(lik, d, s):
    """Log probability of all data of a cell, with its parameters integrated out."""


@generic(derived=True)
def fill_log_marginals(lik, S, out):
    """``out[d, k] = log marginal`` of column d in cluster k, for all columns and clusters."""
    for d in range(n_columns(lik)):
        s = S[stats_start(lik, d) : stats_start(lik, d + 1)]
        for k in range(S.shape[1]):
            out[d, k] = log_marginal(lik, d, s[:, k])


# ---- the predictive cache, cluster axis last: for collapsed engines ------------------------------------------


@generic(derived=True)
def refresh(lik, d, s, c, k):
    """Recompute column ``k`` of the predictive cache ``c`` from the statistics ``s``."""
    for j in range(s.shape[0]):
        c[j, k] = s[j]


@generic(derived=True)
def touch(lik, d, s, c, k, x):
    """Recompute the part of the cache that changes when ``x`` is added or removed."""
    refresh(lik, d, s, c, k)


@generic(derived=True)
def ready(lik, d, s, c, x):
    """Prepare cluster 0 of a scratch cache for scoring ``x``, and only ``x``."""
    refresh(lik, d, s, c, 0)


@generic(derived=True)
def score(lik, d, c, x, K, out):
    """``out[:K] += log p(x | data of cluster k)``; entries of ``out`` beyond K may change.

    Derived: the log marginal with x minus the log marginal without x.
    """
    for k in range(K):
        s = c[:, k].copy()
        out[k] -= log_marginal(lik, d, s)
        observe(lik, d, s, x, 1.0)
        out[k] += log_marginal(lik, d, s)


@generic(derived=True)
def score_own(lik, d, s, c, k, x, acc):
    """Add the log predictive of x in its own cluster k without x to ``log(acc[0] / acc[1]) + acc[2]``.

    Most objects keep their cluster in a sweep; this function scores an object in its cluster without changing the
    cluster. If the predictive is a ratio, the family multiplies ``acc[0]`` and ``acc[1]`` by its two parts, and the
    engine takes one log for all columns. Otherwise the family adds the log predictive to ``acc[2]``.
    """
    scratch, out = np.empty((c.shape[0], 1), c.dtype), np.zeros(1, c.dtype)
    observe(lik, d, s, x, -1.0)
    ready(lik, d, s, scratch, x)
    score(lik, d, scratch, x, 1, out)
    observe(lik, d, s, x, 1.0)
    acc[2] += out[0]


# ---- natural parameters: for EM and VB -----------------------------------------------------------------------
# (arguments are a matrix and a row number, not a view of the row: making the view costs more than the work inside)


@generic(derived=True)
def project(lik, d, theta, x, L, j):
    """``L[j] += log of the integral of exp <theta_k, t(x)>`` over the hidden coordinates of x."""
    t = np.zeros(theta.shape[0])
    observe(lik, d, t, x, 1.0)
    for e in range(t.shape[0]):
        if t[e] != 0.0:  # skip zeros, so that 0 times -inf does not occur
            for k in range(L.shape[1]):
                L[j, k] += t[e] * theta[e, k]


@generic(derived=True)
def scatter(lik, d, S, theta, x, R, j):
    """``S[:, k] += R[j, k] E[t(x)]``; return the term of the hidden coordinates in the variational bound."""
    t = np.zeros(S.shape[0])
    observe(lik, d, t, x, 1.0)
    for e in range(t.shape[0]):
        if t[e] != 0.0:
            for k in range(R.shape[1]):
                S[e, k] += t[e] * R[j, k]
    return 0.0


@generic(derived=True)
def scatter_column(lik, d, S, theta, data, rows, R):
    """``scatter`` of column ``d`` of all rows; families may take several rows at once. Returns the sum of its terms."""
    hidden = 0.0
    for j in range(rows.shape[0]):
        hidden += scatter(lik, d, S, theta, datum(lik, data, rows[j], d), R, j)
    return hidden


# ---- second-order collapsed variational inference ------------------------------------------------------------


@generic
def spread_start(lik, d):
    """First row of the packed second moments of the statistics of column ``d``."""


@generic
def spread(lik, d, v, x, w):
    """``v += w t(x) t(x)'``, packed as the family chooses: the variance that one uncertain label adds to a cell."""


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
    """Return statistics whose expected precision is limited, and the gain that corrects the variational bound.

    The posterior is the best one among those whose expected precision is bounded. Therefore
    ``log_marginal(widened S) + gain`` is still a lower bound, and increases in every step. Derived: no change. Families
    with a scale parameter override this function, because under huge weights their variances would fall below the
    rounding error of the sums of squares.
    """
    return S, 0.0


@singledispatch
def mode(lik: Any, S: np.ndarray) -> np.ndarray:
    """Natural parameters at the posterior mode, in the family's usual parametrization (the M step of EM)."""
    raise NotImplementedError(f"{type(lik).__name__} has no mode()")


@singledispatch
def flat(lik: Any) -> Any:
    """Return the family with the hyper-parameters for which ``mode`` is the maximum likelihood estimate."""
    raise NotImplementedError(f"{type(lik).__name__} has no flat()")


@singledispatch
def interior(lik: Any) -> Any:
    """Return the family with hyper-parameters whose posterior mode is never on the boundary (MAP estimation).

    Pseudo-counts are increased by one, so that the mode has the pseudo-counts that the posterior mean had.
    """
    return lik


@singledispatch
def log_prior(lik: Any, theta: np.ndarray) -> np.ndarray:
    """Log prior density of the parameters of each cluster, normalized; the penalty of MAP estimation."""
    raise NotImplementedError(f"{type(lik).__name__} has no log_prior()")


@singledispatch
def draw(lik: Any, S: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw natural parameters from their posterior."""
    raise NotImplementedError(f"{type(lik).__name__} has no draw()")


@singledispatch
def update(lik: Any, data: Any, z: np.ndarray, theta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Update the parameters of every cluster given its objects, by an MCMC step that leaves their posterior invariant.

    Conjugate families do not need it, because their ``draw`` is exact. For other families it is optional; without it
    the sampler uses random walks on ``theta``.
    """
    raise NotImplementedError(f"{type(lik).__name__} has no update()")


@singledispatch
def simulate(lik: Any, theta: np.ndarray, z: np.ndarray, rng: np.random.Generator) -> Any:
    """Simulate complete data for objects with labels ``z``."""
    raise NotImplementedError(f"{type(lik).__name__} has no simulate()")


@singledispatch
def learn(lik: Any, S: np.ndarray, n: np.ndarray) -> Any:
    """Propose better hyper-parameters (empirical Bayes); the engine accepts them if the evidence increases."""
    return lik


@singledispatch
def summarize(lik: Any, S: np.ndarray) -> dict[str, np.ndarray]:
    """Posterior means of the usual parameters (probabilities, means, variances, rates), cluster axis first."""
    raise NotImplementedError(f"{type(lik).__name__} has no summarize()")


@singledispatch
def n_parameters(lik: Any) -> int:
    """Number of free parameters of one cluster, for information criteria."""
    raise NotImplementedError(f"{type(lik).__name__} has no n_parameters()")


def is_conjugate(lik: Any) -> bool:
    """Whether the parameters can be integrated out, that is, whether the family has a ``log_marginal``.

    Examples
    --------
    >>> from partita.families import GaussianDiagonal, Student
    >>> is_conjugate(GaussianDiagonal.default(1)), is_conjugate(Student.default(1))
    (True, False)
    """
    return any(cls in log_marginal.table for cls in type(lik).__mro__)


@singledispatch
def faster_in_single(lik: Any) -> bool:
    """Whether sweeps over large tables are faster with predictive caches in single precision; derived: no."""
    return False


@singledispatch
def hidden_rows(lik: Any, data: Any) -> np.ndarray:
    """Rows whose vector is partly observed (none for families of single columns)."""
    return np.zeros(0, np.int64)


def partly_seen(lik: Any, data: Any) -> bool:
    """Whether some vector is partly observed."""
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

    ``out`` is a copy of ``shown``; only its hidden entries are written.
    """


# ---- hyper-parameters on unbounded scales, for samplers that update them -------------------------------------


@singledispatch
def unconstrained(lik: Any) -> dict[str, np.ndarray]:
    """Return each hyper-parameter on an unbounded scale; derived: the log of every array of positive numbers.

    These are hyper-parameters of the prior, not constants in the density of a datum. A family that is not conjugate
    must implement this function, or none of its hyper-parameters is learned.
    """
    return {
        name: np.log(value)
        for name, value in lik._asdict().items()
        if isinstance(value, np.ndarray) and value.dtype == np.float64 and np.all(value > 0)
    }


@singledispatch
def held(lik: Any) -> tuple[str, ...]:
    """Names of :func:`unconstrained` that chains leave at their defaults; derived: none."""
    return ()


@singledispatch
def breadth(lik: Any, name: str) -> float:
    """How many times as wide as usual the hyperprior of one of :func:`unconstrained` is; derived: 1."""
    return 1.0


@singledispatch
def sample_shape(lik: Any, S: np.ndarray, rng: np.random.Generator) -> Any:
    """Return the family with hyper-parameters drawn that have a Gibbs step of their own; derived: unchanged.

    ``S`` holds the statistics [statistic, cluster] of all cells.
    """
    return lik


@singledispatch
def constrained(lik: Any, name: str, value: np.ndarray) -> Any:
    """Return the family with one hyper-parameter set from its unbounded scale."""
    return lik._replace(**{name: np.exp(value)})
