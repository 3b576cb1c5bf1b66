"""Open the types that a user may pass as X, as named columns."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from partita.table.cells import RawColumn, common_number_type, parse_values
from partita.table.notes import list_names

_RESHAPE_HINT = (
    "Reshape your data either using array.reshape(-1, 1) if your data has a single feature or "
    "array.reshape(1, -1) if it contains a single sample."
)


class Source(Protocol):
    """Named columns that can be read one at a time.

    `named` is True if the names are the user's and must match at predict time; `labels` holds the column labels of the
    container; `uniform_family` returns the common type of numbers in some columns of an array, which then have one
    kind.

    Examples
    --------
    >>> source = open_source(np.zeros((3, 2)))
    >>> source.names, source.n_rows, source.uniform_family([0, 1])
    (['x0', 'x1'], 3, 'float')
    """

    names: list[str]
    labels: Sequence[Hashable]
    named: bool
    n_rows: int

    def uniform_family(self, positions: Sequence[int]) -> str | None: ...

    def column(self, position: int) -> RawColumn: ...


def is_sparse(X: Any) -> bool:
    """Whether X is a scipy sparse matrix or array.

    Examples
    --------
    >>> is_sparse(np.eye(2))
    False
    """
    # if X is sparse, scipy.sparse was imported already: do not import it for other inputs
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and bool(sparse.issparse(X))


def _is_annotated(X: Any) -> bool:
    """Whether X is an AnnData object."""
    anndata = sys.modules.get("anndata")  # as for scipy.sparse
    return anndata is not None and isinstance(X, anndata.AnnData)


def matrix_of(X: Any) -> Any:
    """Return the sparse matrix of an AnnData object that has one, and everything else as it is."""
    return X.X if _is_annotated(X) and is_sparse(X.X) else X


def open_source(X: Any) -> Source:
    """Open X as a `Source`.

    Parameters
    ----------
    X : array, data frame, list of rows, or object with `__array__` or `__dataframe__`
        It is never changed.

    Examples
    --------
    >>> open_source([1, 2, 3])
    Traceback (most recent call last):
    ValueError: Expected 2D array, got 1D array instead: ...
    """
    source = _open_any(X)
    shape = (source.n_rows, len(source.names))
    if source.n_rows == 0:
        raise ValueError(f"Found array with 0 sample(s) (shape={shape}) while a minimum of 1 is required.")
    if not source.names:
        raise ValueError(f"Found array with 0 feature(s) (shape={shape}) while a minimum of 1 is required.")
    return source


def _open_any(X: Any) -> Source:
    if isinstance(X, np.matrix):
        raise TypeError(
            "np.matrix is not supported. Please convert to a numpy array with np.asarray. For more "
            "information see: https://numpy.org/doc/stable/reference/generated/numpy.matrix.html"
        )
    if isinstance(X, np.ndarray):
        return ArraySource(X)
    if isinstance(X, (list, tuple)):
        return ArraySource(_array_from_rows(X))
    if isinstance(X, Mapping):
        return MappingSource(X)
    if isinstance(X, (str, bytes, set, frozenset)) or X is None:
        raise ValueError(
            f"Expected a two-dimensional table, got {type(X).__name__}; pass an array, a data frame or a "
            "list of rows (for a file: partita.table.read_file(path).columns)"
        )
    if _is_annotated(X):
        return _open_annotated(X)
    frame = _open_frame(X)
    if frame is not None:
        return frame
    if hasattr(X, "__array__"):
        return ArraySource(_array_on_host(X))
    if np.isscalar(X):
        return ArraySource(np.asarray(X))
    raise TypeError(
        f"cannot read a table from {type(X).__name__!r}; pass an array, a data frame or a list of rows"
    )


def _array_on_host(X: Any) -> np.ndarray:
    try:
        return np.asarray(X)
    except (TypeError, RuntimeError, ValueError, BufferError) as error:
        place = str(getattr(X, "device", "cpu"))
        if "cpu" in place.lower():
            raise
        raise ValueError(
            f"the array is on {place}, which is not read here: copy it to the host, as by X.cpu() or X.get(). Mixture, "
            "LatentClass, DPGaussian, DPMultinomial, MixtureConsensus and NBCE run on a device"
        ) from error


def _array_from_rows(rows: Sequence[Any]) -> np.ndarray:
    try:
        array = np.asarray(rows)
        # numpy converts [1, "a"] to ["1", "a"], NaN beside text to "nan", and large integers beside small ones to
        # rounded floats: keep the objects as they are
        altered = array.dtype.kind in "US" or (
            array.dtype.kind == "f" and bool(np.any(np.abs(array) >= 2.0**53))
        )
        return np.array(rows, dtype=object) if altered else array
    except ValueError as problem:
        lengths = [len(row) if hasattr(row, "__len__") else -1 for row in rows]
        for position, length in enumerate(lengths):
            if length != lengths[0]:
                raise ValueError(
                    f"row {position} has {length} values but row 0 has {lengths[0]}; all rows of a table "
                    "need the same length"
                ) from problem
        raise


class ArraySource:
    """A two-dimensional array of any dtype, possibly masked.

    Examples
    --------
    >>> ArraySource(np.array([[1, 2], [3, 4]])).column(1).values
    array([2, 4])
    """

    named = False

    def __init__(self, array: np.ndarray) -> None:
        masked = isinstance(array, np.ma.MaskedArray)
        if array.dtype.kind == "V":
            fields = list_names(array.dtype.names or ())
            raise ValueError(
                f"structured arrays are not supported (fields {fields}); pass a data frame, or stack the "
                "fields as columns with np.column_stack"
            )
        if array.dtype.kind == "c":
            raise ValueError(f"Complex data not supported\n{array}\n")
        if array.ndim < 2:
            kind = "scalar" if array.ndim == 0 else "1D"
            raise ValueError(f"Expected 2D array, got {kind} array instead:\narray={array}.\n{_RESHAPE_HINT}")
        if array.ndim > 2:
            raise ValueError(f"Found array with dim {array.ndim}, while dim <= 2 is required.")
        self._mask = (
            np.ma.getmaskarray(array) if masked and np.ma.getmask(array) is not np.ma.nomask else None
        )
        self._data = np.ma.getdata(array) if masked else np.asarray(array)
        self._parsed: dict[int, RawColumn] = {}
        self.n_rows = array.shape[0]
        self.names = [f"x{position}" for position in range(array.shape[1])]
        self.labels: Sequence[Hashable] = self.names

    def uniform_family(self, positions: Sequence[int]) -> str | None:
        """Return the common type of numbers in these columns; None if they hold text or different types."""
        kind = self._data.dtype.kind
        if kind in "biuf":
            return {"b": "bool", "f": "float"}.get(kind, "int")
        if kind != "O":
            return None
        columns = [self.column(position) for position in positions]
        families = {column.family for column in columns if column.n_missing < self.n_rows}
        return common_number_type(families)

    def column(self, position: int) -> RawColumn:
        """Read one column; columns of objects are cached, because parsing them is slow."""
        if position in self._parsed:
            return self._parsed[position]
        mask = None if self._mask is None else np.array(self._mask[:, position])
        raw = parse_values(self._data[:, position], self.names[position], mask)
        if self._data.dtype.kind == "O":
            self._parsed[position] = raw
        return raw


def _open_annotated(data: Any) -> ArraySource:
    """The matrix X of an AnnData object, whose columns are the names of its variables."""
    if data.X is None:
        keys = ", ".join(f"obsm[{key!r}]" for key in data.obsm) or "obs[columns]"
        raise ValueError(f"the AnnData has no X: pass a part of it, such as {keys}")
    source = ArraySource(np.asarray(data.X))
    names = [str(name) for name in data.var_names]
    source.names, source.labels = names, list(names)
    source.named = True
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(f"duplicate variable names: {list_names(twice)}; call var_names_make_unique() first")
    return source


@dataclass(frozen=True, eq=False)
class OrderedCells:
    """Cells of text with all their levels from low to high, as a file declares them."""

    values: np.ndarray
    levels: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.values)


class MappingSource:
    """A mapping from names to columns of equal length.

    Examples
    --------
    >>> MappingSource({"a": [1, 2], "b": ["x", None]}).column(1).n_missing
    1
    """

    named = True

    def __init__(self, columns: Mapping[Any, Any]) -> None:
        self.labels: Sequence[Hashable] = list(columns)
        self.names = [str(name) for name in self.labels]
        self._columns = [self._checked(name, column) for name, column in columns.items()]
        self.n_rows = len(self._columns[0]) if self._columns else 0
        if len(set(self.names)) < len(self.names):
            raise ValueError(f"duplicate column names: {list_names(self.names)}; rename them")
        for name, column in zip(self.names, self._columns, strict=True):
            if len(column) != self.n_rows:
                raise ValueError(
                    f"column {name!r} has {len(column)} values but column {self.names[0]!r} has {self.n_rows}; "
                    "all columns of a table need the same length"
                )

    @staticmethod
    def _checked(name: Any, column: Any) -> np.ndarray | OrderedCells:
        if isinstance(column, OrderedCells):
            return column
        array = column if isinstance(column, np.ndarray) else _array_from_rows(list(column))
        if array.ndim != 1:
            raise ValueError(f"column {name!r} has {array.ndim} dimensions; a column must have one")
        return array

    def uniform_family(self, positions: Sequence[int]) -> str | None:
        """Return None: every column of a mapping has its own type and kind."""
        return None

    def column(self, position: int) -> RawColumn:
        """Read one column."""
        values = self._columns[position]
        if isinstance(values, OrderedCells):
            name = self.names[position]
            return parse_values(values.values, name, labeled=True, declared=values.levels, ordered=True)
        mask = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else None
        return parse_values(np.ma.getdata(values), self.names[position], mask)


def _open_frame(X: Any) -> FrameSource | None:
    # narwhals is imported here because arrays do not need it
    import narwhals as nw

    try:
        frame = nw.from_native(X, pass_through=True, allow_series=True)
    except nw.exceptions.DuplicateError as problem:
        raise ValueError(f"duplicate column names: {problem}; rename them") from problem
    if isinstance(frame, nw.Series):
        raise ValueError(
            f"Expected a 2-dimensional container but got {type(X)} instead. Pass a DataFrame containing a "
            "single row (i.e. single sample) or a single column (i.e. single feature) instead."
        )
    if isinstance(frame, nw.LazyFrame):
        raise ValueError(f"{type(X).__name__} is lazy; collect it into memory first, e.g. with .collect()")
    if isinstance(frame, nw.DataFrame):
        return FrameSource(frame)
    if hasattr(X, "__arrow_c_stream__") or hasattr(X, "__dataframe__"):
        return _open_interchange(X)
    return None


def _open_interchange(X: Any) -> FrameSource | None:
    """Read a frame of an unknown library through Arrow's protocol, or the older interchange protocol."""
    import narwhals as nw
    import narwhals.stable.v1 as nw_v1

    try:
        if hasattr(X, "__arrow_c_stream__"):
            return FrameSource(nw.from_arrow(X, backend="pyarrow"))
        table = nw_v1.from_native(X, eager_or_interchange_only=True).to_arrow()
        return FrameSource(nw.from_native(table, eager_only=True))
    except ModuleNotFoundError as problem:
        if hasattr(X, "__array__"):
            return None
        raise ValueError(
            f"reading {type(X).__name__} needs pyarrow; install it, or pass a pandas or polars frame"
        ) from problem


