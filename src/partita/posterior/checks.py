"""Does the model describe the data? Posterior predictive checks of columns, and held-out log scores.

These work on arrays: a model gives the simulated tables and the log densities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from partita.labels.checks import row_weights
from partita.labels.information import entropy

Statistic = Callable[[NDArray[np.float64]], float]


def _skewness(x: NDArray[np.float64]) -> float:
    sd = float(x.std())
    return float((((x - x.mean()) / sd) ** 3).mean()) if sd > 0 else 0.0


def _level_entropy(x: NDArray[np.float64]) -> float:
    _, counts = np.unique(x, return_counts=True)
    return float(entropy(counts) / np.log(2.0))


def _commonest_share(x: NDArray[np.float64]) -> float:
    _, counts = np.unique(x, return_counts=True)
    return float(counts.max() / counts.sum())


REAL: dict[str, Statistic] = {
    "mean": lambda x: float(x.mean()),
    "sd": lambda x: float(x.std()),
    "skewness": _skewness,
    "smallest": lambda x: float(x.min()),
    "median": lambda x: float(np.median(x)),
    "largest": lambda x: float(x.max()),
}
CATEGORICAL: dict[str, Statistic] = {
    "levels": lambda x: float(len(np.unique(x))),
    "share of the commonest": _commonest_share,
    "entropy": _level_entropy,
}
STATISTICS = {"real": REAL, "categorical": CATEGORICAL}


class ColumnCheck(NamedTuple):
    """One statistic of one column beside its distribution over simulated tables.

    `p_value` is the share of simulated values on the far side of the observed one, doubled, ties counted half: small
    where the model does not produce such columns.
    """

    column: int
    statistic: str
    observed: float
    replicated_mean: float
    replicated_sd: float
    p_value: float


class LogScores(NamedTuple):
    """Log predictive densities of rows that the model has not seen; larger is better."""

    rows: NDArray[np.float64]
    mean: float
    standard_error: float  # of the mean, over the rows


class ScoreDifference(NamedTuple):
    """Mean difference of two sets of log scores of the same rows, with its standard error."""

    mean: float
    standard_error: float


def predictive_checks(
    observed: ArrayLike,
    replicates: Iterable[ArrayLike],
    *,
    kinds: Sequence[str] | None = None,
    statistics: Mapping[str, Statistic] | None = None,
) -> list[ColumnCheck]:
    """Compare statistics of each column with those of simulated tables.

    Cells that are missing (NaN) in the observed table are left out of the simulated ones too. Tables are read one at a
    time, so that an iterator need not hold them all.

    Parameters
    ----------
    observed : array-like of float, shape (N, D)
        The data; categorical columns as codes.
    replicates : iterable of array-like of float, shape (N, D)
        Tables simulated from the posterior predictive distribution; 20 at least.
    kinds : sequence of {"real", "categorical"}, default=None
        Kind of each column; all real by default.
    statistics : mapping from a name to a function of a column, default=None
        Used for every column in place of those of its kind.

    Returns
    -------
    list of ColumnCheck
        By column, then statistic; columns without any seen cell are left out.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> skewed = rng.exponential(size=(200, 1))
    >>> tables = (rng.normal(1.0, 1.0, size=(200, 1)) for _ in range(100))
    >>> {check.statistic: check.p_value for check in predictive_checks(skewed, tables)}["skewness"]
    0.0
    """
    X = np.asarray(observed, dtype=float)
    if X.ndim != 2:
        raise ValueError(f"observed has shape {X.shape}: give a table (rows x columns)")
    kinds = ["real"] * X.shape[1] if kinds is None else list(kinds)
    if len(kinds) != X.shape[1] or not set(kinds) <= set(STATISTICS):
        raise ValueError(
            f"kinds is {kinds}: give 'real' or 'categorical' for each of the {X.shape[1]} columns"
        )
    seen = ~np.isnan(X)
    asked = [
        (d, name, function)
        for d, kind in enumerate(kinds)
        if seen[:, d].any()
        for name, function in (statistics or STATISTICS[kind]).items()
    ]
    simulated: list[list[float]] = []
    for table in replicates:
        Y = np.asarray(table, dtype=float)
        if Y.shape != X.shape:
            raise ValueError(f"simulated table {len(simulated)} has shape {Y.shape}, the data {X.shape}")
        simulated.append([function(Y[seen[:, d], d]) for d, _, function in asked])
    if len(simulated) < 20:
        raise ValueError(f"there are {len(simulated)} simulated tables: at least 20 are needed for a tail")
    values = np.array(simulated).reshape(len(simulated), len(asked))
    return [
        _checked(d, name, function(X[seen[:, d], d]), values[:, at])
        for at, (d, name, function) in enumerate(asked)
    ]


def _checked(column: int, name: str, observed: float, simulated: NDArray[np.float64]) -> ColumnCheck:
    close = np.isclose(simulated, observed, rtol=1e-9, atol=1e-12)
    above = float(((simulated > observed) & ~close).mean() + 0.5 * close.mean())
    p = min(1.0, 2.0 * min(above, 1.0 - above))
    return ColumnCheck(column, name, float(observed), float(simulated.mean()), float(simulated.std()), p)


def held_out_log_scores(log_densities: ArrayLike, *, weights: ArrayLike | None = None) -> LogScores:
    """Log predictive density of each held-out row, averaged over the draws inside the logarithm.

    Parameters
    ----------
    log_densities : array-like of float, shape (T, n) or (n,)
        Log density of each row under each draw (or under one model).
    weights : array-like of float, shape (T,), default=None
        Weight of each draw.

    Returns
    -------
    LogScores

    Examples
    --------
    >>> held_out_log_scores(np.log([[0.25, 0.5], [0.75, 0.5]])).rows.round(4)
    array([-0.6931, -0.6931])
    """
    log_p = np.atleast_2d(np.asarray(log_densities, dtype=float))
    if log_p.ndim != 2 or 0 in log_p.shape:
        raise ValueError(f"log_densities has shape {log_p.shape}: give draws x rows, or one value a row")
    if np.isnan(log_p).any():
        draw, row = (int(i) for i in np.argwhere(np.isnan(log_p))[0])
        raise ValueError(f"log_densities[{draw}, {row}] is NaN: a row has a density, which may be 0 (-inf)")
    share = row_weights(weights, len(log_p))
    share = np.full(len(log_p), 1.0 / len(log_p)) if share is None else share / share.sum()
    rows = logsumexp(log_p, axis=0, b=share[:, None])
    return LogScores(rows, float(rows.mean()), _standard_error(rows))


def compare_log_scores(first: LogScores, second: LogScores) -> ScoreDifference:
    """Mean of `first` minus `second`, row by row: the errors of the two do not add where rows are hard for both.

    Parameters
    ----------
    first, second : LogScores
        Of the same rows, in the same order.

    Returns
    -------
    ScoreDifference

    Examples
    --------
    >>> better = held_out_log_scores(np.log([0.5, 0.2, 0.4]))
    >>> worse = held_out_log_scores(np.log([0.25, 0.1, 0.2]))
    >>> round(compare_log_scores(better, worse).mean, 4)
    0.6931
    """
    if first.rows.shape != second.rows.shape:
        raise ValueError(
            f"the scores are of {len(first.rows)} and {len(second.rows)} rows: score the same rows"
        )
    difference = first.rows - second.rows
    return ScoreDifference(float(difference.mean()), _standard_error(difference))


def _standard_error(rows: NDArray[np.float64]) -> float:
    return float(rows.std(ddof=1) / np.sqrt(len(rows))) if len(rows) > 1 else float("nan")
