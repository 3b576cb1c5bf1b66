"""Search for a probable state of overlapping views, from which chains start and whose labels are polished.

A chain of single moves hardly finds ten views from none. The search increases the joint probability by large steps:
views from groups of dependent columns, births of views from the residuals of the others, merges of views with similar
labels, and the replacement of a view by several smaller ones (a view that mixes two others has too many clusters). It
is an optimization: its steps do not leave the posterior invariant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from partita.families.gaussian import GaussianDiagonal
from partita.families.rows import add_statistics, log_marginals
from partita.labels import contingency
from partita.labels.information import normalized_mutual_information
from partita.views.nuisance import safe_sizes
from partita.views.overlapping.additive import set_rows
from partita.views.overlapping.features import choose_views
from partita.views.overlapping.first_labels import (
    cluster_rows,
    group_columns,
    independent_components,
    n_directions,
    screen_columns,
)
from partita.views.overlapping.polish import label_entropies, scaled_residuals
from partita.views.overlapping.state import OverlapState, add_view, log_joint, log_view, without_views
from partita.views.overlapping.table import OverlapTable

MIN_MERGE_NMI = 0.3  # mutual information of the labels of two views above which a merge is tried
MIN_GAIN = 1.0  # of the score, for a change of structure
# Sum over the pairs of columns of a group below which no birth is tried. Among thousands of pairs some are above the
# threshold of groups by chance; two columns whose dependence is below this one never pay for the labels of a view.
MIN_BIRTH_EXCESS = 10.0
MIN_CLUSTER_SHARE = 0.05  # of the rows; smaller clusters are no sign of a mixed view
MIN_MIXED_CLUSTERS = 4  # clusters of a view that may mix two others
MIN_COLUMN_GROWTH = 1.5  # factor by which a view grows before the forward search clusters the rows again
N_ROUNDS = 8
REPLACE_ROUNDS = (1, 2, 3)  # rounds in which mixed views are replaced by smaller ones


def label_similarity(a: np.ndarray, b: np.ndarray) -> float:
    """Normalized mutual information of two labelings (arithmetic mean).

    Examples
    --------
    >>> label_similarity(np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0]))
    1.0
    """
    return normalized_mutual_information(contingency(a, b, sparse=False))


class OverlapSearch:
    """One search, from a state without views to at most ``max_views`` views and ``max_per_column`` per column.

    Unless ``keep_rank``, row factors that the views make unnecessary are removed at the end. ``found`` holds labels of
    views that were found before.

    ``is_late`` is called before every large step; once it returns True no further large step is tried.
    """

    def __init__(
        self,
        table: OverlapTable,
        rng: np.random.Generator,
        empty: OverlapState,
        *,
        max_per_column: int,
        max_views: int,
        is_late: Callable[[], bool] = lambda: False,
        keep_rank: bool = True,
        found: Sequence[np.ndarray] = (),
    ):
        self.table, self.rng, self.empty, self.keep_rank = table, rng, empty, keep_rank
        self.max_per_column, self.max_views = max_per_column, max_views
        self.is_late, self.found = is_late, found

    # ---- small steps -----------------------------------------------------------------------------------------

    def score(self, state: OverlapState) -> float:
        """Log joint plus entropy of the labels: a lower bound on the log probability of the memberships.

        The log joint of one labeling alone would reject every view with uncertain labels.
        """
        entropy = float(label_entropies(self.table, state).sum())
        given_rows = log_joint(state, self.table.scores(state.Z, state.hyper))
        return given_rows + self.table.log_rows(state, marginal=True) + entropy

    def prune(self, state: OverlapState) -> OverlapState:
        """The state without views that have one cluster or no column."""
        flat = np.array([z.max() == 0 for z in state.Z], dtype=bool)
        return without_views(state, flat | ~state.Y.any(axis=0))

    def columns(self, state: OverlapState, views: Any = None) -> OverlapState:
        """The most probable memberships given the labels, in all views or in some."""
        return self.prune(choose_views(self.table, state, max_per_column=self.max_per_column, views=views))

    def rows(self, state: OverlapState, **options: Any) -> OverlapState:
        """Update the labels given the memberships, then the row factors."""
        if state.Z:
            state = self.prune(self.table.row_step(state, self.rng, exact=False, **options))
        return self.table.nuisance_step(state, None)

    def refine(self, state: OverlapState, n: int = 1) -> OverlapState:
        """Update memberships and labels in turn."""
        for _ in range(n):
            state = self.rows(self.columns(state))
        return self.columns(state)

    # ---- starts ------------------------------------------------------------------------------------------------

    def start(self, how: str) -> OverlapState:
        """The first views.

        "found": those that were found with the row factors; "screen": groups of dependent columns; "components":
        independent components; "forward": forward search; "none".
        """
        state = self.empty
        if how == "none":
            return state
        if how == "found":
            return self.from_labels(self.found)
        R, owner = self.table.residuals(state)
        sizes = state.hyper.effects.sizes
        if sizes is not None:
            R = np.where(owner < self.table.n_additive, R / safe_sizes(sizes)[:, None], R)
        if how == "forward":
            return self.forward(state, R, owner)
        if how == "components":
            return self.from_labels(independent_components(R, n_directions(R), self.rng))
        for group in group_columns(screen_columns(R))[: self.max_views]:
            z = cluster_rows(R[:, group], self.rng)
            if z.max() > 0:
                state = add_view(state, z, np.unique(owner[group]))
        return state

    def from_labels(self, labels: Sequence[np.ndarray]) -> OverlapState:
        """The most probable memberships in views with these labels."""
        state = self.empty
        for z in labels[: self.max_views]:
            state = add_view(state, z, [])
        return choose_views(self.table, state, max_per_column=self.max_per_column)

    def forward(self, state: OverlapState, R: np.ndarray, owner: np.ndarray) -> OverlapState:
        """Multiple forward search of Niu, Dy and Ghahramani: a view grows by the column that its labels explain best.

        It starts from the column without a view that depends most on other columns, and may add any column. The rows
        are clustered again as the view grows.
        """
        total_dependence = np.zeros(self.table.n_columns)
        np.maximum.at(total_dependence, owner, screen_columns(R).sum(axis=1))
        left = np.ones(len(total_dependence), dtype=bool)
        while left.any() and state.n_views < self.max_views and not self.is_late():
            members = [int(np.where(left, total_dependence, -1.0).argmax())]
            z, fitted = cluster_rows(R[:, owner == members[0]], self.rng), 1
            while z.max() > 0:
                scores = self.table.scores((z,), state.hyper)
                gain = scores((0,)) - scores(())
                gain[members] = -np.inf
                if gain.max() <= 0:
                    break
                members.append(int(gain.argmax()))
                if len(members) >= MIN_COLUMN_GROWTH * fitted:
                    z, fitted = cluster_rows(R[:, np.isin(owner, members)], self.rng), len(members)
            left[members] = False
            if z.max() > 0 and len(members) > 1:
                state = add_view(state, z, members)
        return state

    def scaled(self, state: OverlapState) -> tuple[np.ndarray, np.ndarray]:
        """Residuals as in :meth:`OverlapTable.residuals`, divided by the widths of the clusters.

        Clusters of different width would look like further views.
        """
        R, owner = self.table.residuals(state)
        n = self.table.n_additive
        if n and state.Y[:n].any():
            R[:, :n] = scaled_residuals(self.table, state, np.arange(n))
        return R, owner

    # ---- large steps -------------------------------------------------------------------------------------------

    def births(self, state: OverlapState) -> tuple[OverlapState, int]:
        """Add views for groups of columns with dependent residuals; also returns the number of new views."""
        n_born, now = 0, self.score(state)
        R, owner = self.scaled(state)
        dependence = screen_columns(R)
        for group in group_columns(dependence):
            if state.n_views >= self.max_views or self.is_late():
                break
            if dependence[np.ix_(group, group)].sum() < 2.0 * MIN_BIRTH_EXCESS:
                continue
            z = cluster_rows(R[:, group], self.rng)
            if z.max() == 0:
                continue
            trial = add_view(state, z, np.unique(owner[group]))
            new = [trial.n_views - 1]
            trial = self.table.row_step(trial, self.rng, exact=False, views=new, n_sweeps=2)
            # The memberships in all views are chosen again only for a view that is kept: that takes most of the time.
            trial = self.columns(trial, new)
            if trial.n_views <= state.n_views:  # no column belongs to the new view
                continue
            then = self.score(trial)
            if then > now + MIN_GAIN and self.table.combined is None:
                trial = self.columns(trial)
                then = self.score(trial)
            if then > now + MIN_GAIN:
                state, now, n_born = trial, then, n_born + 1
        return state, n_born

    def merges(self, state: OverlapState) -> OverlapState:
        """Merge views with similar labels as long as the score increases."""
        again = True
        while again:
            again, now = False, self.score(state)
            pairs = [(a, b) for a in range(state.n_views) for b in range(a + 1, state.n_views)]
            for a, b in pairs:
                if self.is_late() or label_similarity(state.Z[a], state.Z[b]) <= MIN_MERGE_NMI:
                    continue
                keep, drop = (a, b) if state.Y[:, a].sum() >= state.Y[:, b].sum() else (b, a)
                Y = state.Y.copy()
                Y[:, keep] |= Y[:, drop]
                trial = self.refine(without_views(state._replace(Y=Y), np.arange(Y.shape[1]) == drop))
                if self.score(trial) > now:
                    state, again = trial, True
                    break
        return state

    def replace(self, state: OverlapState, v: int, how: str) -> tuple[OverlapState, bool]:
        """Try to replace view v by smaller views; also returns whether that was accepted."""
        R, owner = self.table.residuals(without_views(state, np.arange(state.n_views) == v))
        R = R[:, state.Y[owner, v]]
        if R.shape[1] < 3 or state.n_views >= self.max_views:
            return state, False
        R = np.where(np.isnan(R), 0.0, R)
        R = R / np.maximum(R.std(axis=0), 1e-12)
        near = np.abs(R.T @ R) / len(R)
        if how == "components":
            labels = independent_components(R, n_directions(R), self.rng, (2, 3, 4))
        else:
            seeds = self.rng.integers(R.shape[1], size=2)
            tops = [np.argsort(-near[j])[: max(3, R.shape[1] // 4)] for j in seeds]
            labels = [cluster_rows(R[:, top], self.rng, (2, 3)) for top in tops]
        trial = without_views(state, np.arange(state.n_views) == v)
        for z in labels[: self.max_views - trial.n_views]:
            if z.max() > 0:
                trial = add_view(trial, z, [])
        trial, _ = self.births(self.refine(trial, 3))
        better = self.score(trial) > self.score(state) + MIN_GAIN
        return (trial, True) if better else (state, False)

    def remove_spurious(self, state: OverlapState) -> OverlapState:
        """Remove views of additive columns that only fit differences in the width of clusters.

        With one noise variance per column, a wide and a narrow cluster look like a further view. Such a view does not
        increase the evidence of residuals that are divided by the widths of the other views' clusters. Views without
        common columns do not depend on each other in this respect, and are removed together.
        """
        while state.n_views and self.table.additive is not None:
            entropy = label_entropies(self.table, state)
            log_odds = np.array([self.log_odds(state, v) for v in range(state.n_views)]) + entropy
            drop, taken = np.zeros(state.n_views, dtype=bool), np.zeros(len(state.Y), dtype=bool)
            for v in np.argsort(log_odds, kind="stable"):
                if log_odds[v] < 0 and not (state.Y[:, v] & taken).any():
                    drop[v] = True
                    taken |= state.Y[:, v]
            if not drop.any():
                return state
            state = self.columns(without_views(state, drop))
        return state

    def remove_factors(self, state: OverlapState) -> OverlapState:
        """Remove row factors that the views make unnecessary, one after the other, as long as the score increases.

        Those of groups of columns stay: a criterion has compared them with clusters of the group.
        """
        rank = state.hyper.effects.rank
        for r in reversed(range(rank)):
            effects = state.hyper.effects
            parts = effects.parts
            if parts is not None and not parts[r].all():
                continue
            rows = np.ascontiguousarray(np.delete(effects.rows, r, axis=1))
            gain = None if effects.gain is None else np.delete(effects.gain, r)
            parts = None if parts is None else np.delete(parts, r, axis=0)
            trial = set_rows(state, rows if rows.shape[1] else None, gain, parts)
            trial, _ = self.births(self.refine(trial))
            if self.score(trial) > self.score(state):
                state = trial
        return state

    def log_odds(self, state: OverlapState, v: int) -> float:
        """Log odds of a view against none, given the other views; infinite if it has columns that are not additive."""
        if state.Y[self.table.n_additive :, v].any():
            return np.inf
        f = np.flatnonzero(state.Y[:, v])
        R = scaled_residuals(self.table, without_views(state, np.arange(state.n_views) == v), f)
        family = GaussianDiagonal.default(len(f), b=1.0)
        apart, together = (np.zeros((3 * len(f), K)) for K in (int(state.Z[v].max()) + 1, 1))
        add_statistics(family, np.ascontiguousarray(R), state.Z[v], apart)
        together[:, 0] = apart.sum(axis=1)
        gain = log_marginals(family, apart).sum() - log_marginals(family, together).sum()
        return float(gain + log_view(state, v))

    # ---- search --------------------------------------------------------------------------------------------------

    def run(self, how: str = "screen", learn: bool = True) -> OverlapState:
        """Search until no large step improves the score, for at most ``N_ROUNDS`` rounds.

        Row factors follow the labels and labels the row factors, so a round may lower the score: the best state counts.
        """
        state = self.columns(self.start(how))
        grow, best, kept = True, -np.inf, state
        if state.hyper.effects.rank:
            best = self.score(state)
        for round_ in range(N_ROUNDS):
            state = self.rows(self.columns(state))
            if learn and round_:
                state = self.table.learn(state, self.rng)
            born = 0
            if grow:
                state, born = self.births(state)
                grow = born > 0 or round_ < 2
            state = self.merges(state)
            if (
                round_ in REPLACE_ROUNDS and self.table.additive is not None
            ):  # only additive effects can be separated
                state, changed = self.replace_mixed(state)
                grow = grow or changed
            now = self.score(state)
            if now < best + MIN_GAIN and not born and round_ > max(REPLACE_ROUNDS):
                break
            if now > best:
                best, kept = now, state
            if self.is_late():
                break
        if state.hyper.effects.rank and self.score(state) < best - MIN_GAIN:
            state = kept
        state = self.remove_spurious(self.columns(state))
        return state if self.keep_rank else self.remove_factors(state)

    def replace_mixed(self, state: OverlapState) -> tuple[OverlapState, bool]:
        """Try to replace each view that has several clusters of some size."""
        changed = False
        for v in np.argsort([-int(z.max()) for z in state.Z], kind="stable"):
            if self.is_late():
                break
            if v >= state.n_views:
                continue
            n_large = (np.bincount(state.Z[v]) > MIN_CLUSTER_SHARE * self.table.n_rows).sum()
            if n_large < MIN_MIXED_CLUSTERS:
                continue
            for how in ("components", "seeds"):
                state, better = self.replace(state, int(v), how)
                if better:
                    changed = True
                    break
        return state, changed
