"""How views are fitted: starts, chains, and draws in the numbering of the table."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from partita.engines.gibbs.chain import Schedule
from partita.engines.passes.rows import n_stats
from partita.engines.run import Progress, iterate
from partita.families import n_rows
from partita.families.rows import add_statistics
from partita.views.base import Cells, Draw, Factor
from partita.views.crosscat import search, vb
from partita.views.crosscat.chain import Snapshot, ViewSnapshot, run_columns, take_snapshot
from partita.views.crosscat.layout import Layout, part_columns, view_blocks
from partita.views.crosscat.screen import CHANCE, find_table
from partita.views.crosscat.state import Plan

__all__ = ["Found", "Request", "as_draw", "fit_chains", "fit_search", "fit_vb", "labels_factor"]

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
    time_limit: float | None
    callback: Callable[[Progress], Any] | None
    executor: Any


class Found(NamedTuple):
    """What an engine leaves."""

    snapshots: list[Snapshot]
    objective: np.ndarray  # of each iteration: log joint of the first chain, or the bound
    reason: str  # "done", "converged", "max_iter", "time_limit", "stopped"


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
    plan, began, reasons = make_plan(ask), time.perf_counter(), []
    n_chains = len(ask.rngs)
    share = math.inf if ask.time_limit is None else ask.time_limit / n_chains

    def one(index: int):
        rng, started = ask.rngs[index], time.perf_counter()
        table = find_table(
            layout,
            plan,
            rng,
            chance=CHANCE * LOOSE_AND_STRICT[index % len(LOOSE_AND_STRICT)],
            apart=index % 2 == 1,
            view_concentration=ask.view_concentration or FIRST_VIEWS,
        )

        def after(iteration: int, n_views: int, value: float) -> bool:
            seconds = time.perf_counter() - began
            stop = ask.callback is not None and ask.callback(
                Progress(index, iteration, value, n_views, seconds)
            )
            late = time.perf_counter() - started > share
            if stop or late:
                reasons.append("stopped" if stop else "time_limit")
            return bool(stop) or late

        return run_columns(table, plan, rng, index=index, callback=after)

    runs = list(ask.executor.map(one, range(n_chains)))
    snapshots = [snapshot for draws, _, _ in runs for snapshot in draws]
    return Found(snapshots, runs[0][2], reasons[0] if reasons else "done")


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
        deadline=math.inf if ask.time_limit is None else time.perf_counter() + ask.time_limit,
        callback=ask.callback,
    )
    snapshots = vb.draw_snapshots(run.state, plan, rng, ask.n_draws, ask.executor)
    return Found(snapshots, np.array(run.objectives), run.reason)


def fit_search(layout: Layout, ask: Request) -> Found:
    """The best of several searches: one state, without uncertainty."""
    plan, began = make_plan(ask), time.perf_counter()

    def one(index: int):
        rng = ask.rngs[index]
        chance = CHANCE * LOOSE_AND_STRICT[index % len(LOOSE_AND_STRICT)]
        table = find_table(
            layout,
            plan,
            rng,
            chance=chance,
            apart=index % 2 == 1,
            view_concentration=ask.view_concentration or FIRST_VIEWS,
        )

        def after(iteration: int, n_views: int, value: float) -> bool:
            seconds = time.perf_counter() - began
            late = ask.time_limit is not None and seconds > ask.time_limit * (index + 1) / len(ask.rngs)
            progress = Progress(index, iteration, value, n_views, seconds)
            return late or bool(ask.callback is not None and ask.callback(progress))

        return search.search_table(table, plan, rng, ask.max_iter, after)

    runs = list(ask.executor.map(one, range(len(ask.rngs))))
    table, values = max(runs, key=lambda run: run[1][-1])
    return Found([take_snapshot(table)], np.array(values), "done")


def print_views(progress: Progress) -> None:
    """One line to standard error, overwritten."""
    end = "\r" if sys.stderr.isatty() else "\n"
    print(
        f"chain {progress.restart + 1}  iteration {progress.iteration:4d}  views {progress.n_clusters:3d}  "
        f"objective {progress.objective:.4f}  {progress.seconds:.1f} s",
        end=end,
        file=sys.stderr,
    )


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
