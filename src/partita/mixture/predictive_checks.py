"""Does the fitted mixture produce tables like a given one?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from partita.fitting.fitted_mixture import FittedMixture
from partita.posterior import ColumnCheck, predictive_checks
from partita.table import CODED_KINDS, Table


def check_columns(
    fitted: FittedMixture, table: Table, n_tables: int, rng: np.random.Generator
) -> dict[str, list[ColumnCheck]]:
    """The checks of each modeled column, by its name."""
    if table.sparse is not None:
        raise ValueError(
            "predictive checks compare columns, and a sparse table has too many: pass some as an array"
        )
    names = [name for block in fitted.blocks for name in block.columns]
    observed = np.column_stack([_numbers(table.column(name).values) for name in names])
    is_coded = [fitted.schema.column(name).kind in CODED_KINDS for name in names]
    kinds = ["categorical" if coded else "real" for coded in is_coded]
    tables = _sampled_tables(fitted, names, table.n_rows, n_tables, rng)
    checks = predictive_checks(observed, tables, kinds=kinds)
    return {name: [check for check in checks if check.column == d] for d, name in enumerate(names)}


def _sampled_tables(
    fitted: FittedMixture, names: list[str], n_rows: int, n_tables: int, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    shares = fitted.weights / fitted.weights.sum()
    for _ in range(n_tables):
        z = rng.choice(len(shares), size=n_rows, p=shares)
        columns = fitted.sample_columns(z, rng)
        yield np.column_stack([_numbers(columns[name]) for name in names])


def _numbers(values: np.ndarray) -> np.ndarray:
    """Floats, NaN for the missing code."""
    return values if values.dtype.kind == "f" else np.where(values < 0, np.nan, values.astype(float))
