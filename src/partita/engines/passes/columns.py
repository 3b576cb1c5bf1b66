"""Passes over label matrices whose columns lie apart: only rows x clusters and statistics travel.

For categorical columns, whose statistics follow one another column by column.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from partita.engines.passes.exact_sums import ExactSums, add_exactly, merge_sums
from partita.execution import row_chunks
from partita.execution.columns import GridShards
from partita.families.categorical import Categorical
from partita.families.rows import normalize_rows, project_rows, scatter_rows

__all__ = [
    "assign_grid",
    "collect_grid",
    "label_grid",
    "piece_families",
    "take_grid",
    "weight_shares",
    "whole_weights",
]


def piece_families(family: Categorical, cuts: np.ndarray) -> list[tuple[Categorical, slice]]:
    """The family of each piece of the columns, and where its statistics are among all.

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


def _sides(parts: GridShards, family: Categorical, theta: np.ndarray) -> tuple[list[Any], list[slice]]:
    pieces = piece_families(family, parts.cuts)
    return [(one, np.ascontiguousarray(theta[rows])) for one, rows in pieces], [rows for _, rows in pieces]


def _own(parts: GridShards, *arrays: np.ndarray | None) -> list[Any]:
    cut = [parts.split(array) for array in arrays]
    return [(int(lo), *(pieces[i] for pieces in cut)) for i, lo in enumerate(parts.starts[:-1])]


def weight_shares(pieces: Sequence[np.ndarray]) -> list[Any]:
    """Weights of the rows of each part; where they are all the same, that number and how many rows there are, since
    a number for each row would be most of what travels in a pass.

    Examples
    --------
    >>> weight_shares([np.ones(3), np.array([1.0, 2.0])])
    [(1.0, 3), array([1., 2.])]
    """
    return [
        (float(piece[0]), len(piece)) if piece.strides == (0,) or piece.min() == piece.max() else piece
        for piece in pieces
    ]


def whole_weights(share: Any) -> np.ndarray:
    """One weight a row again."""
    return np.full(share[1], share[0]) if isinstance(share, tuple) else share


def collect_grid(
    parts: GridShards, family: Categorical, theta: np.ndarray, log_weights: np.ndarray, weights: np.ndarray
) -> ExactSums:
    """Exact sums over all row chunks: sizes, sums over the objects, statistics."""
    sides, _ = _sides(parts, family, theta)
    own = list(zip(parts.starts.tolist(), weight_shares(parts.split(weights)), strict=False))
    joined = parts.through_rows(project_piece, sides, normalize_pieces, log_weights, own)
    about = parts.ask(sums_alone, joined)
    statistics = parts.back_to_pieces(scatter_piece, sides, joined, own)
    total: Any = None
    for sums, row in zip(about, statistics, strict=True):
        value, lack = (np.concatenate([piece[side] for piece in row]) for side in (0, 1))
        one = ([*sums[0], value], [*sums[1], lack])
        total = one if total is None else merge_sums(total, one)
    return total


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
    """Responsibilities of a row chunk, and the exact sums of their sizes and logarithms."""
    start, weights = own[0], whole_weights(own[1])
    R = log_weights + sum(shares)
    total: Any = None
    for rows in row_chunks(len(R), start=start):
        block, sums = np.ascontiguousarray(R[rows]), np.zeros(3)
        normalize_rows(block, np.ascontiguousarray(weights[rows]), sums)
        R[rows] = block
        found = [block.sum(axis=0), sums]
        total = (found, [np.zeros_like(s) for s in found]) if total is None else add_exactly(total, found)
    return R, total


def sums_alone(joined: tuple[np.ndarray, Any]) -> Any:
    """What the driver needs of a row chunk."""
    return joined[1]


def scatter_piece(both: Any, side: Any, own: Any) -> tuple[np.ndarray, np.ndarray]:
    """Statistics of the columns of a piece: the sum, and what it lacks."""
    (piece, (R, _)), (family, theta) = both, side
    total: Any = None
    for rows in row_chunks(len(R), start=own[0]):
        S = np.zeros(theta.shape)
        scatter_rows(family, piece[0], rows, theta, np.ascontiguousarray(R[rows]), S)
        total = ([S], [np.zeros_like(S)]) if total is None else add_exactly(total, [S])
    return total[0][0], total[1][0]


def assign_grid(
    parts: GridShards, family: Categorical, theta: np.ndarray, log_weights: np.ndarray
) -> list[Any]:
    """Assignments of each row chunk."""
    sides, _ = _sides(parts, family, theta)
    own = _own(parts, None)
    return parts.ask(_itself, parts.through_rows(project_piece, sides, assign_pieces, log_weights, own))


def assign_pieces(shares: Sequence[np.ndarray], log_weights: np.ndarray, own: Any) -> Any:
    """Labels, confidence, entropy and log likelihood of a row chunk."""
    from partita.engines.passes.rows import (
        assign_rows,  # passes over rows that are whole build on this module
    )

    L = log_weights + sum(shares)
    return assign_rows(lambda rows: L[rows], len(L))


def _itself(item: Any) -> Any:
    return item


def label_grid(
    parts: GridShards, family: Categorical, weights: np.ndarray, z: np.ndarray, K: int
) -> np.ndarray:
    """Statistics of given labels."""
    sides, _ = _sides(parts, family, np.zeros((int(family.offsets[-1]), K)))
    rows = parts.map_pieces(count_piece, sides, _own(parts, weights, z))
    return np.concatenate([sum(pieces) for pieces in zip(*rows, strict=True)])


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


def take_grid(parts: GridShards, rows: Sequence[np.ndarray]) -> np.ndarray:
    """The labels of some rows of each row chunk, all columns."""
    found = parts.map_pieces(take_piece, [None] * (len(parts.cuts) - 1), list(rows))
    return np.concatenate([np.concatenate(pieces, axis=1) for pieces in found])


def take_piece(piece: Any, _: Any, rows: np.ndarray) -> np.ndarray:
    """Rows of a piece."""
    return np.ascontiguousarray(piece[0][rows])
