"""The grain of a mixture: the tree over its clusters, and its clusters joined into fewer groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from partita.engines.passes.rows import Statistics, UncertainRows, no_uncertain_rows
from partita.engines.passes.values import MIN_PROBABILITY
from partita.families.contract import is_conjugate, summarize, widened
from partita.families.registry import Block
from partita.families.rows import log_marginals
from partita.fitting.outliers import apart
from partita.fitting.profiles import join_moments, profile_columns, with_lump
from partita.fitting.storage import check_array
from partita.posterior.grain import Grain
from partita.posterior.joining import join_most_confused
from partita.posterior.support import (
    confidence_at,
    sampled_rows,
    support_of_draws,
    support_of_responsibilities,
)
from partita.table import Schema


class GrainEvidence(NamedTuple):
    """What a fitted mixture knows of its rows that tells how its clusters are joined."""

    labels: np.ndarray  # cluster of each row, -1 an outlier
    weights: np.ndarray  # of the rows
    uncertain: UncertainRows
    draws: np.ndarray | None = None  # labels [draw, object] of chains; -1 an outlier
    object_rows: np.ndarray | None = None  # row of each object; None: the rows are the objects


class EvidenceLoss:
    """How much of the log marginal likelihood is lost when two clusters become one.

    For blocks of a family that is not conjugate, whose statistics are parameters: half the squared distances of the
    means in units of the variances, times the harmonic size of the two clusters.
    """

    def __init__(self, families: Sequence[Any], S: Sequence[np.ndarray], n: np.ndarray):
        pairs = list(zip(families, S, strict=True))
        self._conjugate = [(lik, widened(lik, s)[0].copy()) for lik, s in pairs if is_conjugate(lik)]
        others = [summarize(lik, s) for lik, s in pairs if not is_conjugate(lik)]
        none = np.zeros((len(n), 0))
        self._means = np.concatenate([none, *(about["means"] for about in others)], axis=1)
        self._variances = np.concatenate([none, *(about["variances"] for about in others)], axis=1)
        self._n = np.asarray(n, dtype=float).copy()
        self._evidence = self._log_evidence([s for _, s in self._conjugate])
        self._losses = np.stack([self._with(k) for k in range(len(n))])

    def losses(self) -> np.ndarray:
        """Loss of joining each pair."""
        return self._losses

    def join(self, k: int, l: int) -> None:
        """Group l becomes a part of group k < l."""
        for _, s in self._conjugate:
            s[:, k] += s[:, l]
        self._conjugate = [(lik, np.ascontiguousarray(np.delete(s, l, axis=1))) for lik, s in self._conjugate]
        self._join_moments(k, l)
        self._evidence = np.delete(self._evidence, l)
        self._evidence[k] = self._log_evidence([s[:, [k]] for _, s in self._conjugate])[0]
        self._losses = np.delete(np.delete(self._losses, l, axis=0), l, axis=1)
        self._losses[k] = self._losses[:, k] = self._with(k)

    def _with(self, k: int) -> np.ndarray:
        """Loss of joining cluster k with each other."""
        both = [s[:, [k]] + s for _, s in self._conjugate]
        lost = self._evidence[k] + self._evidence - self._log_evidence(both)
        distance = (self._means[k] - self._means) ** 2 / np.maximum(
            self._variances[k] + self._variances, np.finfo(float).tiny
        )
        harmonic = self._n[k] * self._n / np.maximum(self._n[k] + self._n, np.finfo(float).tiny)
        return np.nan_to_num(lost + harmonic * distance.sum(axis=1), nan=0.0)

    def _log_evidence(self, S: Sequence[np.ndarray]) -> np.ndarray:
        total = np.zeros(S[0].shape[1] if S else len(self._n))
        for (lik, _), s in zip(self._conjugate, S, strict=True):
            total += log_marginals(lik, s).sum(axis=0)
        return total

    def _join_moments(self, k: int, l: int) -> None:
        weights = self._n[[k, l]] / max(self._n[k] + self._n[l], np.finfo(float).tiny)
        means, variances = self._means[[k, l]], self._variances[[k, l]]
        mean = weights @ means
        self._variances[k] = weights @ (variances + (means - mean) ** 2)
        self._means[k] = mean
        self._n[k] += self._n[l]
        self._means, self._variances = (
            np.delete(self._means, l, axis=0),
            np.delete(self._variances, l, axis=0),
        )
        self._n = np.delete(self._n, l)


def grow_grain(
    families: Sequence[Any], statistics: Statistics, n_used: int, evidence: GrainEvidence
) -> tuple[Grain, np.ndarray]:
    """The tree over the clusters of a mixture, and the finest group of each of its components.

    The first ``n_used`` components have rows and are the finest groups. A component without rows belongs to the group
    with which it loses least.
    """
    S, n, G = statistics.S, statistics.n, n_used
    separation = EvidenceLoss(families, S, n)
    onto = np.append(np.arange(G), separation.losses()[G:, :G].argmin(axis=1)).astype(np.int64)
    if len(n) > G:
        separation = EvidenceLoss(families, [sum_columns(s, onto) for s in S], np.bincount(onto, n))
    labels = np.append(onto, -1)[evidence.labels]
    inlying = labels >= 0
    sizes = np.bincount(labels[inlying], evidence.weights[inlying], minlength=G).astype(float)
    rows, R = _uncertain_responsibilities(evidence.uncertain, onto, labels)
    weights = evidence.weights[rows]
    certain = np.maximum(sizes - np.bincount(labels[rows], weights, minlength=G), 0.0)
    found = join_most_confused(R, weights, certain, separation)
    if evidence.draws is None:
        support = _support(found.joins, labels, evidence.weights, rows, R)
    else:
        support = support_of_draws(*_drawn_groups(evidence, labels), found.joins)
    return Grain(labels, found.joins, found.heights, support, sizes, "confusion", "probability"), onto


def sum_columns(values: np.ndarray, onto: np.ndarray) -> np.ndarray:
    """Columns that are sent to the same one are added."""
    out = np.zeros((len(values), int(onto.max()) + 1))
    np.add.at(out.T, onto, values.T)
    return out


def _uncertain_responsibilities(
    uncertain: UncertainRows, onto: np.ndarray, labels: np.ndarray
) -> tuple[np.ndarray, Any]:
    """The rows in groups that are not certain of their group, and their responsibilities as a sparse array."""
    kept = labels[uncertain.rows] >= 0
    rows, place = np.unique(uncertain.rows[kept], return_inverse=True)
    entries = (uncertain.probabilities[kept].astype(float), (place, onto[uncertain.clusters[kept]]))
    R = sparse.csr_array(entries, shape=(len(rows), int(onto.max()) + 1))
    R.sum_duplicates()
    return rows, R


def _support(
    joins: np.ndarray, labels: np.ndarray, weights: np.ndarray, rows: np.ndarray, R: Any
) -> np.ndarray:
    """Support by the responsibilities of a sample of the rows."""
    inlying = np.flatnonzero((labels >= 0) & (weights > 0))
    sample = inlying[sampled_rows(len(inlying))]
    dense = np.zeros((len(sample), R.shape[1]))
    dense[np.arange(len(sample)), labels[sample]] = 1.0
    at = np.minimum(np.searchsorted(rows, sample), max(len(rows) - 1, 0))
    known = np.flatnonzero(rows[at] == sample) if len(rows) else np.zeros(0, np.int64)
    dense[known] = R[at[known]].toarray()
    return support_of_responsibilities(dense, labels[sample], weights[sample], joins)


def _drawn_groups(evidence: GrainEvidence, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The draws of the objects in groups, and their groups; an outlier of a draw is a cluster of its own."""
    assert evidence.draws is not None
    own = labels if evidence.object_rows is None else labels[evidence.object_rows]
    draws = evidence.draws if (own >= 0).all() else evidence.draws[:, own >= 0]
    return apart(draws) if draws.min() < 0 else draws, own[own >= 0]


