"""Hidden coordinates of partly observed vectors, sampled together with the labels.

A chain keeps a completed copy of such data. One step of this engine draws the parameters of all clusters given the
completed data, then draws the cluster of each partly observed object from its observed coordinates *alone* (the hidden
ones integrated out), then draws its hidden coordinates given its new cluster: label and completion are drawn jointly,
so an object whose observed part fits two clusters moves between them regardless of its last completion. This step
neither opens nor closes clusters (an object alone in its cluster stays there); sweeps and splits do that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from partita.dispatch import kernel
from partita.engines.climb.seeding import label_statistics
from partita.engines.gibbs.drawing import draw_slot, whole_blocks
from partita.engines.gibbs.sweep import Seating, labels
from partita.engines.passes.live import rebuild
from partita.engines.passes.rows import Parameters, log_joint_rows
from partita.execution import row_chunks
from partita.families import n_rows, take
from partita.families.contract import draw, hidden_rows, impute
from partita.families.registry import Block
from partita.partitions import log_mass


def rows_with_hidden(blocks: Sequence[Block]) -> np.ndarray:
    """Rows with a partly observed vector in some block."""
    rows = [hidden_rows(block.family, block.data) for block in blocks]
    return np.unique(np.concatenate([np.zeros(0, np.int64), *rows]))


def complete(blocks: Sequence[Block], z: np.ndarray, K: int, rng: np.random.Generator) -> tuple[Block, ...]:
    """Blocks whose hidden coordinates are drawn given labels z; blocks without any are returned unchanged."""
    statistics = label_statistics(blocks, np.ones(len(z)), z, K)
    out = []
    for block, S in zip(blocks, statistics.S, strict=True):
        rows = hidden_rows(block.family, block.data)
        if len(rows):
            filled = take(block.data, np.arange(n_rows(block.data)))
            impute(block.family, block.data, draw(block.family, S, rng), rows, z[rows], rng, filled)
            block = block._replace(data=filled)
        out.append(block)
    return tuple(out)


def step(
    seating: Seating, shown: Sequence[Block], prior: Any, rows: np.ndarray, rng: np.random.Generator
) -> None:
    """Draw the clusters of the partly observed objects ``rows`` and their hidden coordinates; ``shown`` is the data
    with missing cells.
    """
    fixed = prior.fixed_labels
    K = len(seating.n) if fixed else int(seating.K[0])
    thetas = tuple(draw(live.family, np.ascontiguousarray(live.S[:, :K]), rng) for live in seating.blocks)
    u = rng.random(len(rows))
    for part in row_chunks(len(rows)):
        L = log_joint_rows(shown, Parameters(np.zeros(K), thetas), rows[part])
        reseat_shown(
            prior, seating.z, seating.n, seating.slot_of, seating.name_of, K, fixed, rows[part], L, u[part]
        )
    z = labels(seating)
    for live, block, theta in zip(seating.blocks, shown, thetas, strict=True):
        own = hidden_rows(block.family, block.data)
        impute(live.family, block.data, theta, own, z[own], rng, live.data)
    rebuild(seating.blocks, z)


@kernel
def reseat_shown(prior, z, n, slot_of, name_of, K, fixed, rows, L, u):
    """Draw the cluster of each object among those in use, given log likelihoods L [object, slot]."""
    lp, w = np.empty(whole_blocks(K + 1)), np.empty(whole_blocks(K + 1))
    for j in range(rows.shape[0]):
        i = rows[j]
        k = slot_of[z[i]]
        if n[k] == 1.0 and not fixed:
            continue
        n[k] -= 1.0
        log_mass(prior, n, K, lp)
        for h in range(K):
            lp[h] += L[j, h]
            if math.isnan(lp[h]):
                lp[h] = -math.inf
        k = draw_slot(lp, K, u[j], w, k)
        n[k] += 1.0
        z[i] = name_of[k]
