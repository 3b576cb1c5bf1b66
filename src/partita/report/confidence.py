"""Sections about certainty: co-clustering, the confidence of the objects, the least certain objects."""

from __future__ import annotations

import numpy as np

from partita.labels import group_name
from partita.report import charts, diagrams
from partita.report.markup import cluster_cell, note, section, table
from partita.summaries.context import ReportContext, is_sampled
from partita.summaries.pairs import order_objects
from partita.summaries.uncertainty import rival_ratios
from partita.wording import count, safe

MAX_ROWS, MAX_PAIR_OBJECTS = 12, 240
MAX_BARS_OF_LEVEL = 120  # objects of the bar chart at another level of the grain
AXIS_LABELS = {
    "draws": "mean probability to share a cluster with the rows of its cluster",
    "probability": "probability of its own cluster",
    "rival": "agreement of the members",
    "confidence": "confidence",
}
MEANINGS = {
    "draws": (
        "Confidence is the share of the draws in which a row is in the same group as another row of its group, "
        "averaged over these rows. It includes the uncertainty about the number of groups, but not about the model."
    ),
    "probability": (
        "Confidence is the probability of a row's own group under the fitted model. It does not include the "
        "uncertainty about the model itself or about the number of groups."
    ),
    "rival": (
        "Confidence is agreement: how often the members put an object together with the others of its group. It ranks "
        "the objects. It is not the probability that the label is right, and it is small for all objects if the "
        "members have many clusters."
    ),
    "confidence": "Confidence is defined in the documentation of the estimator.",
}
PAIR_MEANINGS = {
    "draws": "the share of the draws in which two {noun}s are in the same group",
    "votes": "the share of the members that put two {noun}s together, among the members that label both",
    "consensus": "the probability that two {noun}s belong together, from the members and the fitted groups",
    "model": "the probability that two {noun}s are in the same group under the fitted model",
}


def pair_section(context: ReportContext) -> str:
    """The co-clustering of the objects as a heat map in the order of the clusters."""
    if context.pairs is None or len(context.pairs.objects) < 2:
        return ""
    found = context.pairs.take(MAX_PAIR_OBJECTS)
    names = [f"{context.name(int(i))} ({group_name(int(k))})" for i, k in zip(found.objects, found.labels)]
    picture = diagrams.heat(
        found.values, names, what="together", title="Co-clustering", percent=True, labels=found.labels
    )
    meaning = PAIR_MEANINGS[found.source].format(noun=context.noun)
    text = f"The color shows {meaning}. {context.noun.capitalize()}s are ordered by group and, within a group, by "
    text += "decreasing confidence. Point at a cell to read its value."
    if len(found.objects) < found.n_objects:
        text += f" {len(found.objects)} of {found.n_objects:,} {context.noun}s are shown, evenly spaced."
    return section("Co-clustering", picture, note(text))


def object_section(context: ReportContext) -> str:
    """Confidence as a histogram and by object, and the least certain objects."""
    confidence = getattr(context.model, "confidence_", None)
    if confidence is None or not np.isfinite(np.asarray(confidence, float)).any():
        return ""
    confidence = np.asarray(confidence, float)
    rule = _rule(context)
    threshold = None if rule == "rival" else context.clusters.threshold
    order = order_objects(context.model.labels_, confidence)
    most = charts.MAX_BARS if context.level is None else MAX_BARS_OF_LEVEL
    by_object, drawn = charts.objects(
        order, np.asarray(context.model.labels_), confidence, threshold, context.name, most
    )
    text = f"One bar per {context.noun}, colored by group."
    if drawn < len(confidence):
        text += f" {drawn} of {len(confidence):,} {context.noun}s are shown, evenly spaced."
    return section(
        "Confidence",
        charts.histogram(confidence, threshold, AXIS_LABELS[rule]),
        note(MEANINGS[rule]),
        by_object,
        note(text),
        _least_certain(context, confidence, rule),
    )


def _rule(context: ReportContext) -> str:
    if context.clusters.uncertainty is not None:
        return context.clusters.uncertainty.rule
    return "rival" if context.members is not None else "confidence"


def scatter_section(context: ReportContext) -> str:
    """The objects by the two most informative numeric columns."""
    confidence = getattr(context.model, "confidence_", None)
    if confidence is None or not np.isfinite(np.asarray(confidence, float)).any():
        return ""
    return section("Objects by two columns", _scatter(context))


