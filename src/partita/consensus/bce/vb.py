"""Variational Bayes for the admixture of labels.

``q = prod_i q(theta_i) prod_im q(z_im) prod_km q(beta_km)``, Dirichlet, discrete and Dirichlet. Equal rows have equal
factors, so the algorithm runs on weighted signatures. Right after the updates of theta and beta, the bound is the sum
of the log marginals of the expected counts and the entropy of the latent clusters. It never decreases, and never
exceeds the log evidence. Latent clusters of single labels are never stored.

Good for memberships of many objects at once. It understates their uncertainty, as mean-field approximations do; the
sampler (``bce.gibbs``) does not. Blei, Ng and Jordan (2003); Wang, Shan and Banerjee (2011).
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.special import digamma, gammaln

from partita.consensus.bce.concentration import fit_alpha
from partita.consensus.label_layout import LabelLayout, level_sums, seed_table
from partita.dispatch import kernel
from partita.engines.run import Run, best_run, iterate
from partita.families.special import log_gamma_and_digamma

SAMPLE_ROWS = 20_000  # rows on which starts are tried, where there are more


class Totals(NamedTuple):
    """The values that the driver reads."""

    n: np.ndarray  # [cluster], expected weight of the objects in each


class CellsVBState(NamedTuple):
    """Parameters of q after a sweep, and their bound."""

    alpha: np.ndarray  # [cluster]
    table: np.ndarray  # [level, cluster], Dirichlet parameters of q(beta)
    log_theta: np.ndarray  # [object, cluster], E_q[log theta]
    mean_log_theta: np.ndarray | None  # [cluster], their mean over the objects
    statistics: Totals
    objective: float


def init(
    cells: LabelLayout,
    alpha: np.ndarray,
    smoothing: float,
    rng: np.random.Generator,
    table: np.ndarray | None = None,
) -> CellsVBState:
    """Start from the labels of K seeds, or from a table of counts [level, cluster]."""
    K = len(alpha)
    counts = seed_table(cells, K, rng) if table is None else table
    log_theta = np.zeros((len(cells.positions), K))
    return CellsVBState(
        alpha, counts + smoothing, log_theta, None, Totals(np.full(K, cells.weights.sum() / K)), -np.inf
    )


def exp_expected_log(table: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """``exp(E[log beta])`` of the Dirichlet factors."""
    members = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    return np.exp(digamma(table) - digamma(level_sums(table, starts))[members])


def step(
    state: CellsVBState,
    cells: LabelLayout,
    smoothing: float,
    *,
    learn_alpha: str | bool = True,
    n_passes: int = 1,
) -> CellsVBState:
    """Concentration, then latent clusters and memberships of every object, then distributions of the levels."""
    alpha = state.alpha
    if learn_alpha and state.mean_log_theta is not None:
        alpha = fit_alpha(alpha, state.mean_log_theta, symmetric=learn_alpha == "symmetric")
    B = exp_expected_log(state.table, cells.starts)
    K = len(alpha)
    S, n, log_theta_sum = np.zeros_like(state.table), np.zeros(K), np.zeros(K)
    of_rows = sweep_rows(
        cells.positions, cells.powers, cells.weights, alpha, B, n_passes, state.log_theta, S, n, log_theta_sum
    )
    S *= B  # the kernel leaves out this factor, which all objects share
    with np.errstate(divide="ignore", invalid="ignore"):
        cross = float(np.where(S > 0, S * np.log(B), 0.0).sum())
    table = S + smoothing
    total = cells.weights.sum()
    log_normalizer = gammaln(alpha).sum() - gammaln(alpha.sum())
    objective = of_rows - total * log_normalizer - cross + _log_marginal(S, cells.starts, smoothing)
    return CellsVBState(alpha, table, state.log_theta, log_theta_sum / total, Totals(n), objective)


def _log_marginal(S: np.ndarray, starts: np.ndarray, smoothing: float) -> float:
    """Log marginal likelihood of (expected) counts of levels under Dirichlet(smoothing), over all cells."""
    n_levels = np.diff(starts)[:, None]
    of_levels = (gammaln(S + smoothing) - gammaln(smoothing)).sum()
    totals = n_levels * smoothing
    return float(of_levels + (gammaln(totals) - gammaln(totals + level_sums(S, starts))).sum())


@kernel
def sweep_rows(positions, powers, weights, alpha, B, n_passes, log_theta, S, n, log_theta_sum):
    """Update q(z_i) and q(theta_i) of every row, and add up the statistics for the other updates.

    Fills log_theta (in place), S (without the factor B), n and log_theta_sum; returns the sum over rows of the log
    normalizer of q(theta_i) and the entropy of q(z_i), the latter without its term in log B.
    """
    N, M = positions.shape
    K = len(alpha)
    t, a = np.empty(K), np.empty(K)
    out = 0.0
    for i in range(N):
        w = weights[i]
        if w == 0.0:
            continue
        for p in range(n_passes):
            last = p == n_passes - 1
            for k in range(K):
                t[k] = math.exp(log_theta[i, k])
                a[k] = 0.0
            log_s = 0.0
            for m in range(M):
                l = positions[i, m]
                if l >= 0:
                    s = 0.0
                    for k in range(K):
                        s += t[k] * B[l, k]
                    r = powers[m] / s
                    for k in range(K):
                        a[k] += r * B[l, k]
                    if last:
                        log_s += powers[m] * math.log(s)
                        for k in range(K):
                            S[l, k] += w * r * t[k]
            total, normalizer, cross = 0.0, 0.0, 0.0
            for k in range(K):
                count = t[k] * a[k]
                cross += count * log_theta[i, k]
                total += alpha[k] + count
                a[k] = count
            of_total, digamma_total = log_gamma_and_digamma(total)
            for k in range(K):
                of_one, digamma_one = log_gamma_and_digamma(alpha[k] + a[k])
                normalizer += of_one
                log_theta[i, k] = digamma_one - digamma_total
        out += w * (normalizer - of_total + log_s - cross)
        for k in range(K):
            n[k] += w * (alpha[k] + a[k]) / total
            log_theta_sum[k] += w * log_theta[i, k]
    return out


def climb(
    cells: LabelLayout,
    alpha: np.ndarray,
    smoothing: float,
    rng: np.random.Generator,
    *,
    n_init: int,
    learn_alpha: str | bool,
    **options: Any,
) -> tuple[Run, list[float]]:
    """The best of ``n_init`` starts, and the bounds where they ended; ``options`` are those of ``iterate``.

    With many rows, the starts are run on a sample of them, and only the best one continues with all rows.
    """
    update = partial(step, smoothing=smoothing, learn_alpha=learn_alpha)
    tried = _sample(cells, rng)

    def runs():
        for restart, own in enumerate(rng.spawn(n_init)):
            start = init(tried, alpha, smoothing, own)
            weight = float(tried.weights.sum())
            yield iterate(partial(update, cells=tried), start, weight=weight, number=restart, **options)

    best, finals = best_run(runs(), options.get("control"), n_init)
    if tried is cells:
        return best, finals
    if not (best.converged or best.reason == "max_iter"):
        options = options | {"max_iter": 1}  # the fit was stopped
    found = best.state
    counts = found.table - smoothing
    start = init(cells, found.alpha, smoothing, rng, counts * (cells.weights.sum() / tried.weights.sum()))
    weight = float(cells.weights.sum())
    run = iterate(partial(update, cells=cells), start, weight=weight, number=n_init, **options)
    return (run if best.converged or best.reason == "max_iter" else run._replace(reason=best.reason)), finals


def _sample(cells: LabelLayout, rng: np.random.Generator) -> LabelLayout:
    n = len(cells.weights)
    if n <= 2 * SAMPLE_ROWS:
        return cells
    rows = np.sort(rng.choice(n, size=SAMPLE_ROWS, replace=False, p=cells.weights / cells.weights.sum()))
    # heavy rows are more likely in the sample already
    return cells._replace(positions=cells.positions[rows], weights=np.ones(SAMPLE_ROWS))
