"""The label matrix behind a consensus, as codes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from partita.table import read_table

__all__ = ["label_codes"]

MOST_CELLS = 50_000_000  # objects x members that are read again


def label_codes(model: Any, X: Any = None) -> NDArray[np.int64] | None:
    """Codes (objects x members), -1 missing; None where they are not known, or too many.

    Examples
    --------
    >>> from partita import EvidenceAccumulation
    >>> Y = [["a", 1], ["a", 1], ["b", None], ["b", 2]]
    >>> label_codes(EvidenceAccumulation().fit(Y), Y).tolist()
    [[0, 0], [0, 0], [1, -1], [1, 1]]
    """
    kept = getattr(model, "label_matrix_", None)
    if kept is not None:
        return np.asarray(kept)
    soft = getattr(model, "_soft_names", None) is not None  # memberships are no codes
    if X is None or soft or not hasattr(model, "schema_"):
        return None
    if len(model.labels_) * model.n_features_in_ > MOST_CELLS:
        return None
    table = read_table(X, schema=model.schema_)
    if table.n_rows != len(model.labels_) or len(table.columns) != model.n_features_in_:
        return None
    return np.column_stack([np.asarray(column.values, np.int64) for column in table.columns])
