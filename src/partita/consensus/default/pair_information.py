"""Where to cut a tree of label rows: information about pairs of objects, and margins between clusters.

*Information.* For a partition z and a member Y, consider every pair of objects that Y saw: are they together in z, and
are they together in Y? The mutual information of the two answers is 0 for a partition without information, and the
entropy of Y's answer for Y itself. At the best cut (maximizing it is maximizing LACA's likelihood over its rates) it
gives the share of each member that is common to all: the *quality* of the member.

*Margin.* The share of the members that put an object with its own cluster, less the share for the next best cluster.
The mean over objects has a sharp optimum over the number of clusters: merging two separate clusters lowers the first
term, and dividing a homogeneous cluster raises the second.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partita.consensus.default.bottleneck import LabelTree, coarser_cuts
from partita.dispatch import kernel
from partita.labels.information import binary_entropy, pair_information

ENTROPY_POWER = 0.5  # members count by information / entropy ** this: 0 favors coarse members, 1 fine ones
TINY = 1e-9  # entropies and weights below it are zero up to rounding


class Curve(NamedTuple):
    """Information about pairs and margins, for the cuts into K = 2, 3, ... clusters (rows) and members (columns).

    ``entropy`` is that of each member's own answer, the upper bound of ``information``; ``weights`` are the given
    weights of the members times the square root of their quality.
    """

    n_clusters: np.ndarray  # [C]
    information: np.ndarray  # [C, M]
    margin: np.ndarray  # [C, M]
    entropy: np.ndarray  # [M]
    weights: np.ndarray  # [M]

    @property
    def share(self) -> np.ndarray:
        """Share of each member's pair entropy that each cut explains [C, M]."""
        return self.information / np.maximum(self.entropy, TINY)

    @property
    def scores(self) -> np.ndarray:
        """The mean margin of each cut [C]."""
        return self.margin @ (self.weights / self.weights.sum())


def member_pairs(codes: np.ndarray, weights: np.ndarray, n_levels: np.ndarray):
    """Numbers of pairs of objects with the same label, and of pairs that were both seen, for each member.

    Examples
    --------
    >>> member_pairs(np.array([[0], [0], [1], [-1]]), np.ones(4), np.array([2]))
    (array([1.]), array([3.]))
    """
    joined, pairs = np.zeros(codes.shape[1]), np.zeros(codes.shape[1])
    for m, J in enumerate(n_levels):
        seen = codes[:, m] >= 0
        counts = np.bincount(codes[seen, m], weights[seen], minlength=int(J))
        joined[m] = _within(counts).sum()
        pairs[m] = _within(counts.sum())
    return joined, pairs


def cut_curve(
    tree: LabelTree,
    codes: np.ndarray,
    weights: np.ndarray,
    n_levels: np.ndarray,
    member_weights,
    largest: int,
) -> Curve:
    """Information and margins of the cuts of a tree into 2, ..., ``largest`` clusters.

    Examples
    --------
    >>> from partita.consensus.default.bottleneck import grow_tree
    >>> codes, J = np.array([[0, 0], [1, 1], [2, 2]]), np.array([3, 3])
    >>> tree = grow_tree(codes, np.full(3, 4.0), J, np.ones(2))
    >>> curve = cut_curve(tree, codes, np.full(3, 4.0), J, np.ones(2), 3)
    >>> curve.n_clusters, curve.share.mean(axis=1).round(3), curve.scores.round(3)
    (array([2, 3]), array([0.392, 1.   ]), array([0.619, 1.   ]))
    """
    s, M = codes.shape
    K = np.arange(2, min(largest, s) + 1)
    joined, pairs = member_pairs(codes, weights, n_levels)
    entropy = binary_entropy(joined / np.maximum(pairs, TINY))
    information = pair_information(tree.together[s - K], tree.in_cluster[s - K], joined, pairs)
    v = _weights_by_quality(information, entropy, np.asarray(member_weights, dtype=float))
    margin = np.zeros((len(K), M))
    if len(K):
        cuts = coarser_cuts(tree, int(K[-1]))
        offsets = np.concatenate([[0], np.cumsum(n_levels)]).astype(np.int64)
        sums = [np.zeros((rows, int(K[-1]))) for rows in (int(offsets[-1]), M, s, s)]
        _margins(
            cuts, np.ascontiguousarray(codes, np.int64), weights.astype(float), offsets, v, *sums, margin
        )
    return Curve(K, information, margin, entropy, v)


