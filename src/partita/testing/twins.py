"""Compiled twins: the same source, compiled and interpreted."""

from __future__ import annotations

from typing import Any

import numpy as np

from partita.dispatch import interpreted, lacks
from partita.families import contract
from partita.families.contract import draw, n_columns, partly_seen, spread, spread_start, stats_start
from partita.families.rows import (
    curve_without_self,
    log_marginals,
    scatter_rows,
    score_without_self,
    spread_rows,
)
from partita.testing.data import n_rows
from partita.testing.laws import LawViolation, densities, predictives


def check_compiled(
    lik: Any, data: Any, rng: np.random.Generator | None = None, *, tol: float = 1e-12
) -> None:
    """Check that every kernel over rows gives compiled what it gives interpreted.

    Examples
    --------
    >>> from partita.families import Bernoulli
    >>> check_compiled(Bernoulli.default(1), np.array([[1], [0]], np.int8))
    """
    rng = np.random.default_rng(0) if rng is None else rng
    seed = int(rng.integers(2**31))
    with interpreted():
        reference = _all_kernels(lik, data, np.random.default_rng(seed))
    for name, value in _all_kernels(lik, data, np.random.default_rng(seed)).items():
        if not np.allclose(value, reference[name], rtol=tol, atol=tol, equal_nan=True):
            raise LawViolation(f"{type(lik).__name__} breaks compiled {name} = interpreted {name}")


def _all_kernels(lik: Any, data: Any, rng: np.random.Generator) -> dict[str, np.ndarray]:
    N, K = n_rows(data), 3
    rows, R = np.arange(N), rng.dirichlet(np.ones(K), size=N)
    n_stats = int(stats_start(lik, n_columns(lik)))
    theta = draw(lik, np.zeros((n_stats, K)), rng)
    S, hidden = np.zeros((n_stats, K)), np.zeros(1)
    hidden[0] = scatter_rows(lik, data, rows, theta, R, S)
    out = {"project_rows": densities(lik, theta, data), "scatter_rows": S.copy(), "hidden": hidden}
    out["score_rows"] = predictives(lik, S, data)
    out["log_marginals"] = log_marginals(lik, S)
    if not partly_seen(lik, data):
        out["score_without_self"] = np.zeros((N, K))
        score_without_self(lik, data, rows, S, R, out["score_without_self"])
    if not partly_seen(lik, data) and not lacks(type(lik), spread, contract.curvature):
        V = np.zeros((int(spread_start(lik, n_columns(lik))), K))
        spread_rows(lik, data, rows, R * (1 - R), V)
        L = np.zeros((N, K))
        curve_without_self(lik, data, rows, S, V, R, L)
        out |= {"spread_rows": V, "curve_without_self": L}
    return out
