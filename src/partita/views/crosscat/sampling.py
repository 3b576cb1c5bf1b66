"""The three ways to fit views (chains, variational Bayes, search), and draws numbered as the columns of the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from partita.engines.checkpoints import Checkpoint
from partita.engines.gibbs.chain import Schedule
from partita.engines.run import Control, Progress, Sampler, iterate, run_chains, run_restarts
from partita.execution.executors import n_workers
from partita.families import n_rows
from partita.views.crosscat import search, vb
from partita.views.crosscat.chain import Snapshot, ViewsChain, ViewSnapshot, take_snapshot, views_sampler
from partita.views.crosscat.depths import layout_with
from partita.views.crosscat.layout import Layout
from partita.views.crosscat.row_factors import first_factors, real_columns, without_row_factors
from partita.views.crosscat.starts import start_from_screening
from partita.views.crosscat.state import CrossCatPlan, ViewsState
from partita.views.depths import Depths
from partita.views.draws import Draw, Factor, FactorBlock
from partita.views.screening import MIN_EXCESS
from partita.views.settling import CHECKS, outline, views_settling

DEFAULT_DRAWS = 20  # of a single chain, and of variational Bayes
FIRST_CONCENTRATION = 1.0  # of the views, where it is learned
MIN_EXCESS_FACTORS = (
    1.0,
    2.0,
    0.6,
    1.4,
)  # chains in turn: each starts from views screened at another threshold


class CrossCatRequest(NamedTuple):
    """The options of a fit."""

    rngs: list[np.random.Generator]
    n_draws: int | None  # what is None follows from the agreement of the chains
    burn_in: int | None
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
    rows: np.ndarray | None = None  # row factors at the start; None for none
    gain: np.ndarray | None = None  # their gains at the start; None for a model in which all gains are 0
    parts: np.ndarray | None = None  # [rank, real column]: columns with a part in each of them; None for all
    groups: tuple[
        tuple[np.ndarray, np.ndarray], ...
    ] = ()  # real columns (bool) and labels of groups with factors
    depths: Depths | None = None  # depths at the start
    longest: int = CHECKS[-1]  # iterations of chains that do not agree


class ViewsResult(NamedTuple):
    """The result of a fit."""

    snapshots: list[Snapshot]
    objective: np.ndarray  # of each iteration: log joint of the first chain, or the bound
    reason: str  # "done", "converged", "max_iter", or why the fit ended early
    # whether no chain reached its first draw: the snapshot is a state of the burn-in
    provisional: bool = False
    burn_in: int = 0
    agreed_at: int | None = None  # iteration after which the chains agreed


def make_plan(request: CrossCatRequest) -> CrossCatPlan:
    """The plan of a chain."""
    rows = Schedule(
        n_draws=request.n_draws,
        burn_in=request.burn_in,
        thin=request.thin,
        n_moves=2,
        learn_concentration=request.concentration is None,
        learn_likelihood=request.learn_likelihood,
    )
    return CrossCatPlan(
        rows,
        concentration=request.concentration,
        learn_views=request.view_concentration is None,
        dtype=request.dtype,
    )


def fit_chains(layout: Layout, request: CrossCatRequest) -> ViewsResult:
    """Chains from different starts, each with its own random generator."""
    plan = make_plan(request)

    def make(number: int) -> Sampler:
        def start() -> ViewsChain:
            return ViewsChain(_first_state(layout, plan, request, number), request.rngs[number])

        return views_sampler(start, plan, given=layout, number=number)

    def checkpoint(number: int) -> Checkpoint | None:
        if request.folder is None:
            return None
        rank = 0 if request.rows is None else request.rows.shape[1]
        about = (
            request.rngs[number],
            plan,
            request.view_concentration,
            layout,
            rank,
            request.gain,
            request.parts,
            request.depths,
        )
        return Checkpoint(request.folder, number, about, "crosscat")

    chains = run_chains(
        make,
        len(request.rngs),
        plan.rows,
        control=request.control,
        executor=request.executor,
        checkpoint=checkpoint,
        settling=views_settling(
            len(request.rngs),
            request.n_draws,
            request.burn_in,
            lambda snapshot: snapshot_outline(snapshot, layout),
            request.longest,
        ),
    )
    return ViewsResult(
        chains.draws,
        chains.runs[0].log_joint,
        chains.reason,
        chains.provisional,
        chains.burn_in,
        chains.agreed_at,
    )


def snapshot_outline(snapshot: Snapshot, layout: Layout) -> Draw:
    """Memberships and labels of a snapshot, with columns numbered as their names come first in the layout."""
    names = [name for block in layout.blocks for name in block.columns]
    place = {name: i for i, name in enumerate(dict.fromkeys(names))}
    numbers = np.array([place[name] for name in names])
    membership = np.zeros((len(place), len(snapshot.views)), bool)
    for v, view in enumerate(snapshot.views):
        membership[numbers[view.columns], v] = True
    return outline(membership, np.column_stack([view.labels for view in snapshot.views]))


def _first_state(layout: Layout, plan: CrossCatPlan, request: CrossCatRequest, number: int) -> ViewsState:
    """The start of a chain or a search; in every other start the row chains begin with many clusters, not with one."""
    return _screened(
        layout,
        plan,
        request,
        number,
        min_excess=MIN_EXCESS * MIN_EXCESS_FACTORS[number % len(MIN_EXCESS_FACTORS)],
        apart=number % 2 == 1,
    )


def _screened(
    layout: Layout, plan: CrossCatPlan, request: CrossCatRequest, number: int, **how: Any
) -> ViewsState:
    """A start from screening the table without its row factors and depths."""
    factors = None
    if request.rows is not None:
        factors = first_factors(layout, request.rows, request.gain, request.parts)
        layout = without_row_factors(layout, factors)
    layout = layout_with(layout, request.depths)
    first = request.view_concentration or FIRST_CONCENTRATION
    reals = real_columns(layout)
    known = [(reals[own], z) for own, z in request.groups]
    rng = request.rngs[number]
    state = start_from_screening(layout, plan, rng, view_concentration=first, known=known, **how)
    return state._replace(factors=factors, depths=request.depths)


def fit_vb(layout: Layout, request: CrossCatRequest) -> ViewsResult:
    """Variational Bayes from one start; independent draws from the approximation take the place of chain draws."""
    if layout.apart.any():
        raise ValueError("inference='vb' cannot keep columns apart: use inference='gibbs' or 'search'")
    plan, rng = make_plan(request), request.rngs[0]
    start = _screened(layout, plan, request, 0)
    N = n_rows(layout.blocks[0].data)
    run = iterate(
        lambda state: vb.step(state, request.executor, learn_likelihood=request.learn_likelihood),
        vb.init(start, request.max_views, min(request.max_clusters, N)),
        max_iter=request.max_iter,
        tol=request.tol,
        weight=float(N * layout.n_columns),
        control=request.control,
    )
    n_draws = request.n_draws or DEFAULT_DRAWS
    snapshots = vb.draw_snapshots(run.state, plan, rng, n_draws, request.executor, first=start)
    return ViewsResult(snapshots, np.array(run.objectives), run.reason)


def fit_search(layout: Layout, request: CrossCatRequest) -> ViewsResult:
    """The best state of several searches, without uncertainty."""
    plan, control = make_plan(request), request.control

    def one(number: int) -> tuple[ViewsState, list[float]]:
        deadline = control.share(len(request.rngs) - number, n_workers(request.executor))

        def after(iteration: int, n_views: int, value: float) -> bool:
            return control.after(Progress(number, iteration, value, n_views, control.seconds), deadline)

        start = _first_state(layout, plan, request, number)
        return search.search_views(start, plan, request.rngs[number], request.max_iter, after)

    runs = run_restarts(one, len(request.rngs), control=control, executor=request.executor)
    best, values = max(runs, key=lambda run: run[1][-1])
    return ViewsResult([take_snapshot(best)], np.array(values), control.reason or "done")


def as_draw(snapshot: Snapshot, where: Sequence[np.ndarray], n_columns: int) -> Draw:
    """A draw with columns numbered as in the table; ``where`` holds these numbers block by block."""
    flat = np.concatenate(where)
    membership = np.zeros((n_columns, len(snapshot.views)), bool)
    for v, view in enumerate(snapshot.views):
        membership[flat[view.columns], v] = True
    loadings = np.zeros((len(snapshot.loadings), n_columns))
    for number, own in zip(flat, snapshot.loadings.T, strict=True):
        loadings[:, number] += own  # only one part of a column has any
    return Draw(
        membership,
        np.column_stack([view.labels for view in snapshot.views]),
        tuple(view_factor(view, where) for view in snapshot.views),
        snapshot.log_joint,
        snapshot.chain,
        np.array([snapshot.concentration, *(view.concentration for view in snapshot.views)]),
        snapshot.rows,
        loadings,
        snapshot.gain,
        snapshot.depths,
        snapshot.depth_shape,
    )


def view_factor(view: ViewSnapshot, where: Sequence[np.ndarray]) -> Factor:
    """A view as a factor: its states are the clusters, and one more for a new cluster."""
    weights = np.append(view.n, view.concentration)
    parts = tuple(
        FactorBlock(b, positions, family, np.column_stack([S, np.zeros(len(S))]))
        for b, (positions, family, S) in enumerate(zip(view.positions, view.families, view.S, strict=True))
        if len(positions)
    )
    columns = np.concatenate([where[part.block][part.positions] for part in parts])
    return Factor(columns, np.log(weights / weights.sum()), parts)
