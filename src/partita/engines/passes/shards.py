"""Passes over rows in shards: each shard is processed where it is, and results are combined in a fixed order.

The functions that run on a shard are at the top level of the module, because they may be sent to another process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from partita.engines.passes.exact_sums import ExactSums, add_exactly, merge_sums
from partita.engines.passes.memory import (
    Memory,
    ReplicatePass,
    Side,
    first_sums,
    packed_sides,
    sum_cells,
    unpacked,
    walk,
)
from partita.engines.passes.packing import PackedBlock, is_packable, layout_of, pack_codes
from partita.engines.passes.values import (
    Assignment,
    JoinedUncertain,
    Parameters,
    Partition,
    Statistics,
    add_up,
    empty_assignment,
    partition_of,
)
from partita.execution import Part, ShardData, Shards, row_chunks
from partita.execution.weights import weighted_sum
from partita.families.contract import partly_seen
from partita.families.data import join, take
from partita.families.registry import Block


class ShardScorer:
    """Scores rows in shards: ``method`` of :class:`Memory` makes a scorer where a shard is."""

    def __init__(self, shards: Shards, method: str, blocks: Sequence[Any], about: tuple[Any, ...]):
        self.shards, self.method, self.about = shards, method, about
        self.blocks = without_data([Block(*block[:3]) for block in blocks])

    def assign(self, n_rows: int, executor: Any = None, uncertain: bool = False) -> Assignment:
        """Most probable cluster of every row."""
        return joined_assignments(self._assign_shards(uncertain), self.shards.starts)

    def _assign_shards(self, uncertain: bool) -> Iterable[Assignment]:
        common = ((self.method, self.blocks, self.about), uncertain)
        return self.shards.map(_assign_shard, common, np.diff(self.shards.starts).tolist())

    def labels(self, n_rows: int, executor: Any = None) -> np.ndarray:
        """Most probable cluster of every row."""
        return self.assign(n_rows, executor).labels

    def partition(self, weights: np.ndarray, n_clusters: int, executor: Any = None) -> Partition:
        """Labels, confidence and uncertain rows, and sums over the rows."""
        return joined_partition(self._assign_shards(True), self.shards.starts, weights, n_clusters)

    def label(self, n_rows: int, n_clusters: int, executor: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Responsibilities [row, cluster] and log likelihood of every row."""
        proba, log_likelihood = np.empty((n_rows, n_clusters)), np.empty(n_rows)
        common = (self.method, self.blocks, self.about, n_clusters)
        found = self.shards.map(_label_shard, common, np.diff(self.shards.starts).tolist())
        for lo, (own, values) in zip(self.shards.starts, found, strict=False):
            proba[lo : lo + len(own)], log_likelihood[lo : lo + len(own)] = own, values
        return proba, log_likelihood


def joined_assignments(found: Iterable[Assignment], starts: np.ndarray) -> Assignment:
    """The assignments of all shards, in order."""
    out, uncertain = empty_assignment(int(starts[-1])), JoinedUncertain()
    for lo, own in zip(starts, found, strict=False):
        for whole, values in zip(out[:4], own[:4], strict=True):
            whole[lo : lo + len(values)] = values
        uncertain.add(own.uncertain, lo)
    return out._replace(uncertain=uncertain.rows())


def joined_partition(
    found: Iterable[Assignment], starts: np.ndarray, weights: np.ndarray, n_clusters: int
) -> Partition:
    """The partition of all shards, whose assignments are given in order; entropies and densities are only added up."""
    n_rows = int(starts[-1])
    labels, confidence, uncertain = np.empty(n_rows, np.int64), np.empty(n_rows), JoinedUncertain()
    sizes, entropy, log_likelihood = np.zeros(n_clusters), 0.0, 0.0
    for lo, own in zip(starts, found, strict=False):
        hi = lo + len(own.labels)
        labels[lo:hi], confidence[lo:hi] = own.labels, own.confidence
        part = partition_of(own, weights[lo:hi], n_clusters)
        sizes += part.sizes
        entropy, log_likelihood = entropy + part.entropy, log_likelihood + part.log_likelihood
        uncertain.add(own.uncertain, lo)
    return Partition(labels, confidence, uncertain.rows(), sizes, entropy, log_likelihood)


