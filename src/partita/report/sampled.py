"""What the page says of a fit by chains: P(K) in words, what confidence means there, how the chains went."""

from __future__ import annotations

from typing import Any

import numpy as np

from partita.fitting.engines import ENGINES
from partita.posterior import credible_set
from partita.report import pictures
from partita.report.markup import table
from partita.summaries.words import count, number, percent, safe

__all__ = ["counts_in_words", "course", "verdict"]

MOST_NAMED = 4


def counts_in_words(probabilities: dict[int, float], always: str | None = None) -> str:
    """The most probable numbers of groups, enough of them for 95% together.

    Examples
    --------
    >>> counts_in_words({4: 0.01, 5: 0.82, 6: 0.15, 7: 0.02})
    'most likely 5 (82%) or 6 (15%)'
    >>> counts_in_words({3: 1.0})
    '3 in every draw'
    """
    if len(probabilities) == 1:
        return always or f"{next(iter(probabilities))} in every draw"
    ranked = credible_set(probabilities, 0.95).n_clusters
    named = [f"{K} ({percent(probabilities[K])})" for K in ranked[:MOST_NAMED]]
    text = named[0] if len(named) == 1 else f"{', '.join(named[:-1])} or {named[-1]}"
    return f"most likely {text}" + (", or others" if len(ranked) > MOST_NAMED else "")


def verdict(model: Any) -> str:
    """Whether the number of groups can be trusted, in the words of the diagnostics."""
    found = getattr(model, "diagnostics_", getattr(model, "row_diagnostics_", None))
    if found is None:
        return "The chains are too short to say whether the number of groups can be trusted."
    return safe(found.sentence.replace("n_clusters", "K").replace("log_joint", "log joint"), 800)


def course(model: Any) -> list[str]:
    """How the chains went: what ran, P(K) beside the prior, the log joint by chain, the diagnostics."""
    trace = model.trace_
    sizes = np.unique(trace.chain, return_counts=True)[1]
    draws = f"{sizes.min()} to {sizes.max()}" if sizes.min() < sizes.max() else f"{sizes[0]}"
    engine = ENGINES.get(getattr(model, "inference", ""))
    title = "sampling" if engine is None else engine.title
    text = (
        f"{title[0].upper()}{title[1:]}: {count(len(sizes), 'chain')}, {draws} draws of each"
        + (f" after {count(int(model.burn_in), 'iteration')} of burn-in" if hasattr(model, "burn_in") else "")
        + (f", every {model.thin}th iteration" if getattr(model, "thin", 1) > 1 else "")
        + f". {verdict(model)}"
    )
    svg, drawn = pictures.chains(trace.log_joint, trace.chain)
    note = (
        "The log joint of labels and data by draw, one line a chain: chains that agree lie over each other."
    )
    if drawn < len(trace.log_joint):
        note += f" {drawn:,} of {len(trace.log_joint):,} draws are drawn."
    return [f"<p>{text}</p>", svg, f'<p class="note">{note}</p>', _quantities(model)]


def _quantities(model: Any) -> str:
    found = getattr(getattr(model, "diagnostics_", None), "quantities", None)
    if not found:
        return ""
    rows = [
        f"<tr><td>{safe(q.name.replace('n_clusters', 'number of groups').replace('_', ' '))}</td>"
        f'<td class="n">{number(q.mean)}</td>'
        f'<td class="n">{number(q.sd)}</td><td class="n">{q.rhat:.3f}</td><td class="n">{q.ess_bulk:,.0f}</td>'
        f'<td class="n">{q.ess_tail:,.0f}</td></tr>'
        for q in found
    ]
    head = ["quantity", "mean", "deviation", "R-hat", "effective draws", "in the tails"]
    return table(head, rows, numeric=range(1, 6))
