"""The steps of the front door: from a label matrix to clusters, with nothing given but the labels.

Distinct rows, a sample of them where they are many, an information-bottleneck tree, the cut, the evidence that the
members hold, tempered EM on all rows, the confidence. Every step has a module of its own; this one puts them in order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partita.consensus.default.bottleneck import cut_tree, grow_tree, sample_signatures
from partita.consensus.default.pair_information import Curve, cut_curve, resampled_cuts
from partita.consensus.default.tempered import Softened, soften
from partita.consensus.member_statistics import independent_members, own_agreement

LEAVES = 2000  # distinct rows of the tree, at most
MANY_CELLS = 400_000  # rows x members of the tree, above this fewer rows
NOTHING = 0.005  # share of the pair entropy below which nothing was found
PLENTY = 0.3  # share above which chance need not be asked, for few rows; less for many
CHANCE = 1.5  # times the share of shuffled members
SHUFFLES = 3
SHUFFLES_OF_FEW = 9
FEW = 300


class Leaves(NamedTuple):
    """Distinct rows that the tree is grown from."""

    rows: np.ndarray  # which of the distinct rows
    codes: np.ndarray
    weights: np.ndarray


class Answer(NamedTuple):
    """What was found for the distinct rows of a label matrix."""

    labels: np.ndarray
    confidence: np.ndarray
    model: Softened | None  # None: one cluster
    curve: Curve
    posterior: np.ndarray  # how often each cut was best
    quality: np.ndarray  # [M] share of each member's pairs that the clusters explain
    evidence: float
    share: float  # the mean quality
    common: float  # the same without the member that is explained best
    chance: float  # the largest such share with shuffled members; 0 where it was not asked
    n_clusters: int
    at_bound: bool


def pick_leaves(
    codes: np.ndarray, weights: np.ndarray, n_levels: np.ndarray, rng: np.random.Generator, size: int = LEAVES
) -> Leaves:
    """All distinct rows or a sample of them, in an order that depends neither on names nor on the order of objects.

    Ties of the tree go to the first row; so rows are put in the order of their weight, then of the number of objects
    that share their labels, then of how popular those objects are, the rarest first.

    Examples
    --------
    >>> codes = np.array([[0, 0], [1, 0], [1, 1]])
    >>> pick_leaves(codes, np.array([1.0, 1.0, 3.0]), np.array([2, 2]), np.random.default_rng(0)).rows
    array([0, 1, 2])
    """
    size = int(min(size, max(200, MANY_CELLS // codes.shape[1])))
    drawn = sample_signatures(weights, size, rng)
    rows = np.flatnonzero(drawn > 0)
    codes, drawn = codes[rows].astype(np.int64), drawn[rows]
    popular = _neighbours(codes, n_levels, drawn)
    order = np.lexsort((_neighbours(codes, n_levels, drawn * popular), popular, drawn))
    return Leaves(rows[order], codes[order], drawn[order])


def find_consensus(
    codes: np.ndarray,
    weights: np.ndarray,
    n_levels: np.ndarray,
    member_weights: np.ndarray,
    rng: np.random.Generator,
    *,
    n_clusters: int | None = None,
    max_clusters: int | None = None,
) -> Answer:
    """The consensus of members that were given as distinct rows with weights.

    Examples
    --------
    >>> codes = np.array([[0, 0, 1], [0, 0, 0], [1, 1, 0], [1, 1, 1]])
    >>> J, ones = np.full(3, 2), np.ones(3)
    >>> found = find_consensus(codes, np.full(4, 20.0), J, ones, np.random.default_rng(0))
    >>> found.n_clusters, found.labels
    (2, array([0, 0, 1, 1]))
    """
    leaves = pick_leaves(codes, weights, n_levels, rng)
    tree = grow_tree(leaves.codes, leaves.weights, n_levels, member_weights)
    largest = max_clusters or int(2.0 * np.sqrt(leaves.weights.sum()))
    largest = min(max(largest, n_clusters or 0, 2), len(leaves.codes))
    curve = cut_curve(tree, leaves.codes, leaves.weights, n_levels, member_weights, largest)
    best = n_clusters or _best(curve)
    chance = 0.0
    share = _mean_share(curve, best, member_weights)
    common = _common_share(curve, best, member_weights)
    if n_clusters is None and common <= PLENTY * np.sqrt(FEW / max(len(leaves.codes), FEW)):
        n_shuffles = SHUFFLES if len(leaves.codes) > FEW else SHUFFLES_OF_FEW
        chance = max(chance_share(leaves, n_levels, member_weights, largest, rng) for _ in range(n_shuffles))
        if common <= max(NOTHING, CHANCE * chance):
            best = 1
    quality = curve.share[best - 2] if best > 1 else np.zeros(len(n_levels))
    z = cut_tree(tree, best)
    found = Answer(
        labels=np.zeros(len(codes), np.int64),
        confidence=np.zeros(len(codes)),
        model=None,
        curve=curve,
        posterior=np.zeros(len(curve.n_clusters)),
        quality=quality,
        evidence=1.0,
        share=share,
        common=common,
        chance=chance,
        n_clusters=best,
        at_bound=bool(best == largest < len(leaves.codes)),
    )
    if best == 1:
        return _one_cluster(found, codes, weights, n_levels, member_weights)
    return _several(found, n_clusters or 2, z, leaves, codes, weights, n_levels, member_weights, rng)


def chance_share(
    leaves: Leaves, n_levels: np.ndarray, member_weights: np.ndarray, largest: int, rng: np.random.Generator
) -> float:
    """The share of the pair entropy of members that the best cut explains when every member's labels are shuffled."""
    total = float(leaves.weights.sum())
    size = int(max(2, min(total, LEAVES, MANY_CELLS // len(n_levels))))
    if size == total:
        objects = np.repeat(leaves.codes, leaves.weights.astype(int), axis=0)
    else:
        objects = leaves.codes[rng.choice(len(leaves.codes), size, p=leaves.weights / total)]
    shuffled = np.stack([rng.permutation(column) for column in objects.T], axis=1)
    ones = np.ones(len(shuffled))
    tree = grow_tree(shuffled, ones, n_levels, member_weights)
    curve = cut_curve(tree, shuffled, ones, n_levels, member_weights, min(largest, len(shuffled)))
    return _common_share(curve, _best(curve), member_weights)


def _best(curve: Curve) -> int:
    return int(curve.n_clusters[np.argmax(curve.scores)]) if len(curve.n_clusters) else 1


def _mean_share(curve: Curve, n_clusters: int, member_weights: np.ndarray) -> float:
    if n_clusters < 2 or not len(curve.n_clusters):
        return 0.0
    return float(np.average(curve.share[n_clusters - 2], weights=member_weights))


def _common_share(curve: Curve, n_clusters: int, member_weights: np.ndarray) -> float:
    """The same without the member that is explained best: clusters may be a copy of one member."""
    if n_clusters < 2 or not len(curve.n_clusters) or len(member_weights) < 2:
        return 0.0
    share = curve.share[n_clusters - 2]
    others = np.arange(len(share)) != np.argmax(share)
    return float(np.average(share[others], weights=member_weights[others]))


def _several(found: Answer, at_least, z, leaves: Leaves, codes, weights, n_levels, v, rng) -> Answer:
    """Memberships of all rows from the cut of the leaves; the cut itself where EM leaves too few clusters."""
    evidence = independent_members(z, leaves.codes, n_levels, leaves.weights, v)
    model = soften(z, leaves.rows, codes, weights, n_levels, v, evidence)
    labels, certainty = model.labels, model.certainty
    if len(np.unique(labels)) < at_least:
        labels = labels.copy()
        labels[leaves.rows] = z
    own = own_agreement(labels, codes, n_levels, weights, v)
    return found._replace(
        labels=labels,
        confidence=(certainty + own) / 2.0,
        model=model,
        posterior=resampled_cuts(found.curve, evidence, rng),
        evidence=evidence,
    )


def _one_cluster(found: Answer, codes, weights, n_levels, member_weights) -> Answer:
    z = np.zeros(len(codes), np.int64)
    own = own_agreement(z, codes, n_levels, weights, member_weights)
    return found._replace(
        confidence=own, evidence=independent_members(z, codes, n_levels, weights, member_weights)
    )


def _neighbours(codes: np.ndarray, n_levels: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Sum over the members of the weight of the objects with the row's label."""
    total = np.zeros(len(codes))
    for m, J in enumerate(n_levels):
        seen = codes[:, m] >= 0
        total[seen] += np.bincount(codes[seen, m], weights[seen], minlength=int(J))[codes[seen, m]]
    return total
