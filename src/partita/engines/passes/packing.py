"""Columns of few levels packed into one: three columns of five levels are one column of 216 states.

The log likelihood of a row is a sum over its columns, and so are its statistics. A state of packed columns stands for
its levels: its log probability is their sum, and its count is added to each of them. EM and VB then read about a third
of the columns, and multiply once per iteration by the (sparse) statistics of all states. The result is the same;
missing is one of the states.
"""

from __future__ import annotations

from functools import singledispatch
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from partita.families import Bernoulli, Categorical
from partita.families.contract import n_columns, project, scatter, stats_start
from partita.families.registry import Block

MAX_STATES = 256  # of one packed column: codes are bytes, and the table of a group stays in the L1 cache
MIN_ROWS = 4096  # for fewer rows packing costs more than it saves


class States(NamedTuple):
    """The family of packed columns: a datum is the number of its state, the statistics are counts of states."""

    offsets: np.ndarray


class PackedBlock(NamedTuple):
    """A block with its packed form, which the passes of EM and VB read."""

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


def is_packable(block: Any, n_rows: int) -> bool:
    """Whether packing the columns of a block makes passes faster."""
    if n_rows < MIN_ROWS or level_statistics(block.family, 0) is None:
        return False
    if not np.all(getattr(block.family, "power", 1.0) == 1.0):  # scored and counted with different weights
        return False
    return len(_groups(block)) < len(block.columns)


def _groups(block: Block) -> list[list[int]]:
    """Neighboring columns for which the product of the numbers of levels (with missing) is small."""
    groups: list[list[int]] = []
    size = MAX_STATES + 1
    for d in range(len(block.columns)):
        states = len(level_statistics(block.family, d) or [])
        if size * states <= MAX_STATES:
            groups[-1].append(d)
            size *= states
        else:
            groups.append([d])
            size = states
    return groups


class PackedLayout(NamedTuple):
    """How the columns of a block are packed: groups of columns, the number of states of each column, dtype of codes."""

    groups: list[list[int]]
    sizes: list[int]
    dtype: Any
    states: States
    levels: csr_array


def pack_block(block: Block) -> PackedBlock:
    """The block with its packed form."""
    layout = layout_of(block)
    return PackedBlock(*block[:3], layout.states, pack_codes(block.data, layout), layout.levels)


def layout_of(block: Block) -> PackedLayout:
    """How the columns of a block are packed."""
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
    return PackedLayout(groups, sizes, np.min_scalar_type(largest), States(np.array(starts)), levels)


def pack_codes(data: np.ndarray, layout: PackedLayout) -> np.ndarray:
    """The states [row, group] of the packed columns."""
    codes = np.empty((len(data), len(layout.groups)), layout.dtype)
    for g, group in enumerate(layout.groups):
        code = np.zeros(len(data), np.int64)
        for d in group:
            code = code * layout.sizes[d] + data[:, d] + 1
        codes[:, g] = code
    return codes
