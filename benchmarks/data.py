"""Tables for the benchmarks, from a folder that the user names. The project contains none of them."""

from __future__ import annotations

import csv
import gzip
import os
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

FOLDER_VARIABLE = "PARTITA_DATA"
SUFFIX = ".csv.gz"


class Benchmark(NamedTuple):
    """A table read from the folder of benchmarks.

    Attributes
    ----------
    X : ndarray, shape (n_samples, n_features)
        Floats with NaN where missing, if every column is numeric. Otherwise objects: floats in the numeric
        columns, strings in the others, None where missing.
    target : ndarray of int, or None
        The classes, coded from 0 in the order of `target_names`: shape (n_samples,) for one labeling,
        (n_samples, n_labelings) for several, None for a table without classes.
    feature_names : list of str
        The names of the columns of `X`.
    target_names : list of list of str
        One list of class names for each labeling; empty for a table without classes.
    ids : ndarray of str, or None
        The names of the rows, where the table has an ``id`` column.
    """

    X: NDArray[Any]
    target: NDArray[np.int64] | None
    feature_names: list[str]
    target_names: list[list[str]]
    ids: NDArray[np.str_] | None


def load_benchmark(name: str, *, folder: str | os.PathLike[str] | None = None) -> Benchmark:
    """Read ``<folder>/<name>.csv.gz``.

    The file has a header row and one line for each object: an optional first column ``id``, the features,
    then ``class``, or ``class_1``, ``class_2`` and so on where several groupings are known. An empty cell
    is missing. Only the classes are recoded, and nothing is scaled.

    Parameters
    ----------
    name : str
        The name of the table, without the ending.
    folder : path, default=None
        Folder of the tables. None means the folder named by the environment variable ``PARTITA_DATA``.

    Returns
    -------
    Benchmark
        The fields `X`, `target`, `feature_names`, `target_names` and `ids`.

    Raises
    ------
    FileNotFoundError
        If no folder is named, or it has no such table. The message lists the tables that exist.
    ValueError
        If the file is not such a table; the message names the line.
    """
    path = _find(name, folder)
    header, rows = _read(path)
    has_ids = header[0] == "id"
    n_classes = 0
    while n_classes < len(header) and re.fullmatch(r"class(_\d+)?", header[-1 - n_classes]):
        n_classes += 1
    first, last = int(has_ids), len(header) - n_classes
    if first >= last:
        raise ValueError(f"{path}: line 1 names no feature column (found {', '.join(header)})")

    coded = [np.unique([row[j] for row in rows], return_inverse=True) for j in range(last, len(header))]
    targets = np.column_stack([codes for _, codes in coded]).astype(np.int64) if coded else None
    return Benchmark(
        X=_features([row[first:last] for row in rows]),
        target=targets[:, 0] if targets is not None and n_classes == 1 else targets,
        feature_names=header[first:last],
        target_names=[names.tolist() for names, _ in coded],
        ids=np.array([row[0] for row in rows]) if has_ids else None,
    )


def _find(name: str, folder: str | os.PathLike[str] | None) -> Path:
    if folder is None:
        folder = os.environ.get(FOLDER_VARIABLE, "")
        if not folder:
            raise FileNotFoundError(
                f"benchmark {name!r} is not part of the project: set the environment variable {FOLDER_VARIABLE} to "
                f"a folder that holds {name}{SUFFIX}, or give folder="
            )
    root = Path(folder)
    where = f"the folder {str(root)!r} (from {FOLDER_VARIABLE} or folder=)"
    if not root.is_dir():
        raise FileNotFoundError(f"{where} does not exist")
    # `name` is looked up among the names that exist, so it cannot lead out of the folder
    tables = sorted(path.name.removesuffix(SUFFIX) for path in root.glob(f"*{SUFFIX}"))
    if name not in tables:
        raise FileNotFoundError(f"{where} has no table {name!r}; it has: {', '.join(tables) or 'none'}")
    return root / f"{name}{SUFFIX}"


def _read(path: Path) -> tuple[list[str], list[list[str]]]:
    with gzip.open(path, "rt", encoding="utf-8-sig", newline="") as stream:
        reader = csv.reader(stream)
        header = next(reader, [])
        rows = []
        for row in reader:
            if len(row) != len(header):
                raise ValueError(
                    f"{path}: line {reader.line_num} has {len(row)} cells, the header has {len(header)}"
                )
            rows.append(row)
    if not rows:
        raise ValueError(f"{path}: no line after the header" if header else f"{path}: the file is empty")
    return header, rows


def _features(rows: list[list[str]]) -> NDArray[Any]:
    try:
        return np.array([[float(cell) if cell else np.nan for cell in row] for row in rows])
    except ValueError:
        pass  # some column is not numeric
    X = np.empty((len(rows), len(rows[0])), dtype=object)
    for d, column in enumerate(zip(*rows)):
        try:
            X[:, d] = [float(cell) if cell else None for cell in column]
        except ValueError:
            X[:, d] = [cell or None for cell in column]
    return X
