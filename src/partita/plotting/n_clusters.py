"""Pictures of the number of clusters: its posterior and prior, and the scores of a consensus."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from partita.plotting.canvas import color_of, open_axes
from partita.summaries.counts import MIN_PRIOR, prior_probabilities


def plot_n_clusters(model: Any, *, prior: bool = True, ax: Any = None) -> Any:
    """Plot P(K): bars for the posterior, points for the prior.

    If bars and points are similar, the data say little about the number of clusters. Where the concentration is
    learned, the prior is averaged over the prior of the concentration.

    Parameters
    ----------
    model : fitted estimator
        With ``n_clusters_posterior_``: a mixture fitted by chains, or a consensus (how often each number is the best
        one when the members are resampled; there is no prior then).
    prior : bool, default=True
        Whether to plot the prior as well (not for more than 20,000 objects).
    ax : matplotlib Axes, default=None

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from partita import Mixture
    >>> from partita.plotting import plot_n_clusters
    >>> X = np.repeat([[-9.0], [9.0]], 20, axis=0) + np.random.default_rng(0).normal(size=(40, 1))
    >>> model = Mixture("gaussian", n_chains=2, n_draws=50, burn_in=20, random_state=0)
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # the chains are too short for reliable results
    ...     ax = plot_n_clusters(model.fit(X))
    >>> ax.get_ylabel()
    'probability'
    """
    model = getattr(model, "consensus_", model)
    check_is_fitted(model, "n_clusters_posterior_")
    ax = open_axes(ax)
    after = model.n_clusters_posterior_
    K = np.arange(min(after), max(after) + 1)
    ax.bar(K, [after.get(int(k), 0.0) for k in K], color=color_of(0), width=0.7, label="posterior")
    before = prior_probabilities(model) if prior and hasattr(model, "trace_") else None
    if before is not None:
        shown = np.union1d(np.flatnonzero(before >= MIN_PRIOR), K[len(before) > K])
        ax.plot(shown, before[shown], "o", color="0.25", markersize=5, label="prior")
        ax.legend(frameon=False)
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set_xlabel("number of clusters")
    ax.set_ylabel("probability")
    return ax


def plot_k_scores(model: Any, *, ax: Any = None) -> Any:
    """Plot the score of every number of clusters, and how often each is the best when the members are resampled.

    Parameters
    ----------
    model : fitted Consensus
    ax : matplotlib Axes, default=None

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
        label="share of resamples",
    )
    ax.plot(
        list(model.n_clusters_scores_),
        list(model.n_clusters_scores_.values()),
        color="#0072b2",
        marker=".",
        label=getattr(model, "_n_clusters_score", "score"),
    )
    ax.axvline(chosen, color="0.35", linewidth=1, linestyle="--")
    ax.set_xlabel("number of clusters")
    ax.set_ylabel("score (mean margin)")
    ax.legend(frameon=False, loc="best")
    return ax
