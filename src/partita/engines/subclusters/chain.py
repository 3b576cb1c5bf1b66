"""The sub-cluster sampler as a chain: its step, then the hyper-parameters, as :func:`run_chain` wants it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from partita.engines.gibbs.chain import MOVES, Sampler, Schedule, generator, learn_likelihood
from partita.engines.gibbs.checkpoints import packed_fields, unpacked_fields
from partita.engines.gibbs.sweep import Live, Seating
from partita.engines.passes.rows import n_cache
from partita.engines.subclusters import sampler as subclusters
from partita.families.registry import Block
from partita.labels import canonical
from partita.partitions import bind, sample_hyper

__all__ = ["SubclusterChain", "sampler"]


class SubclusterChain(NamedTuple):
    """Where a chain stands; ``seating`` is a view of ``state`` for those who read chains."""

    state: subclusters.SubclusterState
    blocks: tuple[Block, ...]
    prior: Any
    reference: tuple[Any, ...]
    seed: int

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
    z: np.ndarray,
    seed: int,
    families: Sequence[Any] | None = None,
    *,
    counts: np.ndarray,
    executor: Any,
) -> SubclusterChain:
    """A chain that starts from labels z of the copies of the rows."""
    reference = tuple(block.family for block in blocks)
    blocks = tuple(
        block._replace(family=family) for block, family in zip(blocks, families or reference, strict=True)
    )
    prior = bind(prior, float(len(z)))
    rng = generator(seed, 0, MOVES)
    state = subclusters.init(blocks, counts, prior, rng, labels=canonical(z), executor=executor)
    return SubclusterChain(state, blocks, prior, reference, seed)


def step(chain: SubclusterChain, schedule: Schedule, *, executor: Any) -> SubclusterChain:
    """Seats, splits and merges, then concentration and likelihood hyper-parameters.

    The first half of the burn-in warms up: its merges lead to the posterior but do not leave it invariant.
    """
    warm_up = chain.state.iteration < schedule.burn_in // 2
    state = subclusters.step(chain.state, chain.blocks, chain.prior, executor, warm_up=warm_up)
    chain = chain._replace(state=state)
    rng = generator(chain.seed, state.iteration, MOVES)
    if schedule.learn_concentration:
        chain = chain._replace(prior=sample_hyper(chain.prior, state.n, rng))
    if schedule.learn_likelihood:
        learned = learn_likelihood(chain.seating, chain.reference, rng).blocks
        blocks = tuple(
            block._replace(family=live.family) for block, live in zip(chain.blocks, learned, strict=True)
        )
        chain = chain._replace(blocks=blocks)
    return chain


def log_joint(chain: SubclusterChain) -> float:
    """Log probability of data and labels under the present hyper-parameters."""
    return subclusters.log_joint(chain.state, chain.blocks, chain.prior)


def freeze(chain: SubclusterChain) -> dict[str, np.ndarray]:
    """Where the chain stands, as arrays."""
    state = chain.state
    arrays = {"z": state.seats.z, "n": state.seats.n, "key": np.array(state.key, np.uint64)}
    arrays |= {f"S{b}": S for b, S in enumerate(state.seats.S)}
    arrays |= packed_fields(chain.prior, "prior") | {"iteration": np.array(state.iteration)}
    for b, block in enumerate(chain.blocks):
        arrays |= packed_fields(block.family, f"family{b}_")
    return arrays


def thaw(
    blocks: Sequence[Block], prior: Any, seed: int, saved: dict[str, np.ndarray], *, counts: np.ndarray
) -> SubclusterChain:
    """The chain that such arrays are of."""
    first = np.concatenate([[0], np.cumsum(np.asarray(counts).astype(np.int64))])
    seats = subclusters.Seats(
        first, saved["z"], saved["n"], tuple(saved[f"S{b}"] for b in range(len(blocks)))
    )
    state = subclusters.SubclusterState(
        seats, int(saved["key"]), int(saved["iteration"]), subclusters.Moves()
    )
    prior = unpacked_fields(bind(prior, float(first[-1])), "prior", saved)
    families = [unpacked_fields(block.family, f"family{b}_", saved) for b, block in enumerate(blocks)]
    live = tuple(block._replace(family=family) for block, family in zip(blocks, families, strict=True))
    return SubclusterChain(state, live, prior, tuple(block.family for block in blocks), seed)


def sampler(counts: np.ndarray, executor: Any = None) -> Sampler:
    """What :func:`partita.engines.gibbs.chain.run_chain` takes for ``sampler``; ``counts`` says how often each row occurs.

    Examples
    --------
    >>> from partita.engines.gibbs.chain import run_chain
    >>> from partita.families import GaussianDiagonal
    >>> from partita.partitions import DirichletProcess
    >>> X = np.random.default_rng(0).normal(size=(60, 1)) * 0.1 + np.repeat([[-1.0], [1.0]], 30, axis=0)
    >>> block = Block(GaussianDiagonal.default(1), X, ("a",))
    >>> run = run_chain(
    ...     [block],
    ...     DirichletProcess(1.0),
    ...     np.zeros(60, int),
    ...     Schedule(5, 15),
    ...     seed=0,
    ...     sampler=sampler(np.ones(60, int)),
    ... )
    >>> run.trace.labels.shape
    (5, 60)
    """
    return Sampler(
        partial(start, counts=counts, executor=executor),
        partial(step, executor=executor),
        log_joint,
        freeze,
        partial(thaw, counts=counts),
    )
