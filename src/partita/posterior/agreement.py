"""Whether single chains come to the same partition, and which of them belong together."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from partita.execution.device_labels import labels_at
from partita.metrics import adjusted_rand
from partita.posterior.votes import vote
from partita.trace import Trace

MAX_ROWS = 20_000  # a sample of so many rows tells whether two partitions agree
SAME_GROUPS = 0.7  # adjusted Rand index of the votes of two chains that found the same groups
SUPPORTED = 0.9  # the same between the vote of all draws and that of the chain nearest to it


def sampled_objects(n_objects: int) -> NDArray[np.int64]:
    """At most `MAX_ROWS` objects at equal distances.

    Examples
    --------
    >>> sampled_objects(3), len(sampled_objects(10**9))
    (array([0, 1, 2]), 20000)
    """
    return np.unique(np.linspace(0, n_objects - 1, min(n_objects, MAX_ROWS)).round().astype(np.int64))


def sampled_labels(labels: Any) -> NDArray[np.int64]:
    """Labels [draw, row] at no more than `MAX_ROWS` rows, from 0; outliers (-1) are one more cluster.

    The draws may be on a device; the sample is on the host.
    """
    found = labels_at(labels, sampled_objects(labels.shape[1]))
    return found - np.minimum(found.min(axis=1, keepdims=True), 0)


def votes_of_chains(trace: Trace) -> NDArray[np.int64]:
    """The partition that each chain alone votes for, [chain, row], at a sample of the rows."""
    labels, chain = trace.labels, np.asarray(trace.chain)
    return np.stack([vote(sampled_labels(labels[chain == one])).labels for one in np.unique(chain)])


def agreement_matrix(partitions: NDArray[np.int64]) -> NDArray[np.float64]:
    """Adjusted Rand index of all pairs of partitions.

    Examples
    --------
    >>> agreement_matrix(np.array([[0, 0, 1, 1], [1, 1, 0, 0], [0, 1, 0, 1]])).tolist()
    [[1.0, 1.0, -0.5], [1.0, 1.0, -0.5], [-0.5, -0.5, 1.0]]
    """
    out = np.eye(len(partitions))
    for i, one in enumerate(partitions):
        for j in range(i):
            out[i, j] = out[j, i] = adjusted_rand(one, partitions[j])
    return out


def mean_agreement(matrix: NDArray[np.float64]) -> float:
    """Mean over all pairs; NaN for a single partition.

    Examples
    --------
    >>> mean_agreement(np.array([[1.0, 0.5], [0.5, 1.0]]))
    0.5
    """
    n = len(matrix)
    return float(matrix[np.triu_indices(n, 1)].mean()) if n > 1 else float("nan")


def draws_to_sum(trace: Trace) -> NDArray[np.bool_]:
    """The draws whose vote is the answer: all of them, unless no chain supports what they vote for together.

    Chains in different partitions can vote for a mixture of them that none has visited. Then the largest set of chains
    that found the same groups decides; of equal sets, the one with the higher log joint. If no chain supports the vote
    of this set either, the chain that agrees best with the others of the set decides alone.

    Examples
    --------
    >>> one, other = [0, 0, 0, 1, 1, 1], [0, 1, 0, 1, 0, 1]
    >>> labels, zeros = np.array([one, one, other, one, other, one]), np.zeros(6)
    >>> trace = Trace(labels, zeros, zeros, zeros, zeros, np.arange(6))
    >>> draws_to_sum(trace).tolist()
    [True, True, True, True, True, True]
    >>> divided = trace._replace(labels=np.array([one, one, other, other, [0] * 6, [0, 1, 2, 3, 4, 5]]))
    >>> draws_to_sum(divided).tolist()
    [True, True, False, False, False, False]
    """
    chain = np.asarray(trace.chain)
    numbers = np.unique(chain)
    everything = np.ones(len(chain), bool)
    if len(numbers) == 1:
        return everything
    votes = votes_of_chains(trace)
    if _is_supported(trace, everything, votes):
        return everything
    agreement = agreement_matrix(votes)
    sets = _linked(agreement >= SAME_GROUPS)
    log_joint = np.array([np.mean(np.asarray(trace.log_joint)[chain == number]) for number in numbers])
    best = max(np.unique(sets), key=lambda s: (np.sum(sets == s), log_joint[sets == s].mean()))
    chosen = np.isin(chain, numbers[sets == best])
    own = np.flatnonzero(sets == best)
    if len(own) == 1 or _is_supported(trace, chosen, votes[own]):
        return chosen
    nearest = own[agreement[np.ix_(own, own)].mean(axis=1).argmax()]
    return chain == numbers[nearest]


def _is_supported(trace: Trace, chosen: NDArray[np.bool_], votes: NDArray[np.int64]) -> bool:
    """Whether some chain alone votes for nearly the same as the chosen draws together."""
    together = vote(sampled_labels(trace.labels[chosen])).labels
    return max(adjusted_rand(together, one) for one in votes) >= SUPPORTED


def _linked(near: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The connected sets of a small symmetric relation, one number per element."""
    sets = np.arange(len(near))
    for i, j in zip(*np.nonzero(near), strict=True):
        sets[sets == sets[j]] = sets[i]
    return sets
