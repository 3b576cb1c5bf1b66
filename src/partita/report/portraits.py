"""Portraits of the groups: name, the columns that distinguish the group, and a small picture of each."""

from __future__ import annotations

import numpy as np

from partita.descriptions import GroupDescription, Trait
from partita.labels import group_name
from partita.report.markup import bar, cluster_dot, tip
from partita.summaries import ClusterSummary
from partita.summaries.portraits import Distribution, Portraits
from partita.wording import count, percent, safe

WIDTH, HEIGHT, FLOOR = 200, 58, 42  # of a small picture, and where its axis is
GAP = 0.18  # between the bars of levels, as a share of their width
MIN_LABEL = 34  # width of a bar that has its label


def portrait(
    group: GroupDescription, found: ClusterSummary, pictures: Portraits, noun: str, view: str, more: str
) -> str:
    """The card of one group: its name, its size, and a line with a picture per telling column."""
    k = group.label
    told = group.telling or tuple(found.traits[k][:1])
    rows = "".join(_line(trait, k, pictures) for trait in told)
    name = f": {safe(group.name, 120)}" if found.informative_columns else ""
    size = f"{count(group.size, noun)} ({percent(group.share)})"
    about = group.sentence.partition(": ")[2]
    near = "" if group.telling else f'<p class="note">{safe(about[:1].upper() + about[1:], 120)}.</p>'
    return (
        f'<div class="card k{k % 10}" data-k="{view}{k}"><h3 class="pick" data-k="{view}{k}">'
        f'{cluster_dot(k)}{group_name(k)}{name}</h3><p class="note">{size}</p>{near}'
        f'<div class="portrait">{rows}</div>{more}</div>'
    )


def _line(trait: Trait, k: int, pictures: Portraits) -> str:
    """One column: its value here and in the whole table, how much it tells, and its distribution."""
    found = pictures.of(trait.column, k)
    told = trait.reading
    fact = (
        f'<strong>{safe(told.fact, 120)}</strong> <span class="note">(all: {safe(told.contrast, 60)})</span>'
    )
    strength = f'<span class="strength"{tip(f"one cell tells {percent(trait.strength)} of what identifies the group")}>'
    picture = "" if found is None else _picture(found, trait, k)
    return f"<div><p>{fact}</p>{strength}{bar(trait.strength, k)}</span>{picture}</div>"


def _picture(found: Distribution, trait: Trait, k: int) -> str:
    parts = _bins(found) if found.edges is not None else _bars(found)
    about = f"{trait.column} in {group_name(k)}: {trait.here} (all: {trait.whole})"
    return (
        f'<svg class="small-multiple" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{safe(about, 160)}"'
        f"{tip(about)}>{parts}</svg>"
    )


def _bins(found: Distribution) -> str:
    """Two histograms as areas: the whole table behind, the group in front."""
    assert found.edges is not None
    top = max(float(found.here.max()), float(found.whole.max()), 1e-12)
    x = np.linspace(2.0, WIDTH - 2.0, len(found.edges))
    areas = []
    for kind, shares in (("whole", found.whole), ("here", found.here)):
        y = FLOOR - 1.0 - (FLOOR - 4.0) * shares / top
        steps = "".join(f"V{height:.1f}H{right:.1f}" for height, right in zip(y, x[1:]))
        areas.append(f'<path class="{kind}" d="M{x[0]:.1f} {FLOOR - 1}{steps}V{FLOOR - 1}Z"/>')
    low, high = (safe(label, 16) for label in found.labels)
    middle = (
        f'<text class="tick" x="{WIDTH / 2:.0f}" y="{HEIGHT - 2}" text-anchor="middle">log scale</text>'
        if found.is_log
        else ""
    )
    return (
        f'{middle}{"".join(areas)}<path class="frame" d="M2 {FLOOR}H{WIDTH - 2}M2 {FLOOR}v4M{WIDTH - 2} {FLOOR}v4"/>'
        f'<text class="tick" x="2" y="{HEIGHT - 2}">{low}</text>'
        f'<text class="tick" x="{WIDTH - 2}" y="{HEIGHT - 2}" text-anchor="end">{high}</text>'
    )


def _bars(found: Distribution) -> str:
    """Two bars per level: the whole table behind, the group in front."""
    n, top = len(found.labels), max(float(found.here.max()), float(found.whole.max()), 1e-12)
    step = (WIDTH - 4.0) / n
    parts = []
    for v, (label, here, whole) in enumerate(zip(found.labels, found.here, found.whole)):
        left, wide = 2.0 + v * step + GAP * step / 2.0, step * (1.0 - GAP)
        for kind, share, inset in (("whole", whole, 0.0), ("here", here, 0.22 * wide)):
            high = (FLOOR - 4.0) * share / top
            parts.append(
                f'<rect class="{kind}" x="{left + inset:.1f}" width="{wide - 2 * inset:.1f}" '
                f'y="{FLOOR - 1 - high:.1f}" height="{high:.1f}"/>'
            )
        if step >= MIN_LABEL:
            short = safe(label, max(int(step / 6.5), 4))
            parts.append(
                f'<text class="tick" x="{left + wide / 2:.1f}" y="{HEIGHT - 2}" text-anchor="middle">{short}</text>'
            )
    return f'{"".join(parts)}<path class="frame" d="M2 {FLOOR}H{WIDTH - 2}"/>'
