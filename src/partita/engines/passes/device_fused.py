"""The passes over categorical columns on a GPU, in Triton kernels that never write a one-hot matrix.

Labels are read as bytes. The natural parameters of a row's levels are looked up, two columns at a time, added and
normalized to responsibilities. One-hot rows of the labels are built in registers and multiplied by the responsibilities
on the tensor cores: in the same kernel where the counts of all levels fit into the registers of a program, otherwise in
a second one that reads the responsibilities from memory.

Responsibilities are in fixed point, so counts are exact and do not depend on the order of summation. In the single
kernel they are multiples of ``1 / (2**21 - 1)`` in three digits of 7 bits, and labels are compared, multiplied and
added as bytes, four at a time. In the two kernels they are multiples of ``2**-22`` in two digits of 11 bits. Half
precision holds such digits exactly, and sums of them over 8192 rows fit the 24 bits of single precision. The largest
natural parameter over the clusters is subtracted from all of them, so that the probable clusters have small numbers,
for which single precision is enough.

The kernels need unit weights, at most 254 levels per column and at most 128 clusters; :mod:`.device` handles all else.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl

MAX_LEVELS, MAX_CLUSTERS = 254, 128
MISSING, UNUSED = 255, 254  # codes: of a missing cell, and of no cell
EXACT_ROWS = 8192  # the digits of so many rows add up exactly in single precision
DIGIT_BYTES = 1 << 28  # size of the responsibilities that are held between two kernels
PAIR_BYTES = 1 << 17  # largest table of all pairs of levels: it fits into the L1 cache
GROUP = 64  # levels per program of the second kernel
WHOLE = 1 << 12  # counts, of levels and clusters, that a program of the single kernel holds
# of the single kernel: rows at a time, warps, programs per multiprocessor, registers per thread
TILE, WARPS, PROGRAMS, REGISTERS = 64, 8, 2, 128
EXACT_BYTES = 1 << 17  # rows whose digits of 7 bits, times 128, add up exactly in 32 bits
UNIT = 2.0**-22


@triton.jit
def look_up(
    L, best, at, stride, step, inside, table, largest, starts, widths,
    N_CLUSTERS: tl.constexpr, PAIRS: tl.constexpr, BEST: tl.constexpr,
):  # fmt: skip
    """Add the natural parameters of one column, or of two; with BEST also the largest of each level."""
    k = tl.arange(0, N_CLUSTERS)
    at += stride * (step * (1 + PAIRS))
    state = tl.minimum(
        tl.load(at, mask=inside, other=255).to(tl.int32), tl.load(widths + step * (1 + PAIRS)) - 1
    )
    if PAIRS:
        second = tl.load(at + stride, mask=inside, other=255).to(tl.int32)
        width = tl.load(widths + 2 * step + 1)
        state = state * width + tl.minimum(second, width - 1)
    state += tl.load(starts + step)
    L += tl.load(table + (state * N_CLUSTERS)[:, None] + k[None, :])
    if BEST:
        best += tl.load(largest + state)
    return L, best


@triton.jit
def score_rows(
    at, stride, inside, table, largest, starts, widths, log_weights,
    N_STEPS: tl.constexpr, N_CLUSTERS: tl.constexpr, PAIRS: tl.constexpr, TILE: tl.constexpr, BEST: tl.constexpr,
):  # fmt: skip
    """Log joints [row, cluster] less the largest parameter of each level, and with BEST the sums of the largest."""
    k = tl.arange(0, N_CLUSTERS)
    L = tl.zeros([TILE, N_CLUSTERS], tl.float32) + tl.load(log_weights + k)[None, :]
    best = tl.zeros([TILE], tl.float32)
    if N_STEPS <= 16:  # unrolled, so that the labels of all columns are on their way at once
        for step in tl.static_range(N_STEPS):
            L, best = look_up(
                L, best, at, stride, step, inside, table, largest, starts, widths, N_CLUSTERS, PAIRS, BEST
            )
    else:
        for step in range(N_STEPS):
            L, best = look_up(
                L, best, at, stride, step, inside, table, largest, starts, widths, N_CLUSTERS, PAIRS, BEST
            )
    return L, best


@triton.jit
def normalize(L):
    """Exponentials [row, cluster], their sum, its logarithm, the largest log joint, and the entropy of the labels."""
    top = tl.max(L, 1)
    L -= top[:, None]
    E = tl.exp(L)
    total = tl.sum(E, 1)
    log_total = tl.log(total)
    return E, total, log_total, top, log_total - tl.sum(E * L, 1) / total


@triton.jit
def in_fixed_point(E, total, inside, SCALE: tl.constexpr):
    """Responsibilities as whole numbers, 1 is SCALE; 0 outside of the table."""
    return (E * tl.where(inside, SCALE / total, 0.0)[:, None] + 0.5).to(tl.int32)


@triton.jit
def mark_level(code, level, PACKED: tl.constexpr):
    """-128 where a row has the level, 0 elsewhere; on a GPU four bytes at a time, without carries between them."""
    if PACKED:
        return tl.inline_asm_elementwise(
            """
            {
            .reg .b32 gap, any;
            xor.b32 gap, $1, $2;
            and.b32 any, gap, 0x7F7F7F7F;
            add.u32 any, any, 0x7F7F7F7F;
            or.b32 any, any, gap;
            not.b32 any, any;
            and.b32 $0, any, 0x80808080;
            }
            """,
            "=r,r,r", [code, level], dtype=tl.int8, is_pure=True, pack=4,
        )  # fmt: skip
    return tl.where(code == level, -128, 0).to(tl.int8)


@triton.jit
def collect_rows(
    codes, stride, n_rows, table, largest, starts, widths, log_weights, columns, levels, counts, entropies,
    stretch, N_STEPS: tl.constexpr, N_CLUSTERS: tl.constexpr, PAIRS: tl.constexpr, LEVELS: tl.constexpr,
    TILE: tl.constexpr, PACKED: tl.constexpr,
):  # fmt: skip
    """Add to ``counts[program, cluster, digit, level]`` and to entropies; see :class:`FusedCategorical`.

    A program adds the digits of ``stretch`` tiles in 32 bits before it adds these sums to those of the tiles before.
    """
    program = tl.program_id(0)
    i, r, digit = tl.arange(0, LEVELS), tl.arange(0, TILE), tl.arange(0, 4 * N_CLUSTERS)
    level = tl.load(levels + i)
    start = codes + tl.load(columns + i).to(tl.int64) * stride
    entropy = tl.zeros([TILE], tl.float64)
    own = counts + program * (4 * LEVELS * N_CLUSTERS) + digit[:, None] * LEVELS + i[None, :]
    n_tiles = tl.cdiv(n_rows, TILE)
    for first in range(program * stretch, n_tiles, tl.num_programs(0) * stretch):
        total = tl.zeros([4 * N_CLUSTERS, LEVELS], tl.int32)
        for tile in range(first, min(first + stretch, n_tiles)):
            row = tile * TILE + r
            inside = row < n_rows
            L, _ = score_rows(
                codes + row, stride, inside, table, largest, starts, widths, log_weights,
                N_STEPS, N_CLUSTERS, PAIRS, TILE, False,
            )  # fmt: skip
            E, sum_of_row, _, _, spread = normalize(L)
            entropy += tl.where(inside, spread, 0.0).to(tl.float64)
            fixed = in_fixed_point(E, sum_of_row, inside, 2097151.0)
            upper = tl.join((fixed >> 14).to(tl.int8), ((fixed >> 7) & 127).to(tl.int8))
            lower = tl.join((fixed & 127).to(tl.int8), tl.zeros([TILE, N_CLUSTERS], tl.int8))
            digits = tl.reshape(tl.join(upper, lower), (TILE, 4 * N_CLUSTERS))
            code = tl.load(start[:, None] + row[None, :], mask=inside[None, :], other=255)
            mark = mark_level(code, level[:, None], PACKED)
            total = tl.dot(tl.trans(digits), tl.trans(mark), total, out_dtype=tl.int32)
        tl.store(own, tl.load(own) + total)
    tl.store(entropies + program, tl.sum(entropy, 0))


@triton.jit
def share_out(
    codes, stride, n_rows, table, largest, starts, widths, log_weights, digits, sizes, entropies,
    N_STEPS: tl.constexpr, N_CLUSTERS: tl.constexpr, PAIRS: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Responsibilities of all rows as digits; adds to sizes and entropies of each program."""
    program = tl.program_id(0)
    k = tl.arange(0, N_CLUSTERS)
    n = tl.zeros([N_CLUSTERS], tl.int64)
    entropy = tl.zeros([TILE], tl.float64)
    for tile in range(program, tl.cdiv(n_rows, TILE), tl.num_programs(0)):
        row = tile * TILE + tl.arange(0, TILE)
        inside = row < n_rows
        L, _ = score_rows(
            codes + row, stride, inside, table, largest, starts, widths, log_weights,
            N_STEPS, N_CLUSTERS, PAIRS, TILE, False,
        )  # fmt: skip
        E, total, _, _, spread = normalize(L)
        entropy += tl.where(inside, spread, 0.0).to(tl.float64)
        fixed = in_fixed_point(E, total, inside, 4194304.0)
        n += tl.sum(fixed, 0).to(tl.int64)
        place = digits + row[:, None] * (2 * N_CLUSTERS) + k[None, :]
        tl.store(place, (fixed >> 11).to(tl.float16), mask=inside[:, None])
        tl.store(place + N_CLUSTERS, (fixed & 2047).to(tl.float16), mask=inside[:, None])
    tl.store(entropies + program, tl.load(entropies + program) + tl.sum(entropy, 0))
    own = sizes + program * N_CLUSTERS + k
    tl.store(own, tl.load(own) + n)