class InShards:
    """The residence of blocks whose data are in shards."""

    eps = Memory.eps

    def __init__(self, shards: Shards):
        self.shards = shards

    def collect(
        self,
        blocks: Sequence[Any],
        weights: np.ndarray,
        parameters: Parameters,
        executor: Any,
        part: Part | None = None,
    ) -> Statistics:
        """Expected statistics of all objects, or of those of a part."""
        sides = packed_sides(blocks, parameters.thetas)
        read = sides[0][1].shards  # those of packed columns where there are such
        sent_sides = [(family, data.index, theta) for family, data, theta in sides]
        own = list(zip(read.starts.tolist(), weight_shares(read.split(weights)), strict=False))
        found = read.reduce(
            _collect_shard, (sent_sides, parameters.log_weights, part), own, merge_sums, in_any_order=True
        )
        return unpacked(blocks, found)

    def count(
        self,
        blocks: Sequence[Any],
        weights: np.ndarray,
        z: np.ndarray,
        K: int,
        thetas: Sequence[np.ndarray] | None,
    ) -> Statistics:
        """Statistics of given labels."""
        own = list(zip(self.shards.split(weights), self.shards.split(z), strict=True))
        common = (without_data([Block(*block[:3]) for block in blocks]), K, thetas)
        total = self.shards.reduce(_count_shard, common, own, add_up)
        return total._replace(log_likelihood=np.nan, entropy=np.nan)

    def plug_in(self, blocks: Sequence[Any], parameters: Parameters) -> ShardScorer:
        """Scores under given parameters."""
        return ShardScorer(self.shards, "plug_in", blocks, (parameters,))

    def predictive(
        self, blocks: Sequence[Any], S: Sequence[np.ndarray], log_weights: np.ndarray
    ) -> ShardScorer:
        """Scores under the data of every cluster, with the parameters integrated out."""
        return ShardScorer(self.shards, "predictive", blocks, (S, log_weights))

    def take(self, blocks: Sequence[Any], rows: np.ndarray) -> tuple[Sequence[Any], np.ndarray]:
        """Blocks in memory with these rows, which are in ascending order."""
        plain = [Block(*block[:3]) for block in blocks]
        data = self._take_data(plain, rows_by_shard(self.shards, rows))
        held = [block._replace(data=values) for block, values in zip(plain, data, strict=True)]
        return held, np.arange(len(rows))

    def _take_data(self, blocks: Sequence[Block], own: Sequence[np.ndarray]) -> list[Any]:
        found = list(self.shards.map(_take_shard, [block.data.index for block in blocks], own))
        return [join([one[b] for one in found]) for b in range(len(blocks))]

    def pack(self, blocks: Sequence[Any], n_rows: int) -> tuple[Any, ...]:
        """The blocks with their packed form, all or none: a pass reads one set of shards."""
        if not all(is_packable(block, n_rows) for block in blocks):
            return tuple(blocks)
        layouts = [layout_of(block) for block in blocks]
        common = [(block.data.index, layout) for block, layout in zip(blocks, layouts, strict=True)]
        codes = self.shards.derive(_pack_shard, common)
        return tuple(
            PackedBlock(*block[:3], layout.states, ShardData(codes, index), layout.levels)  # type: ignore[call-arg]
            for index, (block, layout) in enumerate(zip(blocks, layouts, strict=True))
        )

    def partly_seen(self, blocks: Sequence[Any]) -> list[bool]:
        """Whether a block has vectors of which only some coordinates are observed."""
        return list(np.any(list(self.shards.map(_partly_seen_shard, without_data(blocks))), axis=0))

    def map_replicates(
        self,
        function: ReplicatePass,
        common: Any,
        blocks: Sequence[Any],
        first: np.ndarray,
        z: np.ndarray,
        executor: Any,
        marks: np.ndarray | None,
    ) -> ExactSums:
        """Exact sums of ``function`` over all rows; marks are written to ``marks``."""
        starts = self.shards.starts
        own = [(int(lo), first[lo : hi + 1], z[first[lo] : first[hi]]) for lo, hi in pairwise(starts)]
        total: ExactSums | None = None
        for lo, marked, sums in self.shards.map(_pass_shard, (function, common, without_data(blocks)), own):
            if marks is not None and marked is not None:
                marks[lo : lo + len(marked)] = marked
            total = sums if total is None else merge_sums(total, sums)
        assert total is not None
        return total

    def sum_observed(self, blocks: Sequence[Any], values: Sequence[np.ndarray | None]) -> np.ndarray:
        """For each row, the sum of ``values[block][column]`` over its observed cells of real columns."""
        common = ([block.data.index for block in blocks], values)
        return np.concatenate(list(self.shards.map(_sum_shard, common)))

    def total_observed(
        self, blocks: Sequence[Any], values: Sequence[np.ndarray | None], weights: np.ndarray
    ) -> float:
        """The weighted sum of :meth:`sum_observed` over the rows."""
        return weighted_sum(weights, self.sum_observed(blocks, values))


