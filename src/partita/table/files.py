"""Read tables from files: CSV, TSV, Excel, Parquet, Arrow, npy and AnnData. Errors name the place and the remedy."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partita.table.arrow_files import ARROW, damaged, read_arrow
from partita.table.errors import FileError
from partita.table.notes import Note
from partita.table.sources import OrderedCells
from partita.table.surroundings import KEEP_ALL, find_head, is_below_table, notes_on_lines
from partita.table.text_files import (
    SAMPLED_LINES,
    Cells,
    ListCells,
    TextTable,
    convert,
    read_text_file,
    repeated_names,
)

TEXT = {".csv": None, ".tsv": "\t", ".tab": "\t", ".txt": None}  # separator; None: detected
EXCEL = {".xlsx", ".xls", ".xlsb", ".ods"}
EXTRAS = {"anndata": "anndata", "python-calamine": "excel"}


class FileTable(NamedTuple):
    """Columns by name, in the order of the file.

    Numbers are floats with NaN for missing cells; text is in object arrays with None for missing cells; dates of
    Parquet, Arrow and Excel files are datetime64. `notes` say what is unusual about the file; `words` are the texts
    that were read as missing, by column; `levels` are the levels from low to high of columns that have an order in the
    file.
    """

    columns: dict[str, NDArray[Any]]
    n_rows: int
    notes: tuple[Note, ...] = ()
    words: Mapping[str, Sequence[str]] = {}
    levels: Mapping[str, tuple[str, ...]] = {}

    def ordered(self) -> dict[str, Any]:
        """Return the columns for `read_table`, with the levels of those that have an order in the file."""
        return {
            name: OrderedCells(values, self.levels[name]) if name in self.levels else values
            for name, values in self.columns.items()
        }

    def take(self, names: Sequence[str], path: Any) -> FileTable:
        """Return some of the columns; an unknown name raises an error that lists the known ones."""
        for name in names:
            if name not in self.columns:
                raise FileError(
                    f"{path}: there is no column {name!r}; the columns are {_listed(self.columns)}"
                )
        return self._replace(columns={name: self.columns[name] for name in names})

    def drop(self, names: Sequence[str], path: Any) -> FileTable:
        """Return all columns except some."""
        self.take(names, path)
        return self._replace(columns={k: v for k, v in self.columns.items() if k not in set(names)})


def read_file(
    path: Any,
    *,
    separator: str | None = None,
    header: bool | None = None,
    key: str | None = None,
    encoding: str | None = None,
    missing: Collection[str] = (),
    exact: bool = False,
    format: str | None = None,
    skip: Collection[int] = (),
) -> FileTable:
    """Read a table from a file; the suffix determines the format.

    .csv, .tsv, .tab and .txt (also .gz) are text; .xlsx, .xls, .xlsb and .ods need python-calamine (extra `excel`);
    .parquet, .feather and .arrow need pyarrow (extra `io`), which also makes reading text faster; .npy holds one array;
    .h5ad needs anndata (extra `anndata`). Columns of text stay as they are written: `read_table` reads money, percent
    and dates.

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
        ``layers``; by default X. The sheet of an Excel file, by default the first.
    encoding : str, default=None
        The encoding of a text file, such as "cp1252". By default UTF-8, that of a byte-order mark, or a guess, which is
        noted.
    missing : collection of str, default=()
        Texts that mean missing in text and Excel files, besides the usual ones (empty, NA, n/a, null, nan, -, ., ?).
    exact : bool, default=False
        Whether cells stay as they are written, for labels and names: cells of text files and Excel sheets are text,
        integers of other formats are integers, so that 007 is not 7 and no digit beyond the 15th is lost.
    format : str, default=None
        The format of a file whose suffix does not tell it, as the suffix of such a file: "csv", "tsv", "parquet", ...
    skip : collection of int, default=()
        Lines of a text file, or rows of an Excel sheet, that are no part of the table, counted from 1. Of the others,
        those above the names of the columns, lines of units below the names, and totals and remarks below the table
        are recognized, left out and noted; 0 keeps all lines.

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
    ending = ending_of(path) if format is None else f".{format.lower().lstrip('.')}"
    if skip and ending not in {*TEXT, *EXCEL}:
        raise FileError(f"{path}: lines can be skipped in text and Excel files only")
    notes: list[Note] = []
    words: dict[str, list[str]] = {}
    levels: dict[str, tuple[str, ...]] = {}
    if ending in TEXT:
        columns, notes, words = read_text_file(
            path,
            separator=separator or TEXT[ending],
            header=header,
            encoding=encoding,
            missing=missing,
            exact=exact,
            skip=skip,
        )
    elif ending in EXCEL:
        columns, notes, words = _read_excel(path, key, missing, exact, skip)
    elif ending in ARROW:
        columns, levels = read_arrow(path, ending, exact)
    elif ending == ".npy":
        columns = _read_npy(path, exact)
    elif ending == ".h5ad":
        columns, levels = _read_anndata(path, key)
    else:
        known = ", ".join(sorted([*TEXT, *EXCEL, *ARROW, ".npy", ".h5ad"]))
        raise FileError(
            f"{path}: files of type {ending or '(no suffix)'} cannot be read; known types are {known}. If the file has "
            "one of these formats, name it (--format csv on the command line)"
        )
    n_rows = len(next(iter(columns.values()))) if columns else 0
    if n_rows == 0:
        raise FileError(f"{path}: the table has no rows")
    return FileTable(columns, n_rows, tuple(notes), words, levels)


