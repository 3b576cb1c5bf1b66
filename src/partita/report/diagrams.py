"""Heat maps, trees and blocks as inline SVG.

A heat map is a PNG image inside the SVG. Its palette has a single color of varying opacity, so that it suits light
and dark pages and paper. Its values are stored as one byte per cell, for the tooltips.
"""

from __future__ import annotations

import base64
import html
import json
import struct
import zlib
from collections.abc import Sequence

import numpy as np

from partita.labels import group_name
from partita.report.markup import color_class, tip
from partita.summaries import BlockMap, TreeTop
from partita.wording import number, one_line, safe

WIDTH, SIDE = 640, 560
COLOR = (0x1F, 0x82, 0xC8)  # between the blue of the light page and that of the dark one
UNKNOWN_LEVEL = 255
MAX_NAMES = 40
STRIP_WIDTH = 12
MIN_COLUMN, NAME_HEIGHT, LETTER = (
    34.0,
    14,
    7.0,
)  # width of a column with a name below it, and the size of names


def png(levels: np.ndarray) -> bytes:
    """An indexed PNG: level 0 is transparent, 254 is the full color, 255 (unknown) is transparent.

    Examples
    --------
    >>> png(np.zeros((2, 3), np.uint8))[:4]
    b'\\x89PNG'
    """
    height, width = levels.shape
    rows = b"".join(b"\x00" + row.tobytes() for row in np.ascontiguousarray(levels, dtype=np.uint8))
    alpha = bytes([*range(255), 0])

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0))
        + chunk(b"PLTE", bytes(COLOR) * 256)
        + chunk(b"tRNS", alpha)
        + chunk(b"IDAT", zlib.compress(rows, 9))
        + chunk(b"IEND", b"")
    )


def heat(
    values: np.ndarray,
    rows: Sequence[str],
    *,
    columns: Sequence[str] | None = None,
    low: float = 0.0,
    high: float = 1.0,
    what: str,
    title: str,
    percent: bool = False,
    labels: np.ndarray | None = None,
    picks: bool = True,
    names: bool = False,
) -> str:
    """A heat map. `labels` add a colored strip beside the rows and, in a square map (without `columns`), boxes."""
    with np.errstate(invalid="ignore"):
        scaled = np.clip((np.asarray(values, float) - low) / max(high - low, 1e-300), 0, 1) * 254
    levels = np.where(np.isnan(scaled), UNKNOWN_LEVEL, np.nan_to_num(scaled)).round().astype(np.uint8)
    named = names and len(rows) <= MAX_NAMES
    left = 168 if named else STRIP_WIDTH + 6
    side_x = WIDTH - left - 8
    n_rows, n_columns = levels.shape
    side_y = side_x if columns is None else min(max(side_x * n_rows / n_columns, 40.0), 0.6 * side_x)
    top = STRIP_WIDTH + 6
    parts = [
        f'<image href="data:image/png;base64,{_base64(png(levels))}" x="{left}" y="{top}" width="{side_x}" '
        f'height="{side_y:.1f}" preserveAspectRatio="none"/>',
        f'<rect class="frame" x="{left}" y="{top}" width="{side_x}" height="{side_y:.1f}"/>',
        f'<rect class="sense" x="{left}" y="{top}" width="{side_x}" height="{side_y:.1f}" '
        f'data-values="{_base64(levels.tobytes())}" data-rows="{_json_list(rows)}"'
        + ("" if columns is None else f' data-columns="{_json_list(columns)}"')
        + f' data-low="{low:g}" data-high="{high:g}" data-what="{safe(what)}"{" data-percent" if percent else ""}/>',
    ]
    if labels is not None:
        parts += _runs(labels, left, top, side_x, side_y, picks, square=columns is None)
    if named:
        step = side_y / n_rows
        parts += [
            f'<text class="small" x="{left - STRIP_WIDTH - 8}" y="{top + (r + 0.5) * step + 4:.1f}" text-anchor="end">'
            f"{safe(name, 17)}</text>"
            for r, name in enumerate(rows)
        ]
    height = top + side_y + 8
    if columns is not None and (step := side_x / n_columns) >= MIN_COLUMN:
        height += NAME_HEIGHT
        parts += [
            f'<text class="small" x="{left + (c + 0.5) * step:.1f}" y="{top + side_y + NAME_HEIGHT:.1f}" '
            f'text-anchor="middle">{safe(name, max(int(step / LETTER), 3))}</text>'
            for c, name in enumerate(columns)
        ]
    size = f'viewBox="0 0 {WIDTH} {height:.0f}"'
    return f'<svg class="square" {size} role="img" aria-label="{title}">{"".join(parts)}</svg>'


def _runs(
    labels: np.ndarray, left: float, top: float, side_x: float, side_y: float, picks: bool, square: bool
) -> list[str]:
    """For each run of equal labels, strips along two sides and a box on the diagonal; one strip if not square."""
    edges = np.flatnonzero(np.diff(labels)) + 1
    starts, ends = np.concatenate([[0], edges]), np.concatenate([edges, [len(labels)]])
    n, parts = len(labels), []
    for a, b in zip(starts.tolist(), ends.tolist()):
        k = int(labels[a])
        style = f'class="strip {"pick " if picks else ""}{color_class(k)}"' + (
            f' data-k="{k}"' if picks else ""
        )
        tooltip = tip(group_name(k) if picks or not square else f"view {k + 1}")
        x, w = left + side_x * a / n, side_x * (b - a) / n
        y, h = top + side_y * a / n, side_y * (b - a) / n
        if square:
            parts.append(f'<rect {style} x="{x:.1f}" y="1" width="{w:.1f}" height="{STRIP_WIDTH}"{tooltip}/>')
        parts.append(
            f'<rect {style} x="{left - STRIP_WIDTH - 5}" y="{y:.1f}" width="{STRIP_WIDTH}" height="{h:.1f}"{tooltip}/>'
        )
        if not square:
            continue
        mark = f' data-k="{k}"' if picks else ""
        parts.append(
            f'<rect class="box {color_class(k)}"{mark} x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" '
            'pointer-events="none"/>'
        )
    return parts


