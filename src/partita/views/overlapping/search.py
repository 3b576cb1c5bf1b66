"""Search for a good state of overlapping views: where chains start, and what is polished.

A chain of single moves does not find ten views from none. The search climbs the joint probability by large steps: views
from groups of dependent columns, births of views on the residuals of the others, merges of views with like labels, and
the removal of a view whose columns are then explained anew, by several smaller views (a view that mixes two has too
many clusters). It leaves no posterior invariant and does not have to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from partita.families.gaussian import GaussianDiagonal
from partita.families.rows import add_statistics, log_marginals
from partita.labels import contingency
from partita.labels.information import normalized_mutual_information
from partita.views.overlapping.features import choose_views
from partita.views.overlapping.polish import label_entropies, scaled_residuals
from partita.views.overlapping.screen import (
    cluster_rows,
    group_columns,
    independent_parts,
    n_directions,
    screen_dependence,
)
from partita.views.overlapping.state import State, add_view, log_joint, log_view, without_views
from partita.views.overlapping.table import OverlapTable

__all__ = ["OverlapSearch", "likeness"]

LIKE = 0.3  # views whose labels are more alike than this are tried as one
LEAST_GAIN = 1.0  # of the log joint, for a change of structure
SHARE = 0.05  # smaller clusters do not count as a sign of a mixed view
ROUNDS = 8
REFACTOR = (1, 2, 3)  # rounds in which mixed views are taken apart


def likeness(a: np.ndarray, b: np.ndarray) -> float:
    """Normalised mutual information of two labelings (arithmetic mean).

    Examples
    --------
    >>> likeness(np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0]))
    1.0
    """
    return normalized_mutual_information(contingency(a, b, sparse=False))


class OverlapSearch:
    """One search over a table from a state without views; ``largest`` views a column, ``max_views`` in all.

    ``is_late`` is asked before every large step; from then on what was found is only tidied up.
    """

    def __init__(
        self,
        table: OverlapTable,
        rng: np.random.Generator,
        empty: State,
        *,
        largest: int,
        max_views: int,
        is_late: Callable[[], bool] = lambda: False,
    ):
        self.table, self.rng, self.empty = table, rng, empty
        self.largest, self.max_views = largest, max_views
        self.is_late = is_late

    # ---- pieces ----------------------------------------------------------------------------------------------

    def score(self, state: State) -> float:
        """Log joint, and the entropy of the labels: a bound on what the memberships are worth, whatever the labels.

        The log joint of one draw of the labels alone would refuse every view whose labels are uncertain.
        """
        entropy = float(label_entropies(self.table, state).sum())
        return log_joint(state, self.table.scores(state.Z, state.hyper)) + entropy

    def prune(self, state: State) -> State:
        """Without views of one cluster or no column."""
        flat = np.array([z.max() == 0 for z in state.Z], dtype=bool)
        return without_views(state, flat | ~state.Y.any(axis=0))

    def columns(self, state: State, views: Any = None) -> State:
        """Best memberships given the labels, in all views or in some."""
        return self.prune(choose_views(self.table, state, largest=self.largest, views=views))

    def rows(self, state: State, **options: Any) -> State:
        """Better labels given the memberships."""
        if not state.Z:
            return state
        return self.prune(self.table.row_step(state, self.rng, exact=False, **options))

    def settle(self, state: State, n: int = 1) -> State:
        """Columns and rows in turn."""
        for _ in range(n):
            state = self.rows(self.columns(state))
        return self.columns(state)

    # ---- starts ------------------------------------------------------------------------------------------------

    def start(self, how: str) -> State:
        """Views to begin with.

        "screen": groups of dependent columns; "parts": independent components; "forward": the paper's search; "none".
        """
        state = self.empty
        if how == "none":
            return state
        R, owner = self.table.residuals(state)
        if how == "forward":
            return self.forward(state, R, owner)
        if how == "parts":
            labels = independent_parts(R, n_directions(R), self.rng)
            for z in labels[: self.max_views]:
                state = add_view(state, z, [])
            return choose_views(self.table, state, largest=self.largest)
        for group in group_columns(screen_dependence(R))[: self.max_views]:
            z = cluster_rows(R[:, group], self.rng)
            if z.max() > 0:
                state = add_view(state, z, np.unique(owner[group]))
        return state

    def forward(self, state: State, R: np.ndarray, owner: np.ndarray) -> State:
        """The paper's multiple forward search: a view grows by the column that its labels explain best.

        It starts from a column that no view has yet, the one that depends most on others, and may take any column. The
        labels are found anew as it grows.
        """
        pull = np.zeros(self.table.n_columns)
        np.maximum.at(pull, owner, screen_dependence(R).sum(axis=1))
        left = np.ones(len(pull), dtype=bool)
        while left.any() and state.n_views < self.max_views and not self.is_late():
            members = [int(np.where(left, pull, -1.0).argmax())]
            z, fitted = cluster_rows(R[:, owner == members[0]], self.rng), 1
            while z.max() > 0:
                scores = self.table.scores((z,), state.hyper)
                gain = scores((0,)) - scores(())
                gain[members] = -np.inf
                if gain.max() <= 0:
                    break
                members.append(int(gain.argmax()))
                if len(members) >= 1.5 * fitted:
                    z, fitted = cluster_rows(R[:, np.isin(owner, members)], self.rng), len(members)
            left[members] = False
            if z.max() > 0 and len(members) > 1:
                state = add_view(state, z, members)
        return state

    # ---- moves -------------------------------------------------------------------------------------------------

    def births(self, state: State) -> tuple[State, int]:
        """New views where residuals depend on each other."""
        n_born, now = 0, self.score(state)
        R, owner = self.table.residuals(state)
        for group in group_columns(screen_dependence(R)):
            if state.n_views >= self.max_views or self.is_late():
                break
            z = cluster_rows(R[:, group], self.rng)
            if z.max() == 0:
                continue
            trial = add_view(state, z, np.unique(owner[group]))
            new = [trial.n_views - 1]
            trial = self.table.row_step(trial, self.rng, exact=False, views=new, n_sweeps=2)
            # counting cells for all sets of views is dear, and a new view changes little but its own columns
            trial = self.columns(trial, None if self.table.cells is None else new)
            then = self.score(trial)
            if then > now + LEAST_GAIN:
                state, now, n_born = trial, then, n_born + 1
        return state, n_born

    def merges(self, state: State) -> State:
        """One view instead of two with like labels, as long as that is better."""
        again = True
        while again:
            again, now = False, self.score(state)
            pairs = [(a, b) for a in range(state.n_views) for b in range(a + 1, state.n_views)]
            for a, b in pairs:
                if self.is_late() or likeness(state.Z[a], state.Z[b]) <= LIKE:
                    continue
                keep, drop = (a, b) if state.Y[:, a].sum() >= state.Y[:, b].sum() else (b, a)
                Y = state.Y.copy()
                Y[:, keep] |= Y[:, drop]
                trial = self.settle(without_views(state._replace(Y=Y), np.arange(Y.shape[1]) == drop))
                if self.score(trial) > now:
                    state, again = trial, True
                    break
        return state

    def refactor(self, state: State, v: int, how: str) -> tuple[State, bool]:
        """Explain the columns of view v anew, by smaller views."""
        R, owner = self.table.residuals(without_views(state, np.arange(state.n_views) == v))
        R = R[:, state.Y[owner, v]]
        if R.shape[1] < 3 or state.n_views >= self.max_views:
            return state, False
        R = np.where(np.isnan(R), 0.0, R)
        R = R / np.maximum(R.std(axis=0), 1e-12)
        near = np.abs(R.T @ R) / len(R)
        if how == "parts":
            labels = independent_parts(R, n_directions(R), self.rng, (2, 3, 4))
        else:
            seeds = self.rng.integers(R.shape[1], size=2)
            tops = [np.argsort(-near[j])[: max(3, R.shape[1] // 4)] for j in seeds]
            labels = [cluster_rows(R[:, top], self.rng, (2, 3)) for top in tops]
        trial = without_views(state, np.arange(state.n_views) == v)
        for z in labels[: self.max_views - trial.n_views]:
            if z.max() > 0:
                trial = add_view(trial, z, [])
        trial, _ = self.births(self.settle(trial, 3))
        better = self.score(trial) > self.score(state) + LEAST_GAIN
        return (trial, True) if better else (state, False)

    def weed(self, state: State) -> State:
        """Without the views of real columns that only make up for clusters of unequal width.

        A wide and a narrow cluster in one column look like a further view to a model with one noise for all. Judged by
        residuals that the other views' clusters have scaled, such a view is not worth its labels.
        """
        while state.n_views and self.table.real is not None:
            entropy = label_entropies(self.table, state)
            worth = [self.worth(state, v) + entropy[v] for v in range(state.n_views)]
            v = int(np.argmin(worth))
            if worth[v] >= 0:
                return state
            state = self.columns(without_views(state, np.arange(state.n_views) == v))
        return state

    def worth(self, state: State, v: int) -> float:
        """Log odds of a view of real columns against none, the other views being as they are."""
        if state.Y[self.table.n_real :, v].any():
            return np.inf  # other columns speak for it
        f = np.flatnonzero(state.Y[:, v])
        R = scaled_residuals(self.table, without_views(state, np.arange(state.n_views) == v))[:, f]
        family = GaussianDiagonal.default(len(f), b=1.0)
        apart, together = (np.zeros((3 * len(f), K)) for K in (int(state.Z[v].max()) + 1, 1))
        add_statistics(family, np.ascontiguousarray(R), state.Z[v], apart)
        together[:, 0] = apart.sum(axis=1)
        gain = log_marginals(family, apart).sum() - log_marginals(family, together).sum()
        return float(gain + log_view(state, v))

    # ---- the whole -----------------------------------------------------------------------------------------------

    def run(self, how: str = "screen", learn: bool = True) -> State:
        """From a start to a state that no large step improves."""
        state = self.columns(self.start(how))
        grow, best = True, -np.inf
        for round_ in range(ROUNDS):
            state = self.rows(self.columns(state))
            if learn and round_:
                state = self.table.learn(state, self.rng)
            born = 0
            if grow:
                state, born = self.births(state)
                grow = born > 0 or round_ < 2
            state = self.merges(state)
            if round_ in REFACTOR and self.table.real is not None:  # cells do not add up
                state, changed = self.take_apart(state)
                grow = grow or changed
            now = self.score(state)
            if now < best + LEAST_GAIN and not born and round_ > max(REFACTOR):
                break
            best = max(best, now)
            if self.is_late():
                break
        return self.weed(self.columns(state))

    def take_apart(self, state: State) -> tuple[State, bool]:
        """Try to refactor each view with at least four clusters of some size."""
        changed = False
        for v in np.argsort([-int(z.max()) for z in state.Z], kind="stable"):
            if self.is_late():
                break
            if v >= state.n_views or (np.bincount(state.Z[v]) > SHARE * self.table.n_rows).sum() < 4:
                continue
            for how in ("parts", "seeds"):
                state, better = self.refactor(state, int(v), how)
                if better:
                    changed = True
                    break
        return state, changed
