"""When chains over views have run long enough: when every other chain comes to the views of the others.

Chains start from different views (screened with different thresholds, or found by different searches), so agreement of
two halves of the chains says more than that a chain stays where it began.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from partita.engines.run import Settling
from partita.metrics import adjusted_rand
from partita.posterior import vote
from partita.views.draw_queries import dependence
from partita.views.draws import Draw, is_view, n_counted_views
from partita.views.summary import summarize_views

CHECKS = (8, 12, 20, 30, 45, 70)  # iterations; after the last one the chains end in any case
MIN_DRAWS = 24  # of all chains
LEAST_AGREEMENT = 0.95  # adjusted Rand index of the votes of both halves, mean over the columns
MAX_DEPENDENCE_GAP = 0.1  # of the dependent pairs of columns, between the halves
MAX_DISTANCE = 0.3  # total variation between the distributions of the number of views


def views_settling(
    n_chains: int,
    n_draws: int | None,
    burn_in: int | None,
    read: Callable[[Any], Draw],
    max_iter: int = CHECKS[-1],
) -> Settling | None:
    """The rule for so many chains; None if a single chain or the user's schedule determines their length.

    ``read`` turns what a chain keeps into a draw, of which memberships and labels are used.
    """
    if n_chains == 1 or None not in (n_draws, burn_in):
        return None
    checks = [check for check in CHECKS if check <= max_iter]
    return Settling(
        checks, lambda kept: views_agree([[read(one) for one in chain] for chain in kept]), MIN_DRAWS
    )


def length_asked(
    n_chains: int, n_draws: int | None, burn_in: int | None, default: tuple[int, int]
) -> tuple[int | None, int | None]:
    """Burn-in and number of draws of a schedule; a single chain, which no other can agree with, has the default."""
    if n_chains > 1:
        return burn_in, n_draws
    return default[0] if burn_in is None else burn_in, default[1] if n_draws is None else n_draws


def outline(membership: np.ndarray, labels: np.ndarray) -> Draw:
    """A draw with memberships [column, view] and labels [row, view] only."""
    return Draw(membership, labels, (), 0.0, 0, np.ones(1 + membership.shape[1]))


def views_agree(chains: Sequence[Sequence[Draw]], max_distance: float = MAX_DISTANCE) -> bool:
    """Whether the chains with even numbers come to the same views as those with odd numbers.

    The halves must agree on the number of views (up to ``max_distance`` in total variation), on the pairs of columns
    that depend on each other, and on the partition of the rows in each view.

    Examples
    --------
    >>> draw = outline(np.array([[True], [True]]), np.array([[0], [1], [1]]))
    >>> (
    ...     views_agree([[draw], [draw]]),
    ...     views_agree([[draw], [draw._replace(labels=np.array([[0], [0], [1]]))]]),
    ... )
    (True, False)
    """
    halves = [[draw for chain in chains[first::2] for draw in chain] for first in (0, 1)]
    if not all(halves):
        return False
    counts = [
        np.bincount([n_counted_views(draw) for draw in half], minlength=1) / len(half) for half in halves
    ]
    longest = max(map(len, counts))
    one, other = (np.pad(count, (0, longest - len(count))) for count in counts)
    if 0.5 * np.abs(one - other).sum() > max_distance:
        return False
    one, other = (np.triu(dependence(half), 1) for half in halves)
    if np.abs(one - other).sum() > MAX_DEPENDENCE_GAP * np.maximum(one, other).sum():
        return False
    last = halves[0][-1]
    counted = last.membership[:, is_view(last.membership, last.labels)]
    if not counted.shape[1]:
        return True
    drawn = [summarize_views(half, counted).drawn_labels for half in halves]
    if any(not len(labels) for half in drawn for labels in half):
        return False
    agreement = [adjusted_rand(vote(a).labels, vote(b).labels) for a, b in zip(*drawn, strict=True)]
    return float(np.average(agreement, weights=counted.sum(axis=0))) >= LEAST_AGREEMENT
