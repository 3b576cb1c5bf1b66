"""Predictions from fitted blocks: of single cells, and of the clusters of new rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from partita.blocks.fitting import DrawnBlocks
from partita.engines.passes.rows import n_stats
from partita.execution import row_chunks
from partita.families.contract import summarize
from partita.families.data import n_rows, take
from partita.families.rows import add_statistics, log_marginals


def block_values(family: Any, S: np.ndarray, relation: int, kind: str) -> np.ndarray:
    """Prediction of a cell in each block of one relation, [block, value]: probabilities of the levels, or the mean.

    ``S`` holds the statistics of the blocks, [block, statistic].
    """
    found = summarize(family, np.ascontiguousarray(S.T))
    if kind == "binary":
        ones = found["probabilities"][:, relation]
        return np.column_stack([1.0 - ones, ones])
    if kind == "categorical":
        starts = np.concatenate([[0], np.cumsum(family.n_levels)])
        return found["probabilities"][:, starts[relation] : starts[relation + 1]]
    if kind == "count":
        return found["rates"][:, relation, None]
    if "means" in found:
        return found["means"][:, relation, None]
    return 1.0 / found["rates"][:, relation, None]  # means of durations


def cell_blocks(drawn: DrawnBlocks, t: int, cells: np.ndarray) -> np.ndarray:
    """Statistics of the block of each cell in one draw: [cell, statistic]."""
    rows, columns = drawn.labels[0][t], drawn.labels[-1][t]
    return drawn.statistics[t][rows[cells[:, 0]], columns[cells[:, 1]]]


def average_cells(drawn: DrawnBlocks, cells: np.ndarray, relation: int, kind: str) -> np.ndarray:
    """Prediction of each cell, averaged over the draws: [cell, value]."""
    total: Any = 0.0
    for t, family in enumerate(drawn.families):
        S = drawn.statistics[t]
        values = block_values(family, S.reshape(-1, S.shape[2]), relation, kind)
        rows, columns = drawn.labels[0][t].astype(np.intp), drawn.labels[-1][t].astype(np.intp)
        total = total + values[rows[cells[:, 0]] * S.shape[1] + columns[cells[:, 1]]]
    return total / len(drawn.families)


def cell_statistics(family: Any, data: Any) -> np.ndarray:
    """Sufficient statistics ``t(x)`` of each row of a table of cells: [cell, statistic]."""
    n = n_rows(data)
    T: np.ndarray = np.zeros((n_stats(family), n))
    add_statistics(family, data, np.arange(n), T)
    return np.ascontiguousarray(T.T)


def log_score_cells(drawn: DrawnBlocks, cells: np.ndarray, data: Any) -> np.ndarray:
    """Log of the predictive density of each cell, averaged over the draws; 0 for cells that are missing in ``data``."""
    out = np.full(len(cells), -np.inf)
    for t, family in enumerate(drawn.families):
        S, T = cell_blocks(drawn, t, cells), cell_statistics(family, data)
        after = log_marginals(family, np.ascontiguousarray((S + T).T)).sum(axis=0)
        before = log_marginals(family, np.ascontiguousarray(S.T)).sum(axis=0)
        out = np.logaddexp(out, after - before)
    return out - np.log(len(drawn.families))


def score_new_rows(
    family: Any, S: np.ndarray, log_weights: np.ndarray, columns: np.ndarray, data: Any, n_new: int
) -> np.ndarray:
    """Log joint density of each new row and its row cluster, given the clusters of the columns: [row, row cluster]."""
    K, J, P = S.shape
    D = len(columns)
    before = log_marginals(family, np.ascontiguousarray(S.reshape(-1, P).T)).sum(axis=0).reshape(K, J)
    out = np.empty((n_new, K))
    for rows in row_chunks(n_new):
        where = ((rows - rows[0])[:, None] * J + columns).ravel()
        cells = take(data, (rows[:, None] * D + np.arange(D)).ravel())
        T: np.ndarray = np.zeros((P, len(rows) * J))
        add_statistics(family, cells, where, T)
        sums = T.T.reshape(len(rows), J, P)
        for a in range(K):
            after = log_marginals(family, np.ascontiguousarray((sums + S[a]).reshape(-1, P).T)).sum(axis=0)
            out[rows, a] = log_weights[a] + (after.reshape(len(rows), J) - before[a]).sum(axis=1)
    return out
