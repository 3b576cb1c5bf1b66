"""Laws of natural parameters: expectations, modes, draws, densities, and hidden coordinates."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logsumexp

from partita.families import n_rows
from partita.families.contract import (
    draw,
    expect,
    flat,
    interior,
    log_prior,
    mode,
    n_columns,
    partly_seen,
    simulate,
    stats_start,
)
from partita.families.rows import scatter_rows
from partita.testing.enumeration import row_statistics
from partita.testing.grids import completions, grid
from partita.testing.laws import (
    N_DRAWS,
    SIGMAS,
    agree,
    columns,
    complete,
    densities,
    inner,
    law,
    measurable,
    nested_statistics,
    plain,
    predictives,
    rows_statistics,
    slices,
)

# ---- natural parameters ------------------------------------------------------------------------------------


@law("likelihood is a density", "sum over all x of exp <theta, t(x)> = 1", measurable)
def _(lik, data, rng):
    S = (
        nested_statistics(lik, data)
        if complete(lik, data)
        else np.zeros((stats_start(lik, n_columns(lik)), 1))
    )
    theta = mode(interior(lik), S)
    for d in columns(lik):
        nodes, log_weights = grid(lik, d)
        total = logsumexp(densities(lik, theta, nodes) + log_weights[:, None], axis=0)
        agree("likelihood is a density", lik, np.exp(total), 1.0, 1e-5, where=f"column {d}")


@law("project", "project(x) = <theta, t(x)>", plain)
def _(lik, data, rng):
    S = nested_statistics(lik, data)
    theta = draw(lik, S, rng)
    agree("project", lik, densities(lik, theta, data), inner(theta, rows_statistics(lik, data)))


@law("scatter", "scatter adds sum_i r_ik t(x_i), and no bound where nothing is hidden")
def _(lik, data, rng):
    T = rows_statistics(lik, data)
    R = rng.random((T.shape[1], 3))
    S, theta = np.zeros((len(T), 3)), draw(lik, np.zeros((len(T), 3)), rng)
    hidden = scatter_rows(lik, data, np.arange(len(R)), theta, R, S)
    agree("scatter", lik, S, T @ R)
    agree("scatter", lik, hidden, 0.0)


@law("expect", "expect(S) = mean of draw(S)")
def _(lik, data, rng):
    for k, s in enumerate(nested_statistics(lik, data).T[1:]):
        draws = draw(lik, np.repeat(s[:, None], N_DRAWS, axis=1), rng)
        error = SIGMAS * draws.std(axis=1) / np.sqrt(N_DRAWS) + 1e-9
        right = expect(lik, s[:, None])[:, 0]
        agree("expect", lik, draws.mean(axis=1), right, error, where=f"cluster {k}")


@law("draw", "mean over draws of exp <theta, t(x)> = p(x | data)", plain)
def _(lik, data, rng):
    S, T = nested_statistics(lik, data), rows_statistics(lik, data)
    for s in S.T[1:]:
        draws = draw(lik, np.repeat(s[:, None], N_DRAWS, axis=1), rng)
        p = np.exp(inner(draws, T) - predictives(lik, s[:, None], data))
        error = SIGMAS * p.std(axis=1) / np.sqrt(N_DRAWS) + 1e-9
        agree("draw", lik, p.mean(axis=1), 1.0, error)


@law("mode", "d/de [<theta, S> + log_prior(theta)] = 0 at theta = mode(S), and no theta nearby is better")
def _(lik, data, rng):
    """Paths through the mode that stay among valid parameters: the modes of slightly changed statistics."""
    for kind, prior in (("interior", interior(lik)), ("flat", flat(lik))):
        T = rows_statistics(lik, data)
        S = T.sum(axis=1, keepdims=True)

        def height(theta, prior=prior, S=S):
            return inner(theta, S)[0, 0] + float(log_prior(prior, theta)[0])

        best, e = height(mode(prior, S)), 1e-3
        for i in range(T.shape[1]):
            up, down = (height(mode(prior, S + sign * e * T[:, [i]])) for sign in (1.0, -1.0))
            where = f"towards object {i}, {kind} prior"
            if np.isfinite([up, down, best]).all():
                agree("mode", lik, (up - down) / (2 * e), 0.0, 1e-4 * (1.0 + np.abs(S).max()), where)
                agree("mode", lik, max(up, down, best), best, 1e-9, where)


@law(
    "simulate", "mean over simulated x of (t(x), log p(x)) = sum over x of p(x) (t(x), log p(x))", measurable
)
def _(lik, data, rng):
    S = (
        nested_statistics(lik, data)
        if complete(lik, data)
        else np.zeros((stats_start(lik, n_columns(lik)), 3))
    )
    theta = mode(interior(lik), S)[:, -1:]
    drawn = simulate(lik, theta, np.zeros(N_DRAWS // 10, int), rng)
    t_drawn = rows_statistics(lik, drawn)
    for d in columns(lik):
        rows, _ = slices(lik, d)
        nodes, log_weights = grid(lik, d)
        log_p = densities(lik, theta, nodes)[:, 0]
        p = np.exp(log_p + log_weights)
        seen = p > 1e-14 * p.max()
        t = np.stack([row_statistics(lik, nodes, int(i))[rows] for i in np.flatnonzero(seen)], axis=1)
        right = np.append(t @ p[seen], log_p[seen] @ p[seen])
        both = np.vstack([t_drawn[rows], inner(theta[rows], t_drawn[rows])[:, 0]])
        error = SIGMAS * both.std(axis=1) / np.sqrt(both.shape[1]) + 1e-4
        agree("simulate", lik, both.mean(axis=1), right, error, where=f"column {d}")


# ---- hidden coordinates ------------------------------------------------------------------------------------


def _hidden(lik: Any, data: Any) -> bool:
    return bool(partly_seen(lik, data))


@law("hidden likelihood", "project(x) = log of the sum over hidden coordinates of exp <theta, t(x)>", _hidden)
def _(lik, data, rng):
    theta = expect(lik, np.zeros((stats_start(lik, n_columns(lik)), 1)))
    L = densities(lik, theta, data)[:, 0]
    for i in range(n_rows(data)):
        if (rule := completions(lik, data, i)) is not None:
            right = logsumexp(densities(lik, theta, rule.nodes)[:, 0] + rule.log_weights)
            agree("hidden likelihood", lik, L[i], right, 1e-6, where=f"object {i}")


@law("hidden predictive", "score(x) = log of the sum over hidden coordinates of p(x | data)", _hidden)
def _(lik, data, rng):
    whole = [i for i in range(n_rows(data)) if completions(lik, data, i) is None]
    S = np.zeros((stats_start(lik, n_columns(lik)), 1))
    for i in whole:
        S[:, 0] += np.nan_to_num(row_statistics(lik, data, i))  # a vector without observed cells adds nothing
    L = predictives(lik, S, data)[:, 0]
    for i in range(n_rows(data)):
        if (rule := completions(lik, data, i)) is not None:
            right = logsumexp(predictives(lik, S, rule.nodes)[:, 0] + rule.log_weights)
            agree("hidden predictive", lik, L[i], right, 2e-3, where=f"object {i}")


@law("hidden statistics", "scatter adds E[t(x)], and its bound is log Z - <theta, E[t(x)]>", _hidden)
def _(lik, data, rng):
    zero = np.zeros((stats_start(lik, n_columns(lik)), 1))
    theta = expect(lik, zero)
    free = (
        np.ptp(draw(lik, np.repeat(zero, 20, axis=1), rng), axis=1) > 0
    )  # rows whose parameter is not fixed
    for i in range(n_rows(data)):
        if (rule := completions(lik, data, i)) is None:
            continue
        S, where = zero.copy(), f"object {i}"
        bound = scatter_rows(lik, data, np.array([i]), theta, np.full((1, 1), 0.7), S)
        log_p = densities(lik, theta, rule.nodes)[:, 0] + rule.log_weights
        p = np.exp(log_p - logsumexp(log_p))
        expected = rows_statistics(lik, rule.nodes) @ p
        agree("hidden statistics", lik, S[free, 0], 0.7 * expected[free], 1e-5, where)
        right = 0.7 * densities(lik, theta, data)[i, 0] - float(theta[:, 0] @ S[:, 0])
        agree("hidden statistics", lik, bound, right, 1e-9, where)
