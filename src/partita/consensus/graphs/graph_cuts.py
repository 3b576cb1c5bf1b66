"""What consensus methods that cut a graph into balanced parts share."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from partita.consensus.base import ConsensusEstimator, Found
from partita.consensus.graphs.cut_balance import BalancedCut, Cut, choose_balance, mean_nmi
from partita.consensus.labelings import Labelings
from partita.consensus.own_agreement import own_agreement
from partita.labels import Signatures, signatures

__all__ = ["GraphCut", "Partition", "cut_attributes"]

SLACK = 0.1  # that a cut may exceed the allowed imbalance by without a word
# allowed imbalance, shares -> part of each row, in one or several ways
Partition = Callable[[float, np.ndarray | None], list[np.ndarray]]


class GraphCut(ConsensusEstimator):
    """Base of the methods that cut a graph of the distinct rows, or of the objects.

    A subclass has the parameters ``n_clusters`` and ``balance`` and writes ``_partition(distinct, labelings, K, rng)``,
    which returns a :data:`Partition` of the distinct rows.
    """

    _parameter_constraints: dict[str, Any] = {
        **ConsensusEstimator._parameter_constraints,
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "balance": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
    }

    n_clusters: int
    balance: float | str
    identical = "together"  # a parameter of the methods whose vertices may be objects

    def _partition(
        self, distinct: Signatures, labelings: Labelings, K: int, rng: np.random.Generator
    ) -> Partition:
        raise NotImplementedError

    def _fit_labelings(self, labelings: Labelings, rng: np.random.Generator) -> Found:
        distinct = self._vertices(labelings)
        K = self._possible(len(distinct.rows), "distinct rows")
        partition = self._partition(distinct, labelings, K, rng)

        def cuts(imbalance: float, shares: np.ndarray | None) -> list[Cut]:
            found = []
            for parts in partition(imbalance, shares):
                sizes = np.bincount(parts, distinct.weights, minlength=K)
                found.append(Cut(parts, parts, sizes / sizes.sum()))
            return found

        found = self._balanced(cuts, distinct, labelings, K)
        labels = found.cut.labels[distinct.inverse]
        return Found(labels, own_agreement(labels, labelings), attributes=cut_attributes(found))

    def _vertices(self, labelings: Labelings) -> Signatures:
        if self.identical == "together":
            return signatures(labelings.codes, labelings.weights)
        objects = np.arange(len(labelings.codes))
        return Signatures(labelings.codes, labelings.weights, objects, objects)

    def _balanced(
        self,
        cuts: Callable[[float, np.ndarray | None], list[Cut]],
        distinct: Signatures,
        labelings: Labelings,
        K: int,
    ) -> BalancedCut:
        """The cut that ``balance`` asks for."""

        def score(labels: np.ndarray) -> float:
            return mean_nmi(
                labels, distinct.rows, labelings.n_levels, distinct.weights, labelings.member_weights
            )

        found = choose_balance(cuts, score, K, self.balance)
        n_found = len(np.unique(found.cut.labels))
        if n_found < K:
            self.fit_report_.add(
                "fewer_clusters", f"{K} clusters were asked for, and the best cut has objects in {n_found}"
            )
        if not isinstance(self.balance, str) and found.imbalance > self.balance + SLACK:
            self.fit_report_.add(
                "unbalanced",
                f"the largest part is {found.imbalance:.0%} above the mean, and balance={self.balance:g} allows "
                f"{self.balance:.0%}: objects with the same labels stay together, and are too many for an even cut. "
                + ('identical="apart" parts them; ' if "identical" in self.get_params() else "")
                + 'balance="auto" lets the parts differ',
                level="warning",
            )
        return found

    def _possible(self, n: int, what: str) -> int:
        """The number of clusters, at most n."""
        if self.n_clusters > n:
            self.fit_report_.add(
                "fewer_clusters",
                f"n_clusters={self.n_clusters}, but there are only {n} {what}: they are the clusters",
                level="warning",
            )
        return min(self.n_clusters, n)


def cut_attributes(found: BalancedCut) -> dict[str, Any]:
    """What every cut tells about itself."""
    return {"mean_nmi_": found.score, "imbalance_": found.imbalance}
