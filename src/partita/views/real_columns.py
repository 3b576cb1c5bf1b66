"""How real columns of models of views become blocks: lumps, transformations and tied values.

The steps are those of :mod:`partita.fitting.real_columns`, for columns that are modeled one by one. Without them,
clusters of such a column would describe its shape: many narrow ones at its lump and its tied values, and several along
its tail.

- A column with a lump has two *parts*: whether a cell has the lump, and its value where it has not (:class:`Lumps`,
  :class:`Values`). The parts carry the name of the column, so what is told of them is told of the column.
- A skewed column, or part, is transformed if it has more evidence on the transformed scale by itself, with any number
  of clusters on both scales.
- A tied value stands for its cell. The values in the cells are drawn once, evenly, before the fit; chains draw them
  anew in each iteration.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from partita.families import Block, GaussianDiagonal, Power, Ties, family_entry
from partita.families.codings import (
    MIN_ALONE,
    MIN_OTHERS,
    MIN_SKEWNESS,
    Lump,
    code_lumps,
    code_values,
    find_lump,
    fit_power,
    skewness,
)
from partita.families.factors import MAX_COLUMNS
from partita.families.intervals import draw_interval
from partita.families.ties import find_ties
from partita.fitting.real_columns import Steps, allowed_steps, log_evidence
from partita.table import Table
from partita.table.scaling import center_and_scale


def take_steps(
    blocks: Sequence[Block], table: Table, steps: Steps, rng: np.random.Generator
) -> tuple[Block, ...]:
    """The blocks, with the steps for real columns of one normal distribution per cluster.

    Not with few rows, nor with many columns, such as pixels, which have one shape for a reason that they share.
    """
    out: list[Block] = []
    for block in blocks:
        is_normal = isinstance(block.family, GaussianDiagonal) and block.coding is None
        if is_normal and len(block.columns) <= MAX_COLUMNS:
            allowed = allowed_steps(steps, table.weights, len(block.columns))
            out += _Columns(block, table, allowed, rng).blocks()
        else:
            out.append(block)
    return tuple(out)


class _Columns:
    """The real columns of a table, in the user's units."""

    def __init__(self, block: Block, table: Table, steps: Steps, rng: np.random.Generator):
        self.block, self.weights, self.steps, self.rng = block, table.weights, steps, rng
        self.X = np.column_stack([table.column(name).values for name in block.columns]).astype(float)
        self.lumps = [find_lump(x, self.weights) for x in self.X.T]
        self.has_lump = np.array(
            [steps.lumps and lump.stands_out and lump.share < 1.0 for lump in self.lumps]
        )
        self.is_alone = self.has_lump & np.array([are_few(lump) for lump in self.lumps])

    def blocks(self) -> list[Block]:
        """The values of the columns, then whether each column with a lump has it."""
        out = [] if self.is_alone.all() else [self._values()]
        return [*out, self._lumps()] if self.has_lump.any() else out

    def _values(self) -> Block:
        which = np.flatnonzero(~self.is_alone)
        names = tuple(self.block.columns[d] for d in which)
        lumps = np.array([self.lumps[d].value if self.has_lump[d] else np.nan for d in which])
        X = np.where(self.X[:, which] == lumps, np.nan, self.X[:, which])
        powers = tuple(self._power(x) if self.steps.powers else Power() for x in X.T)
        block = self.block
        is_coded = self.has_lump.any() or any(power.exponent != 1.0 for power in powers)
        coding = code_values(X, self.weights, np.full(len(which), np.nan), powers)
        if is_coded:
            Z, log_slope = coding.encode(X)
            block = family_entry("gaussian").block(Z, names, self.weights)
            block = block._replace(log_rest=log_slope, coding=coding._replace(lumps=lumps))
        if not self.steps.ties:
            return block
        ties = find_ties(X, self.weights, lambda values: coding.encode(values)[0])
        return block if ties is None else block._replace(ties=ties, data=ties.start(self.rng))

    def _power(self, x: np.ndarray) -> Power:
        """The transformation of one column, which changes nothing unless it increases the evidence."""
        if abs(skewness(x, self.weights)) <= MIN_SKEWNESS:
            return Power()
        if self.steps.ties:
            x = within_cells(x, self.weights, self.rng)
        power = fit_power(x, self.weights)
        plain, coded = ([self._alone(x, one)] for one in (Power(), power))
        return power if log_evidence(coded, self.weights) > log_evidence(plain, self.weights) else Power()

    def _alone(self, x: np.ndarray, power: Power) -> Block:
        coding = code_values(x[:, None], self.weights, np.full(1, np.nan), (power,))
        Z, log_slope = coding.encode(x[:, None])
        return family_entry("gaussian").block(Z, ("x",), self.weights)._replace(log_rest=log_slope)

    def _lumps(self) -> Block:
        which = np.flatnonzero(self.has_lump)
        X, names = np.ascontiguousarray(self.X[:, which]), tuple(self.block.columns[d] for d in which)
        values = np.array([self.lumps[d].value for d in which])
        coding = code_lumps(X, self.weights, values, self.is_alone[which])
        codes, log_rest = coding.encode(X)
        n_levels = np.full(len(which), 2)
        block = family_entry("bernoulli").block(codes, names, self.weights, n_levels=n_levels)
        return block._replace(log_rest=log_rest, coding=coding)


