"""Disjoint views with full covariances: Gaussian clusters over all columns of a view, with Gaussian-Wishart priors.

The columns of a view are correlated within its clusters, so the likelihood of a column depends on the other columns of
the view. Sums and cross products of all columns in every cluster are computed once per step; any set of columns needs
only a part of them, so the cost of the feature step does not grow with the number of rows. A column has one view or
none: with several views and full covariances the normalizing constant of the model of Niu, Dy and Ghahramani has no
closed form once parameters are integrated out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partita.engines.gibbs.split_merge import sample_labels
from partita.families.gaussian_full import GaussianFull
from partita.families.registry import Block
from partita.families.rows import log_marginals
from partita.partitions import DirichletProcess
from partita.partitions import simulate as simulate_labels
from partita.partitions.buffet import log_odds, new_dish_rate
from partita.views.overlapping.additive import Effects
from partita.views.overlapping.state import OverlapState, add_view, by_views, log_prior, without_views
from partita.views.overlapping.table import OverlapHyper


class ClusterMoments:
    """Counts, sums and cross products of all columns in each cluster of one labeling."""

    def __init__(self, X: np.ndarray, z: np.ndarray):
        self.parts = [
            (float((z == k).sum()), X[z == k].sum(axis=0), X[z == k].T @ X[z == k])
            for k in range(z.max() + 1)
        ]
        self.memo: dict[tuple[int, ...], float] = {(): 0.0}

    def evidence(self, columns: tuple[int, ...]) -> float:
        """Log marginal likelihood of some columns."""
        if columns not in self.memo:
            f, lower = np.array(columns), np.tril_indices(len(columns))
            S = np.array([np.concatenate([[n], s[f], P[np.ix_(f, f)][lower]]) for n, s, P in self.parts]).T
            family = GaussianFull.default(len(f))
            self.memo[columns] = float(log_marginals(family, np.ascontiguousarray(S)).sum())
        return self.memo[columns]


class FullTable(NamedTuple):
    """Standardized columns without missing cells."""

    X: np.ndarray

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.X)

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return self.X.shape[1]

    def default_hyper(self) -> OverlapHyper:
        """Hyper-parameters at the start; the likelihood has none that are learned."""
        return OverlapHyper(Effects(), ())

    def learn(self, state: OverlapState, rng: np.random.Generator) -> OverlapState:
        """The state unchanged: the likelihood has no hyper-parameters that are learned."""
        return state

    def log_joint(self, state: OverlapState) -> float:
        """Log probability of data, memberships and labels."""
        total = log_prior(state)
        for views, columns in by_views(state.Y).items():
            if views:
                total += ClusterMoments(self.X, state.Z[views[0]]).evidence(tuple(columns))
            else:
                alone = ClusterMoments(self.X, np.zeros(len(self.X), dtype=np.int64))
                total += sum(alone.evidence((d,)) for d in columns)
        return total

    def row_step(
        self, state: OverlapState, rng: np.random.Generator, *, n_sweeps: int = 1, n_moves: int = 3
    ) -> OverlapState:
        """Draw the labels of the rows in every view; leaves the posterior invariant."""
        Z, prior = [], DirichletProcess(state.concentration)
        for v, z in enumerate(state.Z):
            X = np.ascontiguousarray(self.X[:, state.Y[:, v]])
            block = Block(GaussianFull.default(X.shape[1]), X, ())
            Z.append(sample_labels([block], z, prior, rng, n_sweeps, n_moves))
        return state._replace(Z=tuple(Z))

    def feature_step(
        self, state: OverlapState, rng: np.random.Generator, *, max_per_column: int = 1, max_views: int
    ) -> OverlapState:
        """Draw the memberships, column after column; leaves the posterior invariant."""
        alone = ClusterMoments(self.X, np.zeros(len(self.X), dtype=np.int64))
        views = [ClusterMoments(self.X, z) for z in state.Z]
        D = self.n_columns
        for d in rng.permutation(D):
            Y = state.Y.copy()
            mine = np.flatnonzero(Y[d])
            Y[d] = False
            m = Y.sum(axis=0)
            own = mine[m[mine] == 0]
            if len(own) == 0:
                gain = np.array([_gain(views[v], Y[:, v], d) for v in range(len(views))])
                lp = np.append(gain + log_odds(state.buffet, m, D), alone.evidence((d,)))
                p = np.exp(lp - lp.max())
                choice = int(rng.choice(len(p), p=p / p.sum()))
                if choice < len(views):
                    Y[d, choice] = True
            else:
                Y[d, own] = True
            state = state._replace(Y=Y)
            state, views = self._own_view(state, views, alone, int(d), m, max_views, rng)
        return state

    def _own_view(
        self, state, views, alone, d, m, max_views, rng
    ) -> tuple[OverlapState, list[ClusterMoments]]:
        """Replace the view of column d alone: number and labels proposed from the prior, accepted by the likelihood."""
        own = np.flatnonzero(state.Y[d] & (m == 0))
        n_new = rng.poisson(new_dish_rate(state.buffet, self.n_columns))
        shared = int((state.Y[d] & (m > 0)).sum())
        nothing = n_new == 0 and len(own) == 0
        if nothing or shared + n_new > 1 or (m > 0).sum() + n_new > max_views:
            return state, views
        now = views[own[0]].evidence((d,)) if len(own) else alone.evidence((d,))
        drop = np.zeros(state.n_views, dtype=bool)
        drop[own] = True
        trial = without_views(state, drop)
        kept = [view for view, gone in zip(views, drop, strict=True) if not gone]
        then = alone.evidence((d,))
        if n_new:
            z = simulate_labels(DirichletProcess(state.concentration), self.n_rows, rng)
            trial = add_view(trial, z, [d])
            kept.append(ClusterMoments(self.X, trial.Z[-1]))
            then = kept[-1].evidence((d,))
        return (trial, kept) if np.log(rng.random()) < then - now else (state, views)


def _gain(view: ClusterMoments, y: np.ndarray, d: int) -> float:
    """Gain in the log evidence of a view if column d joins it; -inf for a view without other columns."""
    others = tuple(int(c) for c in np.flatnonzero(y))
    if not others:
        return -np.inf
    return view.evidence(tuple(sorted((*others, int(d))))) - view.evidence(others)
