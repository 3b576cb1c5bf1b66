"""Axes, colors and markers of clusters, and short labels, shared by all pictures."""

from __future__ import annotations

from typing import Any

# ten colors, chosen for color-blind readers as far as ten can be; the markers help where colors repeat
COLORS = (
    "#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#8c6bb1", "#7f7f7f", "#b8a000", "#a6451c",
)  # fmt: skip
MARKERS = ("o", "s", "^", "D", "v", "P", "X")


def open_axes(ax: Any = None) -> Any:
    """The given axes, or those of a new figure."""
    return ax if ax is not None else _pyplot().subplots(layout="constrained")[1]


def open_grid(n: int, n_columns: int = 3) -> Any:
    """An array of axes of a new figure, several beside each other."""
    wide = min(n, n_columns)
    high = -(-n // wide)
    figure, axes = _pyplot().subplots(
        high, wide, squeeze=False, layout="constrained", figsize=(4.2 * wide, 2.9 * high + 0.8)
    )
    for spare in axes.ravel()[n:]:
        figure.delaxes(spare)
    return axes.ravel()[:n]


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "pictures need matplotlib, which is not installed: pip install 'partita[plot]'"
        ) from error
    return plt


def color_of(cluster: int) -> str:
    """The color of a cluster, the same in every picture; outliers (-1) are black."""
    return COLORS[cluster % len(COLORS)] if cluster >= 0 else "black"


def marker_of(cluster: int) -> str:
    """The marker of a cluster; with the color it distinguishes 70 clusters."""
    return MARKERS[cluster % len(MARKERS)]


def shorten(text: Any, limit: int = 24) -> str:
    """A short label with escaped dollar signs, between which matplotlib would read a formula.

    Examples
    --------
    >>> shorten("a" * 50, limit=10)
    'aaaaaaaaa…'
    """
    text = " ".join(str(text).split())
    text = text if len(text) <= limit else text[: limit - 1] + "…"
    return text.replace("$", r"\$")
