"""Pictures of co-clustering and of the members of an ensemble."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from partita.plotting.canvas import color_of, open_axes, shorten
from partita.summaries import PairMap, pair_map, summarize_members

MAX_NAMES = 60


def plot_coclustering(model: Any, X: Any = None, *, max_objects: int = 500, ax: Any = None) -> Any:
    """Plot how often two objects are in the same cluster, ordered by cluster and confidence.

    Parameters
    ----------
    model : fitted estimator, or PairMap
        A consensus, a mixture fitted by chains, ... (see :func:`partita.summaries.pair_map`).
    X : label matrix of a consensus, or table of a mixture, default=None
        What was fitted; needed by models that do not store it.
    max_objects : int, default=500
        Maximum number of objects. Of more, an even sample is shown, and the title says so.
    ax : matplotlib Axes, default=None

    Returns
    -------
    matplotlib Axes
        One image, with lines between the clusters.

    Examples
    --------
    >>> from partita import Consensus
    >>> from partita.plotting import plot_coclustering
    >>> model = Consensus(random_state=0).fit([[0, 0, 1], [1, 1, 0], [0, 0, 1], [1, 1, 1]])
    >>> plot_coclustering(model).images[0].get_array().shape
    (4, 4)
    """
    if not isinstance(model, PairMap):
        check_is_fitted(model, "labels_")
    found = model if isinstance(model, PairMap) else pair_map(model, X, size=max_objects)
    if found is None:
        raise ValueError(
            f"{type(model).__name__} does not store what co-clustering needs: pass X, what it was fitted to"
        )
    found = found.take(max_objects)
    ax = open_axes(ax)
    n = len(found.objects)
    image = ax.imshow(found.values, vmin=0.0, vmax=1.0, cmap="Blues", interpolation="nearest", aspect="equal")
    edges = np.flatnonzero(np.diff(found.labels)) + 1
    for edge in edges:
        ax.axhline(edge - 0.5, color="0.4", linewidth=0.6)
        ax.axvline(edge - 0.5, color="0.4", linewidth=0.6)
    starts, ends = np.concatenate([[0], edges]), np.concatenate([edges, [n]])
    ax.set_yticks((starts + ends - 1) / 2, [str(found.labels[a] + 1) for a in starts])
    for tick, a in zip(ax.get_yticklabels(), starts):
        tick.set_color(color_of(int(found.labels[a])))
    ax.set_xticks([])
    ax.set_ylabel("group")
    if n < found.n_objects:
        ax.set_title(f"{n} of {found.n_objects} objects", loc="left")
    ax.figure.colorbar(image, ax=ax, label="together", shrink=0.8)
    return ax


def plot_members(model: Any, *, max_members: int = MAX_NAMES, ax: Any = None) -> Any:
    """Plot the weights of the members of a consensus, the largest on top.

    Parameters
    ----------
    model : fitted consensus estimator
    max_members : int, default=60
        Maximum number of members; those with the largest weights are shown, and the title says so.
    ax : matplotlib Axes, default=None

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from partita import Consensus
    >>> from partita.plotting import plot_members
    >>> ax = plot_members(Consensus(random_state=0).fit([[0, 0, 1], [0, 0, 1], [1, 1, 1], [1, 1, 0]]))
    >>> len(ax.containers[0])
    3
    """
    found = summarize_members(model)
    if found is None:
        raise ValueError(
            f"{type(model).__name__} has no members: plot_members draws the weights of a fitted consensus"
        )
    order = np.argsort(-found.weights, kind="stable")[:max_members]
    ax = open_axes(ax)
    ax.barh(np.arange(len(order)), found.weights[order], color="0.65")
    ax.set_yticks(np.arange(len(order)), [shorten(found.names[m]) for m in order])
    ax.invert_yaxis()
    ax.set_xlabel("weight")
    if len(order) < len(found.weights):
        ax.set_title(f"the {len(order)} largest weights of {len(found.weights)} members", loc="left")
    return ax


def plot_member_agreement(model: Any, X: Any = None, *, ax: Any = None) -> Any:
    """Plot the adjusted Rand index of all pairs of members. Similar members are adjacent.

    Parameters
    ----------
    model : fitted consensus estimator
    X : label matrix that was fitted
        Not needed for :class:`~partita.EnsembleClustering`, which stores it.
    ax : matplotlib Axes, default=None

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from partita import Consensus
    >>> from partita.plotting import plot_member_agreement
    >>> Y = [[0, 0, 1], [0, 0, 1], [1, 1, 1], [1, 1, 0]]
    >>> plot_member_agreement(Consensus(random_state=0).fit(Y), Y).images[0].get_array().shape
    (3, 3)
    """
    found = summarize_members(model, X)
    if found is None or found.similarity is None or found.compared is None:
        raise ValueError(
            f"{type(model).__name__}: the labels of at least three members are needed; pass X, the label matrix"
        )
    ax = open_axes(ax)
    image = ax.imshow(found.similarity, vmin=0.0, vmax=1.0, cmap="Blues", interpolation="nearest")
    if len(found.compared) <= MAX_NAMES:
        ax.set_yticks(np.arange(len(found.compared)), [shorten(found.names[m]) for m in found.compared])
    ax.set_xticks([])
    ax.figure.colorbar(image, ax=ax, label="adjusted Rand index", shrink=0.8)
    return ax
