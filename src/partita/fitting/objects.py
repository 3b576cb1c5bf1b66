"""What the engines that partition objects share: replicates of rows, exchangeable priors, shares of clusters."""

from __future__ import annotations

from typing import Any

import numpy as np

from partita.execution import check_memory
from partita.partitions import log_mass

BYTES_PER_OBJECT = 64  # at least: its row, its labels in a state and in draws, copies of its data


def rows_of_objects(weights: np.ndarray) -> np.ndarray:
    """The row of each object: a row of weight w is w objects.

    Examples
    --------
    >>> rows_of_objects(np.array([1.0, 0.0, 2.0]))
    array([0, 2, 2])
    >>> rows_of_objects(np.array([1.0, 0.5]))
    Traceback (most recent call last):
    ...
    ValueError: sample_weight is 0.5 in row 1: this engine reads a weight as a number of replicates of the row, so it
    must be a whole number; round it, or use inference='vb', which takes fractions
    """
    bad = np.flatnonzero(weights != np.floor(weights))
    if len(bad):
        raise ValueError(
            f"sample_weight is {weights[bad[0]]:g} in row {bad[0]}: this engine reads a weight as a number "
            "of replicates of the row, so it must be a whole number; round it, or use inference='vb', which takes "
            "fractions"
        )
    total = float(weights.sum())
    check_memory(
        int(BYTES_PER_OBJECT * total),
        f"a partition of {total:.3g} objects (the sum of the weights)",
        "divide the weights by a common factor, fit a sample, or use inference='vb', which weights rows",
    )
    return np.repeat(np.arange(len(weights)), weights.astype(np.int64))


def check_exchangeable(inference: str, prior: Any) -> None:
    """Refuse a prior whose labels are fixed."""
    if prior.fixed_labels:
        raise ValueError(
            f"inference={inference!r} needs an exchangeable prior: 'mfm', 'dirichlet_process', 'pitman_yor'"
        )


def log_shares(prior: Any, n: np.ndarray) -> np.ndarray:
    """Log shares of clusters of sizes ``n`` in the predictive density; the mass of a new cluster is left out."""
    out = np.empty(len(n))
    log_mass(prior, n, len(n), out)
    return out - np.logaddexp.reduce(out)


def log_seats(prior: Any, n: np.ndarray, limit: int) -> np.ndarray:
    """Log probabilities that a further object joins each cluster that has objects, and (the last) a new one.

    With fixed labels, the labels without objects are the new cluster. There is no new one beside ``limit`` others.

    Examples
    --------
    >>> from partita.partitions import DirichletProcess
    >>> np.exp(log_seats(DirichletProcess(1.0), np.array([2.0, 1.0]), 10))
    array([0.5 , 0.25, 0.25])
    """
    out = np.full(len(n) + 1, -np.inf)
    log_mass(prior, n, len(n), out[:-1] if prior.fixed_labels else out)
    used = np.flatnonzero(n)
    seats = np.append(out[used], np.logaddexp.reduce(np.delete(out, used)))
    if len(used) >= limit:
        seats[-1] = -np.inf
    return seats - np.logaddexp.reduce(seats)