@triton.jit
def count_levels(
    codes, stride, n_rows, digits, columns, levels, counts,
    WIDTH: tl.constexpr, GROUP: tl.constexpr, TILE: tl.constexpr, TILES_EXACT: tl.constexpr,
):  # fmt: skip
    """Add to ``counts[split, level, digit]`` the digits of the rows that have the level."""
    group, split = tl.program_id(0), tl.program_id(1)
    i, k = group * GROUP + tl.arange(0, GROUP), tl.arange(0, WIDTH)
    level = tl.load(levels + i)
    start = codes + tl.load(columns + i).to(tl.int64) * stride
    total = tl.zeros([GROUP, WIDTH], tl.float64)
    n_tiles = tl.cdiv(n_rows, TILE)
    for stretch in range(split, tl.cdiv(n_tiles, TILES_EXACT), tl.num_programs(1)):
        exact = tl.zeros([GROUP, WIDTH], tl.float32)
        for tile in range(stretch * TILES_EXACT, min((stretch + 1) * TILES_EXACT, n_tiles)):
            row = tile * TILE + tl.arange(0, TILE)
            inside = row < n_rows
            code = tl.load(start[:, None] + row[None, :], mask=inside[None, :], other=255)
            one_hot = (code == level[:, None]).to(tl.float16)
            own = tl.load(digits + row[:, None] * WIDTH + k[None, :], mask=inside[:, None], other=0.0)
            exact = tl.dot(one_hot, own, exact)
        total += exact.to(tl.float64)
    at = counts + (split * tl.num_programs(0) * GROUP + i)[:, None] * WIDTH + k[None, :]
    tl.store(at, tl.load(at) + total)


