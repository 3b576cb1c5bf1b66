"""Expectation maximization: the two products of a mixture, with parameters at their mode.

Good for a known number of clusters, large data, users who want a likelihood and its information criteria. Not for
choosing the number of clusters: the likelihood always increases with it. Dempster, Laird and Rubin (1977).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from partita.engines.passes.rows import Parameters, Statistics, assign_rows, collect, plug_in, rounding_error
from partita.execution.weights import total_weight, weighted_sum
from partita.families.contract import flat, log_prior, mode
from partita.families.registry import Block
from partita.partitions import log_prior_weights, mode_log_weights


class EMState(NamedTuple):
    """Statistics of the last E step, and the objective at the parameters that made them."""

    families: tuple[Any, ...]
    prior: Any
    flat: bool
    statistics: Statistics
    objective: float
    rounding: float = 0.0  # of the objective


def init(blocks: Sequence[Block], prior: Any, start: Statistics, *, maximum_likelihood: bool) -> EMState:
    """Start from statistics (of seeds, of given labels)."""
    families = tuple(flat(b.family) if maximum_likelihood else b.family for b in blocks)
    return EMState(families, prior, maximum_likelihood, start, -np.inf)


def parameters(state: EMState) -> Parameters:
    """The M step."""
    statistics = state.statistics
    thetas = tuple(mode(lik, S) for lik, S in zip(state.families, statistics.S, strict=True))
    return Parameters(mode_log_weights(state.prior, statistics.n, flat=state.flat), thetas)


def step(state: EMState, blocks: Sequence[Block], weights: np.ndarray, executor: Any = None) -> EMState:
    """M step, then E step; the objective never falls."""
    at = parameters(state)
    statistics = collect(blocks, weights, at, executor)
    objective = statistics.log_likelihood
    if not state.flat:
        objective += sum(
            float(log_prior(lik, theta).sum()) for lik, theta in zip(state.families, at.thetas, strict=True)
        )
        objective += log_prior_weights(state.prior, at.log_weights)
    return state._replace(
        statistics=statistics, objective=objective, rounding=rounding_error(at, statistics, blocks)
    )


class Labeled(NamedTuple):
    """A state, the most probable label of each row, and the share of the objects that the last step relabeled."""

    em: EMState
    labels: np.ndarray | None = None
    change: float = np.inf

    @property
    def statistics(self) -> Statistics:
        return self.em.statistics

    @property
    def objective(self) -> float:
        return self.em.objective


def step_labels(
    state: Labeled, blocks: Sequence[Block], weights: np.ndarray, executor: Any = None
) -> Labeled:
    """A step that also compares the labels with those before, for runs that end when no label changes."""
    new = step(state.em, blocks, weights, executor)
    labels = assign_rows(plug_in(blocks, parameters(new)), len(weights), executor).labels
    if state.labels is None:
        return Labeled(new, labels)
    return Labeled(new, labels, weighted_sum(weights, labels != state.labels) / total_weight(weights))
