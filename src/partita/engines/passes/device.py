"""Passes over rows on a device, for categorical and Gaussian columns.

The families are exponential families: with T the statistics of a chunk of rows, log joints are ``T theta`` and expected
statistics ``T' R``. A pass therefore needs two matrix products, in any library that follows the array API. Only the
statistics of one chunk are held at a time. Products of one-hot rows are in single precision, those of real numbers in
double precision where the device has it; sums over chunks are in double precision. The steps between two passes (modes,
expectations, hyper-parameters, factors of covariances) are computed on the host in double precision: their cost does
not grow with the number of rows.

Results that have an entry per row stay on the device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from partita.engines.passes.device_rows import (
    DeviceCodes,
    features,
    fetch_rows,
    is_complete,
    rows_of_part,
)
from partita.engines.passes.device_scores import (
    MIN_LOG_PROBABILITY,
    Scores,
    log_joints,
    normalized_on_device,
    score_by_data,
    score_by_parameters,
    uploaded,
)
from partita.engines.passes.exact_sums import ExactSums
from partita.engines.passes.values import (
    Assignment,
    Parameters,
    Partition,
    Statistics,
    UncertainRows,
    joined_uncertain,
    uncertain_rows,
)
from partita.execution import Part
from partita.execution.device import (
    device_of,
    in_chunks,
    is_on_device,
    namespace,
    sums_to_host,
    to_device,
    to_host,
    widest,
)
from partita.execution.later import Later
from partita.execution.weights import are_ones, total_weight, unit_weights, weighted_sum
from partita.families import Categorical
from partita.families.contract import n_columns, stats_start
from partita.families.registry import Block

MANY_CLUSTERS = 32  # for which a chunk of a pass over replicates has room


class DeviceScorer(NamedTuple):
    """Scores rows on a device; what it returns for each row is there too."""

    scores: Scores

    def assign(self, n_rows: int, executor: Any = None, uncertain: bool = False) -> Assignment:
        """Most probable cluster of every row; uncertain rows are on the host."""

        def found(R: Any, log_likelihood: Any, entropy: Any) -> tuple[Any, ...]:
            xp = namespace(R)
            return xp.argmax(R, axis=1), xp.max(R, axis=1), entropy, log_likelihood

        labels, confidence, entropy, log_likelihood = _joined(_scored(self.scores, found))
        doubtful = self._uncertain() if uncertain else None
        return Assignment(labels, confidence, entropy, log_likelihood, doubtful)

    def label(self, n_rows: int, n_clusters: int, executor: Any = None) -> tuple[Any, Any]:
        """Responsibilities [row, cluster] and log likelihood of every row."""
        proba, log_likelihood = _joined(_scored(self.scores, lambda R, values, _: (R, values)))
        return proba, log_likelihood

    def labels(self, n_rows: int, executor: Any = None) -> Any:
        """Most probable cluster of every row, on the device."""
        fused = _fused(self.scores.blocks, self.scores.n_clusters)
        if fused is not None:
            return fused.partition(self.scores.log_weights, _levels_of(self.scores))[0]
        xp = namespace(self.scores.blocks[0].data.values)
        small = _label_type(xp, self.scores.n_clusters)
        (labels,) = _joined(_scored(self.scores, lambda R, *_: (xp.astype(xp.argmax(R, axis=1), small),)))
        return labels

    def partition(self, weights: np.ndarray, n_clusters: int, executor: Any = None) -> Partition:
        """Labels and confidence, which stay on the device until they are asked for, and sums over the rows."""
        fused = _fused(self.scores.blocks, self.scores.n_clusters) if are_ones(weights) else None
        if fused is None:
            labels, confidence, *sums = _partitioned(self.scores, weights)
        else:
            labels, confidence, *sums = fused.partition(self.scores.log_weights, _levels_of(self.scores))
        return Partition(
            Later(lambda: to_host(labels).astype(np.int64)),
            Later(lambda: to_host(confidence).astype(np.float64)),
            Later(self._uncertain),
            *sums,
        )

    def _uncertain(self) -> UncertainRows:
        """The rows that more than one cluster may contain, on the host."""
        found = _scored(self.scores, lambda R, *_: R)
        return joined_uncertain([uncertain_rows(to_host(R).astype(float), lo) for lo, _, R in found])


def _scored(scores: Scores, found: Callable[..., Any]) -> Iterator[tuple[int, int, Any]]:
    """``found(responsibilities, log likelihood, entropy)`` of each chunk."""
    there = uploaded(scores)

    def one(lo: int, hi: int) -> Any:
        Ts = [features(block.family, block.data, lo, hi) for block in scores.blocks]
        return found(*normalized_on_device(log_joints(scores, Ts, there)))

    return in_chunks(one, scores.n_rows, row_bytes(scores.blocks, scores.n_clusters))


def _joined(chunks: Iterator[tuple[int, int, tuple[Any, ...]]]) -> list[Any]:
    """Arrays of all rows from those of the chunks."""
    columns = list(zip(*(values for _, _, values in chunks), strict=True))
    return [parts[0] if len(parts) == 1 else namespace(parts[0]).concat(parts, axis=0) for parts in columns]


def _label_type(xp: Any, n_clusters: int) -> Any:
    """The integers that labels on a device are held in."""
    return xp.uint8 if n_clusters <= 256 else xp.int32


def _partitioned(scores: Scores, weights: np.ndarray) -> tuple[Any, ...]:
    """Labels and confidence of every row on the device; sizes, entropy and log likelihood of all on the host."""
    unit, K = are_ones(weights), scores.n_clusters
    first = scores.blocks[0].data.values
    xp, kind = namespace(first), widest(first)
    small = _label_type(xp, K)
    clusters = xp.arange(K, dtype=xp.int64, device=device_of(first))[None, :]
    totals: list[Any] = []

    def found(R: Any, log_likelihood: Any, entropy: Any) -> tuple[Any, ...]:
        label = xp.argmax(R, axis=1)
        own = xp.astype(label[:, None] == clusters, kind)
        sums = own, xp.astype(entropy, kind), xp.astype(log_likelihood, kind)
        return xp.astype(label, small), xp.max(R, axis=1), *sums

    def kept() -> Iterator[tuple[int, int, tuple[Any, ...]]]:
        for lo, hi, (label, sure, *values) in _scored(scores, found):
            if not unit:
                w = to_device(weights[lo:hi], first, kind)
                values = [values[0] * w[:, None], *(own * w for own in values[1:])]
            totals.append([xp.sum(own, axis=0) for own in values])
            yield lo, hi, (label, sure)

    labels, confidence = _joined(kept())
    sums = [sum(parts[1:], parts[0]) for parts in zip(*totals, strict=True)]
    sizes, entropy, log_likelihood = sums_to_host(sums)
    return labels, confidence, sizes, float(entropy), float(log_likelihood)


class OnDevice:
    """The residence of blocks whose data are on a device."""

    eps = float(np.finfo(np.float32).eps)  # categorical columns are scored in single precision

    def collect(
        self,
        blocks: Sequence[Any],
        weights: np.ndarray,
        parameters: Parameters,
        executor: Any,
        part: Part | None = None,
    ) -> Statistics:
        """Expected statistics of all objects, or of those of a part, of which there is a copy during the pass."""
        if part is not None:
            blocks = [block._replace(data=rows_of_part(block.data, part)) for block in blocks]
            weights = weights_of_part(weights, part)
        return collect_on_device(
            score_by_parameters(blocks, parameters.log_weights, parameters.thetas), weights
        )

    def count(
        self,
        blocks: Sequence[Any],
        weights: np.ndarray,
        z: Any,
        K: int,
        thetas: Sequence[np.ndarray] | None,
    ) -> Statistics:
        """Statistics of given labels, which may be on the device."""
        return count_labels(blocks, weights, z, K)._replace(log_likelihood=np.nan, entropy=np.nan)

    def plug_in(self, blocks: Sequence[Any], parameters: Parameters) -> DeviceScorer:
        """Scores under given parameters."""
        return DeviceScorer(score_by_parameters(blocks, parameters.log_weights, parameters.thetas))

    def predictive(
        self, blocks: Sequence[Any], S: Sequence[np.ndarray], log_weights: np.ndarray
    ) -> DeviceScorer:
        """Scores under the data of every cluster, with the parameters integrated out."""
        return DeviceScorer(score_by_data(blocks, S, log_weights))

    def take(self, blocks: Sequence[Any], rows: np.ndarray) -> tuple[Sequence[Any], np.ndarray]:
        """Blocks in memory with these rows."""
        return [block._replace(data=fetch_rows(block.data, rows)) for block in blocks], np.arange(len(rows))

    def pack(self, blocks: Sequence[Any], n_rows: int) -> tuple[Any, ...]:
        """The blocks as they are: packed columns are read by compiled code on the host only."""
        return tuple(blocks)

    def partly_seen(self, blocks: Sequence[Any]) -> list[bool]:
        """False: vectors with missing cells are refused when a table on a device is read."""
        return [False] * len(blocks)

    def map_replicates(
        self,
        function: Any,
        common: Any,
        blocks: Sequence[Any],
        first: Any,
        z: Any,
        executor: Any,
        marks: Any,
    ) -> ExactSums:
        """Sums of the counterpart of ``function`` on a device over all rows; marks are written to ``marks``."""
        make, at_once = getattr(function, "on_device", (None, None))
        if make is None or not is_on_device(z):
            raise TypeError("this sampler does not run on a device: move the table to the host")
        found = None if at_once is None else at_once(blocks, common, z, marks)
        if found is not None:
            return found, [np.zeros_like(part) for part in found]
        one = make(blocks, common)

        def chunk(lo: int, hi: int) -> Any:
            Ts = [features(block.family, block.data, lo, hi) for block in blocks]
            return one(Ts, lo, hi, z[lo:hi])

        total: list[Any] | None = None
        for lo, hi, (mark, sums) in in_chunks(chunk, int(z.shape[0]), 2 * row_bytes(blocks, MANY_CLUSTERS)):
            if marks is not None and mark is not None:
                marks[lo:hi] = mark
            total = sums if total is None else [now + more for now, more in zip(total, sums, strict=True)]
        assert total is not None
        found = sums_to_host(total)
        return found, [np.zeros_like(part) for part in found]

    def sum_observed(self, blocks: Sequence[Any], values: Sequence[np.ndarray | None]) -> Any:
        """For each row, the sum of ``values[block][column]`` over its observed cells of real columns."""
        total = None
        for block, own in zip(blocks, values, strict=True):
            if own is None:
                continue
            array, columns = block.data.values, np.array(block.data.columns)
            xp = namespace(array)
            scales = to_device(own[:, None], array, widest(array))

            def seen(lo: int, hi: int, array=array, columns=columns, scales=scales, xp=xp) -> tuple[Any]:
                rows = xp.take(array[lo:hi, ...], to_device(columns, array, xp.int64), axis=1)
                return (xp.matmul(xp.astype(~xp.isnan(rows), scales.dtype), scales)[:, 0],)

            (part,) = _joined(in_chunks(seen, block.data.n_rows, 16 * len(columns)))
            total = part if total is None else total + part
        return total

    def total_observed(
        self, blocks: Sequence[Any], values: Sequence[np.ndarray | None], weights: np.ndarray
    ) -> float:
        """The weighted sum of :meth:`sum_observed` over the rows; complete columns are not read for it."""
        holes = [
            own if own is not None and not is_complete(block.data) else None
            for block, own in zip(blocks, values, strict=True)
        ]
        whole = sum(
            float(own.sum())
            for own, hole in zip(values, holes, strict=True)
            if own is not None and hole is None
        )
        total = whole * total_weight(weights)
        if any(own is not None for own in holes):
            total += weighted_sum(weights, self.sum_observed(blocks, holes))
        return total


# ---- passes ---------------------------------------------------------------------------------------------------------


def row_bytes(blocks: Sequence[Block], n_clusters: int) -> int:
    """Approximate number of bytes that a pass needs per row."""
    n_stats = sum(int(stats_start(block.family, n_columns(block.family))) for block in blocks)
    return 12 * n_stats + 32 * n_clusters


def weights_of_part(weights: np.ndarray, part: Part) -> np.ndarray:
    """The weights of the rows of a part; ones that need no memory remain so."""
    n_rows = part.count(len(weights))
    return unit_weights(n_rows) if are_ones(weights) else weights[part.rows(np.arange(n_rows))]


def collect_on_device(scores: Scores, weights: np.ndarray) -> Statistics:
    """Expected statistics of all objects: the E step."""
    blocks, K = scores.blocks, scores.n_clusters
    weighted = None if are_ones(weights) else weights
    fused = _fused(blocks, K) if weighted is None else None
    if fused is not None:
        return _collect_levels(fused, scores)
    there, kind = uploaded(scores), widest(blocks[0].data.values)

    def one(lo: int, hi: int) -> tuple[Any, ...]:
        Ts = [features(block.family, block.data, lo, hi) for block in blocks]
        R, log_likelihood, entropy = normalized_on_device(log_joints(scores, Ts, there))
        xp = namespace(R)
        if weighted is not None:
            w = to_device(weighted[lo:hi], R, R.dtype)
            R, log_likelihood, entropy = R * w[:, None], log_likelihood * w, entropy * w
        sums = [xp.sum(xp.astype(values, kind), axis=0) for values in (R, log_likelihood, entropy)]
        S = [xp.matmul(xp.permute_dims(T, (1, 0)), xp.astype(R, T.dtype)) for T in Ts]
        return (*sums, *(xp.astype(part, kind) for part in S))

    return _added(one, scores.n_rows, row_bytes(blocks, K))


def count_labels(blocks: Sequence[Block], weights: np.ndarray, z: Any, K: int) -> Statistics:
    """Statistics of given labels, which may be on the device; -1 counts for no cluster."""
    first, weighted = blocks[0].data.values, None if are_ones(weights) else weights
    xp, kind = namespace(first), widest(first)
    clusters = xp.arange(K, dtype=xp.int64, device=device_of(first))[None, :]
    nothing = xp.zeros((), dtype=kind, device=device_of(first))

    def one(lo: int, hi: int) -> tuple[Any, ...]:
        own = z[lo:hi] if is_on_device(z) else to_device(np.asarray(z[lo:hi]), first)
        R = xp.astype(xp.astype(own, xp.int64)[:, None] == clusters, kind)
        if weighted is not None:
            R = R * to_device(weighted[lo:hi, None], first, kind)
        Ts = [features(block.family, block.data, lo, hi) for block in blocks]
        S = [xp.matmul(xp.permute_dims(T, (1, 0)), xp.astype(R, T.dtype)) for T in Ts]
        return (xp.sum(R, axis=0), nothing, nothing, *(xp.astype(part, kind) for part in S))

    return _added(one, blocks[0].data.n_rows, row_bytes(blocks, K))


def _added(one: Any, n_rows: int, n_bytes: int) -> Statistics:
    """Sums over all chunks, kept on the device: fetching each of them would mean to wait for it."""
    total: list[Any] | None = None
    for _, _, found in in_chunks(one, n_rows, n_bytes):
        total = list(found) if total is None else [now + more for now, more in zip(total, found, strict=True)]
    assert total is not None
    n, log_likelihood, entropy, *S = sums_to_host(total)
    return Statistics(n, tuple(S), float(log_likelihood), float(entropy), 0.0)


# ---- fused kernels --------------------------------------------------------------------------------------------------


def _fused(blocks: Sequence[Block], K: int) -> Any:
    """The fused kernels for these blocks, None where they do not apply."""
    block = blocks[0]
    if (
        len(blocks) > 1
        or not isinstance(block.data, DeviceCodes)
        or not isinstance(block.family, Categorical)
    ):
        return None
    codes = block.data.values
    if not (type(codes).__module__ == "torch" and codes.is_cuda and "uint8" in str(codes.dtype)):
        return None
    try:
        from partita.engines.passes.device_fused import MAX_CLUSTERS, FusedCategorical
    except ImportError:
        return None
    if K > MAX_CLUSTERS:
        return None
    engine = block.data.kept.get("fused")
    if engine is None or engine.n_clusters != K:
        engine = block.data.kept["fused"] = FusedCategorical(codes, block.family.n_levels, K)
    return engine


def _levels_of(scores: Scores) -> list[np.ndarray]:
    """Natural parameters [level, cluster] of each column of the only block, without those of observed cells (zeros)."""
    offsets, table = scores.blocks[0].family.offsets, scores.tables[0]
    return [table[lo + 1 : hi] for lo, hi in pairwise(offsets)]


def _collect_levels(fused: Any, scores: Scores) -> Statistics:
    """Statistics from the counts of the fused kernels.

    The log likelihood is the expected log joint plus the entropy of the labels. Both follow from the counts, and at the
    responsibilities that the parameters imply, their sum does not change to first order where these are rounded.
    """
    n, counts, entropy = fused.collect(scores.log_weights, _levels_of(scores))
    S = np.concatenate([np.vstack([own.sum(axis=0), own]) for own in counts])
    log_weights = np.maximum(scores.log_weights, MIN_LOG_PROBABILITY)
    log_likelihood = float(n @ log_weights) + float((S * scores.tables[0]).sum()) + entropy
    return Statistics(n, (S,), log_likelihood, entropy, 0.0)
