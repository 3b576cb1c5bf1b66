"""Variational Bayes: the same two products as EM, with parameters at their posterior expectation.

The bound right after the M step needs no formula of its own: it is the sum of the log marginals of the expected
statistics, the log probability of the expected sizes, and the entropy of the labels.

Good for a first estimate of the number of clusters at any size of data: clusters that the data do not support stay
empty. Not for uncertainty, which it understates: use chains. Attias (2000); Blei and Jordan (2006) for sticks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from partita.engines.passes.rows import Parameters, Statistics, collect, rounding_error
from partita.families.contract import expect, learn, n_columns, unconstrained, widened
from partita.families.registry import Block
from partita.families.rows import log_marginals
from partita.partitions import Gamma, expect_log_weights, log_labeled, with_concentration

N_LEARN_STEPS = 3  # updates of the hyper-parameters per pass: they cost little and converge slowly
HYPERPRIOR = Gamma(1.0, 1.0)  # of the concentration


class VBState(NamedTuple):
    """Families and prior as learned so far, expected statistics, and their bound (with the hyperprior, if any)."""

    families: tuple[Any, ...]
    prior: Any
    statistics: Statistics
    objective: float
    rounding: float = 0.0  # of the objective

    def at(self, statistics: Statistics) -> VBState:
        """The state with statistics from elsewhere, as of a move."""
        return self._replace(statistics=statistics)


def init(blocks: Sequence[Block], prior: Any, start: Statistics) -> VBState:
    """Start from statistics (of seeds, of given labels)."""
    return VBState(tuple(block.family for block in blocks), prior, start, -np.inf)


def parameters(state: Any) -> Parameters:
    """The M step, of this state or that of memoized runs."""
    statistics = state.statistics
    thetas = tuple(
        expect(lik, widened(lik, S)[0]) for lik, S in zip(state.families, statistics.S, strict=True)
    )
    return Parameters(expect_log_weights(state.prior, statistics.n), thetas)


def step(
    state: VBState,
    blocks: Sequence[Block],
    weights: np.ndarray,
    executor: Any = None,
    *,
    learn_likelihood: bool = True,
    learn_concentration: bool = True,
) -> VBState:
    """M step, E step, then hyper-parameters; the bound never falls."""
    at = parameters(state)
    statistics = collect(blocks, weights, at, executor)
    state = state._replace(
        statistics=reordered(statistics, size_order(state.prior, statistics.n)),
        rounding=rounding_error(at, statistics, blocks),
    )
    return learned(state, learn_likelihood=learn_likelihood, learn_concentration=learn_concentration)


def learned(state: Any, *, learn_likelihood: bool, learn_concentration: bool) -> Any:
    """The state with hyper-parameters that suit its statistics, and its bound."""
    families, prior, statistics = state.families, state.prior, state.statistics
    if learn_likelihood:
        families = tuple(
            learn_hyper(lik, S, statistics.n) for lik, S in zip(families, statistics.S, strict=True)
        )
    if learn_concentration:
        prior = fit_concentration(prior, statistics.n)
    objective = bound(families, prior, statistics) + log_hyperprior(prior, learn_concentration)
    return state._replace(families=families, prior=prior, objective=objective)


def bound(families: Sequence[Any], prior: Any, statistics: Statistics) -> float:
    """Lower bound of the log evidence, given that q(parameters) is optimal for the statistics."""
    total = log_labeled(prior, statistics.n) + statistics.entropy + statistics.hidden
    return total + sum(float(evidence(lik, S).sum()) for lik, S in zip(families, statistics.S, strict=True))


def evidence(lik: Any, S: np.ndarray) -> np.ndarray:
    """What each cell adds to the bound, [column, cluster]: its log marginal, as far as doubles can tell."""
    S, gain = widened(lik, S)
    return log_marginals(lik, S) + gain


def log_hyperprior(prior: Any, learned: bool) -> float:
    """Log density of a learned concentration; without it a run that starts with many clusters would keep them."""
    return HYPERPRIOR.log_density(prior.concentration) if learned else 0.0


def fit_concentration(prior: Any, n: np.ndarray) -> Any:
    """Climb to a more probable concentration, at most a factor e away; never to a less probable one."""
    start = math.log(prior.concentration)

    def loss(log_c: float) -> float:
        c = math.exp(log_c)
        return -log_labeled(with_concentration(prior, c), n) - HYPERPRIOR.log_density(c)

    found = minimize_scalar(loss, bounds=(start - 1, start + 1), method="bounded", options={"xatol": 1e-4})
    return with_concentration(prior, math.exp(found.x)) if found.fun < loss(start) else prior


def learn_hyper(lik: Any, S: np.ndarray, n: np.ndarray) -> Any:
    """The family with the hyper-parameters of its proposal, wherever they raise the evidence of a column (of all
    columns, where these share a hyper-parameter).
    """
    proposal = lik
    for _ in range(N_LEARN_STEPS):
        proposal = learn(proposal, widened(proposal, S)[0], n)
    then, now = evidence(proposal, S).sum(axis=1), evidence(lik, S).sum(axis=1)
    better = then >= now
    if better.all():
        return proposal
    if any(len(values) != n_columns(lik) for values in unconstrained(lik).values()):  # shared by the columns
        return proposal if then.sum() >= now.sum() else lik
    if n_columns(lik) == 1 or not better.any():
        return lik

    def choose(new: Any, old: Any) -> Any:
        mixes = isinstance(new, np.ndarray) and new.shape == better.shape
        return np.where(better, new, old) if mixes else old

    return type(lik)(*(choose(new, old) for new, old in zip(proposal, lik, strict=True)))


def size_order(prior: Any, n: np.ndarray) -> np.ndarray | None:
    """The order of sticks by their size where that raises the bound, otherwise None.

    Under stick-breaking the order of the labels matters, and this swaps all of them at once.
    """
    if not prior.fixed_labels:
        return None
    order = np.argsort(-n, kind="stable")
    return None if log_labeled(prior, n[order]) <= log_labeled(prior, n) else order


def reordered(statistics: Statistics, order: np.ndarray | None) -> Statistics:
    """The statistics with clusters in another order; None leaves them as they are."""
    if order is None:
        return statistics
    return statistics._replace(
        n=statistics.n[order], S=tuple(np.ascontiguousarray(S[:, order]) for S in statistics.S)
    )
