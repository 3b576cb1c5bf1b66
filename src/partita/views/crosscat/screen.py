"""Where chains over views start: columns that depend on each other, found before any model is fitted.

Every column is cut into a few levels (quantiles of numbers, the most frequent levels of codes). One product of the
one-hot table with itself then holds the contingency tables of all pairs of columns, and from these comes a likelihood
ratio statistic for each pair; pairs of numbers are judged by their rank correlation, too. Average linkage of what
exceeds chance gives groups of columns; each starts as a view. Columns that depend on none share one view of a single
cluster, in which they are independent, until births find the ones that have clusters of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from scipy.special import ndtri, xlogy

from partita.engines.gibbs import chain
from partita.engines.gibbs.starts import find_start
from partita.families import Counts, n_rows
from partita.partitions import DirichletProcess
from partita.views.crosscat.chain import column_step
from partita.views.crosscat.layout import Layout, view_blocks
from partita.views.crosscat.state import Plan, Table, columns_in, start

__all__ = ["dependence_excess", "find_table", "group_units"]

SAMPLE = 10_000  # rows that are screened
N_BINS, LEAST_IN_BIN = 5, 20
MOST_LEVELS = 8  # of a column of codes; the rest count as one
ENOUGH = 5  # units whose rows may start as many clusters: fewer would keep them
ROUNDS = 12  # iterations of the chain over the rows of a group
CHANCE = 5.0  # excess, in standard deviations, that two columns of a group have on average


@singledispatch
def plain_values(data: Any) -> np.ndarray:
    """The data of a block as one array."""
    return np.asarray(data)


@plain_values.register(Counts)
def _(data):
    return data.X / data.exposure[:, None]


def cut_levels(values: np.ndarray) -> np.ndarray:
    """A column as a few levels, -1 where it is missing.

    Examples
    --------
    >>> cut_levels(np.array([3.0, np.nan, 1.0, 2.0] * 10)).tolist()[:4]
    [1, -1, 0, 0]
    >>> cut_levels(np.array([4, -1, 0, 4], np.int8)).tolist()
    [1, -1, 0, 1]
    """
    if values.dtype.kind == "f":
        seen = ~np.isnan(values)
        n_bins = int(np.clip(seen.sum() // LEAST_IN_BIN, 2, N_BINS))
        if not seen.any():
            return np.full(len(values), -1)
        edges = np.unique(np.quantile(values[seen], np.arange(1, n_bins) / n_bins))
        codes = np.searchsorted(edges, values, side="left")
        return np.where(seen, np.unique(codes, return_inverse=True)[1], -1)
    seen = values >= 0
    levels, inverse, counts = np.unique(values[seen], return_inverse=True, return_counts=True)
    ranks = np.empty(len(levels), np.int64)
    ranks[np.argsort(-counts, kind="stable")] = np.arange(len(levels))
    names = np.unique(np.minimum(ranks, MOST_LEVELS - 1), return_inverse=True)[1]
    if len(levels) <= MOST_LEVELS:
        names = np.arange(len(levels))
    out = np.full(len(values), -1)
    out[seen] = names[inverse]
    return out


def dependence_excess(columns: Sequence[np.ndarray]) -> np.ndarray:
    """How far each pair of columns is from independence: standard deviations above chance, [column, column].

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(2, 500))
    >>> excess = dependence_excess([x, x + y, rng.normal(size=500), (x > 0).astype(np.int8)])
    >>> (excess > CHANCE).astype(int)
    array([[1, 1, 0, 1],
           [1, 1, 0, 1],
           [0, 0, 1, 0],
           [1, 1, 0, 1]])
    """
    D, codes = len(columns), [cut_levels(values) for values in columns]
    sizes = np.array([max(int(code.max(initial=-1)) + 1, 1) for code in codes])
    starts = np.concatenate([[0], np.cumsum(sizes)])
    O = np.zeros((len(codes[0]), starts[-1]), np.float32)
    for d, code in enumerate(codes):
        rows = np.flatnonzero(code >= 0)
        O[rows, starts[d] + code[rows]] = 1.0
    C = (O.T @ O).astype(np.float64)
    heads = starts[:-1]
    margins = np.add.reduceat(C, heads, axis=1)  # [level, column]: of rows that both columns have seen

    def blocks(values: np.ndarray) -> np.ndarray:
        return np.add.reduceat(values, heads, axis=0)

    n = blocks(margins)
    within = blocks(xlogy(margins, margins))
    G = 2 * (np.add.reduceat(blocks(xlogy(C, C)), heads, axis=1) - within - within.T + xlogy(n, n))
    dof = np.maximum(np.outer(sizes - 1, sizes - 1), 1)
    excess = (G - dof) / np.sqrt(2.0 * dof)
    excess[:, sizes < 2], excess[sizes < 2] = 0.0, 0.0  # a constant depends on nothing
    numbers = np.array([d for d in range(D) if columns[d].dtype.kind == "f" and sizes[d] > 1], int)
    if len(numbers) > 1:
        linear = _linear_excess([columns[d] for d in numbers])
        excess[np.ix_(numbers, numbers)] = np.maximum(excess[np.ix_(numbers, numbers)], linear)
    excess = np.maximum(excess, 0.0)
    np.fill_diagonal(excess, np.inf)
    return excess


def _linear_excess(columns: Sequence[np.ndarray]) -> np.ndarray:
    """The same from squared correlations of normal scores, which are chi-squared with one degree of freedom."""
    scores = np.zeros((len(columns[0]), len(columns)))
    for j, values in enumerate(columns):
        seen = ~np.isnan(values)
        levels, inverse, counts = np.unique(values[seen], return_inverse=True, return_counts=True)
        middle = np.cumsum(counts) - 0.5 * counts  # ties share their rank
        score = ndtri(middle / seen.sum())[inverse]
        spread = score.std()
        scores[seen, j] = (score - score.mean()) / (spread if spread > 0 else 1.0)
    seen_pairs = (~np.isnan(np.column_stack(columns))).astype(float)
    n = np.maximum(seen_pairs.T @ seen_pairs, 1.0)
    return ((scores.T @ scores) ** 2 / n - 1.0) / np.sqrt(2.0)


def group_units(
    layout: Layout, rows: np.ndarray, chance: float = CHANCE
) -> tuple[list[list[int]], list[list[int]]]:
    """Units of columns in groups that depend on each other, and those that depend on nothing, as few groups."""
    columns = [
        values[rows, d]
        for values in (plain_values(block.data) for block in layout.blocks)
        for d in range(values.shape[1])
    ]
    U = len(layout.units)
    if U == 1:
        return [], [[0]]
    linked = np.log1p(np.minimum(dependence_excess(columns), 1e6))
    heads = np.concatenate([[0], np.cumsum(layout.sizes)])[:-1]
    order = np.concatenate(layout.units)
    linked = np.add.reduceat(np.add.reduceat(linked[np.ix_(order, order)], heads, axis=0), heads, axis=1)
    linked /= np.outer(layout.sizes, layout.sizes)
    linked[layout.apart] = 0.0
    np.fill_diagonal(linked, 0.0)
    top = max(linked.max(), np.log1p(chance)) + 1.0
    distance = top - linked
    np.fill_diagonal(distance, 0.0)
    tree = linkage(squareform(distance, checks=False), "average")
    label = fcluster(tree, top - np.log1p(chance), "distance")
    groups = [np.flatnonzero(label == g).tolist() for g in np.unique(label)]
    lonely = [units[0] for units in groups if len(units) == 1]
    bound = [part for units in groups if len(units) > 1 for part in _allowed(layout, units)]
    return bound, _allowed(layout, lonely)


def _allowed(layout: Layout, units: list[int]) -> list[list[int]]:
    """A group cut into groups without forbidden pairs."""
    parts: list[list[int]] = []
    for unit in units:
        for part in parts:
            if not layout.apart[unit, part].any():
                part.append(unit)
                break
        else:
            parts.append([unit])
    return parts


def find_table(
    layout: Layout,
    plan: Plan,
    rng: np.random.Generator,
    *,
    chance: float = CHANCE,
    apart: bool = False,
    view_concentration: float = 1.0,
) -> Table:
    """Views to start from: groups by dependence on a sample of the rows, rows by a short chain in each group.

    ``chance`` says how much dependence makes a group, ``apart`` whether those chains start from many clusters.
    """
    N = n_rows(layout.blocks[0].data)
    rows = np.sort(rng.choice(N, SAMPLE, replace=False)) if N > SAMPLE else np.arange(N)
    groups, lonely = group_units(layout, rows, chance)
    reference = [block.family for block in layout.blocks]
    labels, priors = [], []
    for units in groups + lonely:
        z, prior = np.zeros(N, np.int64), DirichletProcess(plan.concentration or 1.0)
        if units in groups:
            blocks = view_blocks(layout, reference, columns_in(layout, units))
            schedule = chain.Schedule(
                learn_concentration=plan.rows.learn_concentration,
                learn_likelihood=plan.rows.learn_likelihood,
            )
            found = find_start(
                blocks,
                prior,
                schedule,
                seed=int(rng.integers(2**62)),
                apart=apart and len(units) >= ENOUGH,
                n_iterations=ROUNDS,
            )
            z, prior = found.z, found.prior
        labels.append(z)
        priors.append(prior)
    table = start(layout, groups + lonely, labels, priors, rng, plan, None, view_concentration)
    # before hyper-parameters have grown used to clusters that a few columns made for themselves
    return column_step(table, plan, rng)
