"""The verdict on chains: diagnostics and notes, the same for every estimator that samples."""

from __future__ import annotations

import numpy as np

from partita.estimator.report import FitReport
from partita.posterior import Diagnostics, diagnose
from partita.posterior.diagnostics import WEAK
from partita.trace import Trace

MIN_DRAWS_PER_CHAIN = 8  # fewer draws contain no information about mixing
REASONS = {
    "time_limit": "by the time limit",
    "callback": "by the callback",
    "interrupted": "by an interrupt",
}
PROVISIONAL = (
    "No draw was kept: the fit ended during burn-in. The result is provisional: it is one state of the burn-in, "
    "without uncertainty."
)


def diagnose_chains(
    trace: Trace, *, provisional: bool = False, second_opinion: float | None = None
) -> Diagnostics:
    """Diagnostics of any trace; the number of clusters is not trusted if the trace is provisional or too short.

    Examples
    --------
    >>> zeros = np.zeros(1)
    >>> one = Trace(np.zeros((1, 3), int), zeros, np.ones(1, int), zeros, zeros, np.zeros(1, int))
    >>> print(diagnose_chains(one, provisional=True).sentence)
    No draw was kept: the fit ended during burn-in. The result is provisional: it is one state of the burn-in,
    without uncertainty.
    >>> diagnose_chains(one).trust_n_clusters
    False
    """
    n_chains = len(np.unique(trace.chain))
    if provisional:
        return Diagnostics((), {}, n_chains, 0, False, False, PROVISIONAL)
    shortest = int(np.unique(trace.chain, return_counts=True)[1].min())
    if shortest >= MIN_DRAWS_PER_CHAIN:
        return diagnose(trace, second_opinion=second_opinion)
    sentence = (
        f"Chains of {shortest} draws are too short to be judged: raise n_draws to know whether they agree."
    )
    return Diagnostics((), {}, n_chains, shortest, False, False, sentence)


def note_early_end(report: FitReport, reason: str, n_draws: int, *, provisional: bool = False) -> None:
    """Note that chains ended early, and how far the result can be used."""
    if reason != "done":
        report.add("cut_short", f"the chains were stopped {REASONS[reason]}: {n_draws} draws are kept")
    if provisional:
        report.add("provisional", f"{PROVISIONAL} Raise time_limit or lower burn_in.", level="warning")


def note_stop(report: FitReport, reason: str, kept: str) -> None:
    """Note that a deterministic fit ended early, and what is kept; other reasons are not noted."""
    if reason in REASONS:
        report.add("cut_short", f"the fit was stopped {REASONS[reason]}: {kept}", level="warning")


def judge_chains(
    report: FitReport,
    trace: Trace,
    reason: str,
    *,
    provisional: bool = False,
    second_opinion: float | None = None,
    of: str = "",
) -> Diagnostics:
    """Diagnostics of chains, with notes on reasons not to trust them; ``of`` names what was clustered."""
    found = diagnose_chains(trace, provisional=provisional, second_opinion=second_opinion)
    prefix = f"{of}: " if of else ""
    if not provisional and not found.quantities:
        report.add("few_draws", prefix + found.sentence, level="warning")
    elif found.grade == "weak" or (not found.grade and not found.trust_n_clusters and not provisional):
        report.add("weak", prefix + found.sentence, level="warning")
    return found


def have_converged(found: Diagnostics, reason: str) -> bool:
    """Whether chains ran to their end and have the same groups and the same number of them."""
    return reason == "done" and found.trust_n_clusters and not found.agreement < WEAK
