"""Depths of rows: what all counts of a row share beside the clusters of its views.

A document has its own length and a sample its own sequencing depth, by which all its counts are multiplied. Clusters of
independent counts describe such a quantity badly, by many clusters along it. Here row i has a depth
``e_i ~ Gamma(s, s)``, whose mean is 1 and whose variance is 1/s, and its counts are Poisson with the exposure of the
row times e_i times the rate of the cell. With ``s`` going to infinity the depths vanish from the model.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from partita.families import Block, Counts
from partita.partitions.learning import Gamma, sample_positive
from partita.views.draws import Draw

SHAPE_PRIOR = Gamma(1.0, 0.2)  # of the shape s: a standard deviation of the depths of about a half
LOG_2PI = math.log(2.0 * math.pi)


class Depths(NamedTuple):
    """Depths of the rows, the shape of their distribution, and the exposures without them."""

    rows: np.ndarray  # [row]
    shape: float
    exposure: np.ndarray  # [row]


def draw_depths(
    events: np.ndarray, expected: np.ndarray, shape: float, rng: np.random.Generator | None
) -> np.ndarray:
    """Draw the depth of each row from its posterior; without a generator, the means.

    Parameters
    ----------
    events : ndarray (n_rows,)
        Sum of the observed counts of each row.
    expected : ndarray (n_rows,)
        Its expectation for a depth of 1.
    shape : float
        Shape of the prior.
    rng : Generator or None
        Source of randomness.

    Examples
    --------
    >>> draw_depths(np.array([30.0, 5.0]), np.array([10.0, 10.0]), 1e-9, None).round(6)
    array([3. , 0.5])
    """
    gamma = shape + events
    drawn = gamma if rng is None else np.maximum(rng.standard_gamma(gamma), np.finfo(float).tiny)
    return drawn / (shape + expected)


def log_depths_given(depths: np.ndarray, shape: float) -> float:
    """Log density of depths given their shape.

    Examples
    --------
    >>> round(log_depths_given(np.array([1.0, 2.0]), 1.0), 6)
    -3.0
    """
    n = len(depths)
    constant = n * (shape * math.log(shape) - float(gammaln(shape)))
    return float(constant + (shape - 1.0) * np.log(depths).sum() - shape * depths.sum())


def draw_shape(depths: np.ndarray, shape: float, rng: np.random.Generator) -> float:
    """Draw the shape given the depths by a slice update, which leaves its posterior invariant."""
    return sample_positive(lambda value: log_depths_given(depths, value), shape, rng, SHAPE_PRIOR)


def log_depths(depths: Depths | None) -> float:
    """Log prior density of depths and their shape."""
    if depths is None:
        return 0.0
    return log_depths_given(depths.rows, depths.shape) + SHAPE_PRIOR.log_density(depths.shape)


def log_depth_volumes(events: np.ndarray, shape: float, depths: np.ndarray) -> np.ndarray:
    """Log of what the integral over each depth has beside the log joint at its posterior mean (Laplace, in log depths).

    Examples
    --------
    >>> exact = gammaln(40.0) - 40.0 * np.log(20.0)  # of depth^39 exp(-20 depth), whose mean is 2
    >>> found = 39.0 * np.log(2.0) - 40.0 + log_depth_volumes(np.array([30.0]), 10.0, np.array([2.0]))
    >>> bool(abs(found[0] - exact) < 0.01)
    True
    """
    return np.log(depths) + 0.5 * (LOG_2PI - np.log(shape + events))


def with_depths(blocks: Sequence[Block], depths: Depths | None) -> tuple[Any, ...]:
    """The blocks, with the exposures of counts multiplied by the depths."""
    if depths is None:
        return tuple(blocks)
    exposure = depths.exposure * depths.rows
    return tuple(
        block._replace(data=Counts(block.data.X, exposure)) if isinstance(block.data, Counts) else block
        for block in blocks
    )


def has_counts(blocks: Sequence[Block]) -> bool:
    """Whether any column is a count."""
    return any(isinstance(block.data, Counts) for block in blocks)


def row_events(blocks: Sequence[Block]) -> np.ndarray:
    """Sum of the observed counts of each row."""
    return np.sum(
        [np.nansum(block.data.X, axis=1) for block in blocks if isinstance(block.data, Counts)], axis=0
    )


def mean_depths(draws: Sequence[Draw], n_rows: int) -> np.ndarray:
    """Depth of each row, averaged over the draws; 1 without depths.

    Examples
    --------
    >>> draw = Draw(np.ones((1, 1), bool), np.zeros((2, 1), int), (), 0.0, 0, np.ones(2))
    >>> mean_depths([draw, draw._replace(depths=np.array([3.0, 1.0]), depth_shape=2.0)], 2)
    array([2., 1.])
    """
    return np.mean([draw.depths if draw.depth_shape else np.ones(n_rows) for draw in draws], axis=0)


def with_mean_depths(blocks: Sequence[Block], draws: Sequence[Draw]) -> Sequence[Block]:
    """The blocks, with the exposures of counts multiplied by the mean depths of the draws."""
    if not any(draw.depth_shape for draw in draws):
        return blocks
    counts = next(block.data for block in blocks if isinstance(block.data, Counts))
    return with_depths(blocks, Depths(mean_depths(draws, len(counts.X)), 1.0, counts.exposure))
