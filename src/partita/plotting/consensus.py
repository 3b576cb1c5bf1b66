"""The choice of the number of clusters of a consensus."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from partita.plotting.canvas import open_axes

__all__ = ["plot_k_scores"]


def plot_k_scores(model: Any, *, ax: Any = None) -> Any:
    """Score of every number of clusters, and how often each wins when the members are drawn anew.

    Parameters
    ----------
    model : fitted Consensus
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from partita import Consensus
    >>> from partita.plotting import plot_k_scores
    >>> labels = [[0, 0, 1], [0, 0, 1], [1, 1, 1], [1, 2, 0], [1, 1, 0]]
    >>> plot_k_scores(Consensus(random_state=0).fit(labels)).get_xlabel()
    'number of clusters'
    """
    check_is_fitted(model, "n_clusters_scores_")
    ax = open_axes(ax)
    chosen, wins = model.n_clusters_, model.n_clusters_posterior_
    top = max(max(model.n_clusters_scores_.values()), 1e-12)
    ax.bar(
        list(wins),
        [top * p for p in wins.values()],
        color="0.85",
        label="wins, members redrawn",
    )
    ax.plot(
        list(model.n_clusters_scores_),
        list(model.n_clusters_scores_.values()),
        color="#0072b2",
        marker=".",
        label="score",
    )
    ax.axvline(chosen, color="0.35", linewidth=1, linestyle="--")
    ax.set_xlabel("number of clusters")
    ax.set_ylabel("score (mean margin)")
    ax.legend(frameon=False, loc="best")
    return ax