@triton.jit
def partition_rows(
    codes, stride, n_rows, table, largest, starts, widths, log_weights, labels, confidence, sums, sizes,
    N_STEPS: tl.constexpr, N_CLUSTERS: tl.constexpr, PAIRS: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """The most probable cluster of each row and its probability; entropy and log likelihood, and sizes of the labels,
    of each program.
    """
    program = tl.program_id(0)
    k = tl.arange(0, N_CLUSTERS)
    n = tl.zeros([TILE, N_CLUSTERS], tl.int32)
    log_likelihood, entropy = tl.zeros([TILE], tl.float64), tl.zeros([TILE], tl.float64)
    for tile in range(program, tl.cdiv(n_rows, TILE), tl.num_programs(0)):
        row = tile * TILE + tl.arange(0, TILE)
        inside = row < n_rows
        L, best = score_rows(
            codes + row, stride, inside, table, largest, starts, widths, log_weights,
            N_STEPS, N_CLUSTERS, PAIRS, TILE, True,
        )  # fmt: skip
        label = tl.argmax(L, 1)
        _, total, log_total, top, spread = normalize(L)
        values = best.to(tl.float64) + (top + log_total).to(tl.float64)
        log_likelihood += tl.where(inside, values, 0.0)
        entropy += tl.where(inside, spread, 0.0).to(tl.float64)
        n += ((label[:, None] == k[None, :]) & inside[:, None]).to(tl.int32)
        tl.store(labels + row, label.to(tl.uint8), mask=inside)
        tl.store(confidence + row, 1.0 / total, mask=inside)
    tl.store(sums + 2 * program, tl.sum(entropy, 0))
    tl.store(sums + 2 * program + 1, tl.sum(log_likelihood, 0))
    tl.store(sizes + program * N_CLUSTERS + k, tl.sum(n.to(tl.int64), 0))


@cache
def n_processors(device: Any) -> int:
    """Multiprocessors of the device."""
    return int(torch.cuda.get_device_properties(device).multi_processor_count)


class FusedCategorical:
    """Labels on the device and buffers of the kernels; created once, called in every iteration.

    Parameters
    ----------
    codes : torch.Tensor of uint8, columns x rows, on a GPU
        Level of each row in each column, 255 for missing.
    n_levels : sequence of int
        Number of levels of each column.
    n_clusters : int
        Number of clusters.
    """

    def __init__(self, codes: torch.Tensor, n_levels: Sequence[int] | np.ndarray, n_clusters: int):
        self.codes, self.n_levels, self.n_clusters = codes, np.asarray(n_levels, np.int64), n_clusters
        device = codes.device
        self.padded = max(16, triton.next_power_of_2(n_clusters))
        self.chunk = min(codes.shape[1], DIGIT_BYTES // (4 * self.padded) // EXACT_ROWS * EXACT_ROWS)
        self.digits: Any = None  # responsibilities of a chunk between two kernels
        states = self.n_levels + 1  # and missing
        pairs = int((states[::2][: len(states) // 2] * states[1::2]).sum())
        self.pairs = len(states) % 2 == 0 and 4 * pairs * self.padded <= PAIR_BYTES
        steps = states.reshape(-1, 2).prod(axis=1) if self.pairs else states
        self.starts = torch.tensor(np.cumsum(steps) - steps, dtype=torch.int32, device=device)
        self.widths = torch.tensor(states, dtype=torch.int32, device=device)
        self.per_program = triton.next_power_of_2(
            max(int(self.n_levels.sum()), GROUP)
        )  # in the single kernel
        self.single = self.per_program * self.padded <= WHOLE
        if not self.single:
            self.per_program = GROUP
        self.n_groups = -(-int(self.n_levels.sum()) // self.per_program)
        idle = self.n_groups * self.per_program - int(self.n_levels.sum())
        columns = np.concatenate([np.repeat(np.arange(len(states)), self.n_levels), np.zeros(idle, int)])
        levels = np.concatenate([*(np.arange(v) for v in self.n_levels), np.full(idle, UNUSED)])
        if self.single:
            levels[int(self.n_levels.sum())] = MISSING
        self.columns = torch.tensor(columns, dtype=torch.int32, device=device)
        self.levels = torch.tensor(levels, dtype=torch.uint8, device=device)

    def collect(
        self, log_weights: np.ndarray, thetas: Sequence[np.ndarray]
    ) -> tuple[np.ndarray, list[np.ndarray], float]:
        """Sizes [cluster], counts of each column [level, cluster], and the entropy of the labels.

        ``thetas[d]`` holds log probabilities [level, cluster] of column d.
        """
        counts, sizes, entropies = (self._collect_at_once if self.single else self._collect_in_two)(
            log_weights, thetas
        )
        n_levels = int(self.n_levels.sum())
        whole = counts[:n_levels, : self.n_clusters]
        return sizes[: self.n_clusters], np.split(whole, np.cumsum(self.n_levels)[:-1]), entropies

    def _collect_at_once(
        self, log_weights: np.ndarray, thetas: Sequence[np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Counts [level, cluster], sizes and entropy, by the single kernel."""
        codes, device, n_rows = self.codes, self.codes.device, self.codes.shape[1]
        n_tiles = -(-n_rows // TILE)
        n_programs = min(PROGRAMS * n_processors(device), n_tiles)
        each = -(-n_tiles // n_programs)
        stretch = -(-each // -(-each * TILE // EXACT_BYTES))  # equal ones, of as many rows as are exact
        shape = (n_programs, self.padded, 2, 2, self.per_program)
        counts = torch.zeros(shape, dtype=torch.int64, device=device)
        entropies = torch.empty(n_programs, dtype=torch.float64, device=device)
        collect_rows[(n_programs,)](
            codes, codes.stride(0), n_rows, *self._tables(log_weights, thetas), self.columns, self.levels,
            counts, entropies, stretch, N_STEPS=len(self.starts), N_CLUSTERS=self.padded, PAIRS=int(self.pairs),
            LEVELS=self.per_program, TILE=TILE, PACKED=int(codes.is_cuda), num_warps=WARPS, num_stages=1,
            **({"maxnreg": REGISTERS} if codes.is_cuda else {}),
        )  # fmt: skip
        (high, low), (middle, _) = counts.sum(0).cpu().numpy().transpose(1, 2, 3, 0)
        whole = -((high * 16384 + middle * 128 + low) // 128) / 2097151.0
        n = whole[: self.n_levels[0]].sum(axis=0) + whole[self.n_levels.sum()]
        return whole, n, float(entropies.sum())

    def _collect_in_two(
        self, log_weights: np.ndarray, thetas: Sequence[np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """The same by two kernels, for chunks of rows."""
        codes, device, n_rows = self.codes, self.codes.device, self.codes.shape[1]
        tables = self._tables(log_weights, thetas)
        n_programs, splits = 16 * n_processors(device), max(1, 8 * n_processors(device) // self.n_groups)
        sizes = torch.zeros((n_programs, self.padded), dtype=torch.int64, device=device)
        entropies = torch.zeros(n_programs, dtype=torch.float64, device=device)
        shape = (splits, self.n_groups * GROUP, 2 * self.padded)
        counts = torch.zeros(shape, dtype=torch.float64, device=device)
        if self.digits is None:
            self.digits = torch.empty((self.chunk, 2 * self.padded), dtype=torch.float16, device=device)
        tile = max(16, 2048 // self.padded)
        count_tile = min(256, max(64, 8192 // self.padded))
        for lo in range(0, n_rows, self.chunk):
            part, n = codes[:, lo:], min(self.chunk, n_rows - lo)
            share_out[(n_programs,)](
                part, codes.stride(0), n, *tables, self.digits, sizes, entropies,
                N_STEPS=len(self.starts), N_CLUSTERS=self.padded, PAIRS=int(self.pairs), TILE=tile, num_warps=2,
            )  # fmt: skip
            count_levels[(self.n_groups, splits)](
                part, codes.stride(0), n, self.digits, self.columns, self.levels, counts,
                WIDTH=2 * self.padded, GROUP=GROUP, TILE=count_tile, TILES_EXACT=EXACT_ROWS // count_tile,
                num_warps=4, num_stages=1,
            )  # fmt: skip
        whole = counts.sum(0).cpu().numpy() * UNIT
        whole = 2048.0 * whole[:, : self.padded] + whole[:, self.padded :]
        return whole, sizes.sum(0).cpu().numpy() * UNIT, float(entropies.sum())

    def partition(
        self, log_weights: np.ndarray, thetas: Sequence[np.ndarray]
    ) -> tuple[torch.Tensor, torch.Tensor, np.ndarray, float, float]:
        """Labels and their probabilities, on the device; sizes of the labels, entropy, log likelihood."""
        codes, device, n_rows = self.codes, self.codes.device, self.codes.shape[1]
        n_programs = 16 * n_processors(device)
        labels = torch.empty(n_rows, dtype=torch.uint8, device=device)
        confidence = torch.empty(n_rows, dtype=torch.float32, device=device)
        sums = torch.empty((n_programs, 2), dtype=torch.float64, device=device)
        sizes = torch.empty((n_programs, self.padded), dtype=torch.int64, device=device)
        partition_rows[(n_programs,)](
            codes, codes.stride(0), n_rows, *self._tables(log_weights, thetas), labels, confidence, sums, sizes,
            N_STEPS=len(self.starts), N_CLUSTERS=self.padded, PAIRS=int(self.pairs), TILE=max(16, 1024 // self.padded),
            num_warps=2,
        )  # fmt: skip
        entropy, log_likelihood = sums.sum(0).tolist()
        return (
            labels,
            confidence,
            sizes.sum(0).cpu().numpy()[: self.n_clusters].astype(float),
            entropy,
            log_likelihood,
        )

    def _tables(self, log_weights: np.ndarray, thetas: Sequence[np.ndarray]) -> tuple[torch.Tensor, ...]:
        """Natural parameters of the states of each step minus their largest over the clusters; the largest; the first
        state of each step and the number of states of each column; log weights.
        """
        clusters = np.full(self.padded, -1e30, np.float32)
        clusters[: self.n_clusters] = np.maximum(log_weights, -1e30)
        columns = [np.vstack([np.maximum(theta, -1e30), np.zeros(self.n_clusters)]) for theta in thetas]
        if self.pairs:
            columns = [
                (first[:, None] + second).reshape(-1, self.n_clusters)
                for first, second in zip(columns[::2], columns[1::2], strict=True)
            ]
        values = np.concatenate(columns)
        top = values.max(axis=1)
        table = np.zeros((len(values), self.padded), np.float32)
        table[:, : self.n_clusters] = values - top[:, None]
        device = self.codes.device
        made = (torch.from_numpy(part).to(device) for part in (table, top.astype(np.float32), clusters))
        looked_up, largest, weights = made
        return looked_up, largest, self.starts, self.widths, weights
