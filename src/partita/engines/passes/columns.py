"""Passes over label matrices whose columns are on different workers; only log joints and statistics are sent.

For categorical columns, whose statistics are laid out column by column. A *piece* is some columns of a shard.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from partita.engines.passes.exact_sums import ExactSums, add_exactly, merge_sums
from partita.engines.passes.memory import MemoryScorer, first_sums
from partita.engines.passes.shards import InShards, ShardScorer, weight_shares, whole_weights
from partita.engines.passes.values import Assignment, Parameters, Statistics, rounded
from partita.execution import Part, row_chunks
from partita.execution.columns import GridShards
from partita.families.categorical import Categorical
from partita.families.registry import Block
from partita.families.rows import normalize_rows, project_rows, scatter_rows


class GridScorer(ShardScorer):
    """Scores rows under given parameters; the pieces of a row are scored where they are."""

    shards: GridShards

    def _assign_shards(self, uncertain: bool) -> Iterable[Assignment]:
        parameters: Parameters = self.about[0]
        sides = piece_sides(self.shards, self.blocks[0].family, parameters.thetas[0])
        own = _by_shard(self.shards, None)
        common = (parameters.log_weights, uncertain)
        joined = self.shards.through_rows(project_piece, sides, assign_pieces, common, own)
        return self.shards.ask(_itself, joined)


class InGrid(InShards):
    """The residence of one block of labels whose rows and columns are both divided among workers."""

    shards: GridShards

    def collect(
        self,
        blocks: Sequence[Any],
        weights: np.ndarray,
        parameters: Parameters,
        executor: Any,
        part: Part | None = None,
    ) -> Statistics:
        """Expected statistics of all objects."""
        if part is not None:
            raise NotImplementedError("pieces of columns are passed over as a whole only")
        return rounded(
            collect_grid(self.shards, blocks[0].family, parameters.thetas[0], parameters.log_weights, weights)
        )

    def count(
        self,
        blocks: Sequence[Any],
        weights: np.ndarray,
        z: np.ndarray,
        K: int,
        thetas: Sequence[np.ndarray] | None,
    ) -> Statistics:
        """Statistics of given labels."""
        family = blocks[0].family
        sides = piece_sides(self.shards, family, np.zeros((int(family.offsets[-1]), K)))
        rows = self.shards.map_pieces(count_piece, sides, _by_shard(self.shards, weights, z))
        S = np.concatenate([sum(pieces) for pieces in zip(*rows, strict=True)])
        n = np.bincount(z[z >= 0], weights=weights[z >= 0], minlength=K)
        return Statistics(n, (S,), np.nan, np.nan, 0.0)

    def plug_in(self, blocks: Sequence[Any], parameters: Parameters) -> GridScorer:
        """Scores under given parameters."""
        return GridScorer(self.shards, "plug_in", blocks, (parameters,))

    def _take_data(self, blocks: Sequence[Block], own: Sequence[np.ndarray]) -> list[Any]:
        found = self.shards.map_pieces(take_piece, [None] * (len(self.shards.cuts) - 1), list(own))
        return [np.concatenate([np.concatenate(pieces, axis=1) for pieces in found])]

    def pack(self, blocks: Sequence[Any], n_rows: int) -> tuple[Any, ...]:
        """The blocks as they are: packing needs neighboring columns in one place."""
        return tuple(blocks)


def piece_families(family: Categorical, cuts: np.ndarray) -> list[tuple[Categorical, slice]]:
    """The family of each piece, and the rows of its statistics among those of all columns.

    Examples
    --------
    >>> [rows for _, rows in piece_families(Categorical.default([2, 2, 3]), np.array([0, 2, 3]))]
    [slice(0, 6, None), slice(6, 10, None)]
    """
    found = []
    for lo, hi in pairwise(cuts):
        rows = slice(int(family.offsets[lo]), int(family.offsets[hi]))
        offsets = family.offsets[lo : hi + 1] - family.offsets[lo]
        found.append((Categorical(family.alpha[lo:hi], offsets, family.power[lo:hi], family.tied), rows))
    return found


def piece_sides(shards: GridShards, family: Categorical, theta: np.ndarray) -> list[Any]:
    """Family and natural parameters of each piece."""
    pieces = piece_families(family, shards.cuts)
    return [(one, np.ascontiguousarray(theta[rows])) for one, rows in pieces]


def _by_shard(shards: GridShards, *arrays: np.ndarray | None) -> list[Any]:
    """The first row of each shard, with its slices of the arrays."""
    cut = [shards.split(array) for array in arrays]
    return [(int(lo), *(own[i] for own in cut)) for i, lo in enumerate(shards.starts[:-1])]


def collect_grid(
    shards: GridShards, family: Categorical, theta: np.ndarray, log_weights: np.ndarray, weights: np.ndarray
) -> ExactSums:
    """Exact sums over all shards: sizes, sums over the objects, statistics."""
    sides = piece_sides(shards, family, theta)
    own = list(zip(shards.starts.tolist(), weight_shares(shards.split(weights)), strict=False))
    joined = shards.through_rows(project_piece, sides, normalize_pieces, log_weights, own)
    about = shards.ask(sums_alone, joined)
    statistics = shards.back_to_pieces(scatter_piece, sides, joined, own)
    total: Any = None
    for sums, row in zip(about, statistics, strict=True):
        value, lack = (np.concatenate([piece[side] for piece in row]) for side in (0, 1))
        one = ([*sums[0], value], [*sums[1], lack])
        total = one if total is None else merge_sums(total, one)
    return total


# ---- what runs on a piece ----------------------------------------------------------------------------------------


def project_piece(piece: Any, side: Any, own: Any) -> np.ndarray:
    """Log likelihood of the columns of a piece, rows x clusters."""
    family, theta = side
    L = np.zeros((len(piece[0]), theta.shape[1]))
    for rows in row_chunks(len(L), start=own[0]):
        share = np.zeros((len(rows), theta.shape[1]))
        project_rows(family, piece[0], rows, theta, share)
        L[rows] = share
    return L


def normalize_pieces(
    shares: Sequence[np.ndarray], log_weights: np.ndarray, own: Any
) -> tuple[np.ndarray, Any]:
    """Responsibilities of a shard, and the exact sums of their sizes and logarithms."""
    start, weights = own[0], whole_weights(own[1])
    R = log_weights + sum(shares)
    total: Any = None
    for rows in row_chunks(len(R), start=start):
        chunk, sums = np.ascontiguousarray(R[rows]), np.zeros(3)
        normalize_rows(chunk, np.ascontiguousarray(weights[rows]), sums)
        R[rows] = chunk
        found = [chunk.sum(axis=0), sums]
        total = first_sums(found) if total is None else add_exactly(total, found)
    return R, total


def sums_alone(joined: tuple[np.ndarray, Any]) -> Any:
    """What the driver needs of a shard."""
    return joined[1]


def scatter_piece(both: Any, side: Any, own: Any) -> tuple[np.ndarray, np.ndarray]:
    """Statistics of the columns of a piece: the sum and its compensation."""
    (piece, (R, _)), (family, theta) = both, side
    total: Any = None
    for rows in row_chunks(len(R), start=own[0]):
        S = np.zeros(theta.shape)
        scatter_rows(family, piece[0], rows, theta, np.ascontiguousarray(R[rows]), S)
        total = first_sums([S]) if total is None else add_exactly(total, [S])
    return total[0][0], total[1][0]


def assign_pieces(shares: Sequence[np.ndarray], common: tuple[np.ndarray, bool], own: Any) -> Assignment:
    """Labels, confidence, entropy and log likelihood of a shard, and its uncertain rows if they are asked for."""
    log_weights, uncertain = common
    L = log_weights + sum(shares)
    return MemoryScorer(lambda rows: L[rows]).assign(len(L), uncertain=uncertain)


def _itself(item: Any) -> Any:
    return item


def count_piece(piece: Any, side: Any, own: Any) -> np.ndarray:
    """Weighted counts of the labels of a piece in each cluster."""
    family, theta = side
    _, weights, z = own
    S = np.zeros(theta.shape)
    for rows in row_chunks(len(z)):
        R = np.zeros((len(rows), theta.shape[1]))
        seen = np.flatnonzero(z[rows] >= 0)
        R[seen, z[rows][seen]] = weights[rows][seen]
        scatter_rows(family, piece[0], rows, theta, R, S)
    return S


def take_piece(piece: Any, _: Any, rows: np.ndarray) -> np.ndarray:
    """Rows of a piece."""
    return np.ascontiguousarray(piece[0][rows])
