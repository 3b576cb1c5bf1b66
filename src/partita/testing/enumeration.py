"""Exact posteriors of a few objects, by a sum over all clusterings.

The log marginal of the family is used for complete data only. Hidden coordinates of partly observed vectors are summed
or integrated numerically, so that this module shares no code with their treatment in the engines.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp, xlogy

from partita.families import n_rows
from partita.families.contract import datum, n_columns, observe, stats_start
from partita.families.registry import Block
from partita.families.rows import log_marginals
from partita.labels import set_partitions
from partita.partitions import bind, log_eppf, log_labeled
from partita.testing.grids import completions


class EnumerationResult(NamedTuple):
    """All clusterings, one per row, and their log joint probabilities with the data."""

    labels: np.ndarray
    log_joint: np.ndarray

    @property
    def log_evidence(self) -> float:
        """Log probability of the data, summed over the clusterings."""
        return float(logsumexp(self.log_joint))

    @property
    def posterior(self) -> np.ndarray:
        """Probability of each clustering given the data."""
        return np.exp(self.log_joint - self.log_evidence)


def row_statistics(lik: Any, data: Any, i: int) -> np.ndarray:
    """``t(x_i)`` of all columns, computed by ``observe`` alone.

    Examples
    --------
    >>> from partita.families import Bernoulli
    >>> row_statistics(Bernoulli.default(2), np.array([[1, -1]]), 0)
    array([0., 1., 0., 0.])
    """
    t = np.zeros(int(stats_start(lik, n_columns(lik))))
    for d in range(n_columns(lik)):
        view = t[stats_start(lik, d) : stats_start(lik, d + 1)]
        observe(lik, d, view, datum(lik, data, i, d), 1.0)
    return t


def subset_log_evidence(block: Block) -> np.ndarray:
    """Log evidence of every subset of the objects as one cluster; bit i of the index tells whether i is in it.

    Parameters
    ----------
    block : Block
        A family and few objects. Every partly observed vector multiplies the work by the number of nodes for its hidden
        coordinates, so there should be at most two or three.

    Examples
    --------
    >>> from partita.families import Bernoulli
    >>> block = Block(Bernoulli.default(1), np.array([[1], [1]]), ("a",))
    >>> np.exp(subset_log_evidence(block)).round(4)
    array([1.   , 0.5  , 0.5  , 0.375])
    """
    lik, data = block.family, block.data
    N = n_rows(data)
    nodes, log_weights = [], []  # of each object: statistics [statistic, node]
    for i in range(N):
        rule = completions(lik, data, i)
        if rule is None:
            t = row_statistics(lik, data, i)
            nodes.append(
                np.where(np.isnan(t), 0.0, t)[:, None]
            )  # an object without observed cells adds nothing
            log_weights.append(np.zeros(1))
        else:
            M = len(rule.log_weights)
            nodes.append(np.stack([row_statistics(lik, rule.nodes, j) for j in range(M)], axis=1))
            log_weights.append(rule.log_weights)
    out = np.zeros(2**N)
    for mask in range(1, 2**N):
        S, log_w = np.zeros((len(nodes[0]), 1)), np.zeros(1)
        for i in range(N):
            if mask >> i & 1:
                S = (S[:, :, None] + nodes[i][:, None, :]).reshape(len(S), -1)
                log_w = (log_w[:, None] + log_weights[i][None, :]).ravel()
        out[mask] = logsumexp(log_marginals(lik, np.ascontiguousarray(S)).sum(axis=0) + log_w)
    return out


def enumerate_labels(blocks: Sequence[Block], prior: Any) -> EnumerationResult:
    """All label vectors under a labeled prior (finite Dirichlet, stick-breaking).

    Examples
    --------
    >>> from partita.families import Bernoulli
    >>> from partita.partitions import FiniteDirichlet
    >>> block = Block(Bernoulli.default(1), np.array([[1], [1], [0]]), ("a",))
    >>> exact = enumerate_labels([block], FiniteDirichlet(1.0, 2))
    >>> len(exact.labels), round(exact.log_evidence, 4)
    (8, -2.5494)
    """
    K = prior.n_components
    Z = np.array(list(itertools.product(range(K), repeat=n_rows(blocks[0].data))))
    log_prior = [log_labeled(prior, np.bincount(z, minlength=K).astype(float)) for z in Z]
    return EnumerationResult(Z, np.array(log_prior) + _log_likelihood(blocks, Z))


def enumerate_partitions(blocks: Sequence[Block], prior: Any) -> EnumerationResult:
    """All set partitions under an exchangeable prior (any with ``log_eppf``).

    Examples
    --------
    >>> from partita.families import Bernoulli
    >>> from partita.partitions import DirichletProcess
    >>> block = Block(Bernoulli.default(1), np.array([[1], [1], [0]]), ("a",))
    >>> exact = enumerate_partitions([block], DirichletProcess(1.0))
    >>> len(exact.labels), round(exact.log_evidence, 4)
    (5, -2.3671)
    """
    N = n_rows(blocks[0].data)
    prior = bind(prior, N)
    Z = np.array(list(set_partitions(N)))
    log_prior = [log_eppf(prior, np.bincount(z).astype(float), int(z.max()) + 1) for z in Z]
    return EnumerationResult(Z, np.array(log_prior) + _log_likelihood(blocks, Z))


def _log_likelihood(blocks: Sequence[Block], Z: np.ndarray) -> np.ndarray:
    table = np.sum([subset_log_evidence(block) for block in blocks], axis=0)
    bits = 1 << np.arange(Z.shape[1])
    members = Z[:, :, None] == np.arange(Z.max() + 1)  # [clustering, object, cluster]
    return table[np.einsum("zik,i->zk", members, bits)].sum(axis=1)


def label_marginals(exact: EnumerationResult, n_labels: int) -> np.ndarray:
    """``P(z_i = k | data)``, [object, label].

    Examples
    --------
    >>> label_marginals(EnumerationResult(np.array([[0, 0], [0, 1]]), np.log([0.3, 0.1])), 2)
    array([[1.  , 0.  ],
           [0.75, 0.25]])
    """
    return np.stack([exact.posterior @ (exact.labels == k) for k in range(n_labels)], axis=1)


def co_clustering(exact: EnumerationResult) -> np.ndarray:
    """``P(z_i = z_j | data)``, [object, object].

    Examples
    --------
    >>> co_clustering(EnumerationResult(np.array([[0, 0], [0, 1]]), np.log([0.3, 0.1])))
    array([[1.  , 0.75],
           [0.75, 1.  ]])
    """
    same = exact.labels[:, :, None] == exact.labels[:, None, :]
    return np.tensordot(exact.posterior, same, axes=1)


def collapsed_bound(exact: EnumerationResult, R: np.ndarray) -> float:
    """``E_q[log p(X, z)] + H(q)`` of independent labels with probabilities R: the collapsed variational bound.

    Parameters
    ----------
    exact : EnumerationResult
        From :func:`enumerate_labels`.
    R : ndarray (N, K)
        Responsibilities.

    Examples
    --------
    >>> exact = EnumerationResult(np.array([[0], [1]]), np.log([0.3, 0.1]))
    >>> bool(np.isclose(collapsed_bound(exact, np.array([[0.75, 0.25]])), exact.log_evidence))
    True
    """
    q = np.prod(np.take_along_axis(R, exact.labels.T, axis=1), axis=0)
    return float(np.sum(q[q > 0] * exact.log_joint[q > 0]) - xlogy(R, R).sum())


def collapsed_update(exact: EnumerationResult, R: np.ndarray, i: int) -> np.ndarray:
    """The probabilities of object i that maximize the collapsed bound, with the other rows of R fixed.

    Examples
    --------
    >>> exact = EnumerationResult(np.array([[0], [1]]), np.log([0.3, 0.1]))
    >>> collapsed_update(exact, np.array([[0.5, 0.5]]), 0)
    array([0.75, 0.25])
    """
    chosen = np.take_along_axis(R, exact.labels.T, axis=1)
    chosen[i] = 1.0
    q = np.prod(chosen, axis=0)
    L = np.array([np.sum((q * exact.log_joint)[exact.labels[:, i] == k]) for k in range(R.shape[1])])
    return np.exp(L - logsumexp(L))
