"""Digests of whatever a fit depends on: data wherever they are, parameters, random generators."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from partita.execution.device import is_on_device, to_host
from partita.execution.shards import ShardData

CHUNK_BYTES = 1 << 24  # arrays are hashed in chunks, so that none is copied as a whole
DIGEST_BYTES = 16


def digest(item: Any) -> str:
    """Return a fingerprint of a tree of anything: it changes with any bit of its arrays.

    Arrays on a device are copied to the host in chunks of rows; data in shards are hashed where the shards are, in one
    pass over them. An object of an unknown type enters by its type and its number of rows.

    Examples
    --------
    >>> one, two = (np.arange(3), "a", None), (np.arange(3), "b", None)
    >>> digest(one) == digest((np.arange(3), "a", None)), digest(one) == digest(two)
    (True, False)
    """
    found = hashlib.blake2b(digest_size=DIGEST_BYTES)
    _add(found, item)
    return found.hexdigest()


def generator_state(rng: np.random.Generator) -> dict[str, Any]:
    """Return the state of the bits, and of the seeds from which further generators are spawned."""
    return {"bits": rng.bit_generator.state, "seeds": _seeds(rng.bit_generator.seed_seq)}


def _seeds(seeds: Any) -> dict[str, Any] | None:
    if not isinstance(seeds, np.random.SeedSequence):
        return None
    return {
        "entropy": seeds.entropy,
        "spawn_key": list(seeds.spawn_key),
        "pool_size": seeds.pool_size,
        "n_children_spawned": seeds.n_children_spawned,
    }


def _add(found: Any, item: Any) -> None:
    if isinstance(item, type):  # first: classes of numpy have the attributes of arrays
        found.update(item.__qualname__.encode())
    elif is_on_device(item) or (isinstance(item, np.ndarray) and item.dtype != object):
        name = item.dtype.str if isinstance(item, np.ndarray) else str(item.dtype)
        found.update(f"array {name}{tuple(item.shape)}".encode())
        for chunk in _chunks(item):
            found.update(chunk)
    elif isinstance(item, np.ndarray):
        _add(found, [f"objects {item.shape}", item.ravel().tolist()])
    elif isinstance(item, (tuple, list)):
        found.update(f"{type(item).__name__} {len(item)}".encode())
        for entry in item:
            _add(found, entry)
    elif isinstance(item, Mapping):
        found.update(f"mapping {len(item)}".encode())
        for key in sorted(item, key=str):
            _add(found, (str(key), item[key]))
    elif item is None or isinstance(item, (bool, int, float, complex, str, bytes, range, np.generic)):
        found.update(f"{type(item).__name__} {item!r}".encode())
    else:
        _add(found, [type(item).__qualname__, *_parts(item)])


def _parts(item: Any) -> list[Any]:
    """What identifies an object that is not a plain value."""
    if isinstance(item, ShardData):
        return list(item.shards.map(_digest_of_shard, item.index))
    if isinstance(item, np.random.Generator):
        return [generator_state(item)]
    if isinstance(item, np.random.RandomState):
        return [item.get_state(legacy=False)]
    if isinstance(item, np.random.SeedSequence):
        return [_seeds(item)]
    if hasattr(item, "tocsr"):  # a sparse matrix or array
        rows = item.tocsr()
        return [rows.shape, rows.data, rows.indices.astype(np.int64), rows.indptr.astype(np.int64)]
    if hasattr(item, "get_params"):
        return [item.get_params(deep=False)]
    if callable(item):
        return [getattr(item, "__qualname__", "")]
    return [getattr(item, "n_rows", None)]


def _digest_of_shard(data: Any, index: Any, _: Any) -> str:
    return digest(data[index])


def _chunks(array: Any) -> Iterator[np.ndarray]:
    """The bytes of an array in row-major order, in pieces of a limited size."""
    if isinstance(array, np.ndarray) and (array.ndim == 0 or array.flags.c_contiguous):
        array = array.reshape(-1)
    n_rows = int(array.shape[0])
    each = getattr(array.dtype, "itemsize", 8)  # the array API has no size of a type
    row_bytes = each * int(np.prod(array.shape[1:], dtype=np.int64))
    step = max(1, CHUNK_BYTES // max(row_bytes, 1))
    for lo in range(0, n_rows, step):
        rows = array[lo : min(lo + step, n_rows), ...]
        yield np.ascontiguousarray(to_host(rows)).reshape(-1).view(np.uint8)
