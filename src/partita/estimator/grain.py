"""What estimators with a tree over their clusters share: the grain, its alternatives, and answers at other scales."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from partita.posterior.grain import Alternative, Grain, GrainLevel


class GrainMixin:
    """Mixin of the estimators whose answer can be read at several scales.

    A subclass implements ``_grow_grain() -> Grain``, ``_grain_confidence(n_clusters)`` (the confidence of each row in
    its label at this level), and, if it has profiles, ``_grain_profiles(n_clusters)``. Nothing is computed before it is
    asked for: a fit costs no more than without a grain.

    Attributes
    ----------
    grain_ : Grain
        The tree over the groups: labels and support at every number of groups (:class:`~partita.posterior.Grain`).
    alternatives_ : list of Alternative
        The best supported coarse, medium and fine answers (:class:`~partita.posterior.Alternative`).
    """

    _grain: Grain

    @property
    def grain_(self) -> Grain:
        """The tree over the groups of the answer."""
        check_is_fitted(self)
        if "_grain" not in vars(self):
            self._grain = self._grow_grain()
        return self._grain

    @property
    def alternatives_(self) -> list[Alternative]:
        """The best supported coarse, medium and fine answers."""
        return self.grain_.alternatives()

    def at(self, n_clusters: int | str) -> GrainLevel:
        """The answer at another scale, without a new fit.

        Parameters
        ----------
        n_clusters : int or str
            Number of groups, or the name of an alternative: "coarse", "medium" or "fine".

        Returns
        -------
        GrainLevel
            Labels, confidence, support and profiles with so many groups.
        """
        grain = self.grain_
        K = grain.n_clusters_at(n_clusters)
        return GrainLevel(
            K,
            grain.at(K),
            self._grain_confidence(K),
            float(grain.support[K - 1]),
            self._grain_profiles(K),
        )

    def _grow_grain(self) -> Grain:
        raise NotImplementedError

    def _grain_confidence(self, n_clusters: int) -> np.ndarray:
        raise NotImplementedError

    def _grain_profiles(self, n_clusters: int) -> Any:
        return None
