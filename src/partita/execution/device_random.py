"""Uniform random numbers on a device that numpy's Philox generator gives on the host, from any place in its stream."""

from __future__ import annotations

from typing import Any

from partita.execution.device import device_of, namespace, widest

ROUNDS = 10
MULTIPLIERS = 0xD2E7470EE14C6C93, 0xCA5A826395121157  # Salmon et al. (2011), Philox 4x64
WEYL = 0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B
LOW = 0xFFFFFFFF


def device_uniforms(key: int, iteration: int, stage: int, lo: int, hi: int, like: Any) -> Any:
    """Uniforms of the places lo to hi of a stage of an iteration, next to the array ``like``.

    They are those of :func:`partita.engines.subclusters.moves.uniforms`.
    """
    xp, device = namespace(like), device_of(like)
    if type(like).__module__ == "torch" and like.is_cuda:
        try:
            from partita.execution.device_random_fused import fused_uniforms
        except ImportError:  # torch without Triton
            pass
        else:
            return fused_uniforms(key, iteration, stage, lo, hi, like.device)
    first = lo // 4  # a count of the generator gives four numbers, and it counts before it gives them
    counts = xp.arange(first + 1, -(-hi // 4) + 1, dtype=xp.int64, device=device)
    words = _philox(
        xp, [counts, *(xp.full_like(counts, _signed(word)) for word in (stage, iteration, 0))], key
    )
    both = xp.reshape(xp.stack(words, axis=1), (-1,))[lo - 4 * first : hi - 4 * first]
    bits = xp.bitwise_and(
        xp.bitwise_right_shift(both, _scalar(xp, both, 11)), _scalar(xp, both, (1 << 53) - 1)
    )
    return xp.astype(bits, widest(like)) * 2.0**-53


def _philox(xp: Any, counter: list[Any], key: int) -> list[Any]:
    """Four words of 64 bits for each counter; words are signed, and wrap around."""
    keys = [key, 0]
    for round_ in range(ROUNDS):
        if round_:
            keys = [(own + step) % (1 << 64) for own, step in zip(keys, WEYL, strict=True)]
        high, low = zip(
            *(_product(xp, counter[at], factor) for at, factor in zip((0, 2), MULTIPLIERS, strict=True)),
            strict=True,
        )
        own = [_scalar(xp, counter[0], _signed(word)) for word in keys]
        counter = [
            xp.bitwise_xor(xp.bitwise_xor(high[1], counter[1]), own[0]),
            low[1],
            xp.bitwise_xor(xp.bitwise_xor(high[0], counter[3]), own[1]),
            low[0],
        ]
    return counter


def _product(xp: Any, x: Any, factor: int) -> tuple[Any, Any]:
    """The upper and the lower 64 bits of the product with a constant, from products of 32 bits."""
    thirty_two, mask = _scalar(xp, x, 32), _scalar(xp, x, LOW)

    def upper(values: Any) -> Any:
        return xp.bitwise_and(xp.bitwise_right_shift(values, thirty_two), mask)

    def lower(values: Any) -> Any:
        return xp.bitwise_and(values, mask)

    a, b = _scalar(xp, x, factor >> 32), _scalar(xp, x, factor & LOW)
    high, low = upper(x), lower(x)
    first, second = high * b, low * a
    middle = upper(low * b) + lower(first) + lower(second)
    return high * a + upper(first) + upper(second) + upper(middle), x * _scalar(xp, x, _signed(factor))


def _signed(word: int) -> int:
    """The signed number with the same 64 bits."""
    return word - (1 << 64) if word >= 1 << 63 else word


def _scalar(xp: Any, like: Any, value: int) -> Any:
    return xp.asarray(value, dtype=xp.int64, device=device_of(like))
