"""Outliers of a mixture: their summary over the draws, and the background of a fitted model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from partita.engines.gibbs.outliers import expected_share
from partita.engines.nonconjugate import parameters
from partita.engines.passes.rows import Assignment
from partita.families import Background, Block, background, log_background
from partita.posterior import confidence
from partita.trace import Trace

MAX_COMPANIONS = 200  # rows among which the usual cluster of an occasional outlier is looked for


class OutlierModel(NamedTuple):
    """The background of each block, and the probability that a new row is an outlier."""

    laws: tuple[Background, ...]
    share: float


class Verdict(NamedTuple):
    """The summary of all draws for each object."""

    labels: np.ndarray  # -1: an outlier
    confidence: np.ndarray
    probability: np.ndarray  # of being an outlier


def check_outliers(blocks: Sequence[Block]) -> None:
    """Refuse families that have no background."""
    if parameters.non_conjugate(blocks):
        raise ValueError(
            "outliers=True needs conjugate families, and the family of some columns is not ('student' has heavy tails "
            "already): choose another family, or leave outliers out"
        )


def fit_background(blocks: Sequence[Block], weights: np.ndarray) -> tuple[Background, ...]:
    """The background of each block; the families have their default hyper-parameters."""
    return tuple(background(block.family, block.data, weights) for block in blocks)


def log_density(laws: Sequence[Background], blocks: Sequence[Block]) -> np.ndarray:
    """Log density of each row under the background."""
    parts = [log_background(law, block.data) for law, block in zip(laws, blocks, strict=True)]
    return np.sum(parts, axis=0)


def summarize_draws(
    trace: Trace, rows: np.ndarray, estimate: Callable[[Trace], np.ndarray]
) -> tuple[Verdict, float]:
    """Objects that are outliers in more than half of the draws are outliers; ``estimate`` partitions the others.

    Replicates of one row (``rows`` holds the row of each object) are outliers together, by their mean probability. The
    second result is the expected share of outliers. If all objects would be outliers, the least probable one is not: a
    mixture has at least one cluster.
    """
    out = trace.labels < 0
    probability = (np.bincount(rows, out.mean(axis=0)) / np.maximum(np.bincount(rows), 1))[rows]
    kept = np.flatnonzero(probability <= 0.5)
    if not len(kept):
        kept = np.flatnonzero(rows == rows[probability.argmin()])
    draws = trace._replace(labels=trace.labels[:, kept])
    labels, sure = np.full(len(probability), -1), probability.copy()
    labels[kept] = estimate(draws._replace(labels=_with_usual_cluster(draws.labels)))
    sure[kept] = confidence(apart(draws.labels), labels[kept]).objects
    share = expected_share(float(out.sum(axis=1).mean()), out.shape[1])
    return Verdict(labels, sure, probability), share


def apart(labels: np.ndarray) -> np.ndarray:
    """Draws in which each outlier forms a cluster of its own."""
    alone = labels.max() + 1 + np.cumsum(labels < 0, axis=1, dtype=np.int64)
    return np.where(labels < 0, alone, labels)


def _with_usual_cluster(labels: np.ndarray) -> np.ndarray:
    """Draws in which an outlier joins the row that it shares its cluster with most often in the other draws.

    Occasional outliers must not add clusters to a draw.
    """
    out = labels < 0
    filled = apart(labels)
    steady = np.flatnonzero(~out.any(axis=0))
    if not len(steady):
        return filled
    steady = steady[np.linspace(0, len(steady) - 1, min(MAX_COMPANIONS, len(steady))).round().astype(int)]
    for i in np.flatnonzero(out.any(axis=0)):
        inlying = ~out[:, i]
        together = (labels[inlying][:, steady] == labels[inlying, i][:, None]).sum(axis=0)
        if together.max() > 0:
            filled[~inlying, i] = labels[~inlying, steady[together.argmax()]]
    return filled


def with_background(
    outliers: OutlierModel, inside: np.ndarray, outside: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Log density with the background, and probability of being an outlier.

    ``inside`` is the log density under the clusters, ``outside`` that under the background.

    Examples
    --------
    >>> log_p, probability = with_background(OutlierModel((), 0.25), np.log([0.1]), np.log([0.1]))
    >>> np.exp(log_p), probability
    (array([0.1]), array([0.25]))
    """
    inside, outside = np.log1p(-outliers.share) + inside, np.log(outliers.share) + outside
    total = np.logaddexp(inside, outside)
    return total, np.exp(outside - np.where(np.isfinite(total), total, 0.0))


def assign_outliers(outliers: OutlierModel, clusters: Assignment, outside: np.ndarray) -> Assignment:
    """Most probable labels with the background as a further cluster: -1 where its probability exceeds one half."""
    total, p = with_background(outliers, clusters.log_likelihood, outside)
    with np.errstate(divide="ignore", invalid="ignore"):
        doubt = -np.nan_to_num(p * np.log(p)) - np.nan_to_num((1 - p) * np.log1p(-p))
    return Assignment(
        np.where(p > 0.5, -1, clusters.labels),
        np.where(p > 0.5, p, (1 - p) * clusters.confidence),
        doubt + (1 - p) * clusters.entropy,
        total,
        clusters.uncertain,
    )
