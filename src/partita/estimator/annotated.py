"""A fitted clustering written into an AnnData object, where scanpy and its friends look for it."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted


def annotate(data: Any, model: Any, key_added: str = "partita") -> Any:
    """Write labels, confidence and what else a model knows into an AnnData object, in place.

    ``obs[key]`` holds the labels as categories, ``obs[key + "_confidence"]`` how sure they are,
    ``obsm[key + "_proba"]`` memberships where the model keeps them, and ``uns[key]`` the method, its parameters, P(K),
    the members' weights and the answer in words.

    Parameters
    ----------
    data : AnnData
        With one observation for each object of the fit, in the same order.
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
    for name in ("member_weights_", "evidence_", "summary_"):
        if hasattr(model, name):
            known[name.rstrip("_")] = getattr(model, name)
    data.uns[key_added] = known
    return data
