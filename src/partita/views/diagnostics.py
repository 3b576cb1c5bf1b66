"""Traces and diagnostics of chains over views: whether the chains agree on which columns depend on each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from partita.estimator.judging import PROVISIONAL
from partita.posterior import rhat
from partita.views.draw_queries import dependence
from partita.views.draws import Draw, n_counted_views
from partita.views.summary import shares
from partita.wording import count

MAX_SPREAD = 0.3  # of the dependence probability between chains, without a warning
MIN_DRAWS_PER_CHAIN = 8  # for R-hat
N_BATCHES = 4  # of a single chain, for the error of the dependence probability


class ViewTrace(NamedTuple):
    """Scalars of all draws, chain after chain.

    Examples
    --------
    >>> draw = Draw(np.ones((2, 1), bool), np.array([[0], [1]]), (), -3.5, 0, np.array([0.7, 1.0]))
    >>> trace = ViewTrace.of([draw, draw])
    >>> trace.log_joint, trace.n_views, trace.n_views_posterior
    (array([-3.5, -3.5]), array([1, 1]), {1: 1.0})
    """

    log_joint: np.ndarray  # [draw]
    n_views: np.ndarray  # [draw]: number of views with at least two columns and two clusters
    concentration: np.ndarray  # [draw]: of the views
    chain: np.ndarray  # [draw]: number of the chain

    @classmethod
    def of(cls, draws: Sequence[Draw]) -> ViewTrace:
        """The trace of some draws."""
        return cls(
            np.array([draw.log_joint for draw in draws]),
            np.array([n_counted_views(draw) for draw in draws]),
            np.array([draw.concentrations[0] for draw in draws]),
            np.array([draw.chain for draw in draws]),
        )

    @property
    def n_views_posterior(self) -> dict[int, float]:
        """Share of draws with each number of views."""
        return shares(self.n_views)


class ViewDiagnostics(NamedTuple):
    """Whether the chains agree.

    ``dependence_spread`` is, for each pair of columns, the largest minus the smallest probability of dependence among
    the chains: 0 where all chains agree, 1 where two of them contradict each other.
    """

    dependence_spread: np.ndarray
    n_views_by_chain: dict[int, dict[int, float]]
    log_joint_by_chain: dict[int, float]
    rhat_log_joint: float
    rhat_n_views: float
    ok: bool
    sentence: str

    def __str__(self) -> str:
        return self.sentence


def dependence_error(draws: Sequence[Draw]) -> np.ndarray:
    """Monte Carlo standard error of ``dependence_``, [column, column]; NaN for fewer than four draws of one chain.

    Each chain is cut into batches of consecutive draws. The error is estimated from the means of the batches, and from
    the means of the chains, which tells more if chains stay where they began; the larger estimate counts. It is 0 where
    all draws agree.

    Examples
    --------
    >>> apart = Draw(np.eye(2, dtype=bool), np.array([[0, 0], [1, 1]]), (), 0.0, 0, np.ones(3))
    >>> together = apart._replace(membership=np.array([[True, False], [True, False]]), chain=1)
    >>> dependence_error([apart] * 8 + [together] * 8).round(2)
    array([[0. , 0.5],
           [0.5, 0. ]])
    """
    chain = np.array([draw.chain for draw in draws])
    owned = [np.flatnonzero(chain == c) for c in np.unique(chain)]
    n_batches = N_BATCHES if len(owned) == 1 else 2
    batches = [part for own in owned for part in np.array_split(own, n_batches) if len(part)]
    error = np.zeros((len(draws[0].membership),) * 2)
    for parts in (batches, owned) if len(owned) > 1 else (batches,):
        if len(parts) < 2 or (len(owned) == 1 and len(draws) < N_BATCHES):
            return np.full_like(error, np.nan)
        means = np.stack([dependence([draws[t] for t in part.tolist()]) for part in parts])
        error = np.maximum(error, means.std(axis=0, ddof=1) / np.sqrt(len(parts)))
    return error


def diagnose_views(draws: Sequence[Draw], *, provisional: bool = False) -> ViewDiagnostics:
    """Compare the chains; ``provisional`` says that no draw was kept and ``draws`` is a state of the burn-in."""
    trace = ViewTrace.of(draws)
    chains = np.unique(trace.chain).tolist()
    by_chain = {c: np.flatnonzero(trace.chain == c) for c in chains}
    matrices = np.stack([dependence([draws[t] for t in own.tolist()]) for own in by_chain.values()])
    spread = matrices.max(axis=0) - matrices.min(axis=0)
    shortest = min(len(own) for own in by_chain.values())
    rhats = [float("nan")] * 2
    if shortest >= MIN_DRAWS_PER_CHAIN:
        rhats = [
            rhat([values[own[:shortest]] for own in by_chain.values()])
            for values in (trace.log_joint, trace.n_views)
        ]
    n_pairs = int((np.triu(spread, 1) > MAX_SPREAD).sum())
    if provisional:
        sentence = PROVISIONAL
    elif len(chains) < 2:
        sentence = (
            "A single chain cannot be compared with others: raise n_chains to see whether chains agree."
        )
    elif not n_pairs:
        sentence = "The chains agree on which columns depend on each other."
    else:
        sentence = (
            f"The chains disagree on {count(n_pairs, 'pair')} of columns (by up to {float(spread.max()):.2f} in the "
            "probability that they depend on each other): use these probabilities with caution, and raise burn_in or "
            "n_chains."
        )
    return ViewDiagnostics(
        spread,
        {c: shares(trace.n_views[own]) for c, own in by_chain.items()},
        {c: float(trace.log_joint[own].mean()) for c, own in by_chain.items()},
        rhats[0],
        rhats[1],
        len(chains) > 1 and not n_pairs,
        sentence,
    )
