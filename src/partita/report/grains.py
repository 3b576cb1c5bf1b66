"""The section about the grain: a slider that regroups the page, the alternatives, and the picture of all levels.

The page holds each part that depends on the level once more for each other level, as a template, and the script puts
them in place of each other. Points and bars of the pictures hold the number of their finest group, from which the
script finds their group at the level; so pictures are in the page only once.
"""

from __future__ import annotations

import html
import json

from partita.labels import group_name
from partita.report import confidence, groups, overview
from partita.report.markup import note, section, table, tip
from partita.summaries.context import ReportContext
from partita.summaries.grains import GrainLevels, Level, level_title, splits_in_words
from partita.wording import count, percent

WIDTH, LEFT, STEP, BOX = 760, 140, 40, 20
WIDEST, LEAST = 0.94, 0.004
MIN_LABELED = 16  # width of a box that has its number

# name of a part of the page -> how it is written; these are the parts that depend on the level
PARTS = {
    "legend": overview.legend,
    "sizes": groups.size_section,
    "traits": groups.trait_section,
    "confidence": confidence.object_section,
    "truth": groups.truth_section,
}


def part(name: str, context: ReportContext) -> str:
    """A part of the page, marked so that the script finds it if the page has a slider."""
    inside = PARTS[name](context)
    return f'<div data-part="{name}">{inside}</div>' if context.grain is not None else inside


def slider(context: ReportContext) -> str:
    """The slider over the levels; the script shows it."""
    found = context.grain
    if found is None or len(found.levels) < 2:
        return ""
    at = _initial(context, found)
    data = [
        {"k": level.n_clusters, "title": level_title(level), "groups": level.groups.tolist()}
        for level in found.levels
    ]
    ticks = "".join(
        f'<option value="{i}" label="{level.n_clusters}">' for i, level in enumerate(found.levels)
    )
    jumps = "".join(
        f'<button class="chip jump" data-to="{i}">{level.name}: {level.n_clusters}</button>'
        for i, level in enumerate(found.levels)
        if level.name
    )
    title = level_title(found.levels[at])
    return (
        f'<div class="grain" hidden data-levels="{html.escape(json.dumps(data, separators=(",", ":")), quote=True)}">'
        f'<label for="level">Number of groups</label>'
        f'<input type="range" id="level" min="0" max="{len(data) - 1}" step="1" value="{at}" list="levels" '
        f'aria-valuetext="{title}"><datalist id="levels">{ticks}</datalist>'
        f'<output for="level">{title}</output><span class="jumps">{jumps}</span></div>'
    )


def grain_section(context: ReportContext) -> str:
    """The alternatives as a table, the picture of the levels, and what the support is."""
    found = context.grain
    if found is None:
        return ""
    rows = []
    for row in context.alternatives:
        sizes = ", ".join(f"{n:,}" for n in row.sizes[:8]) + (" …" if len(row.sizes) > 8 else "")
        told = [*row.remarks, *([splits_in_words(row.splits)] if row.splits else [])]
        rows.append(
            f'<tr><td>{row.name}</td><td class="n">{row.n_clusters}</td><td class="n">{percent(row.support)}</td>'
            f'<td>{sizes}</td><td class="o">{"; ".join(told)}</td></tr>'
        )
    head = ["alternative", "groups", "support", f"{context.noun}s per group", ""]
    texts = [
        f"The data do not say at which scale groups are wanted. Support is the {found.support_meaning}. Splits are "
        "counted from the line above.",
        "Each line of the picture is a number of groups. The width of a box is its share of the "
        f"{context.noun}s, the color is the support, and the bands lead to the parts of a group.",
    ]
    if not found.same_as_answer:
        texts.append(
            f"The tree over the groups does not pass through the answer with {count(found.answer, 'group')}: at this "
            "level some rows are in other groups."
        )
    live = (
        '<p class="note live-only">The slider regroups the sizes, the portraits of the groups, the confidence, '
        "the known groups and the colors of the pictures. All other sections are about the answer.</p>"
    )
    return section(
        "Coarser and finer groups",
        table(head, rows, numeric=(1, 2), optional=(4,), kind="plain") if rows else "",
        _picture(context, found),
        *(note(text) for text in texts),
        live if len(found.levels) > 1 else "",
    )