def confidence_in(
    groups: np.ndarray, onto: np.ndarray, labels: np.ndarray, confidence: np.ndarray, evidence: GrainEvidence
) -> np.ndarray:
    """Confidence of each row where the finest groups are joined to ``groups``.

    ``labels`` are the finest groups of the rows, ``confidence`` that of their labels. By the draws of chains, see
    :func:`partita.posterior.support.confidence_at`; otherwise the probability of the group: that of the label, and of
    the other clusters in the group. A cluster without rows counts for the group that it would be joined to, once any
    groups are joined.
    """
    uncertain = evidence.uncertain
    of_cluster, of_row = groups[onto], np.append(groups, -1)[labels]
    # of each finest group, the cluster with rows: it is the first, as clusters are in the order of their sizes
    with_rows = np.unique(onto, return_index=True)[1]
    other = uncertain.clusters != with_rows[labels[uncertain.rows]]
    if groups.max(initial=-1) + 1 == len(groups):
        other &= onto[uncertain.clusters] != labels[uncertain.rows]
    within = other & (of_cluster[uncertain.clusters] == of_row[uncertain.rows])
    added = np.bincount(uncertain.rows[within], uncertain.probabilities[within], minlength=len(labels))
    found = np.minimum(confidence + added, 1.0)
    if evidence.draws is not None:
        draws, own = _drawn_groups(evidence, labels)
        rows = np.arange(len(labels)) if evidence.object_rows is None else evidence.object_rows
        found[rows[labels[rows] >= 0]] = confidence_at(draws, own, groups)
    return found


