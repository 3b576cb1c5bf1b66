"""How sure the model is: confidence by object, who belongs together, the least certain objects."""

from __future__ import annotations

import numpy as np

from partita.report import maps, pictures
from partita.report.context import Subject, is_sampled
from partita.report.markup import called, cluster, note, section, table
from partita.summaries.doubt import rivalry
from partita.summaries.pairs import order_objects
from partita.summaries.words import count, safe

__all__ = ["certainty", "together"]

MAX_ROWS, MAX_HEAT, MOST_CELLS = 12, 240, 20_000_000
MEANING = {
    "draws": (
        "probability to sit with the rows of its cluster",
        "Confidence is the share of the draws in which a row is together with another row of its group, on average "
        "over those rows. It includes the doubt about the number of groups, not the doubt about the kind of model.",
    ),
    "probability": (
        "probability of its own cluster",
        "Confidence is the probability of a row's own group under the fitted model. It does not include the "
        "doubt about the model itself, nor about the number of groups.",
    ),
    "rival": (
        "agreement of the members on it",
        "Confidence is agreement: how far the members put an object with the others of its group. It ranks objects; it "
        "is not the chance that the label is right, and members with many clusters make it small everywhere.",
    ),
    "confidence": ("confidence", "Confidence as the estimator defines it: see its documentation."),
}
SOURCES = {
    "draws": "the share of the draws in which two {noun}s share a group",
    "votes": "the share of the members that put two {noun}s together, of those that saw both",
    "consensus": "the probability that two {noun}s belong together: the members' votes and the fitted groups, mixed by "
    "the evidence of the ensemble",
    "model": "the probability that two {noun}s are in one group under the fitted model",
}


def together(subject: Subject) -> str:
    """Who belongs together: the co-clustering heat map in the order of the clusters."""
    if subject.pairs is None or len(subject.pairs.objects) < 2:
        return ""
    found = subject.pairs.take(MAX_HEAT)
    names = [f"{subject.name(int(i))} ({called(int(k))})" for i, k in zip(found.objects, found.labels)]
    picture = maps.heat(
        found.values, names, what="together", title="Co-clustering", percent=True, labels=found.labels
    )
    source = SOURCES[found.source].format(noun=subject.noun)
    text = f"The stronger the colour, the larger {source}. {subject.noun.capitalize()}s are in the order of the groups"
    text += ", the surest of a group first; point at a cell to read it."
    if len(found.objects) < found.n_objects:
        text += f" An even sample of {len(found.objects)} of {found.n_objects:,} is drawn."
    return section("Who belongs together", picture, note(text))


def certainty(subject: Subject) -> str:
    """Confidence as a histogram and by object, a scatter plot, and the least certain objects."""
    confidence = getattr(subject.model, "confidence_", None)
    if confidence is None or not np.isfinite(np.asarray(confidence, float)).any():
        return ""
    confidence = np.asarray(confidence, float)
    rule = _rule(subject)
    below, meaning = MEANING[rule]
    threshold = None if rule == "rival" else subject.found.threshold
    order = order_objects(subject.model.labels_, confidence)
    by_object, drawn = pictures.objects(
        order, np.asarray(subject.model.labels_), confidence, threshold, subject.name
    )
    text = f"One bar {'an object' if subject.noun == 'object' else 'a row'}, coloured by group."
    if drawn < len(confidence):
        text += f" An even sample of {drawn} of {len(confidence):,} is drawn."
    return section(
        "How sure the model is",
        pictures.histogram(confidence, threshold, below),
        note(meaning),
        by_object,
        note(text),
        _scatter(subject),
        _least_certain(subject, confidence, rule),
    )


def _rule(subject: Subject) -> str:
    if subject.found.doubt is not None:
        return subject.found.doubt.rule
    return "rival" if subject.members is not None else "confidence"


