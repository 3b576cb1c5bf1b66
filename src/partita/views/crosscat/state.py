"""CrossCat: a Dirichlet process over columns, and in each of its views another one over rows.

Each view has its own chain over the rows (:mod:`partita.engines.gibbs.chain`): Gibbs sweeps, split-merge moves,
concentration and hyper-parameters. The column step reassigns columns to views. The score of a column under a view is
its marginal likelihood given the row partition of that view. It does not depend on the other columns, so one pass over
the table gives the scores of all columns under all views, and the column step reads the data again only for empty
views, whose row partitions are drawn from the prior (Neal 2000, algorithm 8).

Columns that are forced together move as one *unit*. Forbidden pairs have probability zero: the prior is the Dirichlet
process conditioned on the constraints, up to its normalizing constant, so the concentration is learned as without them.

Mansinghka, Shafto, Jonas, Petschulat, Gasner and Tenenbaum (2016), JMLR 17; Murphy (2012), section 25.6.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from partita.engines.gibbs import chain as chains
from partita.engines.gibbs import sweep
from partita.engines.gibbs.chain import Chain, Schedule
from partita.families.columns import put_columns, take_columns
from partita.partitions import DirichletProcess
from partita.views.crosscat.layout import Layout, part_columns, view_blocks


class CrossCatPlan(NamedTuple):
    """The moves of a chain over views."""

    rows: Schedule  # of the chain over the rows in each view; also says what is learned
    n_auxiliary: int = 1  # empty views that a unit may choose from
    births_per_unit: float = 1.0  # birth or death proposals per unit and iteration
    merges_per_view: float = 2.0  # merge or split proposals per view and iteration
    concentration: float | None = None  # of the rows in a new view; None: drawn from the unit exponential
    learn_views: bool = True  # whether the concentration of the views is learned
    dtype: type = np.float32  # of the predictive caches


class CrossCatView(NamedTuple):
    """Units of columns, and the chain over the rows that they share."""

    units: tuple[int, ...]
    chain: Chain


class ViewsState(NamedTuple):
    """State of a chain over views."""

    layout: Layout
    views: tuple[CrossCatView, ...]
    families: tuple[Any, ...]  # of all columns, with the present hyper-parameters
    reference: tuple[Any, ...]  # families that the hyperprior is centered on
    prior: DirichletProcess  # of the views
    accepted: dict[str, int]  # outcomes of the moves
    factors: Any = None  # :class:`~partita.views.crosscat.row_factors.RowFactors`, None for none
    depths: Any = None  # :class:`~partita.views.depths.Depths`, None for none


def columns_in(layout: Layout, units: Sequence[int]) -> np.ndarray:
    """Columns of some units, in increasing order."""
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
) -> CrossCatView:
    """A view of the given units with the row partition z."""
    columns = columns_in(layout, units)
    parts = part_columns(layout, columns)
    now = [take_columns(family, positions) for family, positions in zip(families, parts, strict=True)]
    blocks = view_blocks(layout, reference, columns)
    return CrossCatView(tuple(sorted(units)), chains.start(blocks, prior, z, seed, dtype, families=now))


def reopened(state: ViewsState, layout: Layout, rng: np.random.Generator, dtype: type) -> ViewsState:
    """The state with other data of the columns, and new statistics in all views."""
    views = tuple(
        open_view(
            layout,
            state.reference,
            state.families,
            view.units,
            sweep.labels(view.chain.seating),
            view.chain.prior,
            int(rng.integers(2**62)),
            dtype,
        )
        for view in state.views
    )
    return state._replace(layout=layout, views=views)


def start(
    layout: Layout,
    groups: Sequence[Sequence[int]],
    labels: Sequence[np.ndarray],
    priors: Sequence[Any],
    rng: np.random.Generator,
    plan: CrossCatPlan,
    families: Sequence[Any] | None = None,
    view_concentration: float = 1.0,
) -> ViewsState:
    """The state with given views: for each its units, the labels of the rows and the prior of the row partition."""
    reference = tuple(block.family for block in layout.blocks)
    families = tuple(families or reference)
    views = tuple(
        open_view(layout, reference, families, units, z, prior, int(rng.integers(2**62)), plan.dtype)
        for units, z, prior in zip(groups, labels, priors, strict=True)
    )
    return ViewsState(layout, views, families, reference, DirichletProcess(float(view_concentration)), {})


def row_step(state: ViewsState, plan: CrossCatPlan) -> ViewsState:
    """One iteration of the chain over the rows in every view; their hyper-parameters are copied into the state."""
    views, families = [], list(state.families)
    for view in state.views:
        chain = chains.step(view.chain, plan.rows)
        views.append(view._replace(chain=chain))
        parts = part_columns(state.layout, columns_in(state.layout, view.units))
        for b, (live, positions) in enumerate(zip(chain.seating.blocks, parts, strict=True)):
            if len(positions):
                families[b] = put_columns(families[b], positions, live.family)
    return state._replace(views=tuple(views), families=tuple(families))
