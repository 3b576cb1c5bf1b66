"""Whether the rows of a table of counts have depths, and their first values.

A clustering into rows with many and with few events explains a part of what depths explain, and depths a part of what
such a clustering explains. Which of the two a table has shows in the evidence: short chains with and without depths
are compared on a sample of the table.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from partita.families import Block, Counts, take_block
from partita.families.columns import take_columns, take_data
from partita.families.contract import n_columns
from partita.views.crosscat.chain import chain_plan, step
from partita.views.crosscat.depths import layout_with
from partita.views.crosscat.layout import lay_out
from partita.views.crosscat.row_factors import log_joint
from partita.views.crosscat.starts import start_from_screening
from partita.views.crosscat.state import CrossCatPlan
from partita.views.depths import Depths, log_depth_volumes, row_events

MIN_COLUMNS, MIN_ROWS = 5, 30  # of a table in which depths are looked for
MAX_SEARCHED_ROWS, MAX_SEARCHED_COLUMNS = 500, 60  # larger tables are sampled
N_STEPS = 12  # of the short chains; the last third is compared
MIN_GAIN = 10.0  # in evidence (nats), from which a table has depths
MIN_SHAPE, MAX_SHAPE = 0.05, 1e3  # at the start


def first_depths(blocks: Any) -> Depths:
    """Depths by the sums of the rows, and the shape that their variance beyond that of counts implies.

    Examples
    --------
    >>> data = Counts(np.array([[4.0, 4.0], [16.0, 16.0]]), np.ones(2))
    >>> found = first_depths([Block(None, data, ())])
    >>> found.rows.round(1), round(found.shape, 1)
    (array([0.5, 1.5]), 3.2)
    """
    counts = [block.data for block in blocks if isinstance(block.data, Counts)]
    exposure, events = counts[0].exposure, row_events(blocks)
    expected = np.zeros(len(exposure))
    for data in counts:
        seen = ~np.isnan(data.X)
        rates = np.nansum(data.X, axis=0) / np.maximum(seen.T @ exposure, 1e-300)
        expected += exposure * (seen @ rates)
    mean = max(float(expected.mean()), 1e-300)
    excess = float(((events - expected) ** 2 - expected).mean()) / mean**2
    shape = float(np.clip(1.0 / max(excess, 1e-12), MIN_SHAPE, MAX_SHAPE))
    return Depths((shape + events) / (shape + expected), shape, exposure)


def find_depths(blocks: Any, nuisance: Any, plan: CrossCatPlan, rng: np.random.Generator) -> Depths | None:
    """The depths from which chains start; None for a model without.

    ``nuisance`` is 0 for none, "auto" to choose by the evidence, and any other number for a model with depths. Tables
    with few rows or columns of counts have none by "auto".
    """
    counts = [block for block in blocks if isinstance(block.data, Counts)]
    if not counts or nuisance == 0:
        return None
    if nuisance == "auto":
        D, N = sum(int(n_columns(block.family)) for block in counts), len(counts[0].data.X)
        if D < MIN_COLUMNS or N < MIN_ROWS:
            return None
        sample = _sampled(counts, rng)
        seed = int(rng.integers(2**62))
        without, having = (
            _evidence(sample, depths, plan, np.random.default_rng(seed))
            for depths in (None, first_depths(sample))
        )
        if having < without + MIN_GAIN:
            return None
    return first_depths(counts)


def _sampled(counts: list[Block], rng: np.random.Generator) -> list[Block]:
    """At most so many rows and columns."""
    N, out = len(counts[0].data.X), []
    rows = np.sort(rng.permutation(N)[:MAX_SEARCHED_ROWS])
    for block in counts:
        D = int(n_columns(block.family))
        columns = np.sort(rng.permutation(D)[:MAX_SEARCHED_COLUMNS])
        part = Block(take_columns(block.family, columns), take_data(block.data, columns), ())
        out.append(take_block(part, rows))
    return out


def _evidence(
    blocks: list[Block], depths: Depths | None, plan: CrossCatPlan, rng: np.random.Generator
) -> float:
    """Mean log joint over the end of a short chain, with the depths integrated out by Laplace's approximation."""
    layout = lay_out(blocks)
    events = row_events(layout.blocks)
    state = start_from_screening(layout_with(layout, depths), plan, rng)._replace(depths=depths)
    values = []
    for _ in range(N_STEPS):
        state = step(state, chain_plan(plan), rng)
        value = log_joint(state)
        if state.depths is not None:
            value += log_depth_volumes(events, state.depths.shape, state.depths.rows).sum()
        values.append(value)
    return float(np.mean(values[-(N_STEPS // 3) :]))