def _scatter(context: ReportContext) -> str:
    found, shown = context.clusters, context.table
    if shown is None or shown.sparse is not None:
        return ""
    kinds = {column.name: column.kind for column in shown.columns}
    names = [name for name, _ in found.informative_columns if kinds.get(name) in ("real", "count")][:2]
    if len(names) < 2:
        return ""
    U, V = (np.asarray(shown.column(name).values, float) for name in names)
    certain = np.ones(found.n_rows, bool)
    if found.uncertainty is not None:
        certain[found.uncertainty.objects] = ~found.uncertainty.uncertain
    row_groups = None if context.grain is None else context.grain.row_groups
    svg, drawn, seen = charts.scatter(U, V, context.model.labels_, certain, (names[0], names[1]), row_groups)
    absent = found.n_rows - seen
    text = "The two most informative numeric columns, colored by group. Uncertain rows are hollow."
    if np.any(np.asarray(context.model.labels_) < 0):
        text += " Outliers are black."
    if drawn < seen:
        text += f" {drawn:,} of {seen:,} rows are shown, evenly spaced."
    if absent:
        text += f" {count(absent, 'row')} without one of the two values {'is' if absent == 1 else 'are'} not shown."
    return svg + note(text)


def _least_certain(context: ReportContext, confidence: np.ndarray, rule: str) -> str:
    labels = np.asarray(context.model.labels_)
    if len(np.unique(labels[labels >= 0])) < 2:
        return ""
    nearest = _nearest_groups(context)
    if rule == "rival" and nearest is not None:
        strongest = nearest[1]
        rows = nearest[0][np.argsort(-np.nan_to_num(strongest), kind="stable")]
        rows = rows[labels[rows] >= 0][:MAX_ROWS]
    else:
        rows = np.argsort(confidence, kind="stable")
        rows = rows[labels[rows] >= 0][:MAX_ROWS]
    head = [context.noun, "group", "probability" if rule == "probability" else "confidence"]
    lines = [
        f"<td>{safe(context.names[i], 40) if context.names is not None else i}</td>{cluster_cell(int(labels[i]))}"
        f'<td class="n">{confidence[i]:.2f}</td>'
        for i in rows
    ]
    if nearest is not None:
        where = {int(i): at for at, i in enumerate(nearest[0])}
        head += ["nearest other group", "ratio" if rule == "rival" else "probability"]
        lines = [text + _nearest_cells(nearest, where.get(int(i))) for text, i in zip(lines, rows)]
    text = f"{context.noun.capitalize()}s are counted from 0." if context.names is None else ""
    if rule == "rival" and nearest is not None:
        text += (
            " The last column is the co-clustering with the nearest other group divided by that with its own."
        )
        if not context.clusters.uncertainty.complete:  # type: ignore[union-attr]
            text += " Only the sample was examined."
    elif rule == "draws" and nearest is not None:
        text += " The probability of the nearest other group refers to the partition shown here, not to all draws."
    shown = table(head, [f"<tr>{line}</tr>" for line in lines], numeric=(2, 4))
    return f"<h3>The {len(rows)} least certain {context.noun}s</h3>{shown}" + (note(text) if text else "")


def _nearest_cells(nearest: tuple[np.ndarray, np.ndarray, np.ndarray], at: int | None) -> str:
    if at is None or nearest[2][at] < 0 or not np.isfinite(nearest[1][at]):
        return "<td></td><td></td>"
    return f'{cluster_cell(int(nearest[2][at]))}<td class="n">{nearest[1][at]:.2f}</td>'


def _nearest_groups(context: ReportContext) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Objects, the strength of their nearest other group, and its number."""
    model, labels = context.model, np.asarray(context.model.labels_)
    if context.members is not None and context.pairs is not None and not is_sampled(model):
        found = context.pairs
        clusters = np.unique(found.labels)
        means = np.stack([found.evidence[:, found.labels == k].mean(axis=1) for k in clusters], axis=1)
        means[found.labels[:, None] == clusters[None, :]] = -np.inf
        return (
            found.objects,
            rival_ratios(found),
            clusters[np.argmax(np.nan_to_num(means, neginf=-1.0), axis=1)],
        )
    R = context.memberships
    if R is None or len(getattr(model, "weights_", ())) < 2:
        return None
    others = np.where(np.arange(R.shape[1]) == labels[:, None], -1.0, R)
    second = others.argmax(axis=1)
    return np.arange(len(labels)), R[np.arange(len(labels)), second], second
