"""How far the members agree that an object belongs where the consensus has put it."""

from __future__ import annotations

import numpy as np

from partita.consensus.labelings import Labelings
from partita.labels import label_histograms

__all__ = ["own_agreement"]

CHUNK_ROWS = 1 << 18


def own_agreement(labels: np.ndarray, labelings: Labelings) -> np.ndarray:
    """Share of the members that agree with each object's place, averaged over the other objects of its cluster.

    Members count by their weight, and only where they saw both objects. For an object that is alone in its cluster it
    is the share of the members that leave it alone too.

    Examples
    --------
    >>> own_agreement(np.array([0, 0, 0, 1]), Labelings.of([[0, 0], [0, 0], [0, 1], [1, 1]])).tolist()
    [0.75, 0.75, 0.5, 0.5]
    """
    codes, n_levels, weights = labelings.codes, labelings.n_levels, labelings.weights
    counts, offsets = label_histograms(labels, codes, n_levels, weights=weights)
    totals = counts.sum(axis=0)
    seen = np.add.reduceat(counts, offsets[:-1], axis=1)
    agreement = np.empty(len(codes))
    for start in range(0, len(codes), CHUNK_ROWS):
        rows = slice(start, start + CHUNK_ROWS)
        z, itself = labels[rows], np.minimum(weights[rows], 1.0)  # one of the copies is the object
        agreed, saw, alone, has = np.zeros((4, len(z)))
        for m, power in enumerate(labelings.member_weights):
            there = codes[rows, m] >= 0
            column = np.where(there, codes[rows, m], 0) + offsets[m]
            agreed += np.where(there, power * (counts[z, column] - itself), 0.0)
            saw += np.where(there, power * (seen[z, m] - itself), 0.0)
            alone += np.where(there & (totals[column] <= itself), power, 0.0)
            has += np.where(there, power, 0.0)
        others = saw > 0
        agreement[rows] = np.where(others, agreed, alone) / np.where(others, saw, np.maximum(has, 1e-300))
    return np.clip(agreement, 0.0, 1.0)
