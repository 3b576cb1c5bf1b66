"""Tables that are read in chunks of rows: arrays, memory maps, Parquet and Arrow files, Dask collections.

A chunk can be loaded again at any time, in this process or another one. So no chunk has to be kept in memory, and the
data of a lost worker are read again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from partita.table.arrow_files import IPC as ARROW
from partita.table.arrow_files import PARQUET, checked

CHUNK_BYTES = 1 << 25  # of an array or memory map, if the number of rows per chunk is not given


class ChunkSource:
    """A table in chunks; ``sizes`` holds the number of rows of each chunk.

    A subclass implements ``load`` and ``place``. It must be small, picklable, and return the same rows each time.
    """

    sizes: tuple[int, ...]
    n_columns: int
    # the chunk that was read last: neighboring ranges of rows share chunks
    _kept: tuple[int, Any] | None = None

    @property
    def n_rows(self) -> int:
        """The number of rows of all chunks."""
        return int(sum(self.sizes))

    def load(self, i: int) -> Any:
        """Load chunk i as an array or data frame."""
        raise NotImplementedError

    def place(self, i: int) -> str:
        """Describe where chunk i is, for error messages."""
        return f"chunk {i}"

    def rows(self, lo: int, hi: int) -> Any:
        """Return rows lo to hi as one array or data frame."""
        starts = np.concatenate([[0], np.cumsum(self.sizes)])
        first = int(np.searchsorted(starts, lo, side="right")) - 1
        pieces = []
        while first < len(self.sizes) and starts[first] < hi:
            if self.sizes[first]:
                begin, end = max(lo - starts[first], 0), min(hi, starts[first + 1]) - starts[first]
                pieces.append(_cut(self._remembered(first), int(begin), int(end)))
            first += 1
        return pieces[0] if len(pieces) == 1 else _join(pieces)

    def defer(self, lo: int, hi: int) -> RowRange:
        """Return rows lo to hi unread; they are read where they are needed."""
        return RowRange(self, lo, hi)

    def _remembered(self, i: int) -> Any:
        kept = self._kept
        if kept is None or kept[0] != i:
            try:
                kept = (i, self.load(i))
            except Exception as error:  # of Arrow, SystemError, unicode, overflow, ...
                raise ValueError(f"{self.place(i)} cannot be read: {_first_line(error)}") from error
            if len(kept[1]) != self.sizes[i]:
                raise ValueError(
                    f"{self.place(i)} has {len(kept[1])} rows now, but had {self.sizes[i]} when it was opened: do not "
                    "change files while they are read"
                )
            self._kept = kept
        return kept[1]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_kept"}


class RowRange:
    """A range of rows of a source, not yet read."""

    def __init__(self, source: ChunkSource, lo: int, hi: int):
        self.source, self.lo, self.hi = source, lo, hi

    def load(self) -> Any:
        """Read the rows."""
        return self.source.rows(self.lo, self.hi)


class MappedChunks(ChunkSource):
    """A source whose rows are those of another one, after a function of rows; nothing is kept.

    Examples
    --------
    >>> source = MappedChunks(ArrayChunks(np.arange(6).reshape(3, 2)), np.negative, 2)
    >>> source.rows(1, 3).tolist()
    [[-2, -3], [-4, -5]]
    """

    def __init__(self, source: ChunkSource, function: Callable[[Any], Any], n_columns: int):
        self.source, self.function, self.n_columns = source, function, n_columns
        self.sizes = source.sizes

    def load(self, i: int) -> Any:
        """Apply the function to a chunk."""
        return self.function(self.source.load(i))

    def place(self, i: int) -> str:
        return self.source.place(i)

    def rows(self, lo: int, hi: int) -> Any:
        """Apply the function to a range of rows."""
        return self.function(self.source.rows(lo, hi))

    def defer(self, lo: int, hi: int) -> RowRange:
        """As the other source does, which may leave out what other ranges need."""
        own = self.source.defer(lo, hi)
        return RowRange(MappedChunks(own.source, self.function, self.n_columns), own.lo, own.hi)


class ArrayChunks(ChunkSource):
    """An array, cut into chunks.

    Examples
    --------
    >>> source = ArrayChunks(np.arange(10).reshape(5, 2), rows=2)
    >>> source.sizes, source.rows(1, 3).tolist()
    ((2, 2, 1), [[2, 3], [4, 5]])
    """

    def __init__(self, array: np.ndarray, rows: int | None = None):
        self.array = array
        self.n_columns = array.shape[1]
        self.sizes = _equal_sizes(array.shape, array.dtype.itemsize, rows)

    def load(self, i: int) -> np.ndarray:
        """Return a slice of the array."""
        start = sum(self.sizes[:i])
        return self.array[start : start + self.sizes[i]]

    def rows(self, lo: int, hi: int) -> np.ndarray:
        """Return a slice of the array; chunks are not needed."""
        return self.array[lo:hi]

    def defer(self, lo: int, hi: int) -> RowRange:
        """Return a range that holds only its own rows, which is all that another process needs."""
        return RowRange(ArrayChunks(self.array[lo:hi]), 0, hi - lo)


class NpyChunks(ChunkSource):
    """A two-dimensional array in a .npy file, or a memory map of any file; it is mapped again for each chunk."""

    def __init__(self, path: Any, dtype: Any = None, shape: Any = None, offset: int = 0, order: str = "C",
                 rows: int | None = None):  # fmt: skip
        self.path = str(path)
        self._map = None if dtype is None else (np.dtype(dtype), tuple(shape), int(offset), order)
        array = self._open()
        if array.ndim != 2:
            raise ValueError(
                f"{self.path}: the array has {array.ndim} dimensions; a table needs two (rows and columns)"
            )
        self.n_columns = array.shape[1]
        self.sizes = _equal_sizes(array.shape, array.dtype.itemsize, rows)

    def _open(self) -> np.ndarray:
        if self._map is not None:
            dtype, shape, offset, order = self._map
            return np.memmap(self.path, dtype, "r", offset, shape, order)  # type: ignore[call-overload]
        try:
            return np.load(self.path, mmap_mode="r", allow_pickle=False)
        except Exception as error:  # a damaged header: tokenize, overflow, memory, ...
            raise ValueError(f"{self.path} cannot be read: {_first_line(error)}") from error

    def load(self, i: int) -> np.ndarray:
        """Return a copy of the chunk, so that the mapped pages are released."""
        start = sum(self.sizes[:i])
        return np.array(self._open()[start : start + self.sizes[i]])

    def rows(self, lo: int, hi: int) -> np.ndarray:
        """Return a copy of mapped rows; chunks are not needed."""
        return np.array(self._open()[lo:hi])

    def place(self, i: int) -> str:
        return f"{self.path}, from row {sum(self.sizes[:i])} on"


class ArrowChunks(ChunkSource):
    """Parquet files by row groups, Arrow files by record batches; several files make one table, in order of name."""

    def __init__(self, paths: Sequence[Any]):
        self.paths = [str(path) for path in paths]
        if not self.paths:
            raise ValueError(
                "no files were given: pass a file, or a folder that contains Parquet or Arrow files"
            )
        self._groups: list[tuple[int, int]] = []
        sizes, first = [], None
        for number, path in enumerate(self.paths):
            schema, counts = _open_arrow(path)
            fields = [(field.name, str(field.type)) for field in schema]
            if first is None:
                first = fields
            elif fields != first:
                raise ValueError(
                    f"{path} has another schema than {self.paths[0]}: {_difference(first, fields)}"
                )
            self._groups += [(number, group) for group in range(len(counts))]
            sizes += counts
        self.sizes, self.n_columns = tuple(sizes), len(first or [])

    def load(self, i: int) -> Any:
        """Read one row group or record batch."""
        number, group = self._groups[i]
        path = self.paths[number]
        if Path(path).suffix.lower() in PARQUET:
            from pyarrow import parquet

            with parquet.ParquetFile(path) as file:
                return checked(file.read_row_group(group, use_threads=False), self.place(i))
        import pyarrow as pa

        with pa.OSFile(path) as file, pa.ipc.open_file(file) as reader:
            return checked(pa.Table.from_batches([reader.get_batch(group)]), self.place(i))

    def place(self, i: int) -> str:
        number, group = self._groups[i]
        return f"{self.paths[number]}, row group {group}"


def _open_arrow(path: str) -> tuple[Any, list[int]]:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise ValueError(f'{path}: reading this format needs pyarrow: pip install "partita[io]"') from None
    try:
        if Path(path).suffix.lower() in PARQUET:
            with parquet.ParquetFile(path) as file:
                counts = [file.metadata.row_group(g).num_rows for g in range(file.num_row_groups)]
                return file.schema_arrow.remove_metadata(), counts
        with pa.OSFile(path) as file, pa.ipc.open_file(file) as reader:
            counts = [reader.get_batch(g).num_rows for g in range(reader.num_record_batches)]
            return reader.schema.remove_metadata(), counts
    except (
        Exception
    ) as error:  # a damaged file fails in many ways: Arrow errors, SystemError, unicode, overflow, ...
        raise ValueError(
            f"{path} cannot be read: {_first_line(error)}; the file is damaged or has another format"
        ) from None


def open_chunks(X: Any, rows: int | None = None) -> ChunkSource:
    """Open a table in chunks of rows, which estimators read one after the other, whatever its size.

    Parameters
    ----------
    X : array, memory map, Dask array or data frame, path
        A path names a Parquet, Arrow or .npy file, or a folder of Parquet or Arrow files.
    rows : int, default=None
        The number of rows per chunk, for arrays and memory maps. Files and Dask collections have chunks of their own.

    Returns
    -------
    ChunkSource
        Pass it to ``fit`` or ``predict`` in place of X.

    Examples
    --------
    >>> open_chunks(np.zeros((5, 2)), rows=2).sizes
    (2, 2, 1)
    """
    source = find_chunks(X, rows)
    if source is not None:
        return source
    array = np.asarray(X)
    if array.ndim != 2:
        raise ValueError(f"X has {array.ndim} dimensions; a table needs two (rows and columns)")
    return ArrayChunks(array, rows)


def find_chunks(X: Any, rows: int | None = None) -> ChunkSource | None:
    """Open a source that need not be in memory: files, memory maps, Dask collections; None for anything else.

    Examples
    --------
    >>> find_chunks([[1, 2]]) is None
    True
    """
    if isinstance(X, ChunkSource):
        return X
    if isinstance(X, (str, Path)):
        return _open_path(Path(X), rows)
    if isinstance(X, np.memmap) and X.ndim == 2 and _maps_itself(X):
        order = "F" if X.flags.f_contiguous and not X.flags.c_contiguous else "C"
        return NpyChunks(X.filename, X.dtype, X.shape, X.offset, order, rows=rows)
    from partita.execution.cluster import find_dask

    return find_dask(X)


def _open_path(path: Path, rows: int | None) -> ChunkSource:
    if not path.exists():
        raise ValueError(f"{path}: no such file or folder")
    if path.is_dir():
        found = sorted(p for p in path.rglob("*") if p.suffix.lower() in PARQUET | ARROW)
        if not found:
            raise ValueError(f"{path}: the folder contains no Parquet or Arrow files")
        return ArrowChunks(found)
    ending = path.suffix.lower()
    if ending in PARQUET | ARROW:
        return ArrowChunks([path])
    if ending == ".npy":
        return NpyChunks(path, rows=rows)
    raise ValueError(
        f"{path}: files of type {ending or '(no suffix)'} cannot be read in chunks; use Parquet, Arrow or .npy, or "
        "read the file with partita.table.read_file"
    )


def _maps_itself(X: np.memmap) -> bool:
    """Whether this is the whole map rather than a view of part of it, whose offset is not known."""
    whole = X.base is None or not isinstance(X.base, np.ndarray)
    return whole and X.filename is not None and (X.flags.c_contiguous or X.flags.f_contiguous)


def _equal_sizes(shape: tuple[int, ...], itemsize: int, rows: int | None) -> tuple[int, ...]:
    n = shape[0]
    rows = rows or max(CHUNK_BYTES // max(itemsize * shape[1], 1), 1)
    return tuple(min(rows, n - lo) for lo in range(0, n, rows))


def _cut(chunk: Any, lo: int, hi: int) -> Any:
    if lo == 0 and hi == len(chunk):
        return chunk
    if hasattr(chunk, "slice"):  # an Arrow table
        return chunk.slice(lo, hi - lo)
    return chunk.iloc[lo:hi] if hasattr(chunk, "iloc") else chunk[lo:hi]


def _join(pieces: list[Any]) -> Any:
    if isinstance(pieces[0], np.ndarray):
        return np.concatenate(pieces)
    if hasattr(pieces[0], "slice"):
        import pyarrow as pa

        return pa.concat_tables(pieces)
    import narwhals as nw

    return nw.concat([nw.from_native(piece, eager_only=True) for piece in pieces]).to_native()


def _difference(expected: list[tuple[str, str]], found: list[tuple[str, str]]) -> str:
    for (name, kind), (other, other_kind) in zip(expected, found, strict=False):
        if name != other:
            return f"column {other!r} where {name!r} is expected"
        if kind != other_kind:
            return f"column {name!r} holds {other_kind}, not {kind}"
    return f"{len(found)} columns, not {len(expected)}"


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
