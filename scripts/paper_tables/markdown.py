"""Pieces of Markdown: tables, lists, cells and counts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def table(head: list[str], rows: list[list[Any]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows]) + "\n"


def items(lines: Iterable[str]) -> str:
    """A list with one line per item."""
    return "\n".join(f"- {line}" for line in lines) + "\n"


def bars(found: dict[str, bool]) -> str:
    """Whether each bar of a benchmark is met, as a list."""
    return items(f"{'met' if met else '**not met**'}: {bar}" for bar, met in found.items())


def cell(
    ours: float,
    digits: int,
    *,
    error: float | None = None,
    printed: float | None = None,
    printed_digits: int | None = None,
) -> str:
    """``mean (standard error) [printed]``, what is not there left out."""
    text = f"{ours:.{digits}f}"
    if error is not None:
        text += f" ({error:.{digits}f})"
    if printed is not None:
        text += f" [{printed:.{digits if printed_digits is None else printed_digits}f}]"
    return text


def count(flags: Iterable[bool]) -> str:
    """How many hold: ``6 of 8``."""
    flags = list(flags)
    return f"{sum(flags)} of {len(flags)}"


def listed(names: Iterable[Any]) -> str:
    """``a, b and c``; ``none`` of nothing."""
    *first, last = [str(name) for name in names] or ["none"]
    return f"{', '.join(first)} and {last}" if first else last


def p_value(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
