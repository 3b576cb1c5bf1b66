"""The table that comes with the package; ``scripts/make_visitors.py`` made it."""

from __future__ import annotations

import csv
from importlib.resources import files
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partita.table.frames import make_frame

_REAL = ("minutes_inside", "spend")
_COUNT = ("rooms_visited", "photos_taken")
_BINARY = ("member", "audio_guide")
_GROUPS = ("tourist", "family", "student", "connoisseur")

_DESCRIPTION = """\
Visitors of a museum: 600 invented people in four planted groups (240 tourists, 180 families, 120 students,
60 connoisseurs). About 6% of the cells are missing, completely at random.

minutes_inside  real         time between the two gates
spend           real         money left in shop and café
rooms_visited   count
photos_taken    count
member          yes/no       friend of the museum
audio_guide     yes/no
ticket          categorical  full, family, student, senior
arrival         categorical  foot, bus, car, train

Within a group the columns are independent (normal, Poisson, Bernoulli, categorical). An oracle that knows all
parameters reaches an adjusted Rand index of 0.95."""


class Dataset(NamedTuple):
    """A table with the groups that were planted in it.

    Attributes
    ----------
    frame : dict of str to ndarray, or a data frame
        The columns by name. In a dict numbers are floats with NaN where missing; strings and truth values
        are object arrays with None where missing.
    target : ndarray of int, shape (n_samples,)
        The group of each row.
    target_names : list of str
        ``target_names[k]`` is the name of group k.
    description : str
        What the columns mean and how the table was made.
    """

    frame: Any
    target: NDArray[np.int64]
    target_names: list[str]
    description: str


def load_visitors(*, as_frame: Literal["dict", "pandas", "polars", "pyarrow"] = "dict") -> Dataset:
    """Load 600 visitors of a museum: mixed kinds of columns, missing cells, four planted groups.

    Parameters
    ----------
    as_frame : {"dict", "pandas", "polars", "pyarrow"}, default="dict"
        "dict" gives numpy arrays by column name. The others give a data frame of that library, which must
        be installed; missing cells are then that library's own.

    Returns
    -------
    Dataset
        The fields `frame`, `target`, `target_names` and `description`.

    Examples
    --------
    >>> from partita.datasets import load_visitors
    >>> visitors = load_visitors()
    >>> list(visitors.frame)[:4]
    ['minutes_inside', 'spend', 'rooms_visited', 'photos_taken']
    >>> visitors.frame["spend"][:3]
    array([ 7.77,   nan, 19.94])
    >>> visitors.frame["member"][:3]
    array([False, False, None], dtype=object)
    >>> visitors.target_names[visitors.target[0]]
    'student'
    """
    header, *rows = csv.reader(
        files("partita.datasets").joinpath("visitors.csv").read_text(encoding="utf-8").splitlines()
    )
    cells = dict(zip(header, zip(*rows)))
    groups = cells.pop("group")
    values = {name: [_value(name, cell) for cell in column] for name, column in cells.items()}
    return Dataset(
        frame=_as_arrays(values) if as_frame == "dict" else make_frame(values, as_frame),
        target=np.array([_GROUPS.index(group) for group in groups], dtype=np.int64),
        target_names=list(_GROUPS),
        description=_DESCRIPTION,
    )


def _value(name: str, cell: str) -> float | int | bool | str | None:
    if not cell:
        return None
    if name in _REAL:
        return float(cell)
    if name in _COUNT:
        return int(cell)
    if name in _BINARY:
        return cell == "yes"
    return cell


def _as_arrays(values: dict[str, list[Any]]) -> dict[str, NDArray[Any]]:
    # numpy reads None as NaN when it makes floats
    return {
        name: np.array(column, dtype=float if name in _REAL + _COUNT else object)
        for name, column in values.items()
    }
