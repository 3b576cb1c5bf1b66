"""Base of the consensus methods that cut a graph into balanced parts, and the choice of the balance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from partita.consensus.base import ConsensusEstimator, Found, required_n_clusters
from partita.consensus.labelings import Labelings
from partita.consensus.member_statistics import own_agreement
from partita.engines.run import Control
from partita.labels import Signatures, label_histograms, signatures
from partita.labels.information import normalized_information

MAX_EXCESS = 0.1  # imbalance above the allowed one that is not reported
# allowed imbalance, shares -> part of each row, in one or several ways
Partition = Callable[[float, np.ndarray | None], list[np.ndarray]]


class GraphCut(ConsensusEstimator):
    """Base of the methods that cut a graph of the distinct rows, or of the objects.

    A subclass has the parameters ``n_clusters`` (required) and ``balance`` and implements
    ``_partition(distinct, labelings, K, rng)``, which returns a :data:`Partition` of the distinct rows.
    """

    _parameter_constraints: dict[str, Any] = {
        **ConsensusEstimator._parameter_constraints,
        "n_clusters": [None, Interval(Integral, 1, None, closed="left")],
        "balance": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
    }

    n_clusters: int | None
    balance: float | str
    identical = "together"  # a parameter of the methods whose vertices may be objects

    def _partition(
        self, distinct: Signatures, labelings: Labelings, K: int, rng: np.random.Generator
    ) -> Partition:
        raise NotImplementedError

    def _fit_labelings(self, labelings: Labelings, rng: np.random.Generator, control: Control) -> Found:
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
        return Found(labels, own_agreement(labels, *labelings[:4]), attributes=cut_attributes(found))

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
        """The cut with the imbalance of ``balance``."""

        def score(labels: np.ndarray) -> float:
            return mean_nmi(
                labels, distinct.rows, labelings.n_levels, distinct.weights, labelings.member_weights
            )

        found = choose_balance(cuts, score, K, self.balance)
        n_found = len(np.unique(found.cut.labels))
        if n_found < K:
            self.fit_report_.add(
                "fewer_clusters",
                f"n_clusters is {K}, but the best cut has objects in {n_found} clusters only",
            )
        if not isinstance(self.balance, str) and found.imbalance > self.balance + MAX_EXCESS:
            self.fit_report_.add(
                "unbalanced",
                f"the largest part is {found.imbalance:.0%} above the mean, but balance={self.balance:g} allows "
                f"{self.balance:.0%}: too many objects have the same labels, and they stay together. "
                + ('identical="apart" separates them; ' if "identical" in self.get_params() else "")
                + 'balance="auto" allows parts of different sizes',
                level="warning",
            )
        return found

    def _possible(self, n: int, what: str) -> int:
        """The number of clusters, at most n."""
        n_clusters = required_n_clusters(self)
        if n_clusters > n:
            self.fit_report_.add(
                "fewer_clusters",
                f"n_clusters={n_clusters}, but there are only {n} {what}: each is a cluster",
                level="warning",
            )
        return min(n_clusters, n)


def cut_attributes(found: BalancedCut) -> dict[str, Any]:
    """Attributes of every cut."""
    return {"mean_nmi_": found.score, "imbalance_": found.imbalance}


# ---- the choice of the balance -----------------------------------------------------------------------------


EQUAL_IMBALANCES = (0.05, 0.25, 0.5, 1.0, 2.0)  # tried with equal shares
SHARE_RATIOS = (0.8, 0.65, 0.5)  # of each share to the previous one, for geometrically falling shares
UNEQUAL_IMBALANCES = (0.05, 0.25, 0.5)  # tried with unequal shares
MAX_ROUNDS = 8


class Cut(NamedTuple):
    """A partition of the rows, from a partition of the vertices of a graph (which may be the rows)."""

    labels: NDArray[np.int64]  # of the rows
    parts: NDArray[np.int64]  # of the vertices
    shares: NDArray[np.float64]  # of the parts in the weight of all vertices


class BalancedCut(NamedTuple):
    """The chosen cut, its score, and the largest part over the mean part, less 1."""

    cut: Cut
    score: float
    imbalance: float


def choose_balance(
    cut: Callable[[float, NDArray[np.float64] | None], list[Cut]],
    score: Callable[[NDArray[np.int64]], float],
    n_parts: int,
    balance: float | str,
) -> BalancedCut:
    """The first cut with the allowed imbalance `balance`, or with "auto" the cut with the best score.

    An unconstrained cut isolates points, and an even cut divides large clusters. Therefore "auto" first tries some
    imbalances with equal shares and with geometrically falling shares. Then the shares of the best cut so far are the
    target, as long as the score increases.

    Examples
    --------
    >>> def cut(imbalance, shares):
    ...     labels = (np.arange(10) >= (5 if imbalance < 0.25 else 7)).astype(int)
    ...     return [Cut(labels, labels, np.array([1 - labels.mean(), labels.mean()]))]
    >>> found = choose_balance(cut, lambda labels: -abs(labels.sum() - 3), 2, "auto")
    >>> found.cut.labels.tolist(), round(found.imbalance, 2)
    ([0, 0, 0, 0, 0, 0, 0, 1, 1, 1], 0.4)
    """
    if balance != "auto" or n_parts == 1:
        balance = 0.0 if balance == "auto" else balance
        return _scored(cut(float(balance), None)[0], score, n_parts)

    def try_all(imbalances: Sequence[float], goals: Sequence[NDArray[np.float64] | None]) -> BalancedCut:
        cuts = [found for shares in goals for b in imbalances for found in cut(b, shares)]
        return _best([_scored(found, score, n_parts) for found in cuts])

    falling = [ratio ** np.arange(n_parts) for ratio in SHARE_RATIOS]
    even = try_all([b for b in EQUAL_IMBALANCES if b <= max(n_parts - 1, 0.5)], [None])
    best = _best([even, try_all(UNEQUAL_IMBALANCES, [goal / goal.sum() for goal in falling])])
    for _ in range(MAX_ROUNDS):
        after = try_all(UNEQUAL_IMBALANCES, [best.cut.shares])
        if after.score <= best.score + 1e-9:
            break
        best = after
    return best


def _scored(cut: Cut, score: Callable[[NDArray[np.int64]], float], n_parts: int) -> BalancedCut:
    return BalancedCut(cut, score(cut.labels), float(cut.shares.max() * n_parts - 1))


def _best(cuts: list[BalancedCut]) -> BalancedCut:
    return max(cuts, key=lambda found: found.score)  # the first of equal ones is the most even


def mean_nmi(
    labels: NDArray[np.int64],
    codes: NDArray[Any],
    n_levels: NDArray[Any],
    weights: NDArray[np.float64],
    member_weights: NDArray[np.float64],
) -> float:
    """Mean normalized mutual information (by the geometric mean of the entropies) of labels with the members.

    Each member is compared on the rows that it saw.

    Examples
    --------
    >>> codes = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> mean_nmi(codes[:, 0], codes, np.array([2, 2]), np.ones(4), np.ones(2))
    0.5
    """
    counts, offsets = label_histograms(labels, codes, n_levels, weights=weights)
    return float(
        np.average(normalized_information(counts, offsets[:-1], "geometric"), weights=member_weights)
    )
