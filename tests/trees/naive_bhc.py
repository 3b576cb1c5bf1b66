"""Bayesian hierarchical clustering as Murphy's algorithm 25.3 prints it: all pairs at every step, p(D | T), pi and d.

Log marginals are sums of log predictives (Student, ratios of counts, negative binomial), one datum after the other, and
share no code with partita.
"""

from math import lgamma, log, log1p, pi

import numpy as np
from scipy.special import gammaln


def gaussian(X, hyper):
    total = 0.0
    for d, (m, k, a, b) in enumerate(zip(*hyper, strict=True)):
        for x in X[:, d]:
            scale2 = b * (k + 1) / (a * k)  # Student with 2 a degrees of freedom
            total += lgamma(a + 0.5) - lgamma(a) - 0.5 * log(2 * a * pi * scale2)
            total -= (a + 0.5) * log1p((x - m) ** 2 / (2 * a * scale2))
            b += 0.5 * k * (x - m) ** 2 / (k + 1)
            m, k, a = (k * m + x) / (k + 1), k + 1, a + 0.5
    return total


def bernoulli(X, hyper):
    total = 0.0
    for d, (a, b) in enumerate(zip(*hyper, strict=True)):
        for x in X[:, d]:
            total += log((a if x else b) / (a + b))
            a, b = a + x, b + 1 - x
    return total


def poisson(X, hyper):
    total = 0.0
    for d, (a, b) in enumerate(zip(*hyper, strict=True)):
        for x in X[:, d]:
            total += lgamma(a + x) - lgamma(a) - lgamma(x + 1) + a * log(b / (b + 1)) - x * log(b + 1)
            a, b = a + x, b + 1
    return total


def merge_all(X, log_marginal, alpha):
    """Merges as pairs of frozen sets of rows, with r; and log p(D | T), d at the root."""
    known = {}

    def evidence(members):
        if members not in known:
            known[members] = log_marginal(X[sorted(members)])
        return known[members]

    trees = [(frozenset([i]), log_marginal(X[[i]]), alpha) for i in range(len(X))]  # members, log p(D | T), d
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
                log_one = log_pi + evidence(members)
                joint = np.logaddexp(log_one, log_apart)
                odds = log_one - log_apart  # r rises with it, and never rounds to 1
                if best is None or odds > best[0]:
                    best = (odds, i, j, (members, joint, d), np.exp(log_one - joint))
        odds, i, j, tree, r = best
        merges.append((trees[i][0], trees[j][0], odds, r))
        trees = [other for e, other in enumerate(trees) if e not in (i, j)] + [tree]
    return merges, trees[0][1], trees[0][2]
