"""Arrays on a device: recognize them, move them, and process them in chunks that fit into its memory.

The array library is the user's (torch, CuPy or any other that follows the array API standard); partita calls its
functions through ``array_api_compat``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

CHUNK_BYTES = 1 << 29  # intermediate results of one chunk of rows


def is_on_device(X: Any) -> bool:
    """Whether an array is in the memory of a device, where numpy cannot read it.

    Examples
    --------
    >>> is_on_device(np.zeros(3))
    False
    """
    if isinstance(X, (np.ndarray, list, tuple, str)) or not hasattr(X, "device") or not hasattr(X, "shape"):
        return False
    kind = getattr(X.device, "type", None) or str(X.device)  # a torch.device has a type; others are names
    return "cpu" not in kind.lower()


def namespace(*arrays: Any) -> Any:
    """The array API namespace of the library that the arrays belong to."""
    try:
        import array_api_compat
    except ImportError as error:
        raise ImportError(
            "arrays on a device need array-api-compat: pip install 'partita[gpu]', or copy them to the host first"
        ) from error
    return array_api_compat.array_namespace(*arrays)


def device_of(X: Any) -> Any:
    """The device of an array, in the terms of its library."""
    import array_api_compat

    return array_api_compat.device(X)


def widest(like: Any) -> Any:
    """Double precision where the device has it."""
    xp = namespace(like)
    try:
        xp.zeros(1, dtype=xp.float64, device=device_of(like))
    except (TypeError, RuntimeError, ValueError):
        return xp.float32
    return xp.float64


def to_device(values: np.ndarray, like: Any, dtype: Any = None) -> Any:
    """Copy a numpy array to the library and the device of the array ``like``."""
    xp = namespace(like)
    return xp.asarray(np.ascontiguousarray(values), dtype=dtype, device=device_of(like))


def to_host(X: Any) -> np.ndarray:
    """Copy an array from its device to a numpy array."""
    if isinstance(X, np.ndarray):
        return X
    if hasattr(X, "detach"):  # torch
        return X.detach().cpu().numpy()
    if hasattr(X, "get"):  # CuPy
        return X.get()
    import array_api_compat

    return np.asarray(array_api_compat.to_device(X, "cpu")) if _knows_cpu(X) else np.from_dlpack(X)


def sums_to_host(parts: Sequence[Any]) -> list[np.ndarray]:
    """Small arrays of one device as numpy arrays in double precision, in one transfer, for which to wait.

    Examples
    --------
    >>> sums_to_host([np.float64(2.0), np.ones((2, 1), np.float32)])
    [array(2.), array([[1.],
           [1.]])]
    """
    if len(parts) == 1:
        return [to_host(parts[0]).astype(np.float64)]
    xp = namespace(*parts)
    flat = to_host(xp.concat([xp.reshape(part, (-1,)) for part in parts], axis=0)).astype(np.float64)
    ends = np.cumsum([int(np.prod(part.shape)) for part in parts])[:-1]
    return [own.reshape(part.shape) for own, part in zip(np.split(flat, ends), parts, strict=True)]


def as_given(values: Any, X: Any) -> Any:
    """Return results in the library and on the device of the input X."""
    return to_device(values, X) if is_on_device(X) and not is_on_device(values) else values


def _knows_cpu(X: Any) -> bool:
    import array_api_compat

    try:
        array_api_compat.to_device(X, "cpu")
    except (ValueError, TypeError, RuntimeError):
        return False
    return True


def in_chunks(
    function: Callable[[int, int], Any], n_rows: int, row_bytes: int
) -> Iterator[tuple[int, int, Any]]:
    """Yield ``(lo, hi, function(lo, hi))`` over chunks of rows; chunks are halved when the device is out of memory.

    Examples
    --------
    >>> [(lo, hi) for lo, hi, _ in in_chunks(lambda lo, hi: None, 10, CHUNK_BYTES // 4)]
    [(0, 4), (4, 8), (8, 10)]
    """
    size = max(1, min(n_rows, CHUNK_BYTES // max(row_bytes, 1)))
    lo = 0
    while lo < n_rows:
        hi = min(lo + size, n_rows)
        try:
            found = function(lo, hi)
        except Exception as error:
            if not _out_of_memory(error) or size == 1:
                raise
            size = max(1, size // 2)
            continue
        yield lo, hi, found
        lo = hi


def _out_of_memory(error: Exception) -> bool:
    """Recognize the error by its name: the libraries have no common class for it."""
    return isinstance(error, MemoryError) or "OutOfMemory" in type(error).__name__
