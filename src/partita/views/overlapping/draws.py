"""Draws of overlapping views as factors: views that share columns are one factor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from partita.engines.passes.rows import n_stats
from partita.families import Block, GaussianDiagonal
from partita.families.contract import n_columns, stats_start
from partita.families.rows import add_statistics
from partita.views.base import Cells, Draw, Factor
from partita.views.crosscat.layout import take_columns, take_data
from partita.views.overlapping.chain import OverlapDraw
from partita.views.overlapping.combinations import cell_labels
from partita.views.overlapping.state import State, by_views
from partita.views.overlapping.table import OverlapTable

__all__ = ["MOST_STATES", "as_draw", "cell_statistics", "view_factors"]

MOST_STATES = 256  # of one factor; beyond it, the combinations that most rows have stand for all


def as_draw(
    table: OverlapTable, drawn: OverlapDraw, where: Sequence[np.ndarray], order: np.ndarray, n_columns: int
) -> Draw:
    """A draw with columns numbered as in the table.

    ``where`` holds those numbers block by block, ``order`` those of the engine's columns.
    """
    state = drawn.state
    membership = np.zeros((n_columns, state.n_views), bool)
    membership[order] = state.Y
    labels = np.array(state.Z, dtype=np.int64).reshape(state.n_views, table.n_rows).T
    factors = tuple(_factor(table, state, views, where, order) for views in _components(state.Y))
    hyper = np.array([state.buffet.alpha, *[state.concentration] * state.n_views])
    return Draw(membership, labels, factors, drawn.log_joint, drawn.chain, hyper)


def _components(Y: np.ndarray) -> list[tuple[int, ...]]:
    """Views that share columns, directly or by way of others; () for the columns of no view, if there are any."""
    found = by_views(Y)
    groups: list[set[int]] = []
    for views in found:
        touching = [g for g in groups if g & set(views)]
        groups = [g for g in groups if not g & set(views)]
        if views:
            groups.append(set(views).union(*touching))
    out = [tuple(sorted(g)) for g in groups]
    return [*out, ()] if () in found else out


def _states(state: State, views: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Combinations of clusters [state, view] and their log weights; K stands for a new cluster."""
    sizes = [np.append(np.bincount(state.Z[v]), state.concentration) for v in views]
    shares = [np.log(n / n.sum()) for n in sizes]
    if np.prod([float(len(n)) for n in sizes]) <= MOST_STATES:
        grid = np.meshgrid(*[np.arange(len(n)) for n in sizes], indexing="ij")
        codes = np.column_stack([g.ravel() for g in grid]) if views else np.zeros((1, 0), dtype=np.int64)
    else:
        labels = np.column_stack([state.Z[v] for v in views])
        codes, times = np.unique(labels, axis=0, return_counts=True)
        codes = codes[np.argsort(-times, kind="stable")[: MOST_STATES - 1]]
        codes = np.vstack([codes, [len(n) - 1 for n in sizes]])
    log_weights = sum((share[codes[:, j]] for j, share in enumerate(shares)), np.zeros(len(codes)))
    return codes, log_weights - np.logaddexp.reduce(log_weights)


def _factor(
    table: OverlapTable, state: State, views: tuple[int, ...], where: Any, order: np.ndarray
) -> Factor:
    codes, log_weights = _states(state, views)
    mine = np.asarray(state.Y[:, list(views)].any(axis=1) if views else ~state.Y.any(axis=1))
    cells, at = [], 0
    if table.real is not None:
        columns = np.flatnonzero(mine[: table.n_real])
        if len(columns):
            cells.append(_real_cells(table, state, views, codes, columns))
        at = table.n_real
    if table.cells is not None:
        for block, family in zip(table.cells.blocks, state.hyper.families, strict=True):
            width = int(n_columns(family))
            columns = np.flatnonzero(mine[at : at + width])
            if len(columns):
                S = cell_statistics(block, family, state, views, codes, columns, at)
                number = _block_number(where, order, at)
                cells.append(Cells(number, columns, take_columns(family, columns), S))
            at += width
    columns = np.concatenate([where[c.block][c.positions] for c in cells])
    return Factor(columns, log_weights, tuple(cells))


def _block_number(where: Any, order: np.ndarray, at: int) -> int:
    return next(b for b, numbers in enumerate(where) if order[at] in numbers)