def templates(context: ReportContext) -> str:
    """The parts of the page at all levels but the one that it shows."""
    found = context.grain
    if found is None or len(found.levels) < 2:
        return ""
    shown = found.levels[_initial(context, found)].n_clusters
    out = []
    for i, level in enumerate(found.levels):
        if level.n_clusters != shown:
            there = context.at(level.n_clusters)
            out += [
                f'<template data-part="{name}" data-at="{i}">{write(there)}</template>'
                for name, write in PARTS.items()
            ]
    return "".join(out)


def _initial(context: ReportContext, found: GrainLevels) -> int:
    """The level that the page shows, or the nearest one."""
    shown = found.answer if context.level is None else context.level
    return min(range(len(found.levels)), key=lambda i: abs(found.levels[i].n_clusters - shown))


def _picture(context: ReportContext, found: GrainLevels) -> str:
    boxes = found.boxes(WIDEST, LEAST)
    x, y = (lambda share: LEFT + share * (WIDTH - LEFT - 6)), (lambda at: 8 + STEP * at)
    parts = []
    for at in range(len(found.levels) - 1):
        flows = found.flows(at)
        for k, (left, width) in enumerate(boxes[at]):
            inside = sorted((boxes[at + 1][j][0], j) for j in range(flows.shape[1]) if flows[k, j] > 0)
            start = left
            for _, j in inside:
                end = start + width * flows[k, j] / max(flows[k].sum(), 1e-300)
                a, b = boxes[at + 1][j][0], boxes[at + 1][j].sum()
                top, bottom, middle = y(at) + BOX, y(at + 1), (y(at) + BOX + y(at + 1)) / 2
                parts.append(
                    f'<path class="flow" d="M{x(start):.1f} {top}C{x(start):.1f} {middle} {x(a):.1f} {middle} '
                    f"{x(a):.1f} {bottom}H{x(b):.1f}C{x(b):.1f} {middle} {x(end):.1f} {middle} {x(end):.1f} "
                    f'{top}Z"/>'
                )
                start = end
    for at, level in enumerate(found.levels):
        parts.append(_line(at, level, boxes[at], found, x, y(at), context.noun))
    height = y(len(found.levels) - 1) + BOX + 10
    return (
        f'<svg class="levels" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="Groups by level">'
        f"{''.join(parts)}</svg>"
    )


def _line(at: int, level: Level, boxes, found: GrainLevels, x, y: float, noun: str) -> str:
    """The boxes of one level with its number of groups and its name."""
    shade = 0.12 + 0.7 * min(max(level.support / found.top_support, 0.0), 1.0)
    name = f"{level.n_clusters} {level.name}".strip()
    parts = [f'<text x="{LEFT - 10}" y="{y + 15}" text-anchor="end">{name}</text>']
    for k, (left, width) in enumerate(boxes):
        told = tip(f"{level_title(level)}\n{group_name(k)}: {level.sizes[k]:,.0f} {noun}s")
        wide = x(left + width) - x(left)
        parts.append(
            f'<rect class="level" style="fill-opacity:{shade:.2f}" x="{x(left):.1f}" y="{y}" width="{wide:.1f}" '
            f'height="{BOX}"{told}/>'
        )
        if wide >= MIN_LABELED:
            parts.append(
                f'<text class="small label" x="{x(left) + wide / 2:.1f}" y="{y + 14}" '
                f'text-anchor="middle">{k + 1}</text>'
            )
    return f'<g class="line" data-to="{at}">{"".join(parts)}</g>'
