"""Pieces of the page: sections, notes, tables, the key of a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from partita.summaries.words import safe

__all__ = ["bar", "called", "cluster", "colour", "key", "note", "section", "table", "tip"]


def section(title: str, *parts: str) -> str:
    """A section, or nothing where it has no parts."""
    inside = "".join(parts)
    return f"<section><h2>{title}</h2>{inside}</section>" if inside else ""


def note(text: str) -> str:
    """Small print."""
    return f'<p class="note">{text}</p>'


def colour(cluster: int) -> str:
    """The class that gives a cluster its colour."""
    return f"k{cluster % 10}" if cluster >= 0 else "out"


def tip(text: Any, limit: int = 160) -> str:
    """The attribute that shows a text beside the pointer."""
    return f' data-tip="{safe(text, limit)}"'


def key(cluster: int) -> str:
    """The coloured dot of a cluster."""
    return f'<span class="key {colour(cluster)}"></span>'


def called(k: int) -> str:
    """The name of a cluster; -1 is none."""
    return f"cluster {k}" if k >= 0 else "outliers"


def cluster(k: int) -> str:
    """A cell that names a cluster; a click highlights it everywhere."""
    return f'<td class="c pick" data-k="{k}" data-v="{k}">{key(k)}{called(k)}</td>'


def bar(share: float, cluster: int | None = None) -> str:
    """A horizontal bar, `share` of its place."""
    tone = "" if cluster is None else f" {colour(cluster)}"
    width = 100 * min(max(share, 0), 1)
    return f'<span class="bar"><span class="fill{tone}" style="width:{width:.1f}%"></span></span>'


def table(
    head: Sequence[str],
    rows: Iterable[str],
    *,
    numeric: Sequence[int] = (),
    kind: str = "sort",
    tall: bool = False,
) -> str:
    """A table that scrolls on a narrow screen; a click on a heading sorts it. `numeric` are right-aligned columns."""
    kinds = ["n" if j in numeric else "" if text else "w" for j, text in enumerate(head)]
    cells = "".join(f'<th class="{one}">{text}</th>' for one, text in zip(kinds, head)).replace(
        ' class=""', ""
    )
    wrap = "scroll tall" if tall else "scroll"
    return f'<div class="{wrap}"><table class="{kind}"><tr>{cells}</tr>{"".join(rows)}</table></div>'
