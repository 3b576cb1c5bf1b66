"""Passes over the rows, wherever they are: log joints, responsibilities, statistics.

EM, VB, CVB and predictions share them. A pass never holds an objects x clusters matrix: a chunk of rows is scored,
normalized and added to the statistics before the next one is read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from partita.engines.passes.memory import log_joint_rows as log_joint_rows
from partita.engines.passes.residence import residence_of
from partita.engines.passes.values import Assignment, Parameters, Partition, Statistics
from partita.engines.passes.values import UncertainRows as UncertainRows
from partita.engines.passes.values import n_cache as n_cache
from partita.engines.passes.values import n_spread as n_spread
from partita.engines.passes.values import n_stats as n_stats
from partita.engines.passes.values import no_uncertain_rows as no_uncertain_rows
from partita.engines.passes.values import normalized as normalized
from partita.engines.passes.values import partition_of as partition_of
from partita.execution import Part
from partita.families.registry import Block

Scorer = Callable[[np.ndarray], np.ndarray]  # rows in memory -> log joint [row, cluster]


def collect(
    blocks: Sequence[Any],
    weights: np.ndarray,
    parameters: Parameters,
    executor: Any = None,
    part: Part | None = None,
) -> Statistics:
    """The E step: expected statistics of all objects, or of those of a part, under the given parameters."""
    journal = getattr(executor, "journal", None)
    key: Any = parameters if part is None else (parameters, part)
    found = None if journal is None else journal.find(key)
    if found is not None:
        return Statistics(*found)  # of an earlier run
    total = residence_of(blocks).collect(blocks, weights, parameters, executor, part)
    if journal is not None:
        journal.write(key, total)
    return total


def rows_in_memory(blocks: Sequence[Any], rows: np.ndarray) -> tuple[Sequence[Any], np.ndarray]:
    """Blocks in memory that hold these rows (in ascending order), and the positions of the rows in them."""
    return residence_of(blocks).take(blocks, rows)


def pack(blocks: Sequence[Block], n_rows: int) -> tuple[Any, ...]:
    """The same blocks, those of few levels with a packed form that EM and VB read."""
    return residence_of(blocks).pack(blocks, n_rows)


def plug_in(blocks: Sequence[Block], parameters: Parameters) -> Any:
    """Scores rows under given parameters; where the rows are in memory it is a :data:`Scorer`."""
    return residence_of(blocks).plug_in(blocks, parameters)


def predictive(blocks: Sequence[Block], S: Sequence[np.ndarray], log_weights: np.ndarray) -> Any:
    """Scores rows under the data of every cluster, with the parameters integrated out.

    Where the rows are in memory it is a :data:`Scorer`.
    """
    return residence_of(blocks).predictive(blocks, S, log_weights)


def label_rows(
    score: Any, n_rows: int, n_clusters: int, executor: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """Responsibilities [N, K] and log likelihood [N] of every row."""
    return score.label(n_rows, n_clusters, executor)


def assign_rows(score: Any, n_rows: int, executor: Any = None, *, uncertain: bool = False) -> Assignment:
    """The most probable cluster of every row; with ``uncertain`` also the rows that several clusters may contain."""
    return score.assign(n_rows, executor, uncertain)


def labels_in_place(score: Any, n_rows: int, executor: Any = None) -> Any:
    """The most probable cluster of every row, on the device where the rows are on one."""
    return score.labels(n_rows, executor)


def partition_rows(score: Any, weights: np.ndarray, n_clusters: int, executor: Any = None) -> Partition:
    """The most probable cluster of every row, the uncertain rows, and sums over the rows with their weights."""
    return score.partition(weights, n_clusters, executor)


def rounding_error(parameters: Parameters, statistics: Statistics, blocks: Sequence[Any] = ()) -> float:
    """Approximate rounding error of an objective: the magnitude of its terms before they cancel, times the precision.

    Precise clusters far from the origin (of standardized columns) have large terms and a small sum. Devices score
    categorical columns in single precision.
    """
    terms = 0.0
    for theta, S in zip(parameters.thetas, statistics.S, strict=True):
        with np.errstate(invalid="ignore"):  # a log probability of -inf of a level that was not observed
            terms += float(np.nansum(np.abs(theta * S)))
    return 4.0 * residence_of(blocks).eps * terms
