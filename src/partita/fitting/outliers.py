"""Outliers of a mixture: what the draws say of them, and the background beside the clusters of a fitted model."""

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

__all__ = ["Noise", "Verdict", "check_noise", "fit_background", "log_density", "mixed", "share_out", "sum_up"]

N_COMPANIONS = 200  # rows among which the usual company of a sometime outlier is looked for


class Noise(NamedTuple):
    """The background of each block, and the share of outliers among rows to come."""

    laws: tuple[Background, ...]
    share: float


class Verdict(NamedTuple):
    """What all draws say of each object."""

    labels: np.ndarray  # -1: an outlier
    confidence: np.ndarray
    probability: np.ndarray  # of being an outlier


def check_noise(inference: str, blocks: Sequence[Block]) -> None:
    """Refuse outliers where no engine can tell them."""
    if inference != "gibbs":
        raise ValueError(
            f"noise=True needs inference='gibbs', not {inference!r}: only its chains tell outliers from clusters"
        )
    if parameters.non_conjugate(blocks):
        raise ValueError(
            "noise=True needs conjugate families, and the family of some columns is none ('student' has heavy tails "
            "already): choose another family, or leave noise out"
        )


def fit_background(blocks: Sequence[Block], weights: np.ndarray) -> tuple[Background, ...]:
    """The background of each block; families have their default hyper-parameters still."""
    return tuple(background(block.family, block.data, weights) for block in blocks)


def log_density(laws: Sequence[Background], blocks: Sequence[Block]) -> np.ndarray:
    """Log density of each row under the background."""
    parts = [log_background(law, block.data) for law, block in zip(laws, blocks, strict=True)]
    return np.sum(parts, axis=0)


def sum_up(copies: Trace, rows: np.ndarray, estimate: Callable[[Trace], np.ndarray]) -> tuple[Verdict, float]:
    """Outliers are the objects that most draws call so; ``estimate`` finds the partition of the others.

    Copies of one row (``rows`` says whose copy each object is) are outliers together, by their mean probability.

    Returns also the expected share of outliers. Where all objects look like outliers, the least likely one is none: a
    mixture has a cluster.
    """
    out = copies.labels < 0
    probability = (np.bincount(rows, out.mean(axis=0)) / np.maximum(np.bincount(rows), 1))[rows]
    kept = np.flatnonzero(probability <= 0.5)
    if not len(kept):
        kept = np.flatnonzero(rows == rows[probability.argmin()])
    draws = copies._replace(labels=copies.labels[:, kept])
    labels, sure = np.full(len(probability), -1), probability.copy()
    labels[kept] = estimate(draws._replace(labels=_with_usual_company(draws.labels)))
    sure[kept] = confidence(_apart(draws.labels), labels[kept]).objects
    share = expected_share(float(out.sum(axis=1).mean()), out.shape[1])
    return Verdict(labels, sure, probability), share


def _apart(labels: np.ndarray) -> np.ndarray:
    """Draws in which each outlier is a cluster of its own."""
    alone = labels.max() + 1 + np.cumsum(labels < 0, axis=1, dtype=np.int64)
    return np.where(labels < 0, alone, labels)


def _with_usual_company(labels: np.ndarray) -> np.ndarray:
    """Draws in which an outlier sits with the row that it shares its cluster with most often when it is none.

    The number of clusters of a draw must not grow by those who are outliers now and then.
    """
    out = labels < 0
    filled = _apart(labels)
    steady = np.flatnonzero(~out.any(axis=0))
    if not len(steady):
        return filled
    steady = steady[np.linspace(0, len(steady) - 1, min(N_COMPANIONS, len(steady))).round().astype(int)]
    for i in np.flatnonzero(out.any(axis=0)):
        seated = ~out[:, i]
        together = (labels[seated][:, steady] == labels[seated, i][:, None]).sum(axis=0)
        if together.max() > 0:
            filled[~seated, i] = labels[~seated, steady[together.argmax()]]
    return filled


def share_out(noise: Noise, inside: np.ndarray, outside: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Log density with the background, and probability of being an outlier, from both log densities.

    Examples
    --------
    >>> log_p, probability = share_out(Noise((), 0.25), np.log([0.1]), np.log([0.1]))
    >>> np.exp(log_p), probability
    (array([0.1]), array([0.25]))
    """
    inside, outside = np.log1p(-noise.share) + inside, np.log(noise.share) + outside
    total = np.logaddexp(inside, outside)
    return total, np.exp(outside - np.where(np.isfinite(total), total, 0.0))


def mixed(noise: Noise, clusters: Assignment, outside: np.ndarray) -> Assignment:
    """Most probable labels with the background beside the clusters: -1 where it has more than half."""
    total, p = share_out(noise, clusters.log_likelihood, outside)
    with np.errstate(divide="ignore", invalid="ignore"):
        doubt = -np.nan_to_num(p * np.log(p)) - np.nan_to_num((1 - p) * np.log1p(-p))
    return Assignment(
        np.where(p > 0.5, -1, clusters.labels),
        np.where(p > 0.5, p, (1 - p) * clusters.confidence),
        doubt + (1 - p) * clusters.entropy,
        total,
    )
