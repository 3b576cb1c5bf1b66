"""What passes have found, on disk: a fit that was killed goes on where it stood.

Between its passes an engine is a function of what they return, so nothing else has to be kept: the same call, given
the same folder, takes the results of its first passes from there, one after the other, and computes the rest. Each
result carries a digest of the parameters it belongs to, so that a folder of another fit is noticed. Files are written
whole or not at all, arrays as npz; nothing in them is ever executed.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from partita.files import write_atomically

__all__ = ["Journal", "Journaled", "digest", "journaled", "read_arrays", "write_arrays"]


class Journal:
    """The results of passes, in their order.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> one = Journal(folder)
    >>> one.find((np.ones(2),)) is None
    True
    >>> one.write((np.ones(2),), (np.arange(3), (np.zeros(1),), 0.5))
    >>> Journal(folder).find((np.ones(2),))
    [array([0, 1, 2]), (array([0.]),), 0.5]
    """

    def __init__(self, folder: Any):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._next = 0

    def find(self, parameters: Any) -> list[Any] | None:
        """The result of the next pass, if it is there."""
        path = self._path()
        if not path.exists():
            return None
        saved = read_arrays(path)
        if str(saved["digest"]) != digest(parameters):
            raise ValueError(
                f"{path} belongs to another fit (other data, parameters or version): give resume= a folder of its own, "
                "or remove this one"
            )
        self._next += 1
        layout = saved["layout"].tolist()
        found, at = [], 0
        for length in layout:
            if length < 0:
                found.append(_item(saved[f"a{at}"]))
                at += 1
            else:
                found.append(tuple(_item(saved[f"a{at + j}"]) for j in range(length)))
                at += length
        return found

    def write(self, parameters: Any, result: Iterable[Any]) -> None:
        """Keep the result of a pass: arrays, numbers, and tuples of these."""
        flat: list[Any] = []
        layout = []
        for item in result:
            layout.append(len(item) if isinstance(item, tuple) else -1)
            flat.extend(item if isinstance(item, tuple) else [item])
        arrays = {f"a{j}": np.asarray(item) for j, item in enumerate(flat)}
        write_arrays(
            self._path(), {**arrays, "layout": np.array(layout), "digest": np.array(digest(parameters))}
        )
        self._next += 1

    def _path(self) -> Path:
        return self.folder / f"pass{self._next:06d}.npz"


class Journaled:
    """An executor with a journal."""

    def __init__(self, inner: Any, folder: Any):
        self.inner, self.journal = inner, Journal(folder)

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        """As the executor inside does."""
        return self.inner.map(function, items)

    def __getattr__(self, name: str) -> Any:
        if name in ("inner", "journal"):
            raise AttributeError(name)
        return getattr(self.inner, name)


def journaled(executor: Any, folder: Any) -> Any:
    """The executor, with a journal where a folder is given."""
    return executor if folder is None else Journaled(executor, folder)


def digest(parameters: Any) -> str:
    """A fingerprint of arrays and tuples of them, to the last bit.

    Examples
    --------
    >>> digest((np.ones(2), (1,))) == digest((np.ones(2), (1,)))
    True
    """
    found = hashlib.blake2b(digest_size=16)

    def add(item: Any) -> None:
        if isinstance(item, (tuple, list)):
            for entry in item:
                add(entry)
        else:
            array = np.ascontiguousarray(item)
            found.update(f"{array.dtype.str}{array.shape}".encode())
            found.update(array.tobytes())

    add(parameters)
    return found.hexdigest()


def write_arrays(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """An npz file, whole or not at all."""
    with write_atomically(path) as temporary, open(temporary, "wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an npz file."""
    try:
        with np.load(path, allow_pickle=False) as saved:
            return dict(saved)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} cannot be read ({error}): remove it to do this step again") from error


def _item(array: np.ndarray) -> Any:
    return array.item() if array.ndim == 0 else array
