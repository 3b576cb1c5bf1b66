"""How views are fitted: starts, chains, and draws in the numbering of the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from partita.engines.checkpoints import Checkpoint
from partita.engines.gibbs.chain import Schedule
from partita.engines.passes.rows import n_stats
from partita.engines.run import Control, Progress, Sampler, iterate, jobs_of, run_chains
from partita.families import n_rows
from partita.families.rows import add_statistics
from partita.views.base import Cells, Draw, Factor
from partita.views.crosscat import search, vb
from partita.views.crosscat.chain import Snapshot, ViewsChain, ViewSnapshot, take_snapshot, views_sampler
from partita.views.crosscat.layout import Layout, part_columns, view_blocks
from partita.views.crosscat.screen import CHANCE, find_table
from partita.views.crosscat.state import Plan, Table

FIRST_VIEWS = 1.0  # concentration of the views where it is learned
LOOSE_AND_STRICT = (
    1.0,
    2.0,
    0.6,
    1.4,
)  # chains take dependence for more or less: they start from different views


class Request(NamedTuple):
    """What a fit is asked for."""

    rngs: list[np.random.Generator]
    n_draws: int
    burn_in: int
    thin: int
    concentration: float | None
    view_concentration: float | None
    learn_likelihood: bool
    dtype: type
    max_views: int
    max_clusters: int
    max_iter: int
    tol: float
    control: Control
    executor: Any
    folder: Any  # where chains keep their checkpoints


class Found(NamedTuple):
    """What an engine leaves."""

    snapshots: list[Snapshot]
    objective: np.ndarray  # of each iteration: log joint of the first chain, or the bound
    reason: str  # "done", "converged", "max_iter", or why the fit ended early
    provisional: bool = False  # no chain came to its first draw: the snapshot is a state of the burn-in


def make_plan(ask: Request) -> Plan:
    """The plan of a chain."""
    rows = Schedule(
        n_draws=ask.n_draws,
        burn_in=ask.burn_in,
        thin=ask.thin,
        n_moves=2,
        learn_concentration=ask.concentration is None,
        learn_likelihood=ask.learn_likelihood,
    )
    return Plan(
        rows,
        concentration=ask.concentration,
        learn_views=ask.view_concentration is None,
        dtype=ask.dtype,
    )


def fit_chains(layout: Layout, ask: Request) -> Found:
    """Chains from different starts; each depends on its own stream of random numbers alone."""
    plan = make_plan(ask)

    def make(number: int) -> Sampler:
        def start() -> ViewsChain:
            return ViewsChain(_first_table(layout, plan, ask, number), ask.rngs[number])

        return views_sampler(start, plan, given=layout, number=number)

    def checkpoint(number: int) -> Checkpoint | None:
        if ask.folder is None:
            return None
        key = ask.rngs[number].bit_generator.state["state"]["state"] % 2**62
        families = tuple(tuple(block.family) for block in layout.blocks)
        return Checkpoint(ask.folder, number, (key, ask.n_draws, ask.burn_in, ask.thin, families))

    chains = run_chains(
        make, len(ask.rngs), plan.rows, control=ask.control, executor=ask.executor, checkpoint=checkpoint
    )
    return Found(chains.draws, chains.runs[0].log_joint, chains.reason, chains.provisional)


def _first_table(layout: Layout, plan: Plan, ask: Request, number: int) -> Table:
    """Where a chain or a search starts; even and odd ones start from opposite sides."""
    return find_table(
        layout,
        plan,
        ask.rngs[number],
        chance=CHANCE * LOOSE_AND_STRICT[number % len(LOOSE_AND_STRICT)],
        apart=number % 2 == 1,
        view_concentration=ask.view_concentration or FIRST_VIEWS,
    )


def fit_vb(layout: Layout, ask: Request) -> Found:
    """Variational Bayes from the first start; draws from the approximation stand for those of a chain."""
    if layout.apart.any():
        raise ValueError("inference='vb' cannot keep columns apart: use inference='gibbs' or 'search'")
    plan, rng = make_plan(ask), ask.rngs[0]
    table = find_table(layout, plan, rng, view_concentration=ask.view_concentration or FIRST_VIEWS)
    N = n_rows(layout.blocks[0].data)
    run = iterate(
        lambda state: vb.step(state, ask.executor, learn_likelihood=ask.learn_likelihood),
        vb.init(table, ask.max_views, min(ask.max_clusters, N)),
        max_iter=ask.max_iter,
        tol=ask.tol,
        weight=float(N * layout.n_columns),
        control=ask.control,
    )
    snapshots = vb.draw_snapshots(run.state, plan, rng, ask.n_draws, ask.executor)
    return Found(snapshots, np.array(run.objectives), run.reason)


def fit_search(layout: Layout, ask: Request) -> Found:
    """The best of several searches: one state, without uncertainty."""
    plan, control = make_plan(ask), ask.control

    def one(number: int) -> tuple[Table, list[float]]:
        deadline = control.share(len(ask.rngs) - number, jobs_of(ask.executor))

        def after(iteration: int, n_views: int, value: float) -> bool:
            return control.after(Progress(number, iteration, value, n_views, control.seconds), deadline)

        table = _first_table(layout, plan, ask, number)
        return search.search_table(table, plan, ask.rngs[number], ask.max_iter, after)

    runs = list(ask.executor.map(one, range(len(ask.rngs))))
    table, values = max(runs, key=lambda run: run[1][-1])
    return Found([take_snapshot(table)], np.array(values), control.reason or "done")


# ---- draws -----------------------------------------------------------------------------------------------------


def as_draw(snapshot: Snapshot, where: Sequence[np.ndarray], n_columns: int) -> Draw:
    """A draw with columns numbered as in the table; ``where`` holds those numbers block by block."""
    flat = np.concatenate(where)
    membership = np.zeros((n_columns, len(snapshot.views)), bool)
    for v, view in enumerate(snapshot.views):
        membership[flat[view.columns], v] = True
    return Draw(
        membership,
        np.column_stack([view.labels for view in snapshot.views]),
        tuple(view_factor(view, where) for view in snapshot.views),
        snapshot.log_joint,
        snapshot.chain,
        np.array([snapshot.concentration, *(view.concentration for view in snapshot.views)]),
    )


def view_factor(view: ViewSnapshot, where: Sequence[np.ndarray]) -> Factor:
    """The clusters of a view as states, and one more for a cluster that is not there yet."""
    weights = np.append(view.n, view.concentration)
    cells = tuple(
        Cells(b, positions, family, np.column_stack([S, np.zeros(len(S))]))
        for b, (positions, family, S) in enumerate(zip(view.positions, view.families, view.S, strict=True))
        if len(positions)
    )
    columns = np.concatenate([where[c.block][c.positions] for c in cells])
    return Factor(columns, np.log(weights / weights.sum()), cells)


def labels_factor(
    layout: Layout, families: Sequence[Any], columns: np.ndarray, z: np.ndarray, where: Sequence[np.ndarray]
) -> Factor:
    """The factor of given labels: columns are numbered block after block, states are the labels."""
    K, cells = int(z.max()) + 1, []
    parts = view_blocks(layout, families, columns)
    for b, (part, positions) in enumerate(zip(parts, part_columns(layout, columns), strict=True)):
        if len(positions):
            S = np.zeros((n_stats(part.family), K))
            add_statistics(part.family, part.data, z, S)
            cells.append(Cells(b, positions, part.family, S))
    numbers = np.concatenate([where[c.block][c.positions] for c in cells])
    n = np.bincount(z, minlength=K)
    return Factor(numbers, np.log(n / n.sum()), tuple(cells))