def _real_cells(table, state, views, codes, columns) -> Cells:
    """The predictive of additive columns in each state, as the statistics of an ordinary normal column that has it.

    The predictive is Student's with ``a`` from all rows, a mean that adds up, and a scale that knows how well it is
    known. A normal column with as many observations, that mean and the right sum of squares has the same.
    """
    real, hyper = table.real, state.hyper.effects
    scores = real.scores(state.Z, hyper)
    D, J = len(columns), len(codes)
    mean, scale, shape = np.zeros((D, J)), np.zeros((D, J)), np.zeros(D)
    for p, (members, _) in enumerate(real.patterns):
        chosen = np.flatnonzero(np.isin(columns, members))
        for own, part in by_views(state.Y[columns[chosen]]).items():
            js = chosen[part]
            index, L, half = scores.posterior(own, p, columns[js])
            a = hyper.a + 0.5 * real.counts[columns[js]]
            b = hyper.b + 0.5 * np.maximum(real.squares[columns[js]] - (half**2).sum(axis=0), 0.0)
            W, fresh = _design(state, own, views, codes, len(index))
            reach = np.linalg.solve(L, W.T)  # [effect, state]
            mean[js] = half.T @ reach
            spread = 1.0 + (reach**2).sum(axis=0) + fresh * hyper.effect
            scale[js] = b[:, None] * spread / a[:, None]
            shape[js] = a
    family = GaussianDiagonal(np.zeros(D), np.full(D, 1.0), np.full(D, 1.0), np.full(D, 1e-9))
    S = np.zeros((3 * D, J))
    n = 2.0 * (shape - 1.0)
    k = 1.0 + n
    S[0::3] = n[:, None]
    S[1::3] = k[:, None] * mean
    b = scale * (shape * k / (k + 1.0))[:, None]
    S[2::3] = 2.0 * (b - 1e-9) + k[:, None] * mean**2
    return Cells(0, columns, family, S)


def _design(state, own, views, codes, width) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the design for each state, and how many of a column's views have a new cluster there."""
    W, fresh, at = np.zeros((len(codes), width)), np.zeros(len(codes)), 0
    W[:, -1] = 1.0
    for v in own:
        K = int(state.Z[v].max()) + 1
        code = codes[:, views.index(v)]
        seen = code < K
        W[np.flatnonzero(seen), at + code[seen]] = 1.0
        fresh += ~seen
        at += K
    return W, fresh


def cell_statistics(block, family, state, views, codes, columns, at) -> np.ndarray:
    """Statistics of every state: those of its cell, nothing where no row has that combination."""
    part = Block(take_columns(family, columns), take_data(block.data, columns), ())
    S = np.zeros((n_stats(part.family), len(codes)))
    N = len(state.Z[0]) if state.Z else len(np.asarray(getattr(block.data, "X", block.data)))
    for own, js in by_views(state.Y[at + columns]).items():
        z = cell_labels(state.Z, own, N)
        full = np.zeros((len(S), int(z.max()) + 1))
        add_statistics(part.family, part.data, z, full)
        first = {tuple(state.Z[v][i] for v in own): z[i] for i in np.unique(z, return_index=True)[1]}
        cell = [first.get(tuple(code[views.index(v)] for v in own), -1) for code in codes]
        known = np.array([c >= 0 for c in cell])
        picked = full[:, np.array(cell)[known]] if known.any() else full[:, :0]
        for j in js:
            rows = slice(int(stats_start(part.family, j)), int(stats_start(part.family, j + 1)))
            S[rows, np.flatnonzero(known)] = picked[rows]
    return S


def view_factors(
    blocks: Sequence[Block], membership: np.ndarray, labels: np.ndarray, where: Sequence[np.ndarray]
) -> tuple[Factor, ...]:
    """Each view by itself: its columns under its labels, whatever other views the columns have."""
    out = []
    for y, z in zip(membership.T, labels.T, strict=True):
        K, cells = int(z.max()) + 1, []
        for b, block in enumerate(blocks):
            positions = np.flatnonzero(y[where[b]])
            if len(positions):
                family = take_columns(block.family, positions)
                S = np.zeros((n_stats(family), K))
                add_statistics(family, take_data(block.data, positions), z.astype(np.int64), S)
                cells.append(Cells(b, positions, family, S))
        n = np.bincount(z, minlength=K)
        columns = np.concatenate([where[c.block][c.positions] for c in cells])
        out.append(Factor(columns, np.log(n / n.sum()), tuple(cells)))
    return tuple(out)
