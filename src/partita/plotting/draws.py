"""What chains did: one draw in the plane, and how the log probability climbed from several starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from partita.plotting.canvas import color_of, marker_of, open_axes

__all__ = ["plot_climb", "plot_draw"]

TWO_DEVIATIONS = 2.0  # radius of the ellipses
FEWEST_FOR_ELLIPSE = 4


def plot_draw(X: ArrayLike, labels: ArrayLike, *, ax: Any = None) -> Any:
    """Points in the plane, coloured by one partition, with an ellipse of two standard deviations a cluster.

    Parameters
    ----------
    X : array-like of float, shape (N, 2)
        The points.
    labels : array-like of int, shape (N,)
        Their clusters; the largest gets the first colour.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
        One collection of points for each cluster; clusters of at least four points have an ellipse.

    Examples
    --------
    >>> import numpy as np
    >>> from partita.plotting import plot_draw
    >>> X = np.random.default_rng(0).normal(size=(20, 2)) + np.repeat([[0], [9]], 10, axis=0)
    >>> len(plot_draw(X, np.repeat([0, 1], 10)).collections)
    2
    """
    points, z = np.asarray(X, float), np.asarray(labels)
    if points.ndim != 2 or points.shape[1] != 2 or len(points) != len(z):
        raise ValueError(
            f"X has shape {points.shape} for {len(z)} labels: give two columns and a label a row"
        )
    ax = open_axes(ax)
    names, sizes = np.unique(z, return_counts=True)
    for k, name in enumerate(names[np.argsort(-sizes, kind="stable")]):
        own = points[z == name]
        ax.scatter(*own.T, c=color_of(k), marker=marker_of(k), s=14, alpha=0.8, linewidths=0)
        if len(own) >= FEWEST_FOR_ELLIPSE:
            ax.plot(*_ellipse(own).T, color=color_of(k), linewidth=1.2)
    ax.set_title(f"K = {len(names)}", loc="left")
    return ax


def _ellipse(points: np.ndarray) -> np.ndarray:
    angle = np.linspace(0.0, 2 * np.pi, 100)
    values, vectors = np.linalg.eigh(np.cov(points.T))
    circle = np.column_stack([np.cos(angle), np.sin(angle)]) * np.sqrt(np.maximum(values, 0.0))
    return points.mean(axis=0) + TWO_DEVIATIONS * circle @ vectors.T


def plot_climb(
    curves: Mapping[str, ArrayLike], *, quantiles: tuple[float, float] | None = None, ax: Any = None
) -> Any:
    """Log probability against sweeps, of several samplers from several starts.

    Parameters
    ----------
    curves : mapping from the name of a sampler to an array-like of shape (starts, sweeps)
    quantiles : pair of float, optional
        Draw the median over the starts as a thick line and these two quantiles as dashed ones (for example
        ``(0.05, 0.95)``); left out, every start is a line of its own.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from partita.plotting import plot_climb
    >>> ax = plot_climb({"Gibbs": np.zeros((20, 5)), "split-merge": np.ones((20, 5))}, quantiles=(0.1, 0.9))
    >>> len(ax.lines), ax.get_xlabel()
    (6, 'sweep')
    """
    ax = open_axes(ax)
    for k, (name, values) in enumerate(curves.items()):
        runs = np.atleast_2d(np.asarray(values, float))
        sweeps, colour = np.arange(1, runs.shape[1] + 1), color_of(k)
        if quantiles is None:
            ax.plot(sweeps, runs.T, color=colour, linewidth=0.7, alpha=0.6)
            ax.plot([], [], color=colour, label=name)
            continue
        ax.plot(sweeps, np.median(runs, axis=0), color=colour, linewidth=2.2, label=name)
        for q in quantiles:
            ax.plot(sweeps, np.quantile(runs, q, axis=0), color=colour, linewidth=1.0, linestyle="--")
    ax.set_xlabel("sweep")
    ax.set_ylabel("log probability")
    ax.legend(frameon=False)
    return ax
