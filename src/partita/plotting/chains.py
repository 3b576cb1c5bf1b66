"""Pictures of chains: traces, single draws in the plane, and the log probability by sweep."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from partita.plotting.canvas import color_of, marker_of, open_axes

QUANTITIES = {
    "n_clusters": "number of clusters",
    "log_joint": "log joint",
    "concentration": "concentration",
    "discount": "discount",
}
RADIUS = 2.0  # of the ellipses, in standard deviations
MIN_POINTS = 4  # for an ellipse


def plot_trace(model: Any, quantity: str = "n_clusters", *, ax: Any = None) -> Any:
    """Plot one quantity of the draws, one line per chain. Chains that agree overlap.

    Parameters
    ----------
    model : fitted estimator
        With ``trace_``: a mixture fitted by chains.
    quantity : {"n_clusters", "log_joint", "concentration", "discount"}, default="n_clusters"
    ax : matplotlib Axes, default=None

    Returns
    -------
    matplotlib Axes
        One line per chain.
    """
    check_is_fitted(model, "trace_")
    if quantity not in QUANTITIES:
        raise ValueError(f"quantity is {quantity!r}: choose one of {', '.join(QUANTITIES)}")
    values = np.asarray(getattr(model.trace_, quantity), dtype=float)
    if np.isnan(values).all():
        raise ValueError(f"the prior {type(model.prior_).__name__} has no {quantity}")
    ax = open_axes(ax)
    for chain in np.unique(model.trace_.chain):
        own = values[model.trace_.chain == chain]
        style = {"drawstyle": "steps-mid"} if quantity == "n_clusters" else {}
        ax.plot(
            np.arange(1, len(own) + 1), own, color=color_of(int(chain)), linewidth=1, alpha=0.8,
            label=f"chain {chain}", **style,
        )  # fmt: skip
    if quantity == "n_clusters":
        ax.yaxis.get_major_locator().set_params(integer=True)
    ax.set_xlabel("draw")
    ax.set_ylabel(QUANTITIES[quantity])
    ax.legend(frameon=False)
    return ax


def plot_draw(X: ArrayLike, labels: ArrayLike, *, ax: Any = None) -> Any:
    """Plot points in the plane, colored by cluster, with an ellipse of two standard deviations per cluster.

    Parameters
    ----------
    X : array-like of float, shape (N, 2)
        The points.
    labels : array-like of int, shape (N,)
        Their clusters; the largest cluster has the first color.
    ax : matplotlib Axes, default=None

    Returns
    -------
    matplotlib Axes
        One collection of points per cluster; clusters of at least four points have an ellipse.

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
            f"X has shape {points.shape} for {len(z)} labels: give two columns and one label per row"
        )
    ax = open_axes(ax)
    names, sizes = np.unique(z, return_counts=True)
    for k, name in enumerate(names[np.argsort(-sizes, kind="stable")]):
        own = points[z == name]
        ax.scatter(*own.T, c=color_of(k), marker=marker_of(k), s=14, alpha=0.8, linewidths=0)
        if len(own) >= MIN_POINTS:
            ax.plot(*_ellipse(own).T, color=color_of(k), linewidth=1.2)
    ax.set_title(f"K = {len(names)}", loc="left")
    return ax


def _ellipse(points: np.ndarray) -> np.ndarray:
    angle = np.linspace(0.0, 2 * np.pi, 100)
    values, vectors = np.linalg.eigh(np.cov(points.T))
    circle = np.column_stack([np.cos(angle), np.sin(angle)]) * np.sqrt(np.maximum(values, 0.0))
    return points.mean(axis=0) + RADIUS * circle @ vectors.T


def plot_climb(
    curves: Mapping[str, ArrayLike], *, quantiles: tuple[float, float] | None = None, ax: Any = None
) -> Any:
    """Plot the log probability by sweep, for several samplers and starts.

    Parameters
    ----------
    curves : mapping from the name of a sampler to an array-like of shape (starts, sweeps)
    quantiles : pair of float, default=None
        Plot the median over the starts as a thick line and these two quantiles as dashed lines, for example
        ``(0.05, 0.95)``. None means one line per start.
    ax : matplotlib Axes, default=None

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
        sweeps, color = np.arange(1, runs.shape[1] + 1), color_of(k)
        if quantiles is None:
            ax.plot(sweeps, runs.T, color=color, linewidth=0.7, alpha=0.6)
            ax.plot([], [], color=color, label=name)
            continue
        ax.plot(sweeps, np.median(runs, axis=0), color=color, linewidth=2.2, label=name)
        for q in quantiles:
            ax.plot(sweeps, np.quantile(runs, q, axis=0), color=color, linewidth=1.0, linestyle="--")
    ax.set_xlabel("sweep")
    ax.set_ylabel("log probability")
    ax.legend(frameon=False)
    return ax
