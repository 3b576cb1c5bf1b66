"""The passes of the sub-cluster sampler over categorical columns on a GPU, in Triton kernels.

Log joints are looked up as in :mod:`partita.engines.passes.device_fused`, in single precision. Labels are counted as
bytes on the tensor cores, which is exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl

from partita.engines.passes import device_fused as fused
from partita.execution.device_random_fused import fused_uniforms

MAX_LABELS = 64  # that are counted at once
TILE = 64


@triton.jit
def seat_kernel(
    codes, stride, n_rows, table, largest, starts, widths, log_weights, uniforms, labels, n_clusters,
    N_STEPS: tl.constexpr, N_CLUSTERS: tl.constexpr, PAIRS: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """The cluster of every row, drawn from its log joints."""
    k = tl.arange(0, N_CLUSTERS)
    row = tl.program_id(0) * TILE + tl.arange(0, TILE)
    inside = row < n_rows
    L, _ = fused.score_rows(
        codes + row, stride, inside, table, largest, starts, widths, log_weights,
        N_STEPS, N_CLUSTERS, PAIRS, TILE, False,
    )  # fmt: skip
    E, total, _, _, _ = fused.normalize(L)
    goal = tl.load(uniforms + row, mask=inside, other=0.0).to(tl.float32) * total
    passed = (tl.cumsum(E, 1) <= goal[:, None]) & (k < n_clusters - 1)[None, :]
    tl.store(labels + row, tl.sum(passed.to(tl.int32), 1), mask=inside)


@triton.jit
def divide_kernel(
    codes, stride, n_rows, table, largest, starts, widths, log_odds, uniforms, z, held_rows, group_of, held_of,
    sides, labels, log_q, N_STEPS: tl.constexpr, N_CLUSTERS: tl.constexpr, PAIRS: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """The side of every row in its group, the label to count, and the log proposals [program, group]."""
    g = tl.arange(0, N_CLUSTERS)
    proposed = tl.zeros([TILE, N_CLUSTERS], tl.float64)
    for tile in range(tl.program_id(0), tl.cdiv(n_rows, TILE), tl.num_programs(0)):
        row = tile * TILE + tl.arange(0, TILE)
        inside = row < n_rows
        L, best = fused.score_rows(
            codes + row, stride, inside, table, largest, starts, widths, log_odds,
            N_STEPS, N_CLUSTERS, PAIRS, TILE, True,
        )  # fmt: skip
        cluster = tl.load(z + row, mask=inside, other=0)
        group, held = tl.load(group_of + cluster), tl.load(held_of + cluster)
        anchor = tl.load(held_rows + row, mask=inside, other=-1).to(tl.int32)
        own = group[:, None] == g[None, :]
        odds = tl.sum(tl.where(own, L, 0.0), 1) + best
        left = 1.0 / (1.0 + tl.exp(-tl.maximum(odds, -80.0)))
        to_right = (tl.load(uniforms + row, mask=inside, other=0.0).to(tl.float32) >= left).to(tl.int32)
        side = tl.where(held < 0, to_right, held)
        against = tl.where(side == 0, -odds, odds)
        log_p = -(tl.maximum(against, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(against))))
        side = tl.where(anchor >= 0, anchor, side)
        divided = (group >= 0) & inside
        counted = divided & ((held < 0) | (anchor >= 0))
        tl.store(sides + row, tl.where(divided, side, 0).to(tl.int8), mask=inside)
        tl.store(labels + row, tl.where(counted, 2 * group + side, -1), mask=inside)
        chosen = own & (divided & (anchor < 0))[:, None]
        proposed += tl.where(chosen, log_p[:, None].to(tl.float64), 0.0)
    tl.store(log_q + tl.program_id(0) * N_CLUSTERS + g, tl.sum(proposed, 0))


@triton.jit
def count_kernel(
    codes, stride, n_rows, labels, columns, levels, counts, stretch,
    LABELS: tl.constexpr, LEVELS: tl.constexpr, TILE: tl.constexpr, PACKED: tl.constexpr,
):  # fmt: skip
    """Add to ``counts[program, label, level]`` the rows with a label."""
    program = tl.program_id(0)
    i, k, r = tl.arange(0, LEVELS), tl.arange(0, LABELS), tl.arange(0, TILE)
    level = tl.load(levels + i)
    start = codes + tl.load(columns + i).to(tl.int64) * stride
    own = counts + program * (LEVELS * LABELS) + k[:, None] * LEVELS + i[None, :]
    n_tiles = tl.cdiv(n_rows, TILE)
    for first in range(program * stretch, n_tiles, tl.num_programs(0) * stretch):
        total = tl.zeros([LABELS, LEVELS], tl.int32)
        for tile in range(first, min(first + stretch, n_tiles)):
            row = tile * TILE + r
            inside = row < n_rows
            label = tl.load(labels + row, mask=inside, other=-1)
            code = tl.load(start[:, None] + row[None, :], mask=inside[None, :], other=255)
            mark = fused.mark_level(code, level[:, None], PACKED)
            one_hot = (label[None, :] == k[:, None]).to(tl.int8)
            total = tl.dot(one_hot, tl.trans(mark), total, out_dtype=tl.int32)
        tl.store(own, tl.load(own) + total)


class FusedPasses:
    """The passes over one block of categorical columns, whose labels are bytes."""

    def __init__(self, codes: torch.Tensor, offsets: np.ndarray):
        self.codes, self.offsets = codes, np.asarray(offsets)
        self.n_levels = np.diff(self.offsets) - 1
        self.layout = fused.FusedCategorical(codes, self.n_levels, 1)

    @property
    def applies(self) -> bool:
        """Whether all levels are counted by one program."""
        return self.layout.single

    def _scored(
        self, log_weights: np.ndarray, theta: np.ndarray
    ) -> tuple[Any, tuple[Any, ...], dict[str, int]]:
        """What the kernels need to look up log joints; theta [statistic, cluster]."""
        engine = fused.FusedCategorical(self.codes, self.n_levels, len(log_weights))
        columns = [theta[lo + 1 : hi] for lo, hi in zip(self.offsets[:-1], self.offsets[1:], strict=True)]
        sizes = {"N_STEPS": len(engine.starts), "N_CLUSTERS": engine.padded, "PAIRS": int(engine.pairs)}
        return engine, engine._tables(log_weights, columns), sizes

    def uniforms(self, stream: tuple[int, int, int]) -> torch.Tensor:
        """One for each row; ``stream`` is key, iteration and stage."""
        return fused_uniforms(*stream, 0, self.codes.shape[1], self.codes.device)

    def seat(self, log_weights: np.ndarray, theta: np.ndarray, stream: tuple[int, int, int], z: Any) -> None:
        """Draw the cluster of every row into ``z``."""
        n_rows = self.codes.shape[1]
        engine, tables, sizes = self._scored(log_weights, theta)
        tile = max(16, 1024 // engine.padded)
        seat_kernel[(-(-n_rows // tile),)](
            self.codes, self.codes.stride(0), n_rows, *tables, self.uniforms(stream), z, len(log_weights),
            TILE=tile, num_warps=2, **sizes,
        )  # fmt: skip

    def divide(
        self, guide: Any, theta: np.ndarray, about: Any, stream: tuple[int, int, int], z: Any, sides: Any
    ) -> tuple[Any, np.ndarray]:
        """Write the sides; the labels to count, and the log proposals of the groups."""
        groups, group_of, held_of = about
        n_rows, device = self.codes.shape[1], self.codes.device
        engine, tables, sizes = self._scored(guide.log_odds, theta)
        tile = max(16, 1024 // engine.padded)
        held_rows = torch.full((n_rows,), -1, dtype=torch.int8, device=device)
        at, side = (torch.from_numpy(np.asarray(part, np.int64)).to(device) for part in groups[1:3])
        held_rows[at] = side.to(torch.int8)
        maps = [torch.from_numpy(np.asarray(part, np.int32)).to(device) for part in (group_of, held_of)]
        labels = torch.empty(n_rows, dtype=torch.int32, device=device)
        n_programs = min(16 * fused.n_processors(device), -(-n_rows // tile))
        log_q = torch.empty((n_programs, engine.padded), dtype=torch.float64, device=device)
        divide_kernel[(n_programs,)](
            self.codes, self.codes.stride(0), n_rows, *tables, self.uniforms(stream), z, held_rows, *maps,
            sides, labels, log_q, TILE=tile, num_warps=2, **sizes,
        )  # fmt: skip
        return labels, log_q.sum(0).cpu().numpy()[: len(guide.log_odds)]

    def count(self, labels: Any, n_labels: int) -> list[np.ndarray]:
        """Sizes, and statistics [label, statistic]; -1 counts for no label."""
        n_rows, device, layout = self.codes.shape[1], self.codes.device, self.layout
        n_tiles = -(-n_rows // TILE)
        n_programs = min(fused.PROGRAMS * fused.n_processors(device), n_tiles)
        each = -(-n_tiles // n_programs)
        stretch = -(-each // -(-each * TILE // fused.EXACT_BYTES))
        counts = torch.zeros((n_programs, MAX_LABELS, layout.per_program), dtype=torch.int64, device=device)
        count_kernel[(n_programs,)](
            self.codes, self.codes.stride(0), n_rows, labels, layout.columns, layout.levels, counts, stretch,
            LABELS=MAX_LABELS, LEVELS=layout.per_program, TILE=TILE, PACKED=int(self.codes.is_cuda), num_warps=8,
            num_stages=1, **({"maxnreg": fused.REGISTERS} if self.codes.is_cuda else {}),
        )  # fmt: skip
        found = -(counts.sum(0).cpu().numpy()[:n_labels] // 128).astype(np.float64)
        ends = np.cumsum(self.n_levels)
        S = np.concatenate(
            [
                np.concatenate([found[:, lo:hi].sum(axis=1, keepdims=True), found[:, lo:hi]], axis=1)
                for lo, hi in zip(ends - self.n_levels, ends, strict=True)
            ],
            axis=1,
        )
        return [found[:, : ends[0]].sum(axis=1) + found[:, ends[-1]], S]