def ending_of(path: Path) -> str:
    """Return the suffix that determines the format, that of table.csv.gz without .gz.

    Examples
    --------
    >>> ending_of(Path("people.CSV.gz"))
    '.csv'
    """
    endings = [ending.lower() for ending in path.suffixes[-2:]]
    if endings and endings[-1] == ".gz":
        endings.pop()
    return endings[-1] if endings else ""


# ---- other formats ---------------------------------------------------------------------------------------------


def _library(name: str, path: Path, module: str | None = None) -> Any:
    try:
        return import_module(module or name)
    except ImportError:
        raise FileError(
            f'{path}: reading this format needs {name}: pip install "partita[{EXTRAS[name]}]"'
        ) from None


def _read_excel(
    path: Path, sheet: str | None, missing: Collection[str], exact: bool, skip: Collection[int] = ()
) -> TextTable:
    calamine = _library("python-calamine", path, "python_calamine")
    try:
        book = calamine.CalamineWorkbook.from_path(str(path))
    except Exception as error:  # the classes of its errors differ between versions
        raise FileError(f"{path}: {error}; the file is damaged or has another format") from None
    if sheet is not None and sheet not in book.sheet_names:
        raise FileError(f"{path}: there is no sheet {sheet!r}; choose from {_listed(book.sheet_names)}")
    found = book.get_sheet_by_name(sheet or book.sheet_names[0]).to_python(skip_empty_area=not skip)
    rows = [row for number, row in enumerate(found, 1) if number not in skip]
    if not rows:
        raise FileError(f"{path}: the sheet is empty")
    rows, notes = (rows, []) if KEEP_ALL in skip else _without_surroundings(rows)
    names = [str(name).strip() or f"column_{j + 1}" for j, name in enumerate(rows[0])]
    twice = repeated_names(names)
    if twice:
        raise FileError(f"{path}: several columns are called {_listed(twice)}: rename them")
    columns = {name: [row[j] for row in rows[1:]] for j, name in enumerate(names)}
    dates = {name: found for name, cells in columns.items() if (found := _excel_dates(cells)) is not None}
    texts: dict[str, Cells] = {
        name: ListCells([_excel_text(cell) for cell in cells])
        for name, cells in columns.items()
        if name not in dates
    }
    read = convert(texts, ",", missing, exact=exact)
    columns_read = {name: (dates | read.columns)[name] for name in names}
    return read._replace(columns=columns_read, notes=[*notes, *read.notes])


