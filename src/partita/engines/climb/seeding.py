"""Starts of deterministic engines: seeds that are far apart under the likelihood of the family, or given labels.

k-means++ (Arthur and Vassilvitskii 2007) with the squared distance replaced by the log likelihood that an object
loses when another object's posterior explains it instead of its own; so it works for any family, mixed tables and
missing cells alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from partita.engines.passes.residence import residence_of
from partita.engines.passes.rows import (
    Parameters,
    Statistics,
    log_joint_rows,
    n_stats,
    predictive,
    rows_in_memory,
)
from partita.execution.weights import are_equal, total_weight
from partita.families import n_rows, take
from partita.families.contract import expect, partly_seen
from partita.families.registry import Block
from partita.families.rows import add_statistics, scatter_rows

SAMPLE = 1000  # number of objects that seeds are chosen among
CELLS = (
    32  # objects whose statistics, or scores given themselves, are computed at once, each against all of them
)


class Objects(NamedTuple):
    """Objects that the rows of an engine stand for: the weight and the row of each."""

    weights: np.ndarray
    rows: np.ndarray


def seed_statistics(
    blocks: Sequence[Block],
    weights: np.ndarray,
    K: int,
    rng: np.random.Generator,
    objects: Objects | None = None,
) -> Statistics:
    """Statistics of K single objects that are far from each other.

    Where rows are distinct rows that stand for several objects, seeds are drawn among the ``objects``: the same ones
    as if each had a row of its own.
    """
    blocks, rows, share, cells = sample_objects(blocks, weights, rng, SAMPLE, objects)
    thetas = [expect(block.family, T) for block, T in zip(blocks, cells, strict=True)]

    def log_joint(own: np.ndarray, chosen: Any) -> np.ndarray:
        given = tuple(np.ascontiguousarray(theta[:, chosen]) for theta in thetas)
        return log_joint_rows(blocks, Parameters(np.zeros(given[0].shape[1]), given), own)

    seeds = _spread_out(_own_scores(log_joint, rows), lambda chosen: log_joint(rows, chosen), share, K, rng)
    S = tuple(np.ascontiguousarray(T[:, seeds]) for T in cells)
    return Statistics(np.full(K, total_weight(weights) / K), S, np.nan, np.nan, 0.0)


class Sample(NamedTuple):
    """Distinct objects in memory, in the order of their values."""

    blocks: Sequence[Block]
    rows: np.ndarray  # where the blocks hold them
    weights: np.ndarray
    cells: list[np.ndarray]  # statistics [statistic, object] of single objects, for each block


def sample_objects(
    blocks: Sequence[Block],
    weights: np.ndarray,
    rng: np.random.Generator,
    size: int,
    objects: Objects | None = None,
) -> Sample:
    """At most ``size`` objects: each distinct one once, with the weight that it has in the sample.

    They are in the order of their values, because the order of rows must not matter, nor whether an object comes twice
    or with weight 2.
    """
    rows, own = sample_rows(weights, rng, size, objects)
    blocks, rows = rows_in_memory(blocks, rows)
    cells = [_single_statistics(block, rows) for block in blocks]
    _, first, inverse = np.unique(np.concatenate(cells).T, axis=0, return_index=True, return_inverse=True)
    share = np.bincount(inverse.ravel(), weights=own)
    return Sample(blocks, rows[first], share, [np.ascontiguousarray(T[:, first]) for T in cells])


def seed_labels(blocks: Sequence[Block], K: int, rng: np.random.Generator) -> np.ndarray:
    """Labels of all objects of a small table: each joins the seed, of K that are far apart, that predicts it best.

    The loss is that of the log predictive density given a single object, where no vector is partly observed; this
    needs only what chains need as well. Otherwise seeds are those of :func:`seed_statistics`.
    """
    N = n_rows(blocks[0].data)
    rows = np.arange(N)
    if any(partly_seen(block.family, block.data) for block in blocks):
        seeds = seed_parameters(blocks, seed_statistics(blocks, np.ones(N), K, rng))
        return log_joint_rows(blocks, seeds, rows).argmax(axis=1)
    chosen, _ = sample_rows(np.ones(N), rng, SAMPLE)
    cells = []
    for block in blocks:
        S = np.zeros((n_stats(block.family), len(chosen)))
        add_statistics(block.family, take(block.data, chosen), np.arange(len(chosen)), S)
        cells.append(S)

    def log_predictive(own: np.ndarray, given: Any) -> np.ndarray:
        S = [s[:, given] for s in cells]
        return predictive(blocks, S, np.zeros(S[0].shape[1]))(own)

    share = np.ones(len(chosen))
    own = _own_scores(log_predictive, chosen)
    seeds = _spread_out(own, lambda given: log_predictive(chosen, given), share, K, rng)
    return log_predictive(rows, seeds).argmax(axis=1)


def sample_rows(
    weights: np.ndarray, rng: np.random.Generator, size: int, objects: Objects | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The rows of at most ``size`` objects, and how much each counts."""
    if objects is not None:
        sampled, own = sample_rows(objects.weights, rng, size)
        return objects.rows[sampled], own
    if len(weights) > size and are_equal(weights):  # no list of all rows
        return np.sort(rng.choice(len(weights), size=size, replace=False)), np.ones(size)
    rows = np.flatnonzero(weights)
    own = weights[rows]
    if len(rows) <= size:
        return rows, own
    p = None if own.min() == own.max() else own / own.sum()
    # heavy objects are more likely in the sample already
    return np.sort(rows[rng.choice(len(rows), size=size, replace=False, p=p)]), np.ones(size)


