"""Label matrices on a device: levels and codes are found there, and the labels stay there."""

from __future__ import annotations

from typing import Any

import numpy as np

from partita.consensus.labelings import Labelings, OpenedMembers, choose_members
from partita.consensus.out_of_core import ReadMembers, ShardReading
from partita.engines.passes.device_rows import any_observed, count_observed, fetch_rows, take_columns
from partita.estimator import FitReport
from partita.execution.device import device_of
from partita.fitting.device import encode_levels, learn_categories, read_weights
from partita.table import Schema


def read_on_device(
    X: Any, sample_weight: Any, member_weight: Any, how: ShardReading, name: str
) -> ReadMembers:
    """Read a label matrix on a device; ``name`` is that of the estimator in messages.

    Rows without any label have weight 0, and are labeled as new rows are.
    """
    if not (how.passes_over_shards and how.reads_columns_apart):
        raise ValueError(
            f"{name} does not run on a device: MixtureConsensus does, and NBCE with inference='vb'; move the labels to "
            "the host for others"
        )
    if how.noise != "missing":
        raise ValueError(
            f"noise={how.noise!r} is for labels on the host: on a device -1 is a missing label (noise='missing')"
        )
    weights = read_weights(X, sample_weight)
    schema = Schema(learn_categories(X, missing=-1))
    n_levels = np.array([column.n_levels for column in schema.columns], dtype=np.int64)
    codes = encode_levels(X, range(X.shape[1]), schema)
    n_seen = count_observed(codes)
    members, report = OpenedMembers(None, None, None), FitReport()
    report.add("execution", f"fitted on {device_of(X)}, {codes.n_rows:,} rows")
    shares, owners, use = choose_members(schema, members, n_levels, n_seen, member_weight, report)
    columns = np.flatnonzero(use)
    if len(columns) < len(use):
        codes = take_columns(codes, columns)
    if n_seen[columns].max() < codes.n_rows:  # otherwise a column has a label in every row
        seen = any_observed(codes)
        weights = weights if seen.all() else np.where(seen, weights, 0.0)
    held: Any = codes if len(columns) > 1 else fetch_rows(codes, np.arange(codes.n_rows))
    everyone: Any = range(codes.n_rows)
    labelings = Labelings(held, n_levels[use], weights, shares[use], owners[use], everyone)
    return ReadMembers(schema, report, labelings, columns, held)
