"""The overview at the top of the page: the result in a few sentences, and the legend of the clusters."""

from __future__ import annotations

from typing import Any

import numpy as np

from partita.estimator import early_end
from partita.labels import group_name
from partita.posterior.diagnostics import NOT_CONVERGED
from partita.report.fit import chain_diagnosis
from partita.report.markup import cluster_dot
from partita.summaries.context import ReportContext, is_sampled
from partita.summaries.counts import counts_in_words, is_tree, number_in_words
from partita.summaries.uncertainty import RIVAL_RATIO
from partita.summaries.views import lone_columns, number_of_views
from partita.wording import count, first_sentence, percent, safe

SHOWN_NOTES = (  # besides all warnings
    "missing", "constant", "not_converged", "bound_reached", "cut_short", "poor_members",
)  # fmt: skip
TOLD_ABOVE = (  # by the grade, and by the box on the data
    "weak", "missing", "constant", "suspected_code", "strays", "ambiguous_text", "mixed_units", "pairs", "identifier",
    "identifier_modeled", "postal_code", "free_text", "lone_minus_one", "missing_code", "repeats", "choices",
)  # fmt: skip
MAX_NOTES = 6
MAX_LEGEND, MAX_NAMED = 60, 12
MAX_VIEWS, MAX_VIEW_COLUMNS = 6, 5


def overview(context: ReportContext) -> str:
    """The groups or views, the uncertain objects, and the most important notes."""
    lines = _views(context) if context.views is not None else _groups(context)
    stopped = early_end(context.given)
    if stopped is not None:
        lines.insert(0, f"<strong>Stopped early</strong>: {safe(stopped.message, 400)}.")
    lines += _ensemble(context)
    if context.views is None and int((context.clusters.sizes > 0).sum()) > 1:
        lines += _uncertain(context)
        if context.clusters.informative_columns:
            names = ", ".join(
                f"<em>{safe(name)}</em>" for name, _ in context.clusters.informative_columns[:3]
            )
            lines.append(f"The columns that distinguish the groups best: {names}.")
    if context.agreement is not None:
        lines.append(
            f"The adjusted Rand index with the known groups is {context.agreement.adjusted_rand:.2f} "
            "(1: the same groups, 0: agreement by chance)."
        )
    text = "".join(f"<p>{line}</p>" for line in lines)
    return f'<div class="answer">{text}{_notes(context.model)}</div>'


def legend(context: ReportContext) -> str:
    """One button per cluster, which highlights the cluster in every figure and table."""
    shown = np.flatnonzero(context.clusters.sizes)
    if len(shown) < 2 or context.views is not None:  # each view has clusters of its own
        return ""
    named = context.clusters.groups[:MAX_NAMED] if context.clusters.informative_columns else ()
    names = {group.label: f": {safe(group.name, 60)}" for group in named}
    chips = "".join(
        f'<button class="chip pick k{k % 10}" data-k="{k}" aria-pressed="false">{cluster_dot(k)}{group_name(k)}'
        f"{names.get(k, '')}</button>"
        for k in shown[:MAX_LEGEND].tolist()
    )
    return f'<nav class="legend" aria-label="Highlight a cluster">{chips}</nav>'


def _groups(context: ReportContext) -> list[str]:
    model, found = context.model, context.clusters
    sizes = found.sizes[found.sizes > 0]
    asked = getattr(model, "n_clusters", None)
    given = asked is not None and not isinstance(asked, str)
    if context.level is not None:
        which = f", as asked (the answer has {count(int(context.given.n_clusters_), 'group')}),"
    else:
        requested = " (the requested number)" if given and asked == model.n_clusters_ else ""
        which = requested + _how_many(context, given)
    head = f"<strong>{count(int(model.n_clusters_), 'group')}</strong>{which} in {_what(context)}"
    if len(sizes) > 1:
        head += (
            f"; the largest has {count(int(sizes.max()), context.noun)} ({percent(sizes.max() / found.n_rows)}), "
            f"the smallest {int(sizes.min()):,} ({percent(sizes.min() / found.n_rows)})."
        )
    else:
        head += "."
    lines = [head]
    if found.n_rows > found.sizes.sum():
        outliers = int(found.n_rows - found.sizes.sum())
        lines.append(
            f"{count(outliers, context.noun)} {'is an outlier' if outliers == 1 else 'are outliers'}."
        )
    if given and isinstance(asked, (int, np.integer)) and asked > model.n_clusters_:
        empty = int(asked - model.n_clusters_)
        lines.append(
            f"{empty} of the {asked} requested groups {'has' if empty == 1 else 'have'} no {context.noun}s."
        )
    if context.blocks is not None:
        lines.append(f"The columns form {count(len(context.blocks.column_sizes), 'group')}.")
    if is_sampled(model) or is_tree(model):
        lines.append(_grade(model))
    return lines


def _grade(model: Any) -> str:
    """The grade with its reason; of a weak answer also what to do."""
    diagnostics = getattr(model, "diagnostics_", getattr(model, "row_diagnostics_", None))
    grade, told = getattr(diagnostics, "grade", ""), chain_diagnosis(model)
    if not grade:
        return told
    reason = told.removeprefix(f"{grade.capitalize()}: ")
    if grade != "weak":  # the numbers of each chain are in the section about the fit
        reason = first_sentence(reason) + (f" {NOT_CONVERGED}." if NOT_CONVERGED in reason else "")
    return f'<span class="grade {grade}">{grade}</span> {reason[:1].upper()}{reason[1:]}'


