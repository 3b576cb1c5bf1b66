"""The results of passes on disk, from which an interrupted fit is resumed.

Between passes, the state of an engine depends only on what the passes have returned, so nothing else has to be saved.
The same call with the same folder reads the results of the first passes from there, in order, and computes the rest.
Each result is stored with a digest of its parameters, so that the folder of another fit is detected. Files are
written atomically, as npz archives that are read without pickle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from partita.execution.digests import digest
from partita.files import write_atomically


class Journal:
    """A folder with the results of passes, in order.

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
        """Return the result of the next pass, or None if it is not stored yet."""
        path = self._path()
        if not path.exists():
            return None
        saved = read_arrays(path)
        if str(saved["digest"]) != digest(parameters):
            raise ValueError(
                f"{path} belongs to another fit (other data, parameters, random state or version): use another "
                "folder for resume=, or remove this one"
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
        """Store the result of a pass: arrays, numbers, and tuples of these."""
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
    """An executor together with a journal."""

    def __init__(self, inner: Any, folder: Any):
        self.inner, self.journal = inner, Journal(folder)

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        """Map with the inner executor."""
        return self.inner.map(function, items)

    def __getattr__(self, name: str) -> Any:
        if name in ("inner", "journal"):
            raise AttributeError(name)
        return getattr(self.inner, name)


def journaled(executor: Any, folder: Any) -> Any:
    """Return the executor, with a journal if a folder is given."""
    return executor if folder is None else Journaled(executor, folder)


def write_arrays(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Write an npz file atomically."""
    with write_atomically(path) as temporary, open(temporary, "wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Read the arrays of an npz file."""
    try:
        with np.load(path, allow_pickle=False) as saved:
            return dict(saved)
    except (
        Exception
    ) as error:  # a damaged archive fails in many ways: zlib, struct, unicode, other versions, ...
        raise ValueError(
            f"{path} cannot be read ({error}): remove the file to compute this step again"
        ) from error


def _item(array: np.ndarray) -> Any:
    return array.item() if array.ndim == 0 else array
