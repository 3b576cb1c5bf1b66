"""Variational Bayes over views: probabilities of the views for every column, and of the clusters for every row.

After Guan, Dy, Niu and Ghahramani (2010), with two changes. The approximation keeps the dependence between the view of
a column and the parameters of its clusters: given that the column is in a view, the parameters have the posterior
given all its data there. A column is therefore scored by its marginal likelihood under a view, not by parameters fitted
without it, and does not stay in the view it starts from. And the weights have symmetric Dirichlet priors of fixed
length instead of stick-breaking priors, so the order of the views does not matter.

Good for: a first answer in little time. Not for: statements about uncertainty; probabilities are too close to 0 and 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import entr, softmax

from partita.engines.climb import vb
from partita.engines.gibbs import sweep
from partita.engines.passes.rows import Parameters, Statistics, collect, label_rows, n_stats, plug_in
from partita.families.columns import put_columns, take_columns
from partita.families.contract import expect, n_columns, stats_start
from partita.families.registry import Block
from partita.families.rows import add_statistics, log_marginals
from partita.labels import ordered_by_size
from partita.partitions import DirichletProcess, FiniteDirichlet, expect_log_weights, log_labeled
from partita.views.crosscat.chain import Snapshot, take_snapshot
from partita.views.crosscat.column_gibbs import unit_sums
from partita.views.crosscat.layout import Layout
from partita.views.crosscat.state import CrossCatPlan, ViewsState, start

CONCENTRATION = 1.0  # of the weights of clusters, and of views
MIN_PROBABILITY = 1e-6  # columns with a smaller probability of a view are left out of its row scores


class ViewsVB(NamedTuple):
    """State of the variational iteration."""

    layout: Layout
    families: tuple[Any, ...]
    eta: np.ndarray  # [unit, view] probabilities
    views: tuple[Statistics, ...]  # per view: sizes, statistics of all columns, entropy of the labels
    objective: float
    change: float = np.inf

    @property
    def statistics(self) -> Statistics:
        """Expected number of columns of each view, in place of cluster sizes: progress reports count its entries."""
        return Statistics(self.layout.sizes @ self.eta, (), np.nan, np.nan, 0.0)


def init(first: ViewsState, max_views: int, max_clusters: int) -> ViewsVB:
    """Start from the largest views of a state, and a view of one cluster; surplus clusters join the last cluster."""
    layout = first.layout
    labels = [sweep.labels(view.chain.seating) for view in first.views]
    N = len(labels[0])
    by_size = np.argsort([-len(view.units) for view in first.views], kind="stable")[: max_views - 1]
    kept = [np.minimum(ordered_by_size(labels[v]), max_clusters - 1) for v in by_size]
    kept.append(np.zeros(N, np.int64))
    views = tuple(_certain_statistics(layout, first.families, z, max_clusters) for z in kept)
    U, V = len(layout.units), len(views)
    state = ViewsVB(layout, first.families, np.full((U, V), 1.0 / V), views, -np.inf)
    return weigh_columns(state)


def _certain_statistics(layout: Layout, families: Sequence[Any], z: np.ndarray, K: int) -> Statistics:
    """Statistics of all columns given labels with probability one."""
    S = []
    for block, family in zip(layout.blocks, families, strict=True):
        S.append(np.zeros((n_stats(family), K)))
        add_statistics(family, block.data, z, S[-1])
    n = np.bincount(z, minlength=K).astype(float)
    return Statistics(n, tuple(S), np.nan, 0.0, 0.0)


def _blocks(layout: Layout, families: Sequence[Any]) -> list[Block]:
    return [block._replace(family=family) for block, family in zip(layout.blocks, families, strict=True)]


def by_statistic(family: Any, by_column: np.ndarray) -> np.ndarray:
    """One number per column, repeated for each of its statistics."""
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
    """Update the probabilities of the views for each unit, and compute the bound, which is valid right after."""
    families = tuple(families or state.families)
    scores = column_scores(families, state.views)
    by_unit = np.column_stack([unit_sums(state.layout, column) for column in scores.T])
    sizes, prior = state.layout.sizes, FiniteDirichlet(CONCENTRATION, state.eta.shape[1])
    log_w = expect_log_weights(prior, sizes @ state.eta)
    eta = softmax(by_unit + sizes[:, None] * log_w, axis=1)
    total = float((eta * by_unit).sum() + entr(eta).sum() + log_labeled(prior, sizes @ eta))
    for view in state.views:
        total += view.entropy + log_labeled(FiniteDirichlet(CONCENTRATION, len(view.n)), view.n)
    change = float(np.abs(eta - state.eta).max())
    return state._replace(eta=eta, objective=total, families=families, change=change)


def learn_columns(state: ViewsVB) -> tuple[Any, ...]:
    """Fit the hyper-parameters of each column to its most probable view; kept where that increases the bound."""
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
    """Parameters that score the rows of a view; each column is weighted by its probability of being in the view."""
    eta = np.empty(state.layout.n_columns)
    for u, unit in enumerate(state.layout.units):
        eta[unit] = state.eta[u, v]
    eta[eta < MIN_PROBABILITY] = 0.0
    thetas = []
    for b, (family, S) in enumerate(zip(state.families, view.S, strict=True)):
        own = eta[int(state.layout.starts[b]) : int(state.layout.starts[b + 1])]
        thetas.append(expect(family, S) * by_statistic(family, own)[:, None])
    return Parameters(expect_log_weights(FiniteDirichlet(CONCENTRATION, len(view.n)), view.n), tuple(thetas))


def step(state: ViewsVB, executor: Any = None, *, learn_likelihood: bool = True) -> ViewsVB:
    """Update the rows of every view, the hyper-parameters, then the columns; the bound never decreases."""
    blocks = _blocks(state.layout, state.families)
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
    state: ViewsVB,
    plan: CrossCatPlan,
    rng: np.random.Generator,
    n_draws: int,
    executor: Any = None,
    *,
    first: ViewsState,
) -> list[Snapshot]:
    """Independent draws from the approximation: the view of each unit, then labels of the rows in the views in use.

    ``first`` is the start, whose row factors and depths are held fixed.
    """
    blocks, N = _blocks(state.layout, state.families), _n_rows(state)
    V = len(state.views)
    probabilities: dict[int, np.ndarray] = {}
    out = []
    for _ in range(n_draws):
        edges = np.cumsum(state.eta, axis=1)
        picks = np.minimum((rng.random((len(edges), 1)) * edges[:, -1:] > edges).sum(axis=1), V - 1)
        groups, labels = [], []
        for v in np.unique(picks):
            if v not in probabilities:
                view = state.views[v]
                scorer = plug_in(blocks, row_parameters(state, view, v))
                probabilities[v] = np.cumsum(label_rows(scorer, N, len(view.n), executor)[0], axis=1)
            P = probabilities[v]
            groups.append(np.flatnonzero(picks == v).tolist())
            labels.append(np.minimum((rng.random((N, 1)) * P[:, -1:] > P).sum(axis=1), P.shape[1] - 1))
        priors = [DirichletProcess(CONCENTRATION)] * len(groups)
        drawn = start(state.layout, groups, labels, priors, rng, plan, families=state.families)
        out.append(take_snapshot(drawn._replace(factors=first.factors, depths=first.depths), 0))
    return out
