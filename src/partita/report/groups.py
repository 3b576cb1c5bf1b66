"""How large the groups are, and what makes each of them different."""

from __future__ import annotations

from typing import Any

import numpy as np

from partita.report.context import Subject
from partita.report.markup import bar, cluster, key, note, section, table, tip
from partita.summaries import Findings, Trait, examine
from partita.summaries.words import count, number, percent, safe

__all__ = ["cards", "known_groups", "sizes", "weight_is_uneven"]

MAX_CARDS, MAX_TRAITS, MAX_GROUPS = 40, 10, 30
MAX_MAP_ROWS, MAX_MAP_COLUMNS, MAX_VIEWS = 25, 30, 8


EXPLAINED = (
    "The columns that set a group apart most come first. Numbers are means (± standard deviation); a percentage is the "
    "share of the value that differs most. The bar says how far the cell of this one column, on average, tells a "
    "member of the group from the others: empty is not at all, full is completely."
)


def sizes(subject: Subject) -> str:
    """One line a group: rows, share, uncertain ones, confidence."""
    found, rows, shown = subject.found, [], np.flatnonzero(subject.found.sizes)
    if not len(shown):
        return ""
    largest = max(int(found.sizes.max()), 1)
    whole = found.doubt is not None and found.doubt.complete
    unsure, sure = found.doubt is not None, bool(np.isfinite(found.confidence[shown]).any())
    for k in shown[: 3 * MAX_CARDS].tolist():
        cells = f'<td class="w">{bar(found.sizes[k] / largest, k)}</td><td class="n">{found.sizes[k]:,}</td>'
        cells += f'<td class="n">{percent(found.sizes[k] / found.n_rows)}</td>'
        if unsure:
            share = found.uncertain[k] / max(int(found.looked_at[k]), 1)
            text = f"{found.uncertain[k]:,}" if whole else percent(share) if found.looked_at[k] else ""
            cells += f'<td class="n">{text}</td>'
        if sure:
            cells += f'<td class="n">{found.confidence[k]:.2f}</td>'
        rows.append(f"<tr>{cluster(k)}{cells}</tr>")
    head = ["group", "", f"{subject.noun}s", "share"]
    head += (["uncertain"] if unsure else []) + (["confidence"] if sure else [])
    notes = []
    if len(shown) > 3 * MAX_CARDS:
        notes.append(note(f"The {3 * MAX_CARDS} largest of {len(shown)} are shown."))
    if weight_is_uneven(subject):
        total = number(subject.model.weight_total_)
        notes.append(note(f"Rows are counted here; with their weights they stand for {total} objects."))
    return section(
        "How large the groups are",
        table(head, rows, numeric=range(2, len(head)), tall=len(shown) > 20),
        *notes,
    )


def weight_is_uneven(subject: Subject) -> bool:
    """Whether rows stand for more or less than one object."""
    n_rows = subject.found.n_rows
    total = getattr(subject.model, "weight_total_", n_rows)
    return abs(total - n_rows) > 1e-9 * max(total, 1)


def cards(subject: Subject) -> str:
    """The columns that set each group apart, as a map of all groups and as a card for each."""
    if subject.views is not None:
        return _cards_of_views(subject)
    return section("What makes each group different", *_described(subject.found, subject.noun))


def _cards_of_views(subject: Subject) -> str:
    """For each view the cards of its clusters."""
    model = subject.given
    parts: list[str] = []
    profiles = getattr(model, "profiles_", None)
    for v in range(min(np.shape(model.view_labels_)[1], MAX_VIEWS)):
        view = _OneView(model, v, profiles[v] if isinstance(profiles, (list, tuple)) else None)
        if view.n_clusters_ > 1:
            described = _described(examine(view, table=subject.table), "row", f"{v}-", explain=not parts)
            parts += [f"<h3>View {v + 1}</h3>", *described] if described else []
    return section("What makes each group different", *parts)


class _OneView:
    """What `examine` reads of one view."""

    def __init__(self, model: Any, v: int, profiles: dict[str, Any] | None) -> None:
        self.labels_ = np.asarray(model.view_labels_)[:, v]
        sizes = np.bincount(self.labels_[self.labels_ >= 0])
        self.n_clusters_ = int(np.count_nonzero(sizes))
        if profiles is not None:
            self.profiles_, self.weights_, self.schema_ = profiles, sizes / max(sizes.sum(), 1), model.schema_