def _without_surroundings(rows: list[list[Any]]) -> tuple[list[list[Any]], list[Note]]:
    """Leave out the rows of a sheet that are no part of its table, and note them."""
    sampled = [[_excel_text(cell) for cell in row] for row in rows[:SAMPLED_LINES]]
    n_above, n_below = find_head(sampled)
    begin = n_above + 1 + n_below
    end = len(rows)
    while end > begin + 2 and is_below_table([_excel_text(cell) for cell in rows[end - 1]], len(rows[0])):
        end -= 1
    below = [[_excel_text(cell) for cell in row] for row in rows[end:]]
    notes = notes_on_lines(
        sampled[:n_above], sampled[n_above + 1 : begin], [row for row in below if any(row)]
    )
    return [rows[n_above], *rows[begin:end]], notes


def _excel_dates(cells: Sequence[Any]) -> NDArray[Any] | None:
    """Return a column of dates; None if it holds something else."""
    seen = [cell for cell in cells if cell != ""]
    if not seen or not all(isinstance(cell, datetime.date) for cell in seen):
        return None
    return np.array([None if cell == "" else cell for cell in cells], dtype="datetime64[us]")


def _excel_text(cell: Any) -> str:
    """Return a cell as it would stand in a text file."""
    if isinstance(cell, bool):
        return str(int(cell))
    if isinstance(cell, float):
        return f"{cell:.0f}" if cell == int(cell) and abs(cell) < 1e15 else repr(cell)
    return str(cell)


def _read_npy(path: Path, exact: bool) -> dict[str, NDArray[Any]]:
    try:
        array = np.load(path, allow_pickle=False)
    except Exception as error:  # a damaged header fails in many ways: tokenize, overflow, memory, ...
        raise damaged(path, error) from None
    if array.ndim not in (1, 2):
        raise FileError(
            f"{path}: the array has {array.ndim} dimensions; a table needs two (rows and columns)"
        )
    return _from_matrix(array.reshape(len(array), -1), None, exact)


def _from_matrix(
    array: NDArray[Any], names: Sequence[str] | None, exact: bool = False
) -> dict[str, NDArray[Any]]:
    names = [f"column_{j + 1}" for j in range(array.shape[1])] if names is None else list(names)
    if array.dtype.kind in ("f" if exact else "biuf"):
        array = array.astype(np.float64)
    elif array.dtype.kind in "US":
        array = array.astype(object)
    return {name: np.ascontiguousarray(array[:, j]) for j, name in enumerate(names)}


def _read_anndata(path: Path, key: str | None) -> tuple[dict[str, NDArray[Any]], dict[str, tuple[str, ...]]]:
    anndata = _library("anndata", path)
    try:
        data = anndata.read_h5ad(path)
    except OSError as error:
        raise FileError(f"{path}: {error}") from None
    if key == "obs":
        levels = {
            str(name): tuple(map(str, data.obs[name].cat.categories))
            for name in data.obs.columns
            if getattr(data.obs[name].dtype, "ordered", False)
        }
        return {str(name): _from_series(data.obs[name]) for name in data.obs.columns}, levels
    if key is None:
        values, names = data.X, [str(name) for name in data.var_names]
    elif key in data.obsm:
        values, names = data.obsm[key], None
    elif key in data.layers:
        values, names = data.layers[key], [str(name) for name in data.var_names]
    else:
        there = ["obs", *data.obsm, *data.layers]
        raise FileError(f"{path}: there is no {key!r}; choose from {_listed(there)}")
    return _from_matrix(np.asarray(values.toarray() if hasattr(values, "toarray") else values), names), {}


def _from_series(series: Any) -> NDArray[Any]:
    if series.dtype.kind in "biuf":
        return series.to_numpy(np.float64)
    if series.dtype.kind == "M":
        return series.to_numpy("datetime64[us]")
    found = np.empty(len(series), dtype=object)
    found[:] = [None if missing else str(value) for value, missing in zip(series, series.isna(), strict=True)]
    return found


def _listed(names: Any, limit: int = 8) -> str:
    names = [str(name) for name in names]
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more