def tree(top: TreeTop) -> str:
    """The last merges of a tree, dashed if the odds are against a merge."""
    height, floor, left = 320, 268, 62
    finite = top.heights[np.isfinite(top.heights)]
    low = min(0.0, float(finite.min(initial=0.0)))
    high = float(finite.max(initial=0.0))
    high = high if high > low else low + 1.0
    step = (WIDTH - left - 12) / max(top.width(), 1)

    def x(place: float) -> float:
        return left + (place + 0.5) * step

    def y(value: float) -> float:
        value = value if np.isfinite(value) else high
        return floor - (value - low) / (high - low) * (floor - 16)

    parts = [f'<path class="frame" d="M{left} {floor}H{WIDTH - 8}"/>']
    for at, ((a, b), (foot_a, foot_b), h) in enumerate(zip(top.places, top.feet, top.heights)):
        odds = None if top.log_odds is None else float(top.log_odds[at])
        tooltip = f"merged at {number(float(h))}" + ("" if odds is None else f"; log odds {odds:+.2f}")
        weak = " weak" if odds is not None and odds < 0 else ""
        parts.append(
            f'<path class="link{weak}" d="M{x(a):.1f} {y(foot_a):.1f}V{y(h):.1f}H{x(b):.1f}V{y(foot_b):.1f}"'
            f"{tip(tooltip)}/>"
        )
    for at, size in enumerate(top.leaf_sizes):
        k = -1 if top.leaf_labels is None else int(top.leaf_labels[at])
        mark = f'class="pick {color_class(k)}" data-k="{k}"' if k >= 0 else 'class="out"'
        tooltip = tip(f"{size:,} in this branch" + (f", {group_name(k)}" if k >= 0 else ""))
        parts.append(
            f'<circle {mark} cx="{x(at):.1f}" cy="{floor + 7}" r="{min(4.5, step / 2.2):.1f}"{tooltip}/>'
        )
        if step >= 22:
            parts.append(
                f'<text class="small" x="{x(at):.1f}" y="{floor + 26}" text-anchor="middle">{size:,}</text>'
            )
    parts += [
        f'<text x="{left - 6}" y="{y(v) + 4:.1f}" text-anchor="end">{number(v)}</text>' for v in (low, high)
    ]
    parts.append(
        f'<text class="label" x="14" y="{floor / 2}" text-anchor="middle" '
        f'transform="rotate(-90 14 {floor / 2})">height</text>'
    )
    parts.append(
        f'<text class="label" x="{(left + WIDTH) / 2}" y="{height - 8}" text-anchor="middle">'
        "objects in each branch</text>"
    )
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="Tree of merges">{"".join(parts)}</svg>'
    )


def blocks(found: BlockMap, max_groups: int = 60) -> str:
    """Blocks as rectangles whose width and height are proportional to the sizes of their clusters."""
    K, J = min(len(found.row_sizes), max_groups), min(len(found.column_sizes), max_groups)
    rows, columns = found.row_sizes[:K], found.column_sizes[:J]
    values = found.values[:K, :J]
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    if low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    left, top, side, tall = 30, 24, WIDTH - 40, 420
    x = left + side * np.concatenate([[0], np.cumsum(columns)]) / columns.sum()
    y = top + tall * np.concatenate([[0], np.cumsum(rows)]) / rows.sum()
    parts = []
    for k in range(K):
        for j in range(J):
            v = float(values[k, j])
            shade = 0.0 if np.isnan(v) else (v - low) / (high - low) if high > low else 0.5
            known = "unknown" if np.isnan(v) else number(v)
            tooltip = tip(
                f"rows of {group_name(k)} ({rows[k]:,}), columns of {group_name(j)} ({columns[j]:,}): {known}"
            )
            parts.append(
                f'<rect class="block" style="fill-opacity:{shade:.3f}" x="{x[j]:.1f}" y="{y[k]:.1f}" '
                f'width="{x[j + 1] - x[j]:.1f}" height="{y[k + 1] - y[k]:.1f}"{tooltip}/>'
            )
    parts += [
        f'<rect class="strip pick {color_class(k)}" data-k="{k}" x="8" y="{y[k]:.1f}" width="{STRIP_WIDTH}" '
        f'height="{y[k + 1] - y[k]:.1f}"{tip(f"{group_name(k)}: {rows[k]:,} rows")}/>'
        for k in range(K)
    ]
    parts += [
        f'<rect class="strip k{j % 10}" x="{x[j]:.1f}" y="4" width="{x[j + 1] - x[j]:.1f}" height="{STRIP_WIDTH}"'
        f"{tip(f'columns of {group_name(j)}: {columns[j]:,}')}/>"
        for j in range(J)
    ]
    parts.append(f'<rect class="frame" x="{left}" y="{top}" width="{side}" height="{tall}"/>')
    return (
        f'<svg viewBox="0 0 {WIDTH} {top + tall + 8}" role="img" aria-label="Blocks">{"".join(parts)}</svg>'
    )


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _json_list(names: Sequence[str]) -> str:
    return html.escape(json.dumps([one_line(name, 60) for name in names]), quote=True)
