"""Real columns of overlapping views, with additive effects of the views of a column.

``x_id = sum over r of f_ir l_rd + s_i (m_d + sum over the views v of column d of a_{v, d, z_iv}) + noise``, where
``m_d``, the loadings ``l_rd``, the effects and the variance of the noise are integrated out under normal and inverse
gamma priors. The row factors ``f_ir`` (:mod:`partita.views.nuisance`) are shared by all columns or by a group of them,
and all share the size ``s_i = 1 + sum over r of f_ir g_r`` of a row: with a gain ``g_r`` of 0 the effects of clusters
add to the row factor, otherwise they grow with it, as all differences between pixels do in a brighter picture. W is the
matrix of the one-hot encoded clusters of all views and a column of ones, both times the size of the row, and the row
factors. ``W'W`` and ``W'X`` determine the marginal likelihood of a column under *any* set of views, so the cost of
choosing views for columns does not grow with the number of rows. Given drawn parameters of the other views, the rows of
a view follow an ordinary mixture.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from partita.dispatch import kernel
from partita.families.gaussian import GaussianDiagonal
from partita.families.known_noise import KnownNoise
from partita.families.registry import Block
from partita.families.sized_noise import Sized, SizedNoise
from partita.partitions.learning import Gamma, sample_positive, slice_sample
from partita.views.nuisance import (
    GAIN_SPREAD,
    along_rows,
    draw_row_factors,
    log_gain_prior,
    log_row_volume,
    log_standard_normal,
    row_sizes,
)
from partita.views.overlapping.products import RecentProducts, subtract_fit
from partita.views.overlapping.state import OverlapState, by_views

LOG_2PI = math.log(2.0 * math.pi)
EFFECT_HYPERPRIOR = Gamma(2.0, 1.0)  # of the variances of the effects and of the loadings
NO_SUBSETS = np.zeros(0, np.int64)


class Effects(NamedTuple):
    """Hyper-parameters of all columns, which are standardized."""

    effect: float = 1.0  # variance of the effect of a cluster, relative to that of the noise
    center: float = 100.0  # variance of the intercept of a column, relative to that of the noise
    a: float = 1.0  # shape of the inverse gamma prior of the noise variance; b is its scale
    b: float = 0.3
    loading: float = 1.0  # variance of the loading of a row factor, relative to that of the noise
    rows: np.ndarray | None = None  # row factors, [row, rank]; None for none
    gain: np.ndarray | None = None  # of each row factor; None for a model in which all gains are 0
    parts: np.ndarray | None = (
        None  # [rank, column] bool: columns with a part in each row factor; None for all
    )

    @property
    def rank(self) -> int:
        """Number of row factors."""
        return 0 if self.rows is None else self.rows.shape[1]

    @property
    def sizes(self) -> np.ndarray | None:
        """Size of each row; None if all are 1."""
        if self.rows is None or self.gain is None or not self.gain.any():
            return None
        return row_sizes(self.rows, self.gain)


def set_rows(
    state: OverlapState,
    rows: np.ndarray | None,
    gain: np.ndarray | None = None,
    parts: np.ndarray | None = None,
) -> OverlapState:
    """The state with other row factors; if their gains are not given, those of further row factors are 0.

    In a model without gains there are none afterwards. Without ``parts``, all columns have a part in all of them.
    """
    effects = state.hyper.effects
    if effects.gain is not None and gain is None:
        gain = np.zeros(0 if rows is None else rows.shape[1])
        n_kept = min(len(gain), len(effects.gain))
        gain[:n_kept] = effects.gain[:n_kept]
    gain = None if effects.gain is None else gain
    return state._replace(
        hyper=state.hyper._replace(effects=effects._replace(rows=rows, gain=gain, parts=parts))
    )


def _with_variance(hyper: Effects, name: str, value: float) -> Effects:
    """The numbers with another variance of the effects or of the loadings."""
    return hyper._replace(effect=value) if name == "effect" else hyper._replace(loading=value)


class AdditiveParameters(NamedTuple):
    """Values of the parameters that are integrated out elsewhere."""

    residual: np.ndarray  # [row, column]
    intercept: np.ndarray  # [column]
    effects: list[np.ndarray]  # [cluster, column] of each view
    noise: np.ndarray  # standard deviation of each column
    loadings: np.ndarray  # [rank, column]


@kernel
def score_subsets(G, T, squares, counts, offset, always, subsets, of_column, precision, shape, scale, out):
    """``out[s, d] +=`` log marginal likelihood of column d under the views in row s of ``subsets``, padded with -1.

    One Cholesky factor per subset serves all columns with the same missing cells and row factors. ``always`` are the
    coefficients that these columns have under any views. The rows of the factor that belong to the first views of a
    subset are kept from the subset before, where that begins with the same views. ``precision`` is that of all
    coefficients of W; ``shape`` and ``scale`` are those of the prior of the noise. If ``of_column`` is not
    empty, the columns are in the order of their subsets, and column d is scored under subset ``of_column[d]`` only,
    with the result in ``out[0, d]``.
    """
    P, D, width = G.shape[0], T.shape[1], subsets.shape[1]
    L, U = np.empty((P, P)), np.empty((P, D))
    index, start = np.empty(P, np.int64), np.zeros(width + 2, np.int64)
    rest, log_det = np.empty((width + 1, D)), np.zeros(width + 1)
    first, last = 0, D
    n_kept = -1  # parts of the factor that can be kept: the intercept with the row factors, then views
    for s in range(subsets.shape[0]):
        if of_column.shape[0] > 0:
            first, n_kept = last if s > 0 else 0, -1
            last = first
            while last < D and of_column[last] == s:
                last += 1
        n_parts = 0
        while n_parts < width and subsets[s, n_parts] >= 0:
            n_parts += 1
        if n_kept >= 0:
            n_kept = 0
            while n_kept < n_parts and subsets[s, n_kept] == subsets[s - 1, n_kept]:
                n_kept += 1
        for part in range(n_kept + 1, n_parts + 1):
            begin, size = 0, always.shape[0]
            if part > 0:
                begin = offset[subsets[s, part - 1]]
                size = offset[subsets[s, part - 1] + 1] - begin
            p = start[part]
            start[part + 1] = p + size
            log_det[part] = 0.0 if part == 0 else log_det[part - 1]
            for d in range(first, last):
                rest[part, d] = squares[d] if part == 0 else rest[part - 1, d]
            for r in range(p, p + size):
                index[r] = always[r] if part == 0 else begin + r - p
                log_det[part] += 0.5 * math.log(precision[index[r]])
                for c in range(r + 1):
                    value = G[index[r], index[c]]
                    if r == c:
                        value += precision[index[r]]
                    for k in range(c):
                        value -= L[r, k] * L[c, k]
                    L[r, c] = math.sqrt(value) if r == c else value / L[c, c]
                log_det[part] -= math.log(L[r, r])
                for d in range(first, last):
                    U[r, d] = T[index[r], d]
                for c in range(r):
                    factor = L[r, c]
                    for d in range(first, last):
                        U[r, d] -= factor * U[c, d]
                for d in range(first, last):
                    U[r, d] /= L[r, r]
                    rest[part, d] -= U[r, d] * U[r, d]
        n_kept = n_parts
        for d in range(first, last):
            b = scale + 0.5 * max(rest[n_parts, d], 0.0)
            row = s if of_column.shape[0] == 0 else 0
            out[row, d] += log_det[n_parts] - (shape + 0.5 * counts[d]) * math.log(b)


@kernel
def factor(A, B, L, U):
    """Cholesky factor ``L`` of A, and ``U`` with ``L U = B``; the matrices are too small for threaded libraries."""
    p = A.shape[0]
    for r in range(p):
        for c in range(r + 1):
            value = A[r, c]
            for k in range(c):
                value -= L[r, k] * L[c, k]
            L[r, c] = math.sqrt(value) if r == c else value / L[c, c]
        for d in range(B.shape[1]):
            value = B[r, d]
            for k in range(r):
                value -= L[r, k] * U[k, d]
            U[r, d] = value / L[r, r]


@kernel
def solve_back(L, U):
    """Replace U by the solution of ``L' W = U``."""
    p = L.shape[0]
    for back in range(p):
        r = p - 1 - back
        for d in range(U.shape[1]):
            value = U[r, d]
            for k in range(r + 1, p):
                value -= L[k, r] * U[k, d]
            U[r, d] = value / L[r, r]


