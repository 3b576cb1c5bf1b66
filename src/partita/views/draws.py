"""Draws of views, the common form in which all models of views keep their posterior.

A *draw* is one kept state of a sampler, or of an approximation: which columns are in which view, and the label of every
row in every view. The distribution of a new row under a draw is a product of *factors*. Within a factor the row has one
hidden state, and given that state the cells of the row are independent. For disjoint views a factor is a view and its
states are the clusters. Views that share columns form one factor, whose states are combinations of their clusters.
Columns are numbered as in the fitted table; columns that are not modeled (ignored ones, exposures) are in no view and
in no factor. A column with two parts (:mod:`partita.views.parts`) is twice in a factor, or in two factors; it is in the
views of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from partita.engines.passes.rows import n_stats
from partita.families.columns import take_columns, take_data
from partita.families.rows import add_statistics


class FactorBlock(NamedTuple):
    """The columns of one block (one family) in a factor, with the statistics of every state."""

    block: int  # number of the block in the model
    positions: np.ndarray  # of the columns in the block
    family: Any  # of these columns only
    S: np.ndarray  # [statistic, state]: statistics that determine the predictive


class Factor(NamedTuple):
    """Columns that depend on each other through one hidden state."""

    columns: np.ndarray  # numbers in the table of the parts, in the order of ``blocks``
    log_weights: np.ndarray  # [state] of a new row, including the state of a new cluster (without data)
    blocks: tuple[FactorBlock, ...]


class Draw(NamedTuple):
    """One state of a sampler over views."""

    membership: np.ndarray  # [column, view] bool
    labels: np.ndarray  # [row, view]: 0, 1, ... in every view
    factors: tuple[Factor, ...]
    log_joint: float
    chain: int
    concentrations: np.ndarray  # [1 + view]: of the views, then of the clusters in each view
    rows: np.ndarray = np.zeros((0, 0))  # row factors, [row, rank]
    loadings: np.ndarray = np.zeros((0, 0))  # of the row factors, [rank, column]
    gain: np.ndarray | None = None  # of the row factors, [rank]; None if all are 0
    depths: np.ndarray = np.zeros(0)  # of the rows (:mod:`partita.views.depths`); empty without
    depth_shape: float = 0.0  # of their distribution; 0 without


MIN_SHARING = 2  # columns that a grouping of the rows needs to be a view
LIKELY = 0.5  # probability of a column that is counted in a view of the estimate


def is_view(membership: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Which of some views are counted: those of at least two columns whose rows are in at least two clusters.

    A single column with clusters of its own depends on no other column, and chains open and close such clusters all the
    time; without columns, or with one cluster, there is no grouping at all.

    Parameters
    ----------
    membership : ndarray of bool (n_columns, n_views)
    labels : ndarray of int (n_rows, n_views)

    Examples
    --------
    >>> membership = np.array([[1, 0, 0], [1, 0, 1], [0, 1, 1]], bool)
    >>> is_view(membership, np.array([[0, 0, 0], [1, 1, 0]]))
    array([ True, False, False])
    """
    return (membership.sum(axis=0) >= MIN_SHARING) & (labels.max(axis=0, initial=0) > 0)


def n_counted_views(draw: Draw) -> int:
    """Number of views of a draw that are counted."""
    return int(is_view(draw.membership, draw.labels).sum())


def columns_of(schema: Any, blocks: Sequence[Any]) -> list[np.ndarray]:
    """The numbers in the table of the columns of each block.

    Examples
    --------
    >>> from partita.families import Block
    >>> from partita.table import read_table
    >>> schema = read_table([["red", 1.5, "u"], ["blue", 2.5, "v"]]).schema
    >>> columns_of(schema, [Block(None, None, ("x1",)), Block(None, None, ("x0", "x2"))])
    [array([1]), array([0, 2])]
    """
    place = {name: j for j, name in enumerate(schema.names)}
    return [np.array([place[name] for name in block.columns], dtype=np.intp) for block in blocks]


