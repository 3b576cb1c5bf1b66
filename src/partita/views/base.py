"""What all models of views share: a draw, and the laws of a new row under it.

A *draw* is one state of a sampler (or of whatever stands for it): which columns are in which view, and the label of
every row in every view. For questions about new rows a draw is a product of *factors*. Within a factor a row has one
hidden state, and given that state its cells are independent. For disjoint views a factor is a view and a state one of
its clusters; where columns belong to several views, the views that share columns are one factor, and a state is a
combination of their clusters. Columns are numbered as in the table that was fitted; those that the model does not read
(ignored ones, exposures) are in no view and in no factor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Cells", "Draw", "Factor", "as_plain", "columns_of", "from_plain", "shared_views"]


class Cells(NamedTuple):
    """The columns of one block (one family) in one factor, with the statistics of every state."""

    block: int  # which block of the model
    positions: np.ndarray  # of these columns in the block
    family: Any  # of these columns alone
    S: np.ndarray  # [statistic, state]: what the family's predictive is made from


class Factor(NamedTuple):
    """Columns that depend on each other through one hidden state."""

    columns: np.ndarray  # numbers in the table, cell by cell in the order of ``cells``
    log_weights: np.ndarray  # [state] of a new row, the state of a new cluster (no data) among them
    cells: tuple[Cells, ...]


class Draw(NamedTuple):
    """One state of a sampler over views."""

    membership: np.ndarray  # [column, view] bool
    labels: np.ndarray  # [row, view] clusters, 0, 1, ... in every view
    factors: tuple[Factor, ...]
    log_joint: float
    chain: int
    concentrations: np.ndarray  # [1 + view]: of the views, then of the clusters in each


def columns_of(schema: Any, blocks: Sequence[Any]) -> list[np.ndarray]:
    """For each block the numbers of its columns in the table.

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

    In a view of one cluster columns are independent, so to be there together means nothing.

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
    telling = draw.membership & (draw.labels.max(axis=0, initial=0) > 0)
    Y = telling.astype(np.float32)
    return (Y @ Y.T > 0.5) | np.eye(len(Y), dtype=bool)


def as_plain(draws: Sequence[Draw], family_name: Any) -> list[dict[str, Any]]:
    """Draws as lists, numbers and arrays, for a file; ``family_name(family)`` names a family."""
    return [
        {
            "membership": draw.membership,
            "labels": draw.labels,
            "log_joint": float(draw.log_joint),
            "chain": int(draw.chain),
            "concentrations": draw.concentrations,
            "factors": [
                {
                    "columns": factor.columns,
                    "log_weights": factor.log_weights,
                    "cells": [
                        {
                            "block": int(cells.block),
                            "positions": cells.positions,
                            "family": family_name(cells.family),
                            "hyper": list(cells.family),
                            "S": cells.S,
                        }
                        for cells in factor.cells
                    ],
                }
                for factor in draw.factors
            ],
        }
        for draw in draws
    ]


def from_plain(saved: Sequence[dict[str, Any]], family_class: Any) -> tuple[Draw, ...]:
    """The inverse of :func:`as_plain`; ``family_class(name)`` finds the class of a family."""
    return tuple(_draw(item, family_class) for item in saved)


def _draw(saved: dict[str, Any], family_class: Any) -> Draw:
    factors = tuple(
        Factor(
            item["columns"],
            item["log_weights"],
            tuple(
                Cells(c["block"], c["positions"], family_class(c["family"])(*c["hyper"]), c["S"])
                for c in item["cells"]
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
    )
