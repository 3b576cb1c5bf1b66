"""LACA as its paper defines it, on N x N matrices and single objects: the reference of the fast one.

Errata: rates with the index e in (17), unordered pairs i < j everywhere, k-LACA cuts the last tree once. A pair with a
missing label leaves that member. Ties go to the pair whose clusters hold the smallest rows of labels.
"""

from typing import NamedTuple

import numpy as np


class NaiveFit(NamedTuple):
    labels: np.ndarray
    rho: np.ndarray
    r: np.ndarray
    log_likelihood: float
    links: list
    n_iter: int
    converged: bool
    cycle: int


def naive_laca(
    Y,
    member_weights=None,
    *,
    n_clusters=None,
    min_clusters=2,
    prior_pairs=30.0,
    max_iter=100,
    tol=1e-6,
    rounding=True,
):
    """LACA of a label matrix, object by object."""
    order = np.lexsort(Y.T[::-1])
    Y = Y[order]
    N, M = Y.shape
    power = np.ones(M) if member_weights is None else np.asarray(member_weights, float)
    pairs = np.triu(np.ones((N, N), bool), 1)
    both = [(y >= 0)[:, None] & (y >= 0)[None, :] & pairs for y in Y.T]
    sigma = [seen & (y[:, None] == y[None, :]) for seen, y in zip(both, Y.T)]
    rho, r = _initial(sigma, both, power, prior_pairs)
    steps, seen_before = [], {}
    converged, cycle = False, 0
    for t in range(max_iter):
        score = _scores(sigma, both, rho, r, power, rounding)
        merges, links = _greedy(score)
        stop = next((k for k, link in enumerate(links) if link < 0), len(links))
        K = max(N - stop, min(min_clusters, N))
        labels = _labels_after(merges, N, N - K)
        omega = labels[:, None] == labels[None, :]
        new_rho, new_r, likelihood = _estimate(sigma, both, omega, power, prior_pairs)
        steps.append((likelihood, labels, new_rho, new_r, merges, links))
        moved = np.abs(new_rho - rho).sum() + np.abs(new_r - r).sum()
        if moved < tol:
            converged = True
            break
        key = omega.tobytes()
        if key in seen_before:
            cycle = t - seen_before[key]
            break
        seen_before[key] = t
        rho, r = new_rho, new_r
    n_iter = len(steps)
    if not converged:
        steps = [max(steps, key=lambda step: step[0])]
    likelihood, labels, rho, r, merges, links = steps[-1]
    if n_clusters is not None:
        labels = _labels_after(merges, N, N - n_clusters)
    found = np.empty(N, int)
    found[order] = labels
    return NaiveFit(found, rho, r, likelihood, links, n_iter, converged, cycle)


def _initial(sigma, both, power, ess):
    count = sum(g * s for g, s in zip(power, sigma))
    rcount = sum(g * (b & ~s) for g, s, b in zip(power, sigma, both))
    rho = [(count[s].sum() + 0.5 * ess) / (count[b].sum() + ess) for s, b in zip(sigma, both)]
    r = [(rcount[s].sum() + 0.5 * ess) / (rcount[b].sum() + ess) for s, b in zip(sigma, both)]
    return np.array(rho), np.array(r)


def _scores(sigma, both, rho, r, power, rounding):
    same, apart = power * np.log(rho / r), power * np.log((1 - rho) / (1 - r))
    if rounding:
        N = len(sigma[0])
        largest = np.abs(same - apart).sum() + np.abs(apart).sum()
        bits = min(max(52 - int(np.ceil(np.log2(max(largest * N * N / 4, 1.0)))), 20), 40)
        same, apart = (np.round(w * 2.0**bits) / 2.0**bits for w in (same, apart))
    score = sum(a * s + b * (saw & ~s) for a, b, s, saw in zip(same, apart, sigma, both))
    return score + score.T


def _greedy(score):
    """All merges by the largest average link; positions are those of the clusters' smallest objects."""
    sums = score.copy()
    n = np.ones(len(sums))
    alive = np.arange(len(sums))
    merges, links = [], []
    while alive.size > 1:
        link = sums[np.ix_(alive, alive)] / np.outer(n[alive], n[alive])
        link[np.tril_indices(alive.size)] = -np.inf
        a, b = np.unravel_index(np.argmax(link), link.shape)  # the first of the largest
        u, v = alive[a], alive[b]
        merges.append((u, v))
        links.append(link[a, b])
        sums[u] += sums[v]
        sums[:, u] += sums[:, v]
        n[u] += n[v]
        alive = np.delete(alive, b)
    return merges, links


def _labels_after(merges, N, n_merges):
    labels = np.arange(N)
    for u, v in merges[:n_merges]:
        labels[labels == v] = u
    return np.unique(labels, return_inverse=True)[1]


def _estimate(sigma, both, omega, power, ess):
    rho, r, likelihood = [], [], 0.0
    for s, b, g in zip(sigma, both, power):
        n11, n10 = (s & omega).sum(), (b & ~s & omega).sum()
        n01, n00 = (s & ~omega).sum(), (b & ~s & ~omega).sum()
        rho.append((n11 + 0.5 * ess) / (n11 + n10 + ess))
        r.append((n01 + 0.5 * ess) / (n01 + n00 + ess))
        likelihood += g * (n11 * np.log(rho[-1]) + n10 * np.log(1 - rho[-1]))
        likelihood += g * (n01 * np.log(r[-1]) + n00 * np.log(1 - r[-1]))
    return np.array(rho), np.array(r), likelihood