def _scatter(subject: Subject) -> str:
    found, shown = subject.found, subject.table
    if shown is None or shown.sparse is not None:
        return ""
    kinds = {column.name: column.kind for column in shown.columns}
    names = [name for name, _ in found.telling if kinds.get(name) in ("real", "count")][:2]
    if len(names) < 2:
        return ""
    U, V = (np.asarray(shown.column(name).values, float) for name in names)
    firm = np.ones(found.n_rows, bool)
    if found.doubt is not None:
        firm[found.doubt.objects] = ~found.doubt.uncertain
    svg, drawn, seen = pictures.scatter(U, V, subject.model.labels_, firm, (names[0], names[1]))
    absent = found.n_rows - seen
    text = "The two most telling numeric columns, coloured by group; uncertain rows are hollow."
    if np.any(np.asarray(subject.model.labels_) < 0):
        text += " Outliers are black."
    if drawn < seen:
        text += f" {drawn:,} of {seen:,} rows are drawn, evenly spaced."
    if absent:
        text += f" {count(absent, 'row')} without one of the two values {'is' if absent == 1 else 'are'} not drawn."
    return svg + note(text)


def _least_certain(subject: Subject, confidence: np.ndarray, rule: str) -> str:
    labels = np.asarray(subject.model.labels_)
    if len(np.unique(labels[labels >= 0])) < 2:
        return ""
    nexts = _next_groups(subject)
    if rule == "rival" and nexts is not None:
        strongest = nexts[1]
        rows = nexts[0][np.argsort(-np.nan_to_num(strongest), kind="stable")]
        rows = rows[labels[rows] >= 0][:MAX_ROWS]
    else:
        rows = np.argsort(confidence, kind="stable")
        rows = rows[labels[rows] >= 0][:MAX_ROWS]
    head = [subject.noun, "group", "probability" if rule == "probability" else "confidence"]
    lines = [
        f"<td>{safe(subject.names[i], 40) if subject.names is not None else i}</td>{cluster(int(labels[i]))}"
        f'<td class="n">{confidence[i]:.2f}</td>'
        for i in rows
    ]
    if nexts is not None:
        where = {int(i): at for at, i in enumerate(nexts[0])}
        head += ["next", "beside its own" if rule == "rival" else "probability"]
        lines = [text + _next(nexts, where.get(int(i))) for text, i in zip(lines, rows)]
    text = f"{subject.noun.capitalize()}s are counted from 0." if subject.names is None else ""
    if rule == "rival" and nexts is not None:
        text += " The last column says how often it is with the next group, for each time with its own."
        if not subject.found.doubt.complete:  # type: ignore[union-attr]
            text += " Those of the sample."
    elif rule == "draws" and nexts is not None:
        text += (
            " The probability of the next group is that of the one partition shown here, not of all draws."
        )
    shown = table(head, [f"<tr>{line}</tr>" for line in lines], numeric=(2, 4))
    return f"<h3>The {len(rows)} least certain {subject.noun}s</h3>{shown}" + (note(text) if text else "")


def _next(nexts: tuple[np.ndarray, np.ndarray, np.ndarray], at: int | None) -> str:
    if at is None or nexts[2][at] < 0 or not np.isfinite(nexts[1][at]):
        return "<td></td><td></td>"
    return f'{cluster(int(nexts[2][at]))}<td class="n">{nexts[1][at]:.2f}</td>'


def _next_groups(subject: Subject) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Objects, how strong their next group is, and which it is."""
    model, labels = subject.model, np.asarray(subject.model.labels_)
    if subject.members is not None and subject.pairs is not None and not is_sampled(model):
        found = subject.pairs
        clusters = np.unique(found.labels)
        means = np.stack([found.values[:, found.labels == k].mean(axis=1) for k in clusters], axis=1)
        means[found.labels[:, None] == clusters[None, :]] = -np.inf
        return found.objects, rivalry(found), clusters[np.argmax(np.nan_to_num(means, neginf=-1.0), axis=1)]
    n_components = len(getattr(model, "weights_", ()))
    if subject.X is None or n_components < 2 or len(labels) * n_components > MOST_CELLS:
        return None
    if not hasattr(model, "predict_proba") or subject.members is not None:
        return None
    R = np.asarray(model.predict_proba(subject.X))
    others = np.where(np.arange(R.shape[1]) == labels[:, None], -1.0, R)
    second = others.argmax(axis=1)
    return np.arange(len(labels)), R[np.arange(len(labels)), second], second
