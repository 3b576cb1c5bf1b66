"""Learning the concentration of the memberships: Newton steps for the bound, random walks for chains."""

from __future__ import annotations

import numpy as np
from scipy.special import digamma, gammaln, polygamma

# below MIN_ALPHA, exp(digamma) underflows for all clusters
MIN_ALPHA, MAX_ALPHA = 0.005, 1e4
MAX_NEWTON_STEPS, MAX_HALVINGS = 20, 20
N_WALKS, WALK_SCALE = 4, 0.5
# rate of the prior Gamma(1, 1) of each alpha_k in chains: most of its mass is between equal and pure memberships
PRIOR_RATE = 1.0


def fit_alpha(alpha: np.ndarray, mean_log_theta: np.ndarray, *, symmetric: bool = False) -> np.ndarray:
    """The alpha that maximizes ``E_q[log Dirichlet(theta; alpha)]``, between MIN_ALPHA and MAX_ALPHA.

    ``mean_log_theta`` is the mean over the objects of ``E_q[log theta_k]``. Newton steps with the Hessian's structure
    (diagonal plus a constant; Minka 2000) are halved until the objective increases, so the bound never decreases.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> fit_alpha(np.ones(2), np.log(rng.dirichlet([2.0, 0.5], size=100_000)).mean(axis=0)).round(1)
    array([2. , 0.5])
    """
    K = len(alpha)
    if K == 1:
        return alpha  # memberships of one cluster are 1 for any alpha

    def objective(a: np.ndarray) -> float:
        return float(gammaln(a.sum()) - gammaln(a).sum() + (a - 1.0) @ mean_log_theta)

    best = objective(alpha)
    for _ in range(MAX_NEWTON_STEPS):
        total = alpha.sum()
        gradient = digamma(total) - digamma(alpha) + mean_log_theta
        if symmetric:
            a = alpha[0]
            curve = K * polygamma(1, K * a) - polygamma(1, a)
            step = np.full(K, gradient.sum() / K / min(curve, -1e-300))
        else:
            # coordinates that are held at a bound are left out of the step
            free = ~(((alpha <= MIN_ALPHA) & (gradient < 0)) | ((alpha >= MAX_ALPHA) & (gradient > 0)))
            if not free.any():
                break
            curve, common = -polygamma(1, alpha[free]), polygamma(1, total)
            shift = (gradient[free] / curve).sum() / (1.0 / common + (1.0 / curve).sum())
            step = np.zeros(K)
            step[free] = (gradient[free] - shift) / curve
        moved = False
        for _ in range(MAX_HALVINGS):
            # a long step would become negative: divide by 10 instead
            new = np.where(step < 0.9 * alpha, alpha - step, alpha / 10.0)
            new = np.clip(new, MIN_ALPHA, MAX_ALPHA)
            value = objective(new)
            if value > best:
                moved = value > best + 1e-12 * (1.0 + abs(best))
                alpha, best = new, value
                break
            step = step / 2.0
        if not moved:
            break
    return alpha


def log_memberships(alpha: np.ndarray, counts: np.ndarray) -> float:
    """Log probability of all latent clusters, memberships integrated out.

    ``counts[k, c]`` is the number of objects with c labels in cluster k; its last row [K, c] is the number of objects
    with c labels at all.

    Examples
    --------
    >>> counts = np.array(
    ...     [[0, 1, 0], [0, 1, 0], [0, 0, 1]]
    ... )  # one object, two labels, one in each of two clusters
    >>> float(np.exp(log_memberships(np.ones(2), counts)).round(6))
    0.166667
    """
    c = np.arange(counts.shape[1])
    of_clusters = gammaln(alpha[:, None] + c) - gammaln(alpha)[:, None]
    total = alpha.sum()
    return float((counts[:-1] * of_clusters).sum() + counts[-1] @ (gammaln(total) - gammaln(total + c)))


def walk_alpha(
    alpha: np.ndarray, counts: np.ndarray, rng: np.random.Generator, *, symmetric: bool = False
) -> np.ndarray:
    """Random walks on each log alpha_k (or the one they share) under Gamma(1, 1), given ``log_memberships``' counts."""
    now = log_memberships(alpha, counts)
    for _ in range(N_WALKS):
        for k in [slice(None)] if symmetric else range(len(alpha)):
            factor = np.exp(WALK_SCALE * rng.standard_normal())
            level = np.log(rng.random())
            there = alpha.copy()
            there[k] *= factor
            old, new = np.max(alpha[k]), np.max(there[k])
            if not MIN_ALPHA <= new <= MAX_ALPHA:
                continue
            value = log_memberships(there, counts)
            # the walk is on the log scale: its Jacobian is alpha_k
            if level < value - now - PRIOR_RATE * (new - old) + np.log(new / old):
                alpha, now = there, value
    return alpha
