"""How the data of a block follow from real columns whose values are not roughly normal inside a cluster.

A column with one value in many rows (a *lump*, such as the zeros of spending) holds two variables: whether the value is
the lump, and the value elsewhere. A skewed column is modeled on a transformed scale. Each coding turns values in the
user's units into the data of a family, with the log density of what the data leave out, and back.
"""

from __future__ import annotations

import math
import warnings
from typing import NamedTuple

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from partita.table.scaling import center_and_scale, standardize

LOG_2PI = math.log(2 * math.pi)
MIN_LUMP = 0.5  # share of the rows from which a value is a lump
MIN_SMALL_LUMP, MIN_RATIO = (
    0.1,
    5.0,
)  # the same for a value that is so many times as frequent as any other one
MIN_ALONE = 0.9  # share from which the other values are too few to be described in each cluster
MIN_OTHERS = 10  # other values that can be described in each cluster
MIN_SKEWNESS = 1.0  # from which a column may be transformed
POWERS = (-1.0, 3.0)  # of a transformation
UNIT_QUANTILE = 0.05  # of the distances from the origin: the unit of a transformation
NODES, NODE_WEIGHTS = hermegauss(20)


class Power(NamedTuple):
    """Yeo-Johnson transformation of one column: of ``(x - origin) / unit`` with an exponent; 1 changes nothing."""

    origin: float = 0.0
    unit: float = 1.0
    exponent: float = 1.0

    def forward(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Transformed values.

        Examples
        --------
        >>> Power(exponent=0.0).forward(np.array([-1.0, 0.0, np.e - 1])).round(3)
        array([-1.5,  0. ,  1. ])
        """
        if self.exponent == 1.0:
            return x
        u = (x - self.origin) / self.unit
        upper = _power(np.log1p(np.maximum(u, 0.0)), self.exponent)
        lower = -_power(np.log1p(np.maximum(-u, 0.0)), 2.0 - self.exponent)
        return np.where(u >= 0, upper, lower) + 0.0 * u  # keeps NaN

    def backward(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """The inverse of `forward`; beyond its range, plus or minus infinity."""
        if self.exponent == 1.0:
            return y
        upper = np.expm1(_log_of_power(np.maximum(y, 0.0), self.exponent))
        lower = -np.expm1(_log_of_power(np.maximum(-y, 0.0), 2.0 - self.exponent))
        return self.origin + self.unit * (np.where(y >= 0, upper, lower) + 0.0 * y)

    def log_slope(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Log of the derivative of `forward`."""
        if self.exponent == 1.0:
            return np.where(np.isnan(x), np.nan, 0.0)
        u = (x - self.origin) / self.unit
        return (self.exponent - 1.0) * np.sign(u) * np.log1p(np.abs(u)) - math.log(self.unit)


def _power(log_u: NDArray[np.float64], exponent: float) -> NDArray[np.float64]:
    """``(exp(exponent log_u) - 1) / exponent``."""
    return log_u if exponent == 0.0 else np.expm1(exponent * log_u) / exponent


def _log_of_power(y: NDArray[np.float64], exponent: float) -> NDArray[np.float64]:
    """The inverse of `_power`."""
    if exponent == 0.0:
        return y
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(exponent * y > -1.0, np.log1p(np.maximum(exponent * y, -1.0)) / exponent, np.inf)


def skewness(values: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """Weighted skewness of the values that are not NaN; 0 for a constant column.

    Examples
    --------
    >>> skewness(np.array([0.0, 0.0, 0.0, 1.0]), np.ones(4)).__round__(3)
    1.155
    """
    seen = ~np.isnan(values) & (weights > 0)
    center, scale = center_and_scale(values[seen], weights[seen])
    z = standardize(values[seen], center, scale)
    return float(weights[seen] @ z**3 / weights[seen].sum()) if len(z) else 0.0


def fit_power(values: NDArray[np.float64], weights: NDArray[np.float64]) -> Power:
    """The transformation under which one normal distribution fits the values best; NaN is ignored.

    Examples
    --------
    >>> x = np.exp(np.random.default_rng(0).normal(3, 1.5, 2000))
    >>> power = fit_power(x, np.ones(2000))
    >>> abs(skewness(power.forward(x), np.ones(2000))) < 0.3 < skewness(x, np.ones(2000))
    True
    """
    seen = ~np.isnan(values) & (weights > 0)
    x, w = values[seen], weights[seen]
    origin = 0.0 if x.min() >= 0 else float(np.median(x))
    scale = center_and_scale(x, w)[1]
    # most of a positive column lies beyond the unit, where the transformation is a plain power or logarithm
    unit = max(float(np.quantile(np.abs(x - origin), UNIT_QUANTILE)), 1e-3 * scale) if origin == 0 else scale

    def loss(exponent: float) -> float:
        power = Power(origin, unit, exponent)
        _, spread = center_and_scale(power.forward(x), w)
        return w.sum() * math.log(spread) - float(w @ power.log_slope(x))

    found = minimize_scalar(loss, bounds=POWERS, method="bounded", options={"xatol": 1e-3})
    return Power(origin, unit, float(found.x))


class Values(NamedTuple):
    """Coding of real columns as transformed, standardized values; the lump of a column is hidden."""

    lumps: NDArray[np.float64]  # [column]; NaN: none
    powers: tuple[Power, ...]
    centers: NDArray[np.float64]  # of the transformed values
    scales: NDArray[np.float64]
    lows: NDArray[np.float64]  # range of the values, for moments and draws
    highs: NDArray[np.float64]

    @property
    def is_skewed(self) -> NDArray[np.bool_]:
        """Columns that are transformed."""
        return np.array([power.exponent != 1.0 for power in self.powers])

    def encode(self, X: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Standardized values [row, column], and the log of the factor between both densities [row]."""
        Z, log_slope = np.empty(X.shape), np.zeros(len(X))
        for d, power in enumerate(self.powers):
            x = np.where(X[:, d] == self.lumps[d], np.nan, X[:, d])
            Z[:, d] = standardize(power.forward(x), self.centers[d], self.scales[d])
            log_slope += self.log_slope(d, x)
        return Z, log_slope

    def log_slope(self, d: int, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Log of the factor between both densities of the cells of one column; 0 at lumps and missing cells."""
        x = np.where(x == self.lumps[d], np.nan, x)
        return np.nan_to_num(self.powers[d].log_slope(x) - math.log(self.scales[d]))

    def take(self, columns: NDArray[np.integer]) -> Values:
        """The coding of some of the columns.

        Examples
        --------
        >>> code_as_they_are(np.array([[1.0, 2.0], [3.0, 8.0]])).take(np.array([1])).highs
        array([8.])
        """
        powers = tuple(self.powers[d] for d in columns)
        rest = (self.lumps, self.centers, self.scales, self.lows, self.highs)
        lumps, *others = (values[columns] for values in rest)
        return Values(lumps, powers, *others)

    def decode(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values in the user's units."""
        X = np.empty(Z.shape)
        for d in range(Z.shape[1]):
            X[:, d] = self.decode_column(d, Z[:, d])
        return X

    def decode_column(self, d: int, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values of one column in the user's units, for any shape.

        Transformed columns stay within their range and half of it on either side: tails that no row supports would
        otherwise dominate means and draws.
        """
        x = self.powers[d].backward(self.centers[d] + self.scales[d] * z)
        if self.powers[d].exponent == 1.0:
            return x
        margin = 0.5 * (self.highs[d] - self.lows[d])
        return np.clip(x, self.lows[d] - margin, self.highs[d] + margin)

    def moments(
        self, means: NDArray[np.float64], variances: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Means, standard deviations and medians in the user's units of normal clusters, [cluster, column]."""
        sd = np.sqrt(variances)
        out = [np.empty(means.shape) for _ in range(3)]
        share = NODE_WEIGHTS / NODE_WEIGHTS.sum()
        for d, power in enumerate(self.powers):
            out[2][:, d] = self.decode_column(d, means[:, d])
            if (
                power.exponent != 1.0
            ):  # half of the values are on either side, so that it is none beyond all values
                out[2][:, d] = np.clip(out[2][:, d], self.lows[d], self.highs[d])
            if power.exponent == 1.0:
                out[0][:, d], out[1][:, d] = out[2][:, d], self.scales[d] * sd[:, d]
                continue
            x = self.decode_column(d, means[:, d, None] + sd[:, d, None] * NODES)
            out[0][:, d] = x @ share
            out[1][:, d] = np.sqrt(np.maximum((x - out[0][:, d, None]) ** 2 @ share, 0.0))
        return out[0], out[1], out[2]


def code_values(
    X: NDArray[np.float64],
    weights: NDArray[np.float64],
    lumps: NDArray[np.float64],
    powers: tuple[Power, ...],
) -> Values:
    """The coding of columns with these lumps and transformations."""
    centers, scales, ranges = np.empty(X.shape[1]), np.empty(X.shape[1]), np.empty((2, X.shape[1]))
    for d, power in enumerate(powers):
        x = np.where(X[:, d] == lumps[d], np.nan, X[:, d])
        centers[d], scales[d] = center_and_scale(power.forward(x), weights)
        ranges[:, d] = np.nanmin(x), np.nanmax(x)
    return Values(lumps, powers, centers, scales, ranges[0], ranges[1])


def code_as_they_are(X: NDArray[np.float64]) -> Values:
    """The coding of columns that are not changed, so that hyper-parameters are in the units of the table.

    Examples
    --------
    >>> code_as_they_are(np.array([[160.0, 55.0], [180.0, 80.0]])).encode(np.array([[170.0, 60.0]]))
    (array([[170.,  60.]]), array([0.]))
    """
    D = X.shape[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # columns without any observed cell
        lows, highs = np.nan_to_num(np.nanmin(X, axis=0)), np.nan_to_num(np.nanmax(X, axis=0))
    return Values(np.full(D, np.nan), (Power(),) * D, np.zeros(D), np.ones(D), lows, highs)


class Lumps(NamedTuple):
    """Coding of real columns by whether a value differs from the lump of its column.

    Where the other values have no block of their own they are one normal variable for all rows, with ``centers`` and
    ``scales``; these are NaN where they have one.
    """

    values: NDArray[np.float64]  # [column]
    centers: NDArray[np.float64]
    scales: NDArray[np.float64]

    def encode(self, X: NDArray[np.float64]) -> tuple[NDArray[np.int8], NDArray[np.float64]]:
        """Codes [row, column], 1 where a value is not the lump, and the log density of the other values [row].

        Examples
        --------
        >>> coding = Lumps(np.array([0.0]), np.array([2.0]), np.array([1.0]))
        >>> codes, log_rest = coding.encode(np.array([[0.0], [2.0], [np.nan]]))
        >>> codes.T, log_rest.round(3)
        (array([[ 0,  1, -1]], dtype=int8), array([ 0.   , -0.919,  0.   ]))
        """
        codes = np.where(np.isnan(X), -1, self.values != X).astype(np.int8)
        log_rest = sum((self.log_slope(d, X[:, d]) for d in range(X.shape[1])), np.zeros(len(X)))
        return codes, log_rest

    def log_slope(self, d: int, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Log density of the cells of one column beside its lump; 0 if they have a block of their own."""
        z = (x - self.centers[d]) / self.scales[d]
        log_density = -0.5 * (z**2 + LOG_2PI) - np.log(self.scales[d])
        return np.where(x == self.values[d], 0.0, np.nan_to_num(log_density))

    def take(self, columns: NDArray[np.integer]) -> Lumps:
        """The coding of some of the columns.

        Examples
        --------
        >>> Lumps(np.array([0.0, 9.0]), np.full(2, np.nan), np.full(2, np.nan)).take(np.array([1])).values
        array([9.])
        """
        return Lumps(*(values[columns] for values in self))

    def decode(self, codes: NDArray[np.integer], rng: np.random.Generator) -> NDArray[np.float64]:
        """Values: the lump, or a draw of the others; NaN where these have a block of their own."""
        others = self.centers + self.scales * rng.standard_normal(codes.shape)
        return np.where(codes == 0, self.values, others)


class Lump(NamedTuple):
    """The most frequent value of a column, and its share of the observed cells."""

    value: float
    share: float
    next_share: float  # of the second most frequent value
    n_others: float  # total weight of the other cells

    @property
    def stands_out(self) -> bool:
        """Whether it is a lump: in most rows, or far more frequent than all other values, as zeros often are."""
        return self.share >= MIN_LUMP or (
            self.share >= MIN_SMALL_LUMP and self.share >= MIN_RATIO * self.next_share
        )


def find_lump(values: NDArray[np.float64], weights: NDArray[np.float64]) -> Lump:
    """The most frequent value of a column; NaN is ignored.

    Examples
    --------
    >>> find_lump(np.array([0.0, 0.0, 3.0, np.nan]), np.ones(4))
    Lump(value=0.0, share=0.6666666666666666, next_share=0.3333333333333333, n_others=1.0)
    """
    seen = ~np.isnan(values) & (weights > 0)
    distinct, which = np.unique(values[seen], return_inverse=True)
    if not len(distinct):
        return Lump(math.nan, 0.0, 0.0, 0.0)
    counts = np.bincount(which, weights[seen])
    top, total = int(counts.argmax()), float(counts.sum())
    next_count = float(np.delete(counts, top).max(initial=0.0))
    return Lump(
        float(distinct[top]), float(counts[top]) / total, next_count / total, total - float(counts[top])
    )


def code_lumps(
    X: NDArray[np.float64],
    weights: NDArray[np.float64],
    values: NDArray[np.float64],
    alone: NDArray[np.bool_],
) -> Lumps:
    """The coding of columns by these lumps; the other values of the columns in ``alone`` have no block of their own."""
    centers, scales = np.full(len(values), np.nan), np.full(len(values), np.nan)
    for d in np.flatnonzero(alone):
        others = np.where(X[:, d] == values[d], np.nan, X[:, d])
        centers[d], scales[d] = center_and_scale(others, weights)
        if (others == centers[d]).any() and scales[
            d
        ] == 1.0:  # one other value: a width in the units of the column
            scales[d] = max(abs(centers[d] - values[d]), 1e-300)
    return Lumps(values, centers, scales)
