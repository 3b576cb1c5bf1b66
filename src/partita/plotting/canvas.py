"""Where things are drawn: axes, the colours and marks of clusters, short labels."""

from __future__ import annotations

from typing import Any

__all__ = ["COLORS", "MARKERS", "color_of", "marker_of", "open_axes", "shorten"]

# ten colours that stay apart for colour-blind readers as far as ten can; the marks help where they repeat
COLORS = (
    "#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#8c6bb1", "#7f7f7f", "#b8a000", "#a6451c",
)  # fmt: skip
MARKERS = ("o", "s", "^", "D", "v", "P", "X")


def open_axes(ax: Any = None) -> Any:
    """The given axes, or those of a new figure."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "drawing needs matplotlib, which is not installed: pip install 'partita[plot]'"
        ) from error
    return plt.subplots(layout="constrained")[1]


def color_of(cluster: int) -> str:
    """The colour of a cluster, the same in every picture; outliers (-1) are black."""
    return COLORS[cluster % len(COLORS)] if cluster >= 0 else "black"


def marker_of(cluster: int) -> str:
    """The mark of a cluster; together with the colour it tells 70 clusters apart."""
    return MARKERS[cluster % len(MARKERS)]


def shorten(text: Any, limit: int = 24) -> str:
    """A label that fits, with no formula in it: matplotlib reads text between dollar signs as mathematics.

    Examples
    --------
    >>> shorten("a" * 50, limit=10)
    'aaaaaaaaa…'
    """
    text = " ".join(str(text).split())
    text = text if len(text) <= limit else text[: limit - 1] + "…"
    return text.replace("$", r"\$")