def _how_many(context: ReportContext, given: bool) -> str:
    known = getattr(context.model, "n_clusters_posterior_", None)
    if known is None and context.counts is not None and context.counts.posterior.sum() > 0:
        known = dict(zip(context.counts.n_clusters.tolist(), context.counts.posterior.tolist()))
    if given or not isinstance(known, dict) or not known:
        return ""
    certain = {
        "members": "the same number in every resample of the members",
        "model": "the only number with a positive probability",
    }.get("draws" if context.counts is None else context.counts.meaning)
    if is_tree(context.model):
        return f", {number_in_words(context.model)},"
    return f", {counts_in_words(known, certain)},"


def _what(context: ReportContext) -> str:
    found, members = context.clusters, context.members
    text = count(found.n_rows, context.noun)
    columns = found.n_columns
    if columns == 0 and members is None:
        columns = int(getattr(context.model, "n_features_in_", 0))
    if columns:
        text += f" and {count(columns, 'column')}"
    if members is not None:
        text += f", from {count(len(members.weights), 'clustering')}"
    return text


def _ensemble(context: ReportContext) -> list[str]:
    inner = getattr(context.model, "consensus_", context.model)
    if context.members is None or not hasattr(inner, "explained_"):
        return []
    independent = count(max(round(float(inner.independent_members_)), 1), "independent clustering")
    members = count(len(context.members.weights), "member")
    text = f"The {members} of the ensemble hold as much evidence as about <strong>{independent}</strong>"
    if inner.n_clusters_ > 1:
        text += (
            f"; the groups explain {percent(float(inner.explained_))} of the members' information about pairs"
        )
    return [f"{text}."]


def _views(context: ReportContext) -> list[str]:
    found = context.views
    assert found is not None
    counted = [(v, view) for v, view in enumerate(found.views) if view.counted]
    number, comma, detail = number_of_views(found).partition(",")
    lines = [
        f"<strong>{number}</strong>{comma}{detail}{comma} in {count(context.clusters.n_rows, 'row')}"
        + (f" and {count(len(found.names), 'column')}: " if found.names else ": ")
        + (
            "different groupings of the same rows."
            if not found.names
            else "the columns of a view share one grouping of the rows, and different views have different groupings."
            if len(counted) > 1
            else "its columns share one grouping of the rows."
            if counted
            else "no two columns share a grouping of the rows."
        )
    ]
    for v, view in counted[:MAX_VIEWS]:
        by = f" by {_listed([name for name, _ in view.columns])}" if found.names else ""
        lines.append(f"View {v + 1}: {count(len(view.sizes), 'group')}{by}.")
    if len(counted) > MAX_VIEWS:
        lines.append(f"{len(counted) - MAX_VIEWS} further views are listed below.")
    alone, without = lone_columns(found)
    if alone:
        lines.append(f"Columns with groups of their own, in no view: {_listed(alone)}.")
    if without:
        lines.append(f"Columns without groups of rows: {_listed(without)}.")
    return lines


def _listed(names: list[str]) -> str:
    listed = ", ".join(f"<em>{safe(name, 40)}</em>" for name in names[:MAX_VIEW_COLUMNS])
    more = len(names) - MAX_VIEW_COLUMNS
    return listed + (f" and {count(more, 'further column')}" if more > 0 else "")


def _uncertain(context: ReportContext) -> list[str]:
    found, noun = context.clusters, context.noun
    if found.uncertainty is None:
        return []
    n_uncertain, n = found.n_uncertain, len(found.uncertainty.objects)
    complete, rule = found.uncertainty.complete, found.uncertainty.rule
    if not n_uncertain:
        reason = {
            "draws": f"each shares its group in at least {percent(found.threshold)} of the draws",
            "probability": f"each has a probability of at least {found.threshold:g} for its group",
            "confidence": f"each has a confidence of at least {found.threshold:g}",
            "rival": f"the co-clustering of each with any other group is below {percent(RIVAL_RATIO)} of that with its "
            "own",
        }[rule]
        examined = "" if complete else f" of the {n:,} examined"
        return [f"No {noun}{examined} is uncertain: {reason}."]
    reason = {
        "draws": f"they share a group with the other {noun}s of their group in less than {percent(found.threshold)} of "
        "the draws",
        "probability": f"the probability of their own group is below {found.threshold:g}",
        "confidence": f"their confidence is below {found.threshold:g}",
        "rival": f"their co-clustering with another group is at least {percent(RIVAL_RATIO)} of that with their own",
    }[rule]
    verb = "is" if n_uncertain == 1 else "are"
    if complete:
        share = percent(n_uncertain / n)
        return [f"<strong>{n_uncertain:,} of {count(n, noun)} ({share}) {verb} uncertain</strong>: {reason}."]
    return [
        f"<strong>About {percent(n_uncertain / n)} of the {noun}s are uncertain</strong> ({n_uncertain:,} of an even "
        f"sample of {n:,}): {reason}."
    ]


def _report(model: Any) -> Any:
    return getattr(model, "fit_report_", ())


def _notes(model: Any) -> str:
    told = ("weak",) if getattr(model, "_describes_members", False) else TOLD_ABOVE
    shown = [note for note in _report(model) if note.level == "warning" or note.code in SHOWN_NOTES]
    notes = [note for note in shown if note.code not in told]
    if not notes:
        return "<p>The fit has no warnings.</p>"
    items = "".join(f"<li>{safe(note.message, 400)}</li>" for note in notes[:MAX_NOTES])
    return f"<p>Notes:</p><ul>{items}</ul>"
