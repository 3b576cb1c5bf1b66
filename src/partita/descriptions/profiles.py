"""Profiles of given groups: each column of a table in each group, in the format of ``profiles_`` of a mixture."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from partita.table import Column, Table

MAX_LEVELS = 2000  # columns with more levels are not described
MIN_SKEWNESS = 1.0  # of columns whose medians are told instead of their means
MIN_LUMP = 0.5  # share of the cells from which one value is told by itself
CHUNK_CELLS = 4_000_000

Profile = dict[str, Any]


def profile_groups(
    labels: np.ndarray, table: Table, n_groups: int, weights: np.ndarray | None = None
) -> dict[str, Profile]:
    """Describe each column of a table in each group, in the format of ``profiles_``.

    Numbers have mean and standard deviation, a median if the column is skewed, and the share of a value that fills half
    of its cells; the other columns have the shares of their levels. ``n`` is the weight of the observed cells. Missing
    cells, rows in no group (-1) and columns with more than 2,000 levels are left out. A group without an observed cell
    gets the values of the whole table.

    Parameters
    ----------
    labels : ndarray (n_rows,)
        Group of each row, -1 for none.
    table : Table
    n_groups : int
    weights : ndarray (n_rows,), optional
        Weights of the rows, by default those of the table.

    Returns
    -------
    dict
        By column.

    Examples
    --------
    >>> from partita.table import read_table
    >>> found = profile_groups(np.array([0, 0, 1]), read_table([["u", 1.5], ["v", 2.5], ["u", 8.5]]), 2)
    >>> found["x0"]["probabilities"], found["x1"]["mean"]
    (array([[0.5, 0.5],
           [1. , 0. ]]), array([2. , 8.5]))
    """
    weights = table.weights if weights is None else weights
    inside = np.flatnonzero((labels >= 0) & (weights > 0))
    z, w = np.asarray(labels)[inside], np.asarray(weights, float)[inside]
    found: dict[str, Profile] = {}
    reals = [column for column in table.columns if column.values.dtype.kind == "f"]
    for part in _chunks(reals, max(len(inside), 1)):
        found |= _profiles_of_numbers(part, inside, z, w, n_groups)
    for column in table.columns:
        if column.values.dtype.kind != "f":
            levels = table.schema.column(column.name).levels
            profile = _profile_of_levels(np.asarray(column.values)[inside], levels, z, w, n_groups)
            if profile is not None:
                found[column.name] = profile
    return {column.name: found[column.name] for column in table.columns if column.name in found}


def _chunks(columns: list[Column], n_rows: int) -> Iterator[list[Column]]:
    """Groups of columns that fit into memory as one array."""
    step = max(CHUNK_CELLS // n_rows, 1)
    for start in range(0, len(columns), step):
        yield columns[start : start + step]


def _profiles_of_numbers(
    columns: list[Column], inside: np.ndarray, z: np.ndarray, w: np.ndarray, K: int
) -> dict[str, Profile]:
    every = len(inside) == len(columns[0].values)  # no row to leave out
    X = np.column_stack([np.asarray(c.values if every else c.values[inside], float) for c in columns])
    missing = np.isnan(X)
    some_missing = bool(missing.any())
    seen = ~missing
    order, ends = np.argsort(z, kind="stable"), np.cumsum(np.bincount(z, minlength=K))
    R = sparse.csr_array((w[order], order, np.concatenate([[0], ends])), shape=(K, len(inside)))
    n = R @ seen.astype(float)
    total = n.sum(axis=0)
    whole = (w @ np.where(missing, 0.0, X)) / np.maximum(total, 1e-300)
    D = np.where(missing, 0.0, X - whole)  # deviations, so that the sums of squares lose no digits
    unit = np.maximum(np.abs(D).max(axis=0, initial=0.0), 1e-300)  # their squares have to be finite
    D /= unit
    some = np.maximum(n, 1e-300)
    mean = np.where(n > 0, R @ D / some, 0.0)
    D2 = D * D  # numpy's powers take ten times as long as products
    squares = w @ D2 / np.maximum(total, 1e-300)
    within = D - mean[z]
    within *= within
    variance = np.where(n > 0, R @ within / some, squares)
    if some_missing:  # these cells count as a deviation of 0 minus the mean of their group: taken back
        variance -= np.where(n > 0, (R @ missing.astype(float)) * mean**2 / some, 0.0)
    D2 *= D
    with np.errstate(invalid="ignore", divide="ignore"):
        skewness = (w @ D2 / np.maximum(total, 1e-300)) / squares**1.5
    out: dict[str, Profile] = {}
    for d, column in enumerate(columns):
        if total[d] <= 0:
            continue
        profile = {
            "n": n[:, d],
            "mean": whole[d] + unit[d] * mean[:, d],
            "sd": unit[d] * np.sqrt(np.maximum(variance[:, d], 0.0)),
        }
        out[column.name] = profile
        if abs(skewness[d]) > MIN_SKEWNESS:
            x, groups, weights = X[seen[:, d], d], z[seen[:, d]], w[seen[:, d]]
            out[column.name] = _with_lump(profile, x, groups, weights, K)
    return out


def _with_lump(profile: Profile, x: np.ndarray, z: np.ndarray, w: np.ndarray, K: int) -> Profile:
    """The profile of a skewed column: medians, and the share of a value that fills half of the cells."""
    value, share = _most_frequent(x, w)
    if share < MIN_LUMP or share == 1.0:
        return profile | _medians(x, z, w, K)
    other = x != value
    n = np.bincount(z, w, minlength=K)
    rest = np.bincount(z[other], w[other], minlength=K)
    whole = w[other].sum() / w.sum()
    elsewhere = _moments(x[other], z[other], w[other], K) | _medians(x[other], z[other], w[other], K)
    return {
        **profile,
        "lump": np.full(K, value),
        "lump_share": 1.0 - np.where(n > 0, rest / np.maximum(n, 1e-300), whole),
        **{f"{name}_elsewhere": values for name, values in elsewhere.items()},
    }


def _most_frequent(x: np.ndarray, w: np.ndarray) -> tuple[float, float]:
    values, which = np.unique(x, return_inverse=True)
    counts = np.bincount(which, w)
    return float(values[counts.argmax()]), float(counts.max() / counts.sum())


def _moments(x: np.ndarray, z: np.ndarray, w: np.ndarray, K: int) -> Profile:
    n = np.bincount(z, w, minlength=K)
    whole, some = np.average(x, weights=w), np.maximum(n, 1e-300)
    mean = np.where(n > 0, np.bincount(z, w * x, minlength=K) / some, whole)
    spread = np.bincount(z, w * (x - mean[z]) ** 2, minlength=K) / some
    return {"mean": mean, "sd": np.sqrt(np.where(n > 0, spread, np.average((x - whole) ** 2, weights=w)))}


def _medians(x: np.ndarray, z: np.ndarray, w: np.ndarray, K: int) -> Profile:
    """Medians per group, and that of all groups."""
    whole = _median(x, w)
    inside = [z == k for k in range(K)]
    medians = [_median(x[of], w[of]) if of.any() else whole for of in inside]
    return {"median": np.array(medians), "whole_median": np.full(K, whole)}


def _median(x: np.ndarray, w: np.ndarray) -> float:
    if (w == w[0]).all():
        return float(np.median(x))
    order = np.argsort(x, kind="stable")
    up_to = np.cumsum(w[order])
    return float(x[order][np.searchsorted(up_to, up_to[-1] / 2.0)])


def _profile_of_levels(
    codes: np.ndarray, levels: tuple[Any, ...], z: np.ndarray, w: np.ndarray, K: int
) -> Profile | None:
    seen = codes >= 0
    if not seen.any() or len(levels) > MAX_LEVELS:
        return None
    L = max(int(codes.max()) + 1, len(levels))
    at = z[seen] * L + codes[seen].astype(np.int64)
    counts = np.bincount(at, w[seen], minlength=K * L).reshape(K, L)
    n = counts.sum(axis=1)
    counts[n == 0] = counts.sum(axis=0)
    P = counts / counts.sum(axis=1, keepdims=True)
    return {"n": n, "levels": np.array(levels, dtype=object), "probabilities": P}
