"""The grain of each view: a tree over its clusters, by the draws of the view."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from partita.engines.passes.rows import Statistics, UncertainRows
from partita.engines.passes.values import uncertain_rows
from partita.fitting.grain import GrainEvidence, grow_grain
from partita.labels import contingency
from partita.posterior import Grain
from partita.views.draws import Draw
from partita.views.summary import summarize_views


def view_evidence(draws: Sequence[Draw], estimate: Draw) -> list[GrainEvidence]:
    """What the draws say of the rows of each view of the estimate."""
    drawn = summarize_views(draws, estimate.membership).drawn_labels
    out = []
    for z, found in zip(estimate.labels.T, drawn, strict=True):
        labels = z.astype(np.int64)
        known = found if len(found) else labels[None]
        uncertain = uncertain_in_draws(known, labels)
        out.append(GrainEvidence(labels, np.ones(len(labels)), uncertain, np.asarray(known)))
    return out


def uncertain_in_draws(draws: np.ndarray, labels: np.ndarray) -> UncertainRows:
    """The rows that several clusters may contain, with the share of the draws in which each does.

    A cluster of a draw stands for the cluster of ``labels`` that most of its rows have.

    Examples
    --------
    >>> found = uncertain_in_draws(np.array([[0, 0, 1, 1], [0, 0, 0, 1]]), np.array([0, 0, 1, 1]))
    >>> found.rows, found.clusters, found.probabilities
    (array([2, 2]), array([0, 1], dtype=int32), array([0.5, 0.5], dtype=float32))
    """
    shares = np.zeros((len(labels), int(labels.max()) + 1))
    for draw in draws:
        owner = contingency(draw, labels, sparse=False).argmax(axis=1)
        shares[np.arange(len(labels)), owner[draw]] += 1.0 / len(draws)
    return uncertain_rows(shares)


def view_grains(evidence: Sequence[GrainEvidence], estimate: Draw) -> list[Grain]:
    """One grain for each view of the estimate."""
    grains = []
    for about, factor in zip(evidence, estimate.factors, strict=True):
        n = np.bincount(about.labels).astype(float)
        statistics = Statistics(n, tuple(part.S for part in factor.blocks), np.nan, np.nan, 0.0)
        families = [part.family for part in factor.blocks]
        grains.append(grow_grain(families, statistics, len(n), about)[0])
    return grains
