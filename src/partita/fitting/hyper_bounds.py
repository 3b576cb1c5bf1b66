"""Learned hyper-parameters that lie near the end of their support."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from partita.engines.gibbs.chain import HYPER_CUT, HYPER_SPREAD
from partita.estimator import FitReport
from partita.families import Block
from partita.families.contract import breadth, held, unconstrained

OUTER = 0.1  # share of the support, half of it at either end, from which the report says so
MEANINGS = {
    "a": "degrees of freedom of the variances",
    "k": "weight of the prior mean",
    "m": "prior mean",
    "nu": "degrees of freedom of the covariances",
    "Psi": "size of the clusters",
    "b": "size of the clusters",
}


def at_the_end(default: Any, learned: Any) -> dict[str, np.ndarray]:
    """Hyper-parameters of a family that were learned, and which of their entries are in the outer tenth.

    Examples
    --------
    >>> from partita.families import GaussianDiagonal
    >>> default = GaussianDiagonal.default(2)
    >>> at_the_end(default, default._replace(b=default.b * [1.0, 1e-3]))["b"]
    array([False,  True])
    """
    bound = (1.0 - OUTER) * HYPER_CUT * HYPER_SPREAD
    centers, values = unconstrained(default), unconstrained(learned)
    return {
        name: np.abs(values[name] - center) > breadth(default, name) * bound
        for name, center in centers.items()
        if name not in held(default) and len(values[name]) == len(center)
    }


def note_bounds(report: FitReport, blocks: Sequence[Block], families: Sequence[Any]) -> None:
    """Warn where a learned hyper-parameter depends on where its support ends."""
    for block, learned in zip(blocks, families, strict=True):
        ends = {name: outer for name, outer in at_the_end(block.family, learned).items() if outer.any()}
        if not ends:
            continue
        per_column = [outer for outer in ends.values() if len(outer) == len(block.columns) > 1]
        is_outer = (
            np.any(per_column, axis=0) if len(per_column) == len(ends) else np.ones(len(block.columns), bool)
        )
        columns = [column for column, outer in zip(block.columns, is_outer) if outer]
        shown = ", ".join(map(str, columns[:5])) + (", ..." if len(columns) > 5 else "")
        what = " and ".join(MEANINGS.get(name, name) for name in ends)
        report.add(
            "hyper_at_end",
            f"hyper-parameters that were learned for {shown} ({what}) are near the end of their support, so the number "
            "of clusters depends on that bound: look for values that repeat or columns that follow from others, and "
            "compare with other kinds or families",
            level="warning",
        )