def joined_profiles(
    blocks: Sequence[Block], statistics: Statistics, groups: np.ndarray, schema: Schema
) -> dict[str, dict[str, np.ndarray]]:
    """Profiles of groups of clusters: those of a cluster that holds the rows of all of them."""
    n = np.bincount(groups, statistics.n)
    summed = [(b, sum_columns(S, groups)) for b, S in zip(blocks, statistics.S) if is_conjugate(b.family)]
    joined = statistics._replace(n=n, S=tuple(S for _, S in summed))
    out = profile_columns([block for block, _ in summed], joined, schema)
    for block, S in zip(blocks, statistics.S, strict=True):
        if not is_conjugate(block.family):
            alone = profile_columns([block], statistics._replace(S=(S,)), schema)
            for name, one in alone.items():
                found = join_moments(one, groups, statistics.n)
                out[name] = with_lump(out[name], found) if name in out else found
    return out


LACKS_UNCERTAIN = (
    "too many rows are between clusters for their probabilities to be kept: answers at other scales follow from the "
    "labels alone"
)


def lacks_uncertain(uncertain: UncertainRows, confidence: np.ndarray) -> bool:
    """Whether rows between clusters were too many to be kept."""
    return not len(uncertain.rows) and bool((confidence < 1.0 - 2.0 * MIN_PROBABILITY).any())


def renamed(uncertain: UncertainRows, kept: np.ndarray, rows: np.ndarray) -> UncertainRows:
    """The uncertain rows of a part of the table in its own numbers, with the clusters that were kept, in their order.

    ``kept`` has the former number of each cluster; ``rows`` are the rows of the table, in ascending order, or the range
    of all of them.

    Examples
    --------
    >>> found = UncertainRows(
    ...     np.array([0, 0, 0]), np.arange(3, dtype=np.int32), np.array([0.5, 0.2, 0.3], np.float32)
    ... )
    >>> renamed(found, np.array([2, 1]), np.array([5]))[1:]
    (array([0, 1], dtype=int32), array([0.6, 0.4], dtype=float32))
    """
    if not len(uncertain.rows):
        return no_uncertain_rows()
    place = np.full(max(int(kept.max()), int(uncertain.clusters.max(initial=0))) + 1, -1)
    place[kept] = np.arange(len(kept))
    clusters = place[uncertain.clusters]
    known = np.flatnonzero(clusters >= 0)
    known = known[np.lexsort((clusters[known], uncertain.rows[known]))]
    at, p = uncertain.rows[known], uncertain.probabilities[known].astype(float)
    p /= np.bincount(at, p, minlength=1)[at]
    return UncertainRows(
        at if isinstance(rows, range) else np.asarray(rows)[at].astype(np.int64),
        clusters[known].astype(np.int32),
        p.astype(np.float32),
    )


def spread_uncertain(uncertain: UncertainRows, inverse: np.ndarray | None, n_distinct: int) -> UncertainRows:
    """The uncertain ones among objects, from those of their distinct rows.

    Examples
    --------
    >>> found = UncertainRows(
    ...     np.array([1, 1]), np.array([0, 1], np.int32), np.array([0.25, 0.75], np.float32)
    ... )
    >>> spread_uncertain(found, np.array([1, 0, 1]), 2).rows
    array([0, 0, 2, 2])
    """
    if inverse is None:
        return uncertain
    starts = np.searchsorted(uncertain.rows, np.arange(n_distinct + 1))
    times = np.diff(starts)[inverse]
    objects = np.repeat(np.arange(len(inverse)), times)
    first = np.cumsum(times) - times
    entries = np.arange(len(objects)) - first[objects] + starts[inverse][objects]
    return UncertainRows(objects, uncertain.clusters[entries], uncertain.probabilities[entries])


def pack_uncertain(uncertain: UncertainRows) -> list[np.ndarray]:
    """The uncertain rows as plain data."""
    return list(uncertain)


def unpack_uncertain(state: Sequence[np.ndarray], n_rows: int, n_clusters: int) -> UncertainRows:
    """The inverse of :func:`pack_uncertain`; refuses entries that do not belong to the table."""
    found = UncertainRows(*state)
    shape = (len(found.rows),)
    check_array("uncertain rows", found.rows, shape, np.int64)
    check_array("clusters of uncertain rows", found.clusters, shape, np.int32)
    check_array("probabilities of uncertain rows", found.probabilities, shape, np.float32)
    valid = (found.rows >= 0) & (found.rows < n_rows) & (found.clusters >= 0) & (found.clusters < n_clusters)
    if not (valid.all() and (np.diff(found.rows) >= 0).all()):
        raise ValueError(f"the uncertain rows are not of {n_rows} rows and {n_clusters} clusters")
    return found
