"""When chains have run long enough: when those from one cluster agree with those from many clusters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from partita.engines.gibbs.chain import ChainDraw
from partita.engines.run import Settling
from partita.estimator import FitReport
from partita.fitting.contract import EngineResult
from partita.metrics import adjusted_rand
from partita.posterior import vote
from partita.posterior.agreement import sampled_labels

CHECKS = (12, 20, 30, 45, 70, 105, 160)  # iterations; after the last one the chains end in any case
LEAST_AGREEMENT = 0.95  # adjusted Rand index of the votes of both halves
LARGEST_DISTANCE = 0.3  # total variation between their distributions of the number of clusters
MIN_DRAWS = 100  # of all chains, for the posterior of the number of clusters
ONE_CHAIN = (100, 200)  # burn-in and draws of a chain that has no other to agree with


class HasChains(Protocol):
    """What a user asks of the chains."""

    @property
    def n_chains(self) -> int: ...
    @property
    def n_draws(self) -> int | None: ...
    @property
    def burn_in(self) -> int | None: ...


def settling(n_chains: int, warm_up: int = 0) -> Settling | None:
    """The rule for so many chains; the first half of the iterations before a check contains ``warm_up``.

    Examples
    --------
    >>> settling(4).checks[0], settling(4, warm_up=20).checks[0], settling(1)
    (12, 45, None)
    """
    if n_chains == 1:
        return None
    return Settling([check for check in CHECKS if check // 2 >= warm_up], halves_agree, MIN_DRAWS)


def halves_agree(draws: Sequence[Sequence[ChainDraw]]) -> bool:
    """Whether the chains from one cluster (even numbers) and those from many (odd numbers) come to the same answer.

    The votes of both halves must be nearly the same partition, and their numbers of clusters similarly distributed.
    Other rules were compared on real tables: convergence diagnostics of the log joint converge long after the
    partition, and with lower thresholds chains stop at partitions that change later.
    """
    halves = [_labels(draws[0::2]), _labels(draws[1::2])]
    if min(len(labels) for labels in halves) == 0:
        return False
    one, other = (np.bincount(labels.max(axis=1)) / len(labels) for labels in halves)
    longest = max(len(one), len(other))
    gap = np.abs(np.pad(one, (0, longest - len(one))) - np.pad(other, (0, longest - len(other))))
    if 0.5 * gap.sum() > LARGEST_DISTANCE:
        return False
    first, second = (vote(labels).labels for labels in halves)
    return adjusted_rand(first, second) >= LEAST_AGREEMENT


def _labels(chains: Sequence[Sequence[ChainDraw]]) -> NDArray[np.int64]:
    """Labels [draw, row] of all draws of some chains; outliers are one more cluster."""
    found = [sampled_labels(draw.trace.labels) for draws in chains for draw in draws]
    return np.concatenate(found) if found else np.zeros((0, 0), dtype=np.int64)


def note_settling(report: FitReport, result: EngineResult, asked: HasChains) -> None:
    """Note how long chains ran that stop by themselves."""
    if result.trace is None or None not in (asked.n_draws, asked.burn_in) or asked.n_chains == 1:
        return
    note_agreement(
        report, result.agreed_at, result.burn_in, result.n_iter, is_done=result.run.reason == "done"
    )


def note_agreement(
    report: FitReport, agreed_at: int | None, burn_in: int | None, n_iter: int, *, is_done: bool
) -> None:
    """Note after how many iterations chains agreed, or that they did not although they ran to their end."""
    if agreed_at is not None:
        report.add(
            "settled",
            f"the chains stopped after {agreed_at} iterations, when one half of them gave about the same groups as the "
            f"other; the first {burn_in} iterations are burn-in",
        )
    elif is_done:
        report.add(
            "not_settled",
            f"the chains ended after {n_iter} iterations, and one half of them gives other groups than the other: set "
            "burn_in and n_draws to run them longer",
        )
