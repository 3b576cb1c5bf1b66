"""Skewed real columns of models of views, on a transformed scale.

Clusters of a skewed column would describe its shape by several normal distributions. A power of the column, chosen by
maximum likelihood, takes their place if the column by itself has more evidence on the transformed scale, with any
number of clusters on both. What such columns tell is in the user's units, as in :class:`~partita.Mixture`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from partita.families import Block, GaussianDiagonal, Power, family_entry
from partita.families.codings import MIN_SKEWNESS, Values, code_values, fit_power, skewness
from partita.families.factors import MAX_COLUMNS
from partita.fitting.real_columns import MIN_OBJECTS, count_objects, log_evidence
from partita.table import Table


def transform_skewed(blocks: Sequence[Block], table: Table) -> tuple[Block, ...]:
    """The blocks, with the skewed real columns transformed where that has more evidence.

    Not with few rows, nor with many columns, such as pixels, which have one shape for a reason that they share.
    """
    out = []
    for block in blocks:
        few = count_objects(table.weights) < MIN_OBJECTS or len(block.columns) > MAX_COLUMNS
        if isinstance(block.family, GaussianDiagonal) and not few and block.coding is None:
            block = _transformed(block, table)
        out.append(block)
    return tuple(out)


def _transformed(block: Block, table: Table) -> Block:
    X = np.column_stack([table.column(name).values for name in block.columns]).astype(float)
    powers = [_power(x, table.weights) for x in X.T]
    if all(power.exponent == 1.0 for power in powers):
        return block
    return _coded(X, block.columns, powers, table.weights)


def _power(x: np.ndarray, weights: np.ndarray) -> Power:
    """The transformation of one column, which changes nothing unless it increases the evidence."""
    if abs(skewness(x, weights)) <= MIN_SKEWNESS:
        return Power()
    power = fit_power(x, weights)
    plain, coded = (_coded(x[:, None], ("x",), [one], weights) for one in (Power(), power))
    return power if log_evidence([coded], weights) > log_evidence([plain], weights) else Power()


def _coded(X: np.ndarray, names: Sequence[str], powers: Sequence[Power], weights: np.ndarray) -> Block:
    coding = code_values(X, weights, np.full(X.shape[1], np.nan), tuple(powers))
    Z, log_slope = coding.encode(X)
    block = family_entry("gaussian").block(Z, tuple(names), weights)
    return block._replace(log_rest=log_slope, coding=coding)


def describe_skewed(blocks: Sequence[Block]) -> str | None:
    """A sentence about the columns that are transformed; None if there are none."""
    names = [
        name
        for block in blocks
        if isinstance(block.coding, Values)
        for name, is_skewed in zip(block.columns, block.coding.is_skewed, strict=True)
        if is_skewed
    ]
    if not names:
        return None
    shown = ", ".join(map(str, names[:6])) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
    return (
        f"skewed columns are modeled on a transformed scale, which fits better: {shown}. family={{'real': 'gaussian'}} "
        "models them as they are"
    )
