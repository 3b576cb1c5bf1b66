"""The prior of the number of clusters of a model fitted by chains: what its posterior is compared with."""

from __future__ import annotations

from typing import Any

import numpy as np

from partita.partitions import marginal_n_clusters_prior, n_clusters_prior

MIN_PROBABILITY = 1e-12  # smaller ones are left out


class HasClusterPrior:
    """Adds ``n_clusters_prior_`` to an estimator with ``trace_``, ``prior_`` and the parameter ``concentration``."""

    trace_: Any
    weight_total_: float
    prior_: Any
    concentration: float | None

    @property
    def _learned_concentration(self) -> bool:
        """Whether chains with the present parameters learn the concentration."""
        return getattr(self, "n_clusters", None) is None and self.concentration is None

    @property
    def n_clusters_prior_(self) -> dict[int, float]:
        """Chains: prior probability of each number of clusters of as many objects; compare ``n_clusters_posterior_``.

        Where the concentration (and the discount) is learned, the prior is averaged over its hyperprior, as in
        :func:`partita.partitions.marginal_n_clusters_prior`; the learned value does not enter.
        """
        is_elsewhere = "trace_" in vars(self).get("_later", ())  # on a device, where every row is an object
        if not (is_elsewhere or "trace_" in vars(self)):  # AttributeError, so that hasattr is False
            raise AttributeError(
                f"{type(self).__name__} has no n_clusters_prior_: it belongs to the draws of chains"
            )
        N = int(self.weight_total_) if is_elsewhere else self.trace_.labels.shape[1]
        limit = getattr(self, "max_clusters", None)
        if self._learned_concentration:
            p = marginal_n_clusters_prior(self.prior_, N, max_clusters=limit)
        else:
            p = n_clusters_prior(self.prior_, N)
            if limit is not None:
                p = p[: limit + 1] / p[: limit + 1].sum()
        return {int(K): float(p[K]) for K in np.flatnonzero(p > MIN_PROBABILITY)}
