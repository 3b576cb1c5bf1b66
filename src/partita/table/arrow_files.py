"""Read Parquet, Arrow and Feather files, and validate what is read: pyarrow trusts the sizes in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partita.table.errors import FileError

PARQUET, IPC = {".parquet", ".pq"}, {".feather", ".arrow", ".ipc"}
ARROW = PARQUET | IPC


def read_arrow(
    path: Path, ending: str, exact: bool
) -> tuple[dict[str, NDArray[Any]], dict[str, tuple[str, ...]]]:
    """Return the columns, and the levels of those that have an order; `exact` keeps integers as they are."""
    pyarrow = library(path)
    try:
        table = checked(_read(path, ending), path)
        levels = {
            str(field.name): tuple(map(str, table.column(field.name).combine_chunks().dictionary.to_pylist()))
            for field in table.schema
            if pyarrow.types.is_dictionary(field.type) and field.type.ordered
        }
        columns = {str(name): _values(table.column(name), exact) for name in table.column_names}
    except FileError:
        raise
    except (
        Exception
    ) as error:  # a damaged file fails in many ways: Arrow errors, SystemError, unicode, overflow, ...
        raise damaged(path, error) from None
    return columns, levels


def checked(table: Any, place: Any) -> Any:
    """Return an Arrow table whose buffers are as long as its rows and whose offsets and texts are valid, or raise."""
    try:
        table.validate(full=True)
    except Exception as error:
        raise damaged(place, error) from None
    return table


def damaged(place: Any, error: BaseException) -> FileError:
    """Return the error for a file that cannot be read."""
    first = (str(error).splitlines() or [type(error).__name__])[0]
    return FileError(f"{place}: {first}; the file is damaged or has another format")


def library(path: Any) -> Any:
    """Return pyarrow, or raise an error that names the extra."""
    try:
        import pyarrow
    except ImportError:
        raise FileError(f'{path}: reading this format needs pyarrow: pip install "partita[io]"') from None
    return pyarrow


def _read(path: Path, ending: str) -> Any:
    if ending in PARQUET:
        from pyarrow import parquet

        return parquet.read_table(path)
    from pyarrow import feather

    return feather.read_table(path, memory_map=False)  # a map that is cut short later would end the process


def _values(column: Any, exact: bool) -> NDArray[Any]:
    import pyarrow.types as types

    kind = column.type
    if types.is_integer(kind) and exact:
        if not column.null_count:
            return column.to_numpy(zero_copy_only=False)
        return np.array(column.to_pylist(), dtype=object)
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
        values = column.cast("float64") if not types.is_floating(kind) else column
        return np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.float64)
    if types.is_date(kind) or types.is_timestamp(kind):
        return column.cast("timestamp[us]").to_numpy(zero_copy_only=False)
    found = np.empty(len(column), dtype=object)
    found[:] = [None if value is None else str(value) for value in column.to_pylist()]
    return found
