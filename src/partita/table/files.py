"""Read tables from files: CSV, TSV, Parquet, Arrow, npy and AnnData. Errors name the place and the remedy."""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Iterator, Sequence
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partita.table.cells import is_number

TEXT = {".csv": None, ".tsv": "\t", ".tab": "\t", ".txt": None}  # separator; None: detected
ARROW = {".parquet", ".pq", ".feather", ".arrow", ".ipc"}
SEPARATORS = (",", ";", "\t", "|")
MISSING = frozenset(("", "na", "n/a", "nan", "null", "none", "?", "-nan", "<na>"))
COMMA_NUMBER = re.compile(r"[-+]?\d+(,\d+)?([eE][-+]?\d+)?")
SAMPLED_LINES = 20
EXTRAS = {"pyarrow": "io", "anndata": "anndata"}


class FileError(ValueError):
    """A file that cannot be read as a table; the message names the place and the remedy."""


class FileTable(NamedTuple):
    """Columns by name, in the order of the file.

    Numbers are floats with NaN for missing cells; text is in object arrays with None for missing cells.
    """

    columns: dict[str, NDArray[Any]]
    n_rows: int

    def take(self, names: Sequence[str], path: Any) -> FileTable:
        """Return some of the columns; an unknown name raises an error that lists the known ones."""
        for name in names:
            if name not in self.columns:
                raise FileError(
                    f"{path}: there is no column {name!r}; the columns are {_listed(self.columns)}"
                )
        return FileTable({name: self.columns[name] for name in names}, self.n_rows)

    def drop(self, names: Sequence[str], path: Any) -> FileTable:
        """Return all columns except some."""
        self.take(names, path)
        return FileTable({k: v for k, v in self.columns.items() if k not in set(names)}, self.n_rows)


def read_file(
    path: Any, *, separator: str | None = None, header: bool | None = None, key: str | None = None
) -> FileTable:
    """Read a table from a file; the suffix determines the format.

    .csv, .tsv, .tab and .txt (also .gz) are text in UTF-8; .parquet, .feather and .arrow need pyarrow (extra `io`);
    .npy holds one array; .h5ad needs anndata (extra `anndata`).

    Parameters
    ----------
    path : str or path
        The file.
    separator : str, default=None
        The separator of cells in a text file. By default it is detected: the one of comma, semicolon, tab and bar for
        which all lines have the same number of cells. With semicolons, numbers may have a decimal comma.
    header : bool, default=None
        Whether the first line of a text file holds the names of the columns. By default it does unless all its cells
        are numbers.
    key : str, default=None
        The part of an AnnData file to read: ``obs`` (the annotations of the rows), an entry of ``obsm`` or an entry of
        ``layers``; by default X.

    Returns
    -------
    FileTable

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "small.csv"
    ...     _ = path.write_text("size;color\\n1,5;red\\n;blue\\n")
    ...     read_file(path).columns
    {'size': array([1.5, nan]), 'color': array(['red', 'blue'], dtype=object)}
    """
    path = Path(path)
    if not path.exists():
        raise FileError(f"{path}: no such file")
    if path.is_dir():
        raise FileError(f"{path} is a folder: give the path of a file")
    ending = _ending(path)
    if ending in TEXT:
        columns = _read_text(path, separator or TEXT[ending], header)
    elif ending in ARROW:
        columns = _read_arrow(path, ending)
    elif ending == ".npy":
        columns = _read_npy(path)
    elif ending == ".h5ad":
        columns = _read_anndata(path, key)
    else:
        known = ", ".join(sorted([*TEXT, *ARROW, ".npy", ".h5ad"]))
        raise FileError(
            f"{path}: files of type {ending or '(no suffix)'} cannot be read; known types are {known}"
        )
    n_rows = len(next(iter(columns.values()))) if columns else 0
    if n_rows == 0:
        raise FileError(f"{path}: the table has no rows")
    return FileTable(columns, n_rows)


def _ending(path: Path) -> str:
    endings = [ending.lower() for ending in path.suffixes[-2:]]
    if endings and endings[-1] == ".gz":
        endings.pop()
    return endings[-1] if endings else ""


# ---- text ------------------------------------------------------------------------------------------------------


def _read_text(path: Path, separator: str | None, header: bool | None) -> dict[str, NDArray[Any]]:
    separator = separator or _separator(path)
    lines = _lines(path, separator)
    first = next(lines, None)
    if first is None:
        raise FileError(f"{path}: the file is empty")
    number, names = first
    width = len(names)
    rows = []
    if not (header if header is not None else not all(_is_number_or_missing(cell) for cell in names)):
        rows.append(names)
        names = [f"column_{j + 1}" for j in range(width)]
    for number, row in lines:
        if len(row) != width:
            raise FileError(
                f"{path}, line {number}: {len(row)} cells, but the first line has {width}; check that the separator is "
                f"{separator!r}, and put text that contains separators in quotes"
            )
        rows.append(row)
    names = [name.strip() or f"column_{j + 1}" for j, name in enumerate(names)]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise FileError(f"{path}: several columns are called {_listed(twice)}: rename them")
    return {
        name: _column([row[j] for row in rows], decimal_comma=separator == ";")
        for j, name in enumerate(names)
    }


def _open_text(path: Path) -> Any:
    opener = gzip.open if path.name.lower().endswith(".gz") else open
    return opener(path, "rt", encoding="utf-8-sig", newline="")  # skip a byte-order mark


