"""The steps of `Consensus`, from the distinct rows of a label matrix to clusters.

A sample of the distinct rows if they are many, an information-bottleneck tree, its cut, the number of independent
members, tempered EM on all rows, and the confidence. Each step has a module of its own; this one combines them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from partita.consensus.default.bottleneck import LabelTree, cut_tree, grow_tree, sample_signatures
from partita.consensus.default.pair_information import Curve, cut_curve, resampled_cuts
from partita.consensus.default.pair_probabilities import mean_within, row_confidence, share_of_independent
from partita.consensus.default.tempered import TemperedResult, label_certainty, temper
from partita.consensus.member_statistics import independent_members, own_agreement
from partita.engines.run import Control

MAX_LEAVES = 2000  # distinct rows of the tree
MAX_CELLS = 400_000  # rows x members of the tree; with more members it has fewer rows
MIN_LEAVES = 200
MIN_EXPLAINED = 0.005  # share of the pair entropy that any consensus must explain
MAX_DOUBTFUL = 0.3  # share up to which members are compared with shuffled ones, for few rows; less for many
CHANCE_FACTOR = 1.5  # a consensus must explain this many times the share of shuffled members
FEW_ROWS = 300
N_SHUFFLES, N_SHUFFLES_OF_FEW = 3, 9
# Few shuffled objects share more by chance than many. So where shuffles of SCREENED objects explain less than this part
# of the share, shuffles of all objects, which take most of the time of a fit, are not needed.
SCREENED, MAX_OF_SCREENED = 100, 1.0 / 3.0


class Leaves(NamedTuple):
    """Distinct rows that the tree is grown from."""

    rows: np.ndarray  # which of the distinct rows
    codes: np.ndarray
    weights: np.ndarray


class ConsensusResult(NamedTuple):
    """The consensus of the distinct rows of a label matrix."""

    labels: np.ndarray
    confidence: np.ndarray
    model: TemperedResult | None  # None: one cluster
    curve: Curve
    posterior: np.ndarray  # how often each cut was best
    quality: np.ndarray  # [M] share of each member's pairs that the clusters explain
    n_independent: float  # number of independent members
    share: float  # the mean quality
    common: float  # the same without the member that is explained best
    chance: float  # the largest such share of the last shuffled members; 0 if they were not tried
    n_clusters: int
    at_bound: bool
    leaves: Leaves
    tree: LabelTree
    cut: np.ndarray  # cluster of each leaf in the cut that the clusters come from


def pick_leaves(
    codes: np.ndarray,
    weights: np.ndarray,
    n_levels: np.ndarray,
    rng: np.random.Generator,
    size: int = MAX_LEAVES,
) -> Leaves:
    """All distinct rows or a sample of them, in an order that depends neither on label names nor on the objects' order.

    In the tree the first row wins a tie. Rows are sorted by their weight, then by the number of objects that share
    their labels, then by how many objects share the labels of those, each in ascending order.

    Examples
    --------
    >>> codes = np.array([[0, 0], [1, 0], [1, 1]])
    >>> pick_leaves(codes, np.array([1.0, 1.0, 3.0]), np.array([2, 2]), np.random.default_rng(0)).rows
    array([0, 1, 2])
    """
    size = int(min(size, max(MIN_LEAVES, MAX_CELLS // codes.shape[1])))
    drawn = sample_signatures(weights, size, rng)
    rows = np.flatnonzero(drawn > 0)
    codes, drawn = codes[rows].astype(np.int64), drawn[rows]
    popular = _label_sharers(codes, n_levels, drawn)
    order = np.lexsort((_label_sharers(codes, n_levels, drawn * popular), popular, drawn))
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
    control: Control | None = None,
    folder: Any = None,
) -> ConsensusResult:
    """The consensus of members that are given as distinct rows with weights.

    Examples
    --------
    >>> codes = np.array([[0, 0, 1], [0, 0, 0], [1, 1, 0], [1, 1, 1]])
    >>> J, ones = np.full(3, 2), np.ones(3)
    >>> found = find_consensus(codes, np.full(4, 20.0), J, ones, np.random.default_rng(0))
    >>> found.n_clusters, found.labels
    (2, array([0, 0, 1, 1]))
    """
    control = Control() if control is None else control
    leaves = pick_leaves(codes, weights, n_levels, rng)
    tree = grow_tree(leaves.codes, leaves.weights, n_levels, member_weights)
    largest = max_clusters or int(2.0 * np.sqrt(leaves.weights.sum()))
    largest = min(max(largest, n_clusters or 0, 2), len(leaves.codes))
    curve = cut_curve(tree, leaves.codes, leaves.weights, n_levels, member_weights, largest)
    best = n_clusters or _best(curve)
    chance = 0.0
    share = _mean_share(curve, best, member_weights)
    common = _common_share(curve, best, member_weights)
    if n_clusters is None and common <= MAX_DOUBTFUL * np.sqrt(FEW_ROWS / max(len(leaves.codes), FEW_ROWS)):
        chance = _largest_chance(common, leaves, n_levels, member_weights, largest, rng, control)
        if _is_chance(common, chance):
            best = 1
    quality = curve.share[best - 2] if best > 1 else np.zeros(len(n_levels))
    z = cut_tree(tree, best)
    found = ConsensusResult(
        labels=np.zeros(len(codes), np.int64),
        confidence=np.zeros(len(codes)),
        model=None,
        curve=curve,
        posterior=np.zeros(len(curve.n_clusters)),
        quality=quality,
        n_independent=1.0,
        share=share,
        common=common,
        chance=chance,
        n_clusters=best,
        at_bound=bool(best == largest < len(leaves.codes)),
        leaves=leaves,
        tree=tree,
        cut=z,
    )
    if best == 1:
        return _one_cluster(found, codes, weights, n_levels, member_weights)
    data = (codes, weights, n_levels, member_weights)
    return _several(found, n_clusters or 2, z, leaves, data, rng, control, folder)


def _several(
    found: ConsensusResult,
    min_clusters: int,
    z: np.ndarray,
    leaves: Leaves,
    data: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    rng: np.random.Generator,
    control: Control,
    folder: Any,
) -> ConsensusResult:
    """Memberships of all rows from the cut of the leaves; the leaves keep the cut if EM leaves too few clusters."""
    codes, weights, n_levels, member_weights = data
    n_independent = independent_members(z, leaves.codes, n_levels, leaves.weights, member_weights)
    model = temper(z, leaves.rows, *data, n_independent, control=control, folder=folder)
    labels = model.labels
    if len(np.unique(labels)) < min_clusters:
        labels = labels.copy()
        labels[leaves.rows] = z
    agreement = own_agreement(labels, codes, n_levels, weights, member_weights)
    trust = share_of_independent(n_independent, codes, weights, member_weights)
    within = mean_within(labels, codes, weights, member_weights, trust)
    return found._replace(
        labels=labels,
        confidence=row_confidence(label_certainty(model, codes, labels), agreement, within, weights),
        model=model,
        posterior=resampled_cuts(found.curve, n_independent, rng),
        n_independent=n_independent,
    )


def _is_chance(common: float, chance: float) -> bool:
    return common <= max(MIN_EXPLAINED, CHANCE_FACTOR * chance)


def _largest_chance(
    common: float,
    leaves: Leaves,
    n_levels: np.ndarray,
    member_weights: np.ndarray,
    largest: int,
    rng: np.random.Generator,
    control: Control,
) -> float:
    """The largest share over several shuffles of the members, as far as it takes to decide whether it is too large.

    There are fewer shuffles if the time limit has passed.
    """
    data = (leaves, n_levels, member_weights, largest)
    size = int(max(2, min(leaves.weights.sum(), MAX_LEAVES, MAX_CELLS // len(n_levels))))
    if size > 2 * SCREENED:
        own = rng.spawn(1)[0]
        chance = max(chance_share(*data, own, SCREENED) for _ in range(N_SHUFFLES))
        if chance <= MAX_OF_SCREENED * common and not _is_chance(common, chance):
            return chance
    chance = 0.0
    for _ in range(N_SHUFFLES if len(leaves.codes) > FEW_ROWS else N_SHUFFLES_OF_FEW):
        chance = max(chance, chance_share(*data, rng, size))
        if control.late or _is_chance(common, chance):
            break
    return chance


def chance_share(
    leaves: Leaves,
    n_levels: np.ndarray,
    member_weights: np.ndarray,
    largest: int,
    rng: np.random.Generator,
    size: int,
) -> float:
    """Share of the pair entropy that the best cut of ``size`` objects explains after the labels have been shuffled."""
    total = float(leaves.weights.sum())
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
    """The mean share without the member that is explained best, as the clusters may be a copy of one member."""
    if n_clusters < 2 or not len(curve.n_clusters) or len(member_weights) < 2:
        return 0.0
    share = curve.share[n_clusters - 2]
    others = np.arange(len(share)) != np.argmax(share)
    return float(np.average(share[others], weights=member_weights[others]))


def _one_cluster(found: ConsensusResult, codes, weights, n_levels, member_weights) -> ConsensusResult:
    z = np.zeros(len(codes), np.int64)
    own = own_agreement(z, codes, n_levels, weights, member_weights)
    return found._replace(
        confidence=own, n_independent=independent_members(z, codes, n_levels, weights, member_weights)
    )


def _label_sharers(codes: np.ndarray, n_levels: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weight of the objects that share the label of a row, summed over the members."""
    total = np.zeros(len(codes))
    for m, J in enumerate(n_levels):
        seen = codes[:, m] >= 0
        total[seen] += np.bincount(codes[seen, m], weights[seen], minlength=int(J))[codes[seen, m]]
    return total
