"""The files of compiled kernels: which processes may share one, and when it is out of date.

numba keeps one index per kernel and throws it away when the stamp in it is not its own. A process that has
registered a class of its own must therefore not stamp the files of everybody else: what was compiled for classes
from outside this package lies in files of its own.
"""

from __future__ import annotations

import contextlib
import hashlib
import pickle
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = "partita."


def outsiders(kind: Any) -> set[str]:
    """The classes and functions from outside this package in a type of numba's, or in a tuple of types."""
    if isinstance(kind, tuple | list):
        return set().union(*map(outsiders, kind))
    found = set()
    maker = getattr(kind, "instance_class", None) or getattr(
        getattr(kind, "dispatcher", None), "py_func", None
    )
    if maker is not None and not (maker.__module__ or "").startswith(HERE):
        found.add(f"{maker.__module__}.{maker.__qualname__}")
    for part in ("types", "dtype"):
        if (inner := getattr(kind, part, None)) is not None and inner is not kind:
            found |= outsiders(tuple(inner) if part == "types" else inner)
    return found


class KernelFiles:
    """Stands where numba has its one cache file of a kernel, and chooses the file by the classes in the signature.

    ``common`` is the stamp of the package (and of the kernel's own file), ``added`` gives the names of foreign
    implementations for classes of the package, and the digest of all that was registered from outside.
    """

    def __init__(self, original: Any, common: str, added: Callable[[], tuple[set[str], str]], foreign: bool):
        self._make, self._path = type(original), Path(original._cache_path)
        self._base = original._index_name.removesuffix(".nbi")
        self._common, self._added, self._foreign = common, added, foreign

    def load(self, key: Any) -> Any:
        """What was compiled for this key, or None."""
        return self._file(key).load(key)

    def save(self, key: Any, data: Any) -> None:
        """Keep what was compiled: first the code under a name of its own, then its entry in the index.

        Two processes that save at once may lose an entry (it is compiled again), never mix up their code.
        """
        file = self._file(key)
        known = file._load_index()
        if not known and Path(file._index_path).exists():
            self._remove_old(file)
        name = known.get(key) or f"{file._index_name.removesuffix('.nbi')}.{uuid.uuid4().hex[:12]}.nbc"
        file._save_data(name, data)
        file._save_index({**file._load_index(), key: name})

    def flush(self) -> None:
        """Forget what the package's own classes have here."""
        self._open("", self._common).flush()

    def _file(self, key: Any) -> Any:
        patched, digest = self._added()
        names = outsiders(key[0]) | patched
        if self._foreign:  # a kernel from elsewhere may make any class inside
            return self._open("", f"{self._common} {digest}")
        if not names:
            return self._open("", self._common)
        mark = hashlib.sha256(" ".join(sorted(names)).encode()).hexdigest()[:8]
        return self._open(f"-{mark}", f"{self._common} {digest}")

    def _open(self, mark: str, stamp: str) -> Any:
        file = self._make(str(self._path), self._base + mark, stamp)
        load_index = file._load_index

        def load_or_forget() -> Any:
            # left by another version it may name classes that are gone: it counts as empty, not as an error
            try:
                return load_index()
            except (AttributeError, ImportError, EOFError, pickle.UnpicklingError):
                return {}

        file._load_index = load_or_forget
        return file

    def _remove_old(self, file: Any) -> None:
        for old in self._path.glob(f"{file._index_name.removesuffix('.nbi')}.*.nbc"):
            with contextlib.suppress(OSError):
                old.unlink()
