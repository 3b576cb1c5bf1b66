"""Small drawings as inline SVG: no fonts, scripts or files from elsewhere, and they follow the page's colours."""

from __future__ import annotations

from typing import Any

import numpy as np

from partita.report.words import number, safe

__all__ = ["bar", "chains", "histogram", "line", "scatter"]

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 640, 240, 62, 52, 14
MAX_POINTS = 2000


def bar(share: float, cluster: int | None = None) -> str:
    """A horizontal bar, `share` of its place."""
    colour = "" if cluster is None else f" c{cluster % 10}"
    width = 100 * min(max(share, 0), 1)
    return f'<span class="bar"><span class="fill{colour}" style="width:{width:.1f}%"></span></span>'


def histogram(values: np.ndarray, threshold: float, below: str = "probability of its own cluster") -> str:
    """How many objects have which confidence; those below the threshold stand out."""
    edges = np.linspace(0, 1, 21)
    low, high = (
        np.histogram(part, edges)[0] for part in (values[values < threshold], values[values >= threshold])
    )
    top = max(int((low + high).max()), 1)
    x, y = _axis(0, 1, LEFT, WIDTH - 10), _axis(0, top, HEIGHT - BOTTOM, TOP)
    parts = []
    for left, right, a, b in zip(edges, edges[1:], low, high):
        place = f'x="{x(left) + 1:.1f}" width="{x(right) - x(left) - 2:.1f}"'
        if a:
            parts.append(f'<rect class="warn" {place} y="{y(a):.1f}" height="{y(0) - y(a):.1f}"/>')
        if b:
            parts.append(f'<rect class="calm" {place} y="{y(a + b):.1f}" height="{y(a) - y(a + b):.1f}"/>')
    parts.append(f'<path class="rule" d="M{x(threshold):.1f} {TOP}V{HEIGHT - BOTTOM}"/>')
    parts += [_tick_x(x(v), f"{v:g}") for v in (0, 0.2, 0.4, 0.6, 0.8, 1)]
    parts += [_tick_y(y(v), f"{v:,}") for v in sorted({0, top})]
    return _svg(parts, "Histogram of confidence", below, "objects")


def line(values: Any) -> tuple[str, int]:
    """A curve over 1, 2, ...; returns it and how many points were drawn."""
    curve = np.asarray(values, float)
    at = np.flatnonzero(np.isfinite(curve))
    if len(at) > MAX_POINTS // 4:
        at = at[np.unique(np.linspace(0, len(at) - 1, MAX_POINTS // 4).astype(int))]
    if len(at) == 0:
        return "", 0
    low, high = float(curve[at].min()), float(curve[at].max())
    x = _axis(1, max(len(curve), 2), LEFT + 30, WIDTH - 10)
    y = _axis(low, high if high > low else low + 1, HEIGHT - BOTTOM, TOP)
    points = " ".join(f"{x(i + 1):.1f},{y(curve[i]):.1f}" for i in at)
    parts = [f'<polyline class="curve" points="{points}"/>']
    parts += [_tick_x(x(v), f"{v:,}") for v in sorted({1, len(curve)})]
    parts += [
        _tick_y(y(v), f"{v:,.0f}" if abs(v) > 100 else number(v), LEFT + 26) for v in sorted({low, high})
    ]
    return _svg(parts, "Objective by iteration", "iteration", ""), len(at)


def chains(values: Any, chain: Any) -> tuple[str, int]:
    """A curve for each chain over its draws; returns them and how many draws were drawn."""
    every, of = np.asarray(values, float), np.asarray(chain)
    curves = {int(name): every[of == name] for name in np.unique(of)}
    low, high = float(every.min()), float(every.max())
    longest = max(len(curve) for curve in curves.values())
    x = _axis(1, max(longest, 2), LEFT + 30, WIDTH - 10)
    y = _axis(low, high if high > low else low + 1, HEIGHT - BOTTOM, TOP)
    most, drawn, parts = max(MAX_POINTS // len(curves), 2), 0, []
    for name, curve in curves.items():
        at = np.unique(np.linspace(0, len(curve) - 1, min(most, len(curve))).astype(int))
        points = " ".join(f"{x(i + 1):.1f},{y(curve[i]):.1f}" for i in at)
        parts.append(f'<polyline class="chain s{name % 10}" points="{points}"/>')
        drawn += len(at)
    parts += [_tick_x(x(v), f"{v:,}") for v in sorted({1, longest})]
    parts += [
        _tick_y(y(v), f"{v:,.0f}" if abs(v) > 100 else number(v), LEFT + 26) for v in sorted({low, high})
    ]
    return _svg(parts, "Log joint by draw, one line a chain", "draw", ""), drawn


def scatter(
    U: np.ndarray, V: np.ndarray, labels: np.ndarray, firm: np.ndarray, names: tuple[str, str]
) -> tuple[str, int, int]:
    """Points by cluster, hollow where uncertain; returns the drawing, the points drawn and those there were."""
    seen = np.flatnonzero(np.isfinite(U) & np.isfinite(V))
    if len(seen) == 0:
        return "", 0, 0
    drawn = seen
    if len(seen) > MAX_POINTS:
        drawn = seen[np.unique(np.linspace(0, len(seen) - 1, MAX_POINTS).astype(int))]
    height = 380
    x = _axis(*_range(U[drawn]), LEFT + 8, WIDTH - 14)
    y = _axis(*_range(V[drawn]), height - BOTTOM - 8, TOP + 4)
    parts = []
    for i in drawn:
        style = (f"c{int(labels[i]) % 10}" if labels[i] >= 0 else "out") + ("" if firm[i] else " hollow")
        parts.append(
            f'<circle class="{style}" cx="{x(U[i]):.0f}" cy="{y(V[i]):.0f}" r="{3.2 if firm[i] else 4.2}"/>'
        )
    parts += [_tick_x(x(v), number(v), height) for v in _range(U[drawn])]
    parts += [_tick_y(y(v), number(v)) for v in _range(V[drawn])]
    return (
        _svg(parts, "Objects by two columns", safe(names[0]), safe(names[1]), height),
        len(drawn),
        len(seen),
    )


def _range(values: np.ndarray) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _axis(low: float, high: float, start: float, end: float):
    return lambda value: start + (value - low) / (high - low) * (end - start)


def _tick_x(x: float, text: str, height: int = HEIGHT) -> str:
    anchor = "end" if x > WIDTH - 40 else "middle"
    return f'<text x="{x:.1f}" y="{height - BOTTOM + 20}" text-anchor="{anchor}">{text}</text>'


def _tick_y(y: float, text: str, x: float = LEFT - 6) -> str:
    return f'<text x="{x}" y="{y + 4:.1f}" text-anchor="end">{text}</text>'


def _svg(parts: list[str], title: str, below: str, beside: str, height: int = HEIGHT) -> str:
    floor = height - BOTTOM
    frame = f'<path class="frame" d="M{LEFT} {floor}H{WIDTH - 6}"/>'
    labels = f'<text class="label" x="{(LEFT + WIDTH) / 2:.0f}" y="{height - 8}" text-anchor="middle">{below}</text>'
    if beside:
        labels += (
            f'<text class="label" x="14" y="{floor / 2:.0f}" text-anchor="middle" '
            f'transform="rotate(-90 14 {floor / 2:.0f})">{beside}</text>'
        )
    return f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{title}">{frame}{"".join(parts)}{labels}</svg>'
