"""Columns of few levels packed into one: three columns of five levels are one column of 216 states.

The log likelihood of a row is a sum over its columns, and so are its statistics. A state of packed columns stands for
its levels: its log probability is their sum, its count goes to each of them. So EM and VB may walk over a third of the
columns and multiply once an iteration by the (sparse) statistics of all states. The answer is the same; missing is one
of the states.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from partita.engines.passes.device import on_device
from partita.execution import ShardData
from partita.execution.columns import GridShards
from partita.families import Bernoulli, Categorical
from partita.families.contract import n_columns, project, scatter, stats_start
from partita.families.registry import Block

__all__ = ["PackedBlock", "States", "pack"]

MOST_STATES = (
    256  # of one packed column: codes are bytes, and the table of a group stays in the innermost cache
)
FEWEST_ROWS = 4096  # below, packing costs more than it saves


class States(NamedTuple):
    """A family of states: a datum is the number of its state, the statistics are counts of states."""

    offsets: np.ndarray


class PackedBlock(NamedTuple):
    """A block with its packed twin; engines that know packing walk over the twin."""

    family: Any
    data: Any
    columns: tuple
    states: States
    codes: np.ndarray
    levels: csr_array  # statistics of every state, [statistic, state]


@n_columns.register(States)
def _(lik):
    return lik.offsets.shape[0] - 1


@stats_start.register(States)
def _(lik, d):
    return lik.offsets[d]


@project.register(States)
def _(lik, d, theta, x, L, j):
    for k in range(L.shape[1]):
        L[j, k] += theta[x, k]


@scatter.register(States)
def _(lik, d, S, theta, x, R, j):
    for k in range(R.shape[1]):
        S[x, k] += R[j, k]
    return 0.0


@singledispatch
def level_statistics(lik: Any, d: int) -> list[list[int]] | None:
    """Rows of the statistics that a datum of column d adds one to: for missing, then for each level."""
    return None


@level_statistics.register(Categorical)
def _(lik, d):
    start = int(lik.offsets[d])
    return [[], *([start, start + 1 + v] for v in range(int(lik.n_levels[d])))]


@level_statistics.register(Bernoulli)
def _(lik, d):
    return [[], [2 * d], [2 * d + 1]]


def pack(blocks: Sequence[Block], n_rows: int) -> tuple[Any, ...]:
    """The same blocks, those of few levels with a packed twin.

    Blocks in parts are packed all or none: a pass reads one set of parts.
    """
    if on_device(blocks):
        return tuple(blocks)
    if len(blocks) and isinstance(blocks[0].data, ShardData):
        return _packed_shards(blocks, n_rows)
    return tuple(_packed(block) if _is_worth_it(block, n_rows) else block for block in blocks)


def _is_worth_it(block: Any, n_rows: int) -> bool:
    if n_rows < FEWEST_ROWS or level_statistics(block.family, 0) is None:
        return False
    if not np.all(
        getattr(block.family, "power", 1.0) == 1.0
    ):  # scored with another weight than it is counted
        return False
    return len(_groups(block)) < len(block.columns)


def _groups(block: Block) -> list[list[int]]:
    """Neighbouring columns whose levels (and missing) multiply to few states."""
    groups: list[list[int]] = []
    size = MOST_STATES + 1
    for d in range(len(block.columns)):
        states = len(level_statistics(block.family, d) or [])
        if size * states <= MOST_STATES:
            groups[-1].append(d)
            size *= states
        else:
            groups.append([d])
            size = states
    return groups


def _packed_shards(blocks: Sequence[Block], n_rows: int) -> tuple[Any, ...]:
    apart = isinstance(blocks[0].data.shards, GridShards)  # columns that are packed together lie together
    if apart or not all(_is_worth_it(block, n_rows) for block in blocks):
        return tuple(blocks)
    layouts = [_layout(block) for block in blocks]
    common = [(block.data.index, layout) for block, layout in zip(blocks, layouts, strict=True)]
    codes = blocks[0].data.shards.derive(_pack_shard, common)
    return tuple(
        PackedBlock(*block, layout.states, ShardData(codes, index), layout.levels)  # type: ignore[arg-type]
        for index, (block, layout) in enumerate(zip(blocks, layouts, strict=True))
    )


def _pack_shard(data: Sequence[Any], common: Any, _: Any) -> tuple[np.ndarray, ...]:
    return tuple(_codes(data[index], layout) for index, layout in common)


class Layout(NamedTuple):
    """How the columns of a block are packed: groups of columns, the number of states of each column, dtype of codes."""

    groups: list[list[int]]
    sizes: list[int]
    dtype: Any
    states: States
    levels: csr_array


def _packed(block: Block) -> PackedBlock:
    layout = _layout(block)
    return PackedBlock(*block, layout.states, _codes(block.data, layout), layout.levels)


def _layout(block: Block) -> Layout:
    groups = _groups(block)
    starts, rows, states = [0], [], []
    for group in groups:
        meanings: list[list[int]] = [[]]
        for d in group:
            own = level_statistics(block.family, d) or []
            meanings = [meaning + level for meaning in meanings for level in own]
        for state, meaning in enumerate(meanings):
            rows += meaning
            states += [starts[-1] + state] * len(meaning)
        starts.append(starts[-1] + len(meanings))
    shape = (int(stats_start(block.family, n_columns(block.family))), starts[-1])
    levels = csr_array((np.ones(len(rows)), (rows, states)), shape=shape)
    sizes = [len(level_statistics(block.family, d) or []) for d in range(len(block.columns))]
    largest = max(stop - start for start, stop in pairwise(starts))
    return Layout(groups, sizes, np.min_scalar_type(largest), States(np.array(starts)), levels)


def _codes(data: np.ndarray, layout: Layout) -> np.ndarray:
    codes = np.empty((len(data), len(layout.groups)), layout.dtype)
    for g, group in enumerate(layout.groups):
        code = np.zeros(len(data), np.int64)
        for d in group:
            code = code * layout.sizes[d] + data[:, d] + 1
        codes[:, g] = code
    return codes
