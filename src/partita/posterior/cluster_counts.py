"""The number of clusters: P(K) and its prior, the smallest credible set, sensitivity to the concentration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partita import partitions
from partita.dispatch import lacks
from partita.labels.checks import row_weights
from partita.posterior.draws import canonical_draws

MIN_ESS = 100.0
MIN_READS_FOR_TABLES = 100


class ClusterCounts(NamedTuple):
    """P(K) after and before the data: entry j of both is for `n_clusters[j]` clusters; `prior` is NaN if not given."""

    n_clusters: NDArray[np.int64]
    posterior: NDArray[np.float64]
    prior: NDArray[np.float64]


class CredibleSet(NamedTuple):
    """Numbers of clusters, the most probable first, and their total mass."""

    n_clusters: tuple[int, ...]
    mass: float


class ConcentrationSensitivity(NamedTuple):
    """P(K) at other concentrations, by reweighting the draws.

    Row g of `posterior` is for `concentrations[g]`, its columns for `n_clusters`. Where the effective sample size of
    the weights is too small the row is NaN (refused): a new run at that concentration is needed.
    """

    concentrations: NDArray[np.float64]
    n_clusters: NDArray[np.int64]
    posterior: NDArray[np.float64]
    ess: NDArray[np.float64]
    refused: NDArray[np.bool_]
    sentence: str


def n_clusters_posterior(
    draws: ArrayLike, prior: Any = None, *, weights: ArrayLike | None = None
) -> ClusterCounts:
    """P(K | data) from the draws, and the prior P(K).

    If the two are alike, the data contain little information about K.

    Parameters
    ----------
    draws : array-like of int, shape (T, N)
        Label vectors from the posterior, one per row.
    prior : mapping from K to its probability, or partition prior, default=None
        The prior P(K), such as `n_clusters_prior_` of a fitted model, or a prior of `partita.partitions` at one
        concentration.
    weights : array-like of float, shape (T,), default=None
        Weight of each draw.

    Returns
    -------
    ClusterCounts
        For K from 1 to the largest that occurs in a draw or, with a prior, that has 0.1% of the prior mass.

    Examples
    --------
    >>> from partita.partitions import DirichletProcess
    >>> n_clusters_posterior([[0, 0, 1], [0, 0, 0], [0, 1, 0], [0, 1, 1]], DirichletProcess(1.0))
    ClusterCounts(n_clusters=array([1, 2, 3]),
                  posterior=array([0.25, 0.75, 0.  ]),
                  prior=array([0.33333333, 0.5       , 0.16666667]))
    """
    labels = canonical_draws(draws)
    K = labels.max(axis=1).astype(np.int64) + 1
    shares = row_weights(weights, len(K))
    after = np.bincount(K, weights=shares).astype(float)
    after /= after.sum()
    if prior is None:
        values = np.arange(1, len(after))
        return ClusterCounts(values, after[1:], np.full(len(values), np.nan))
    if isinstance(prior, Mapping):
        before = np.zeros(int(max(prior)) + 1)
        before[list(prior)] = list(prior.values())
    else:
        before = np.asarray(partitions.n_clusters_prior(prior, labels.shape[1]), dtype=float)
    largest = max(len(after) - 1, int(np.flatnonzero(before >= 1e-3).max(initial=1)))
    values = np.arange(1, largest + 1)
    return ClusterCounts(values, _entries(after, values), _entries(before, values))


def credible_set(probabilities: Mapping[int, float] | ClusterCounts, level: float = 0.9) -> CredibleSet:
    """The smallest set of numbers of clusters with at least this posterior mass; ties go to the smaller K.

    Parameters
    ----------
    probabilities : mapping from K to its probability, or ClusterCounts
        For example `n_clusters_posterior` of a trace.
    level : float, default=0.9
        Posterior mass, above 0 and at most 1.

    Returns
    -------
    CredibleSet

    Examples
    --------
    >>> credible_set({2: 0.15, 3: 0.5, 4: 0.35}, 0.8)
    CredibleSet(n_clusters=(3, 4), mass=0.85)
    """
    if not 0.0 < level <= 1.0:
        raise ValueError(f"level is {level}: it must be above 0 and at most 1")
    if isinstance(probabilities, ClusterCounts):
        probabilities = dict(
            zip(probabilities.n_clusters.tolist(), probabilities.posterior.tolist(), strict=True)
        )
    ranked = sorted(((p, K) for K, p in probabilities.items() if p > 0), key=lambda pair: (-pair[0], pair[1]))
    chosen: list[int] = []
    mass = 0.0
    for p, K in ranked:
        if mass >= level - 1e-12:
            break
        chosen.append(int(K))
        mass += p
    return CredibleSet(tuple(chosen), float(mass))


def concentration_sensitivity(
    draws: ArrayLike,
    prior: Any,
    concentrations: Sequence[float] | None = None,
    *,
    drawn_concentration: ArrayLike | None = None,
    drawn_discount: ArrayLike | None = None,
    min_ess: float = MIN_ESS,
) -> ConcentrationSensitivity:
    """P(K) at other, fixed values of the concentration, by importance weights on the draws.

    A draw z has the weight ``eppf(z; new) / eppf(z; own)``, where *own* is the concentration under which it was drawn:
    the likelihood cancels. If the chain learned the concentration, each draw is divided by its own value. This is
    correct too (in the target the drawn concentration is distributed as its prior), but the weights vary more.

    Parameters
    ----------
    draws : array-like of int, shape (T, N)
        Label vectors from the posterior, one per row.
    prior : partition prior
        An exchangeable prior of `partita.partitions`.
    concentrations : sequence of float, default=None
        The grid; None means 0.25, 0.5, 1, 2 and 4 times the (median) concentration of the draws.
    drawn_concentration, drawn_discount : array-like of float, shape (T,), default=None
        The values of each draw, if they were learned. None and NaN mean those of `prior`.
    min_ess : float, default=100.0
        Smallest effective sample size of the weights, ``(sum w)^2 / sum w^2``, for which an answer is given; at most a
        quarter of the number of draws.

    Returns
    -------
    ConcentrationSensitivity

    Examples
    --------
    >>> from partita.partitions import DirichletProcess, simulate
    >>> rng = np.random.default_rng(0)
    >>> draws = [simulate(DirichletProcess(1.0), 30, rng) for _ in range(1000)]
    >>> found = concentration_sensitivity(draws, DirichletProcess(1.0), [1.0, 2.0, 100.0])
    >>> found.refused.tolist()
    [False, False, True]
    >>> bool(found.posterior[1] @ found.n_clusters > found.posterior[0] @ found.n_clusters)
    True
    """
    if lacks(type(prior), partitions.log_eppf):
        raise TypeError(
            f"{type(prior).__name__} gives no probability to partitions (log_eppf), so draws cannot be reweighted: "
            "take an exchangeable prior, or run again at each concentration"
        )
    labels = canonical_draws(draws)
    T, N = labels.shape
    sizes = [np.bincount(row).astype(float) for row in labels]
    own = float(getattr(prior, "concentration", getattr(prior, "gamma", np.nan)))
    alpha = _per_draw(drawn_concentration, own, T, "drawn_concentration")
    sigma = _per_draw(drawn_discount, float(getattr(prior, "discount", np.nan)), T, "drawn_discount")
    grid = np.asarray(
        np.median(alpha) * np.array([0.25, 0.5, 1.0, 2.0, 4.0]) if concentrations is None else concentrations,
        dtype=float,
    )
    K = np.array([len(n) for n in sizes])
    values = np.arange(1, K.max() + 1)
    log_drawn = _log_eppf(prior, sizes, alpha, sigma, N)
    rows, ess = [], []
    for concentration in grid:
        log_w = _log_eppf(prior, sizes, np.full(T, concentration), sigma, N) - log_drawn
        w = np.exp(log_w - log_w.max())
        w /= w.sum()
        ess.append(1.0 / (w @ w))
        rows.append(np.bincount(K, weights=w, minlength=K.max() + 1)[1:])
    least = min(min_ess, T / 4)
    refused = np.array(ess) < least
    posterior = np.where(refused[:, None], np.nan, np.array(rows))
    sentence = _tell(grid, values, posterior, np.array(ess), refused, least)
    return ConcentrationSensitivity(grid, values, posterior, np.array(ess), refused, sentence)


def _entries(probabilities: NDArray[np.float64], values: NDArray[np.int64]) -> NDArray[np.float64]:
    padded = np.zeros(max(len(probabilities), int(values[-1]) + 1))
    padded[: len(probabilities)] = probabilities
    return padded[values]


def _per_draw(values: ArrayLike | None, default: float, n_draws: int, name: str) -> NDArray[np.float64]:
    if values is None:
        return np.full(n_draws, default)
    array = np.asarray(values, dtype=float)
    if array.shape != (n_draws,):
        raise ValueError(f"{name} has shape {array.shape}, but there are {n_draws} draws")
    return np.where(np.isnan(array), default, array)


def _log_eppf(prior, sizes, alpha, sigma, N) -> NDArray[np.float64]:
    """Log probability of each partition under its own concentration and discount."""
    out = np.empty(len(sizes))
    settings, which = np.unique(
        np.column_stack([alpha, np.nan_to_num(sigma, nan=-1.0)]), axis=0, return_inverse=True
    )
    for at, (concentration, discount) in enumerate(settings):
        spec = partitions.with_concentration(prior, float(concentration))
        if discount >= 0.0:
            spec = spec._replace(discount=float(discount))
        rows = np.flatnonzero(which.ravel() == at)
        spec = partitions.checked(spec)
        if (
            len(rows) > MIN_READS_FOR_TABLES
        ):  # tabulating the prior takes less time only if it is evaluated often
            spec = partitions.bind(spec, N)
        for b in rows:
            out[b] = partitions.log_eppf(spec, sizes[b], len(sizes[b]))
    return out


def _tell(grid, values, posterior, ess, refused, least) -> str:
    parts = [
        f"E[K] = {row @ values:.2f} at concentration {c:.3g}"
        for c, row, no in zip(grid, posterior, refused, strict=True)
        if not no
    ]
    text = (
        "; ".join(parts) + "." if parts else "No concentration of the grid can be answered from these draws."
    )
    if refused.any():
        poor = ", ".join(
            f"{c:.3g} (effective sample size {e:.0f})"
            for c, e, no in zip(grid, ess, refused, strict=True)
            if no
        )
        text += f" Refused at concentration {poor}: below {least:.0f}, run the model again there."
    return text
