"""Bayesian hierarchical clustering as Murphy's algorithm 25.3 prints it: all pairs at every step, p(D | T), pi and d.

Log marginals are sums of log predictives from scipy.stats, one datum after the other, and share no code with partita.
"""

import numpy as np
from scipy.special import gammaln
from scipy.stats import nbinom, t


def gaussian(X, hyper):
    total = 0.0
    for d, (m, k, a, b) in enumerate(zip(*hyper, strict=True)):
        for x in X[:, d]:
            total += t(2 * a, loc=m, scale=np.sqrt(b * (k + 1) / (a * k))).logpdf(x)
            b += 0.5 * k * (x - m) ** 2 / (k + 1)
            m, k, a = (k * m + x) / (k + 1), k + 1, a + 0.5
    return total


def bernoulli(X, hyper):
    total = 0.0
    for d, (a, b) in enumerate(zip(*hyper, strict=True)):
        for x in X[:, d]:
            total += np.log((a if x else b) / (a + b))
            a, b = a + x, b + 1 - x
    return total


def poisson(X, hyper):
    total = 0.0
    for d, (a, b) in enumerate(zip(*hyper, strict=True)):
        for x in X[:, d]:
            total += nbinom(a, b / (b + 1)).logpmf(x)
            a, b = a + x, b + 1
    return total


def merge_all(X, log_marginal, alpha):
    """Merges as pairs of frozen sets of rows, with r; and log p(D | T), d at the root."""
    trees = [({i}, log_marginal(X[[i]]), alpha) for i in range(len(X))]  # members, log p(D | T), d
    merges = []
    while len(trees) > 1:
        best = None
        for i in range(len(trees)):
            for j in range(i + 1, len(trees)):
                members = trees[i][0] | trees[j][0]
                own = alpha * np.exp(gammaln(len(members)))
                d = own + trees[i][2] * trees[j][2]
                log_pi = np.log(own / d)
                log_apart = np.log(trees[i][2] * trees[j][2] / d) + trees[i][1] + trees[j][1]
                log_one = log_pi + log_marginal(X[sorted(members)])
                joint = np.logaddexp(log_one, log_apart)
                odds = log_one - log_apart  # r rises with it, and never rounds to 1
                if best is None or odds > best[0]:
                    best = (odds, i, j, (members, joint, d), np.exp(log_one - joint))
        odds, i, j, tree, r = best
        merges.append((frozenset(trees[i][0]), frozenset(trees[j][0]), odds, r))
        trees = [other for e, other in enumerate(trees) if e not in (i, j)] + [tree]
    return merges, trees[0][1], trees[0][2]
