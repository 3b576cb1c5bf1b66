"""The answer in plain words, before anything else."""

from __future__ import annotations

from typing import Any

import numpy as np

from partita.report import sampled
from partita.report.context import Subject, is_sampled
from partita.report.markup import key
from partita.summaries.doubt import RIVAL
from partita.summaries.words import count, percent, safe

__all__ = ["answer", "legend"]

NOTEWORTHY = ("missing", "constant", "not_converged", "bound_reached", "cut_short")  # besides all warnings
MOST_CHIPS = 60


def answer(subject: Subject) -> str:
    """What was found, how sure it is, and what was unusual."""
    lines = _views(subject) if subject.views is not None else _groups(subject)
    lines += _ensemble(subject)
    if subject.views is None and int((subject.found.sizes > 0).sum()) > 1:
        lines += _uncertain(subject)
        if subject.found.telling:
            telling = ", ".join(f"<em>{safe(name)}</em>" for name, _ in subject.found.telling[:3])
            lines.append(f"The columns that tell the groups apart best: {telling}.")
    if subject.agreement is not None:
        lines.append(
            f"Against the known groups the adjusted Rand index is {subject.agreement.adjusted_rand:.2f} "
            "(1 is the same grouping, 0 is chance)."
        )
    text = "".join(f"<p>{line}</p>" for line in lines)
    return f'<div class="answer">{text}{_unusual(subject.model)}</div>'


def legend(subject: Subject) -> str:
    """A button for each cluster: it highlights the cluster in every figure and table."""
    shown = np.flatnonzero(subject.found.sizes)
    if (
        len(shown) < 2 or subject.views is not None
    ):  # clusters of different views have nothing to do with each other
        return ""
    chips = "".join(
        f'<button class="chip pick k{k % 10}" data-k="{k}" aria-pressed="false">{key(k)}cluster {k}</button>'
        for k in shown[:MOST_CHIPS].tolist()
    )
    return f'<nav class="legend" aria-label="Highlight a cluster">{chips}</nav>'


def _groups(subject: Subject) -> list[str]:
    model, found = subject.model, subject.found
    sizes = found.sizes[found.sizes > 0]
    asked = getattr(model, "n_clusters", None)
    given = asked is not None and not isinstance(asked, str)
    head = (
        f"<strong>{count(int(model.n_clusters_), 'group')}</strong>"
        + (" (the number that was asked for)" if given and asked == model.n_clusters_ else "")
        + _how_many(subject, given)
        + f" in {_what(subject)}"
    )
    if len(sizes) > 1:
        head += (
            f"; the largest has {count(int(sizes.max()), subject.noun)} ({percent(sizes.max() / found.n_rows)}), "
            f"the smallest {int(sizes.min()):,} ({percent(sizes.min() / found.n_rows)})."
        )
    else:
        head += "."
    lines = [head]
    if found.n_rows > found.sizes.sum():
        lines.append(f"{count(int(found.n_rows - found.sizes.sum()), subject.noun)} outside: outliers.")
    if given and isinstance(asked, (int, np.integer)) and asked > model.n_clusters_:
        empty = int(asked - model.n_clusters_)
        lines.append(
            f"Of the {asked} that were asked for, {empty} {'has' if empty == 1 else 'have'} no {subject.noun}s."
        )
    if subject.blocks is not None:
        lines.append(f"The columns form {count(len(subject.blocks.column_sizes), 'group')}.")
    if is_sampled(model) and "do_not_trust_k" not in _report(model):  # else among the warnings below
        lines.append(sampled.verdict(model))
    return lines


def _how_many(subject: Subject, given: bool) -> str:
    known = getattr(subject.model, "n_clusters_posterior_", None)
    if known is None and subject.counts is not None and subject.counts.posterior.sum() > 0:
        known = dict(zip(subject.counts.n_clusters.tolist(), subject.counts.posterior.tolist()))
    if given or not isinstance(known, dict) or not known:
        return ""
    always = {
        "members": "the same whenever the members are drawn anew",
        "model": "the only number that the model thinks possible",
    }.get("draws" if subject.counts is None else subject.counts.meaning)
    return f", {sampled.counts_in_words(known, always)},"