def shared_views(draw: Draw) -> np.ndarray:
    """Whether two columns share a view with at least two clusters: [column, column] bool.

    In a view of one cluster the columns are independent, so sharing it is no sign of dependence.

    Examples
    --------
    >>> membership = np.array([[True, False], [True, False], [False, True], [False, True]])
    >>> labels = np.array([[0, 0], [1, 0]])
    >>> draw = Draw(membership, labels, (), 0.0, 0, np.ones(3))
    >>> shared_views(draw).astype(int)
    array([[1, 1, 0, 0],
           [1, 1, 0, 0],
           [0, 0, 1, 0],
           [0, 0, 0, 1]])
    """
    clustered = draw.membership & (draw.labels.max(axis=0, initial=0) > 0)
    Y = clustered.astype(np.float32)
    return (Y @ Y.T > 0.5) | np.eye(len(Y), dtype=bool)


def view_factors(
    blocks: Sequence[Any], members: Sequence[np.ndarray], labels: np.ndarray, where: Sequence[np.ndarray]
) -> tuple[Factor, ...]:
    """One factor per view of an estimate: its states are the clusters of the view, without one for a new cluster.

    ``members`` [position, view], block by block, and ``labels`` [row, view] are the estimate; ``where`` holds, block by
    block, the numbers in the table of the columns of the blocks.
    """
    out = []
    for v, z in enumerate(labels.T):
        K, parts = int(z.max()) + 1, []
        for b, block in enumerate(blocks):
            positions = np.flatnonzero(members[b][:, v])
            if len(positions):
                family = take_columns(block.family, positions)
                S = np.zeros((n_stats(family), K))
                add_statistics(family, take_data(block.data, positions), z.astype(np.int64), S)
                parts.append(FactorBlock(b, positions, family, S))
        n = np.bincount(z, minlength=K)
        columns = np.concatenate([where[part.block][part.positions] for part in parts])
        out.append(Factor(columns, np.log(n / n.sum()), tuple(parts)))
    return tuple(out)


def as_plain(draws: Sequence[Draw], family_name: Any) -> list[dict[str, Any]]:
    """Draws as lists, numbers and arrays, for a file; ``family_name(family)`` is the name of a family."""
    return [
        {
            "membership": draw.membership,
            "labels": draw.labels,
            "log_joint": float(draw.log_joint),
            "chain": int(draw.chain),
            "concentrations": draw.concentrations,
            "rows": draw.rows,
            "loadings": draw.loadings,
            "gain": np.zeros(0) if draw.gain is None else draw.gain,
            "depths": draw.depths,
            "depth_shape": float(draw.depth_shape),
            "factors": [
                {
                    "columns": factor.columns,
                    "log_weights": factor.log_weights,
                    "blocks": [
                        {
                            "block": int(part.block),
                            "positions": part.positions,
                            "family": family_name(part.family),
                            "hyper": list(part.family),
                            "S": part.S,
                        }
                        for part in factor.blocks
                    ],
                }
                for factor in draw.factors
            ],
        }
        for draw in draws
    ]


def from_plain(saved: Sequence[dict[str, Any]], family_class: Any) -> tuple[Draw, ...]:
    """The inverse of :func:`as_plain`; ``family_class(name)`` is the class of a family."""
    return tuple(_draw(item, family_class) for item in saved)


def _draw(saved: dict[str, Any], family_class: Any) -> Draw:
    factors = tuple(
        Factor(
            item["columns"],
            item["log_weights"],
            tuple(
                FactorBlock(c["block"], c["positions"], family_class(c["family"])(*c["hyper"]), c["S"])
                for c in item["blocks"]
            ),
        )
        for item in saved["factors"]
    )
    return Draw(
        saved["membership"],
        saved["labels"],
        factors,
        saved["log_joint"],
        saved["chain"],
        saved["concentrations"],
        saved.get("rows", np.zeros((0, 0))),
        saved.get("loadings", np.zeros((0, 0))),
        saved["gain"] if len(saved.get("gain", ())) else None,
        saved.get("depths", np.zeros(0)),
        float(saved.get("depth_shape", 0.0)),
    )
