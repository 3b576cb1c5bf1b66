"""Explicit parameters for samplers that cannot integrate them out: one column of ``theta`` per cluster.

Given the partition, the parameters of different clusters are independent, and all are updated at once. Conjugate
families draw theirs from the posterior. The others use their own ``update``, or random walks: one parameter at a time,
accepted by ``project`` and ``log_prior`` (Metropolis), in steps that shrink with the size of the cluster and are
tuned by the caller.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from partita.dispatch import kernel
from partita.engines.passes.memory import MemoryScorer
from partita.engines.passes.rows import Scorer, n_cache, n_stats
from partita.families.columns import take_columns, take_data
from partita.families.contract import (
    datum,
    draw,
    interior,
    is_conjugate,
    log_prior,
    mode,
    n_columns,
    partly_seen,
    project,
    stats_start,
    update,
)
from partita.families.registry import Block
from partita.families.rows import add_statistics, project_rows, refresh_clusters, score_rows

TARGET_ACCEPTANCE = 0.44  # best share of accepted steps of a random walk in one dimension
N_CANDIDATES = 30  # draws of the prior among which the first parameters of a cluster are chosen
N_NEW = 32  # draws of the prior that the density of a new cluster is averaged over, in each column


class Walk(NamedTuple):
    """Random walks over the parameters of one block: a step width for each, and the share accepted last."""

    width: np.ndarray
    accepted: np.ndarray


def non_conjugate(blocks: Sequence[Block]) -> list[str]:
    """Names of the families among the blocks that only explicit parameters can serve.

    Examples
    --------
    >>> from partita.families import Student
    >>> non_conjugate([Block(Student.default(1), np.zeros((2, 1)), ("a",))])
    ['Student']
    """
    return [type(block.family).__name__ for block in blocks if not is_conjugate(block.family)]


def check_blocks(blocks: Sequence[Block]) -> None:
    """Refuse what explicit parameters cannot serve: vectors that show only some of their coordinates."""
    for block in blocks:
        if partly_seen(block.family, block.data):
            raise ValueError(
                f"{type(block.family).__name__} has rows with some coordinates missing, which this sampler cannot "
                "complete: fill them in, drop those rows, or choose a family that reads single cells"
            )


@kernel
def add_densities(lik, data, z, d, theta, out):
    """``out[z_i] += log p(x_i | theta)`` in column d."""
    block = theta[stats_start(lik, d) : stats_start(lik, d + 1)]
    one = np.zeros((1, 1))
    for i in range(z.shape[0]):
        one[0, 0] = 0.0
        project(lik, d, block[:, z[i] : z[i] + 1], datum(lik, data, i, d), one, 0)
        out[z[i]] += one[0, 0]


def statistics(block: Block, z: np.ndarray, K: int) -> np.ndarray:
    """Statistics of K clusters with the labels z, [statistic, cluster].

    Examples
    --------
    >>> from partita.dispatch import interpreted
    >>> from partita.families import Bernoulli
    >>> with interpreted():
    ...     statistics(Block(Bernoulli.default(1), np.array([[1], [1], [0]]), ("a",)), np.array([0, 0, 1]), 2)
    array([[0., 1.],
           [2., 0.]])
    """
    S = np.zeros((n_stats(block.family), K))
    add_statistics(block.family, block.data, z, S)
    return S


def log_densities(block: Block, z: np.ndarray, theta: np.ndarray, column: int | None = None) -> np.ndarray:
    """Log density of each cluster's objects at its parameters, in all columns or in one.

    Examples
    --------
    >>> from partita.dispatch import interpreted
    >>> from partita.families import Student
    >>> block = Block(Student.default(1, df=1.0), np.array([[0.0], [1.0]]), ("a",))
    >>> with interpreted():
    ...     np.exp(log_densities(block, np.array([0, 0]), np.zeros((2, 1)))) * np.pi**2
    array([0.5])
    """
    out = np.zeros(theta.shape[1])
    for d in range(int(n_columns(block.family))) if column is None else [column]:
        add_densities(block.family, block.data, z, d, theta, out)
    return out


def first_parameters(
    block: Block, z: np.ndarray, K: int, rng: np.random.Generator
) -> tuple[np.ndarray, Walk | None]:
    """Parameters to start from, and the walks that will move them (none where draws are exact)."""
    family = block.family
    if is_conjugate(family):
        return draw(family, statistics(block, z, K), rng), None
    tries = draw(family, np.zeros((n_stats(family), N_CANDIDATES * K)), rng)
    # the middle two thirds of the prior: a standard deviation that is robust against heavy tails
    low, high = np.quantile(tries, [0.16, 0.84], axis=1)
    walk = Walk(np.maximum(0.5 * (high - low), 1e-12), np.full(n_stats(family), np.nan))
    tries = tries.reshape(n_stats(family), N_CANDIDATES, K)
    theta = np.ascontiguousarray(tries[:, 0])
    for d in range(int(n_columns(family))):
        rows = slice(int(stats_start(family, d)), int(stats_start(family, d + 1)))
        heights = []
        for c in range(N_CANDIDATES):
            heights.append(log_densities(block, z, np.ascontiguousarray(tries[:, c]), d))
        theta[rows] = tries[rows, np.argmax(np.nan_to_num(heights, nan=-np.inf), axis=0), np.arange(K)]
    bad = np.flatnonzero(~np.isfinite(log_densities(block, z, theta)))
    if len(bad):
        raise ValueError(
            f"{type(family).__name__}: none of {N_CANDIDATES} draws from its prior gives the objects of starting "
            f"cluster {bad[0]} a positive density; widen the prior, or mask the cells that the family cannot have"
        )
    return theta, walk


def update_parameters(
    block: Block,
    z: np.ndarray,
    theta: np.ndarray,
    walk: Walk | None,
    rng: np.random.Generator,
    *,
    S: np.ndarray | None = None,
    n_walks: int = 3,
) -> tuple[np.ndarray, Walk | None]:
    """New parameters given the objects of each cluster (slots 0 .. K-1 in z); leaves their posterior invariant.

    ``S`` spares a conjugate family the counting of its statistics.
    """
    family, K = block.family, theta.shape[1]
    if walk is None:
        return draw(family, statistics(block, z, K) if S is None else S, rng), None
    if update.dispatch(type(family)) is not update.dispatch(object):
        return update(family, block.data, z, theta, rng), walk
    theta, accepted = theta.copy(), np.zeros(len(theta))
    # a cluster of n objects knows its parameters about sqrt(n) times better than its prior does
    scale = 1.0 / np.sqrt(1.0 + np.bincount(z, minlength=K))
    before = log_prior(family, theta)
    for _ in range(n_walks):
        for d in range(int(n_columns(family))):
            now = log_densities(block, z, theta, d)
            for e in range(int(stats_start(family, d)), int(stats_start(family, d + 1))):
                moved = theta.copy()
                moved[e] += walk.width[e] * scale * rng.standard_normal(K)
                then, after = log_densities(block, z, moved, d), log_prior(family, moved)
                better = np.log(rng.random(K)) < then - now + after - before  # NaN: no
                theta[e, better] = moved[e, better]
                now, before = np.where(better, then, now), np.where(better, after, before)
                accepted[e] += better.mean()
    return theta, Walk(walk.width, accepted / n_walks)


def tuned(walk: Walk | None, iteration: int) -> Walk | None:
    """Wider steps where too many are accepted, narrower where too few; only while a chain burns in.

    Examples
    --------
    >>> tuned(Walk(np.array([1.0, 1.0]), np.array([0.9, 0.1])), 0).width.round(2)
    array([1.58, 0.71])
    """
    if walk is None or np.isnan(walk.accepted).any():
        return walk
    return walk._replace(
        width=walk.width * np.exp((walk.accepted - TARGET_ACCEPTANCE) / np.sqrt(1.0 + iteration))
    )


# ---- parameters of a given clustering: what predictions and profiles read ----------------------------------


def parameter_draws(
    block: Block, z: np.ndarray, K: int, seed: int, *, n_draws: int = 50, burn_in: int = 100
) -> np.ndarray:
    """Draws of the parameters of K clusters from their posterior given the labels, [draw, parameter, cluster].

    Examples
    --------
    >>> from partita.dispatch import interpreted
    >>> from partita.families import Student
    >>> block = Block(Student.default(1), np.array([[-3.0], [-2.0], [2.5]]), ("a",))
    >>> with interpreted():
    ...     parameter_draws(block, np.array([0, 0, 1]), 2, seed=0, n_draws=5).shape
    (5, 2, 2)
    """
    check_blocks([block])
    rng = np.random.default_rng(seed)
    S = statistics(block, z, K) if is_conjugate(block.family) else None
    theta, walk = first_parameters(block, z, K, rng)
    if walk is not None:
        for iteration in range(burn_in):
            theta, walk = update_parameters(block, z, theta, walk, rng)
            walk = tuned(walk, iteration)
    draws = []
    for _ in range(n_draws):
        theta, walk = update_parameters(block, z, theta, walk, rng, S=S)
        draws.append(theta)
    return np.array(draws)


def parameters(blocks: Sequence[Block], z: np.ndarray, K: int, seed: int) -> tuple[np.ndarray, ...]:
    """One set of parameters for each block, given labels 0 .. K-1: what ``project`` and ``simulate`` take.

    Posterior means on the free scale; for conjugate families the posterior mode, whose natural parameters are those of
    a proper density (the mean of natural parameters is not).

    Examples
    --------
    >>> from partita.dispatch import interpreted
    >>> from partita.families import Student
    >>> block = Block(Student.default(1), np.array([[-3.0], [-2.9], [-2.8], [2.5]]), ("a",))
    >>> with interpreted():
    ...     (theta,) = parameters([block], np.array([0, 0, 0, 1]), 2, seed=0)
    >>> theta.shape, bool(theta[0, 0] < 0 < theta[0, 1])
    ((2, 2), True)
    """
    out = []
    for b, block in enumerate(blocks):
        if is_conjugate(block.family):
            out.append(mode(interior(block.family), statistics(block, z, K)))
        else:
            out.append(parameter_draws(block, z, K, seed + b).mean(axis=0))
    return tuple(out)


def predictive(
    blocks: Sequence[Block],
    z: np.ndarray,
    log_weights: np.ndarray,
    seed: int,
    *,
    new: Sequence[Block] | None = None,
    n_draws: int = 50,
) -> Scorer:
    """Scores rows (of ``new`` blocks, or of these) under the objects that z puts into each cluster.

    As :func:`partita.engines.passes.rows.predictive`, but families that are not conjugate average their density over
    draws of the parameters.

    Examples
    --------
    >>> from partita.dispatch import interpreted
    >>> from partita.families import Student
    >>> block = Block(Student.default(1), np.array([[-3.0], [-2.9], [3.0], [2.9]]), ("a",))
    >>> with interpreted():
    ...     score = predictive([block], np.array([0, 0, 1, 1]), np.log([0.5, 0.5]), seed=0)
    ...     score(np.arange(4)).argmax(axis=1)
    array([0, 0, 1, 1])
    """
    K = len(log_weights)
    held: list[tuple[Any, np.ndarray]] = []
    for b, block in enumerate(blocks):
        if is_conjugate(block.family):
            C = np.zeros((n_cache(block.family), K))
            refresh_clusters(block.family, statistics(block, z, K), C, K)
            held.append((block.family, C))
        else:
            draws = parameter_draws(block, z, K, seed + b, n_draws=n_draws)
            held.append((block.family, np.concatenate(draws, axis=1)))

    def score(rows: np.ndarray) -> np.ndarray:
        L = np.tile(log_weights, (len(rows), 1))
        for block, (family, known) in zip(new or blocks, held, strict=True):
            if is_conjugate(family):
                score_rows(family, block.data, rows, known, L)
            else:
                each = np.zeros((len(rows), known.shape[1]))
                project_rows(family, block.data, rows, known, each)
                L += logsumexp(each.reshape(len(rows), -1, K), axis=1) - np.log(known.shape[1] / K)
        return L

    return score


def predictive_at(
    blocks: Sequence[Block], clusters: Sequence[np.ndarray], log_weights: np.ndarray, seed: int
) -> MemoryScorer:
    """Scores rows in the clusters of one draw and in a new cluster, the last one.

    ``clusters`` holds the parameters of families that are not conjugate, and the statistics of the others, whose
    parameters are integrated out. In a new cluster the columns are independent, and each has its density averaged over
    draws from the prior.

    Examples
    --------
    >>> from partita.dispatch import interpreted
    >>> from partita.families import Student
    >>> block = Block(Student.default(1), np.array([[-3.0], [3.0]]), ("a",))
    >>> with interpreted():
    ...     score = predictive_at([block], [np.array([[-3.0], [-1.0]])], np.log([0.5, 0.5]), seed=0)
    ...     score(np.arange(2)).argmax(axis=1)
    array([0, 1])
    """
    K, rng = len(log_weights) - 1, np.random.default_rng(seed)
    held: list[tuple[Block, np.ndarray, list[tuple[Block, np.ndarray]]]] = []
    for block, known in zip(blocks, clusters, strict=True):
        if is_conjugate(block.family):
            C = np.zeros((n_cache(block.family), K + 1))
            refresh_clusters(block.family, np.pad(known, ((0, 0), (0, 1))), C, K + 1)
            held.append((block, C, []))
        else:
            held.append((block, known, _prior_columns(block, rng)))

    def score(rows: np.ndarray) -> np.ndarray:
        L = np.tile(log_weights, (len(rows), 1))
        for block, known, fresh in held:
            if not fresh:
                score_rows(block.family, block.data, rows, known, L)
                continue
            seen = np.zeros((len(rows), K))
            project_rows(block.family, block.data, rows, known, seen)
            L[:, :K] += seen
            for column, theta in fresh:
                new = np.zeros((len(rows), theta.shape[1]))
                project_rows(column.family, column.data, rows, theta, new)
                L[:, K] += logsumexp(new, axis=1) - np.log(theta.shape[1])
        return L

    return MemoryScorer(score)


def _prior_columns(block: Block, rng: np.random.Generator) -> list[tuple[Block, np.ndarray]]:
    """Each column of a block by itself, with parameters drawn from the prior."""
    family = block.family
    theta = draw(family, np.zeros((n_stats(family), N_NEW)), rng)
    return [
        (
            Block(take_columns(family, np.array([d])), take_data(block.data, np.array([d])), ()),
            np.ascontiguousarray(theta[int(stats_start(family, d)) : int(stats_start(family, d + 1))]),
        )
        for d in range(int(n_columns(family)))
    ]
