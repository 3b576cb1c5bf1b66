"""Does the fitted mixture produce tables like the one it was fitted to?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from partita.estimator import as_generator
from partita.fitting.profiles import sample_columns
from partita.posterior import ColumnCheck, predictive_checks
from partita.table import Table

if TYPE_CHECKING:
    from partita.mixture.estimator import Mixture

__all__ = ["check_columns"]


def check_columns(model: Mixture, table: Table, n_tables: int) -> dict[str, list[ColumnCheck]]:
    """The checks of each modelled column, by its name."""
    if table.sparse is not None:
        raise ValueError(
            "predictive checks compare columns, and a sparse table has too many: pass some as an array"
        )
    names = [name for block in model._blocks for name in block.columns]
    observed = np.column_stack([_numbers(table.column(name).values) for name in names])
    coded = [model.schema_.column(name).kind in ("categorical", "binary") for name in names]
    kinds = ["categorical" if is_coded else "real" for is_coded in coded]
    checks = predictive_checks(observed, _replicates(model, names, table.n_rows, n_tables), kinds=kinds)
    return {name: [check for check in checks if check.column == d] for d, name in enumerate(names)}


def _replicates(model: Mixture, names: list[str], n_rows: int, n_tables: int) -> Iterator[np.ndarray]:
    rng = as_generator(model.random_state)
    shares = model.weights_ / model.weights_.sum()
    for _ in range(n_tables):
        z = rng.choice(len(shares), size=n_rows, p=shares)
        columns = sample_columns(model._blocks, model._statistics, model._plugged_in(), z, model.schema_, rng)
        yield np.column_stack([_numbers(columns[name]) for name in names])


def _numbers(values: np.ndarray) -> np.ndarray:
    """Floats, NaN for the missing code."""
    return values if values.dtype.kind == "f" else np.where(values < 0, np.nan, values.astype(float))
