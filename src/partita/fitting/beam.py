"""Beam search as an engine: one partition of high probability, found in one pass over the objects."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from partita.engines.climb.seeding import label_statistics
from partita.engines.gibbs.sweep import NO_LIMIT
from partita.engines.passes.rows import n_cache, n_stats
from partita.engines.run import Run
from partita.engines.sequential.beam import beam_search
from partita.execution import check_memory
from partita.families import Block, take
from partita.fitting.contract import EngineResult, Request
from partita.fitting.objects import check_exchangeable, log_seats, log_shares, rows_of_objects
from partita.fitting.predictive import PredictiveDraw


def bytes_of_beam(blocks: Sequence[Block], weights: np.ndarray, ask: Request) -> int:
    """Approximate peak memory of a search in bytes, without the table."""
    N, slots = int(weights.sum()), 2 * ask.width + 16
    rows = sum(n_stats(block.family) + n_cache(block.family) for block in blocks)
    return 8 * (N * ask.width + 3 * slots * rows)


def fit_beam(blocks: Sequence[Block], weights: np.ndarray, ask: Request) -> EngineResult:
    """Place the objects one after the other and keep the ``width`` most probable partial partitions.

    Objects that are not placed when the fit is ended early have the label -1.
    """
    check_exchangeable("beam", ask.prior)
    rows = rows_of_objects(weights)
    check_memory(
        bytes_of_beam(blocks, weights, ask),
        f"a beam of {ask.width} partitions of {len(rows):,} objects",
        "lower beam_width, or fit a sample of the rows",
    )
    objects = [block._replace(data=take(block.data, rows)) for block in blocks]
    found = beam_search(objects, ask.prior, width=ask.width, control=ask.control)
    first = np.searchsorted(rows, np.arange(len(weights)))  # a row takes the label of its first replicate
    z = np.full(len(weights), -1)
    z[weights > 0] = found.labels[first[weights > 0]]
    n_placed = int(np.count_nonzero(found.labels >= 0))
    done = n_placed == len(rows)
    statistics = label_statistics(objects, np.ones(len(rows)), found.labels, int(found.labels.max()) + 1)
    families = tuple(block.family for block in blocks)
    run = Run(None, [found.log_joint], done, "converged" if done else ask.control.reason, 0.0)
    return EngineResult(
        families=families,
        prior=ask.prior,
        statistics=statistics._replace(entropy=0.0),
        parameters=None,
        log_weights=log_shares(ask.prior, statistics.n),
        run=run,
        finals=[found.log_joint],
        n_iter=n_placed,
        labels=z,
        draws=(PredictiveDraw(families, statistics.S, log_seats(ask.prior, statistics.n, NO_LIMIT)),),
    )
