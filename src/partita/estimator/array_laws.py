"""What the arrays of a saved model must be: type, shape, range, finiteness. A file is checked before it is used.

A model file may have been altered, and compiled code reads arrays without checks of their bounds. So every class of
estimators states a law for each array that its files hold, in ``_array_laws``, one line per array:

    fitted.labels_       int    (N)      0..K-1
    fitted.confidence_   float  (N)      0..1  nan
    draws.*.labels       int    (N,v)    0..

A line has the place of the array in the state (``*`` is any one step), its type (``int``, ``float``, ``float32``,
``bool`` or ``number``, which is any of them), its shape, and then, in any order, the range of its values, which of
``nan``, ``inf`` and ``-inf`` may occur, ``rising`` (the first value is 0, and none is smaller than the one before) and
``total`` (the last value is the upper end of the range). Letters in shapes and ranges are sizes: an upper-case letter
has one value in the whole file, a lower-case one has one value per place that the stars stand for, or that the first
of them stand for. ``(...)`` is any shape. A line ``K = fitted.n_clusters_`` gives a size that no array has. Arrays
without a line are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np

TYPES = {"int": "i", "float": "f", "float32": "f", "bool": "b", "number": "ifb"}
WORDS = {"nan", "inf", "-inf", "rising", "total"}
SLACK = 1e-6  # of ranges of floats, for sums that are rounded
PART = {
    "class",
    "params",
    "state",
}  # of a model within a model, which is checked by the laws of its own class
TERM = re.compile(r"([+-]?)(\d+\.?\d*|[A-Za-z])")


class ArrayLaw(NamedTuple):
    """One line of the laws."""

    place: re.Pattern[str]
    type: str
    shape: tuple[str, ...] | None  # None: any shape
    low: str
    high: str
    words: frozenset[str]  # of WORDS


class _Size(NamedTuple):
    value: int
    origin: str  # the array that has it


def array_laws(cls: type) -> tuple[str, ...]:
    """Return the lines of a class and its bases."""
    return tuple(line for base in reversed(cls.__mro__) for line in vars(base).get("_array_laws", ()))


def check_arrays(state: Any, lines: Iterable[str]) -> None:
    """Refuse a state with an array that does not keep to its law.

    Examples
    --------
    >>> check_arrays({"labels": np.array([0, 2])}, ["labels int (N) 0..K-1", "K = n_clusters"])
    Traceback (most recent call last):
    ...
    ValueError: the size K of the model is not given
    >>> check_arrays(
    ...     {"labels": np.array([0, 2]), "n_clusters": 2}, ["labels int (N) 0..K-1", "K = n_clusters"]
    ... )
    Traceback (most recent call last):
    ...
    ValueError: the array labels has the value 2, outside of 0..K-1 (0 to 1)
    """
    lines = tuple(lines)
    matched = []
    sizes: dict[Any, _Size] = {}
    for path, array in arrays_in(state):
        law, steps = _law_of(path, lines)
        _check_type(path, array, law)
        _bind(path, array, law, steps, sizes)
        matched.append((path, array, law, steps))
    for name, place in _given_sizes(lines):
        found = _at(state, place)
        if (name, ()) not in sizes and isinstance(found, int):
            sizes[name, ()] = _Size(found, place)
    for path, array, law, steps in matched:
        _check_shape(path, array, law, steps, sizes)
        _check_values(path, array, law, steps, sizes)


def arrays_in(tree: Any, path: str = "") -> Iterator[tuple[str, np.ndarray]]:
    """Yield the arrays in a tree of dicts, lists and tuples with their places; not those of models within it."""
    if isinstance(tree, np.ndarray):
        if tree.dtype != object:
            yield path, tree
        return
    if isinstance(tree, Mapping):
        items: Iterable[tuple[Any, Any]] = () if set(tree) == PART else tree.items()
    elif isinstance(tree, (list, tuple)):
        items = zip(getattr(tree, "_fields", range(len(tree))), tree, strict=True)
    else:
        return
    for name, item in items:
        yield from arrays_in(item, f"{path}.{name}" if path else str(name))


@cache
def _parsed(line: str) -> ArrayLaw:
    place, kind, shape, *rest = line.split()
    law = ArrayLaw(
        re.compile(r"\.".join(r"(\w+)" if step == "*" else re.escape(step) for step in place.split("."))),
        kind,
        None if shape == "(...)" else tuple(size for size in shape.strip("()").split(",") if size),
        "",
        "",
        frozenset(word for word in rest if ".." not in word),
    )
    if kind not in TYPES or not law.words <= WORDS:
        raise ValueError(f"{line!r} is not a law of an array")
    for word in rest:
        if ".." in word:
            low, _, high = word.partition("..")
            law = law._replace(low=low, high=high)
    return law


def _given_sizes(lines: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for line in lines:
        if " = " in line:
            name, _, place = line.partition(" = ")
            yield name.strip(), place.strip()


def _law_of(path: str, lines: tuple[str, ...]) -> tuple[ArrayLaw, tuple[str, ...]]:
    for line in lines:
        if " = " in line:
            continue
        law = _parsed(line)
        found = law.place.fullmatch(path)
        if found:
            return law, (path.partition(".")[0], *found.groups())
    raise ValueError(f"the array {path} does not belong to a model of this class")


def _at(state: Any, place: str) -> Any:
    for step in place.split("."):
        if not isinstance(state, Mapping) or step not in state:
            return None
        state = state[step]
    return state


def _check_type(path: str, array: np.ndarray, law: ArrayLaw) -> None:
    precision = np.float32 if law.type == "float32" else np.float64
    if array.dtype.kind not in TYPES[law.type] or (array.dtype.kind == "f" and array.dtype != precision):
        raise ValueError(f"the array {path} has the type {array.dtype}, where {law.type} belongs")
    if law.shape is not None and array.ndim != len(law.shape):
        raise ValueError(f"the array {path} has {array.ndim} dimensions, where {len(law.shape)} belong")


def _find_size(name: str, steps: tuple[str, ...], sizes: dict[Any, _Size]) -> _Size | None:
    """The size of a letter; a lower-case one may have been given for a place that this one is in."""
    for depth in range(1 if name.isupper() else len(steps) + 1):
        if (name, steps[:depth]) in sizes:
            return sizes[name, steps[:depth]]
    return None


def _bind(
    path: str, array: np.ndarray, law: ArrayLaw, steps: tuple[str, ...], sizes: dict[Any, _Size]
) -> None:
    for name, size in zip(law.shape or (), array.shape, strict=False):
        if len(name) == 1 and name.isalpha() and _find_size(name, steps, sizes) is None:
            sizes[name, () if name.isupper() else steps] = _Size(size, path)


def _value(text: str, steps: tuple[str, ...], sizes: dict[Any, _Size]) -> float:
    """The value of a sum of sizes and numbers, as in "K-1"."""
    if re.fullmatch(r"-?\d*\.?\d+", text):
        return float(text)
    total = 0.0
    for sign, term in TERM.findall(text):
        if term.isalpha():
            found = _find_size(term, steps, sizes)
            if found is None:
                raise ValueError(f"the size {term} of the model is not given")
            number = float(found.value)
        else:
            number = float(term)
        total += -number if sign == "-" else number
    return total


def _check_shape(
    path: str, array: np.ndarray, law: ArrayLaw, steps: tuple[str, ...], sizes: dict[Any, _Size]
) -> None:
    if law.shape is None:
        return
    for size, text in zip(array.shape, law.shape, strict=True):
        wanted = _value(text, steps, sizes)
        if size != wanted:
            name = next((letter for letter in text if letter.isalpha()), "")
            found = _find_size(name, steps, sizes) if name else None
            origin = f" ({name} is {found.value} in {found.origin})" if found else ""
            raise ValueError(
                f"the array {path} has the shape {array.shape}, where ({', '.join(law.shape)}) belongs{origin}"
            )


def _check_values(
    path: str, array: np.ndarray, law: ArrayLaw, steps: tuple[str, ...], sizes: dict[Any, _Size]
) -> None:
    if not array.size:
        return
    slack = 0.0
    values = array.ravel()
    if array.dtype.kind == "f":
        present = {"nan": np.isnan(values), "inf": values == np.inf, "-inf": values == -np.inf}
        for word, where in present.items():
            if word not in law.words and where.any():
                raise ValueError(f"the array {path} has the value {word}, which does not belong there")
        values, slack = values[np.isfinite(values)], SLACK
        if not values.size:
            return
    low = _value(law.low, steps, sizes) if law.low else -np.inf
    high = _value(law.high, steps, sizes) if law.high else np.inf
    least, most = values.min(), values.max()
    if least < low - slack or most > high + slack:
        raise ValueError(
            f"the array {path} has the value {least if least < low - slack else most}, outside of "
            f"{law.low}..{law.high} ({low:g} to {high:g})"
        )
    if "rising" in law.words and (values[0] != 0 or (np.diff(values) < 0).any()):
        raise ValueError(f"the array {path} does not rise from 0")
    if "total" in law.words and values[-1] != high:
        raise ValueError(f"the array {path} ends with {values[-1]}, where {law.high} = {high:g} belongs")


def uncertain_laws(place: str) -> tuple[str, ...]:
    """Return the laws of the rows that more than one cluster may contain, at ``place``."""
    return (f"{place}.0 int (u) 0..", f"{place}.1 int (u) 0..", f"{place}.2 float32 (u) 0..1")


def draw_laws(place: str) -> tuple[str, ...]:
    """Return the laws of the draws that densities are averaged over, at ``place``."""
    return (
        f"{place}.n_clusters int (d) 0..",
        f"{place}.log_weights float (...) -inf",
        f"{place}.clusters.* float (...) -inf",
        f"{place}.hyper.*.* number (...)",
        f"{place}.outlier_shares float (d) 0..1",
    )


def trace_laws(place: str, *, rows: str = "O", numbered: bool = False) -> tuple[str, ...]:
    """Return the laws of a :class:`partita.trace.Trace` of draws over ``rows`` objects.

    Examples
    --------
    >>> trace_laws("trace")[0]
    'trace.labels int (b,O) -1..O-1'
    """
    fields = {
        "labels": f"int (b,{rows}) -1..{rows}-1",
        "log_joint": "float (b)",
        "n_clusters": f"int (b) 0..{rows}",
        "concentration": "float (b) 0.. nan",
        "discount": "float (b) 0..1 nan",
        "chain": "int (b) 0..",
    }
    return tuple(
        f"{place}.{number if numbered else name} {law}" for number, (name, law) in enumerate(fields.items())
    )
