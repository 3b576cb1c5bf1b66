"""Variational Bayes over views: every column has a probability for each view, every row one for each cluster there.

After Guan, Dy, Niu and Ghahramani (2010), with two changes. The parameters of a cell are not independent of the view of
their column: given that a column is in a view, they have the posterior of all its cells there. So a column weighs a
view by a marginal likelihood rather than by parameters that nobody has taught yet, and is not bound to where it starts.
And weights have symmetric Dirichlet priors of fixed length in place of sticks: no order of views to be stuck in.

Good for: a first answer, with smooth memberships. Not for: how sure one is; it takes near misses for certain.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import entr, softmax

from partita.engines.climb import vb
from partita.engines.gibbs import sweep
from partita.engines.passes.rows import Parameters, Statistics, collect, label_rows, n_stats, plug_in
from partita.families.contract import expect, n_columns, stats_start
from partita.families.registry import Block
from partita.families.rows import add_statistics, log_marginals
from partita.labels import ordered_by_size
from partita.partitions import DirichletProcess, FiniteDirichlet, expect_log_weights, log_labelled
from partita.views.crosscat.chain import Snapshot, take_snapshot
from partita.views.crosscat.column_gibbs import unit_sums
from partita.views.crosscat.layout import Layout, put_columns, take_columns
from partita.views.crosscat.state import Plan, Table, start

__all__ = ["ViewsVB", "draw_snapshots", "init", "step"]

TOTAL = 1.0  # concentration of the weights of clusters, and of views
LEAST = 1e-6  # a column with less probability than this has no say in a view


class ViewsVB(NamedTuple):
    """Where the iteration stands."""

    layout: Layout
    families: tuple[Any, ...]
    eta: np.ndarray  # [unit, view] probabilities
    views: tuple[
        Statistics, ...
    ]  # sizes, statistics of all columns, entropy of the labels; one for each view
    objective: float
    change: float = np.inf

    @property
    def statistics(self) -> Statistics:
        """Expected columns of each view, in the place of the sizes of clusters: what progress reports count."""
        return Statistics(self.layout.sizes @ self.eta, (), np.nan, np.nan, 0.0)


def init(table: Table, max_views: int, max_clusters: int) -> ViewsVB:
    """Start from the views of a table; what is beyond the bounds joins the last cluster, or a view without any."""
    layout = table.layout
    labels = [sweep.labels(view.chain.seating) for view in table.views]
    N = len(labels[0])
    by_size = np.argsort([-len(view.units) for view in table.views], kind="stable")[: max_views - 1]
    kept = [np.minimum(ordered_by_size(labels[v]), max_clusters - 1) for v in by_size]
    kept.append(np.zeros(N, np.int64))
    views = tuple(_seen_as(layout, table.families, z, max_clusters) for z in kept)
    U, V = len(layout.units), len(views)
    state = ViewsVB(layout, table.families, np.full((U, V), 1.0 / V), views, -np.inf)
    return weigh_columns(state)


def _seen_as(layout: Layout, families: Sequence[Any], z: np.ndarray, K: int) -> Statistics:
    """Statistics of all columns under labels that are certain."""
    S = []
    for block, family in zip(layout.blocks, families, strict=True):
        S.append(np.zeros((n_stats(family), K)))
        add_statistics(family, block.data, z, S[-1])
    n = np.bincount(z, minlength=K).astype(float)
    return Statistics(n, tuple(S), np.nan, 0.0, 0.0)


def _with(layout: Layout, families: Sequence[Any]) -> list[Block]:
    return [block._replace(family=family) for block, family in zip(layout.blocks, families, strict=True)]


def by_statistic(family: Any, by_column: np.ndarray) -> np.ndarray:
    """One number a column, repeated for each of its statistics."""
    D = int(n_columns(family))
    widths = np.diff([int(stats_start(family, d)) for d in range(D + 1)])
    return np.repeat(by_column, widths)


def column_scores(families: Sequence[Any], views: Sequence[Statistics]) -> np.ndarray:
    """Log marginal likelihood of each column under the expected statistics of each view: [column, view]."""
    return np.column_stack(
        [
            np.concatenate([log_marginals(f, S).sum(axis=1) for f, S in zip(families, view.S, strict=True)])
            for view in views
        ]
    )


def weigh_columns(state: ViewsVB, families: Sequence[Any] | None = None) -> ViewsVB:
    """Probabilities of the views for each unit, and the bound, which holds right after them."""
    families = tuple(families or state.families)
    scores = column_scores(families, state.views)
    by_unit = np.column_stack([unit_sums(state.layout, column) for column in scores.T])
    sizes, prior = state.layout.sizes, FiniteDirichlet(TOTAL, state.eta.shape[1])
    log_w = expect_log_weights(prior, sizes @ state.eta)
    eta = softmax(by_unit + sizes[:, None] * log_w, axis=1)
    total = float((eta * by_unit).sum() + entr(eta).sum() + log_labelled(prior, sizes @ eta))
    for view in state.views:
        total += view.entropy + log_labelled(FiniteDirichlet(TOTAL, len(view.n)), view.n)
    change = float(np.abs(eta - state.eta).max())
    return state._replace(eta=eta, objective=total, families=families, change=change)


def learn_columns(state: ViewsVB) -> tuple[Any, ...]:
    """Hyper-parameters of each column by the clusters of its most probable view, where that raises the bound."""
    layout, families = state.layout, list(state.families)
    eta = np.empty((layout.n_columns, state.eta.shape[1]))
    for u, unit in enumerate(layout.units):
        eta[unit] = state.eta[u]
    best, scores = eta.argmax(axis=1), column_scores(families, state.views)
    for b, family in enumerate(state.families):
        lo = int(layout.starts[b])
        mine = best[lo : int(layout.starts[b + 1])]
        for v in np.unique(mine):
            positions = np.flatnonzero(mine == v)
            rows = np.flatnonzero(np.isin(by_statistic(family, np.arange(len(mine))), positions))
            S = np.ascontiguousarray(state.views[v].S[b][rows])
            part = vb.learn_hyper(take_columns(family, positions), S, state.views[v].n)
            families[b] = put_columns(families[b], positions, part)
    better = (eta * (column_scores(families, state.views) - scores)).sum(axis=1) >= 0.0
    out = []
    for b, (old, new) in enumerate(zip(state.families, families, strict=True)):
        keep = np.flatnonzero(~better[int(layout.starts[b]) : int(layout.starts[b + 1])])
        out.append(put_columns(new, keep, take_columns(old, keep)) if len(keep) else new)
    return tuple(out)


def row_parameters(state: ViewsVB, view: Statistics, v: int) -> Parameters:
    """What the rows of a view are scored by: the columns speak with the probability that they are there."""
    eta = np.empty(state.layout.n_columns)
    for u, unit in enumerate(state.layout.units):
        eta[unit] = state.eta[u, v]
    eta[eta < LEAST] = 0.0
    thetas = []
    for b, (family, S) in enumerate(zip(state.families, view.S, strict=True)):
        own = eta[int(state.layout.starts[b]) : int(state.layout.starts[b + 1])]
        thetas.append(expect(family, S) * by_statistic(family, own)[:, None])
    return Parameters(expect_log_weights(FiniteDirichlet(TOTAL, len(view.n)), view.n), tuple(thetas))


def step(state: ViewsVB, executor: Any = None, *, learn_likelihood: bool = True) -> ViewsVB:
    """Rows of every view, then hyper-parameters, then columns; the bound never falls."""
    blocks = _with(state.layout, state.families)
    weights = np.ones(_n_rows(state))
    views = tuple(
        collect(blocks, weights, row_parameters(state, view, v), executor)
        for v, view in enumerate(state.views)
    )
    state = state._replace(views=views)
    return weigh_columns(state, learn_columns(state) if learn_likelihood else None)


def _n_rows(state: ViewsVB) -> int:
    return round(float(state.views[0].n.sum()))


def draw_snapshots(
    state: ViewsVB, plan: Plan, rng: np.random.Generator, n_draws: int, executor: Any = None
) -> list[Snapshot]:
    """Independent draws from the approximation: views of columns, then labels of rows in the views that have some."""
    blocks, N = _with(state.layout, state.families), _n_rows(state)
    V = len(state.views)
    chances = {}
    out = []
    for _ in range(n_draws):
        edges = np.cumsum(state.eta, axis=1)
        picks = np.minimum((rng.random((len(edges), 1)) * edges[:, -1:] > edges).sum(axis=1), V - 1)
        groups, labels = [], []
        for v in np.unique(picks):
            if v not in chances:
                view = state.views[v]
                scorer = plug_in(blocks, row_parameters(state, view, v))
                chances[v] = np.cumsum(label_rows(scorer, N, len(view.n), executor)[0], axis=1)
            P = chances[v]
            groups.append(np.flatnonzero(picks == v).tolist())
            labels.append(np.minimum((rng.random((N, 1)) * P[:, -1:] > P).sum(axis=1), P.shape[1] - 1))
        priors = [DirichletProcess(TOTAL)] * len(groups)
        table = start(state.layout, groups, labels, priors, rng, plan, families=state.families)
        out.append(take_snapshot(table, 0))
    return out