def _described(found: Findings, noun: str, view: str = "", explain: bool = True) -> list[str]:
    """Map, explanation and cards; `view` keeps the clusters of several views apart."""
    shown = np.flatnonzero(found.sizes)
    if not found.telling or len(shown) < 2:
        return []
    inside = [_card(k, found, noun, view) for k in shown[:MAX_CARDS].tolist()]
    notes = [note(EXPLAINED)] if explain else []
    if len(shown) > MAX_CARDS:
        notes.append(note(f"The {MAX_CARDS} largest of {len(shown)} groups are shown."))
    if found.n_columns > MAX_TRAITS:
        notes.append(
            note(f"The {MAX_TRAITS} most telling of {found.n_columns} columns are shown for each group.")
        )
    return [_map(found, view), *notes, f'<div class="cards">{"".join(inside)}</div>']


def _map(found: Findings, view: str) -> str:
    """All groups by the most telling columns: how far each cell of the map is told by its column."""
    shown = np.flatnonzero(found.sizes)[:MAX_MAP_COLUMNS].tolist()
    if len(shown) < 2 or found.n_columns < 2:
        return ""
    by_name = [{trait.column: trait for trait in found.traits[k]} for k in shown]
    step, left, high = min(46.0, 440 / len(shown)), 190, 20
    parts = []
    names = [name for name, _ in found.telling[:MAX_MAP_ROWS]]
    for r, name in enumerate(names):
        y = 26 + r * high
        parts.append(
            f'<text class="small" x="{left - 8}" y="{y + 14}" text-anchor="end">{safe(name, 20)}</text>'
        )
        for c, k in enumerate(shown):
            trait = by_name[c][name]
            told = tip(f"{trait.column} in cluster {k}: {trait.here} (all: {trait.whole})")
            parts.append(
                f'<rect class="group pick k{k % 10}" data-k="{view}{k}" x="{left + c * step:.1f}" y="{y}" '
                f'width="{step - 1.5:.1f}" height="{high - 1.5}" '
                f'style="fill-opacity:{0.06 + 0.94 * trait.strength:.3f}"{told}/>'
            )
    for c, k in enumerate(shown):
        if c % max(1, round(20 / step)) == 0:
            parts.append(
                f'<text class="small" x="{left + (c + 0.5) * step:.1f}" y="18" text-anchor="middle">{k}</text>'
            )
    height = 30 + len(names) * high
    cut = []
    if len(names) < found.n_columns:
        cut.append(f"the {len(names)} most telling of {found.n_columns} columns")
    if len(shown) < np.count_nonzero(found.sizes):
        cut.append(f"the {len(shown)} largest groups")
    text = "Columns by groups: the stronger the colour, the more the column says about who is in the group."
    text += f" Shown are {' and '.join(cut)}." if cut else ""
    width = left + len(shown) * step + 10
    size = f'viewBox="0 0 {width:.0f} {height}" style="max-width:{1.15 * width:.0f}px"'
    picture = f'<svg {size} role="img" aria-label="Columns by groups">{"".join(parts)}</svg>'
    return picture + note(text)


def _card(k: int, found: Findings, noun: str, view: str) -> str:
    rows = [_trait(trait, k) for trait in found.traits[k][:MAX_TRAITS]]
    inside = table(["column", "this group", "all", ""], rows, kind="traits")
    return (
        f'<div class="card k{k % 10}" data-k="{view}{k}"><h3 class="pick" data-k="{view}{k}">cluster {k}: '
        f"{count(int(found.sizes[k]), noun)}</h3>{inside}</div>"
    )


def _trait(trait: Trait, k: int) -> str:
    return (
        f"<tr><td>{safe(trait.column, 40).replace('_', '_<wbr>')}</td>"
        f"<td>{_unbroken(trait.here)}</td><td>{_unbroken(trait.whole)}</td>"
        f'<td class="w">{bar(trait.strength, k)}</td></tr>'
    )


def _unbroken(text: str) -> str:
    """A number and its deviation stay on one line."""
    return safe(text).replace(" ± ", "\u00a0±\u00a0")


def known_groups(subject: Subject) -> str:
    """The clusters beside groups that are known."""
    agreement = subject.agreement
    if agreement is None:
        return ""
    used = np.flatnonzero(agreement.table.sum(axis=0))[:MAX_GROUPS].tolist()
    head = ["known group", *(f"{key(k)}{k}" for k in used)]
    body = [
        f"<tr><td>{safe(name, 40)}</td>"
        + "".join(f'<td class="n" data-k="{k}">{row[k]:,}</td>' for k in used)
        + "</tr>"
        for name, row in list(zip(agreement.names, agreement.table))[:MAX_GROUPS]
    ]
    cut = len(agreement.names) > MAX_GROUPS or np.count_nonzero(agreement.table.sum(axis=0)) > MAX_GROUPS
    text = (
        f"Adjusted Rand index {agreement.adjusted_rand:.3f}, normalised mutual information "
        f"{agreement.normalized_mutual_info:.3f}."
    ) + (f" The first {MAX_GROUPS} rows and columns are shown." if cut else "")
    return section("Beside the known groups", table(head, body, numeric=range(1, len(head))), note(text))
