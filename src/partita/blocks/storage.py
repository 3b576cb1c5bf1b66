"""Drawn blocks as plain data for a file, and checks of what is read from one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from partita.blocks.fitting import DrawnBlocks
from partita.families import Categorical, family_entry
from partita.families.contract import n_columns, stats_start
from partita.fitting.storage import check_hyper
from partita.table import Schema
from partita.trace import Trace


def draws_to_plain(drawn: DrawnBlocks) -> dict[str, Any]:
    """Drawn blocks as lists and arrays."""
    return {
        "labels": list(drawn.labels),
        "families": [list(family) for family in drawn.families],
        "statistics": np.concatenate([S.reshape(-1, S.shape[2]) for S in drawn.statistics]),
        "shapes": np.array([S.shape[:2] for S in drawn.statistics]),
    }


def draws_from_plain(saved: dict[str, Any], family_class: type) -> DrawnBlocks:
    """The inverse of :func:`draws_to_plain`; refuses arrays that do not belong together."""
    statistics, lo = [], 0
    for K, J in saved["shapes"].tolist():
        statistics.append(saved["statistics"][lo : lo + K * J].reshape(K, J, -1))
        lo += K * J
    families = [family_class(*family) for family in saved["families"]]
    labels = tuple(saved["labels"])
    if not len(families) == len(statistics) == len(labels[0]) == len(labels[-1]):
        raise ValueError("labels, families and statistics are of different numbers of draws")
    for t, S in enumerate(statistics):
        if max(labels[0][t].max() - S.shape[0], labels[-1][t].max() - S.shape[1]) >= 0:
            raise ValueError("the labels of a draw do not match its blocks")
    return DrawnBlocks(labels, families, statistics)


def check_blocks(
    family: Any,
    statistics: np.ndarray,
    drawn: DrawnBlocks,
    labels: Sequence[np.ndarray],
    n_relations: int,
) -> None:
    """Refuse arrays that do not belong together: otherwise a kernel would read beyond the end of one.

    ``statistics`` are those of the blocks of the estimate, ``labels`` its row and column labels.
    """
    for one in (family, *drawn.families):
        if any(
            not np.array_equal(mine, own)
            for mine, own in zip(one, family, strict=True)
            if np.asarray(own).dtype.kind == "i"
        ):
            raise ValueError("a draw has another layout of its statistics")
        _check_family(one, [statistics, *drawn.statistics], n_relations)
    K, J = statistics.shape[:2]
    if labels[0].max() != K - 1 or labels[-1].max() != J - 1:
        raise ValueError("the labels do not match the blocks")
    if drawn.labels[0].shape[1] != len(labels[0]):
        raise ValueError("the draws have a different number of rows")


def check_schemas(schemas: Sequence[Schema], family_name: str, family: Any, n_columns: int) -> None:
    """Refuse schemas by which cells of new rows would have levels or kinds that the family does not have."""
    kind = family_entry(family_name).kind
    for schema in schemas:
        levels = {column.levels for column in schema.columns}
        if len(schema.columns) != n_columns or len(levels) != 1 or {c.kind for c in schema.columns} != {kind}:
            raise ValueError(
                f"a schema does not have {n_columns} columns of one kind ({kind}) and one set of levels"
            )
    n_levels = [schema.columns[0].n_levels for schema in schemas]
    if isinstance(family, Categorical) and family.n_levels.tolist() != n_levels:
        raise ValueError("the offsets of the family do not fit the levels")


def _check_family(family: Any, S: Sequence[np.ndarray], n_relations: int) -> None:
    check_hyper(family)
    P = int(stats_start(family, n_columns(family)))
    if int(n_columns(family)) != n_relations or any(s.ndim != 3 or s.shape[2] != P for s in S):
        raise ValueError("the statistics of the blocks do not match the family")


def check_trace(trace: Trace, n_objects: int) -> None:
    """Refuse a trace that does not hold draws of so many objects."""
    B = len(trace.log_joint)
    if trace.labels.shape != (B, n_objects) or any(np.shape(field) != (B,) for field in trace[1:]):
        raise ValueError(f"the trace does not hold {B} draws of {n_objects} objects")
