"""The posterior predictive density of chains: an average over draws, each with the seat of a new cluster."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from partita.engines.climb.seeding import label_statistics
from partita.engines.gibbs.chain import ChainDraw
from partita.engines.gibbs.outliers import expected_share
from partita.engines.nonconjugate import parameters as explicit
from partita.engines.passes.rows import assign_rows, n_stats, normalized, predictive
from partita.execution import Serial, row_chunks
from partita.execution.device import is_on_device, namespace
from partita.execution.device_labels import count_labels
from partita.families import Block
from partita.fitting.objects import log_seats
from partita.partitions import with_parameters
from partita.trace import Trace

N_DRAWS = 20  # of all chains, that the density is averaged over
MAX_BYTES = 1 << 28  # of their statistics; fewer draws are kept if they would take more


class PredictiveDraw(NamedTuple):
    """What the density of a new row depends on in one draw.

    ``clusters`` holds for each block the statistics of the clusters, [statistic, cluster], or their parameters if the
    family is not conjugate.
    """

    families: tuple[Any, ...]
    clusters: tuple[np.ndarray, ...]
    log_weights: np.ndarray  # of the clusters, then of a new one
    outlier_share: float = 0.0


def summarize_predictive(
    kept: Sequence[ChainDraw],
    blocks: Sequence[Block],
    rows: np.ndarray,
    weights: np.ndarray,
    prior: Any,
    limit: int,
    *,
    outliers: bool = False,
) -> tuple[PredictiveDraw, ...]:
    """The draws that the density is averaged over, evenly spread over all that were kept.

    Parameters
    ----------
    kept : sequence of ChainDraw
        The draws of all chains.
    blocks : sequence of Block
        The training rows.
    rows : ndarray
        The row of each object; not read if the rows are on a device.
    weights : ndarray
        How many objects each row stands for.
    prior : partition prior
        Its concentration and discount are replaced by those of the draw.
    limit : int
        Largest number of clusters.
    outliers : bool, default=False
        Whether a label of -1 is an outlier of the model.
    """
    largest = max(_n_labels(draw.trace) for draw in kept)
    each = 8 * max(largest, 1) * sum(n_stats(block.family) for block in blocks)
    chosen = evenly_spread(len(kept), max(1, min(N_DRAWS, MAX_BYTES // each)))
    return tuple(
        predictive_draw(kept[t], blocks, rows, weights, prior, limit, outliers=outliers) for t in chosen
    )


def evenly_spread(n_kept: int, n_wanted: int) -> np.ndarray:
    """Numbers of at most ``n_wanted`` of the draws, at equal distances.

    Examples
    --------
    >>> evenly_spread(12, 4), evenly_spread(2, 4)
    (array([ 1,  4,  7, 10]), array([0, 1]))
    """
    n = min(n_kept, n_wanted)
    return ((np.arange(n) + 0.5) * n_kept / n).astype(np.int64)


def predictive_draw(
    draw: ChainDraw,
    blocks: Sequence[Block],
    rows: np.ndarray,
    weights: np.ndarray,
    prior: Any,
    limit: int,
    *,
    outliers: bool = False,
) -> PredictiveDraw:
    """The clusters of one draw with their weights for a further object; see :func:`summarize_predictive`."""
    trace = draw.trace
    prior = with_parameters(prior, float(trace.concentration[0]), float(trace.discount[0]))
    n, share = _sizes_in(trace, prior)
    clusters = list(draw.held or [None] * len(blocks))
    counted = [b for b, columns in enumerate(clusters) if columns is None]
    S = _count([blocks[b] for b in counted], rows, weights, trace) if counted else ()
    for b, columns in zip(counted, S, strict=True):
        clusters[b] = columns
    return PredictiveDraw(
        draw.families,
        tuple(
            np.ascontiguousarray(columns[:, n[: columns.shape[1]] > 0])
            for columns in clusters
            if columns is not None
        ),
        log_seats(prior, n, limit),
        share if outliers else 0.0,
    )


def _n_labels(trace: Trace) -> int:
    """Largest label of a draw, and one."""
    on_device = is_on_device(trace.labels)  # the labels of such a draw have no gaps
    return int(trace.n_clusters[0]) if on_device else int(trace.labels.max()) + 1


def _sizes_in(trace: Trace, prior: Any) -> tuple[np.ndarray, float]:
    """Sizes of the clusters of a draw, and the expected share of outliers."""
    if is_on_device(trace.labels):
        return count_labels(trace.labels[0, ...], _n_labels(trace)).astype(float), 0.0
    z = trace.labels[0].astype(np.int64)
    n_labels = prior.n_components if prior.fixed_labels else _n_labels(trace)
    n = np.bincount(z[z >= 0], minlength=n_labels).astype(float)
    return n, expected_share(int((z < 0).sum()), len(z))


def _count(
    blocks: Sequence[Block], rows: np.ndarray, weights: np.ndarray, trace: Trace
) -> tuple[np.ndarray, ...]:
    """Statistics of the labels of a draw; the objects of one row may have different labels."""
    z, K = trace.labels[0].astype(np.int64), _n_labels(trace)
    if K == 0:
        return tuple(np.zeros((n_stats(block.family), 0)) for block in blocks)
    if len(rows) == len(weights) and np.all(weights == 1):
        return label_statistics(blocks, weights, z, K).S
    parts = []
    for k in range(K):
        own = np.bincount(rows, z == k, minlength=len(weights))
        parts.append(label_statistics(blocks, own, np.where(own > 0, 0, -1), 1).S)
    return tuple(np.concatenate(columns, axis=1) for columns in zip(*parts, strict=True))


def average_log_density(
    draws: Sequence[PredictiveDraw],
    blocks: Sequence[Block],
    n_rows: int,
    executor: Any = None,
    log_background: np.ndarray | None = None,
) -> np.ndarray:
    """Log density of each row, averaged over the draws; real columns are standardized.

    ``log_background`` is the log density of each row as an outlier.
    """
    scorers = [_scorer(draw, blocks, number) for number, draw in enumerate(draws)]
    shares = np.array([draw.outlier_share for draw in draws])
    if all(callable(score) for score in scorers):
        total = _sum_in_memory(scorers, np.log1p(-shares), n_rows, executor)
    else:
        total = _sum_elsewhere(scorers, np.log1p(-shares), n_rows, executor)
    if log_background is not None:
        total = np.logaddexp(total, np.log(shares.sum()) + log_background)
    return total - math.log(len(draws))


def _sum_in_memory(scorers: Sequence[Any], log_shares: np.ndarray, n_rows: int, executor: Any) -> np.ndarray:
    """Log of the sum of all densities of each row, in one pass over the rows."""
    total = np.empty(n_rows)

    def one(rows: np.ndarray) -> None:
        L = [score(rows) + share for score, share in zip(scorers, log_shares, strict=True)]
        total[rows] = normalized(np.concatenate(L, axis=1))[1]

    for _ in (executor or Serial()).map(one, row_chunks(n_rows)):
        pass
    return total


def _sum_elsewhere(scorers: Sequence[Any], log_shares: np.ndarray, n_rows: int, executor: Any) -> Any:
    """The same where the rows are not in memory, in a pass for each draw; on a device the result stays there."""
    total = None
    for score, share in zip(scorers, log_shares, strict=True):
        inside = assign_rows(score, n_rows, executor).log_likelihood + float(share)
        xp = namespace(inside) if is_on_device(inside) else np
        total = inside if total is None else xp.logaddexp(total, inside)
    return total


def _scorer(draw: PredictiveDraw, blocks: Sequence[Block], seed: int) -> Any:
    own = [block._replace(family=family) for block, family in zip(blocks, draw.families, strict=True)]
    if explicit.non_conjugate(own):
        return explicit.predictive_at(own, draw.clusters, draw.log_weights, seed)
    S = [np.pad(columns, ((0, 0), (0, 1))) for columns in draw.clusters]  # a new cluster has no data
    return predictive(own, S, draw.log_weights)
