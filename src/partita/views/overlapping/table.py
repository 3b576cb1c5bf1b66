"""A table under the overlapping model: additive columns first, then columns with a component per combination."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from partita.engines.gibbs.split_merge import sample_labels
from partita.families import Ties
from partita.partitions import DirichletProcess
from partita.views.depths import Depths, log_depth_volumes, log_depths, row_events, with_depths
from partita.views.overlapping.additive import AdditiveColumns, AdditiveParameters, Effects, read_reals
from partita.views.overlapping.combinations import CombinationColumns, combination_labels
from partita.views.overlapping.depths import depth_step
from partita.views.overlapping.features import feature_step
from partita.views.overlapping.state import OverlapState, by_views, log_joint
from partita.views.real_columns import draw_tied

MAX_LISTED_ADDITIVE, MAX_LISTED_COMBINED = 4000, 300  # sets of views whose scores are computed in advance


class OverlapHyper(NamedTuple):
    """Hyper-parameters of additive columns and of the other families, and the depths of the rows."""

    effects: Effects
    families: tuple[Any, ...]
    depths: Depths | None = None  # None for none


class TableScores:
    """Log marginal likelihood of every column under any set of views."""

    def __init__(self, parts: list[Any]):
        self.parts = parts

    def __call__(self, views: tuple[int, ...]) -> np.ndarray:
        """Scores under one set of views, in increasing order: [column]."""
        return np.concatenate([part(views) for part in self.parts])

    def total(self, Y: np.ndarray) -> float:
        """Sum of the scores of all columns under their memberships [column, view]."""
        value, at = 0.0, 0
        for part in self.parts:
            n = part.data.n_columns
            value += part.total(by_views(Y[at : at + n]))
            at += n
        return value

    def of_columns(self, views: tuple[int, ...], columns: list[int]) -> np.ndarray:
        """Scores of some columns, in increasing order, under one set of views."""
        out, at = [], 0
        for part in self.parts:
            n = part.data.n_columns
            own = [d - at for d in columns if at <= d < at + n]
            if own:
                out.append(part.of_columns(views, own))
            at += n
        return np.concatenate(out)

    def of(self, subsets: list[tuple[int, ...]]) -> np.ndarray:
        """Scores under several sets of views: [subset, column]."""
        return np.hstack([part.of(subsets) for part in self.parts])


class OverlapTable(NamedTuple):
    """The data that the steps of the sampler read; at least one of the two parts is not None."""

    additive: AdditiveColumns | None
    combined: CombinationColumns | None
    ties: Ties | None = None  # of the additive columns

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return (self.additive or self.combined).n_rows  # type: ignore[union-attr]

    @property
    def n_additive(self) -> int:
        """Number of additive columns, which come first."""
        return 0 if self.additive is None else self.additive.n_columns

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return self.n_additive + (0 if self.combined is None else self.combined.n_columns)

    @property
    def max_listed(self) -> int:
        """Maximum number of sets of views that are listed; beyond it memberships are drawn one by one.

        Statistics of combinations need a pass over the data per set; additive columns need only small matrices.
        """
        return MAX_LISTED_ADDITIVE if self.combined is None else MAX_LISTED_COMBINED

    def with_cells(self, X: np.ndarray | None) -> OverlapTable:
        """The table with other values of the additive columns; None for the same."""
        return self if X is None else self._replace(additive=read_reals(X))

    def tie_step(self, state: OverlapState, rng: np.random.Generator) -> OverlapTable:
        """Draw the tied values given drawn effects and noise; leaves the posterior invariant."""
        if self.additive is None or self.ties is None:
            return self
        found, X = self.additive.parameters(state, state.hyper.effects, rng), self.additive.X
        sd = np.broadcast_to(found.noise, X.shape)
        return self.with_cells(draw_tied(X, self.ties.low, self.ties.high, X - found.residual, sd, rng))

    def deepened(self, hyper: OverlapHyper) -> CombinationColumns | None:
        """The columns with combinations, with the exposures of counts multiplied by the depths of the rows."""
        if self.combined is None or hyper.depths is None:
            return self.combined
        return CombinationColumns(with_depths(self.combined.blocks, hyper.depths))

    def default_hyper(self, gain: bool = False) -> OverlapHyper:
        """Hyper-parameters at the start, without row factors; without ``gain``, later ones have gains of 0."""
        return OverlapHyper(
            Effects(gain=np.zeros(0) if gain else None),
            () if self.combined is None else tuple(b.family for b in self.combined.blocks),
        )

    def scores(self, Z: Any, hyper: OverlapHyper) -> TableScores:
        """Log marginal likelihoods given the labels of all views."""
        parts: list[Any] = []
        if self.additive is not None:
            parts.append(self.additive.scores(Z, hyper.effects))
        combined = self.deepened(hyper)
        if combined is not None:
            parts.append(combined.scores(Z, hyper.families))
        return TableScores(parts)

    def log_joint(self, state: OverlapState) -> float:
        """Log probability of data, memberships, labels, row factors and depths."""
        return log_joint(state, self.scores(state.Z, state.hyper)) + self.log_rows(state)

    def log_rows(self, state: OverlapState, *, marginal: bool = False) -> float:
        """Log density of row factors and depths; ``marginal`` as in :meth:`AdditiveColumns.log_rows`."""
        hyper, total = state.hyper, 0.0
        if self.additive is not None:
            total += self.additive.log_rows(state, hyper.effects, marginal=marginal)
        if self.combined is not None and hyper.depths is not None:
            total += log_depths(hyper.depths)
            if marginal:
                events = row_events(self.combined.blocks)
                total += float(log_depth_volumes(events, hyper.depths.shape, hyper.depths.rows).sum())
        return total

    def feature_step(
        self, state: OverlapState, rng: np.random.Generator, *, max_per_column: int, max_views: int
    ) -> OverlapState:
        """Draw the memberships of all columns; leaves the posterior invariant."""
        return feature_step(self, state, rng, max_per_column=max_per_column, max_views=max_views)

    def row_step(
        self,
        state: OverlapState,
        rng: np.random.Generator,
        *,
        views: Any = None,
        n_sweeps: int = 1,
        n_moves: int = 3,
        exact: bool = True,
    ) -> OverlapState:
        """Draw the labels of the rows, view after view, given drawn parameters of the other views.

        Leaves the posterior invariant if ``exact``; otherwise, for a search, the parameters are held at their means.
        """
        hyper, parameters = state.hyper, None
        combined = self.deepened(hyper)
        prior = DirichletProcess(state.concentration)
        if self.additive is not None:
            parameters = self.additive.parameters(state, hyper.effects, rng if exact else None)
        for v in range(state.n_views) if views is None else views:
            blocks = []
            if self.additive is not None:
                assert parameters is not None
                blocks.append(self.additive.mixture_block(state, parameters, v, hyper.effects, exact))
            if combined is not None:
                Y = state.Y[self.n_additive :]
                blocks += combined.mixture_blocks(state.Z, Y, v, hyper.families)
            z = sample_labels(blocks, state.Z[v], prior, rng, n_sweeps, n_moves)
            state = state._replace(Z=(*state.Z[:v], z, *state.Z[v + 1 :]))
            if self.additive is not None and parameters is not None:
                self.additive.update_effects(
                    state, parameters, v, blocks[0].data, hyper.effects, rng if exact else None
                )
        return state

    def nuisance_step(self, state: OverlapState, rng: np.random.Generator | None) -> OverlapState:
        """Draw row factors and depths; without a generator, their means. Leaves the posterior invariant."""
        hyper = state.hyper
        if self.additive is not None:
            hyper = hyper._replace(effects=self.additive.draw_rows(state, hyper.effects, rng))
        combined = self.deepened(hyper)
        if combined is not None and hyper.depths is not None:
            hyper = hyper._replace(depths=depth_step(combined, state, hyper.families, hyper.depths, rng))
        return state._replace(hyper=hyper)

    def learn_gain(self, state: OverlapState, rng: np.random.Generator) -> OverlapState:
        """Draw the gains of the row factors."""
        if self.additive is None:
            return state
        effects = self.additive.learn_gain(state, state.hyper.effects, rng)
        return state._replace(hyper=state.hyper._replace(effects=effects))

    def learn(self, state: OverlapState, rng: np.random.Generator) -> OverlapState:
        """Draw the hyper-parameters of the likelihood."""
        effects, families, depths = state.hyper
        if self.additive is not None:
            effects = self.additive.learn(state, effects, rng)
        combined = self.deepened(state.hyper)
        if combined is not None:
            families = combined.learn(state, families, rng)
        return state._replace(hyper=OverlapHyper(effects, families, depths))

    def parameters(self, state: OverlapState) -> AdditiveParameters | None:
        """Means of the effects and the noise of additive columns."""
        return None if self.additive is None else self.additive.parameters(state, state.hyper.effects, None)

    def residuals(self, state: OverlapState) -> tuple[np.ndarray, np.ndarray]:
        """Residuals of the views, standardized: (rows x numbers, the column of each number)."""
        parts, owners = [], []
        if self.additive is not None:
            found = self.additive.parameters(state, state.hyper.effects, None)
            parts.append(found.residual / found.noise)
            owners.append(np.arange(self.n_additive))
        combined = self.deepened(state.hyper)
        if combined is not None:
            values, owner = combined.numbers()
            parts.append(_within_cells(values, owner, state.Z, state.Y[self.n_additive :]))
            owners.append(owner + self.n_additive)
        return np.hstack(parts), np.concatenate(owners)


def _within_cells(values: np.ndarray, owner: np.ndarray, Z: Any, Y: np.ndarray) -> np.ndarray:
    """Numbers minus the mean of their combination, standardized."""
    out = np.empty_like(values)
    for views, columns in by_views(Y).items():
        z = combination_labels(Z, views, len(values))
        mine = np.isin(owner, columns)
        W = np.zeros((len(z), int(z.max()) + 1))
        W[np.arange(len(z)), z] = 1.0
        x = values[:, mine]
        seen = ~np.isnan(x)
        mean = (W.T @ np.where(seen, x, 0.0)) / np.maximum(W.T @ seen, 1.0)
        out[:, mine] = x - mean[z]
    spread = np.sqrt(np.nanmean(out**2, axis=0))
    return out / np.where(spread > 0, spread, 1.0)
