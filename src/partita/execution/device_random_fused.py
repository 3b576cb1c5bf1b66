"""The random numbers of :mod:`.device_random` on an NVIDIA GPU, in one Triton kernel."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

BLOCK = 256  # counters per program, of four numbers each


@triton.jit(do_not_specialize=["key", "iteration", "stage", "lo", "n"])
def fill_uniforms(out, key, iteration, stage, lo, n, BLOCK: tl.constexpr):
    """Philox 4x64 with ten rounds: uniforms of the places lo to lo + n of a stage of an iteration."""
    count = lo // 4 + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = (count + 1).to(tl.uint64)  # the generator counts before it gives numbers
    b = tl.full([BLOCK], stage, tl.uint64)
    c = tl.full([BLOCK], iteration, tl.uint64)
    d = tl.full([BLOCK], 0, tl.uint64)
    first = tl.full([BLOCK], key, tl.uint64)
    second = tl.full([BLOCK], 0, tl.uint64)
    left = tl.full([BLOCK], 0xD2E7470EE14C6C93, tl.uint64)
    right = tl.full([BLOCK], 0xCA5A826395121157, tl.uint64)
    for _ in range(10):
        upper, lower = tl.umulhi(left, a), left * a
        further, rest = tl.umulhi(right, c), right * c
        a, b, c, d = further ^ b ^ first, rest, upper ^ d ^ second, lower
        first += tl.full([BLOCK], 0x9E3779B97F4A7C15, tl.uint64)
        second += tl.full([BLOCK], 0xBB67AE8584CAA73B, tl.uint64)
    at = 4 * count - lo
    tl.store(out + at, (a >> 11).to(tl.float64) * (1.0 / 9007199254740992.0), mask=(at >= 0) & (at < n))
    tl.store(
        out + at + 1, (b >> 11).to(tl.float64) * (1.0 / 9007199254740992.0), mask=(at + 1 >= 0) & (at + 1 < n)
    )
    tl.store(
        out + at + 2, (c >> 11).to(tl.float64) * (1.0 / 9007199254740992.0), mask=(at + 2 >= 0) & (at + 2 < n)
    )
    tl.store(
        out + at + 3, (d >> 11).to(tl.float64) * (1.0 / 9007199254740992.0), mask=(at + 3 >= 0) & (at + 3 < n)
    )


def fused_uniforms(
    key: int, iteration: int, stage: int, lo: int, hi: int, device: torch.device
) -> torch.Tensor:
    """Uniforms of the places lo to hi, in double precision."""
    out = torch.empty(hi - lo, dtype=torch.float64, device=device)
    n_counts = -(-hi // 4) - lo // 4
    if n_counts > 0:
        fill_uniforms[(-(-n_counts // BLOCK),)](out, key, iteration, stage, lo, hi - lo, BLOCK=BLOCK)
    return out
