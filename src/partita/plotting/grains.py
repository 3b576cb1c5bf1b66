"""Picture of a clustering at several scales."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from partita.plotting.canvas import open_axes
from partita.posterior.grain import Grain
from partita.summaries.grains import MAX_LEVELS, GrainLevels, grain_levels

BOX_HEIGHT = 0.34  # of a level, whose distance to the next is 1
WIDEST = 0.94  # share of the width that the boxes of one level take together
LEAST_WIDTH = 0.004
MIN_LABELED = 0.022  # width of a box that has its number
MIN_SIZED = 0.06  # and of one that has its size, too
FRAME_GAP = 0.006  # between the boxes of the answer and their frame
COLORS = "YlGnBu"


def plot_grain(
    model: Any, *, max_levels: int = MAX_LEVELS, grain: Grain | None = None, ax: Any = None
) -> Any:
    """Plot the levels of a grain: groups as boxes, one line per number of groups, and the rows that flow between them.

    The width of a box is the share of the rows in the group, its color is the support of its level, and the bands below
    it lead to its parts. Boxes have the number of the group, from 1, and, where there is room, the number of its rows.
    The answer of the model is framed, and the alternatives are named. Dots between two lines stand for levels that are
    left out.

    Parameters
    ----------
    model : fitted estimator with a grain
    max_levels : int, default=12
        Largest number of levels; the answer and the alternatives are always among them.
    grain : Grain, default=None
        The grain to plot, for a model of views, which has one per view.
    ax : matplotlib Axes, default=None

    Returns
    -------
    matplotlib Axes

    See Also
    --------
    plot_tree : the whole tree over the rows, of estimators that have one.

    Examples
    --------
    >>> from partita import Consensus
    >>> from partita.plotting import plot_grain
    >>> ax = plot_grain(Consensus(random_state=0).fit([[0, 0], [0, 0], [1, 1], [1, 2], [2, 3]]))
    >>> [tick.get_text() for tick in ax.get_yticklabels()]
    ['2', '3 coarse', '4 medium']
    """
    check_is_fitted(model)
    found = grain_levels(model, max_levels, grain=grain)
    if found is None:
        has_views = isinstance(getattr(model, "grain_", None), list)
        raise ValueError(
            "a model of views has one grain per view: give grain=model.grain_[0]"
            if has_views
            else f"this {type(model).__name__} has no grain with at least two groups: there is nothing to plot"
        )
    new = ax is None
    ax = open_axes(ax)
    if new:
        ax.figure.set_size_inches(7.5, max(2.4, 0.75 * len(found.levels) + 1.2))
    boxes = found.boxes(WIDEST, LEAST_WIDTH)
    for at in range(len(found.levels) - 1):
        _draw_flows(ax, found.flows(at), boxes[at], boxes[at + 1], at)
    for at in range(len(found.levels)):
        _draw_level(ax, found, at, boxes[at])
    _finish(ax, found)
    return ax


def _draw_flows(ax: Any, flows: np.ndarray, above: np.ndarray, below: np.ndarray, at: int) -> None:
    """Bands from the lower side of each box to the upper sides of its parts."""
    from matplotlib.path import Path

    top, bottom = at + BOX_HEIGHT / 2, at + 1 - BOX_HEIGHT / 2
    middle = (top + bottom) / 2
    codes = [Path.MOVETO, *[Path.CURVE4] * 3, Path.LINETO, *[Path.CURVE4] * 3, Path.CLOSEPOLY]
    for k, (left, width) in enumerate(above):
        parts = np.flatnonzero(flows[k])
        parts = parts[np.argsort(below[parts, 0])]
        start = left
        for part in parts:
            share = width * flows[k, part] / max(flows[k].sum(), 1e-300)
            a, b = below[part, 0], below[part].sum()
            corners = [(start, top), (start, middle), (a, middle), (a, bottom), (b, bottom)]
            corners += [(b, middle), (start + share, middle), (start + share, top), (start, top)]
            ax.add_patch(_patch(Path(corners, codes)))
            start += share


def _patch(path: Any) -> Any:
    from matplotlib.patches import PathPatch

    return PathPatch(path, facecolor="0.86", edgecolor="none", zorder=1)


def _shade(share: float) -> Any:
    from matplotlib import colormaps

    return colormaps[COLORS](0.08 + 0.8 * min(max(share, 0.0), 1.0))


def _draw_level(ax: Any, found: GrainLevels, at: int, boxes: np.ndarray) -> None:
    from matplotlib.patches import Rectangle

    level = found.levels[at]
    share = level.support / found.top_support
    color, ink = _shade(share), "white" if share > 0.55 else "0.15"
    for k, (left, width) in enumerate(boxes):
        # an outline as wide as a narrow box would hide its color
        style: dict[str, Any] = {
            "facecolor": color,
            "edgecolor": "0.45",
            "linewidth": 0.6 if width >= MIN_LABELED else 0.2,
        }
        ax.add_patch(Rectangle((left, at - BOX_HEIGHT / 2), width, BOX_HEIGHT, zorder=2, **style))
        if width >= MIN_LABELED:
            size = f"\n{level.sizes[k]:,.0f}" if width >= MIN_SIZED else ""
            ax.text(
                left + width / 2, at, f"{k + 1}{size}", ha="center", va="center", fontsize=7, color=ink,
                linespacing=1.05, zorder=3,
            )  # fmt: skip
    if level.n_clusters == found.answer:
        left, right = boxes[:, 0].min() - FRAME_GAP, boxes.sum(axis=1).max() + FRAME_GAP
        corner, height = (left, at - BOX_HEIGHT / 2 - 5 * FRAME_GAP), BOX_HEIGHT + 10 * FRAME_GAP
        ax.add_patch(Rectangle(corner, right - left, height, fill=False, edgecolor="black", linewidth=1.4))


def _finish(ax: Any, found: GrainLevels) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    ax.set_xlim(-0.015, 1.015)
    ax.set_ylim(len(found.levels) - 1 + 0.6, -0.6)
    names = [f"{level.n_clusters} {level.name}".strip() for level in found.levels]
    ax.set_yticks(range(len(names)), names)
    steps = np.diff([level.n_clusters for level in found.levels])
    left_out = [at + 0.5 for at in np.flatnonzero(steps > 1)]
    ax.set_yticks(left_out, ["⋮"] * len(left_out), minor=True)
    ax.set_ylabel("number of groups")
    ax.set_xticks([])
    ax.tick_params(which="both", length=0)
    for side in ax.spines.values():
        side.set_visible(False)
    framed = " (the answer is framed)" if any(one.n_clusters == found.answer for one in found.levels) else ""
    ax.set_title(f"groups by level{framed}", loc="left", fontsize=10)
    shades = LinearSegmentedColormap.from_list("support", [_shade(share) for share in np.linspace(0, 1, 32)])
    bar = ax.figure.colorbar(
        ScalarMappable(Normalize(0, found.top_support), shades), ax=ax, shrink=0.7, pad=0.02
    )
    bar.set_label("support", fontsize=9)
    bar.ax.tick_params(labelsize=8)
