"""Chains on disk: after each iteration where the chain stands, and every draw in a file of its own.

A chain is a function of its state and of random numbers that are counted by iteration, so one that goes on from here is
the chain that would have been.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from partita.execution.journal import digest, read_arrays, write_arrays
from partita.trace import Trace

__all__ = ["ChainKeeper", "packed_fields", "unpacked_fields"]


def packed_fields(record: Any, name: str) -> dict[str, np.ndarray]:
    """The fields of a NamedTuple of numbers and arrays, as arrays.

    Examples
    --------
    >>> from partita.partitions import DirichletProcess
    >>> packed_fields(DirichletProcess(2.0), "prior")
    {'prior0': array(2.)}
    """
    return {f"{name}{j}": np.asarray(field) for j, field in enumerate(record)}


def unpacked_fields(template: Any, name: str, saved: dict[str, np.ndarray]) -> Any:
    """A NamedTuple of the template's type from such arrays."""
    fields = [
        saved[f"{name}{j}"] if isinstance(field, np.ndarray) else saved[f"{name}{j}"].item()
        for j, field in enumerate(template)
    ]
    return type(template)(*fields)


class ChainKeeper:
    """Keeps one chain in a folder.

    Parameters
    ----------
    folder : path
    index : int
        Which chain it is.
    about : anything of numbers and arrays
        What the chain depends on; a folder of another fit is refused.
    """

    def __init__(self, folder: Any, index: int, about: Any):
        self.folder, self.index = Path(folder), index
        self.folder.mkdir(parents=True, exist_ok=True)
        self._about = digest(about)

    @property
    def begun(self) -> bool:
        """Whether there is a state to go on from."""
        return self._state().exists()

    def load(self) -> dict[str, np.ndarray]:
        """The state after the last iteration."""
        saved = read_arrays(self._state())
        if str(saved["about"]) != self._about:
            raise ValueError(
                f"{self._state()} belongs to another fit (other data, parameters or version): give resume= a folder of "
                "its own, or remove this one"
            )
        return saved

    def draws(self, n_draws: int, families: Sequence[Any]) -> tuple[list[Trace], list[tuple[Any, ...]]]:
        """The draws so far, and the families of each."""
        traces, hyper = [], []
        for number in range(n_draws):
            saved = read_arrays(self._draw(number))
            traces.append(Trace(*(saved[f"trace{j}"] for j in range(len(Trace._fields)))))
            hyper.append(
                tuple(unpacked_fields(family, f"family{b}_", saved) for b, family in enumerate(families))
            )
        return traces, hyper

    def save(self, state: dict[str, np.ndarray], n_draws: int) -> None:
        """Where the chain stands, and how many draws it has made."""
        write_arrays(self._state(), {**state, "n_draws": np.array(n_draws), "about": np.array(self._about)})

    def add(self, number: int, trace: Trace, families: Sequence[Any]) -> None:
        """One more draw."""
        arrays = packed_fields(trace, "trace")
        for b, family in enumerate(families):
            arrays |= packed_fields(family, f"family{b}_")
        write_arrays(self._draw(number), arrays)

    def _state(self) -> Path:
        return self.folder / f"chain{self.index}.npz"

    def _draw(self, number: int) -> Path:
        return self.folder / f"chain{self.index}_draw{number:06d}.npz"
