"""Read sparse matrices of counts, which stay sparse."""

from __future__ import annotations

from typing import Any

import numpy as np

from partita.table.cells import place
from partita.table.kinds import KindsLike, resolve_kinds
from partita.table.notes import Findings
from partita.table.schema import ColumnSchema, Schema
from partita.table.tables import Table
from partita.table.weights import check_weights


def read_sparse(
    X: Any, kinds: KindsLike, schema: Schema | None, sample_weight: Any, estimator_name: str
) -> Table:
    """Read a scipy sparse matrix whose columns are all counts, or all binary.

    Entries that are not stored are zeros, as in scipy; no entry is missing.

    Parameters
    ----------
    X : scipy sparse matrix or array
        Any format and any real dtype.
    kinds, schema, sample_weight, estimator_name
        As in `read_table`.

    Returns
    -------
    Table
        Its `sparse` is a CSR array of float64 with sorted indices, without duplicates or stored zeros.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> table = read_sparse(csr_array([[0, 2], [1, 0]]), "count", None, None, "Mixture")
    >>> table.counts.toarray()
    array([[0., 2.],
           [1., 0.]])
    """
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got {X.ndim}D sparse array instead; use X.reshape(1, -1)")
    n_rows, n_columns = X.shape
    for size, what in ((n_rows, "sample(s)"), (n_columns, "feature(s)")):
        if size == 0:
            raise ValueError(f"Found array with 0 {what} (shape={X.shape}) while a minimum of 1 is required.")
    if X.dtype.kind == "c":
        raise ValueError("Complex data not supported: the sparse matrix holds complex numbers")
    if schema is None:
        names = [f"x{position}" for position in range(n_columns)]
        kind = _one_kind(set(resolve_kinds(kinds, names)))
    else:
        schema.check_features([""] * n_columns, False, estimator_name)
        names = list(schema.names)
        kind = _one_kind(set(schema.kinds))
    weights = check_weights(sample_weight, n_rows)
    counts = _canonical(X)
    _check_counts(counts, kind, names)
    findings = Findings()
    if schema is None:
        schema = Schema(tuple(_remember(name, kind) for name in names))
        occurring = np.bincount(counts[weights > 0].indices, minlength=n_columns)
        for position in np.flatnonzero(occurring == 0):
            findings.add("constant", names[position])
    elif kind == "binary":
        _check_zero_one_levels(schema)
    return Table(schema, [], n_rows, weights, findings.notes(), sparse=counts)


def _one_kind(found: set[str | None]) -> str:
    if found == {"count"} or found == {"binary"}:
        return str(found.pop())
    raise TypeError(
        "Sparse data was passed, but dense data is required unless all columns are counts. Use '.toarray()' "
        "to convert to a dense numpy array, or declare kinds='count' (or 'binary') to keep it sparse."
    )


def _canonical(X: Any) -> Any:
    from scipy.sparse import csr_array

    counts = csr_array(X, dtype=np.float64, copy=True)
    # equal matrices give equal arrays in any format
    counts.sum_duplicates()  # this also sorts the indices
    counts.eliminate_zeros()
    return counts


def _check_counts(counts: Any, kind: str, names: list[str]) -> None:
    data = counts.data
    wrong = ~np.isfinite(data) | (data < 0) | (data != np.floor(data))
    if kind == "binary":
        wrong |= data > 1
    if wrong.any():
        stored = int(np.argmax(wrong))
        row = int(np.searchsorted(counts.indptr, stored, side="right")) - 1
        allowed = "0 or 1" if kind == "binary" else "finite integers from 0 on"
        raise ValueError(
            f"{place(names[counts.indices[stored]], row)}: {data[stored]} in a sparse {kind} matrix; its "
            f"values must be {allowed}; use '.toarray()' for other values and for missing cells"
        )


def _remember(name: str, kind: str) -> ColumnSchema:
    return ColumnSchema(name, kind, "int", (0, 1)) if kind == "binary" else ColumnSchema(name, kind)


def _check_zero_one_levels(schema: Schema) -> None:
    for column in schema.columns:
        if tuple(column.levels) != (0, 1):
            raise ValueError(
                f"column {column.name!r} has the levels {column.levels!r} but a sparse matrix holds 0 and 1; "
                "use '.toarray()' and the same values as at fit"
            )