@functools.lru_cache(maxsize=64)
def padded_subsets(subsets: tuple[tuple[int, ...], ...]) -> np.ndarray:
    """Sets of views as an array [set, place], padded with -1.

    Examples
    --------
    >>> padded_subsets(((), (0, 2)))
    array([[-1, -1],
           [ 0,  2]])
    """
    out = np.full((len(subsets), max(map(len, subsets), default=0) or 1), -1, dtype=np.int64)
    for i, views in enumerate(subsets):
        out[i, : len(views)] = views
    return out


class AdditiveScores:
    """Log marginal likelihood of every column under any set of views, given the labels of the rows.

    Examples
    --------
    >>> X = np.array([[-1.0, 1.0], [-1.0, -1.0], [1.0, 1.0], [1.0, -1.0]])
    >>> scores = AdditiveScores(read_reals(X), (np.array([0, 0, 1, 1]),), Effects())
    >>> gain = scores((0,)) - scores(())  # the view explains the first column only
    >>> gain.round(1)
    array([ 2. , -0.6])
    """

    def __init__(self, data: AdditiveColumns, Z: Any, hyper: Effects, same: AdditiveScores | None = None):
        self.data, self.hyper = data, hyper
        self.memo: dict[tuple[int, ...], np.ndarray] = {}
        self.groups = data.groups(hyper)
        self.offset: np.ndarray
        self.T: np.ndarray
        self.G: list[np.ndarray]
        if same is not None:
            self.offset, self.T, self.G = same.offset, same.T, same.G
            return
        self.offset, self.T, self.G = data.recent.products(data, Z, hyper)

    @property
    def precision(self) -> np.ndarray:
        """Prior precision of every coefficient, relative to that of the noise."""
        hyper, P = self.hyper, int(self.offset[-1])
        out = np.full(P + 1 + hyper.rank, 1.0 / hyper.loading)
        out[:P], out[P] = 1.0 / hyper.effect, 1.0 / hyper.center
        return out

    @property
    def group_of_column(self) -> np.ndarray:
        """Number of the group of each column."""
        out = np.zeros(self.data.n_columns, np.int64)
        for g, group in enumerate(self.groups):
            out[group.columns] = g
        return out

    def always(self, factors: np.ndarray) -> np.ndarray:
        """Columns of W that every column with these row factors has: the intercept and the factors."""
        return self.offset[-1] + np.concatenate([[0], 1 + factors])

    def __call__(self, views: tuple[int, ...]) -> np.ndarray:
        """Scores under one set of views, in increasing order: [column]."""
        if views not in self.memo:
            self.memo[views] = self.of([views])[0]
        return self.memo[views]

    def of(self, subsets: list[tuple[int, ...]]) -> np.ndarray:
        """Scores under several sets of views: [subset, column]."""
        padded, data = padded_subsets(tuple(subsets)), self.data
        out = np.empty((len(subsets), data.n_columns))
        for group in self.groups:
            out[:, group.columns] = self._scored(group, group.columns, padded, NO_SUBSETS)
        return out

    def _scored(
        self, group: ColumnGroup, columns: np.ndarray, padded: np.ndarray, of_column: np.ndarray
    ) -> np.ndarray:
        """Scores of columns of one group, as in :func:`score_subsets`."""
        hyper, data = self.hyper, self.data
        half = 0.5 * data.counts[columns]
        constant = gammaln(hyper.a + half) - gammaln(hyper.a) + hyper.a * math.log(hyper.b) - half * LOG_2PI
        out = np.empty((1 if len(of_column) else len(padded), len(columns)))
        out[:] = constant
        score_subsets(
            self.G[group.pattern], self.T.take(columns, axis=1), data.squares[columns], data.counts[columns],
            self.offset, self.always(group.factors), padded, of_column, self.precision, hyper.a, hyper.b, out,
        )  # fmt: skip
        return out

    def total(self, found: dict[tuple[int, ...], list[int]]) -> float:
        """Sum of the scores of all columns, each under its own set of views (:func:`by_views`)."""
        subsets, total = list(found), 0.0
        padded = padded_subsets(tuple(subsets))
        for group in self.groups:
            mine = np.full(self.data.n_columns, False)
            mine[group.columns] = True
            kept = [[d for d in found[views] if mine[d]] for views in subsets]
            own = np.array([d for columns in kept for d in columns], dtype=np.int64)
            of_column = np.repeat(np.arange(len(subsets)), [len(columns) for columns in kept])
            if len(own):
                total += float(self._scored(group, own, padded, of_column).sum())
        return total

    def of_columns(self, views: tuple[int, ...], columns: Any) -> np.ndarray:
        """Scores of some columns under one set of views, in increasing order."""
        columns = np.asarray(columns)
        group, padded = self.group_of_column[columns], padded_subsets((views,))
        values = np.empty(len(columns))
        for g in np.unique(group):
            own = group == g
            values[own] = self._scored(self.groups[g], columns[own], padded, NO_SUBSETS)[0]
        return values

    def posterior(
        self, views: tuple[int, ...], group: int, columns: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Columns of W in use, Cholesky factor L of their posterior precision, ``L^-1 W'X`` of the given columns.

        The last of these columns are the intercept and the row factors of the group.
        """
        _, pattern, factors = self.groups[group]
        parts = [np.arange(self.offset[v], self.offset[v + 1]) for v in views]
        index = np.concatenate([*parts, self.always(factors)]).astype(np.int64)
        precision = self.precision[index]
        L, half = np.zeros((len(index), len(index))), np.empty((len(index), len(columns)))
        factor(
            self.G[pattern][np.ix_(index, index)] + np.diag(precision),
            self.T[np.ix_(index, columns)],
            L,
            half,
        )
        return index, L, half


class ColumnGroup(NamedTuple):
    """Columns with the same missing cells and the same row factors."""

    columns: np.ndarray
    pattern: int  # of missing cells
    factors: np.ndarray  # numbers of the row factors


class AdditiveColumns(NamedTuple):
    """Standardized columns with NaN for missing cells, and statistics of them."""

    X: np.ndarray
    filled: np.ndarray  # X with 0 for missing cells
    squares: np.ndarray  # sum of squares of each column
    counts: np.ndarray  # observed cells of each column
    # Columns with the same missing cells, and whether each row is observed in them.
    patterns: tuple[tuple[np.ndarray, np.ndarray], ...]
    recent: RecentProducts

    def groups(self, hyper: Effects) -> list[ColumnGroup]:
        """The columns by their missing cells and row factors.

        Examples
        --------
        >>> data = read_reals(np.zeros((2, 3)))
        >>> hyper = Effects(rows=np.zeros((2, 1)), parts=np.array([[True, True, False]]))
        >>> [(group.columns.tolist(), group.factors.tolist()) for group in data.groups(hyper)]
        [([0, 1], [0]), ([2], [])]
        """
        if hyper.parts is None:
            return [
                ColumnGroup(columns, p, np.arange(hyper.rank)) for p, (columns, _) in enumerate(self.patterns)
            ]
        return [
            ColumnGroup(columns[own], p, np.array(factors, np.int64))
            for p, (columns, _) in enumerate(self.patterns)
            for factors, own in by_views(hyper.parts.T[columns]).items()
        ]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.X)

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return self.X.shape[1]

    def design(self, Z: Any, hyper: Effects) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Labels [view, row], sizes of the rows, and row factors, as kernels read them."""
        labels = np.array(Z, dtype=np.int64).reshape(len(Z), self.n_rows)
        sizes = np.ones(self.n_rows) if hyper.sizes is None else hyper.sizes
        return labels, sizes, np.zeros((self.n_rows, 0)) if hyper.rows is None else hyper.rows

    def scores(self, Z: Any, hyper: Effects, same: AdditiveScores | None = None) -> AdditiveScores:
        """Log marginal likelihoods given the labels of all views; ``same`` are scores of the same labels to reuse."""
        return AdditiveScores(self, Z, hyper, same)

    def parameters(
        self, state: OverlapState, hyper: Effects, rng: np.random.Generator | None
    ) -> AdditiveParameters:
        """Intercepts, effects and noise drawn from their posterior; without a generator, their means."""
        scores = self.scores(state.Z, hyper)
        N, D = self.X.shape
        offset, coefficients = scores.offset, np.zeros_like(scores.T)
        residual, noise = np.empty((N, D)), np.empty(D)
        for g, group in enumerate(scores.groups):
            for views, part in by_views(state.Y[group.columns]).items():
                ds = group.columns[part]
                index, L, half = scores.posterior(views, g, ds)
                a = hyper.a + 0.5 * self.counts[ds]
                b = hyper.b + 0.5 * np.maximum(self.squares[ds] - (half**2).sum(axis=0), 0.0)
                noise[ds] = np.sqrt(b / (a if rng is None else rng.standard_gamma(a)))
                if rng is not None:
                    half = half + noise[ds] * rng.standard_normal(half.shape)
                solve_back(L, half)
                coefficients[index[:, None], ds] = half
        labels, sizes, F = self.design(state.Z, hyper)
        subtract_fit(self.X, labels, offset, sizes, F, coefficients, residual)
        effects = [coefficients[offset[v] : offset[v + 1]] for v in range(state.n_views)]
        intercept, loadings = coefficients[offset[-1]], coefficients[offset[-1] + 1 :]
        return AdditiveParameters(residual, intercept, effects, noise, loadings)

    def mixture_block(
        self, state: OverlapState, parameters: AdditiveParameters, v: int, hyper: Effects, exact: bool
    ) -> Block:
        """The columns of view v as a block of a mixture, given the parameters of the other views.

        Without ``exact``, as searches use it, each cluster has its own variance: with a common one, a wide cluster
        would be split.
        """
        f, sizes = np.flatnonzero(state.Y[: self.n_columns, v]), hyper.sizes
        effect = parameters.effects[v][state.Z[v]][:, f]
        if sizes is not None:
            effect *= sizes[:, None]
        R = np.ascontiguousarray((parameters.residual[:, f] + effect) / parameters.noise[f])
        precision = np.full(len(f), 1.0 / hyper.effect)
        if sizes is not None:  # a width of its own would tell large rows from small ones
            return Block(SizedNoise(precision), Sized(R, sizes), ())
        if exact:
            return Block(KnownNoise(precision), R, ())
        return Block(GaussianDiagonal.default(len(f), k=0.3, a=2.0, b=2.0), R, ())

    def update_effects(
        self,
        state: OverlapState,
        parameters: AdditiveParameters,
        v: int,
        data: np.ndarray | Sized,
        hyper: Effects,
        rng: Any,
    ) -> None:
        """Update, in place, the effects of view v after a change of its labels, and the residuals."""
        f, z = np.flatnonzero(state.Y[: self.n_columns, v]), state.Z[v]
        R, size = (data.X, data.size[:, None]) if isinstance(data, Sized) else (data, np.ones((len(z), 1)))
        own = _own_effects(R, size, z, 1.0 / hyper.effect, rng) * parameters.noise[f]
        parameters.effects[v] = np.zeros((len(own), self.n_columns))
        parameters.effects[v][:, f] = own
        parameters.residual[:, f] = R * parameters.noise[f] - size * own[z]

    def draw_rows(self, state: OverlapState, hyper: Effects, rng: np.random.Generator | None) -> Effects:
        """Draw the row factors given drawn parameters; without a generator, their means given mean parameters."""
        if hyper.rows is None:
            return hyper
        found = self.parameters(state, hyper, rng)
        loadings = self.slopes(state, hyper, found)
        raw = found.residual + along_rows(hyper.rows, loadings)
        return hyper._replace(rows=draw_row_factors(raw, loadings, found.noise**-2.0, rng))

    def slopes(self, state: OverlapState, hyper: Effects, found: AdditiveParameters) -> np.ndarray:
        """Change of each cell per unit of a row factor: its loading, and its gain times what the factor multiplies.

        [rank, column], or [rank, row, column] if any gain is not 0.
        """
        if hyper.sizes is None:
            return found.loadings
        means = np.tile(found.intercept, (self.n_rows, 1))
        for v, z in enumerate(state.Z):
            own = np.flatnonzero(state.Y[: self.n_columns, v])
            means[:, own] += found.effects[v][:, own][z]
        assert hyper.gain is not None
        return found.loadings[:, None, :] + hyper.gain[:, None, None] * means

    def log_rows(self, state: OverlapState, hyper: Effects, *, marginal: bool = False) -> float:
        """Log prior density of the row factors; if ``marginal``, plus the log volume of their posterior given the rest.

        With the latter, the log joint at the means of the row factors approximates its integral over them (Laplace).
        """
        if hyper.rows is None:
            return 0.0
        total = log_standard_normal(hyper.rows)
        if marginal:
            found = self.parameters(state, hyper, None)
            loadings = self.slopes(state, hyper, found)
            total += log_row_volume(~np.isnan(self.X), loadings, found.noise**-2.0)
        if hyper.gain is not None:
            total += log_gain_prior(hyper.gain)
        return total

    def learn(self, state: OverlapState, hyper: Effects, rng: np.random.Generator) -> Effects:
        """Draw gains and the variances of effects and loadings given memberships, labels and row factors."""
        hyper = self.learn_gain(state, hyper, rng)
        found = by_views(state.Y[: self.n_columns])
        start = self.scores(state.Z, hyper)
        for name in ("effect", "loading") if hyper.rank else ("effect",):

            def log_likelihood(value: float, name: str = name, hyper: Effects = hyper) -> float:
                scores = self.scores(state.Z, _with_variance(hyper, name, value), start)
                return scores.total(found)

            value = sample_positive(log_likelihood, getattr(hyper, name), rng, EFFECT_HYPERPRIOR)
            hyper = _with_variance(hyper, name, value)
        return hyper

    def learn_gain(self, state: OverlapState, hyper: Effects, rng: np.random.Generator) -> Effects:
        """Draw the gain of each row factor of all columns given memberships, labels and row factors."""
        if hyper.gain is None:
            return hyper
        found = by_views(state.Y[: self.n_columns])
        has_gain = np.ones(hyper.rank, bool) if hyper.parts is None else hyper.parts.all(axis=1)
        for r in np.flatnonzero(has_gain).tolist():

            def with_gain(value: float, r: int = r, hyper: Effects = hyper) -> Effects:
                assert hyper.gain is not None
                return hyper._replace(gain=np.where(np.arange(hyper.rank) == r, value, hyper.gain))

            def log_density(value: float, with_gain: Any = with_gain) -> float:
                changed = with_gain(value)
                scores = self.scores(state.Z, changed)
                return scores.total(found) + log_gain_prior(changed.gain)

            hyper = with_gain(slice_sample(log_density, float(hyper.gain[r]), rng, width=GAIN_SPREAD))
        return hyper


def read_reals(X: np.ndarray) -> AdditiveColumns:
    """Arrange columns that are already standardized.

    Examples
    --------
    >>> data = read_reals(np.array([[1.0, np.nan], [-1.0, 0.5]]))
    >>> data.counts, len(data.patterns)
    (array([2., 1.]), 2)
    """
    X = np.ascontiguousarray(X, dtype=np.float64)
    seen = ~np.isnan(X)
    filled = np.where(seen, X, 0.0)
    found: dict[bytes, list[int]] = {}
    for d in range(X.shape[1]):
        found.setdefault(np.packbits(seen[:, d]).tobytes(), []).append(d)
    patterns = tuple((np.array(columns), seen[:, columns[0]].astype(float)) for columns in found.values())
    return AdditiveColumns(
        X, filled, (filled**2).sum(axis=0), seen.sum(axis=0).astype(float), patterns, RecentProducts([])
    )


def _own_effects(
    R: np.ndarray, size: np.ndarray, z: np.ndarray, precision: float, rng: np.random.Generator | None
) -> np.ndarray:
    """Effects of the clusters of one view on columns with unit noise: drawn, or their means without a generator.

    ``size`` [row, 1] multiplies the effects.
    """
    K = int(z.max()) + 1
    W = np.zeros((len(z), K))
    W[np.arange(len(z)), z] = 1.0
    seen = ~np.isnan(R)
    weight = W.T @ (seen * size**2) + precision
    effect = (W.T @ np.where(seen, R * size, 0.0)) / weight
    return effect if rng is None else effect + rng.standard_normal(effect.shape) / np.sqrt(weight)
