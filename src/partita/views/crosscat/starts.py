"""Starts of chains over views: groups of dependent columns, with a row partition from a short chain in each group.

Columns that depend on no other column share one view of a single cluster, in which they are independent, until birth
moves find those that have clusters of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Any

import numpy as np
from scipy.special import ndtri

from partita.engines.gibbs import chain
from partita.engines.gibbs.starts import find_start
from partita.families import Counts, n_rows
from partita.families.sized_noise import Sized
from partita.labels import canonical
from partita.partitions import DirichletProcess
from partita.views.crosscat.chain import column_step
from partita.views.crosscat.layout import Layout, view_blocks
from partita.views.crosscat.state import CrossCatPlan, ViewsState, columns_in, start
from partita.views.nuisance import safe_sizes
from partita.views.screening import MIN_EXCESS, dependence_excess, linked_groups

MAX_SCREENED_ROWS = 10_000
MAX_BINS, MIN_ROWS_PER_BIN = 5, 20
MAX_LEVELS = 8  # of a column of codes; the rarer ones are pooled
MAX_EXCESS = 1e6  # before the average over the columns of units
MIN_UNITS_APART = 5  # a smaller group would keep the many clusters that its rows start from
LEAST_OVERLAP = 0.5  # of columns, for labels that are known
N_START_ITERATIONS, START_ROWS = (
    12,
    600,
)  # of the chain over the rows of a group: iterations, and a sample of the rows


@singledispatch
def plain_values(data: Any) -> np.ndarray:
    """The data of a block as one array."""
    return np.asarray(data)


@plain_values.register(Sized)
def _(data):
    return data.X / safe_sizes(data.size)[:, None]


@plain_values.register(Counts)
def _(data):
    return data.X / data.exposure[:, None]


def cut_levels(values: np.ndarray) -> np.ndarray:
    """A column as a few levels: quantiles of numbers, the most frequent levels of codes; -1 where it is missing.

    Examples
    --------
    >>> cut_levels(np.array([3.0, np.nan, 1.0, 2.0] * 10)).tolist()[:4]
    [1, -1, 0, 0]
    >>> cut_levels(np.array([4, -1, 0, 4], np.int8)).tolist()
    [1, -1, 0, 1]
    """
    if values.dtype.kind == "f":
        seen = ~np.isnan(values)
        n_bins = int(np.clip(seen.sum() // MIN_ROWS_PER_BIN, 2, MAX_BINS))
        if not seen.any():
            return np.full(len(values), -1)
        edges = np.unique(np.quantile(values[seen], np.arange(1, n_bins) / n_bins))
        codes = np.searchsorted(edges, values, side="left")
        return np.where(seen, np.unique(codes, return_inverse=True)[1], -1)
    seen = values >= 0
    levels, inverse, counts = np.unique(values[seen], return_inverse=True, return_counts=True)
    ranks = np.empty(len(levels), np.int64)
    ranks[np.argsort(-counts, kind="stable")] = np.arange(len(levels))
    names = np.unique(np.minimum(ranks, MAX_LEVELS - 1), return_inverse=True)[1]
    if len(levels) <= MAX_LEVELS:
        names = np.arange(len(levels))
    out = np.full(len(values), -1)
    out[seen] = names[inverse]
    return out


def normal_scores(values: np.ndarray) -> np.ndarray:
    """Normal quantiles of the ranks of a column, ties sharing their rank; NaN in a column of codes.

    Examples
    --------
    >>> normal_scores(np.array([3.0, np.nan, 1.0, 2.0])).round(2)
    array([ 0.97,   nan, -0.97,  0.  ])
    """
    out = np.full(len(values), np.nan)
    if values.dtype.kind == "f":
        seen = ~np.isnan(values)
        _, inverse, counts = np.unique(values[seen], return_inverse=True, return_counts=True)
        middle = np.cumsum(counts) - 0.5 * counts
        out[seen] = ndtri(middle / max(seen.sum(), 1))[inverse]
    return out


def columns_excess(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Dependence of all pairs of columns, numbers (floats) or codes: see :func:`partita.views.screening`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(2, 500))
    >>> excess = columns_excess([x, x + y, rng.normal(size=500), (x > 0).astype(np.int8)])
    >>> (excess > MIN_EXCESS).astype(int)
    array([[0, 1, 0, 1],
           [1, 0, 0, 1],
           [0, 0, 0, 0],
           [1, 1, 0, 0]])
    """
    codes = [cut_levels(values) for values in columns]
    return dependence_excess(codes, np.column_stack([normal_scores(values) for values in columns]))


