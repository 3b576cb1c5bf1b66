"""Starts of chains: a clustering of a sample of the rows, found with many splits and merges.

A chain over all rows that starts from one cluster or from random labels takes long to find clusters that a few hundred
rows already show. Half of the chains start from one cluster, the others from seeds that are far from each other, so
chains that agree have come from very different starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from partita.engines.climb.seeding import seed_labels
from partita.engines.gibbs import chain as chains
from partita.engines.gibbs import sweep
from partita.engines.gibbs.chain import Start
from partita.engines.passes.rows import assign_rows, predictive, rows_in_memory
from partita.families import n_rows, take_block
from partita.families.registry import Block
from partita.labels import canonical
from partita.partitions import DirichletProcess, with_concentration

SAMPLE_ROWS = 2000
N_ITERATIONS, N_MOVES = 30, 10  # of the chain over the sample
N_SEEDS = 30


def find_start(
    blocks: Sequence[Block],
    prior: Any,
    schedule: chains.Schedule,
    *,
    seed: int,
    apart: bool = False,
    n_iterations: int = N_ITERATIONS,
    object_rows: np.ndarray | None = None,
) -> Start:
    """Labels of all rows from a short chain over a sample of them, and the hyper-parameters that it has learned.

    Parameters
    ----------
    blocks, prior
        The model; ``prior`` need not be bound.
    schedule : Schedule
        Which hyper-parameters are learned, and the limit on the number of clusters.
    seed : int
        Of the sample and its chain.
    apart : bool
        Whether the sample starts as many clusters rather than as one.
    n_iterations : int
        Of the chain over the sample.
    object_rows : ndarray, optional
        The row of each object, where these are not the rows; labels are then of the objects.

    Examples
    --------
    >>> from partita.dispatch import interpreted
    >>> from partita.families import Bernoulli
    >>> from partita.partitions import DirichletProcess
    >>> block = Block(
    ...     Bernoulli.default(6), np.repeat([[0], [1]], 10, axis=0) * np.ones((1, 6), np.int8), ("a",)
    ... )
    >>> with interpreted():
    ...     start = find_start([block], DirichletProcess(1.0), chains.Schedule(), seed=1)
    >>> len(np.unique(start.z))
    2
    """
    N = n_rows(blocks[0].data) if object_rows is None else len(object_rows)
    rng = chains.generator(seed, 0, chains.START)
    rows = np.sort(rng.choice(N, size=SAMPLE_ROWS, replace=False)) if N > SAMPLE_ROWS else np.arange(N)
    sample = _taken(blocks, rows if object_rows is None else object_rows[rows])
    z = np.zeros(len(rows), np.int64)
    fixed = prior.fixed_labels
    if apart:
        K = min(N_SEEDS, max(len(rows) // 5, 1), schedule.limit, prior.n_components if fixed else N_SEEDS)
        z = canonical(seed_labels(sample, K, rng))
    if (
        fixed
    ):  # labels that stay what they are cannot be split and merged: their chain starts where others end
        schedule = schedule._replace(limit=min(schedule.limit, prior.n_components))
    free = DirichletProcess(prior.concentration) if fixed else prior
    chain = chains.start(sample, free, z, int(rng.integers(2**63)))
    for _ in range(n_iterations):
        chain = chains.step(chain, schedule._replace(n_moves=N_MOVES))
    families = tuple(live.family for live in chain.seating.blocks)
    if len(rows) == N:
        z = sweep.labels(chain.seating)
    else:
        z = _spread(chain, blocks, families)
        z = z if object_rows is None else z[object_rows]
    if not fixed:
        return Start(z, chain.prior, families)
    ranks = np.argsort(np.argsort(-np.bincount(z), kind="stable"))  # sticks: the largest first
    return Start(ranks[z], with_concentration(prior, chain.prior.concentration), families)


def _taken(blocks: Sequence[Block], rows: np.ndarray) -> list[Block]:
    """Blocks in memory with these rows only."""
    held, rows = rows_in_memory(blocks, rows)
    if len(rows) == n_rows(held[0].data) and np.array_equal(rows, np.arange(len(rows))):
        return list(held)
    return [take_block(block, rows) for block in held]


def _spread(chain: chains.Chain, blocks: Sequence[Block], families: Sequence[Any]) -> np.ndarray:
    """Every row in the cluster of the sample that predicts it best."""
    used = np.flatnonzero(chain.seating.n)
    S = [np.ascontiguousarray(live.S[:, used]) for live in chain.seating.blocks]
    all_rows = [block._replace(family=family) for block, family in zip(blocks, families, strict=True)]
    score = predictive(all_rows, S, np.log(chain.seating.n[used]))
    return used[assign_rows(score, n_rows(blocks[0].data)).labels]
