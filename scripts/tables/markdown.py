"""Pieces of a page."""

from __future__ import annotations

from typing import Any


def table(head: list[str], rows: list[list[Any]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows]) + "\n"


def command(name: str) -> str:
    return f"`python -m benchmarks --full {name}`"


def bars_of(result: dict) -> str:
    """Whether each bar of a benchmark is met, as a list."""
    return "\n".join(f"- {'met' if met else '**not met**'}: {bar}" for bar, met in result["bars"].items())
