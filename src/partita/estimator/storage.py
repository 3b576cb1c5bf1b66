"""Models on disk: arrays as npy, everything else as JSON, in one zip file. Nothing in the file is executed."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from partita._version import __version__
from partita.estimator.array_laws import array_laws, check_arrays
from partita.estimator.report import warn_user
from partita.files import write_atomically
from partita.partitions import DirichletProcess, FiniteDirichlet, MixtureOfFinite, PitmanYor, StickBreaking
from partita.trace import Trace

FORMAT = 1
MAX_BYTES = (
    1 << 30
)  # of a model in memory: a small file may announce, or expand to, more than any memory holds
REMEDY = "copy it again, or fit and save the model again"
# Named tuples that a file may hold.
NAMED_TUPLES = {
    cls.__name__: cls
    for cls in (DirichletProcess, FiniteDirichlet, MixtureOfFinite, PitmanYor, StickBreaking, Trace)
}


class ModelFileError(ValueError):
    """A model file that cannot be read: truncated, altered, or written by a newer version."""


def save(estimator: Any, path: Any) -> None:
    """Write ``estimator`` to ``path``; the file is replaced as a whole or not at all."""
    arrays: dict[str, np.ndarray] = {}
    part = part_state(estimator)
    state = _pack(part["state"], arrays, "state")
    document = {
        "format": FORMAT,
        "partita": __version__,
        "class": part["class"],
        "params": _pack(part["params"], arrays, "params"),
        "state": state,
        "arrays": {name: [str(a.dtype), list(a.shape)] for name, a in arrays.items()},
    }
    with (
        write_atomically(path) as temporary,
        zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        archive.writestr("model.json", json.dumps(document, allow_nan=True))
        for name, array in arrays.items():
            buffer = io.BytesIO()
            np.save(buffer, array, allow_pickle=False)
            archive.writestr(f"{name}.npy", buffer.getvalue())


def part_state(estimator: Any) -> dict[str, Any]:
    """Class, parameters and fitted state of an estimator as plain data.

    An estimator that holds another one puts this into its own state.

    Examples
    --------
    >>> from partita import Mixture
    >>> model = Mixture(n_clusters=2, inference="em", random_state=0).fit(np.arange(10.0)[:, None])
    >>> restore_part(part_state(model)).n_clusters_
    2
    """
    name = f"{type(estimator).__module__}.{type(estimator).__qualname__}"
    _class_of(name)  # refuse now what `load` would refuse
    params = {name: _plain(value) for name, value in estimator.get_params(deep=False).items()}
    return {"class": name, "params": params, "state": estimator._state()}


def restore_part(part: dict[str, Any]) -> Any:
    """Make the fitted estimator again; the inverse of ``part_state``."""
    cls = _class_of(part["class"])
    check_arrays(part["state"], array_laws(cls))
    estimator = cls(**part["params"])
    estimator._restore(part["state"])
    return estimator


def load(path: Any, *, max_bytes: int = MAX_BYTES) -> Any:
    """Read a model that ``save`` wrote.

    Parameters
    ----------
    path : path-like
        A file; devices and pipes are refused.
    max_bytes : int, default=1073741824
        The most memory that the arrays and the JSON of the model may take.

    Returns
    -------
    estimator
        The fitted estimator. Parameters that cannot be written to a file (callbacks, generators) are None.

    Raises
    ------
    ModelFileError
        If the file is incomplete, was altered, was written by a newer version, or holds more than ``max_bytes``.

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
    if Path(path).exists() and not (Path(path).is_file() or Path(path).is_dir()):
        raise ModelFileError(f"{path} is a device or a pipe, and a model is a file: copy it to a file first")
    try:
        with zipfile.ZipFile(path) as archive:
            _check_size(archive, ["model.json"], max_bytes, path)
            document = json.loads(archive.read("model.json"))
            _check_document(document, path)
            used = sorted(set(_references(document["params"])) | set(_references(document["state"])))
            _check_size(archive, ["model.json", *(f"{name}.npy" for name in used)], max_bytes, path)
            arrays = {name: _read_array(archive, name, *document["arrays"][name]) for name in used}
    except (ModelFileError, FileNotFoundError, IsADirectoryError, PermissionError):
        raise
    except Exception as error:  # a damaged archive fails in many ways: zlib, struct, unicode, recursion, ...
        raise ModelFileError(f"{path} is not a complete partita model ({error}): {REMEDY}") from error
    try:
        unpacked = {key: _unpack(document[key], arrays) for key in ("params", "state")}
        estimator = restore_part({"class": document["class"], **unpacked})
    except Exception as error:
        raise ModelFileError(
            f"{path} does not describe a model of the class {document.get('class')!r} ({error!r}): {REMEDY}"
        ) from error
    return estimator


def _references(node: Any) -> Iterator[str]:
    """The names of the arrays that a part of the document refers to."""
    stack = [node]
    while stack:
        item = stack.pop()
        if isinstance(item, dict) and isinstance(item.get("__array__"), str):
            yield item["__array__"]
        elif isinstance(item, (dict, list)):
            stack.extend(item.values() if isinstance(item, dict) else item)


