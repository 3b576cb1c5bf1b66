"""Models on disk: arrays as npy, everything else as JSON, in one zip file. Nothing in it is ever executed."""

from __future__ import annotations

import io
import json
import os
import pathlib
import tempfile
import warnings
import zipfile
from typing import Any

import numpy as np

from partita._version import __version__

__all__ = ["ModelFileError", "load", "save"]

FORMAT = 1
MAX_BYTES = 1 << 36  # no honest model is larger; a forged header may say so


class ModelFileError(ValueError):
    """A model file that cannot be read: truncated, altered, or written by a newer version."""


def save(estimator: Any, path: Any) -> None:
    """Write ``estimator`` to ``path``, whole or not at all."""
    path = pathlib.Path(path)
    arrays: dict[str, np.ndarray] = {}
    state = _pack(estimator._state(), arrays, "state")
    params = {name: _plain(value) for name, value in estimator.get_params(deep=False).items()}
    document = {
        "format": FORMAT,
        "partita": __version__,
        "class": f"{type(estimator).__module__}.{type(estimator).__qualname__}",
        "params": _pack(params, arrays, "params"),
        "state": state,
        "arrays": {name: [str(a.dtype), list(a.shape)] for name, a in arrays.items()},
    }
    handle, temporary = tempfile.mkstemp(dir=path.parent or ".", prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("model.json", json.dumps(document, allow_nan=True))
            for name, array in arrays.items():
                buffer = io.BytesIO()
                np.save(buffer, array, allow_pickle=False)
                archive.writestr(f"{name}.npy", buffer.getvalue())
        os.replace(temporary, path)
    except BaseException:
        pathlib.Path(temporary).unlink(missing_ok=True)
        raise


def load(path: Any) -> Any:
    """Read a model that ``save`` wrote.

    Examples
    --------
    >>> import tempfile, os, numpy as np
    >>> from partita import Mixture, load
    >>> X = np.random.default_rng(0).normal(size=(20, 2))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Mixture(n_clusters=2, inference="em", random_state=0).fit(X).save(os.path.join(folder, "m.npz"))
    ...     load(os.path.join(folder, "m.npz")).n_features_in_
    2
    """
    try:
        with zipfile.ZipFile(path) as archive:
            document = json.loads(archive.read("model.json"))
            _check_document(document, path)
            arrays = {
                name: _read_array(archive, name, *declared) for name, declared in document["arrays"].items()
            }
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, EOFError, OSError) as error:
        if isinstance(error, (ModelFileError, FileNotFoundError)):
            raise
        raise ModelFileError(
            f"{path} is not a complete partita model ({error}): copy it again, or fit and save the model again"
        ) from error
    try:
        estimator = _class_of(document["class"])(**_unpack(document["params"], arrays))
        estimator._restore(_unpack(document["state"], arrays))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelFileError(f"{path} does not describe a {document['class']}: {error!r}") from error
    return estimator


def _check_document(document: dict[str, Any], path: Any) -> None:
    if document["format"] > FORMAT:
        raise ModelFileError(
            f"{path} was written by partita {document['partita']} (file format {document['format']}), which is newer "
            f"than this {__version__} (format {FORMAT}): upgrade partita"
        )
    if document["partita"] != __version__:
        warnings.warn(
            f"{path} was written by partita {document['partita']}, this is {__version__}: results may differ slightly",
            UserWarning,
            stacklevel=3,
        )


def _read_array(archive: zipfile.ZipFile, name: str, dtype: str, shape: list[int]) -> np.ndarray:
    info = archive.getinfo(f"{name}.npy")
    expected = int(np.prod(shape, dtype=object)) * np.dtype(dtype).itemsize
    if not 0 <= expected <= MAX_BYTES or info.file_size > expected + 4096:
        raise ModelFileError(
            f"array {name!r} says {expected} bytes and holds {info.file_size}: the file was altered"
        )
    array = np.load(io.BytesIO(archive.read(info)), allow_pickle=False)
    if str(array.dtype) != dtype or list(array.shape) != shape:
        raise ModelFileError(f"array {name!r} is {array.dtype}{array.shape}, declared {dtype}{tuple(shape)}")
    return array


def _class_of(name: str) -> type:
    """The estimator class; only classes of this package that can be loaded."""
    import importlib

    from partita.estimator.base import TableEstimator

    module, _, qualname = name.rpartition(".")
    if not module.startswith("partita."):
        raise ValueError(f"{name} is not a model of partita")
    cls = getattr(importlib.import_module(module), qualname)
    if not (isinstance(cls, type) and issubclass(cls, TableEstimator)):
        raise ValueError(f"{name} is not a model of partita")
    return cls


def _plain(value: Any) -> Any:
    """Parameters as JSON can hold them; generators, clients and callbacks stay behind (None)."""
    if value is None or isinstance(value, (bool, int, float, str, np.ndarray)):
        return value
    if isinstance(value, (np.integer, np.floating, np.bool_)):
        return value.item()
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return None


def _pack(value: Any, arrays: dict[str, np.ndarray], name: str) -> Any:
    """JSON with references in place of arrays."""
    if isinstance(value, np.ndarray):
        if value.dtype == object:
            return {"__list__": [_plain(item) for item in value.tolist()]}
        arrays[name] = value
        return {"__array__": name}
    if isinstance(value, dict):
        return {key: _pack(item, arrays, f"{name}.{key}") for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_pack(item, arrays, f"{name}.{i}") for i, item in enumerate(value)]
    return value.item() if isinstance(value, np.generic) else value


def _unpack(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    if isinstance(value, dict):
        if "__array__" in value:
            return arrays[value["__array__"]]
        if "__list__" in value:
            return np.array(value["__list__"], dtype=object)
        return {key: _unpack(item, arrays) for key, item in value.items()}
    if isinstance(value, list):
        return [_unpack(item, arrays) for item in value]
    return value
