"""Pictures that compare two clusterings of the same objects."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from partita.plotting.canvas import color_of, open_axes, shorten
from partita.summaries import Flow, flow

GAP = 0.02  # between the groups of one side, as a fraction of the height
MAX_NUMBERED_GROUPS = 20  # counts are written into the cells of smaller tables


def plot_contingency(
    a: ArrayLike, b: ArrayLike, *, names: tuple[str, str] = ("a", "b"), ax: Any = None
) -> Any:
    """Plot the number of objects per pair of groups of two clusterings, as a heat map with numbers.

    The rows are the groups of `a`, the largest first; the columns are the groups of `b`, in the order that matches
    them best.

    Parameters
    ----------
    a, b : array-like
        Labels of any kind; objects without a label in one of the two (None, NaN, -1) are left out.
    names : pair of str, default=("a", "b")
        Names of the two clusterings.
    ax : matplotlib Axes, default=None

    Returns
    -------
    matplotlib Axes
        One image, of the shares within each row; the title has the adjusted Rand index.

    Examples
    --------
    >>> from partita.plotting import plot_contingency
    >>> ax = plot_contingency(["u", "u", "v"], [7, 7, 3])
    >>> ax.get_title(loc="left"), [text.get_text() for text in ax.texts]
    ('adjusted Rand index 1.00', ['2', '0', '0', '1'])
    """
    found = flow(a, b)
    ax = open_axes(ax)
    shares = found.counts / found.counts.sum(axis=1, keepdims=True)
    ax.imshow(shares, vmin=0.0, vmax=1.0, cmap="Blues", interpolation="nearest", aspect="auto")
    ax.set_yticks(np.arange(len(found.row_names)), [shorten(name) for name in found.row_names])
    ax.set_xticks(np.arange(len(found.column_names)), [shorten(name) for name in found.column_names])
    if sum(len(shorten(name)) for name in found.column_names) > 40:
        ax.tick_params(axis="x", labelrotation=60)
    if max(found.counts.shape) <= MAX_NUMBERED_GROUPS:
        for (r, c), count in np.ndenumerate(found.counts):
            ax.text(
                c, r, f"{count}", ha="center", va="center", color="white" if shares[r, c] > 0.55 else "0.25"
            )
    ax.set_ylabel(shorten(names[0], 40))
    ax.set_xlabel(shorten(names[1], 40))
    ax.set_title(_title(found), loc="left")
    return ax


def plot_alluvial(a: ArrayLike, b: ArrayLike, *, names: tuple[str, str] = ("a", "b"), ax: Any = None) -> Any:
    """Plot how the groups of two clusterings correspond, as bands whose widths are numbers of objects.

    Parameters
    ----------
    a, b : array-like
        Labels of any kind; objects without a label in one of the two (None, NaN, -1) are left out.
    names : pair of str, default=("a", "b")
        Names of the two clusterings.
    ax : matplotlib Axes, default=None

    Returns
    -------
    matplotlib Axes
        One collection per pair of groups that share objects, in the color of the group of `a`.

    Examples
    --------
    >>> from partita.plotting import plot_alluvial
    >>> len(plot_alluvial([0, 0, 1, 1], [0, 0, 0, 1]).collections)
    3
    """
    found = flow(a, b)
    ax = open_axes(ax)
    total = float(found.counts.sum())
    gaps = GAP * (max(found.counts.shape) - 1)
    left, right = (_bases(found.counts.sum(axis=side) / total, gaps) for side in (1, 0))
    bend = np.linspace(0.0, 1.0, 40)
    s = 3 * bend**2 - 2 * bend**3  # level at both ends
    x = 0.06 + 0.88 * bend
    start, end = left.copy(), right.copy()
    for (r, c), count in np.ndenumerate(found.counts):
        if not count:
            continue
        height = count / total
        low = start[r] + (end[c] - start[r]) * s
        ax.fill_between(x, low, low + height, color=color_of(r), alpha=0.55, linewidth=0)
        start[r] += height
        end[c] += height
    _pillars(ax, 0.0, left, found.counts.sum(axis=1) / total, found.row_names, "right", colors=True)
    _pillars(ax, 0.95, right, found.counts.sum(axis=0) / total, found.column_names, "left", colors=False)
    ax.set_xlim(-0.35, 1.35)
    ax.set_ylim(1.02 + gaps, -0.02)
    ax.set_xticks([0.03, 0.97], [shorten(name, 30) for name in names])
    ax.set_yticks([])
    for side in ax.spines.values():
        side.set_visible(False)
    ax.set_title(_title(found), loc="left")
    return ax


def _bases(shares: np.ndarray, gaps: float) -> np.ndarray:
    """The lower end of each group of one side; the gaps of both sides have the same sum."""
    between = gaps / max(len(shares) - 1, 1)
    return np.concatenate([[0.0], np.cumsum(shares)[:-1]]) + between * np.arange(len(shares))


def _pillars(ax, x, bases, shares, names, side, *, colors) -> None:
    for k, (base, share, name) in enumerate(zip(bases, shares, names)):
        ax.bar(x, share, bottom=base, width=0.05, align="edge", color=color_of(k) if colors else "0.55")
        at = x - 0.02 if side == "right" else x + 0.07
        ax.text(at, base + share / 2, shorten(name), ha=side, va="center")


def _title(found: Flow) -> str:
    text = f"adjusted Rand index {round(found.adjusted_rand, 2) + 0.0:.2f}"  # no -0.00
    return text + (f" ({found.n_left_out} left out)" if found.n_left_out else "")
