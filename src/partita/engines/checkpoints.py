"""Chains on disk: the state of a chain, and a file for every draw.

A chain is a function of its state, which contains its random generator, so a chain that continues from a checkpoint is
the same as one that was never interrupted. A state is a tree of NamedTuples, tuples, lists, dictionaries, arrays,
numbers and random generators; it is written as arrays (npz) with its structure as JSON. Nothing in such a file is
executed: classes are looked up in this package, and must be NamedTuples.
"""

from __future__ import annotations

import importlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from partita._version import __version__
from partita.execution.device import is_on_device, to_device, to_host
from partita.execution.digests import digest, generator_state
from partita.execution.journal import read_arrays, write_arrays

WRITING_SHARE = 0.05  # at most this share of a chain's time goes into writing checkpoints
GENERATORS = ("PCG64", "PCG64DXSM", "Philox", "MT19937", "SFC64")


def pack(tree: Any, given: Any = ()) -> dict[str, np.ndarray]:
    """A tree as named arrays; objects of ``given`` are written as references.

    An array that occurs twice is written once, and is one array again after :func:`unpack`.

    Examples
    --------
    >>> from partita.partitions import DirichletProcess
    >>> data = np.arange(3)
    >>> saved = pack({"prior": DirichletProcess(2.0), "data": data}, given=(data,))
    >>> sorted(saved)
    ['tree']
    >>> unpack(saved, given=(data,))
    {'prior': DirichletProcess(concentration=2.0), 'data': array([0, 1, 2])}
    """
    known = {id(leaf): number for number, leaf in enumerate(_leaves(given))}
    arrays: list[np.ndarray] = []
    places: dict[int, int] = {}

    def place(array: np.ndarray) -> int:
        if id(array) not in places:
            places[id(array)] = len(arrays)
            arrays.append(array)
        return places[id(array)]

    def node(item: Any) -> Any:
        if item is None or isinstance(item, (bool, str)) or type(item) in (int, float):
            return item
        if id(item) in known:
            return {"given": known[id(item)]}
        if isinstance(item, np.ndarray):
            return {"array": place(item)}
        if is_on_device(item):
            return {"device": place(to_host(item))}
        if isinstance(item, np.generic):
            return {"scalar": place(np.asarray(item))}
        if isinstance(item, tuple):
            entries = [node(entry) for entry in item]
            if not hasattr(item, "_fields"):
                return {"tuple": entries}
            return {"record": f"{type(item).__module__}:{type(item).__qualname__}", "fields": entries}
        if isinstance(item, list):
            return {"list": [node(entry) for entry in item]}
        if isinstance(item, dict):
            return {"dict": [[node(key), node(value)] for key, value in item.items()]}
        if isinstance(item, np.random.Generator):
            return {"generator": node(generator_state(item))}
        raise TypeError(f"a checkpoint cannot hold a {type(item).__name__}: {item!r}")

    text = json.dumps(node(tree))
    return {"tree": np.array(text), **{f"a{j}": array for j, array in enumerate(arrays)}}


def unpack(saved: dict[str, np.ndarray], given: Any = (), *, beside: Any = None) -> Any:
    """The tree from the arrays of :func:`pack`, which was called with the same ``given``.

    Arrays that were on a device are put where those of ``beside`` are, by default of ``given``.
    """
    known = list(_leaves(given))
    like = next((leaf for leaf in _leaves(given if beside is None else beside) if is_on_device(leaf)), None)

    def build(node: Any) -> Any:
        if not isinstance(node, dict):
            return node
        (kind, content), *rest = node.items()
        if kind == "given":
            return known[content]
        if kind == "array":
            return saved[f"a{content}"]
        if kind == "device":
            return to_device(saved[f"a{content}"], like)
        if kind == "scalar":
            return saved[f"a{content}"][()]
        if kind == "tuple":
            return tuple(build(entry) for entry in content)
        if kind == "list":
            return [build(entry) for entry in content]
        if kind == "dict":
            return {build(key): build(value) for key, value in content}
        if kind == "generator":
            return _generator_from(build(content))
        return _record_class(content)(*(build(entry) for entry in rest[0][1]))

    return build(json.loads(str(saved["tree"])))


