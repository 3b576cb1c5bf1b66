"""Missing codes: values that a user declares as missing."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from partita.table.kinds import entries_by_column

#: What a user may pass as `missing_codes`.
CodesLike: TypeAlias = Any


def resolve_codes(
    missing_codes: CodesLike, names: Sequence[str], labels: Sequence[Hashable] | None = None
) -> list[tuple[Any, ...]]:
    """Return the missing codes of every column.

    Parameters
    ----------
    missing_codes : None, number, str, sequence or mapping
        Codes for all columns, or a mapping from column name, pattern (``"q*"``) or position to a code or several.
    names : sequence of str
        The column names.
    labels : sequence, default=None
        The column labels of the data frame, if they are not text.

    Examples
    --------
    >>> resolve_codes([999, "-"], ["age", "income"])
    [(999, '-'), (999, '-')]
    >>> resolve_codes({"age": 999}, ["age", "income"])
    [(999,), ()]
    """
    if missing_codes is None:
        return [() for _ in names]
    if not isinstance(missing_codes, Mapping):
        return [_as_codes(missing_codes)] * len(names)
    given = entries_by_column(missing_codes, names, labels, "missing_codes")
    return [tuple(code for entry in entries for code in _as_codes(entry)) for entries in given]


def _as_codes(given: Any) -> tuple[Any, ...]:
    """Return one or several codes as plain Python values."""
    codes = tuple(given) if isinstance(given, (list, tuple, set, frozenset, np.ndarray)) else (given,)
    plain = []
    for code in codes:
        if isinstance(code, (np.integer, np.floating)):
            code = code.item()
        if isinstance(code, bool) or not isinstance(code, (int, float, str)):
            raise TypeError(
                f"missing_codes has {code!r}; give numbers or text, for all columns (missing_codes=[999, '-']) or by "
                "column (missing_codes={'age': 999})"
            )
        plain.append(code)
    return tuple(plain)
