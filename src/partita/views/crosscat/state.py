"""CrossCat: a Dirichlet process over columns, and in each of its views one over rows.

Each view is a chain of its own (:mod:`partita.engines.gibbs.chain`): sweeps over the rows, splits and merges, concentration
and hyper-parameters. Between those steps the columns choose their views. What a column says of a view is the marginal
likelihood of the column if rows are divided as in that view; it does not depend on where the other columns are, so one
pass over the table gives it for all columns and views, and a sweep over columns costs no look at the data but for the
views that are empty: those are drawn from the prior, rows and all (Neal 2000, algorithm 8).

Columns that are forced together move as one unit. Forbidden pairs have no probability: the prior is the Dirichlet
process given that the constraints hold, so the concentration is learned as without them.

Mansinghka, Shafto, Jonas, Petschulat, Gasner and Tenenbaum (2016), JMLR 17; Murphy (2012), section 25.6.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from partita.engines.gibbs import chain as chains
from partita.engines.gibbs.chain import Chain, Schedule
from partita.partitions import DirichletProcess, log_eppf
from partita.views.crosscat.layout import (
    Layout,
    part_columns,
    put_columns,
    take_columns,
    view_blocks,
)

__all__ = [
    "Plan",
    "Table",
    "View",
    "columns_in",
    "log_joint",
    "open_view",
    "row_step",
    "start",
]


class Plan(NamedTuple):
    """How a chain over views moves."""

    rows: Schedule  # of the chain in each view; says what is learned, too
    n_auxiliary: int = 1  # empty views that a column may choose from
    n_births: float = 1.0  # share of the units that are offered a view of their own, an iteration
    n_merges: float = 2.0  # tries to merge or split views, an iteration, for each view
    concentration: float | None = None  # of the rows of a new view; None: drawn from the unit exponential
    learn_views: bool = True  # whether the concentration of the views is learned
    dtype: type = np.float32  # of the predictive caches


class View(NamedTuple):
    """Units of columns and the chain over the rows that they share."""

    units: tuple[int, ...]
    chain: Chain


class Table(NamedTuple):
    """Where a chain over views stands."""

    layout: Layout
    views: tuple[View, ...]
    families: tuple[Any, ...]  # of all columns, with the present hyper-parameters
    reference: tuple[Any, ...]  # what the hyperprior is centred on
    prior: DirichletProcess  # of the views
    accepted: dict[str, int]


def columns_in(layout: Layout, units: Sequence[int]) -> np.ndarray:
    """Columns of some units, in order."""
    return np.sort(np.concatenate([layout.units[u] for u in units]))


def open_view(
    layout: Layout,
    reference: Sequence[Any],
    families: Sequence[Any],
    units: Sequence[int],
    z: np.ndarray,
    prior: Any,
    seed: int,
    dtype: type,
) -> View:
    """A view of the given units with rows divided as z says."""
    columns = columns_in(layout, units)
    parts = part_columns(layout, columns)
    now = [take_columns(family, positions) for family, positions in zip(families, parts, strict=True)]
    blocks = view_blocks(layout, reference, columns)
    return View(tuple(sorted(units)), chains.start(blocks, prior, z, seed, dtype, families=now))


def start(
    layout: Layout,
    groups: Sequence[Sequence[int]],
    labels: Sequence[np.ndarray],
    priors: Sequence[Any],
    rng: np.random.Generator,
    plan: Plan,
    families: Sequence[Any] | None = None,
    view_concentration: float = 1.0,
) -> Table:
    """A chain that starts from given views: units, labels of the rows, prior of the rows for each."""
    reference = tuple(block.family for block in layout.blocks)
    families = tuple(families or reference)
    views = tuple(
        open_view(layout, reference, families, units, z, prior, int(rng.integers(2**62)), plan.dtype)
        for units, z, prior in zip(groups, labels, priors, strict=True)
    )
    return Table(layout, views, families, reference, DirichletProcess(float(view_concentration)), {})


# ---- rows ------------------------------------------------------------------------------------------------------


def row_step(table: Table, plan: Plan) -> Table:
    """One iteration of the chain in every view; hyper-parameters go back to the table."""
    views, families = [], list(table.families)
    for view in table.views:
        chain = chains.step(view.chain, plan.rows)
        views.append(view._replace(chain=chain))
        parts = part_columns(table.layout, columns_in(table.layout, view.units))
        for b, (live, positions) in enumerate(zip(chain.seating.blocks, parts, strict=True)):
            if len(positions):
                families[b] = put_columns(families[b], positions, live.family)
    return table._replace(views=tuple(views), families=tuple(families))


def log_joint(table: Table) -> float:
    """Log probability of data, views and labels under the present hyper-parameters."""
    counts = np.array([float(table.layout.sizes[list(view.units)].sum()) for view in table.views])
    total = log_eppf(table.prior, counts, len(counts))
    return float(total + sum(chains.log_joint(view.chain) for view in table.views))
