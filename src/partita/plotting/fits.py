"""Pictures of confidence and of the objective of the fit."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from partita.plotting.canvas import color_of, open_axes
from partita.summaries.pairs import order_objects, spread


def plot_confidence(model: Any, *, threshold: float = 0.8, ax: Any = None) -> Any:
    """Plot a histogram of ``confidence_``.

    Parameters
    ----------
    model : fitted estimator
    threshold : float, default=0.8
        Objects below it are shown as uncertain.
    ax : matplotlib Axes, default=None

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from partita import Mixture
    >>> from partita.plotting import plot_confidence
    >>> X = np.random.default_rng(0).normal(size=(40, 1))
    >>> ax = plot_confidence(Mixture("gaussian", n_clusters=2, inference="em", random_state=0).fit(X))
    >>> ax.get_xlabel()
    'probability of its own cluster'
    """
    check_is_fitted(model, "confidence_")
    ax = open_axes(ax)
    confidence = np.asarray(model.confidence_)
    edges = np.linspace(0.0, 1.0, 21)
    uncertain = confidence < threshold
    ax.hist(
        [confidence[uncertain], confidence[~uncertain]],
        bins=edges,
        stacked=True,
        color=["0.15", "0.72"],
        label=[f"uncertain (below {threshold:g})", "certain"],
    )
    ax.axvline(threshold, color="0.35", linewidth=1, linestyle="--")
    ax.set_xlim(0.0, 1.0)
    ax.set_xlabel("probability of its own cluster")
    ax.set_ylabel("objects")
    ax.legend(frameon=False)
    return ax


def plot_confidence_by_object(model: Any, *, max_objects: int = 2000, ax: Any = None) -> Any:
    """Plot ``confidence_`` of every object, ordered by cluster and confidence.

    Parameters
    ----------
    model : fitted estimator
    max_objects : int, default=2000
        Maximum number of objects. Of more, an even sample is shown, and the title says so.
    ax : matplotlib Axes, default=None

    Returns
    -------
    matplotlib Axes
        One area per cluster.

    Examples
    --------
    >>> from partita import Consensus
    >>> from partita.plotting import plot_confidence_by_object
    >>> model = Consensus(random_state=0).fit([[0, 0, 1], [1, 1, 0], [0, 0, 1], [1, 1, 1]])
    >>> len(plot_confidence_by_object(model).collections)
    2
    """
    check_is_fitted(model, "confidence_")
    ax = open_axes(ax)
    labels, confidence = np.asarray(model.labels_), np.asarray(model.confidence_, float)
    order = order_objects(labels, confidence)
    shown = order[spread(len(order), max_objects)]
    for k in np.unique(labels[shown]):
        at = np.flatnonzero(labels[shown] == k)
        edges = np.concatenate([at, [at[-1] + 1]])
        values = confidence[shown[at]]
        ax.fill_between(
            edges, np.append(values, values[-1]), step="post", color=color_of(int(k)), linewidth=0
        )
    ax.set_ylim(0.0, 1.0)
    ax.set_xlim(0, len(shown))
    ax.set_xlabel("objects, ordered by cluster")
    ax.set_ylabel("confidence")
    if len(shown) < len(order):
        ax.set_title(f"{len(shown)} of {len(order)} objects", loc="left")
    return ax


def plot_objective(model: Any, *, ax: Any = None) -> Any:
    """Plot the objective of the best start by iteration (``objective_trace_``).

    Parameters
    ----------
    model : fitted estimator
    ax : matplotlib Axes, default=None

    Returns
    -------
    matplotlib Axes
    """
    check_is_fitted(model, "objective_trace_")
    ax = open_axes(ax)
    trace = np.asarray(model.objective_trace_)
    ax.plot(np.arange(1, len(trace) + 1), trace, color="#0072b2", marker="." if len(trace) < 40 else None)
    ax.set_xlabel("iteration of the best start")
    ax.set_ylabel("objective")
    return ax
