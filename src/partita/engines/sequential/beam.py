"""The most probable partition by beam search.

Objects are placed one after the other, and a partial partition is scored by its exact log joint, prior and data: each
object adds the log prior probability of its place and its log predictive in the cluster it joins. The beam keeps the
best few partial partitions at each object.

Good for: a good partition in one deterministic pass; a start for chains. Not for: uncertainty (one partition is not a
posterior), nor the highest log joint of thousands of objects in overlapping clusters: early choices are not revised, so
run a few Gibbs sweeps afterwards. Daume (2007), AISTATS: Fast search for Dirichlet process mixture models; Murphy
(2012), section 25.2.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from partita.dispatch import kernel
from partita.engines.passes.rows import n_stats, predictive
from partita.engines.run import Control, Progress
from partita.engines.sequential.population import PRIME, grow, keep, populate, trace_labels
from partita.families import n_rows
from partita.families.contract import datum, n_columns, observe, stats_start
from partita.families.registry import Block
from partita.labels import canonical

BATCH = 64  # objects between two calls of the callback
EQUAL_TOLERANCE = 1e-9  # log joints closer than this (relative to their size) are the same number


class BeamResult(NamedTuple):
    """A partition and its log joint probability with the data."""

    labels: np.ndarray
    log_joint: float


class Best(NamedTuple):
    """The rule of beam search: keep the ``width`` most probable children, and one of those that differ by duplicate
    rows.
    """

    width: int


@keep.register(Best)
def _(rule, lq, key, M, u, kept, log_w):
    m, merging = 0, key[:M].any()
    for j in np.argsort(-lq[:M], kind="mergesort"):
        twin = False
        before = m - 1
        while merging and before >= 0 and log_w[before] - lq[j] < EQUAL_TOLERANCE * (1.0 + abs(lq[j])):
            twin = twin or key[kept[before]] == key[j]
            before -= 1
        if not twin:
            kept[m], log_w[m] = j, lq[j]
            m += 1
            if m == log_w.shape[0]:
                break
    return m, 0.0


def beam_search(
    blocks: Sequence[Block],
    prior: Any,
    *,
    width: int = 100,
    order: np.ndarray | None = None,
    control: Control | None = None,
) -> BeamResult:
    """A partition of high probability in one pass; the most probable one where the beam holds all partitions.

    Parameters
    ----------
    blocks : sequence of Block
        The data; missing cells are allowed, partly observed vectors are not.
    prior : exchangeable prior
    width : int
        Number of partial partitions that are kept at each object. Time grows in proportion.
    order : array of int, optional
        The order in which objects are placed. By default those come first that are the least probable under the
        prior alone: far from the middle and from each other, they open the clusters. Typical objects first lose
        ten times as much on Gaussian groups, because they sit between them; a random order does about as well
        on average, with a worse worst case.
    control : Control, optional
        What may end the search early; it is asked after every ``BATCH`` objects.

    Returns
    -------
    BeamResult
        Canonical labels, and the log joint of the partition. Objects that were not placed before the search was ended
        have the label -1.

    Examples
    --------
    >>> from partita.dispatch import interpreted
    >>> from partita.families import Bernoulli, Block
    >>> from partita.partitions import DirichletProcess
    >>> X = np.array([[1] * 6, [0] * 6, [1] * 6, [0] * 6])
    >>> block = Block(Bernoulli.default(6), X, tuple("abcdef"))
    >>> with interpreted():  # four objects are not worth the compiler
    ...     labels, log_joint = beam_search([block], DirichletProcess(1.0))
    >>> labels
    array([0, 1, 0, 1])
    """
    if width < 1:
        raise ValueError(f"width is {width}: take at least 1")
    rows = unusual_first(blocks) if order is None else checked_order(order, n_rows(blocks[0].data))
    pool = populate([block.family for block in blocks], width)
    hashes = row_hashes(blocks)
    z, parents, seats = np.full(len(rows), -1), [], []
    best, placed = 0, 0
    control = Control() if control is None else control
    try:
        with control.run(0, len(rows)):
            while placed < len(rows):
                batch = rows[placed : placed + BATCH]
                zeros = np.zeros(len(batch))
                pool, parent, seat, _ = grow(
                    pool, Best(int(width)), prior, blocks, batch, zeros, hashes, placed
                )
                parents.append(parent)
                seats.append(seat)
                placed += len(batch)
                best = int(np.argmax(pool.log_w[: pool.counts[0]]))
                progress = Progress(0, placed, float(pool.log_w[best]), int(pool.K[best]), control.seconds)
                if control.after(progress) and placed < len(rows):
                    break
    except KeyboardInterrupt:
        if not control.keep_partial or not placed:
            raise
        control.stop("interrupted")
    if not placed:
        return BeamResult(z, 0.0)
    z[rows[:placed]] = trace_labels(np.concatenate(parents), np.concatenate(seats), np.array([best]))[0]
    return BeamResult(canonical(z, missing=-1), float(pool.log_w[best]))


def unusual_first(blocks: Sequence[Block]) -> np.ndarray:
    """Objects by their log probability in a cluster of their own, the smallest first."""
    rows = np.arange(n_rows(blocks[0].data))
    empty = [np.zeros((n_stats(block.family), 1)) for block in blocks]
    return np.argsort(predictive(blocks, empty, np.zeros(1))(rows)[:, 0], kind="stable")


def checked_order(order: Any, N: int) -> np.ndarray:
    """An order that names every object once."""
    rows = np.asarray(order)
    if rows.shape != (N,) or not np.array_equal(np.sort(rows), np.arange(N)):
        raise ValueError(f"order must name each of the {N} objects once: a permutation of 0 .. {N - 1}")
    return rows


@kernel
def observe_rows(lik, data, rows, T):
    """``T[:, j] = t(x_rows[j])``."""
    for j in range(rows.shape[0]):
        for d in range(n_columns(lik)):
            observe(
                lik, d, T[stats_start(lik, d) : stats_start(lik, d + 1), j], datum(lik, data, rows[j], d), 1.0
            )


def row_hashes(blocks: Sequence[Block]) -> np.ndarray:
    """A random number for each object, the same for rows with the same statistics; none if all differ."""
    N = n_rows(blocks[0].data)
    ids = np.empty(N, np.int64)
    known: dict[bytes, int] = {}
    for start in range(0, N, 4096):
        rows = np.arange(start, min(start + 4096, N))
        T = []
        for block in blocks:
            T.append(np.zeros((n_stats(block.family), len(rows))))
            observe_rows(block.family, block.data, rows, T[-1])
        for i, cells in zip(rows, np.ascontiguousarray(np.concatenate(T).T), strict=True):
            ids[i] = known.setdefault(cells.tobytes(), len(known))
    if len(known) == N:
        return np.zeros(0, np.int64)
    return np.random.default_rng(0).integers(1, PRIME, size=len(known))[ids]