def rows_by_shard(shards: Shards, rows: np.ndarray) -> list[np.ndarray]:
    """Rows in ascending order, as each shard counts its own."""
    cuts = np.searchsorted(rows, shards.starts)
    return [rows[lo:hi] - start for lo, hi, start in zip(cuts, cuts[1:], shards.starts, strict=False)]


def without_data(blocks: Sequence[Any]) -> list[Any]:
    """The blocks with the index of their data in a shard in place of the data."""
    return [block._replace(data=block.data.index) for block in blocks]


def with_data(blocks: Sequence[Any], data: Sequence[Any]) -> list[Any]:
    """The blocks of :func:`without_data` with the data of a shard."""
    return [block._replace(data=data[block.data]) for block in blocks]


def weight_shares(weights: Sequence[np.ndarray]) -> list[Any]:
    """Weights of the rows of each shard; if they are equal, the number and how many rows there are.

    Weights that differ by row would be most of what travels in a pass.

    Examples
    --------
    >>> weight_shares([np.ones(3), np.array([1.0, 2.0])])
    [(1.0, 3), array([1., 2.])]
    """
    return [
        (float(own[0]), len(own)) if own.strides == (0,) or own.min() == own.max() else own for own in weights
    ]


def whole_weights(share: Any) -> np.ndarray:
    """The weight of every row; the inverse of :func:`weight_shares` for one shard."""
    return np.full(share[1], share[0]) if isinstance(share, tuple) else share


# ---- what runs on a shard ----------------------------------------------------------------------------------------


def _collect_shard(data: Sequence[Any], common: Any, own: tuple[int, Any]) -> ExactSums:
    sent_sides, log_weights, part = common
    sides: list[Side] = [(family, data[index], theta) for family, index, theta in sent_sides]
    start, weights = own
    return walk(sides, log_weights, whole_weights(weights), None, start, part)


def _count_shard(data: Sequence[Any], common: Any, own: Any) -> Statistics:
    blocks, K, thetas = common
    return Memory().count(with_data(blocks, data), own[0], own[1], K, thetas)


def _scorer(data: Sequence[Any], method: str, blocks: Sequence[Any], about: tuple[Any, ...]) -> Any:
    make: Callable[..., Any] = getattr(Memory(), method)
    return make(with_data(blocks, data), *about)


def _assign_shard(data: Sequence[Any], common: Any, n_rows: int) -> Assignment:
    about, uncertain = common
    found = _scorer(data, *about).assign(n_rows, uncertain=uncertain)
    return found._replace(labels=found.labels.astype(np.int32))


def _label_shard(data: Sequence[Any], common: Any, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    *about, n_clusters = common
    return _scorer(data, *about).label(n_rows, n_clusters)


def _take_shard(data: Sequence[Any], indices: Sequence[int], rows: np.ndarray) -> list[Any]:
    return [take(data[index], rows) for index in indices]


def _pack_shard(data: Sequence[Any], common: Any, _: Any) -> tuple[np.ndarray, ...]:
    return tuple(pack_codes(data[index], layout) for index, layout in common)


def _partly_seen_shard(data: Sequence[Any], blocks: Any, _: Any) -> list[bool]:
    return [partly_seen(block.family, block.data) for block in with_data(blocks, data)]


def _pass_shard(data: Sequence[Any], common: Any, own: Any) -> tuple[int, np.ndarray | None, ExactSums]:
    function, about, blocks = common
    start, first, z = own
    here = with_data(blocks, data)
    total: ExactSums | None = None
    marks = []
    for rows in row_chunks(len(first) - 1, start=start):
        replicates = first[rows[0] : rows[-1] + 2]
        labels = z[replicates[0] - first[0] : replicates[-1] - first[0]]
        marked, sums = function(here, rows, replicates, labels, about)
        marks.append(marked)
        total = first_sums(sums) if total is None else add_exactly(total, sums)
    assert total is not None
    return int(first[0]), None if marks[0] is None else np.concatenate(marks), total


def _sum_shard(data: Sequence[Any], common: Any, _: Any) -> np.ndarray:
    indices, values = common
    return sum_cells([data[index] for index in indices], values)