def label_statistics(
    blocks: Sequence[Block],
    weights: np.ndarray,
    z: np.ndarray,
    K: int,
    thetas: Sequence[np.ndarray] | None = None,
) -> Statistics:
    """Statistics of given labels (-1: the object has no label before the first E step).

    Hidden coordinates enter by their expectation under the parameters ``thetas``, by default those of the prior.
    """
    return residence_of(blocks).count(blocks, weights, z, K, thetas)


def _single_statistics(block: Block, rows: np.ndarray) -> np.ndarray:
    """Statistics [statistic, object] of single objects; hidden coordinates by their prior expectation."""
    S = np.zeros((n_stats(block.family), len(rows)))
    prior = expect(block.family, np.zeros((len(S), min(CELLS, len(rows)))))  # the same for every object
    for start in range(0, len(rows), CELLS):
        some = rows[start : start + CELLS]
        own, theta = np.zeros((len(S), len(some))), np.ascontiguousarray(prior[:, : len(some)])
        scatter_rows(block.family, block.data, some, theta, np.eye(len(some)), own)
        S[:, start : start + CELLS] = own
    return S


def _own_scores(scores: Callable[[np.ndarray, Any], np.ndarray], rows: np.ndarray) -> np.ndarray:
    """The score of every object given itself; ``scores(rows, objects)`` are those of rows given single objects."""
    own = np.empty(len(rows))
    for start in range(0, len(rows), CELLS):
        some = slice(start, start + CELLS)
        own[some] = scores(rows[some], some).diagonal()
    return own


def _spread_out(
    own: np.ndarray,
    scores: Callable[[np.ndarray], np.ndarray],
    share: np.ndarray,
    K: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """K objects such that every object loses little under the nearest of them (greedy k-means++).

    ``own`` has the score of each object given itself, ``scores(objects)`` those of all objects given some of them. With
    few clusters only the scores given objects that are tried are computed, which are a small part of all pairs.
    """
    share = share / share.sum()
    m = len(own)
    n_trials = 2 + int(np.log(K))

    every = scores(np.arange(m)) if K * n_trials >= m else None

    def losses(objects: Sequence[int] | np.ndarray) -> np.ndarray:
        given = np.asarray(objects)
        return np.maximum(own[:, None] - (scores(given) if every is None else every[:, given]), 0.0)

    seeds = [int(rng.choice(m, p=share))]
    nearest = losses(seeds)[:, 0]
    for _ in range(1, K):
        nearest[seeds[-1]] = 0.0  # whatever the rounding of the two scores
        total = share @ nearest
        p = share * nearest / total if total > 0 else share
        trials = rng.choice(m, size=n_trials, p=p)
        left = np.minimum(nearest[:, None], losses(trials))
        best = int(np.argmin(share @ left))
        seeds.append(int(trials[best]))
        nearest = left[:, best]
    return np.array(seeds)


def seed_parameters(blocks: Sequence[Block], start: Statistics) -> Parameters:
    """Parameters that turn the statistics of seeds into responsibilities of all objects."""
    thetas = tuple(expect(block.family, S) for block, S in zip(blocks, start.S, strict=True))
    return Parameters(np.zeros(len(start.n)), thetas)
