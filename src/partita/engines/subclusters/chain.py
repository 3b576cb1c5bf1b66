"""The sub-cluster sampler as a chain: clusters, splits and merges of all rows, then the hyper-parameters."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from partita.engines.gibbs import tied_values
from partita.engines.gibbs.chain import (
    MOVES,
    TIES,
    Algorithm,
    HeldClusters,
    Schedule,
    generator,
    learn_likelihood,
    sample_prior,
)
from partita.engines.gibbs.sweep import Seating
from partita.engines.passes.live import Live
from partita.engines.passes.rows import n_cache
from partita.engines.subclusters import sampler as subclusters
from partita.execution.device import is_on_device
from partita.execution.device_labels import canonical_labels
from partita.families.registry import Block
from partita.labels import canonical
from partita.partitions import bind

WARM_UP = 20  # iterations whose merges lead to the posterior, where burn-in is not given


class SubclusterChain(NamedTuple):
    """Where a chain stands; ``seating`` is a view of ``state`` for those who read chains."""

    state: subclusters.SubclusterState
    blocks: tuple[Block, ...]  # with tied values as they are drawn
    prior: Any
    reference: tuple[Any, ...]
    seed: int
    rng: Any = None  # generator of the steps after the moves, within an iteration
    values: tuple[Any, ...] = ()  # standardized columns of blocks with ties, as they are drawn

    @property
    def iteration(self) -> int:
        """Iterations done."""
        return self.state.iteration

    @property
    def seating(self) -> Seating:
        """Slots are clusters, and so are names."""
        K = len(self.state.n)
        live = tuple(
            Live(block.family, block.data, S, np.empty((n_cache(block.family), K)), S[:, :0], S[:, :0])
            for block, S in zip(self.blocks, self.state.seats.S, strict=True)
        )
        names = np.arange(K)
        return Seating(live, self.state.labels, self.state.n, names, names, np.array([K]))


def start(
    blocks: Sequence[Block],
    prior: Any,
    z: Any,
    seed: int,
    families: Sequence[Any] | None = None,
    *,
    counts: np.ndarray,
    executor: Any,
) -> SubclusterChain:
    """A chain that starts from labels z of the copies of the rows; those of rows on a device may be there too."""
    reference = tuple(block.family for block in blocks)
    blocks = tuple(
        block._replace(family=family) for block, family in zip(blocks, families or reference, strict=True)
    )
    prior = bind(prior, float(z.shape[0]))
    values: tuple[Any, ...] = ()
    if tied_values.has_ties(blocks):
        values, drawn = tied_values.start(blocks, generator(seed, 0, TIES))
        blocks = tuple(drawn)
    rng = generator(seed, 0, MOVES)
    labels = canonical_labels(z) if is_on_device(z) else canonical(z)
    state = subclusters.init(blocks, counts, prior, rng, labels=labels, executor=executor)
    return SubclusterChain(state, blocks, prior, reference, seed, values=values)


def sweep_and_move(chain: SubclusterChain, schedule: Schedule, *, executor: Any) -> SubclusterChain:
    """Clusters and sub-clusters of all rows, then splits and merges.

    The first iterations warm up: its merges lead to the posterior but do not leave it invariant.
    """
    warm_up = chain.state.iteration < schedule.n_adapting
    state = subclusters.step(chain.state, chain.blocks, chain.prior, executor, warm_up=warm_up)
    return chain._replace(state=state, rng=generator(chain.seed, state.iteration, MOVES))


def sample_tied(chain: SubclusterChain, schedule: Schedule) -> SubclusterChain:
    """Draw tied values inside their cells."""
    if chain.values:
        state = chain.state
        rng = generator(chain.seed, state.iteration, TIES)
        live = chain.seating.blocks  # over the data and the statistics of the chain, which change in place
        tied_values.step(live, chain.blocks, chain.values, state.labels.astype(np.int64), len(state.n), rng)
    return chain


def held_clusters(chain: SubclusterChain) -> HeldClusters:
    """Statistics [statistic, cluster] of each block if tied values were drawn; otherwise the labels determine them.

    Those of rows on a device are held, because a pass over them is longer than the statistics are large.
    """
    return chain.state.seats.S if chain.values or is_on_device(chain.state.labels) else None


def sample_likelihood(chain: SubclusterChain, schedule: Schedule) -> SubclusterChain:
    """Draw the hyper-parameters of the likelihood; ends the iteration."""
    if schedule.learn_likelihood:
        learned = learn_likelihood(chain.seating, chain.reference, chain.rng).blocks
        blocks = tuple(
            block._replace(family=live.family) for block, live in zip(chain.blocks, learned, strict=True)
        )
        chain = chain._replace(blocks=blocks)
    return chain._replace(rng=None)


def log_joint(chain: SubclusterChain) -> float:
    """Log probability of data and labels under the present hyper-parameters."""
    return subclusters.log_joint(chain.state, chain.blocks, chain.prior)


def algorithm(counts: np.ndarray, executor: Any = None) -> Algorithm:
    """The sub-cluster sampler for :func:`partita.engines.gibbs.chain.run_mixture_chain`.

    ``counts`` says how often each row occurs.

    Examples
    --------
    >>> from partita.engines.gibbs.chain import run_mixture_chain
    >>> from partita.families import GaussianDiagonal
    >>> from partita.partitions import DirichletProcess
    >>> X = np.random.default_rng(0).normal(size=(60, 1)) * 0.1 + np.repeat([[-1.0], [1.0]], 30, axis=0)
    >>> block = Block(GaussianDiagonal.default(1), X, ("a",))
    >>> run = run_mixture_chain(
    ...     [block],
    ...     DirichletProcess(1.0),
    ...     np.zeros(60, int),
    ...     Schedule(5, 15),
    ...     seed=0,
    ...     algorithm=algorithm(np.ones(60, int)),
    ... )
    >>> run.trace.labels.shape
    (5, 60)
    """
    return Algorithm(
        "subclusters",
        partial(start, counts=counts, executor=executor),
        (partial(sweep_and_move, executor=executor), sample_tied, sample_prior, sample_likelihood),
        log_joint,
        WARM_UP,
        held_clusters,
    )
