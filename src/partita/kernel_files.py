"""Cache files of compiled kernels: which processes share a file, and when it is out of date.

numba keeps one index file per kernel and discards it when its stamp differs from that of the process. A process that
has registered classes of its own must therefore not stamp the shared files: code that was compiled for classes from
outside this package goes into separate files.

A wheel for one platform (``make wheel``) also holds compiled code, in the folder ``_compiled``. It is compiled for a
processor with fewer features than most have, and used where the code was not compiled on this machine.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import logging
import pickle
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

PACKAGE_PREFIX = "partita."
PACKAGE = Path(__file__).parent
SHIPPED = PACKAGE / "_compiled"  # a copy of the folders of the package, with cache files instead of sources
SHIPPED_RECORD = SHIPPED / "record.json"


logger = logging.getLogger("partita")


@contextlib.contextmanager
def without_disk() -> Iterator[None]:
    """Whatever the disk does (full, read-only, lost), the fit goes on with the code that is in memory."""
    try:
        yield
    except OSError as error:
        tell_of_no_cache(error)


def tell_of_no_cache(error: BaseException) -> None:
    """Say once per process that compiled code is not kept."""
    if not _told:
        _told.append(True)
        logger.warning(
            "partita: compiled code cannot be kept on disk (%s), so every process compiles it again; make room, or "
            "name another folder in NUMBA_CACHE_DIR",
            error,
        )


_told: list[bool] = []


@functools.cache
def shipped_processor(here: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the processor that the shipped code was compiled for; None if there is none, or it does not run here.

    A processor is described as numba does: platform, name, features.
    """
    try:
        found = tuple(json.loads(SHIPPED_RECORD.read_text())["processor"])
        return found if can_run(found, here) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def can_run(compiled_for: tuple[str, ...], here: tuple[str, ...]) -> bool:
    """Whether code that was compiled for one processor runs on another one.

    Examples
    --------
    >>> can_run(("linux", "x86-64-v3", "+avx2,+fma"), ("linux", "skylake", "+avx2,-avx512f,+fma"))
    True
    >>> can_run(("linux", "x86-64-v3", "+avx2,+fma"), ("linux", "nehalem", "-avx2,+sse4.2"))
    False
    """
    needed, present = ({f for f in one[2].split(",") if f.startswith("+")} for one in (compiled_for, here))
    return compiled_for[0] == here[0] and needed <= present


def foreign_names(kind: Any) -> set[str]:
    """Return the names of classes and functions from outside this package in a numba type or a tuple of types."""
    if isinstance(kind, tuple | list):
        return set().union(*map(foreign_names, kind))
    found = set()
    maker = getattr(kind, "instance_class", None) or getattr(
        getattr(kind, "dispatcher", None), "py_func", None
    )
    if maker is not None and not (maker.__module__ or "").startswith(PACKAGE_PREFIX):
        found.add(f"{maker.__module__}.{maker.__qualname__}")
    for part in ("types", "dtype"):
        if (inner := getattr(kind, part, None)) is not None and inner is not kind:
            found |= foreign_names(tuple(inner) if part == "types" else inner)
    return found


class KernelFiles:
    """Replaces numba's single cache file of a kernel, and chooses a file by the classes in the signature.

    ``common`` is the stamp of the package (and of the kernel's own file). ``added`` returns the names of foreign
    implementations for classes of the package, and a digest of everything that other packages have registered.
    ``source`` is the file of the kernel's source.
    """

    def __init__(
        self,
        original: Any,
        common: str,
        added: Callable[[], tuple[set[str], str]],
        foreign: bool,
        source: str,
    ):
        self._make, self._path = type(original), Path(original._cache_path)
        self._base = original._index_name.removesuffix(".nbi")
        self._common, self._added, self._foreign = common, added, foreign
        self._source = Path(source)

    def load(self, key: Any) -> Any:
        """Load the code that was compiled for this key here or that came with the package, or None."""
        file = self._file(key)
        found = file.load(key)
        if found is None and self._is_common(file) and (processor := shipped_processor(key[1])):
            shipped = self._open("", self._common, SHIPPED / self._source.parent.relative_to(PACKAGE))
            found = shipped.load((key[0], processor, *key[2:]))
        return found

    def _is_common(self, file: Any) -> bool:
        return not self._foreign and file._index_name == f"{self._base}.nbi"

    def save(self, key: Any, data: Any) -> None:
        """Save compiled code: first the code, under a unique name, then its entry in the index.

        If two processes save at the same time, an entry may be lost (and compiled again), but code is never mixed up.
        """
        file = self._file(key)
        known = file._load_index()
        if not known and Path(file._index_path).exists():
            self._remove_old(file)
        name = known.get(key) or f"{file._index_name.removesuffix('.nbi')}.{uuid.uuid4().hex[:12]}.nbc"
        file._save_data(name, data)
        file._save_index({**file._load_index(), key: name})

    def flush(self) -> None:
        """Discard the code that was compiled for the classes of this package."""
        self._open("", self._common).flush()

    def _file(self, key: Any) -> Any:
        patched, digest = self._added()
        names = foreign_names(key[0]) | patched
        if self._foreign:  # a kernel of another package may create any class inside
            return self._open("", f"{self._common} {digest}")
        if not names:
            return self._open("", self._common)
        mark = hashlib.sha256(" ".join(sorted(names)).encode()).hexdigest()[:8]
        return self._open(f"-{mark}", f"{self._common} {digest}")

    def _open(self, mark: str, stamp: str, folder: Path | None = None) -> Any:
        file = self._make(str(folder or self._path), self._base + mark, stamp)
        load_index = file._load_index

        def load_or_forget() -> Any:
            # an index of another version may name classes that no longer exist: treat it as empty
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
