"""How far the members disagree about one cluster of one of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from partita.labels import one_hot

__all__ = ["cluster_uncertainty"]


def cluster_uncertainty(
    rows: NDArray[Any],
    n_levels: NDArray[Any],
    sizes: NDArray[np.float64],
    member_weights: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Mean entropy, in bits, of the members' labels within each cluster of each member.

    A member counts for a cluster by its weight, over the objects of the cluster that it saw. The result has one value
    for each level of each member; 0 where the members do not tear the cluster.

    Examples
    --------
    >>> rows = np.array([[0, 0], [0, 1], [1, 1]])
    >>> cluster_uncertainty(rows, np.array([2, 2]), np.ones(3), np.ones(2)).tolist()
    [0.5, 0.0, 0.0, 0.5]
    """
    ones, offsets = one_hot(rows, n_levels)
    weighted = (ones * sizes[:, None]).tocsc()
    entropy, weight = np.zeros((2, ones.shape[1]))
    for m, power in enumerate(member_weights):
        shared = (ones.T @ weighted[:, offsets[m] : offsets[m + 1]]).toarray()
        seen = shared.sum(axis=1)
        share = np.divide(shared, seen[:, None], out=np.zeros_like(shared), where=seen[:, None] > 0)
        logs = np.log2(share, out=np.zeros_like(share), where=share > 0)
        entropy -= power * (share * logs).sum(axis=1)
        weight += power * (seen > 0)
    return np.divide(np.abs(entropy), weight, out=np.zeros_like(entropy), where=weight > 0)
