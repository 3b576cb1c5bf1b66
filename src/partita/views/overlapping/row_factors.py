"""Search for the number of row factors and their first values, before the search for views.

A row factor and a clustering both make columns depend on each other. Which of the two a direction of the table is shows
in the evidence: three clusters cost a row about one nat and a continuous factor several, but a factor explains all of a
brightness, and clusters only their means. The search therefore begins with views from independent components, and then
adds factors along the residuals of the views, or in the place of a view, as long as the evidence increases.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from partita.labels import canonical
from partita.views.nuisance import draw_row_factors, noise_edge, row_sizes
from partita.views.overlapping.additive import AdditiveColumns, Effects, read_reals, set_rows
from partita.views.overlapping.first_labels import independent_components, n_directions
from partita.views.overlapping.group_factors import (
    EDGE_MARGIN,
    GroupFactors,
    find_group_factors,
    no_group_factors,
)
from partita.views.overlapping.search import (
    MIN_CLUSTER_SHARE,
    MIN_GAIN,
    MIN_MERGE_NMI,
    MIN_MIXED_CLUSTERS,
    OverlapSearch,
    label_similarity,
)
from partita.views.overlapping.state import OverlapState, add_view, empty_state, without_views
from partita.views.overlapping.table import OverlapHyper, OverlapTable

MIN_COLUMNS, MIN_ROWS = 5, 30  # of a table in which row factors are looked for
MAX_RANK = 5  # row factors that are looked for
MAX_COMPONENTS = 12  # of the second start
MAX_VIEWS = 24  # during this search
MAX_SEARCHED_ROWS, MAX_SEARCHED_COLUMNS = 1000, 100  # larger tables are sampled
MIN_COLUMN_SHARE = 0.25  # effective share of the columns that have a part in a factor
N_FACTOR_STEPS, N_EXTENSION_STEPS = 2, 5


def broad_directions(R: np.ndarray) -> np.ndarray:
    """Principal components [row, component] of columns of unit noise that exceed the edge of noise and are broad.

    A component is broad if enough columns have a part in it: the others are more likely views that are still missing.
    """
    R = np.where(np.isnan(R), 0.0, R)
    U, S, V = np.linalg.svd(R - R.mean(axis=0), full_matrices=False)
    n_parts = 1.0 / (V**4).sum(axis=1)
    chosen = (S**2 / len(R) > EDGE_MARGIN * noise_edge(R)) & (n_parts > MIN_COLUMN_SHARE * R.shape[1])
    return np.ascontiguousarray(U[:, chosen] * math.sqrt(len(R)))


def may_be_mixed(labels: np.ndarray) -> bool:
    """Whether a view has so many clusters of some size that it may mix a row factor with a view.

    Examples
    --------
    >>> may_be_mixed(np.repeat([0, 1, 2, 3], 10)), may_be_mixed(np.repeat([0, 1, 2], 10))
    (True, False)
    """
    n_large = int((np.bincount(labels) > MIN_CLUSTER_SHARE * len(labels)).sum())
    return n_large >= MIN_MIXED_CLUSTERS


class RowFactorSearch:
    """Search for row factors of a table of additive columns.

    Parameters
    ----------
    columns : AdditiveColumns
        The table, or a sample of its rows.
    rng : Generator
        Source of randomness.
    max_per_column : int
        Maximum number of views of a column.
    rank : int or None
        The number of row factors; None to choose it by the evidence.
    is_late : callable
        Called before every large step; once it returns True the search ends.
    gain : ndarray (0,) or None
        The gains at the start, which has no row factors; None for a model in which all gains are 0.
    """

    def __init__(
        self,
        columns: AdditiveColumns,
        rng: np.random.Generator,
        max_per_column: int,
        rank: int | None = None,
        is_late: Callable[[], bool] = lambda: False,
        gain: np.ndarray | None = None,
    ):
        self.table, self.rng, self.rank, self.is_late = OverlapTable(columns, None), rng, rank, is_late
        self.empty = empty_state(columns.n_columns, OverlapHyper(Effects(gain=gain), ()))
        self.max_per_column = max_per_column
        self.search = OverlapSearch(
            self.table, rng, self.empty, max_per_column=max_per_column, max_views=MAX_VIEWS, is_late=is_late
        )

    def start(self, n: int) -> OverlapState:
        """Views from n independent components."""
        R, _ = self.table.residuals(self.empty)
        state = self.empty
        for z in independent_components(R, n, self.rng)[:MAX_VIEWS] if n else []:
            state = add_view(state, z, [])
        return self.search.columns(state)

    def with_factor(self, state: OverlapState) -> OverlapState:
        """One more factor, along the first broad direction of the residuals, if there is one."""
        R, rank = self.table.residuals(state)[0], state.hyper.effects.rank
        found = broad_directions(R)[:, :1]
        if not found.shape[1]:
            if self.rank is None:
                return state
            found = self.rng.standard_normal((len(R), 1))
        rows = np.hstack([state.hyper.effects.rows, found]) if rank else found
        state = set_rows(state, np.ascontiguousarray(rows))
        for _ in range(N_FACTOR_STEPS):
            state = self.search.columns(self.table.nuisance_step(state, None))
        state = self.table.learn_gain(state, self.rng)
        return self.search.refine(state)

    def improved(self, state: OverlapState) -> tuple[OverlapState, bool]:
        """The state with one more factor, beside the views or in the place of one, if that has more evidence.

        Beside the factor that replaces a view, views are looked for as well: the view may have mixed both. This is left
        out where the views leave no direction and the view has too few clusters for a mixture.
        """
        now, rank, is_left = self.search.score(state), state.hyper.effects.rank, True
        largest = np.argsort(-state.Y.sum(axis=0), kind="stable")
        for v in [-1, *largest]:
            if self.is_late():
                break
            trial = self.with_factor(without_views(state, np.arange(state.n_views) == v))
            if trial.hyper.effects.rank > rank:
                if is_left or may_be_mixed(state.Z[v]):
                    trial, _ = self.search.births(trial)
                if self.search.score(trial) > now + MIN_GAIN:
                    return trial, True
            elif v < 0:
                is_left = False
        return state, False

    def centered(self, state: OverlapState) -> OverlapState:
        """The state with row factors that do not depend on the labels, if that has more evidence.

        A factor plus effects of clusters fits as well as the factor, if all columns belong to these clusters: then the
        views do not separate. Small
        steps hardly leave such a state.
        """
        rows = state.hyper.effects.rows
        if rows is None or not state.n_views or self.is_late():
            return state
        W = np.hstack([np.eye(int(z.max()) + 1)[z] for z in state.Z])
        rest = rows - W @ np.linalg.lstsq(W, rows, rcond=None)[0]
        spread = rest.std(axis=0)
        spread = np.where(spread > 0, spread, 1.0)
        gain = state.hyper.effects.gain
        trial = set_rows(state, np.ascontiguousarray(rest / spread), None if gain is None else gain * spread)
        trial = self.search.refine(self.search.columns(trial))
        return trial if self.search.score(trial) > self.search.score(state) else state

    def without_needless_views(self, state: OverlapState) -> OverlapState:
        """Remove views that row factors make unnecessary, the one with most clusters first."""
        now = self.search.score(state)
        for labels in sorted(state.Z, key=lambda z: -int(z.max())):
            same = np.array([z is labels for z in state.Z], dtype=bool)
            if same.any() and not self.is_late():
                trial = self.search.refine(without_views(state, same))
                then = self.search.score(trial)
                if then > now:
                    return self.without_needless_views(trial)
        return state

    def grow(self, state: OverlapState) -> OverlapState:
        """Add factors as long as that increases the evidence, or until there are as many as asked for."""
        better, most = True, MAX_RANK if self.rank is None else self.rank
        while better and state.hyper.effects.rank < most and not self.is_late():
            state, better = self.improved(self.search.columns(self.table.learn(state, self.rng)))
            if better:
                state = self.without_needless_views(self.centered(state))
        while self.rank is not None and state.hyper.effects.rank < self.rank:
            state = self.with_factor(state)
        return self.search.remove_factors(state) if self.rank is None else state

    def run(self) -> OverlapState:
        """The best state from several starts; if the first has no use for a factor, from that one.

        The number of components depends on the noise, which is first assumed to be all of a column's variance.
        """
        R = np.nan_to_num(self.table.residuals(self.empty)[0])
        n_large = int((np.linalg.eigvalsh(R.T @ R / len(R)) > EDGE_MARGIN * noise_edge(R)).sum())
        numbers = dict.fromkeys([n_large, min(n_directions(R), MAX_COMPONENTS)])
        best = None
        for n in numbers:
            state = self.grow(self.start(n))
            if best is None or self.search.score(state) > self.search.score(best):
                best = state
            if not best.hyper.effects.rank or self.is_late():
                break
        assert best is not None
        return best


class FirstRowFactors(NamedTuple):
    """Row factors and their gains at the start of searches and chains."""

    rows: np.ndarray | None  # [row, rank]; None for none
    gain: np.ndarray | None  # [rank]; None for a model in which all gains are 0
    views: tuple[np.ndarray, ...] = ()  # labels of the rows in the views that were found with them
    # [rank, column] bool: columns that have a part in each row factor; None: all have a part in all
    parts: np.ndarray | None = None
    # for each group of columns with row factors of its own: its columns (bool), and labels of the rows
    groups: tuple[tuple[np.ndarray, np.ndarray], ...] = ()


NO_ROW_FACTORS = FirstRowFactors(None, None)


def find_row_factors(
    columns: AdditiveColumns,
    nuisance: Any,
    rng: np.random.Generator,
    max_per_column: int,
    is_late: Callable[[], bool] = lambda: False,
    *,
    gain: bool = False,
) -> FirstRowFactors:
    """Row factors of all rows from which searches and chains start.

    ``nuisance`` is the number of those that all columns share, or "auto" to choose it, and to look for row factors of
    groups of columns as well. Tables with few rows or columns have none by "auto". Without ``gain``, all gains are 0.
    """
    rank = None if nuisance == "auto" else int(nuisance)
    N, D = columns.n_rows, columns.n_columns
    if rank == 0 or (rank is None and N < MIN_ROWS):
        return NO_ROW_FACTORS
    rows, kept = _sampled(N, MAX_SEARCHED_ROWS, rng), _sampled(D, MAX_SEARCHED_COLUMNS, rng)
    if rank is None:
        groups = find_group_factors(columns.X, rows, rng.spawn(1)[0], is_late)
    else:
        groups = no_group_factors(columns.X)
    first = NO_ROW_FACTORS
    if rank is not None or D >= MIN_COLUMNS:
        sample = read_reals(groups.rest[np.ix_(rows, kept)])
        no_gain = np.zeros(0) if gain else None
        state = RowFactorSearch(sample, rng, max_per_column, rank, is_late, no_gain).run()
        effects = state.hyper.effects
        first = FirstRowFactors(effects.rows, effects.gain, state.Z)
        if effects.rows is not None and len(rows) < N:
            F, Z = extend_rows(read_reals(groups.rest[:, kept]), sample, state)
            first = FirstRowFactors(F, effects.gain, Z)
    return _with_groups(first, groups, len(rows) < N) if len(groups.parts) else first


def _with_groups(first: FirstRowFactors, groups: GroupFactors, is_sample: bool) -> FirstRowFactors:
    """Row factors of all columns, then those of groups, which have no gain."""
    rows = np.zeros((len(groups.rows), 0)) if first.rows is None else first.rows
    parts = np.vstack([np.ones((rows.shape[1], groups.parts.shape[1]), bool), groups.parts])
    gain = None
    if first.gain is not None and rows.shape[1]:
        gain = np.concatenate([first.gain, np.zeros(len(groups.parts))])
    views = () if is_sample and first.rows is None else first.views  # labels of a sample are of no use
    known = [canonical(z) for z in groups.labels if np.ptp(z) > 0]
    new = [z for z in views if all(label_similarity(z, other) <= MIN_MERGE_NMI for other in known)]
    rows = np.ascontiguousarray(np.hstack([rows, groups.rows]))
    return FirstRowFactors(rows, gain, (*known, *new), parts, groups.labeled)


def _sampled(n: int, most: int, rng: np.random.Generator) -> np.ndarray:
    return np.sort(rng.choice(n, most, replace=False)) if n > most else np.arange(n)


def extend_rows(
    columns: AdditiveColumns, sample: AdditiveColumns, state: OverlapState
) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
    """Row factors and labels of all rows from the parameters of a sample, by turns."""
    hyper = state.hyper.effects
    found = sample.parameters(state, hyper, None)
    gain = np.zeros(hyper.rank) if hyper.gain is None else hyper.gain
    precision = found.noise**-2.0
    means = np.tile(found.intercept, (columns.n_rows, 1))
    F = draw_row_factors(columns.X - means, found.loadings, precision, None)
    parts = [np.zeros_like(means) for _ in state.Z]
    Z = [np.zeros(columns.n_rows, np.int64) for _ in state.Z]
    for _ in range(N_EXTENSION_STEPS):
        size, raw = row_sizes(F, gain)[:, None], columns.X - F @ found.loadings
        for v, (z, effect) in enumerate(zip(state.Z, found.effects, strict=True)):
            means -= parts[v]
            rest = raw - size * means
            weighted = np.where(np.isnan(rest), 0.0, rest) * size * precision @ effect.T
            fit = weighted - 0.5 * (~np.isnan(rest) * size**2 * precision) @ (effect**2).T
            Z[v] = (fit + np.log(np.bincount(z, minlength=len(effect)))).argmax(axis=1)
            parts[v] = effect[Z[v]]
            means += parts[v]
        slopes = found.loadings[:, None, :] + gain[:, None, None] * means
        F = draw_row_factors(columns.X - means, slopes, precision, None)
    return F, tuple(Z)
