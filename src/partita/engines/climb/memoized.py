"""Memoized variational Bayes: the table is visited part by part, with new parameters after each part.

The statistics of every part are kept. A visit replaces those of one part, and the statistics of the table are the sum
over all parts, so there is no step size and the bound is that of the whole table: it rises with every visit. With one
part an iteration is that of variational Bayes; with more, parameters improve several times in an iteration, for the
same work over the rows.

Good for large tables, in memory, in chunks or on a device. Not for tables of a few thousand rows, which are one part,
and no better than variational Bayes for uncertainty. Hughes and Sudderth (2013); Neal and Hinton (1998) for
incremental EM.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from partita.engines.climb.vb import learned, parameters, reordered, size_order
from partita.engines.passes.exact_sums import add_exactly
from partita.engines.passes.memory import first_sums
from partita.engines.passes.rows import Statistics, collect, rounding_error
from partita.engines.passes.values import rounded
from partita.execution import CHUNK_ROWS, Part
from partita.families.registry import Block

MAX_PARTS = 16  # more parts hardly save iterations, and each has a cost of its own
MIN_CHUNKS = 2  # chunks of rows in a part, at least


class MemoizedState(NamedTuple):
    """The state of variational Bayes, and the statistics of each part that make up its statistics."""

    families: tuple[Any, ...]
    prior: Any
    statistics: Statistics
    objective: float
    rounding: float = 0.0  # of the objective
    parts: tuple[Statistics, ...] = ()  # none: the statistics are not those of a visit to every part

    def at(self, statistics: Statistics) -> MemoizedState:
        """The state with statistics from elsewhere, as of a move."""
        return self._replace(statistics=statistics, parts=())


def n_parts(n_rows: int) -> int:
    """The number of parts of a table; it depends on the number of rows only, so that results do not depend on chunks.

    Examples
    --------
    >>> n_parts(10_000), n_parts(40_000), n_parts(1_000_000)
    (1, 5, 16)
    """
    return int(np.clip(-(-n_rows // CHUNK_ROWS) // MIN_CHUNKS, 1, MAX_PARTS))


def step(
    state: MemoizedState,
    blocks: Sequence[Block],
    weights: np.ndarray,
    executor: Any = None,
    *,
    learn_likelihood: bool = True,
    learn_concentration: bool = True,
) -> MemoizedState:
    """Visit every part; the bound never falls, neither at the end nor after any part.

    After a move, and in the first iteration, all parts are visited with the same parameters.
    """
    of = len(state.parts) or n_parts(len(weights))
    learning = {"learn_likelihood": learn_likelihood, "learn_concentration": learn_concentration}
    if not state.parts:
        at = parameters(state)
        found = [collect(blocks, weights, at, executor, Part(number, of)) for number in range(of)]
        return learned(_joined(state, found, rounding_error(at, summed(found), blocks)), **learning)
    for number in range(of):
        at = parameters(state)
        found = list(state.parts)
        found[number] = collect(blocks, weights, at, executor, Part(number, of))
        state = learned(_joined(state, found, rounding_error(at, summed(found), blocks)), **learning)
    return state


def _joined(state: MemoizedState, parts: Sequence[Statistics], rounding: float) -> MemoizedState:
    total = summed(parts)
    order = size_order(state.prior, total.n)
    return state._replace(
        statistics=reordered(total, order),
        parts=tuple(reordered(part, order) for part in parts),
        rounding=rounding,
    )


def summed(parts: Sequence[Statistics]) -> Statistics:
    """The statistics of all parts, each number rounded once."""
    total = first_sums(_as_sums(parts[0]))
    for part in parts[1:]:
        total = add_exactly(total, _as_sums(part))
    return rounded(total)


def _as_sums(part: Statistics) -> list[np.ndarray]:
    return [part.n.copy(), np.array([part.log_likelihood, part.entropy, part.hidden]), *map(np.copy, part.S)]
