"""Layout of a label matrix for models with one latent cluster per label, and predictions of such models.

The model of Bayesian cluster ensembles (Wang, Shan and Banerjee 2011): object i has memberships
``theta_i ~ Dirichlet(alpha)``; each of its labels has a latent cluster ``z_im ~ theta_i`` and is then drawn from that
cluster's distribution over the levels of the member, ``y_im ~ beta_{z_im, m}`` with ``beta_km ~ Dirichlet(eta)``.
This module holds what both engines (``bce.vb``, ``bce.gibbs``) share: the layout, the starts, and the memberships of
objects under a fitted model (folding in).

A member's weight is a power on its likelihood with the latent cluster summed out, ``(sum_k theta_ik beta_kmy) ** p``:
a whole number p is equivalent to p labels, each with its own latent cluster, from the same distributions.

Tables are [level of a member, cluster], members one after the other, clusters last.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from partita.dispatch import kernel
from partita.families.special import log_gamma_and_digamma

SEED_SAMPLE = 1000  # rows among which seeds are chosen
MAX_FOLD_PASSES, FOLD_TOL = 200, 1e-6


class LabelLayout(NamedTuple):
    """A label matrix as positions in a table of levels."""

    positions: np.ndarray  # [object, member], int32, -1 where there is no label
    starts: np.ndarray  # [member + 1], where the levels of each member begin
    powers: np.ndarray  # [member], the weight of each member
    weights: np.ndarray  # [object]

    @property
    def member_of_level(self) -> np.ndarray:
        """The member of each row of a table."""
        return np.repeat(np.arange(len(self.powers)), np.diff(self.starts))


def lay_out(codes: np.ndarray, n_levels: np.ndarray, weights: np.ndarray, powers: np.ndarray) -> LabelLayout:
    """Positions of all labels; those of members of weight 0 and of members with one level are left out.

    Examples
    --------
    >>> lay_out(np.array([[0, 1], [1, -1]]), np.array([2, 2]), np.ones(2), np.ones(2)).positions
    array([[ 0,  3],
           [ 1, -1]], dtype=int32)
    """
    starts = np.concatenate([[0], np.cumsum(n_levels)]).astype(np.int64)
    heard = (np.asarray(powers) > 0) & (np.asarray(n_levels) > 1)
    positions = np.empty(codes.shape, dtype=np.int32)
    for m in range(codes.shape[1]):
        positions[:, m] = np.where((codes[:, m] >= 0) & heard[m], codes[:, m] + starts[m], -1)
    return LabelLayout(positions, starts, np.asarray(powers, dtype=float), np.asarray(weights, dtype=float))


def level_sums(table: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Sums over the levels of each member [member, cluster]."""
    return np.add.reduceat(table, starts[:-1], axis=0) if len(table) else np.zeros((0, table.shape[1]))


def seed_table(cells: LabelLayout, K: int, rng: np.random.Generator) -> np.ndarray:
    """Counts of levels [level, cluster] with every object assigned to the nearest of K seeds."""
    return count_table(cells, nearest_seed(cells, K, rng), K)


def nearest_seed(cells: LabelLayout, K: int, rng: np.random.Generator) -> np.ndarray:
    """The nearest of K seeds for each object (k-means++ on label agreement)."""
    share = cells.weights / cells.weights.sum()
    rows = rng.choice(len(share), size=min(SEED_SAMPLE, len(share)), p=share)
    sample = cells.positions[rows]
    seeds = [0]
    loss = _disagreement(sample, sample[0], cells.powers)
    for _ in range(1, K):
        total = loss.sum()
        trials = rng.choice(len(rows), size=2 + int(math.log(K)), p=loss / total if total > 0 else None)
        left = [np.minimum(loss, _disagreement(sample, sample[t], cells.powers)) for t in trials]
        best = int(np.argmin([one.sum() for one in left]))
        seeds.append(int(trials[best]))
        loss = left[best]
    away = np.stack([_disagreement(cells.positions, sample[s], cells.powers) for s in seeds], axis=1)
    # equal distances are common: ties are broken at random, so that no seed is favored
    return np.argmin(away + 1e-9 * rng.random(away.shape), axis=1)


def _disagreement(positions: np.ndarray, one: np.ndarray, powers: np.ndarray) -> np.ndarray:
    """Squared share of the members that separate the rows, of those that saw both (1/2 if none did)."""
    both = np.zeros(len(positions))
    apart = np.zeros(len(positions))
    for m in np.flatnonzero(one >= 0):
        seen = positions[:, m] >= 0
        both += powers[m] * seen
        apart += powers[m] * (seen & (positions[:, m] != one[m]))
    return np.where(both > 0, apart / np.maximum(both, 1e-300), 0.5) ** 2