def _lines(path: Path, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield line numbers and cells; empty lines are skipped."""
    try:
        with _open_text(path) as file:
            reader = csv.reader(file, delimiter=separator, strict=True)
            for row in reader:
                if "\0" in "".join(row):
                    raise FileError(
                        f"{path}, line {reader.line_num}: a zero byte, so the file is not text: save it as UTF-8"
                    )
                if row:
                    yield reader.line_num, row
    except UnicodeDecodeError as error:
        raise FileError(f"{path}: the text is not UTF-8 ({error.reason}): save it as UTF-8") from None
    except csv.Error as error:
        raise FileError(f"{path}, line {reader.line_num}: {error}; check the quotes") from None
    except (OSError, EOFError) as error:
        raise FileError(f"{path}: {error}") from None


def _separator(path: Path) -> str:
    """Return the separator for which the first lines have the same, and largest, number of cells."""
    best, most = ",", 1
    for separator in SEPARATORS:
        try:
            widths = [len(row) for _, row in islice(_lines(path, separator), SAMPLED_LINES)]
        except FileError:  # the quotes do not fit this separator
            continue
        if widths and min(widths) == max(widths) and widths[0] > most:
            best, most = separator, widths[0]
    return best


def _is_number_or_missing(cell: str) -> bool:
    return is_number(cell) or (cell.strip().lower() in MISSING and cell.strip() != "")


def _column(cells: list[str], *, decimal_comma: bool) -> NDArray[Any]:
    """Return numbers if every cell is a number or missing, otherwise text."""
    known = [None if (text := cell.strip()).lower() in MISSING else text for cell in cells]
    try:
        return np.array([np.nan if cell is None else float(cell) for cell in known])
    except ValueError:
        pass
    if decimal_comma and all(cell is None or COMMA_NUMBER.fullmatch(cell) for cell in known):
        return np.array([np.nan if cell is None else float(cell.replace(",", ".")) for cell in known])
    column = np.empty(len(known), dtype=object)
    column[:] = known
    return column


# ---- other formats ---------------------------------------------------------------------------------------------


def _library(name: str, path: Path, module: str | None = None) -> Any:
    try:
        return import_module(module or name)
    except ImportError:
        raise FileError(
            f'{path}: reading this format needs {name}: pip install "partita[{EXTRAS[name]}]"'
        ) from None


def _read_arrow(path: Path, ending: str) -> dict[str, NDArray[Any]]:
    pyarrow = _library("pyarrow", path)
    reader = (
        _library("pyarrow", path, "pyarrow.parquet")
        if ending in (".parquet", ".pq")
        else _library("pyarrow", path, "pyarrow.feather")
    )
    try:
        table = reader.read_table(path)
    except (pyarrow.ArrowException, OSError) as error:
        raise FileError(
            f"{path}: {str(error).splitlines()[0]}; the file is damaged or has another format"
        ) from None
    return {str(name): _from_arrow(table.column(name)) for name in table.column_names}


def _from_arrow(column: Any) -> NDArray[Any]:
    import pyarrow.types as types

    kind = column.type
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
        values = column.cast("float64") if not types.is_floating(kind) else column
        return np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.float64)
    found = np.empty(len(column), dtype=object)
    found[:] = [None if value is None else str(value) for value in column.to_pylist()]
    return found


def _read_npy(path: Path) -> dict[str, NDArray[Any]]:
    try:
        array = np.load(path, allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise FileError(f"{path}: {error}") from None
    if array.ndim not in (1, 2):
        raise FileError(
            f"{path}: the array has {array.ndim} dimensions; a table needs two (rows and columns)"
        )
    return _from_matrix(array.reshape(len(array), -1), None)


def _from_matrix(array: NDArray[Any], names: Sequence[str] | None) -> dict[str, NDArray[Any]]:
    names = [f"column_{j + 1}" for j in range(array.shape[1])] if names is None else list(names)
    if array.dtype.kind in "biuf":
        array = array.astype(np.float64)
    elif array.dtype.kind in "US":
        array = array.astype(object)
    return {name: np.ascontiguousarray(array[:, j]) for j, name in enumerate(names)}


def _read_anndata(path: Path, key: str | None) -> dict[str, NDArray[Any]]:
    anndata = _library("anndata", path)
    try:
        data = anndata.read_h5ad(path)
    except OSError as error:
        raise FileError(f"{path}: {error}") from None
    if key == "obs":
        return {str(name): _from_series(data.obs[name]) for name in data.obs.columns}
    if key is None:
        values, names = data.X, [str(name) for name in data.var_names]
    elif key in data.obsm:
        values, names = data.obsm[key], None
    elif key in data.layers:
        values, names = data.layers[key], [str(name) for name in data.var_names]
    else:
        there = ["obs", *data.obsm, *data.layers]
        raise FileError(f"{path}: there is no {key!r}; choose from {_listed(there)}")
    return _from_matrix(np.asarray(values.toarray() if hasattr(values, "toarray") else values), names)


def _from_series(series: Any) -> NDArray[Any]:
    if series.dtype.kind in "biuf":
        return series.to_numpy(np.float64)
    found = np.empty(len(series), dtype=object)
    found[:] = [None if missing else str(value) for value, missing in zip(series, series.isna(), strict=True)]
    return found


def _listed(names: Any, limit: int = 8) -> str:
    names = [str(name) for name in names]
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more
