"""Outliers: each row comes from its cluster, or from a broad background that is the same for all rows.

A row is an outlier with probability rho, ``rho ~ Beta(1, 19)``, which is integrated out. Every row keeps a cluster
under the partition prior, outlier or not; the data of an outlier do not depend on that cluster, and it is never
reported. The priors are consistent: if some objects are dropped, the partition of the rest has the same prior. So the
partition of the other rows has the prior that it would have without the outliers. The number of objects stays fixed,
and all steps except the sweep are unchanged: they treat outliers as rows without data.

The sweep draws jointly whether a row is an outlier and its seat, given all other rows. Partly observed vectors are
scored with the current parameters of the clusters, as in :mod:`partita.engines.gibbs.partly_observed`.

Good for: scattered rows that would each open a cluster. Not for: many similar rows, which are a cluster. Banfield and
Raftery (1993) use a uniform background.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betaln

from partita.dispatch import kernel
from partita.engines.gibbs import chain as chains
from partita.engines.gibbs import sweep as gibbs
from partita.engines.gibbs.chain import HIDDEN, SWEEP, Algorithm, Chain, Schedule, generator
from partita.engines.gibbs.drawing import draw_slot, whole_blocks
from partita.engines.gibbs.sweep import Seating, close_slot, count_move, fill_mass, log_opening, weigh
from partita.engines.passes.live import add_row, erase, new_scores, rebuild, score_own_row, score_row
from partita.engines.passes.rows import Parameters, log_joint_rows
from partita.execution import row_chunks
from partita.families import put_rows, take
from partita.families.contract import draw, hidden_rows, impute
from partita.families.registry import Block
from partita.families.rows import log_marginals
from partita.partitions import log_eppf, log_labeled, log_mass, log_seat

A, B = 1.0, 19.0  # Beta prior of the share of outliers; its mean is one row in twenty


class OutlierChain(NamedTuple):
    """State of a chain; ``seats`` has outliers as rows without data."""

    seats: Chain
    shown: tuple[Block, ...]  # the data with their holes
    whole: tuple[Any, ...]  # the data of all rows, hidden coordinates filled in
    out: np.ndarray  # [N] whether a row is an outlier
    log_background: np.ndarray  # [N]
    hidden_rows: np.ndarray

    @property
    def iteration(self) -> int:
        """Iterations done."""
        return self.seats.iteration

    @property
    def prior(self) -> Any:
        """The partition prior."""
        return self.seats.prior

    @property
    def seating(self) -> Seating:
        """The partition as the driver reads it: outliers have label -1 and are not counted."""
        seating = self.seats.seating
        n = np.bincount(gibbs.labels(seating)[~self.out], minlength=len(seating.n)).astype(float)
        names = np.append(seating.slot_of, -1)  # the name -1 finds the last entry
        return seating._replace(z=np.where(self.out, -1, seating.z), n=n, slot_of=names)


def log_prior_outliers(n_out: int, N: int) -> float:
    """Log probability that these ``n_out`` of N rows, and no others, are outliers.

    Examples
    --------
    >>> round(float(np.exp(log_prior_outliers(1, 1))), 6)
    0.05
    """
    return float(betaln(A + n_out, B + N - n_out) - betaln(A, B))


def expected_share(n_out: float, N: float) -> float:
    """Probability that a further row is an outlier.

    Examples
    --------
    >>> expected_share(0, 0)
    0.05
    """
    return (A + n_out) / (A + B + N)


@kernel
def log_odds(n_out, N):
    """Log odds that a row is an outlier when ``n_out`` of the other N - 1 are."""
    return math.log(A + n_out) - math.log(B + N - 1 - n_out)


# ---- the sweep ----------------------------------------------------------------------------------------------


@kernel
def leave(blocks, prior, n, slot_of, name_of, K, mass, N, i, k, was_out, limit):
    """Remove row i, which is alone in slot k, and close its cluster; returns -1, its new slot."""
    if not was_out:
        add_row(blocks, i, k, -1.0)
    close_slot(blocks, n, slot_of, name_of, K, k)
    mass[k] = mass[K[0]]
    mass[K[0]] = log_opening(prior, N, K[0], limit)
    return -1


@kernel
def move(blocks, prior, z, n, slot_of, name_of, K, mass, i, old, new, was_out, is_out, limit):
    """Move row i from its old slot (-1: none) to another, or into or out of the background, and update the
    statistics.
    """
    if old >= 0 and not was_out:
        add_row(blocks, i, old, -1.0)
    count_move(blocks, prior, z, n, slot_of, name_of, K, mass, i, old, new, limit)
    if not is_out:
        add_row(blocks, i, new, 1.0)


@kernel
def close_choices(lp, room, free, was_out):
    """Forbid a row to become or stop being an outlier (its hidden coordinates belong to its cluster)."""
    if not free:
        first = 0 if was_out else room
        for h in range(first, first + room):
            lp[h] = -math.inf


@kernel
def sweep(blocks, prior, z, n, slot_of, name_of, K, rows, u, start, limit, out, free, log_background):
    """Reseat ``rows[start:]``, among the outliers or not; returns where it had to stop for more slots.

    ``blocks`` hold the data of all rows, and the statistics of those that are no outliers. Choices 0 .. K are the
    seats, the next K + 1 the same seats as an outlier.
    """
    capacity, N = n.shape[0], z.shape[0]
    room = whole_blocks(2 * capacity)
    lp, mass, acc, w = new_scores(blocks, room), np.empty(room), np.empty(3), np.empty(room)
    fill_mass(prior, n, K, N, mass, limit)
    n_out = out.sum()
    for j in range(start, rows.shape[0]):
        if K[0] + 1 >= capacity:
            return j
        i = rows[j]
        was_out = out[i]
        n_out -= was_out
        old = slot_of[z[i]]
        if n[old] == 1.0:
            old = leave(blocks, prior, n, slot_of, name_of, K, mass, N, i, old, was_out, limit)
        else:
            mass[old] = log_seat(prior, n[old] - 1.0)
        weigh(blocks, prior, n, K, mass, i, -1 if was_out else old, lp, acc)
        more = K[0] + 1
        lift = log_background[i] + log_odds(n_out, N)
        for h in range(more):
            lp[more + h] = mass[h] + lift
        close_choices(lp, more, free[i], was_out)
        likely = old + more if was_out and old >= 0 else old
        choice = draw_slot(lp, 2 * more, u[j], w, likely)
        is_out = choice >= more
        new = choice - more if is_out else choice
        if old >= 0:
            mass[old] = log_seat(prior, n[old])
        if choice != likely:
            move(blocks, prior, z, n, slot_of, name_of, K, mass, i, old, new, was_out, is_out, limit)
        out[i] = is_out
        n_out += is_out
    return rows.shape[0]


@kernel
def sweep_fixed(blocks, prior, z, n, rows, u, out, free, log_background):
    """The same as ``sweep`` for a prior with fixed labels."""
    K, N = n.shape[0], z.shape[0]
    room = whole_blocks(2 * K)
    lp, mass, acc, w = new_scores(blocks, room), np.empty(K), np.empty(3), np.empty(room)
    n_out = out.sum()
    for j in range(rows.shape[0]):
        i = rows[j]
        was_out, old = out[i], z[i]
        n_out -= was_out
        n[old] -= 1.0
        log_mass(prior, n, K, mass)
        lp[:K] = mass
        score_row(blocks, i, K, lp)
        if not was_out:
            acc[0], acc[1], acc[2] = 1.0, 1.0, mass[old]
            score_own_row(blocks, i, old, acc)
            lp[old] = acc[2] + math.log(acc[0] / acc[1])
        lift = log_background[i] + log_odds(n_out, N)
        for h in range(K):
            lp[K + h] = mass[h] + lift
        close_choices(lp, K, free[i], was_out)
        likely = old + K if was_out else old
        choice = draw_slot(lp, 2 * K, u[j], w, likely)
        is_out = choice >= K
        new = choice - K if is_out else choice
        n[new] += 1.0
        z[i] = new
        if choice != likely:
            if not was_out:
                add_row(blocks, i, old, -1.0)
            if not is_out:
                add_row(blocks, i, new, 1.0)
        out[i] = is_out
        n_out += is_out


def reseat(
    seating: Seating, prior: Any, rows: np.ndarray, u: np.ndarray, limit: int, *where: np.ndarray
) -> Seating:
    """One sweep over ``rows``; ``where`` is (out, free, log background), the first of which is changed in place."""
    if prior.fixed_labels:
        sweep_fixed(erase(seating.blocks), prior, seating.z, seating.n, rows, u, *where)
        return seating
    done = 0
    while (done := sweep(erase(seating.blocks), prior, *seating[1:], rows, u, done, limit, *where)) < len(
        rows
    ):
        seating = gibbs.grow(seating)
    return seating


# ---- partly observed vectors --------------------------------------------------------------------------------


@kernel
def reseat_shown(prior, z, n, slot_of, name_of, K, fixed, rows, L, u, out, log_background):
    """Draw outlier or not, and the cluster among those in use, given log likelihoods L [row, slot].

    A row that is alone keeps its cluster, and may only become or stop being an outlier.
    """
    room = whole_blocks(2 * K)
    lp, mass, w = np.empty(room), np.empty(K), np.empty(room)
    n_out = out.sum()
    for j in range(rows.shape[0]):
        i = rows[j]
        n_out -= out[i]
        k = slot_of[z[i]]
        if n[k] == 1.0 and not fixed:
            mass[:] = -math.inf
            mass[k] = 0.0
        else:
            n[k] -= 1.0
            log_mass(prior, n, K, mass)
            n[k] += 1.0
        lift = log_background[i] + log_odds(n_out, z.shape[0])
        for h in range(K):
            lp[h] = mass[h] + L[j, h]
            if math.isnan(lp[h]):
                lp[h] = -math.inf
            lp[K + h] = mass[h] + lift
        choice = draw_slot(lp, 2 * K, u[j], w, -1)
        n[k] -= 1.0
        n[choice % K] += 1.0
        z[i] = name_of[choice % K]
        out[i] = choice >= K
        n_out += out[i]


def step_hidden(chain: OutlierChain, rng: np.random.Generator) -> None:
    """Draw outlier or not and the cluster of partly observed rows, then their hidden coordinates; in place."""
    seating, prior, rows, out = chain.seats.seating, chain.prior, chain.hidden_rows, chain.out
    fixed = prior.fixed_labels
    K = len(seating.n) if fixed else int(seating.K[0])
    thetas = tuple(draw(live.family, np.ascontiguousarray(live.S[:, :K]), rng) for live in seating.blocks)
    shown = tuple(
        block._replace(family=live.family) for block, live in zip(chain.shown, seating.blocks, strict=True)
    )
    u = rng.random(len(rows))
    for part in row_chunks(len(rows)):
        L = log_joint_rows(shown, Parameters(np.zeros(K), thetas), rows[part])
        reseat_shown(
            prior, seating.z, seating.n, seating.slot_of, seating.name_of, K, fixed, rows[part], L, u[part],
            out, chain.log_background,
        )  # fmt: skip
    z = gibbs.labels(seating)
    for live, block, whole, theta in zip(seating.blocks, shown, chain.whole, thetas, strict=True):
        own = hidden_rows(block.family, block.data)
        own = own[~out[own]]
        if len(own):
            impute(live.family, block.data, theta, own, z[own], rng, whole)
        put_rows(live.data, whole, rows, ~out[rows])
    rebuild(seating.blocks, z)


# ---- the chain ----------------------------------------------------------------------------------------------


def start(
    blocks: Sequence[Block],
    prior: Any,
    z: np.ndarray,
    seed: int,
    families: Sequence[Any] | None = None,
    *,
    log_background: np.ndarray,
    dtype: type | None = None,
) -> OutlierChain:
    """A chain that starts from the labels z, without outliers."""
    seats = chains.start(blocks, prior, z, seed, dtype, families)
    N, seating = len(z), seats.seating
    whole = tuple(live.data for live in seating.blocks)
    copies = tuple(live._replace(data=take(live.data, np.arange(N))) for live in seating.blocks)
    shown, rows = seats.shown, seats.hidden_rows
    # the inner chain has no hidden coordinates to draw: that is done here, for rows that are no outliers
    seats = seats._replace(seating=seating._replace(blocks=copies), hidden_rows=rows[:0], shown=())
    return OutlierChain(seats, shown, whole, np.zeros(N, bool), log_background, rows)


def sweep_rows(chain: OutlierChain, schedule: Schedule) -> OutlierChain:
    """Every row draws whether it is an outlier, and its cluster, given all other rows."""
    seats, out = chain.seats, chain.out
    seating, N = seats.seating, len(out)
    before = out.copy()
    u = generator(seats.seed, seats.iteration, SWEEP).random(N)
    free = np.ones(N, bool)
    free[chain.hidden_rows] = False
    everyone = tuple(live._replace(data=data) for live, data in zip(seating.blocks, chain.whole, strict=True))
    swept = reseat(
        seating._replace(blocks=everyone), chain.prior, np.arange(N), u, schedule.limit,
        out, free, chain.log_background,
    )  # fmt: skip
    blocks = tuple(
        live._replace(data=old.data) for live, old in zip(swept.blocks, seating.blocks, strict=True)
    )
    changed = np.flatnonzero(out != before)
    for live, data in zip(blocks, chain.whole, strict=True):
        put_rows(live.data, data, changed, ~out[changed])
    return chain._replace(seats=seats._replace(seating=swept._replace(blocks=blocks)))


def sample_hidden(chain: OutlierChain, schedule: Schedule) -> OutlierChain:
    """Draw the hidden coordinates of partly observed vectors."""
    if len(chain.hidden_rows):
        step_hidden(chain, generator(chain.seats.seed, chain.iteration, HIDDEN))
    return chain


def _on_seats(one: Callable) -> Callable:
    """A step of collapsed Gibbs sampling, which sees outliers as rows without data."""

    def apply(chain: OutlierChain, schedule: Schedule) -> OutlierChain:
        return chain._replace(seats=one(chain.seats, schedule))

    return apply


STEPS = (
    sweep_rows,
    sample_hidden,
    *(_on_seats(one) for one in (chains.move_clusters, chains.sample_prior, chains.sample_likelihood)),
)


def step(chain: OutlierChain, schedule: Schedule) -> OutlierChain:
    """One iteration."""
    return chains.step(chain, schedule, STEPS)


def log_joint(chain: OutlierChain) -> float:
    """Log probability of data, outliers and the partition of the others under the present hyper-parameters."""
    n, prior = chain.seating.n, chain.prior
    total = log_prior_outliers(int(chain.out.sum()), len(chain.out)) + chain.log_background[chain.out].sum()
    if prior.fixed_labels:
        total += log_labeled(prior, n)
    elif n.any():
        total += log_eppf(prior, n[n > 0], int(np.count_nonzero(n)))
    used = n > 0
    for live in chain.seats.seating.blocks:
        total += log_marginals(live.family, np.ascontiguousarray(live.S[:, used])).sum()
    return float(total)


def algorithm(log_background: np.ndarray) -> Algorithm:
    """Collapsed Gibbs sampling with outliers for :func:`partita.engines.gibbs.chain.run_mixture_chain`.

    Parameters
    ----------
    log_background : ndarray (N,)
        Log density of each row under the background.

    Examples
    --------
    >>> from partita.dispatch import interpreted
    >>> from partita.families import Bernoulli, background, log_background
    >>> from partita.partitions import DirichletProcess
    >>> X = np.concatenate([np.zeros((9, 8), np.int8), np.tile(np.int8([0, 1]), (1, 4))])
    >>> block = Block(Bernoulli.default(8), X, ("a",))
    >>> density = log_background(background(block.family, X, np.ones(10)), X)
    >>> with interpreted():
    ...     run = chains.run_mixture_chain(
    ...         [block],
    ...         DirichletProcess(1.0),
    ...         np.zeros(10, int),
    ...         Schedule(20, 10),
    ...         seed=0,
    ...         algorithm=algorithm(density),
    ...     )
    >>> bool((run.trace.labels[:, :9] < 0).mean() < (run.trace.labels[:, 9] < 0).mean())
    True
    """
    begin = partial(start, log_background=log_background)
    return Algorithm("outliers", begin, STEPS, log_joint, held=chains.held_clusters)
