"""What chains of draws say: how many clusters, and whether the chains agree."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from partita.partitions import n_clusters_prior
from partita.plotting.canvas import color_of, open_axes

__all__ = ["plot_n_clusters", "plot_trace"]

QUANTITIES = {
    "n_clusters": "number of clusters",
    "log_joint": "log joint",
    "concentration": "concentration",
    "discount": "discount",
}
LEAST_PRIOR = 0.005  # prior mass that is worth a place beside the draws
MAX_OBJECTS = 20_000  # the prior P(K) of more takes long


def plot_n_clusters(model: Any, *, prior: bool = True, ax: Any = None) -> Any:
    """P(K): bars for the posterior, points for the prior at the concentration that was learned.

    Where bars and points look alike, the data said little about the number of clusters.

    Parameters
    ----------
    model : fitted estimator
        With ``n_clusters_posterior_``: a mixture fitted by chains, or a consensus (how often each number is best when
        the members are drawn anew; there is no prior then).
    prior : bool, default True
        Whether the prior is drawn, too (not for more than 20,000 objects).
    ax : matplotlib Axes, optional

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
    ...     warnings.simplefilter("ignore")  # chains this short are not to be trusted
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
    n_objects = int(model.weight_total_) if hasattr(model, "weight_total_") else len(model.labels_)
    if prior and hasattr(model, "prior_") and n_objects <= MAX_OBJECTS:
        before = np.asarray(n_clusters_prior(model.prior_, n_objects), dtype=float)
        shown = np.union1d(np.flatnonzero(before >= LEAST_PRIOR), K[len(before) > K])
        ax.plot(shown, before[shown], "o", color="0.25", markersize=5, label="prior")
        ax.legend(frameon=False)
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set_xlabel("number of clusters")
    ax.set_ylabel("probability")
    return ax


def plot_trace(model: Any, quantity: str = "n_clusters", *, ax: Any = None) -> Any:
    """One quantity of the draws, a line for each chain: chains that agree lie over each other.

    Parameters
    ----------
    model : fitted estimator
        With ``trace_``: a mixture fitted by chains.
    quantity : {"n_clusters", "log_joint", "concentration", "discount"}, default "n_clusters"
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
        A line for each chain.
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
