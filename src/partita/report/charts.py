"""Bar, line and scatter charts as inline SVG, without external files, in the colors of the page."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from partita.labels import group_name
from partita.report.markup import color_class, tip
from partita.summaries.counts import GroupCounts
from partita.summaries.pairs import spread
from partita.wording import number, percent, safe

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 760, 250, 66, 52, 14
MAX_POINTS = 2000
MAX_BARS = 300


def histogram(
    values: np.ndarray, threshold: float | None, below: str = "probability of its own cluster"
) -> str:
    """Histogram of the confidence; objects below the threshold have another color."""
    edges = np.linspace(0, 1, 21)
    values = values[np.isfinite(values)]
    cut = -np.inf if threshold is None else threshold
    low, high = (np.histogram(part, edges)[0] for part in (values[values < cut], values[values >= cut]))
    top = max(int((low + high).max()), 1)
    x, y = axis(0, 1, LEFT, WIDTH - 10), axis(0, top, HEIGHT - BOTTOM, TOP)
    parts = []
    for left, right, a, b in zip(edges, edges[1:], low, high):
        place = f'x="{x(left) + 1:.1f}" width="{x(right) - x(left) - 2:.1f}"'
        tooltip = tip(f"{a + b:,} from {left:.2f} to {right:.2f}")
        if a:
            parts.append(f'<rect class="warn" {place} y="{y(a):.1f}" height="{y(0) - y(a):.1f}"{tooltip}/>')
        if b:
            parts.append(
                f'<rect class="calm" {place} y="{y(a + b):.1f}" height="{y(a) - y(a + b):.1f}"{tooltip}/>'
            )
    if threshold is not None:
        parts.append(f'<path class="rule" d="M{x(threshold):.1f} {TOP}V{HEIGHT - BOTTOM}"/>')
    parts += [tick_x(x(v), f"{v:g}") for v in (0, 0.2, 0.4, 0.6, 0.8, 1)]
    parts += [tick_y(y(v), f"{v:,.0f}") for v in round_values(0, top, whole=True)]
    return svg(parts, "Histogram of confidence", below, "objects")


def objects(
    order: np.ndarray,
    labels: np.ndarray,
    confidence: np.ndarray,
    threshold: float | None,
    name: Callable[[int], str],
    most: int = MAX_BARS,
) -> tuple[str, int]:
    """Confidence of each object as a bar, ordered by cluster; returns the chart and its number of bars."""
    shown = order[spread(len(order), most)]
    shown = shown[np.isfinite(confidence[shown])]
    x, y = axis(0, max(len(shown), 1), LEFT, WIDTH - 10), axis(0, 1, HEIGHT - BOTTOM, TOP)
    width = max((WIDTH - 10 - LEFT) / max(len(shown), 1) - 0.25, 0.8)
    parts = []
    for at, i in enumerate(shown):
        k, c = int(labels[i]), float(confidence[i])
        parts.append(
            f'<rect class="group pick {color_class(k)}" data-k="{k}" x="{x(at):.2f}" width="{width:.2f}" '
            f'y="{y(c):.1f}" height="{y(0) - y(c):.1f}"{tip(f"{name(int(i))}, {group_name(k)}: {c:.2f}")}/>'
        )
    if threshold is not None:
        parts.append(f'<path class="rule" d="M{LEFT} {y(threshold):.1f}H{WIDTH - 10}"/>')
    parts += [tick_y(y(v), f"{v:g}") for v in (0, 0.25, 0.5, 0.75, 1)]
    return svg(parts, "Confidence by object", "objects, ordered by cluster", "confidence"), len(shown)


def counts(found: GroupCounts, max_bars: int = 40) -> tuple[str, int]:
    """P(K) as bars with the prior as dots; returns the chart and how many numbers of clusters are not shown."""
    likely = np.argsort(-(found.posterior + np.nan_to_num(found.prior)), kind="stable")[:max_bars]
    shown = np.sort(likely)
    K, after, before = found.n_clusters[shown], found.posterior[shown], found.prior[shown]
    if K[-1] - K[0] < max_bars:  # no gaps
        every = np.arange(K[0], K[-1] + 1)
        filled, at = np.zeros((2, len(every))), np.searchsorted(every, K)
        filled[:, at] = after, before
        filled[1] = np.where(np.isnan(before).all(), np.nan, filled[1])
        K, (after, before) = every, filled
    top = max(float(after.max(initial=0.0)), float(np.nan_to_num(before).max(initial=0.0)), 1e-9)
    x = axis(-0.6, max(len(K), 4) - 0.4, LEFT, WIDTH - 10)
    y = axis(0, top, HEIGHT - BOTTOM, TOP)
    parts = []
    for at, (n, p, q) in enumerate(zip(K, after, before)):
        tooltip = f"{n} groups: {percent(p)}" + ("" if np.isnan(q) else f"; prior {percent(q)}")
        left, right = x(at - 0.36), x(at + 0.36)
        parts.append(
            f'<rect class="after" x="{left:.1f}" width="{right - left:.1f}" y="{y(p):.1f}" '
            f'height="{max(y(0) - y(p), 0.6):.1f}"{tip(tooltip)}/>'
        )
        if not np.isnan(q):
            parts.append(f'<circle class="before" cx="{x(at):.1f}" cy="{y(q):.1f}" r="4"{tip(tooltip)}/>')
    step = max(1, -(-len(K) // 14))
    parts += [tick_x(x(at), f"{n}") for at, n in enumerate(K) if at % step == 0]
    parts += [tick_y(y(v), percent(v)) for v in round_values(0, top)]
    picture = svg(parts, "Probability of each number of groups", "number of groups", "probability")
    return picture, len(found.n_clusters) - len(shown)


def curve(values: dict[int, float], chosen: int, below: str, beside: str) -> str:
    """The score of each number of groups, with the chosen number."""
    K = np.array(sorted(values))
    K = K[np.isfinite([values[k] for k in K.tolist()])]
    if len(K) < 2:
        return ""
    shown = K[spread(len(K), MAX_BARS)]
    v = np.array([values[k] for k in shown.tolist()])
    x = axis(float(K[0]), float(K[-1]), LEFT + 30, WIDTH - 14)
    y = axis(*extent(v), HEIGHT - BOTTOM - 4, TOP + 4)
    points = " ".join(f"{x(k):.1f},{y(s):.1f}" for k, s in zip(shown, v))
    parts = [f'<polyline class="curve" points="{points}"/>']
    if K[0] <= chosen <= K[-1]:
        parts.append(f'<path class="rule" d="M{x(chosen):.1f} {TOP}V{HEIGHT - BOTTOM}"/>')
    parts += [
        f'<circle class="dot" cx="{x(k):.1f}" cy="{y(s):.1f}" r="{5 if k == chosen else 3}"'
        f"{tip(f'{k} groups: {number(s)}')}/>"
        for k, s in zip(shown.tolist(), v.tolist())
    ]
    parts += [
        tick_x(x(k), f"{k:,}")
        for k in sorted({int(K[0]), int(K[-1]), *([chosen] if chosen in values else [])})
    ]
    parts += [tick_y(y(s), number(s), LEFT + 26) for s in round_values(float(v.min()), float(v.max()))]
    return svg(parts, "Score of each number of groups", below, beside)


def ranked(values: np.ndarray, names: Sequence[str], title: str, below: str, beside: str) -> tuple[str, int]:
    """Bars from the largest to the smallest; returns the chart and its number of bars."""
    order = np.argsort(-values, kind="stable")
    shown = order[spread(len(order), MAX_BARS)]
    top = max(float(values.max(initial=0.0)), 1e-12)
    x, y = axis(0, max(len(shown), 1), LEFT, WIDTH - 10), axis(0, top, HEIGHT - BOTTOM, TOP)
    width = max((WIDTH - 10 - LEFT) / max(len(shown), 1) - 0.25, 0.8)
    parts = [
        f'<rect class="calm" x="{x(at):.2f}" width="{width:.2f}" y="{y(values[m]):.1f}" '
        f'height="{y(0) - y(values[m]):.1f}"{tip(f"{names[m]}: {number(float(values[m]))}")}/>'
        for at, m in enumerate(shown)
    ]
    parts += [tick_y(y(v), number(v)) for v in round_values(0.0, top)]
    return svg(parts, title, below, beside), len(shown)


def line(values: Any) -> tuple[str, int]:
    """Values by iteration; returns the chart and the number of points shown."""
    trace = np.asarray(values, float)
    at = np.flatnonzero(np.isfinite(trace))
    at = at[spread(len(at), MAX_POINTS // 4)]
    if len(at) == 0:
        return "", 0
    low, high = float(trace[at].min()), float(trace[at].max())
    x = axis(1, max(len(trace), 2), LEFT + 30, WIDTH - 10)
    y = axis(low, high if high > low else low + 1, HEIGHT - BOTTOM, TOP)
    points = " ".join(f"{x(i + 1):.1f},{y(trace[i]):.1f}" for i in at)
    parts = [f'<polyline class="curve" points="{points}"/>']
    parts += [tick_x(x(v), f"{v:,.0f}") for v in _steps(len(trace))]
    parts += [tick_y(y(v), long_number(v), LEFT + 26) for v in round_values(low, high)]
    return svg(parts, "Objective by iteration", "iteration", ""), len(at)


def chains(values: Any, chain: Any) -> tuple[str, int]:
    """One curve per chain over its draws; returns the chart and the number of draws shown."""
    every, of = np.asarray(values, float), np.asarray(chain)
    curves = {int(name): every[of == name] for name in np.unique(of)}
    low, high = float(every.min()), float(every.max())
    longest = max(len(curve) for curve in curves.values())
    x = axis(1, max(longest, 2), LEFT + 30, WIDTH - 10)
    y = axis(low, high if high > low else low + 1, HEIGHT - BOTTOM, TOP)
    most, drawn, parts = max(MAX_POINTS // len(curves), 2), 0, []
    for name, curve in curves.items():
        at = spread(len(curve), most)
        points = " ".join(f"{x(i + 1):.1f},{y(curve[i]):.1f}" for i in at)
        parts.append(f'<polyline class="chain k{name % 10}" points="{points}"{tip(f"chain {name}")}/>')
        drawn += len(at)
    parts += [tick_x(x(v), f"{v:,.0f}") for v in _steps(longest)]
    parts += [tick_y(y(v), long_number(v), LEFT + 26) for v in round_values(low, high)]
    return svg(parts, "Log joint by draw, one line per chain", "draw", ""), drawn


def scatter(
    U: np.ndarray,
    V: np.ndarray,
    labels: np.ndarray,
    certain: np.ndarray,
    names: tuple[str, str],
    row_groups: np.ndarray | None = None,
) -> tuple[str, int, int]:
    """Points colored by cluster, hollow if uncertain; returns the chart, the points shown and all points.

    With ``row_groups``, the finest group of each row, the script of the page can color the points at other levels.
    """
    seen = np.flatnonzero(np.isfinite(U) & np.isfinite(V))
    if len(seen) == 0:
        return "", 0, 0
    drawn = seen[spread(len(seen), MAX_POINTS)]
    height = 380
    x = axis(*extent(U[drawn]), LEFT + 8, WIDTH - 14)
    y = axis(*extent(V[drawn]), height - BOTTOM - 8, TOP + 4)
    parts = []
    for i in drawn:
        k = int(labels[i])
        style = f"pick {color_class(k)}" + ("" if certain[i] else " hollow")
        group = "" if row_groups is None else f' data-g="{row_groups[i]}"'
        tooltip = tip(f"row {i}, {group_name(k)}{'' if certain[i] else ', uncertain'}")
        parts.append(
            f'<circle class="{style}" data-k="{k}"{group} cx="{x(U[i]):.0f}" cy="{y(V[i]):.0f}" '
            f'r="{3.2 if certain[i] else 4.2}"{tooltip}/>'
        )
    parts += [tick_x(x(v), long_number(v), height) for v in round_values(*extent(U[drawn]))]
    parts += [tick_y(y(v), long_number(v)) for v in round_values(*extent(V[drawn]))]
    return (
        svg(parts, "Objects by two columns", safe(names[0]), safe(names[1]), height),
        len(drawn),
        len(seen),
    )


def round_values(low: float, high: float, n: int = 5, *, whole: bool = False) -> list[float]:
    """About `n` round numbers from low to high, for the ticks of an axis; low itself if they are equal.

    Examples
    --------
    >>> round_values(0, 23), round_values(0.0, 0.31), round_values(0, 1, whole=True)
    ([0.0, 5.0, 10.0, 15.0, 20.0], [0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3], [0.0, 1.0])
    """
    if not high > low:
        return [float(low)]
    rough = (high - low) / n
    power = 10.0 ** math.floor(math.log10(rough))
    step = min((power * size for size in (1.0, 2.0, 5.0, 10.0)), key=lambda size: abs(math.log(size / rough)))
    step = max(step, 1.0) if whole else step
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    if last - first < 1:  # the range is narrow, and far from round numbers
        return [float(low), float(high)]
    return [round(at * step, 12) + 0.0 for at in range(first, last + 1)]


def _steps(n: int) -> list[float]:
    """Ticks of an axis that counts from 1."""
    return [1.0, *(v for v in round_values(0, max(n, 2), whole=True) if v > 0)]


def long_number(value: float) -> str:
    """A tick: large numbers with all their digits, so that neighbors differ."""
    return f"{value:,.0f}" if abs(value) > 100 and value == round(value) else number(value, 4)


def extent(values: np.ndarray) -> tuple[float, float]:
    """Smallest and largest value, widened if they are equal."""
    low, high = float(values.min()), float(values.max())
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def axis(low: float, high: float, start: float, end: float) -> Callable[[Any], Any]:
    """The function from values to positions."""
    return lambda value: start + (value - low) / (high - low) * (end - start)


def tick_x(x: float, text: str, height: int = HEIGHT) -> str:
    """A tick and a number below the chart."""
    anchor = "end" if x > WIDTH - 40 else "middle"
    mark = f'<path class="frame" d="M{x:.1f} {height - BOTTOM}v5"/>'
    return f'{mark}<text x="{x:.1f}" y="{height - BOTTOM + 20}" text-anchor="{anchor}">{text}</text>'


def tick_y(y: float, text: str, x: float = LEFT - 6) -> str:
    """A tick and a number beside the chart."""
    mark = f'<path class="frame" d="M{x + 2:.0f} {y:.1f}h4"/>'
    return f'{mark}<text x="{x}" y="{y + 4:.1f}" text-anchor="end">{text}</text>'


def svg(parts: list[str], title: str, below: str, beside: str, height: int = HEIGHT) -> str:
    """The chart with its frame and the names of its axes."""
    floor = height - BOTTOM
    frame = f'<path class="frame" d="M{LEFT} {floor}H{WIDTH - 6}"/>'
    labels = f'<text class="label" x="{(LEFT + WIDTH) / 2:.0f}" y="{height - 8}" text-anchor="middle">{below}</text>'
    if beside:
        labels += (
            f'<text class="label" x="14" y="{floor / 2:.0f}" text-anchor="middle" '
            f'transform="rotate(-90 14 {floor / 2:.0f})">{beside}</text>'
        )
    return f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{title}">{frame}{"".join(parts)}{labels}</svg>'