def group_units(
    layout: Layout, rows: np.ndarray, min_excess: float = MIN_EXCESS
) -> tuple[list[list[int]], list[list[int]]]:
    """Groups of units that depend on each other, and the units that depend on no other, in as few groups as allowed."""
    columns = [
        values[rows, d]
        for values in (plain_values(block.data) for block in layout.blocks)
        for d in range(values.shape[1])
    ]
    if len(layout.units) == 1:
        return [], [[0]]
    strength = np.log1p(np.minimum(columns_excess(columns), MAX_EXCESS))
    heads = np.concatenate([[0], np.cumsum(layout.sizes)])[:-1]
    order = np.concatenate(layout.units)
    strength = np.add.reduceat(np.add.reduceat(strength[np.ix_(order, order)], heads, axis=0), heads, axis=1)
    strength /= np.outer(layout.sizes, layout.sizes)
    strength[layout.apart] = 0.0
    np.fill_diagonal(strength, 0.0)
    groups = [group.tolist() for group in linked_groups(strength, np.log1p(min_excess))]
    independent = [units[0] for units in groups if len(units) == 1]
    dependent = [part for units in groups if len(units) > 1 for part in _allowed(layout, units)]
    return dependent, _allowed(layout, independent)


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


def overlap(a: np.ndarray, b: np.ndarray) -> float:
    """Share of two sets of columns that is common to both.

    Examples
    --------
    >>> overlap(np.array([0, 1, 2]), np.array([1, 2, 3]))
    0.5
    """
    return len(np.intersect1d(a, b)) / len(np.union1d(a, b))


def start_from_screening(
    layout: Layout,
    plan: CrossCatPlan,
    rng: np.random.Generator,
    *,
    min_excess: float = MIN_EXCESS,
    apart: bool = False,
    view_concentration: float = 1.0,
    known: Sequence[tuple[np.ndarray, np.ndarray]] = (),
) -> ViewsState:
    """A start: views from screening a sample of the rows, row partitions from a short chain in each view.

    ``min_excess`` is the dependence that makes a group; with ``apart`` the short chains start from many clusters.
    ``known`` are columns and labels of groups with row factors of their own. Given the first values of such factors, a
    short chain would divide clusters along them, so most columns of such a group take its labels.
    """
    N = n_rows(layout.blocks[0].data)
    rows = np.sort(rng.choice(N, MAX_SCREENED_ROWS, replace=False)) if N > MAX_SCREENED_ROWS else np.arange(N)
    dependent, independent = group_units(layout, rows, min_excess)
    reference = [block.family for block in layout.blocks]
    labels, priors = [], []
    for units in dependent + independent:
        z, prior = np.zeros(N, np.int64), DirichletProcess(plan.concentration or 1.0)
        columns = columns_in(layout, units)
        given = next((labels for own, labels in known if overlap(own, columns) > LEAST_OVERLAP), None)
        if given is not None:
            z = canonical(given)
        elif units in dependent:
            blocks = view_blocks(layout, reference, columns)
            schedule = chain.Schedule(
                learn_concentration=plan.rows.learn_concentration,
                learn_likelihood=plan.rows.learn_likelihood,
            )
            found = find_start(
                blocks,
                prior,
                schedule,
                seed=int(rng.integers(2**62)),
                apart=apart and len(units) >= MIN_UNITS_APART,
                n_iterations=N_START_ITERATIONS,
                sample_rows=START_ROWS,
            )
            z, prior = found.z, found.prior
        labels.append(z)
        priors.append(prior)
    state = start(layout, dependent + independent, labels, priors, rng, plan, None, view_concentration)
    # The column step comes before hyper-parameters adapt to clusters that only a few columns support. The views of
    # dependent columns have found their clusters; those of the others have not been looked for.
    alone = [unit for units in independent for unit in units]
    return column_step(state, plan, rng, alone)