def count_table(cells: LabelLayout, z: np.ndarray, K: int) -> np.ndarray:
    """Counts of levels [level, cluster] of objects with labels z, weighted by object and member."""
    table = np.zeros((int(cells.starts[-1]), K))
    for m, power in enumerate(cells.powers):
        seen = np.flatnonzero(cells.positions[:, m] >= 0)
        block = table[cells.starts[m] : cells.starts[m + 1]]
        cell = (cells.positions[seen, m] - cells.starts[m]) * K + z[seen]
        block += power * np.bincount(cell, cells.weights[seen], minlength=block.size).reshape(block.shape)
    return table


@kernel
def fold_in_rows(positions, powers, alpha, B, n_passes, tol, out):
    """Mean memberships of each row at the fixed point of its variational update, started from equal shares."""
    n, M = positions.shape
    K = len(alpha)
    t, a, gamma = np.empty(K), np.empty(K), np.empty(K)
    for i in range(n):
        heard = 0.0
        for m in range(M):
            if positions[i, m] >= 0:
                heard += powers[m]
        total = heard  # of gamma, whatever the memberships are
        for k in range(K):
            gamma[k] = alpha[k] + heard / K
            total += alpha[k]
        digamma_total = log_gamma_and_digamma(total)[1]
        for _ in range(n_passes):
            for k in range(K):
                t[k] = math.exp(log_gamma_and_digamma(gamma[k])[1] - digamma_total)
                a[k] = 0.0
            for m in range(M):
                l = positions[i, m]
                if l >= 0:
                    s = 0.0
                    for k in range(K):
                        s += t[k] * B[l, k]
                    r = powers[m] / s
                    for k in range(K):
                        a[k] += r * B[l, k]
            change = 0.0
            for k in range(K):
                new = alpha[k] + t[k] * a[k]
                change += abs(new - gamma[k])
                gamma[k] = new
            if change <= tol * total:
                break
        for k in range(K):
            out[i, k] = gamma[k] / total


def fold_in(cells: LabelLayout, alpha: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Memberships [object, cluster] of objects under fixed distributions of the levels.

    ``B`` holds ``exp(E[log beta])`` (VB) or a point estimate of beta. Without labels they are the prior's.

    Examples
    --------
    >>> cells = lay_out(np.array([[0, 0], [-1, -1]]), np.array([2, 2]), np.ones(2), np.ones(2))
    >>> B = np.array([[0.9, 0.1], [0.1, 0.9], [0.9, 0.1], [0.1, 0.9]])
    >>> fold_in(cells, np.array([0.5, 0.5]), B).round(2)
    array([[0.83, 0.17],
           [0.5 , 0.5 ]])
    """
    out = np.empty((len(cells.positions), len(alpha)))
    fold_in_rows(cells.positions, cells.powers, alpha, B, MAX_FOLD_PASSES, FOLD_TOL, out)
    return out


@kernel
def predict_label_by_label(positions, powers, alpha, beta, out):
    """Log probability of each row, one label after the other (see ``log_predictive_rows``)."""
    n, M = positions.shape
    K = len(alpha)
    gamma = np.empty(K)
    for i in range(n):
        total = 0.0
        for k in range(K):
            gamma[k] = alpha[k]
            total += alpha[k]
        out[i] = 0.0
        for m in range(M):
            l = positions[i, m]
            if l >= 0:
                s = 0.0
                for k in range(K):
                    s += gamma[k] * beta[l, k]
                out[i] += math.log(s / total)
                for k in range(K):
                    gamma[k] += powers[m] * gamma[k] * beta[l, k] / s
                total += powers[m]


def log_predictive_rows(cells: LabelLayout, alpha: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """Log probability of the labels of each object, memberships folded in label by label.

    ``p(y_i) = prod_m p(y_im | y_i1 .. y_i,m-1)``: each label is predicted from the memberships that the labels before
    it leave, and then folded in by its expected latent cluster, which keeps their mean exact for that step. A label
    is never used to predict itself, and the probabilities of all possible rows sum to one. With one label, or one
    cluster, the result is the exact integral over the memberships; otherwise it is an approximation.

    Examples
    --------
    >>> cells = lay_out(np.array([[0, 0], [0, 1]]), np.array([2, 2]), np.ones(2), np.ones(2))
    >>> beta = np.array([[0.9, 0.1], [0.1, 0.9], [0.9, 0.1], [0.1, 0.9]])
    >>> np.exp(log_predictive_rows(cells, np.array([0.5, 0.5]), beta)).round(2)
    array([0.33, 0.17])
    """
    out = np.empty(len(cells.positions))
    predict_label_by_label(cells.positions, cells.powers, alpha, beta, out)
    return out
