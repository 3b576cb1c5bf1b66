"""Pictures of nonparametric priors: mixtures, stick breaking, restaurants (Murphy, figures 25.3 and 25.5)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from partita.plotting.canvas import COLORS, color_of, marker_of, open_axes

RADIUS = 2.0  # of the ellipses, in standard deviations


def plot_mixture_draw(draw: Any, *, n_samples: int | None = None, ax: Any = None) -> Any:
    """Plot rows of a mixture in the plane, with an ellipse of two standard deviations per component.

    The line width of an ellipse grows with the share of its component.

    Parameters
    ----------
    draw : MixtureDraw
        From :func:`partita.datasets.sample_dp_mixture`, with two features.
    n_samples : int, default=None
        Number of rows to plot, from the first; None means all.
    ax : matplotlib Axes, default=None

    Returns
    -------
    matplotlib Axes
        One collection of points and one line per component.

    Examples
    --------
    >>> from partita.datasets import sample_dp_mixture
    >>> from partita.plotting import plot_mixture_draw
    >>> ax = plot_mixture_draw(sample_dp_mixture(100, random_state=0), n_samples=50)
    >>> ax.get_title("left").startswith("N = 50, K = ")
    True
    """
    if draw.X.shape[1] != 2:
        raise ValueError(f"the draw has {draw.X.shape[1]} features: give a draw with two")
    X, z = draw.X[:n_samples], draw.labels[:n_samples]
    ax = open_axes(ax)
    sizes = np.bincount(z)
    angle = np.linspace(0.0, 2.0 * np.pi, 100)
    circle = RADIUS * np.column_stack([np.cos(angle), np.sin(angle)])
    for k in range(len(sizes)):  # a component has the same color for every n_samples
        ax.scatter(*X[z == k].T, c=color_of(k), marker=marker_of(k), s=10, alpha=0.7, linewidths=0)
        outline = draw.means[k] + circle @ np.linalg.cholesky(draw.covariances[k]).T
        ax.plot(*outline.T, color=color_of(k), linewidth=0.6 + 3.0 * sizes[k] / len(z))
    ax.set_title(f"N = {len(z)}, K = {len(sizes)}", loc="left")
    return ax


def plot_stick(weights: ArrayLike, *, ax: Any = None) -> Any:
    """Plot how a stick of length 1 is broken: one line per piece, with the remaining part.

    Parameters
    ----------
    weights : array-like of float, shape (n_weights,)
        The pieces; they sum to 1 at most.
    ax : matplotlib Axes, default=None

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from partita.datasets import sample_stick_breaking
    >>> from partita.plotting import plot_stick
    >>> len(plot_stick(sample_stick_breaking(2.0, n_weights=5, random_state=0)[0]).patches)
    10
    """
    pieces = _check_pieces(weights)
    ax = open_axes(ax)
    starts = np.append(0.0, np.cumsum(pieces)[:-1])
    for k, (start, length) in enumerate(zip(starts, pieces, strict=True)):
        left = max(1.0 - start - length, 0.0)
        ax.barh(k, length, left=start, height=0.6, color=COLORS[0])
        ax.barh(k, left, left=start + length, height=0.6, color="white", edgecolor="0.6", linewidth=0.8)
    ax.set_yticks(range(len(pieces)), [f"$\\pi_{{{k + 1}}}$" for k in range(len(pieces))])
    ax.invert_yaxis()
    ax.set_xlim(0.0, 1.0)
    ax.set_xlabel("stick")
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.tick_params(axis="y", length=0)
    return ax


def plot_stick_weights(weights: ArrayLike, *, title: str | None = None, ax: Any = None) -> Any:
    """Plot the weights of one stick-breaking draw as bars, in the order of the draw.

    Parameters
    ----------
    weights : array-like of float, shape (n_weights,)
    title : str, default=None
    ax : matplotlib Axes, default=None

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from partita.datasets import sample_stick_breaking
    >>> from partita.plotting import plot_stick_weights
    >>> len(plot_stick_weights(sample_stick_breaking(5.0, random_state=0)[0]).patches)
    20
    """
    pieces = _check_pieces(weights)
    ax = open_axes(ax)
    ax.bar(np.arange(1, len(pieces) + 1), pieces, color=COLORS[0], width=0.8)
    ax.set_xlabel("k")
    ax.set_ylabel(r"$\pi_k$")
    if title is not None:
        ax.set_title(title, loc="left")
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    return ax


def plot_table_growth(
    growth: ArrayLike, *, expected: ArrayLike | None = None, label: str | None = None, ax: Any = None
) -> Any:
    """Plot the number of tables by the number of customers, one line per restaurant.

    Parameters
    ----------
    growth : array-like of int, shape (draws, customers)
        From :func:`partita.datasets.table_growth`.
    expected : array-like of float, shape (customers,), default=None
        Expected numbers, shown as a thick line.
    label : str, default=None
        Name of these restaurants. Each call with the same axes uses the next color.
    ax : matplotlib Axes, default=None

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from partita.datasets import sample_restaurant, table_growth
    >>> from partita.plotting import plot_table_growth
    >>> len(plot_table_growth(table_growth(sample_restaurant(50, n_draws=4, random_state=0))).lines)
    4
    """
    runs = np.atleast_2d(np.asarray(growth))
    ax = open_axes(ax)
    color = color_of(len({line.get_color() for line in ax.lines}))
    customers = np.arange(1, runs.shape[1] + 1)
    for number, run in enumerate(runs):
        own = label if number == 0 and expected is None else None
        ax.plot(customers, run, color=color, linewidth=0.8, alpha=0.6, drawstyle="steps-post", label=own)
    if expected is not None:
        ax.plot(customers, np.asarray(expected), color=color, linewidth=2.2, label=label)
    ax.set_xlabel("customers")
    ax.set_ylabel("tables")
    if label is not None:
        ax.legend(frameon=False)
    return ax


def _check_pieces(weights: ArrayLike) -> np.ndarray:
    pieces = np.asarray(weights, float)
    if pieces.ndim != 1 or not (pieces >= 0).all() or not pieces.sum() <= 1.0 + 1e-9:
        raise ValueError(
            f"weights of shape {pieces.shape} are not the pieces of one stick: give one-dimensional numbers that are "
            "not negative and whose sum is at most 1"
        )
    return pieces