class FrameSource:
    """A data frame that narwhals understands.

    Examples
    --------
    >>> import narwhals as nw
    >>> frame = nw.from_dict({"a": [1, None]}, backend="pyarrow")
    >>> FrameSource(frame).column(0).n_missing
    1
    """

    def __init__(self, frame: Any) -> None:
        # all at once: for some frames, each access to a single column is a pass over all columns
        self._series = list(frame.iter_columns())
        self.labels: Sequence[Hashable] = list(frame.columns)
        self.names = [str(label) for label in self.labels]
        self.n_rows = len(frame)
        texts = [isinstance(label, str) for label in self.labels]
        self.named = bool(texts) and all(texts)
        if any(texts) and not all(texts):
            sorts = sorted({type(label).__qualname__ for label in self.labels})
            raise TypeError(
                "Feature names are only supported if all input features have string names, but your input "
                f"has {sorts} as feature name / column name types. If you want feature names to be stored "
                "and validated, you must convert them all to strings, by using X.columns = "
                "X.columns.astype(str) for example."
            )
        if len(set(self.names)) < len(self.names):
            twice = sorted({name for name in self.names if self.names.count(name) > 1})
            raise ValueError(f"duplicate column names: {list_names(twice)}; rename them")

    def uniform_family(self, positions: Sequence[int]) -> str | None:
        """Return None: every column of a frame has its own dtype and kind."""
        return None

    def column(self, position: int) -> RawColumn:
        """Read one column; integers stay exact even if cells are missing."""
        import narwhals as nw

        name = self.names[position]
        series = self._series[position]
        if isinstance(series.dtype, nw.Datetime) and series.dtype.time_zone is not None:
            series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        labeled = isinstance(series.dtype, (nw.Categorical, nw.Enum))
        declared = _declared_levels(series) if labeled else ()
        ordered = labeled and _is_ordered(series)
        missing = np.array(series.is_null().to_numpy(), dtype=bool)
        if not missing.any():
            return parse_values(series.to_numpy(), name, labeled=labeled, declared=declared, ordered=ordered)
        # With nulls, integers would be converted to rounded floats, and nulls of an Arrow dictionary to one of its
        # values: convert only the observed cells, and put them back into their rows.
        seen = series.drop_nulls().to_numpy()
        values = (
            np.full(len(missing), None, object)
            if seen.dtype.kind == "O"
            else np.zeros(len(missing), seen.dtype)
        )
        values[~missing] = seen
        return parse_values(values, name, missing, labeled=labeled, declared=declared, ordered=ordered)


def _is_ordered(series: Any) -> bool:
    """Whether the categories of a column have an order: an ordered pandas Categorical, or a polars Enum."""
    import narwhals as nw

    native = series.to_native()
    ordered = getattr(getattr(native, "cat", None), "ordered", None)
    if ordered is None:
        ordered = getattr(getattr(native, "type", None), "ordered", None)  # an Arrow dictionary
    return bool(ordered) if isinstance(ordered, bool) else isinstance(series.dtype, nw.Enum)


def _declared_levels(series: Any) -> tuple[Any, ...]:
    """List the declared categories of a column, with unused ones: pandas, polars Enum, ordered Arrow dictionaries."""
    native = series.to_native()
    categories = getattr(getattr(native, "cat", None), "categories", None)
    if categories is None and getattr(getattr(native, "type", None), "ordered", False):
        categories = native.combine_chunks().dictionary.to_pylist()  # an Arrow dictionary
    if categories is None:
        categories = getattr(series.dtype, "categories", ())
    listed = categories.tolist() if hasattr(categories, "tolist") else list(categories)
    # other types cannot be written to JSON; if they occur as levels, parsing raises an error
    return tuple(listed) if all(isinstance(level, (str, int, float)) for level in listed) else ()
