"""From the best state and the draws of chains to the attributes of fitted overlapping views."""

from __future__ import annotations

from typing import Any

import numpy as np

from partita.engines.gibbs.chain import average_families
from partita.families import Block
from partita.views.base import Draw, columns_of
from partita.views.overlapping.draws import as_draw, view_factors
from partita.views.overlapping.polish import Polished, polish
from partita.views.overlapping.state import State
from partita.views.overlapping.table import OverlapTable
from partita.views.overlapping.text import word_draw
from partita.views.summary import match_views, one_partition, owners

LENGTH = "length"  # exposure: the sum of a row's counts


def settle(
    model: Any, table: OverlapTable, best: State, drawn: Any, order: Any, blocks: Any, rng: Any
) -> None:
    """From the best state and the draws to the fitted attributes."""
    D, where = model.schema_.n_features, columns_of(model.schema_, blocks)
    model.draws_ = tuple(as_draw(table, draw, where, order, D) for draw in drawn)
    if model.covariance == "full":
        best = max(drawn, key=lambda draw: draw.log_joint).state
    model._words = tuple(word_draw(table, draw.state) for draw in drawn) if _is_text(model, table) else ()
    if table.cells is not None:
        families = average_families([draw.state.hyper.families for draw in drawn])
        named = {block.columns: family for block, family in zip(table.cells.blocks, families, strict=True)}
        blocks = [block._replace(family=named.get(block.columns, block.family)) for block in blocks]
        model._blocks = tuple(Block(block.family, None, block.columns) for block in blocks)
    if model.covariance == "full":
        polished = Polished([np.eye(int(z.max()) + 1)[z] for z in best.Z])
    else:
        polished = polish(table, best)
    rank = np.argsort(-best.Y.sum(axis=0), kind="stable")
    rank = np.array([v for v in rank if polished.labels[v].max() > 0], dtype=int)  # one cluster is no view
    model.membership_ = np.zeros((D, best.n_views), bool)
    model.membership_[order] = best.Y
    model.membership_ = model.membership_[:, rank]
    labels = [polished.labels[v] for v in rank]
    model.confidence_ = polished.confidence[:, rank] if labels else np.ones((table.n_rows, 0))
    _match(model, labels, rng)
    labels = np.array(labels, dtype=np.int64).reshape(len(labels), table.n_rows)
    model.view_labels_ = np.ascontiguousarray(labels.T)
    factors = view_factors(blocks, model.membership_, model.view_labels_, where)
    model._estimate = Draw(
        model.membership_, model.view_labels_, factors, np.nan, 0, np.ones(1 + len(factors))
    )
    if not len(factors):
        model.fit_report_.add("no_view", "no two columns depend on each other: there is no view")
    model._tell()
    if model.n_chains > 1 and "provisional" not in model.fit_report_ and not model.diagnostics_.ok:
        model.fit_report_.add("chains_disagree", model.diagnostics_.sentence, level="warning")


def _is_text(model: Any, table: OverlapTable) -> bool:
    cells = table.cells
    return model.exposure == LENGTH and table.real is None and cells is not None and len(cells.blocks) == 1


def _match(model: Any, labels: list[np.ndarray], rng: np.random.Generator) -> None:
    """Probabilities over the draws for the views of the estimate; averaged labels, if these are asked for."""
    V = model.membership_.shape[1]
    model.feature_views_ = np.zeros(model.membership_.shape)
    model.n_clusters_posterior_ = []
    matches = [match_views(model.membership_, draw) for draw in model.draws_]
    owner = [owners(model.membership_, draw, m) for draw, m in zip(model.draws_, matches, strict=True)]
    for v in range(V):
        found = [(d, m[v]) for d, m in zip(model.draws_, matches, strict=True) if m[v] >= 0]
        for draw, m, of in zip(model.draws_, matches, owner, strict=True):
            if of.get(int(m[v])) == v:  # a view of a draw counts once
                model.feature_views_[:, v] += draw.membership[:, m[v]] / len(model.draws_)
        counts = [int(draw.labels[:, w].max()) + 1 for draw, w in found] or [int(labels[v].max()) + 1]
        numbers, times = np.unique(counts, return_counts=True)
        model.n_clusters_posterior_.append(
            {int(K): float(t / times.sum()) for K, t in zip(numbers, times, strict=True)}
        )
        if found and (model.partition == "averaged" or model.covariance == "full"):
            labels[v] = one_partition(np.stack([draw.labels[:, w] for draw, w in found]), "vi", rng)
