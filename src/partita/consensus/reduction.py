"""The rows of a large label matrix that a method without passes over chunks is fitted to.

Methods that build trees and graphs need codes in memory. A matrix in chunks is reduced to its distinct rows, which give
the result of the whole matrix. Where these are too many as well, in chunks or in memory, a sample of the rows takes
their place, and all rows are then labeled as new rows are, chunk by chunk. The rules depend on the rows only, so that
a matrix has the same labels in memory, in files and on workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from partita.consensus.labelings import Labelings
from partita.consensus.member_statistics import agreement_in
from partita.consensus.mixtures.distinct import streamed_rows
from partita.execution import ShardData
from partita.labels import label_histograms, signatures

MAX_BYTES = 1 << 25  # of codes in memory, at one byte per label
MAX_SAMPLE = 200_000  # rows
CHUNK_ROWS = 1 << 16  # rows in memory that are labeled at a time


class Reduction(NamedTuple):
    """The labelings that a method is fitted to, and the codes that they are a part of.

    ``row_of`` is the row of ``codes`` of each object. It is None where the codes are those of a sample of the objects,
    which ``sample`` then names.
    """

    labelings: Labelings
    codes: np.ndarray
    row_of: np.ndarray | None
    sample: np.ndarray | None = None


def max_rows(n_members: int) -> int:
    """Largest number of distinct rows that a method is fitted to."""
    return MAX_BYTES // max(n_members, 1)


def reduce_rows(labelings: Labelings, codes: Any, rng: np.random.Generator) -> Reduction | None:
    """The distinct rows, or a sample; None if the codes are in memory and not too many."""
    most = max_rows(len(labelings.n_levels))
    if not isinstance(codes, ShardData):
        if len(labelings.codes) <= most or len(signatures(labelings.codes).rows) <= most:
            return None
        return _sampled(labelings, codes, labelings.rows, rng)
    found = streamed_rows(codes.shards, labelings.weights, most)
    if found is None:
        return _sampled(labelings, codes, np.flatnonzero(labelings.weights), rng)
    taking = np.flatnonzero(found.weights)
    part = labelings._replace(codes=found.codes[taking], weights=found.weights[taking], rows=taking)
    return Reduction(part, found.codes, found.inverse)


def _sampled(labelings: Labelings, codes: Any, rows: np.ndarray, rng: np.random.Generator) -> Reduction:
    """Rows of positive weight; which ones depends on their number and the random state only."""
    own = rng.spawn(1)[0]
    places = np.sort(own.choice(len(rows), size=min(MAX_SAMPLE, len(rows)), replace=False))
    chosen = rows[places]
    if isinstance(codes, ShardData):
        taken = np.zeros(len(labelings.weights), bool)
        taken[chosen] = True
        shards = codes.shards
        values = np.concatenate(list(shards.map(_take_of_shard, codes.index, shards.split(taken))))
        weights = labelings.weights[chosen]
    else:
        values, weights = codes[chosen], labelings.weights[places]
    part = labelings._replace(codes=values, weights=weights, rows=np.arange(len(chosen)))
    return Reduction(part, values, None, chosen)


def label_everything(
    label: Callable[[np.ndarray], np.ndarray], labelings: Labelings, codes: Any, n_clusters: int
) -> tuple[np.ndarray, np.ndarray]:
    """Labels of all rows by ``label(codes)``, and the share of the members that support each label.

    A row without any label counts for nothing.
    """
    n_rows = len(labelings.weights) if isinstance(codes, ShardData) else len(codes)
    weights = np.zeros(n_rows)
    if isinstance(codes, ShardData):
        weights[:] = labelings.weights
    else:
        weights[labelings.rows] = labelings.weights
    labels, counts = np.empty(n_rows, np.int64), None
    for lo, hi, own in _chunks(codes, n_rows):
        labels[lo:hi] = label(own)
        found, _ = label_histograms(
            labels[lo:hi], own, labelings.n_levels, weights=weights[lo:hi], n_clusters=n_clusters
        )
        counts = found if counts is None else counts + found
    assert counts is not None
    agreement = np.empty(n_rows)
    for lo, hi, own in _chunks(codes, n_rows):
        about = labelings.n_levels, weights[lo:hi], labelings.member_weights
        agreement[lo:hi] = agreement_in(counts, labels[lo:hi], own, *about)
    return labels, agreement


def _chunks(codes: Any, n_rows: int) -> Iterator[tuple[int, int, np.ndarray]]:
    if not isinstance(codes, ShardData):
        for lo in range(0, n_rows, CHUNK_ROWS):
            yield lo, min(lo + CHUNK_ROWS, n_rows), codes[lo : lo + CHUNK_ROWS]
        return
    found = codes.shards.map(_all_of_shard, codes.index)
    for (lo, hi), own in zip(pairwise(codes.shards.starts.tolist()), found, strict=True):
        yield lo, hi, own


def _take_of_shard(data: Any, index: int, taken: np.ndarray) -> np.ndarray:
    return data[index][taken]


def _all_of_shard(data: Any, index: int, _: Any) -> np.ndarray:
    return data[index]
