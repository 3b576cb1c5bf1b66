"""Sections about the groups: their sizes, the columns that distinguish them, and known groups."""

from __future__ import annotations

from typing import Any

import numpy as np

from partita.descriptions import Trait
from partita.labels import group_name
from partita.report.markup import (
    bar,
    cluster_cell,
    cluster_dot,
    fold,
    note,
    section,
    table,
    tip,
)
from partita.report.portraits import portrait
from partita.summaries import ClusterSummary, summarize_clusters
from partita.summaries.context import ReportContext
from partita.summaries.portraits import Portraits
from partita.table import Table
from partita.wording import number, percent, safe

MAX_SIZES, MAX_CARDS, MAX_TRAITS, MAX_GROUPS = 120, 40, 10, 30
MAX_MAP_ROWS, MAX_MAP_COLUMNS, MAX_VIEWS = 25, 30, 8
TRAITS_NOTE = (
    "The columns that distinguish a group most come first, at most six. Numbers are means, or medians of skewed "
    "columns; a percentage is the share of the value that differs most. The bar shows how well one cell of the column, "
    "on average, identifies the members of the group: an empty bar means not at all, a full bar means completely."
)
COUNTED_NOTE = (
    "The pictures show the distribution in the group, in color, before that in all {noun}s, in gray."
)
MODELED_NOTE = (
    "The pictures show the distribution in the group under the fitted model, in color, before that in all {noun}s, in "
    "gray; with the table (X=) they would be counted."
)


def size_section(context: ReportContext) -> str:
    """One line per group: number of rows, share, uncertain rows, mean confidence."""
    found, rows, shown = context.clusters, [], np.flatnonzero(context.clusters.sizes)
    if not len(shown):
        return ""
    largest = max(int(found.sizes.max()), 1)
    names = {group.label: group.name for group in found.groups} if found.informative_columns else {}
    complete = found.uncertainty is not None and found.uncertainty.complete
    has_uncertain, has_confidence = (
        found.uncertainty is not None,
        bool(np.isfinite(found.confidence[shown]).any()),
    )
    for k in shown[:MAX_SIZES].tolist():
        cells = f'<td class="w">{bar(found.sizes[k] / largest, k)}</td><td class="n">{found.sizes[k]:,}</td>'
        cells += f'<td class="n">{percent(found.sizes[k] / found.n_rows)}</td>'
        if has_uncertain:
            share = found.uncertain[k] / max(int(found.examined[k]), 1)
            text = f"{found.uncertain[k]:,}" if complete else percent(share) if found.examined[k] else ""
            cells += f'<td class="n">{text}</td>'
        if has_confidence:
            cells += f'<td class="n">{found.confidence[k]:.2f}</td>'
        rows.append(f"<tr>{cluster_cell(k, names.get(k, ''))}{cells}</tr>")
    head = ["group", "", f"{context.noun}s", "share"]
    head += (["uncertain"] if has_uncertain else []) + (["confidence"] if has_confidence else [])
    notes = []
    if len(shown) > MAX_SIZES:
        notes.append(note(f"The {MAX_SIZES} largest of {len(shown)} groups are shown."))
    if has_weights(context):
        total = number(context.model.weight_total_)
        notes.append(note(f"The table counts rows. The sum of their weights is {total}."))
    return section(
        "Sizes of the groups",
        table(head, rows, numeric=range(2, len(head)), tall=len(shown) > 20),
        *notes,
    )


def has_weights(context: ReportContext) -> bool:
    """Whether the sum of the weights differs from the number of rows."""
    n_rows = context.clusters.n_rows
    total = getattr(context.model, "weight_total_", n_rows)
    return abs(total - n_rows) > 1e-9 * max(total, 1)


def trait_section(context: ReportContext) -> str:
    """The columns that distinguish each group, as a map of all groups and as one card per group."""
    if context.views is not None:
        return _traits_of_views(context)
    pictures = _portraits(context.model, context.clusters, context.table)
    return section("What distinguishes each group", *_traits(context.clusters, context.noun, pictures))


def _portraits(model: Any, found: ClusterSummary, table: Table | None) -> Portraits:
    """The small distributions of the groups."""
    own = getattr(model, "weights_", None)
    weights = np.asarray(found.sizes if own is None or len(own) != len(found.sizes) else own, float)
    if table is not None and table.sparse is not None:
        table = None
    return Portraits(
        np.asarray(model.labels_), found.profiles, weights, table, getattr(model, "_column_of", None)
    )


def _traits_of_views(context: ReportContext) -> str:
    """The traits of the clusters of each view."""
    assert context.views is not None
    model = context.given
    parts: list[str] = []
    profiles = model._own_profiles() if hasattr(model, "_own_profiles") else []
    counted = [v for v, view in enumerate(context.views.views) if view.counted]
    for v in counted[:MAX_VIEWS]:
        view = _OneView(model, v, profiles[v] if profiles else None)
        found = summarize_clusters(view, table=context.table)
        pictures = _portraits(view, found, context.table)
        traits = _traits(found, "row", pictures, f"{v}-", explain=not parts)
        parts += [f"<h3>View {v + 1}</h3>", *traits] if traits else []
    return section("What distinguishes each group", *parts)


class _OneView:
    """One view with the attributes that `summarize_clusters` reads."""

    def __init__(self, model: Any, v: int, profiles: dict[str, Any] | None) -> None:
        self.labels_ = np.asarray(model.view_labels_)[:, v]
        sizes = np.bincount(self.labels_[self.labels_ >= 0])
        self.n_clusters_ = int(np.count_nonzero(sizes))
        if profiles:
            self.profiles_, self.weights_, self.schema_ = profiles, sizes / max(sizes.sum(), 1), model.schema_


