"""Starts of chains: given labels, random labels, or a clustering of a sample of the rows.

A chain over all rows that starts from one cluster or from random labels takes long to find clusters that a few hundred
rows already show. Half of the chains start from one cluster, the others from seeds that are far from each other, so
chains that agree have come from very different starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from partita.engines.climb.seeding import label_statistics, seed_labels
from partita.engines.gibbs import chain as chains
from partita.engines.gibbs import sweep
from partita.engines.gibbs.chain import Start
from partita.engines.passes.rows import assign_rows, predictive, rows_in_memory
from partita.execution.device import is_on_device, to_host
from partita.families import FAMILIES, Block, entry_of, n_rows, take_block
from partita.families.contract import is_conjugate
from partita.labels import canonical
from partita.partitions import DirichletProcess, with_concentration

SAMPLE_ROWS = 2000
N_ITERATIONS, N_MOVES = 30, 10  # of the chain over the sample
N_SEEDS = 30
N_RANDOM = 10  # clusters of a random start if their number is not limited
STAND_INS = {"real": "gaussian", "count": "poisson", "binary": "bernoulli", "categorical": "categorical"}


def start_chain(
    blocks: Sequence[Block],
    prior: Any,
    schedule: chains.Schedule,
    init: str | np.ndarray,
    *,
    seed: int,
    number: int,
    object_rows: np.ndarray | None = None,
) -> Start:
    """The start of a chain.

    Parameters
    ----------
    blocks, prior, schedule, seed, object_rows
        As in :func:`find_start`.
    init : {"seeds", "random"} or array
        A clustering of a sample of the rows, random labels, or the label of each object (-1: none).
    number : int
        Of the chain; in every second chain the sample starts as many clusters.
    """
    families = tuple(block.family for block in blocks)
    if not isinstance(init, str):
        z = _complete_labels(blocks, init) if object_rows is None else canonical(init)
        return Start(z, prior, families)
    if init == "random":
        N = n_rows(blocks[0].data) if object_rows is None else len(object_rows)
        bound = schedule.limit if schedule.limit < sweep.NO_LIMIT else N_RANDOM
        K = min(bound, N, getattr(prior, "n_components", N))
        return Start(canonical(np.random.default_rng(seed).integers(K, size=N)), prior, families)
    stand_ins = [_stand_in(block) for block in blocks]
    start = find_start(stand_ins, prior, schedule, seed=seed, apart=number % 2 == 1, object_rows=object_rows)
    kept = [
        learned if is_conjugate(family) else family
        for learned, family in zip(start.families, families, strict=True)
    ]
    return start._replace(families=tuple(kept))


def _stand_in(block: Block) -> Block:
    """A conjugate block over the same columns, for a family without a closed-form predictive."""
    if is_conjugate(block.family):
        return block
    name = STAND_INS[entry_of(block.family).kind]
    context: dict[str, Any] = {"exposure": None}
    if name == "categorical":
        context["n_levels"] = block.data.max(axis=0) + 1
    return FAMILIES[name].block(block.data, block.columns, np.ones(len(block.data)), **context)


def _complete_labels(blocks: Sequence[Block], z: np.ndarray) -> np.ndarray:
    """Canonical labels; objects without one (-1) join the cluster that predicts them best."""
    z = np.asarray(z)
    if z.min() >= 0:
        return canonical(z)
    statistics = label_statistics(blocks, np.ones(len(z)), z, int(z.max()) + 1)
    score = predictive(blocks, statistics.S, np.log(np.maximum(statistics.n, 1e-9)))
    return canonical(np.where(z < 0, to_host(assign_rows(score, len(z)).labels), z))


def find_start(
    blocks: Sequence[Block],
    prior: Any,
    schedule: chains.Schedule,
    *,
    seed: int,
    apart: bool = False,
    n_iterations: int = N_ITERATIONS,
    object_rows: np.ndarray | None = None,
    sample_rows: int = SAMPLE_ROWS,
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
    sample_rows : int
        Size of the sample.

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
    rows = np.sort(rng.choice(N, size=sample_rows, replace=False)) if sample_rows < N else np.arange(N)
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


def _spread(chain: chains.Chain, blocks: Sequence[Block], families: Sequence[Any]) -> Any:
    """Every row in the cluster of the sample that predicts it best."""
    used = np.flatnonzero(chain.seating.n)
    S = [np.ascontiguousarray(live.S[:, used]) for live in chain.seating.blocks]
    all_rows = [block._replace(family=family) for block, family in zip(blocks, families, strict=True)]
    score = predictive(all_rows, S, np.log(chain.seating.n[used]))
    labels = assign_rows(score, n_rows(blocks[0].data)).labels
    return labels if is_on_device(labels) else used[labels]