def are_few(lump: Lump) -> bool:
    """Whether the values beside a lump are too few to be described in each cluster.

    Examples
    --------
    >>> are_few(find_lump(np.repeat([0.0, 1.0, 2.0], [50, 20, 20]), np.ones(90)))
    False
    """
    return lump.share >= MIN_ALONE or lump.n_others < MIN_OTHERS


def within_cells(x: np.ndarray, weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One column with its tied values drawn evenly from their cells.

    Examples
    --------
    >>> x = within_cells(np.repeat([1.0, 2.0, 3.0], 4), np.ones(12), np.random.default_rng(0))
    >>> len(np.unique(x)), bool((x.round() == np.repeat([1.0, 2.0, 3.0], 4)).all())
    (12, True)
    """
    center, scale = center_and_scale(x, weights)
    ties = find_ties(x[:, None], weights, lambda values: (values - center) / scale)
    return x if ties is None else center + scale * ties.start(rng)[:, 0]


# ---- tied cells --------------------------------------------------------------------------------------------------


def has_ties(blocks: Sequence[Block]) -> bool:
    """Whether some column has tied values."""
    return any(block.ties is not None for block in blocks)


def cells_of(block: Block) -> Ties:
    """The tied cells of a block of real columns, none of which may be tied."""
    if block.ties is not None:
        return block.ties
    shape = (len(block.data), len(block.columns))
    return Ties(np.full(shape, np.nan), np.full(shape, np.nan), np.full(shape, np.nan))


def draw_tied(
    values: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    center: np.ndarray,
    sd: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """The values with those of tied cells drawn from normal distributions that are truncated to the cells.

    Parameters
    ----------
    values, low, high : ndarray [row, column]
        Values, and the ends of their cells, NaN where a value is exact.
    center, sd : ndarray [row, column]
        Of the normal distributions.
    rng : Generator
        Source of randomness.

    Examples
    --------
    >>> x, low = np.array([[1.0, 2.0]]), np.array([[0.5, np.nan]])
    >>> draw_tied(x, low, low + 1.0, np.zeros((1, 2)), np.ones((1, 2)), np.random.default_rng(0)).round(3)
    array([[0.77, 2.  ]])
    """
    rows, columns = np.nonzero(~np.isnan(low))
    at = rows, columns
    u = rng.random(len(rows))
    drawn = center[at] + sd[at] * draw_interval(
        (low[at] - center[at]) / sd[at], (high[at] - center[at]) / sd[at], u
    )
    out = values.copy()
    out[at] = np.clip(drawn, low[at], high[at])
    return out
