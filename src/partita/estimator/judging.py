"""The verdict on chains: diagnostics and notes, the same for every estimator that samples."""

from __future__ import annotations

from typing import Any, NamedTuple

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
CUT_SHORT = (
    "cut_short",
    "searches_cut_short",
    "provisional",
    "interrupted",
)  # codes of notes on fits that ended early
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


def note_stop(report: FitReport, reason: str, kept: str, *, level: str = "warning") -> None:
    """Note that a deterministic fit ended early, and what is kept; other reasons are not noted."""
    if reason in REASONS:
        report.add("cut_short", f"the fit was stopped {REASONS[reason]}: {kept}", level=level)


class EarlyEnd(NamedTuple):
    """Why a fit ended before it was finished."""

    reason: str  # "time_limit", "callback", "interrupted"
    message: str  # the same in words, and what is kept


def early_end(model: Any) -> EarlyEnd | None:
    """What ended the fit of a model early, from its notes; None if the fit was finished.

    Examples
    --------
    >>> from partita import Consensus
    >>> model = Consensus(random_state=0).fit([[0, 0], [0, 0], [1, 1], [1, 1]])
    >>> print(early_end(model))
    None
    >>> note_stop(model.fit_report_, "time_limit", "the best start so far is kept")
    >>> early_end(model)
    EarlyEnd(reason='time_limit', message='the fit was stopped by the time limit: the best start so far is kept')
    """
    found = [note for note in getattr(model, "fit_report_", ()) if note.code in CUT_SHORT]
    if not found:
        return None
    found.sort(key=lambda note: CUT_SHORT.index(note.code))
    if any(note.code == "interrupted" for note in found):
        return EarlyEnd("interrupted", found[0].message)
    reasons = [reason for reason, words in REASONS.items() if words in found[0].message]
    return EarlyEnd(reasons[0] if reasons else "interrupted", found[0].message)


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
