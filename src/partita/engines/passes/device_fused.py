"""The E step of categorical columns on a GPU, in two Triton kernels that never write a one-hot matrix.

Labels are read as bytes. The first kernel looks up the natural parameters of a row's levels, two columns at a time, and
normalizes them to responsibilities. The second builds one-hot rows of the labels in registers and multiplies them by
the responsibilities on the tensor cores.

Responsibilities are integer multiples of ``2**-22``, in two digits of 11 bits. Half precision holds such digits
exactly, and sums of them over 8192 rows fit the 24 bits of single precision. So counts are exact and do not depend on
the order of summation. The largest natural parameter over the clusters is subtracted from all of them, so that the
probable clusters have small numbers, for which single precision is enough.

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
MISSING = 255
EXACT_ROWS = 8192  # the digits of so many rows add up exactly in single precision
DIGIT_BYTES = 1 << 28  # size of the responsibilities that are held between the two kernels
PAIR_BYTES = 1 << 17  # largest table of all pairs of levels: it fits into the L1 cache
GROUP = 64  # levels per program of the second kernel
UNIT = 2.0**-22


@triton.jit
def share_out(
    codes, stride, n_rows, table, largest, starts, widths, log_weights, digits, sums, sizes, n_steps,
    N_CLUSTERS: tl.constexpr, PAIRS: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Responsibilities of all rows as digits; sums of log likelihood and entropy, and sizes, of each program."""
    program = tl.program_id(0)
    k = tl.arange(0, N_CLUSTERS)
    own_log_weights = tl.load(log_weights + k)
    n = tl.zeros([N_CLUSTERS], tl.int64)
    log_likelihood, entropy = tl.zeros([TILE], tl.float64), tl.zeros([TILE], tl.float64)
    for tile in range(program, tl.cdiv(n_rows, TILE), tl.num_programs(0)):
        row = tile * TILE + tl.arange(0, TILE)
        inside = row < n_rows
        at = codes + row
        L = tl.zeros([TILE, N_CLUSTERS], tl.float32) + own_log_weights[None, :]
        best = tl.zeros([TILE], tl.float32)
        for step in range(n_steps):  # a step looks up one column, or two
            state = tl.load(starts + step) + tl.minimum(
                tl.load(at, mask=inside, other=255).to(tl.int32), tl.load(widths + step * (1 + PAIRS)) - 1
            ) * (tl.load(widths + 2 * step + 1) if PAIRS else 1)
            at += stride
            if PAIRS:
                second = tl.load(at, mask=inside, other=255).to(tl.int32)
                state += tl.minimum(second, tl.load(widths + 2 * step + 1) - 1)
                at += stride
            L += tl.load(table + (state * N_CLUSTERS)[:, None] + k[None, :])
            best += tl.load(largest + state)
        top = tl.max(L, 1)
        L -= top[:, None]
        E = tl.exp(L)
        total = tl.sum(E, 1)
        moment = tl.sum(E * L, 1) / total
        log_total = tl.log(total)
        log_likelihood += tl.where(inside, (best + top).to(tl.float64) + log_total.to(tl.float64), 0.0)
        entropy += tl.where(inside, (log_total - moment).to(tl.float64), 0.0)
        fixed = (E * tl.where(inside, 4194304.0 / total, 0.0)[:, None] + 0.5).to(tl.int32)  # of 2^22
        n += tl.sum(fixed, 0).to(tl.int64)
        place = digits + row[:, None] * (2 * N_CLUSTERS) + k[None, :]
        tl.store(place, (fixed >> 11).to(tl.float16), mask=inside[:, None])
        tl.store(place + N_CLUSTERS, (fixed & 2047).to(tl.float16), mask=inside[:, None])
    tl.store(sums + 2 * program, tl.load(sums + 2 * program) + tl.sum(log_likelihood, 0))
    tl.store(sums + 2 * program + 1, tl.load(sums + 2 * program + 1) + tl.sum(entropy, 0))
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
            code = tl.load(start[:, None] + row[None, :], mask=inside[None, :], other=255).to(tl.int32)
            one_hot = (code == level[:, None]).to(tl.float16)
            own = tl.load(digits + row[:, None] * WIDTH + k[None, :], mask=inside[:, None], other=0.0)
            exact = tl.dot(one_hot, own, exact)
        total += exact.to(tl.float64)
    at = counts + (split * tl.num_programs(0) * GROUP + i)[:, None] * WIDTH + k[None, :]
    tl.store(at, tl.load(at) + total)


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
        self.width = 2 * self.padded  # digits of a row
        states = self.n_levels + 1  # and missing
        pairs = int((states[::2][: len(states) // 2] * states[1::2]).sum())
        self.pairs = len(states) % 2 == 0 and 4 * pairs * self.padded <= PAIR_BYTES
        steps = states.reshape(-1, 2).prod(axis=1) if self.pairs else states
        self.starts = torch.tensor(np.cumsum(steps) - steps, dtype=torch.int32, device=device)
        self.widths = torch.tensor(states, dtype=torch.int32, device=device)
        self.n_groups = -(-int(self.n_levels.sum()) // GROUP)
        idle = self.n_groups * GROUP - int(self.n_levels.sum())
        columns = np.concatenate([np.repeat(np.arange(len(states)), self.n_levels), np.zeros(idle, int)])
        levels = np.concatenate(
            [*(np.arange(v) for v in self.n_levels), np.full(idle, 256)]
        )  # that no row has
        self.columns = torch.tensor(columns, dtype=torch.int32, device=device)
        self.levels = torch.tensor(levels, dtype=torch.int32, device=device)
        self.chunk = min(codes.shape[1], DIGIT_BYTES // (2 * self.width) // EXACT_ROWS * EXACT_ROWS)
        self.digits = torch.empty((self.chunk, self.width), dtype=torch.float16, device=device)
        self.programs = 16 * n_processors(device)
        self.splits = max(1, 8 * n_processors(device) // self.n_groups)

    def __call__(
        self, log_weights: np.ndarray, thetas: Sequence[np.ndarray]
    ) -> tuple[np.ndarray, list[np.ndarray], float, float]:
        """Sizes [cluster], counts of each column [level, cluster], log likelihood and entropy of the labels.

        ``thetas[d]`` holds log probabilities [level, cluster] of column d.
        """
        codes, device, n_rows = self.codes, self.codes.device, self.codes.shape[1]
        tables = self._tables(log_weights, thetas)
        sums = torch.zeros((self.programs, 2), dtype=torch.float64, device=device)
        sizes = torch.zeros((self.programs, self.padded), dtype=torch.int64, device=device)
        shape = (self.splits, self.n_groups * GROUP, self.width)
        counts = torch.zeros(shape, dtype=torch.float64, device=device)
        tile = max(16, 2048 // self.padded)
        count_tile = min(256, max(64, 8192 // self.padded))
        for lo in range(0, n_rows, self.chunk):
            part, n = codes[:, lo:], min(self.chunk, n_rows - lo)
            share_out[(self.programs,)](
                part, codes.stride(0), n, *tables, self.digits, sums, sizes, len(self.starts),
                N_CLUSTERS=self.padded, PAIRS=int(self.pairs), TILE=tile, num_warps=2,
            )  # fmt: skip
            count_levels[(self.n_groups, self.splits)](
                part, codes.stride(0), n, self.digits, self.columns, self.levels, counts,
                WIDTH=self.width, GROUP=GROUP, TILE=count_tile, TILES_EXACT=EXACT_ROWS // count_tile,
                num_warps=4, num_stages=1,
            )  # fmt: skip
        whole = counts.sum(0).cpu().numpy() * UNIT
        found = (2048.0 * whole[:, : self.padded] + whole[:, self.padded :])[:, : self.n_clusters]
        log_likelihood, entropy = sums.sum(0).tolist()
        n = sizes.sum(0).cpu().numpy()[: self.n_clusters] * UNIT
        return (
            n,
            np.split(found[: self.n_levels.sum()], np.cumsum(self.n_levels)[:-1]),
            log_likelihood,
            entropy,
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
