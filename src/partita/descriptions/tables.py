"""Profiles as columns of a table: one line per column and statistic, one column per group."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from partita.descriptions.columns import level_text
from partita.table import ColumnSchema

STATISTICS = {  # entry of a profile -> its name
    "mean": "mean",
    "sd": "standard deviation",
    "median": "median",
    "rate": "mean",
    "share": "share of the counts",
    "mean_elsewhere": "mean of the others",
    "sd_elsewhere": "standard deviation of the others",
    "median_elsewhere": "median of the others",
}
HEAD = ("column", "kind", "statistic", "all")


def tabulate_profiles(
    profiles: Mapping[str, Mapping[str, Any]],
    schema_of: Callable[[str], ColumnSchema],
    weights: np.ndarray,
    order: list[str],
    shown: list[int],
) -> dict[str, list[Any]]:
    """The profiles as columns: "column", "kind", "statistic", "all" and "group 1", "group 2", ...

    Parameters
    ----------
    profiles : dict
        By column, as :func:`partita.descriptions.profile_groups` and ``profiles_`` of a mixture give them.
    schema_of : callable
        The schema of a column, by its name.
    weights : ndarray (n_groups,)
        Sizes of the groups.
    order : list of str
        Names of the columns in the order of the lines.
    shown : list of int
        Labels of the groups.

    Examples
    --------
    >>> profiles = {"x": {"mean": np.array([1.0, 3.0]), "sd": np.ones(2)}}
    >>> table = tabulate_profiles(
    ...     profiles, lambda name: ColumnSchema(name, "real"), np.ones(2), ["x"], [0, 1]
    ... )
    >>> table["statistic"], table["all"], table["group 2"]
    (['mean', 'standard deviation'], [2.0, 1.4142135623730951], [3.0, 1.0])
    """
    out: dict[str, list[Any]] = {name: [] for name in (*HEAD, *(f"group {k + 1}" for k in shown))}
    for name in order:
        column, profile = schema_of(name), profiles[name]
        observed = np.maximum(np.asarray(profile.get("n", weights), float), 1e-300)
        for statistic, values, whole in _statistics(column, profile, observed / observed.sum()):
            for key, value in zip(HEAD, (name, column.declared_kind, statistic, float(whole))):
                out[key].append(value)
            for k in shown:
                out[f"group {k + 1}"].append(float(values[k]))
    return out


def _statistics(
    column: ColumnSchema, profile: Mapping[str, Any], shares: np.ndarray
) -> list[tuple[str, np.ndarray, float]]:
    """Name, values by group and value of the whole table of each statistic of a column."""
    if "probabilities" in profile:
        P = np.asarray(profile["probabilities"], float)
        levels = list(profile.get("levels", column.levels))
        levels += ["(other)"] * (P.shape[1] - len(levels))
        return [
            (f"share of {level_text(level)}", P[:, v], float(shares @ P[:, v]))
            for v, level in enumerate(levels)
        ]
    found = []
    if "lump" in profile:
        values = np.asarray(profile["lump_share"], float)
        found.append((f"share of {level_text(float(profile['lump'][0]))}", values, float(shares @ values)))
    for entry, words in STATISTICS.items():
        if entry in profile:
            values = np.asarray(profile[entry], float)
            if entry == "rate" and column.kind != "count":
                values = 1.0 / values
            found.append((words + _unit(column, entry), values, _whole(entry, profile, values, shares)))
    return found


def _unit(column: ColumnSchema, entry: str) -> str:
    """What the numbers of a column of dates count: they stay numbers, as in the other lines of the table."""
    if not column.holds_dates:
        return ""
    if column.format is not None and column.format.is_time_of_day:
        return " (fraction of a day)"
    return " (days)" if entry.startswith("sd") else " (days since 1970-01-01)"


def _whole(entry: str, profile: Mapping[str, Any], values: np.ndarray, shares: np.ndarray) -> float:
    """The statistic in the whole table."""
    if entry.startswith("median"):
        known = profile.get(f"whole_{entry}", profile.get(entry.replace("median", "whole_median")))
        return float("nan") if known is None else float(known[0])
    if entry.endswith("_elsewhere"):
        shares = shares * (1.0 - np.asarray(profile["lump_share"], float))
        shares = shares / max(float(shares.sum()), 1e-300)
    if entry.startswith("sd"):
        mean = np.asarray(profile[entry.replace("sd", "mean")], float)
        return float(np.sqrt(shares @ (values**2 + (mean - shares @ mean) ** 2)))
    return float(shares @ values)
