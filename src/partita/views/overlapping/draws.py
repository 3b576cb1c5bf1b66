"""Draws of overlapping views as products of factors: views that share columns form one factor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from partita.engines.passes.rows import n_stats
from partita.families import Block, GaussianDiagonal
from partita.families.columns import take_columns, take_data
from partita.families.contract import n_columns, stats_start
from partita.families.rows import add_statistics
from partita.views.draws import Draw, Factor, FactorBlock
from partita.views.overlapping.chain import OverlapDraw
from partita.views.overlapping.combinations import combination_labels
from partita.views.overlapping.state import OverlapState, by_views
from partita.views.overlapping.table import OverlapTable

if TYPE_CHECKING:
    from partita.views.overlapping.result import Arrangement

MAX_STATES = 256  # of a factor; beyond it, the most frequent combinations represent all


def as_draw(table: OverlapTable, drawn: OverlapDraw, arrangement: Arrangement) -> Draw:
    """A draw with columns numbered as in the table that was fitted."""
    state = drawn.state
    membership = arrangement.by_column(state.Y)
    labels = np.array(state.Z, dtype=np.int64).reshape(state.n_views, table.n_rows).T
    factors = tuple(_factor(table, state, views, arrangement) for views in _components(state.Y))
    hyper = np.array([state.buffet.alpha, *[state.concentration] * state.n_views])
    loadings = np.zeros((state.hyper.effects.rank, arrangement.n_columns))
    parameters = table.parameters(state) if state.hyper.effects.rank else None
    if parameters is not None:
        loadings[:, arrangement.order[: table.n_additive]] = parameters.loadings
    rows = np.zeros((table.n_rows, 0)) if state.hyper.effects.rows is None else state.hyper.effects.rows
    gain = None if state.hyper.effects.sizes is None else state.hyper.effects.gain
    known = state.hyper.depths
    depths = (np.zeros(0), 0.0) if known is None else (known.rows, known.shape)
    return Draw(
        membership, labels, factors, drawn.log_joint, drawn.chain, hyper, rows, loadings, gain, *depths
    )


def _components(Y: np.ndarray) -> list[tuple[int, ...]]:
    """Connected components of views that share columns; () for the columns in no view, if there are any."""
    found = by_views(Y)
    groups: list[set[int]] = []
    for views in found:
        touching = [g for g in groups if g & set(views)]
        groups = [g for g in groups if not g & set(views)]
        if views:
            groups.append(set(views).union(*touching))
    out = [tuple(sorted(g)) for g in groups]
    return [*out, ()] if () in found else out


def _states(state: OverlapState, views: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Combinations of clusters [state, view] and their log weights; label K is a new cluster."""
    sizes = [np.append(np.bincount(state.Z[v]), state.concentration) for v in views]
    shares = [np.log(n / n.sum()) for n in sizes]
    if np.prod([float(len(n)) for n in sizes]) <= MAX_STATES:
        grid = np.meshgrid(*[np.arange(len(n)) for n in sizes], indexing="ij")
        codes = np.column_stack([g.ravel() for g in grid]) if views else np.zeros((1, 0), dtype=np.int64)
    else:
        labels = np.column_stack([state.Z[v] for v in views])
        codes, times = np.unique(labels, axis=0, return_counts=True)
        codes = codes[np.argsort(-times, kind="stable")[: MAX_STATES - 1]]
        codes = np.vstack([codes, [len(n) - 1 for n in sizes]])
    log_weights = sum((share[codes[:, j]] for j, share in enumerate(shares)), np.zeros(len(codes)))
    return codes, log_weights - np.logaddexp.reduce(log_weights)


def _factor(
    table: OverlapTable, state: OverlapState, views: tuple[int, ...], arrangement: Arrangement
) -> Factor:
    codes, log_weights = _states(state, views)
    mine = np.asarray(state.Y[:, list(views)].any(axis=1) if views else ~state.Y.any(axis=1))
    parts, at, numbers = [], 0, list(arrangement.numbers)
    if table.additive is not None:
        number = numbers.pop(0)
        columns = np.flatnonzero(mine[: table.n_additive])
        if len(columns):
            parts.append(_additive_block(table, state, views, codes, columns)._replace(block=number))
        at = table.n_additive
    combined = table.deepened(state.hyper)
    if combined is not None:
        for number, block, family in zip(numbers, combined.blocks, state.hyper.families, strict=True):
            width = int(n_columns(family))
            columns = np.flatnonzero(mine[at : at + width])
            if len(columns):
                S = combination_statistics(block, family, state, views, codes, columns, at)
                parts.append(FactorBlock(number, columns, take_columns(family, columns), S))
            at += width
    columns = np.concatenate([arrangement.where[part.block][part.positions] for part in parts])
    return Factor(columns, log_weights, tuple(parts))


def _additive_block(table, state, views, codes, columns) -> FactorBlock:
    """The predictive of additive columns in each state, as statistics of a normal family with the same predictive.

    The predictive is a Student t distribution, whose shape comes from all rows, whose mean is the sum of the effects,
    and whose scale includes the uncertainty of that mean. A normal column with as many observations, this mean and a
    suitable sum of squares has the same predictive.
    """
    data, hyper = table.additive, state.hyper.effects
    scores = data.scores(state.Z, hyper)
    D, J = len(columns), len(codes)
    mean, scale, shape = np.zeros((D, J)), np.zeros((D, J)), np.zeros(D)
    for g, (members, _, factors) in enumerate(scores.groups):
        chosen = np.flatnonzero(np.isin(columns, members))
        for own, part in by_views(state.Y[columns[chosen]]).items():
            js = chosen[part]
            index, L, half = scores.posterior(own, g, columns[js])
            a = hyper.a + 0.5 * data.counts[columns[js]]
            b = hyper.b + 0.5 * np.maximum(data.squares[columns[js]] - (half**2).sum(axis=0), 0.0)
            W, fresh = _design(state, own, views, codes, len(index), len(factors))
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
    return FactorBlock(0, columns, family, S)


def _design(state, own, views, codes, width, rank) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the design matrix for each state, and the number of new clusters among the column's views.

    The row factors are 0: the predictive is that of a cell without its part of the row factors.
    """
    W, fresh, at = np.zeros((len(codes), width)), np.zeros(len(codes)), 0
    W[:, -1 - rank] = 1.0
    for v in own:
        K = int(state.Z[v].max()) + 1
        code = codes[:, views.index(v)]
        seen = code < K
        W[np.flatnonzero(seen), at + code[seen]] = 1.0
        fresh += ~seen
        at += K
    return W, fresh


def combination_statistics(block, family, state, views, codes, columns, at) -> np.ndarray:
    """Statistics of every state; 0 where no row has this combination of clusters."""
    part = Block(take_columns(family, columns), take_data(block.data, columns), ())
    S = np.zeros((n_stats(part.family), len(codes)))
    N = len(state.Z[0]) if state.Z else len(np.asarray(getattr(block.data, "X", block.data)))
    for own, js in by_views(state.Y[at + columns]).items():
        z = combination_labels(state.Z, own, N)
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
