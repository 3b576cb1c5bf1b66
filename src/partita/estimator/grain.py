"""What estimators with a tree over their clusters share: the grain, its alternatives, and answers at other scales."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from partita.posterior.grain import Alternative, Grain, GrainLevel


class GrainMixin:
    """Mixin of the estimators whose answer can be read at several scales.

    A subclass implements ``_grow_grain() -> Grain`` and, if it has confidence and profiles,
    ``_grain_confidence(groups)`` and ``_grain_profiles(groups)``. ``groups`` has the group of each finest group at the
    level that is asked for. Nothing is computed before it is asked for.

    Attributes
    ----------
    grain_ : Grain
        The tree over the groups: labels and support at every number of groups (:class:`~partita.posterior.Grain`).
    alternatives_ : list of Alternative
        The best supported coarse, medium and fine answers (:class:`~partita.posterior.Alternative`).
    """

    # a scale is chosen by the user, not routed by a pipeline
    __metadata_request__predict = {"at": UNUSED}
    __metadata_request__predict_proba = {"at": UNUSED}

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
            Number of groups, or the name of an alternative: "coarse", "medium" or "fine". "agreed" is the level that
            agrees best with an ensemble of k-means clusterings (chains of mixtures, whose grade asks one).

        Returns
        -------
        GrainLevel
            Labels, confidence, support and profiles with so many groups.

        Examples
        --------
        >>> from partita import Mixture
        >>> X = np.array([0.0, 0.1, 0.2, 5.0, 5.1, 5.2, 90.0, 90.1, 90.2])[:, None]
        >>> model = Mixture("gaussian", inference="em", n_clusters=3, random_state=0).fit(X)
        >>> level = model.at(2)
        >>> level.labels, level.profiles["x0"]["mean"].shape
        (array([0, 0, 0, 0, 0, 0, 1, 1, 1]), (2,))
        """
        grain = self.grain_
        K = grain.n_clusters_at(n_clusters)
        groups = grain.groups(K)
        return GrainLevel(
            K,
            grain.at(K),
            self._grain_confidence(groups),
            float(grain.support[K - 1]),
            self._grain_profiles(groups),
        )

    def _groups_at(self, at: int | str) -> np.ndarray:
        """For each finest group, its group at a scale."""
        grain = self.grain_
        return grain.groups(grain.n_clusters_at(at))

    def _grow_grain(self) -> Grain:
        raise NotImplementedError

    def _grain_confidence(self, groups: np.ndarray) -> np.ndarray | None:
        return None

    def _grain_profiles(self, groups: np.ndarray) -> Any:
        return None


def sum_probabilities(proba: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Probability of each group of clusters, from those of the clusters [row, cluster].

    Examples
    --------
    >>> sum_probabilities(np.array([[0.5, 0.25, 0.25]]), np.array([0, 1, 1]))
    array([[0.5, 0.5]])
    """
    out = np.zeros((len(proba), int(groups.max()) + 1))
    for k, group in enumerate(groups):
        out[:, group] += proba[:, k]
    return out
