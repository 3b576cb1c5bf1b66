"""From the best search and the draws of the chains to the fitted values of overlapping views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from partita.engines.gibbs.chain import average_families
from partita.families import Block
from partita.views.depths import with_mean_depths
from partita.views.draws import Draw, view_factors
from partita.views.estimator import estimate_draw
from partita.views.nuisance import MeanRowFactors, mean_row_factors, remove_row_factors
from partita.views.overlapping.chain import OverlapDraw
from partita.views.overlapping.draws import as_draw
from partita.views.overlapping.polish import Polished, polish
from partita.views.overlapping.state import OverlapState
from partita.views.overlapping.table import OverlapTable
from partita.views.overlapping.text import WordDraw, word_draw
from partita.views.summary import one_partition, row_confidence, summarize_views


class Arrangement(NamedTuple):
    """The columns of the sampler and those of the fitted table."""

    blocks: Sequence[Block]  # with data
    where: Sequence[np.ndarray]  # block by block, the numbers of the columns in the table
    numbers: Sequence[int]  # of the blocks, in the order of the sampler
    n_columns: int  # of the table

    @property
    def order(self) -> np.ndarray:
        """Numbers in the table of the columns of the sampler."""
        return np.concatenate([self.where[b] for b in self.numbers])

    def by_block(self, Y: np.ndarray) -> list[np.ndarray]:
        """Memberships [column of the sampler, view] as [position, view], block by block."""
        ends = np.cumsum([len(self.where[b]) for b in self.numbers])[:-1]
        found = dict(zip(self.numbers, np.split(Y, ends), strict=True))
        return [found[b] for b in range(len(self.where))]

    def by_column(self, Y: np.ndarray) -> np.ndarray:
        """Memberships [column of the table, view]; a column is in the views of all its parts."""
        out = np.zeros((self.n_columns, Y.shape[1]), bool)
        np.logical_or.at(out, self.order, Y)
        return out


class OverlappingResult(NamedTuple):
    """Fitted values, with columns numbered as in the table; views with more columns come first."""

    draws: tuple[Draw, ...]
    blocks: Sequence[Block]  # with hyper-parameters averaged over the draws
    words: tuple[WordDraw, ...]  # empty unless the model is of text
    membership: np.ndarray  # [column, view] bool
    view_labels: np.ndarray  # [row, view]
    confidence: np.ndarray  # [row, view]
    confidence_kind: str
    feature_views: np.ndarray
    n_clusters_posterior: list[dict[int, float]]
    estimate: Draw
    row_factors: MeanRowFactors


def make_result(
    table: OverlapTable,
    best: OverlapState,
    drawn: Sequence[OverlapDraw],
    arrangement: Arrangement,
    rng: np.random.Generator,
    *,
    is_full: bool,
    is_averaged: bool,
    is_text: bool,
) -> OverlappingResult:
    """Fitted values from the best state of the searches and the draws.

    Labels are those of the best state, polished; if ``is_averaged``, point estimates from the draws. If ``is_full``
    (full covariances) there is no polishing, and the best draw takes the place of the best state.
    """
    D, where = arrangement.n_columns, arrangement.where
    draws = tuple(as_draw(table.with_cells(draw.cells), draw, arrangement) for draw in drawn)
    if is_full:
        best = max(drawn, key=lambda draw: draw.log_joint).state
        polished = Polished([np.eye(int(z.max()) + 1)[z] for z in best.Z])
    else:
        polished = polish(table, best)
    views = _ranked_views(best, polished)
    members = best.Y[:, views]
    membership = arrangement.by_column(members)
    summary = summarize_views(draws, membership)
    labels = [polished.labels[v] for v in views]
    confidence = [polished.confidence[:, v] for v in views]
    posterior = []
    for v, drawn_labels in enumerate(summary.drawn_labels):
        posterior.append(summary.n_clusters_posterior[v] or {int(labels[v].max()) + 1: 1.0})
        if is_averaged and len(drawn_labels):
            labels[v] = one_partition(drawn_labels, "vi", rng)
            confidence[v] = row_confidence(drawn_labels, labels[v])
    blocks = _averaged_blocks(table, drawn, arrangement)
    view_labels = _stacked(labels, table.n_rows).astype(np.int64)
    mean_factors = mean_row_factors(draws, D)
    rest = with_mean_depths(remove_row_factors(blocks, where, mean_factors), draws)
    factors = view_factors(rest, arrangement.by_block(members), view_labels, where)
    return OverlappingResult(
        draws,
        blocks,
        tuple(word_draw(table, draw.state) for draw in drawn) if is_text else (),
        membership,
        view_labels,
        _stacked(confidence, table.n_rows),
        "co-clustering probability" if is_averaged else "posterior probability",
        summary.feature_views,
        posterior,
        estimate_draw(membership, view_labels, factors, mean_factors, draws),
        mean_factors,
    )


def _ranked_views(best: OverlapState, polished: Polished) -> np.ndarray:
    """Views with at least two clusters, in decreasing order of their number of columns."""
    order = np.argsort(-best.Y.sum(axis=0), kind="stable")
    return np.array([v for v in order if polished.labels[v].max() > 0], dtype=int)


def _averaged_blocks(
    table: OverlapTable, drawn: Sequence[OverlapDraw], arrangement: Arrangement
) -> Sequence[Block]:
    """The blocks with hyper-parameters averaged over the draws, where these are learned."""
    if table.combined is None:
        return arrangement.blocks
    families = average_families([draw.state.hyper.families for draw in drawn])
    learned = dict(zip(arrangement.numbers[-len(families) :], families, strict=True))
    return [block._replace(family=learned.get(b, block.family)) for b, block in enumerate(arrangement.blocks)]


def _stacked(columns: list[np.ndarray], n_rows: int) -> np.ndarray:
    """Columns side by side; an array without columns if there are none."""
    return np.column_stack(columns) if columns else np.zeros((n_rows, 0))
