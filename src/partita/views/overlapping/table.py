"""A table under the overlapping model: real columns whose effects add up, then columns with cells of their own."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from partita.engines.gibbs import sweep
from partita.engines.gibbs.split_merge import split_merge
from partita.labels import canonical
from partita.partitions import DirichletProcess
from partita.views.overlapping.additive import Additive, Effects, Parameters
from partita.views.overlapping.combinations import Cells, cell_labels
from partita.views.overlapping.features import feature_step
from partita.views.overlapping.state import State, by_views, log_joint

__all__ = ["Hyper", "OverlapTable", "seat_rows"]


class Hyper(NamedTuple):
    """Hyper-parameters of both parts."""

    effects: Effects
    families: tuple[Any, ...]


class TableScores:
    """Log marginal likelihood of every column under any set of views."""

    def __init__(self, parts: list[Any]):
        self.parts = parts

    def __call__(self, views: tuple[int, ...]) -> np.ndarray:
        """[column]; the views in rising order."""
        return np.concatenate([part(views) for part in self.parts])

    def of(self, subsets: list[tuple[int, ...]]) -> np.ndarray:
        """[subset, column]."""
        return np.hstack([part.of(subsets) for part in self.parts])


class OverlapTable(NamedTuple):
    """What the steps of the sampler read; at least one part is there."""

    real: Additive | None
    cells: Cells | None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return (self.real or self.cells).n_rows  # type: ignore[union-attr]

    @property
    def n_real(self) -> int:
        """Columns whose effects add up; they come first."""
        return 0 if self.real is None else self.real.n_columns

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return self.n_real + (0 if self.cells is None else self.cells.n_columns)

    @property
    def many(self) -> int:
        """Sets of views that are worth listing; where there are more, memberships are drawn one by one.

        Cells have to be counted anew for every set, which the small matrices of additive columns are not.
        """
        return 4000 if self.cells is None else 300

    def default_hyper(self) -> Hyper:
        """Where hyper-parameters start."""
        return Hyper(Effects(), () if self.cells is None else tuple(b.family for b in self.cells.blocks))

    def scores(self, Z: Any, hyper: Hyper) -> TableScores:
        """Log marginal likelihoods given the labels of all views."""
        parts: list[Any] = []
        if self.real is not None:
            parts.append(self.real.scores(Z, hyper.effects))
        if self.cells is not None:
            parts.append(self.cells.scores(Z, hyper.families))
        return TableScores(parts)

    def log_joint(self, state: State) -> float:
        """Log probability of data, memberships and labels."""
        return log_joint(state, self.scores(state.Z, state.hyper))

    def feature_step(self, state: State, rng: np.random.Generator, *, largest: int, max_views: int) -> State:
        """New memberships of all columns; leaves the posterior invariant."""
        return feature_step(self, state, rng, largest=largest, max_views=max_views)

    def row_step(
        self,
        state: State,
        rng: np.random.Generator,
        *,
        views: Any = None,
        n_sweeps: int = 1,
        n_moves: int = 3,
        exact: bool = True,
    ) -> State:
        """New labels of the rows, view after view, given a draw of the other views' parameters.

        Leaves the posterior invariant if ``exact``; otherwise the parameters are held at their means, for a search.
        """
        hyper, parameters = state.hyper, None
        if self.real is not None:
            parameters = self.real.parameters(state, hyper.effects, rng if exact else None)
        for v in range(state.n_views) if views is None else views:
            blocks = []
            if self.real is not None:
                assert parameters is not None
                blocks.append(self.real.row_block(state, parameters, v, hyper.effects, exact))
            if self.cells is not None:
                Y = state.Y[self.n_real :]
                blocks += self.cells.row_chunks(state.Z, Y, v, hyper.families)
            z = seat_rows(blocks, state.Z[v], state.concentration, rng, n_sweeps, n_moves)
            state = state._replace(Z=(*state.Z[:v], z, *state.Z[v + 1 :]))
            if self.real is not None and parameters is not None:
                self.real.take_in(state, parameters, v, blocks[0].data, hyper.effects, rng if exact else None)
        return state

    def learn(self, state: State, rng: np.random.Generator) -> State:
        """New hyper-parameters of the likelihood."""
        effects, families = state.hyper
        if self.real is not None:
            effects = self.real.learn(state, effects, rng)
        if self.cells is not None:
            families = self.cells.learn(state, families, rng)
        return state._replace(hyper=Hyper(effects, families))

    def parameters(self, state: State) -> Parameters | None:
        """Effects and noise of the real columns at their means."""
        return None if self.real is None else self.real.parameters(state, state.hyper.effects, None)

    def residuals(self, state: State) -> tuple[np.ndarray, np.ndarray]:
        """What the views leave unexplained, in units of its spread: (rows x numbers, the column of each number)."""
        parts, owners = [], []
        if self.real is not None:
            found = self.real.parameters(state, state.hyper.effects, None)
            parts.append(found.residual / found.noise)
            owners.append(np.arange(self.n_real))
        if self.cells is not None:
            values, owner = self.cells.numbers()
            parts.append(_within_cells(values, owner, state.Z, state.Y[self.n_real :]))
            owners.append(owner + self.n_real)
        return np.hstack(parts), np.concatenate(owners)


def _within_cells(values: np.ndarray, owner: np.ndarray, Z: Any, Y: np.ndarray) -> np.ndarray:
    """Numbers less the mean of their cell, over their spread."""
    out = np.empty_like(values)
    for views, columns in by_views(Y).items():
        z = cell_labels(Z, views, len(values))
        mine = np.isin(owner, columns)
        W = np.zeros((len(z), int(z.max()) + 1))
        W[np.arange(len(z)), z] = 1.0
        x = values[:, mine]
        seen = ~np.isnan(x)
        mean = (W.T @ np.where(seen, x, 0.0)) / np.maximum(W.T @ seen, 1.0)
        out[:, mine] = x - mean[z]
    spread = np.sqrt(np.nanmean(out**2, axis=0))
    return out / np.where(spread > 0, spread, 1.0)


def seat_rows(
    blocks: list[Any],
    z: np.ndarray,
    concentration: float,
    rng: np.random.Generator,
    n_sweeps: int = 1,
    n_moves: int = 3,
) -> np.ndarray:
    """Gibbs sweeps and split-merge moves over the rows of some blocks."""
    prior = DirichletProcess(concentration)
    seating = sweep.seat(blocks, z)
    rows = np.arange(len(z))
    for _ in range(n_sweeps):
        seating = sweep.reseat(seating, prior, rows, rng.random(len(z)))
    for _ in range(n_moves):
        seating, _ = split_merge(seating, prior, rng)
    return canonical(sweep.labels(seating))