def _traits(
    found: ClusterSummary, noun: str, pictures: Portraits, view: str = "", explain: bool = True
) -> list[str]:
    """Portraits, explanation and map; `view` is the prefix of the cluster numbers of one of several views."""
    shown = np.flatnonzero(found.sizes)
    if not found.informative_columns or len(shown) < 2:
        return []
    inside = [
        portrait(group, found, pictures, noun, view, _more(group.label, found))
        for group in found.groups[:MAX_CARDS]
    ]
    notes = []
    if explain:
        text = COUNTED_NOTE if pictures.counts_rows else MODELED_NOTE
        if pictures.is_sample and pictures.counts_rows:
            text += f" They are counted from an even sample of {len(pictures.rows):,} {{noun}}s."
        notes = [note(f"{TRAITS_NOTE} {text.format(noun=noun)}")]
    if len(shown) > MAX_CARDS:
        notes.append(note(f"The {MAX_CARDS} largest of {len(shown)} groups are shown."))
    return [*notes, f'<div class="cards">{"".join(inside)}</div>', _map(found, view)]


def _more(k: int, found: ClusterSummary) -> str:
    """Further columns of a group, in a fold-out."""
    rows = [_trait(trait, k) for trait in found.traits[k][:MAX_TRAITS]]
    inside = table(["column", "this group", "all", ""], rows, kind="traits")
    first = (
        f"The first {MAX_TRAITS} of {found.n_columns} columns"
        if found.n_columns > MAX_TRAITS
        else "All columns"
    )
    return fold(first, inside)


def _map(found: ClusterSummary, view: str) -> str:
    """Map of the most informative columns by groups; the color is the strength of the trait."""
    shown = np.flatnonzero(found.sizes)[:MAX_MAP_COLUMNS].tolist()
    if len(shown) < 2 or found.n_columns < 2:
        return ""
    by_name = [{trait.column: trait for trait in found.traits[k]} for k in shown]
    step, left, high = min(60.0, 560 / len(shown)), 190, 20
    parts = []
    names = [name for name, _ in found.informative_columns[:MAX_MAP_ROWS]]
    for r, name in enumerate(names):
        y = 26 + r * high
        parts.append(
            f'<text class="small" x="{left - 8}" y="{y + 14}" text-anchor="end">{safe(name, 20)}</text>'
        )
        for c, k in enumerate(shown):
            trait = by_name[c][name]
            told = tip(f"{trait.column} in {group_name(k)}: {trait.here} (all: {trait.whole})")
            parts.append(
                f'<rect class="group pick k{k % 10}" data-k="{view}{k}" x="{left + c * step:.1f}" y="{y}" '
                f'width="{step - 1.5:.1f}" height="{high - 1.5}" '
                f'style="fill-opacity:{0.06 + 0.94 * trait.strength:.3f}"{told}/>'
            )
    for c, k in enumerate(shown):
        if c % max(1, round(20 / step)) == 0:
            parts.append(
                f'<text class="small" x="{left + (c + 0.5) * step:.1f}" y="18" text-anchor="middle">{k + 1}</text>'
            )
    height = 30 + len(names) * high
    cut = []
    if len(names) < found.n_columns:
        cut.append(f"the {len(names)} most informative of {found.n_columns} columns")
    if len(shown) < np.count_nonzero(found.sizes):
        cut.append(f"the {len(shown)} largest groups")
    text = (
        "Columns by groups. The stronger the color, the more the column says about the members of the group."
    )
    text += f" The map shows {' and '.join(cut)}." if cut else ""
    width = left + len(shown) * step + 10
    size = f'viewBox="0 0 {width:.0f} {height}" style="max-width:{1.15 * width:.0f}px"'
    picture = f'<svg {size} role="img" aria-label="Columns by groups">{"".join(parts)}</svg>'
    return picture + note(text)


def _trait(trait: Trait, k: int) -> str:
    return (
        f"<tr><td>{safe(trait.column, 40).replace('_', '_<wbr>')}</td>"
        f"<td>{_unbroken(trait.here)}</td><td>{_unbroken(trait.whole)}</td>"
        f'<td class="w">{bar(trait.strength, k)}</td></tr>'
    )


def _unbroken(text: str) -> str:
    """A number and its deviation stay on one line."""
    return safe(text).replace(" ± ", "\u00a0±\u00a0")


def truth_section(context: ReportContext) -> str:
    """Contingency table of the known groups and the clusters."""
    agreement = context.agreement
    if agreement is None:
        return ""
    used = np.flatnonzero(agreement.table.sum(axis=0))[:MAX_GROUPS].tolist()
    head = ["known group", *(f"{cluster_dot(k)}{k + 1}" for k in used)]
    body = [
        f"<tr><td>{safe(name, 40)}</td>"
        + "".join(f'<td class="n" data-k="{k}">{row[k]:,}</td>' for k in used)
        + "</tr>"
        for name, row in list(zip(agreement.names, agreement.table))[:MAX_GROUPS]
    ]
    cut = len(agreement.names) > MAX_GROUPS or np.count_nonzero(agreement.table.sum(axis=0)) > MAX_GROUPS
    text = (
        f"Adjusted Rand index {agreement.adjusted_rand:.3f}, normalized mutual information "
        f"{agreement.normalized_mutual_info:.3f}."
    ) + (f" The first {MAX_GROUPS} rows and columns are shown." if cut else "")
    return section(
        "Comparison with the known groups", table(head, body, numeric=range(1, len(head))), note(text)
    )
