"""One labeling: its canonical form and its order by size. Two labelings: their contingency table."""

from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partita.labels.checks import MISSING, integer_labels, row_weights

# A dense table of this many cells takes 32 MB; larger ones are nearly always mostly zeros.
DENSE_CELLS = 4_000_000


def canonical(labels: Any, *, missing: int | float | str | None = None) -> NDArray[np.int64]:
    """Number the labels of one clustering 0, 1, 2, ... in order of first appearance.

    Parameters
    ----------
    labels : one-dimensional array-like
        Integers, floats, strings, booleans, dates or hashable objects, in a list, an array, a masked
        array or a data-frame column. Equality is Python's: 1, 1.0 and True are one label, 1 and "1" two.
    missing : int, float or str, default=None
        One further value that means "missing", in addition to None, NaN, NaT, pandas.NA and masked entries.
        By default -1 is a label like any other; give `missing=-1` to read vectors that use the
        convention of this package, so that a canonical vector stays as it is.

    Returns
    -------
    ndarray of int64
        Labels 0..K-1, and -1 where the label is missing.

    Examples
    --------
    >>> canonical(["b", "a", None, "b"])
    array([ 0,  1, -1,  0])
    >>> canonical([7, 7, -1, 3], missing=-1)
    array([ 0,  0, -1,  1])
    """
    values, unseen = _one_dimensional(labels)
    if values.dtype.kind in "fcmM":
        unseen = unseen | (np.isnat(values) if values.dtype.kind in "mM" else np.isnan(values))
    elif values.dtype.kind not in "biuUS":
        return _number_objects(values.astype(object), unseen, missing)
    if missing is not None and values.dtype.kind in ("U" if isinstance(missing, str) else "iufc"):
        unseen = unseen | (values == missing)
    codes = np.full(values.shape, MISSING, dtype=np.int64)
    seen = ~unseen
    codes[seen] = _number_values(values[seen] if unseen.any() else values)
    return codes


def ordered_by_size(z: ArrayLike, weights: ArrayLike | None = None) -> NDArray[np.int64]:
    """Renumber the clusters of a labeling from the largest to the smallest.

    Parameters
    ----------
    z : array-like of int, shape (N,)
        Labels from 0, in any order and with gaps allowed; -1 stays -1.
    weights : array-like of float, shape (N,), default=None
        Weight of every object; the size of a cluster is the sum of the weights of its objects.

    Returns
    -------
    ndarray of int64
        The same partition, with cluster 0 the largest. Clusters of equal size are in order of first appearance.

    Examples
    --------
    >>> ordered_by_size([4, 1, 1, 2, -1, 2])
    array([ 2,  0,  0,  1, -1,  1])
    >>> ordered_by_size([0, 1, 1], weights=[5.0, 1.0, 1.0])
    array([0, 1, 1])
    """
    labels = canonical(integer_labels(z, "z", ndim=1), missing=MISSING)
    weights = row_weights(weights, labels.size)
    seen = labels != MISSING
    sizes = np.bincount(labels[seen], None if weights is None else weights[seen])
    ranks = np.full(sizes.size + 1, MISSING, dtype=np.int64)  # the last entry is read for the label -1
    ranks[np.argsort(-sizes, kind="stable")] = np.arange(sizes.size)
    return ranks[labels]


def contingency(
    a: ArrayLike, b: ArrayLike, weights: ArrayLike | None = None, sparse: bool | None = None
) -> Any:
    """Count the objects in every pair of clusters of two labelings.

    Parameters
    ----------
    a, b : array-like of int, shape (N,)
        Labels from 0; a row with -1 on either side is left out of the table.
    weights : array-like of float, shape (N,), default=None
        Weight of every object; without it the table holds integer counts.
    sparse : bool, default=None
        True for a `scipy.sparse.csr_array`, False for an ndarray. None means a `csr_array` if the table
        would exceed `DENSE_CELLS` cells, and an ndarray otherwise.

    Returns
    -------
    ndarray or csr_array, shape (max(a) + 1, max(b) + 1)

    Examples
    --------
    >>> contingency([0, 0, 1, 1, -1], [0, 1, 1, 1, 0])
    array([[1, 1],
           [0, 2]])
    """
    a, b = integer_labels(a, "a", ndim=1), integer_labels(b, "b", ndim=1)
    if a.shape != b.shape:
        raise ValueError(f"a has {a.size} labels and b has {b.size}: they must label the same objects")
    weights = row_weights(weights, a.size)
    shape = (int(a.max(initial=-1)) + 1, int(b.max(initial=-1)) + 1)
    seen = (a != MISSING) & (b != MISSING)
    if not seen.all():
        a, b, weights = a[seen], b[seen], None if weights is None else weights[seen]
    if sparse is None:
        sparse = shape[0] * shape[1] > DENSE_CELLS
    if sparse:
        from scipy import sparse as sp

        counts = np.ones(a.size, dtype=np.int64) if weights is None else weights
        table = sp.coo_array((counts, (a, b)), shape=shape).tocsr()
        table.eliminate_zeros()
        return table
    cells = a.astype(np.int64) * shape[1] + b.astype(np.int64)
    return np.bincount(cells, weights=weights, minlength=shape[0] * shape[1]).reshape(shape)