def _what(subject: Subject) -> str:
    found, members = subject.found, subject.members
    text = count(found.n_rows, subject.noun)
    columns = found.n_columns
    if columns == 0 and members is None:
        columns = int(getattr(subject.model, "n_features_in_", 0))
    if columns:
        text += f" and {count(columns, 'column')}"
    if members is not None:
        text += f", from {count(len(members.weights), 'clustering')}"
    return text


def _ensemble(subject: Subject) -> list[str]:
    inner = getattr(subject.model, "consensus_", subject.model)
    if subject.members is None or not hasattr(inner, "explained_"):
        return []
    worth = count(max(round(float(inner.independent_members_)), 1), "independent clustering")
    lines = [
        f"The ensemble holds the evidence of about <strong>{worth}</strong> "
        f"(it has {count(len(subject.members.weights), 'member')})"
    ]
    if inner.n_clusters_ > 1:
        lines[0] += (
            f"; the groups explain {percent(float(inner.explained_))} of what the members say about pairs"
        )
    lines[0] += "."
    return lines


def _views(subject: Subject) -> list[str]:
    found = subject.views
    assert found is not None
    telling = [view for view in found.views if len(view.sizes) > 1]
    known = found.n_views_posterior
    lines = [
        f"<strong>{count(len(telling), 'view')}</strong>"
        + (f", {sampled.counts_in_words(known)}," if known else "")
        + f" in {count(subject.found.n_rows, 'row')}"
        + (f" and {count(len(found.names), 'column')}: " if found.names else ": ")
        + (
            "groupings of the same rows that say different things."
            if not found.names
            else "the columns of a view agree on one grouping of the rows, and those of different views do not."
            if len(telling) > 1
            else "columns that agree on one grouping of the rows."
        )
    ]
    for v, view in enumerate(found.views[:6]):
        names = (
            ", ".join(f"<em>{safe(name, 40)}</em>" for name, _ in view.columns[:5]) or "no column for sure"
        )
        more = len(view.columns) - 5
        names += f" and {count(more, 'further column')}" if more > 0 else ""
        if len(view.sizes) > 1:
            by = f" by {names}" if found.names else ""
            lines.append(f"View {v + 1}: {count(len(view.sizes), 'group')}{by}.")
        else:
            lines.append(f"On their own: {names}.")
    if len(found.views) > 6:
        lines.append(f"{len(found.views) - 6} further views are listed below.")
    return lines


def _uncertain(subject: Subject) -> list[str]:
    found, noun = subject.found, subject.noun
    if found.doubt is None:
        return []
    unsure, n = found.n_uncertain, len(found.doubt.objects)
    whole, rule = found.doubt.complete, found.doubt.rule
    if not unsure:
        none = {
            "draws": f"each shares its group in at least {percent(found.threshold)} of the draws",
            "probability": f"each has a probability of at least {found.threshold:g} for its group",
            "confidence": f"each has a confidence of at least {found.threshold:g}",
            "rival": f"none is with another group more than {percent(RIVAL)} as often as with its own",
        }[rule]
        seen = "" if whole else f" of the {n:,} looked at"
        return [f"No {noun}{seen} is uncertain: {none}."]
    why = {
        "draws": f"together with the other {noun}s of the same group in less than {percent(found.threshold)} of the "
        "draws",
        "probability": f"the model gives their own group a probability below {found.threshold:g}",
        "confidence": f"their confidence is below {found.threshold:g}",
        "rival": "the members put them with another group at least half as often as with their own",
    }[rule]
    verb = "is" if unsure == 1 else "are"
    if whole:
        text = f"<strong>{unsure:,} of {count(n, noun)} ({percent(unsure / n)}) {verb} uncertain</strong>: {why}."
    else:
        text = (
            f"<strong>About {percent(unsure / n)} of the {noun}s are uncertain</strong> ({unsure:,} of an even sample "
            f"of {n:,}): {why}."
        )
    return [text]


def _report(model: Any) -> Any:
    return getattr(model, "fit_report_", ())


def _unusual(model: Any) -> str:
    notes = [note for note in _report(model) if note.level == "warning" or note.code in NOTEWORTHY]
    if not notes:
        return "<p>Nothing unusual was noticed about the data.</p>"
    items = "".join(f"<li>{safe(note.message, 400)}</li>" for note in notes[:6])
    return f"<p>Worth knowing:</p><ul>{items}</ul>"
