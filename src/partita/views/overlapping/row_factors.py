"""Search for the number of row factors and their first values, before the search for views.

A row factor and a clustering both make columns depend on each other. Which of the two a direction of the table is shows
in the evidence: three clusters cost a row about one nat and a continuous factor several, but a factor explains all of a
brightness, and clusters only their means. The search therefore begins with views from independent components, and then
adds factors along the residuals of the views, or in the place of a view, as long as the evidence increases.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from partita.views.nuisance import draw_row_factors
from partita.views.overlapping.additive import AdditiveColumns, Effects, read_reals, set_rows
from partita.views.overlapping.first_labels import independent_components
from partita.views.overlapping.search import MIN_GAIN, OverlapSearch
from partita.views.overlapping.state import OverlapState, add_view, empty_state, without_views
from partita.views.overlapping.table import OverlapHyper, OverlapTable

MIN_COLUMNS, MIN_ROWS = 5, 30  # of a table in which row factors are looked for
MAX_RANK = 5  # row factors that are looked for
MAX_VIEWS = 24  # during this search
MAX_SEARCHED_ROWS = 1000  # the loadings come from a sample of the rows
N_FACTOR_STEPS, N_EXTENSION_STEPS = 2, 5
EDGE_MARGIN = 1.1  # by which a variance exceeds that of the largest direction of noise


def leading_directions(R: np.ndarray) -> tuple[np.ndarray, int]:
    """Principal components of columns of unit noise, [row, component], and how many exceed the edge of noise."""
    R = np.where(np.isnan(R), 0.0, R)
    R = R - R.mean(axis=0)
    U, S, _ = np.linalg.svd(R, full_matrices=False)
    edge = (1.0 + math.sqrt(R.shape[1] / len(R))) ** 2
    return U * math.sqrt(len(R)), int((S**2 / len(R) > EDGE_MARGIN * edge).sum())


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
    """

    def __init__(
        self,
        columns: AdditiveColumns,
        rng: np.random.Generator,
        max_per_column: int,
        rank: int | None = None,
        is_late: Callable[[], bool] = lambda: False,
    ):
        self.table, self.rng, self.rank, self.is_late = OverlapTable(columns, None), rng, rank, is_late
        self.empty = empty_state(columns.n_columns, OverlapHyper(Effects(), ()))
        self.max_per_column = max_per_column
        self.search = OverlapSearch(
            self.table, rng, self.empty, max_per_column=max_per_column, max_views=MAX_VIEWS, is_late=is_late
        )

    def start(self) -> OverlapState:
        """Views from independent components of the directions above the edge of noise."""
        R, _ = self.table.residuals(self.empty)
        state, n = self.empty, leading_directions(R)[1]
        for z in independent_components(R, n, self.rng)[:MAX_VIEWS] if n else []:
            state = add_view(state, z, [])
        return self.search.columns(state)

    def with_factor(self, state: OverlapState) -> OverlapState:
        """One more factor, along the leading direction of the residuals, if one is above the edge of noise."""
        U, n = leading_directions(self.table.residuals(state)[0])
        if n == 0 and (self.rank is None or not U.shape[1]):
            return state
        rank = state.hyper.effects.rank
        rows = np.hstack([state.hyper.effects.rows, U[:, :1]]) if rank else U[:, :1]
        state = set_rows(state, np.ascontiguousarray(rows))
        for _ in range(N_FACTOR_STEPS):
            state = self.search.columns(self.table.nuisance_step(state, None))
        return self.search.refine(state)

    def improved(self, state: OverlapState) -> tuple[OverlapState, bool]:
        """The state with one more factor, beside the views or in the place of one, if that has more evidence."""
        now, rank = self.search.score(state), state.hyper.effects.rank
        largest = np.argsort(-state.Y.sum(axis=0), kind="stable")
        for v in [-1, *largest]:
            if self.is_late():
                break
            trial = self.with_factor(without_views(state, np.arange(state.n_views) == v))
            if trial.hyper.effects.rank > rank:
                trial, _ = self.search.births(trial)
                if self.search.score(trial) > now + MIN_GAIN:
                    return trial, True
        return state, False

    def run(self) -> OverlapState:
        """Add factors as long as that increases the evidence, or until there are as many as asked for."""
        state, better = self.start(), True
        most = MAX_RANK if self.rank is None else self.rank
        while better and state.hyper.effects.rank < most and not self.is_late():
            state, better = self.improved(self.search.columns(self.table.learn(state, self.rng)))
        while self.rank is not None and state.hyper.effects.rank < self.rank:
            state = self.with_factor(state)
        if self.rank is None:
            state = self.search.remove_factors(state)
        return state


def find_row_factors(
    columns: AdditiveColumns,
    nuisance: Any,
    rng: np.random.Generator,
    max_per_column: int,
    is_late: Callable[[], bool] = lambda: False,
) -> np.ndarray | None:
    """Row factors of all rows, [row, rank], from which searches and chains start; None for none.

    ``nuisance`` is their number, or "auto" to choose it. Tables with few rows or columns have none by "auto".
    """
    rank = None if nuisance == "auto" else int(nuisance)
    N = columns.n_rows
    if rank == 0 or (rank is None and (columns.n_columns < MIN_COLUMNS or N < MIN_ROWS)):
        return None
    rows = np.sort(rng.choice(N, MAX_SEARCHED_ROWS, replace=False)) if N > MAX_SEARCHED_ROWS else np.arange(N)
    sample = columns if len(rows) == N else read_reals(columns.X[rows])
    state = RowFactorSearch(sample, rng, max_per_column, rank, is_late).run()
    effects = state.hyper.effects
    if effects.rows is None or len(rows) == N:
        return effects.rows
    return extend_rows(columns, sample, state)


def extend_rows(columns: AdditiveColumns, sample: AdditiveColumns, state: OverlapState) -> np.ndarray:
    """Row factors of all rows from the parameters of a sample, by turns with the labels of the rows."""
    hyper = state.hyper.effects
    found = sample.parameters(state, hyper, None)
    assert hyper.rows is not None
    explained = hyper.rows @ found.loadings
    for z, effect in zip(state.Z, found.effects, strict=True):
        explained = explained + effect[z]
    intercept = np.nanmean(sample.X - explained - found.residual, axis=0)
    precision, raw = found.noise**-2.0, columns.X - intercept
    F = draw_row_factors(raw, found.loadings, precision, None)
    parts = [np.zeros((columns.n_rows, columns.n_columns)) for _ in state.Z]
    for _ in range(N_EXTENSION_STEPS):
        rest = raw - F @ found.loadings - sum(parts)
        for v, (z, effect) in enumerate(zip(state.Z, found.effects, strict=True)):
            rest += parts[v]
            weighted = np.where(np.isnan(rest), 0.0, rest) * precision @ effect.T
            fit = weighted - 0.5 * (~np.isnan(rest) * precision) @ (effect**2).T
            labels = (fit + np.log(np.bincount(z, minlength=len(effect)))).argmax(axis=1)
            parts[v] = effect[labels]
            rest -= parts[v]
        F = draw_row_factors(rest + F @ found.loadings, found.loadings, precision, None)
    return F
