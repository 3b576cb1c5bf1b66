"""A fitted clustering written into an AnnData object, for scanpy and related packages."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from partita.posterior.grain import Grain

MAX_LEVELS = 50  # of the grain that get a column each; the tree in ``uns`` has all of them


def annotate(data: Any, model: Any, key_added: str = "partita") -> Any:
    """Write labels, confidence and further results of a model into an AnnData object, in place.

    ``obs[key]`` holds the labels as categories, ``obs[key + "_confidence"]`` the confidence,
    ``obsm[key + "_proba"]`` the memberships if the model has them, and ``uns[key]`` the method, its parameters, P(K),
    the weights of the members and the summary in words.

    Of a model with a grain, ``obs[key + "_K2"]``, ``obs[key + "_K3"]``, ... hold the groups at each level (at most 50
    levels), ``obs[key + "_coarse"]``, ``_medium`` and ``_fine`` the alternatives, ``obs[key + "_finest"]`` the finest
    group as a number, and ``uns[key]["grain"]`` the tree over the finest groups: ``joins``, ``heights``, ``support``,
    ``sizes``, what heights and support mean, and the number of groups of each alternative.

    Parameters
    ----------
    data : AnnData
        One observation per object of the fit, in the same order.
    model : fitted estimator
    key_added : str, default="partita"

    Returns
    -------
    AnnData
        `data` itself.

    Examples
    --------
    >>> import numpy as np
    >>> from anndata import AnnData
    >>> from partita import Consensus, annotate
    >>> cells = AnnData(np.zeros((40, 1)))
    >>> runs = np.repeat([[0, 1, 0], [1, 0, 2]], 20, axis=0)  # three Leiden runs, say
    >>> cells = annotate(cells, Consensus(random_state=0).fit(runs), key_added="consensus")
    >>> cells.obs["consensus"].value_counts().tolist()
    [20, 20]
    """
    check_is_fitted(model)
    labels = np.asarray(model.labels_)
    if len(labels) != data.n_obs:
        raise ValueError(
            f"the model was fitted to {len(labels)} objects and the AnnData has {data.n_obs} observations: they must "
            "be the same, in the same order"
        )
    data.obs[key_added] = labels.astype(str)
    data.obs[key_added] = data.obs[key_added].astype("category")
    if hasattr(model, "confidence_"):
        data.obs[f"{key_added}_confidence"] = np.asarray(model.confidence_)
    if hasattr(model, "memberships_"):
        data.obsm[f"{key_added}_proba"] = np.asarray(model.memberships_)
    known: dict[str, Any] = {
        "method": type(model).__name__,
        "params": {
            name: str(value) for name, value in model.get_params(deep=False).items() if value is not None
        },
        "n_clusters": int(model.n_clusters_),
    }
    posterior = getattr(model, "n_clusters_posterior_", None)
    if isinstance(posterior, dict):
        known["n_clusters_posterior"] = {str(K): float(p) for K, p in posterior.items()}
    for name in ("member_weights_", "independent_members_"):
        if hasattr(model, name):
            known[name.rstrip("_")] = getattr(model, name)
    if hasattr(model, "summary_"):
        known["summary"] = str(model.summary_)
    grain = getattr(model, "grain_", None)
    if isinstance(grain, Grain) and grain.n_groups > 0:
        known["grain"] = _write_grain(data, grain, key_added)
    data.uns[key_added] = known
    return data


def _write_grain(data: Any, grain: Grain, key: str) -> dict[str, Any]:
    """Write the labels of the levels into ``obs``; returns the tree."""
    alternatives = grain.alternatives()
    columns = {f"{key}_K{K}": grain.at(K) for K in range(2, min(grain.n_groups, MAX_LEVELS + 1) + 1)}
    columns |= {f"{key}_{one.name}": one.labels for one in alternatives}
    for name, labels in columns.items():
        data.obs[name] = labels.astype(str)
        data.obs[name] = data.obs[name].astype("category")
    data.obs[f"{key}_finest"] = np.asarray(grain.labels)
    return {
        "joins": np.asarray(grain.joins),
        "heights": np.asarray(grain.heights),
        "height_meaning": grain.height_meaning,
        "support": np.asarray(grain.support),
        "support_meaning": grain.support_meaning,
        "sizes": np.asarray(grain.sizes),
        "alternatives": {one.name: int(one.n_clusters) for one in alternatives},
    }