def _check_size(archive: zipfile.ZipFile, names: Sequence[str], max_bytes: int, path: Any) -> None:
    """Refuse entries that are larger together than the limit, before one of them is read."""
    total = sum(archive.getinfo(name).file_size for name in names)
    if total > max_bytes:
        raise ModelFileError(
            f"{path} holds {total:,} bytes, and load() reads at most {max_bytes:,}: if you trust the file, raise "
            "max_bytes="
        )


def _check_document(document: dict[str, Any], path: Any) -> None:
    if not isinstance(document, dict) or not isinstance(document.get("format"), int):
        raise ModelFileError(f"{path} is not a partita model: {REMEDY}")
    if document["format"] > FORMAT:
        raise ModelFileError(
            f"{path} was written by partita {document['partita']} (file format {document['format']}), which is newer "
            f"than this {__version__} (format {FORMAT}): upgrade partita"
        )
    if document["partita"] != __version__:
        warn_user(
            f"{path} was written by partita {document['partita']}, this is {__version__}: results may differ slightly",
            UserWarning,
        )


def _read_array(archive: zipfile.ZipFile, name: str, dtype: str, shape: list[int]) -> np.ndarray:
    info = archive.getinfo(f"{name}.npy")
    expected = int(np.prod(shape, dtype=object)) * np.dtype(dtype).itemsize
    if expected < 0 or not expected <= info.file_size <= expected + 4096:
        raise ModelFileError(
            f"array {name!r} should have {expected} bytes and has {info.file_size}, the file was altered: {REMEDY}"
        )
    buffer = io.BytesIO(archive.read(info))
    # Check the header first: numpy allocates the declared size before it reads.
    version = np.lib.format.read_magic(buffer)
    header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    found_shape, _, found = header(buffer)
    if str(found) != dtype or list(found_shape) != shape or found.hasobject:
        raise ModelFileError(
            f"array {name!r} is {found}{found_shape}, declared {dtype}{tuple(shape)}, the file was altered: {REMEDY}"
        )
    buffer.seek(0)
    return np.load(buffer, allow_pickle=False)


def _class_of(name: str) -> type:
    """The estimator class: a public class of this package, so that a file cannot import anything else."""
    import partita

    module, _, qualname = name.rpartition(".")
    home = partita._EXPORTS.get(qualname, "")
    cls = getattr(partita, qualname) if home and module.startswith(home) else None
    if not isinstance(cls, type) or not hasattr(cls, "_restore"):
        raise ValueError(f"{name} is not a model of partita that can be saved and loaded")
    return cls


def _plain(value: Any) -> Any:
    """Parameters as a file can hold them; generators, clients and callbacks become None."""
    if value is None or isinstance(value, (bool, int, float, str, np.ndarray)):
        return value
    if isinstance(value, (np.integer, np.floating, np.bool_)):
        return value.item()
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        items = [_plain(item) for item in value]
        return items if isinstance(value, list) else type(value)(*items) if _is_named(value) else tuple(items)
    return np.asarray(value) if hasattr(value, "__array__") else None


def _is_named(value: Any) -> bool:
    return type(value) in NAMED_TUPLES.values()


def _pack(value: Any, arrays: dict[str, np.ndarray], name: str) -> Any:
    """JSON with references in place of arrays, and marked objects for the types that JSON lacks."""
    if isinstance(value, np.ndarray):
        if value.dtype == object:
            return {"__list__": [_plain(item) for item in value.tolist()]}
        arrays[name] = value
        return {"__array__": name}
    if isinstance(value, dict):
        packed = []
        for i, (key, item) in enumerate(value.items()):
            part = key if isinstance(key, str) and key.isidentifier() else i  # "a.b" might be taken already
            packed.append((key, _pack(item, arrays, f"{name}.{part}")))
        if all(isinstance(key, str) and not key.startswith("__") for key in value):
            return dict(packed)
        return {"__dict__": [[_pack(key, arrays, name), item] for key, item in packed]}
    if isinstance(value, (list, tuple)):
        items = [_pack(item, arrays, f"{name}.{i}") for i, item in enumerate(value)]
        if _is_named(value):
            return {"__named__": [type(value).__name__, items]}
        return items if isinstance(value, list) else {"__tuple__": items}
    return value.item() if isinstance(value, np.generic) else value


def _unpack(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    if isinstance(value, list):
        return [_unpack(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    if "__array__" in value:
        return arrays[value["__array__"]]
    if "__list__" in value:
        out = np.empty(len(value["__list__"]), dtype=object)
        out[:] = value["__list__"]
        return out
    if "__tuple__" in value:
        return tuple(_unpack(value["__tuple__"], arrays))
    if "__dict__" in value:
        return {_unpack(key, arrays): _unpack(item, arrays) for key, item in value["__dict__"]}
    if "__named__" in value:
        name, items = value["__named__"]
        return NAMED_TUPLES[name](*_unpack(items, arrays))
    return {key: _unpack(item, arrays) for key, item in value.items()}
