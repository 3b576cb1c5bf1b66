"""Who belongs together: pairs of objects, and members against members."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from partita.plotting.canvas import color_of, open_axes, shorten
from partita.summaries import PairMap, summarize_members, pair_map

__all__ = ["plot_coclustering", "plot_member_agreement", "plot_members"]

MOST_NAMES = 60


def plot_coclustering(model: Any, X: Any = None, *, size: int = 500, ax: Any = None) -> Any:
    """How often two objects belong together, in the order of the clusters, the surest of each first.

    Parameters
    ----------
    model : fitted estimator, or PairMap
        A consensus, a mixture fitted by chains, ... (see :func:`partita.summaries.pair_map`).
    X : label matrix of a consensus, or table of a mixture, optional
        Needed by models that do not keep what it takes.
    size : int, default 500
        Most objects; of more, an even sample is drawn, and the title says so.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
        One image; lines part the clusters.

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
    found = model if isinstance(model, PairMap) else pair_map(model, X, size=size)
    if found is None:
        raise ValueError(
            f"{type(model).__name__} says nothing about pairs by itself: pass X, what it was fitted to"
        )
    found = found.take(size)
    ax = open_axes(ax)
    n = len(found.objects)
    image = ax.imshow(found.values, vmin=0.0, vmax=1.0, cmap="Blues", interpolation="nearest", aspect="equal")
    edges = np.flatnonzero(np.diff(found.labels)) + 1
    for edge in edges:
        ax.axhline(edge - 0.5, color="0.4", linewidth=0.6)
        ax.axvline(edge - 0.5, color="0.4", linewidth=0.6)
    starts, ends = np.concatenate([[0], edges]), np.concatenate([edges, [n]])
    ax.set_yticks((starts + ends - 1) / 2, [str(found.labels[a]) for a in starts])
    for tick, a in zip(ax.get_yticklabels(), starts):
        tick.set_color(color_of(int(found.labels[a])))
    ax.set_xticks([])
    ax.set_ylabel("cluster")
    if n < found.n_objects:
        ax.set_title(f"{n} of {found.n_objects} objects", loc="left")
    ax.figure.colorbar(image, ax=ax, label="together", shrink=0.8)
    return ax


def plot_members(model: Any, *, most: int = MOST_NAMES, ax: Any = None) -> Any:
    """Weights of the members of a consensus, the heaviest on top.

    Parameters
    ----------
    model : fitted consensus estimator
    most : int, default 60
        Draw only the heaviest; the title says so.
    ax : matplotlib Axes, optional

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
    order = np.argsort(-found.weights, kind="stable")[:most]
    ax = open_axes(ax)
    ax.barh(np.arange(len(order)), found.weights[order], color="0.65")
    ax.set_yticks(np.arange(len(order)), [shorten(found.names[m]) for m in order])
    ax.invert_yaxis()
    ax.set_xlabel("weight")
    if len(order) < len(found.weights):
        ax.set_title(f"the heaviest {len(order)} of {len(found.weights)} members", loc="left")
    return ax


def plot_member_agreement(model: Any, X: Any = None, *, ax: Any = None) -> Any:
    """Adjusted Rand index of members with each other, those alike side by side: dark blocks repeat each other.

    Parameters
    ----------
    model : fitted consensus estimator
    X : label matrix that was fitted
        Not needed by :class:`~partita.EnsembleClustering`, which keeps it.
    ax : matplotlib Axes, optional

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
    if len(found.compared) <= MOST_NAMES:
        ax.set_yticks(np.arange(len(found.compared)), [shorten(found.names[m]) for m in found.compared])
    ax.set_xticks([])
    ax.figure.colorbar(image, ax=ax, label="adjusted Rand index", shrink=0.8)
    return ax
