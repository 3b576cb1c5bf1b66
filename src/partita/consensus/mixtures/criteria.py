"""Criteria for the number of clusters of a mixture of label vectors; the lowest value is the best."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from scipy.special import xlogy

from partita.engines.climb.seeding import label_statistics
from partita.engines.passes.rows import Assignment, total_of
from partita.execution import ShardData
from partita.families import Block
from partita.families.contract import n_parameters
from partita.labels import label_histograms
from partita.labels.matrices import Histograms


def bic(block: Block, weights: np.ndarray, assigned: Assignment, K: int) -> float:
    """Bayesian information criterion; n is the sum of the weights."""
    deviance = -2.0 * total_of(assigned.log_likelihood, weights)
    return deviance + (K - 1 + K * n_parameters(block.family)) * math.log(weights.sum())


def icl(block: Block, weights: np.ndarray, assigned: Assignment, K: int) -> float:
    """BIC plus twice the entropy of the assignments, which penalizes clusters that overlap."""
    return bic(block, weights, assigned, K) + 2.0 * total_of(assigned.entropy, weights)


def mdl(block: Block, weights: np.ndarray, assigned: Assignment, K: int) -> float:
    """Length, in nats, of the shortest code of the clusters plus that of the labels given the clusters.

    Both are normalized maximum likelihood codes: minus the maximal log-likelihood, plus the regret, which is the cost
    of not knowing the parameters in advance. The labels of a member count with its power.
    """
    z, n_levels, power = assigned.labels, block.family.n_levels, block.family.power
    sizes = np.bincount(z, weights, minlength=K)
    total = xlogy(sizes.sum(), sizes.sum()) - xlogy(sizes, sizes).sum() + float(log_regret(sizes.sum(), K))
    counts, offsets = _histograms(block, weights, z, K)
    for m, (lo, hi) in enumerate(pairwise(offsets)):
        n = counts[:, lo:hi].sum(axis=1)
        labels = xlogy(n, n) - xlogy(counts[:, lo:hi], counts[:, lo:hi]).sum(axis=1)
        total += power[m] * float((labels + log_regret(n, int(n_levels[m]))).sum())
    return float(total)


def _histograms(block: Block, weights: np.ndarray, z: np.ndarray, K: int) -> Histograms:
    """Label counts of every cluster; for chunks from the statistics, which hold a total before the labels."""
    if not isinstance(block.data, ShardData):
        return label_histograms(z, block.data, block.family.n_levels, weights=weights, n_clusters=K)
    counts = np.delete(label_statistics([block], weights, z, K).S[0].T, block.family.offsets[:-1], axis=1)
    return Histograms(counts, block.family.offsets - np.arange(len(block.family.offsets)))


def log_regret(n: np.ndarray | float, n_levels: int) -> np.ndarray:
    """Log of the sum, over all samples of n objects, of their maximal multinomial likelihood.

    Two levels use the expansion of Szpankowski (accurate to about 1% at n = 1, and better for larger n), more levels
    the recurrence of Kontkanen and Myllymaki, ``C(J + 2) = C(J + 1) + n / J C(J)``; n may be fractional.

    Examples
    --------
    >>> float(log_regret(0.0, 5))
    0.0
    >>> exact = sum(math.comb(10, h) * (h / 10) ** h * (1 - h / 10) ** (10 - h) for h in range(11))
    >>> bool(abs(log_regret(10.0, 2) - math.log(exact)) < 1e-3)
    True
    """
    n = np.atleast_1d(np.asarray(n, dtype=np.float64))
    seen = np.maximum(n, 1e-9)
    tail = np.sqrt(8.0 / (9.0 * np.pi * seen)) + (3.0 * np.pi - 16.0) / (36.0 * np.pi * seen)
    two = 0.5 * np.log(0.5 * np.pi * seen) + tail
    # the expansion does not hold below one object: interpolate from 0 (no object) to log 2 (one object)
    two = np.where(n < 1.0, n * math.log(2.0), np.maximum(two, math.log(2.0)))
    before, now = np.zeros_like(n), two if n_levels > 1 else np.zeros_like(n)
    for J in range(1, n_levels - 1):
        before, now = now, np.logaddexp(now, np.log(seen / J) + before)
    return np.where(n > 0, now, 0.0).reshape(np.shape(n) if np.size(n) > 1 else ())


CRITERIA = {"bic": bic, "icl": icl, "mdl": mdl}