def _one_dimensional(labels: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Values and mask of missing entries, without numpy's silent casts of mixed lists to strings."""
    if isinstance(labels, (list, tuple)) and len(set(map(type, labels))) > 1:
        values = np.empty(len(labels), dtype=object)
        values[:] = labels
    else:
        values = np.asarray(labels)
    if values.ndim != 1:
        raise ValueError(
            f"labels must be one-dimensional, but their shape is {values.shape}: pass one labeling at a time"
        )
    if isinstance(labels, np.ma.MaskedArray):
        return values, np.ma.getmaskarray(labels)
    return values, np.zeros(values.shape, dtype=bool)


def _number_values(values: NDArray[Any]) -> NDArray[np.int64]:
    """Codes of a native array without missing values, in order of first appearance."""
    if values.size == 0:
        return np.empty(0, dtype=np.int64)
    if values.dtype.kind == "b":
        values = values.astype(np.int8)
    if values.dtype.kind in "iu" and int(values.max()) - int(values.min()) <= 4 * values.size:
        # Integers in a small range: a lookup table is several times faster than a sort.
        low = values.min()
        ranks = (values - low if values.dtype.kind == "u" else values.astype(np.int64) - int(low)).astype(
            np.int64
        )
        n_ranks = int(ranks.max()) + 1
    else:
        uniques, ranks = np.unique(values, return_inverse=True)
        n_ranks = uniques.size
    first = np.full(n_ranks, values.size, dtype=np.int64)
    # With repeated indices the last assignment stays, so going backwards leaves the first row.
    first[ranks[::-1]] = np.arange(values.size - 1, -1, -1)
    codes = np.empty(n_ranks, dtype=np.int64)
    codes[np.argsort(first, kind="stable")] = np.arange(n_ranks)
    return codes[ranks]


def _number_objects(
    values: NDArray[Any], unseen: NDArray[np.bool_], missing: int | float | str | None
) -> NDArray[np.int64]:
    """Codes of an object array; a dictionary keeps distinct what numpy cannot compare or sort."""
    codes = np.full(values.shape, MISSING, dtype=np.int64)
    known: dict[Any, int] = {}
    for row, value in enumerate(values):
        if unseen[row]:
            continue
        try:
            code = known.get(value)
        except TypeError:
            raise ValueError(
                f"labels[{row}] is a {type(value).__name__}, which has no hash: use numbers or strings"
            ) from None
        if code is None:
            if _is_missing(value, missing):
                continue
            code = known[value] = len(known)
        codes[row] = code
    return codes


def _is_missing(value: Any, missing: int | float | str | None) -> bool:
    # pandas.NA answers NA to every comparison; it is known by name because pandas is never imported.
    if value is None or type(value).__name__ == "NAType":
        return True
    scalar = isinstance(value, (Number, np.datetime64, np.timedelta64)) or type(value).__name__ == "NaTType"
    if scalar and value != value:
        return True
    if missing is None or isinstance(value, (bool, np.bool_)):
        return False
    return isinstance(value, (Number, str)) and bool(value == missing)


def group_name(k: int) -> str:
    """A group as people read it, numbered from 1; -1 stands for the outliers.

    Examples
    --------
    >>> group_name(0), group_name(-1)
    ('group 1', 'outliers')
    """
    return f"group {k + 1}" if k >= 0 else "outliers"
