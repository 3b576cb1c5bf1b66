"""HTML elements of the page: sections, notes, tables, names and colors of clusters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from partita.labels import group_name
from partita.wording import safe


def section(title: str, *parts: str) -> str:
    """A section; empty if it has no parts."""
    inside = "".join(parts)
    return f"<section><h2>{title}</h2>{inside}</section>" if inside else ""


def note(text: str) -> str:
    """An explanation in small print."""
    return f'<p class="note">{text}</p>'


def color_class(cluster: int) -> str:
    """The CSS class that gives a cluster its color."""
    return f"k{cluster % 10}" if cluster >= 0 else "out"


def tip(text: Any, limit: int = 160) -> str:
    """The attribute of an element that shows a text beside the pointer."""
    return f' data-tip="{safe(text, limit)}"'


def cluster_dot(cluster: int) -> str:
    """The colored dot of a cluster."""
    return f'<span class="key {color_class(cluster)}"></span>'


def cluster_cell(k: int, name: str = "") -> str:
    """A table cell with the number of a cluster and its name; a click highlights the cluster in all figures."""
    words = f'<br><span class="note">{safe(name, 120)}</span>' if name else ""
    wide = "c pick named" if name else "c pick"
    return f'<td class="{wide}" data-k="{k}" data-v="{k}">{cluster_dot(k)}{group_name(k)}{words}</td>'


def fold(summary: str, *parts: str) -> str:
    """Content that is shown when its summary is clicked; empty if it has no parts."""
    inside = "".join(parts)
    return f"<details><summary>{summary}</summary>{inside}</details>" if inside else ""


def bar(share: float, cluster: int | None = None) -> str:
    """A horizontal bar that fills `share` of its cell."""
    tone = "" if cluster is None else f" {color_class(cluster)}"
    width = 100 * min(max(share, 0), 1)
    return f'<span class="bar"><span class="fill{tone}" style="width:{width:.1f}%"></span></span>'


def table(
    head: Sequence[str],
    rows: Iterable[str],
    *,
    numeric: Sequence[int] = (),
    optional: Sequence[int] = (),
    kind: str = "sort",
    tall: bool = False,
) -> str:
    """A table that scrolls on narrow screens; a click on a heading sorts it.

    `numeric` columns are right-aligned, and `optional` ones are left out on narrow screens; their cells have the
    classes "n" and "o".
    """
    kinds = ["n" if j in numeric else "" if text else "w" for j, text in enumerate(head)]
    kinds = [f"{one} o".strip() if j in optional else one for j, one in enumerate(kinds)]
    cells = "".join(f'<th class="{one}">{text}</th>' for one, text in zip(kinds, head)).replace(
        ' class=""', ""
    )
    wrap = "scroll tall" if tall else "scroll"
    return f'<div class="{wrap}"><table class="{kind}"><tr>{cells}</tr>{"".join(rows)}</table></div>'