def margins_of_cuts(
    cuts: np.ndarray, codes: np.ndarray, weights: np.ndarray, n_levels: np.ndarray, member_weights: np.ndarray
) -> np.ndarray:
    """Margins [cut, member] of nested partitions; each has one cluster more than the one before it.

    Examples
    --------
    >>> cuts = np.array([[0, 0, 0, 0], [0, 0, 1, 1]])
    >>> margins_of_cuts(
    ...     cuts, np.array([[0], [0], [1], [1]]), np.ones(4), np.array([2]), np.ones(1)
    ... ).ravel().round(3)
    array([0.333, 1.   ])
    """
    s, M = codes.shape
    K = int(cuts[-1].max()) + 1
    offsets = np.concatenate([[0], np.cumsum(n_levels)]).astype(np.int64)
    sums = [np.zeros((rows, K)) for rows in (int(offsets[-1]), M, s, s)]
    margin = np.zeros((len(cuts), M))
    _margins(
        np.ascontiguousarray(cuts, np.int64), np.ascontiguousarray(codes, np.int64), weights.astype(float), offsets,
        np.asarray(member_weights, dtype=float), *sums, margin,
    )  # fmt: skip
    return margin


def _weights_by_quality(information, entropy, member_weights) -> np.ndarray:
    """Given weights times the square root of the share of each member that the most informative cut explains."""
    informative = entropy > TINY
    if not len(information) or not informative.any():
        return member_weights
    evened = np.where(informative, member_weights / np.maximum(entropy, TINY) ** ENTROPY_POWER, 0.0)
    best = information[int(np.argmax(information @ evened))]
    v = member_weights * np.sqrt(np.where(informative, best / np.maximum(entropy, TINY), 0.0)).clip(TINY)
    return v * (member_weights.sum() / v.sum())


def resampled_cuts(
    curve: Curve, n_independent: float, rng: np.random.Generator, n_draws: int = 400
) -> np.ndarray:
    """How often each cut is the best one when the members are resampled (Bayesian bootstrap).

    Each draw gives every member a random weight, so that all members together vary as ``n_independent`` independent
    members would.

    Examples
    --------
    >>> curve = Curve(np.arange(2, 4), np.ones((2, 1)), np.array([[0.5], [0.4]]), np.ones(1), np.ones(1))
    >>> resampled_cuts(curve, 1.0, np.random.default_rng(0))
    array([1., 0.])
    """
    share = curve.weights / curve.weights.sum()
    drawn = rng.gamma(np.maximum(n_independent * share, TINY), size=(n_draws, len(share))) + TINY * share
    best = np.argmax(curve.margin @ drawn.T, axis=0)
    return np.bincount(best, minlength=len(curve.n_clusters)) / n_draws


def _within(counts):
    return np.maximum(counts * (counts - 1.0) / 2.0, 0.0)


@kernel
def _add_up(old, to, rows, new):
    """Sum the columns (clusters of the finer cut) that belong to the same column of the coarser one."""
    for i in range(rows):
        for k in range(new.shape[1]):
            new[i, k] = 0.0
        for k in range(to.shape[0]):
            new[i, to[k]] += old[i, k]
        for k in range(new.shape[1]):
            old[i, k] = new[i, k]


@kernel
def _margins(cuts, codes, weights, offsets, v, counts, seen, same, met, out):
    """out[c, m] = mean over objects of (share of own cluster - share of the next best) with the label of member m.

    ``counts`` [levels, K] and ``seen`` [M, K] of the clusters, ``same`` and ``met`` [n, K] of objects with clusters are
    computed for the finest cut, and summed for the coarser ones.
    """
    n, M = codes.shape
    last = cuts.shape[0] - 1
    K = counts.shape[1]
    for i in range(n):
        for m in range(M):
            if codes[i, m] >= 0:
                counts[offsets[m] + codes[i, m], cuts[last, i]] += weights[i]
                seen[m, cuts[last, i]] += weights[i]
    for i in range(n):
        for m in range(M):
            if codes[i, m] >= 0:
                level = offsets[m] + codes[i, m]
                for k in range(K):
                    same[i, k] += v[m] * counts[level, k]
                    met[i, k] += v[m] * seen[m, k]
    total = np.zeros(M)
    for i in range(n):
        for m in range(M):
            if codes[i, m] >= 0:
                total[m] += weights[i]
    for c in range(last, -1, -1):
        z = cuts[c]
        if c < last:
            to = np.zeros(K, np.int64)
            for i in range(n):
                to[cuts[c + 1, i]] = z[i]
            K -= 1
            room = np.zeros((max(n, counts.shape[0]), K))
            _add_up(counts, to, counts.shape[0], room)
            _add_up(seen, to, M, room)
            _add_up(same, to, n, room)
            _add_up(met, to, n, room)
        for i in range(n):
            own, other, best = z[i], -1, -1.0
            for k in range(K):
                if k != own and met[i, k] > 0.0 and same[i, k] > best * met[i, k]:
                    other, best = k, same[i, k] / met[i, k]
            for m in range(M):
                if codes[i, m] < 0:
                    continue
                level = offsets[m] + codes[i, m]
                if seen[m, own] > 1.0:
                    out[c, m] += weights[i] * (counts[level, own] - 1.0) / (seen[m, own] - 1.0)
                if other >= 0 and seen[m, other] > 0.0:
                    out[c, m] -= weights[i] * counts[level, other] / seen[m, other]
        for m in range(M):
            if total[m] > 0.0:
                out[c, m] /= total[m]