def _leaves(given: Any) -> Iterator[Any]:
    """Everything in a tree of tuples and lists that a state may refer to."""
    if isinstance(given, (tuple, list)):
        for entry in given:
            yield from _leaves(entry)
    elif not (given is None or isinstance(given, (bool, int, float, str))):
        yield given


def _record_class(name: str) -> Any:
    module, _, path = name.partition(":")
    if not module.startswith("partita."):
        raise ValueError(f"a checkpoint names {name!r}, which is not part of this package: remove the folder")
    found: Any = importlib.import_module(module)
    for step in path.split("."):
        found = getattr(found, step)
    if not (isinstance(found, type) and issubclass(found, tuple) and hasattr(found, "_fields")):
        raise ValueError(f"a checkpoint names {name!r}, which is not a record: remove the folder")
    return found


def _generator_from(state: dict[str, Any]) -> np.random.Generator:
    name = state["bits"]["bit_generator"]
    if name not in GENERATORS:
        raise ValueError(f"a checkpoint names the random generator {name!r}, which is not known")
    seeds = None if state["seeds"] is None else np.random.SeedSequence(**state["seeds"])
    bits = getattr(np.random, name)(seeds)
    bits.state = state["bits"]
    return np.random.Generator(bits)


def open_checkpoint(folder: Any, number: int, about: Any, name: str = "chain") -> Checkpoint | None:
    """The checkpoint of one run of a fit; None without a folder."""
    return None if folder is None else Checkpoint(folder, number, about, name)


class Checkpoint:
    """Keeps one chain, or one run of a deterministic engine, in a folder.

    Parameters
    ----------
    folder : path
    number : int
        Of the run.
    about : tree of anything
        All that the run depends on, data included; a folder of another fit is refused.
    name : str
        Beginning of the names of the files; runs of different engines in one folder have different names.
    """

    def __init__(self, folder: Any, number: int, about: Any, name: str = "chain"):
        self.folder, self._name = Path(folder), f"{name}{number}"
        self.folder.mkdir(parents=True, exist_ok=True)
        self._about = digest((__version__, about))
        self._next_save = 0.0

    @property
    def begun(self) -> bool:
        """Whether there is a state to continue from."""
        return self._state_file().exists()

    def load(self, given: Any) -> tuple[Any, list[float], list[Any]]:
        """The state that was saved last, the log joint of each iteration before it, and the draws."""
        path = self._state_file()
        saved = read_arrays(path)
        if str(saved.get("about")) != self._about:
            raise ValueError(
                f"{path} belongs to another fit (other data, parameters, random state or version): give resume= a "
                "folder of its own, or remove this one"
            )
        files = map(self._draw_file, range(int(saved["n_draws"])))
        draws = [self._unpacked(file, read_arrays(file), beside=given) for file in files]
        return self._unpacked(path, saved, given), saved["log_joint"].tolist(), draws

    def _unpacked(self, path: Path, saved: dict[str, np.ndarray], given: Any = (), beside: Any = None) -> Any:
        """The tree in a file; a file that holds something else is named. Draws refer to nothing that is given."""
        try:
            return unpack(saved, given, beside=beside)
        except (KeyError, IndexError, TypeError) as error:
            raise ValueError(
                f"{path} does not hold what this fit wrote ({error!r}): remove the folder to begin the fit again"
            ) from error

    def save(self, state: Any, values: list[float], n_draws: int, given: Any, *, at_once: bool) -> None:
        """Save the state of the chain; skipped if the last save was a short time ago, unless ``at_once``."""
        began = time.perf_counter()
        if began < self._next_save and not at_once:
            return
        rest = {
            "log_joint": np.array(values),
            "n_draws": np.array(n_draws),
            "about": np.array(self._about),
        }
        write_arrays(self._state_file(), {**pack(state, given), **rest})
        now = time.perf_counter()
        self._next_save = now + (now - began) / WRITING_SHARE

    def add_draw(self, number: int, draw: Any) -> None:
        """One more draw."""
        write_arrays(self._draw_file(number), pack(draw))

    def _state_file(self) -> Path:
        return self.folder / f"{self._name}.npz"

    def _draw_file(self, number: int) -> Path:
        return self.folder / f"{self._name}_draw{number:06d}.npz"
