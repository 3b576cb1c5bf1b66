"""Sections that only some models have: number of groups, members, views, tree, blocks."""

from __future__ import annotations

import numpy as np

from partita.labels import group_name
from partita.report import charts, diagrams
from partita.report.markup import bar, note, section, table, tip
from partita.summaries import View, view_cells
from partita.summaries.context import ReportContext, is_sampled
from partita.summaries.pairs import spread
from partita.wording import count, number, percent, safe

MAX_MEMBERS, MAX_COLUMNS, MAX_VIEWS, MAX_LISTED = 60, 200, 20, 12
MAX_MAPS, MAX_CELL_COLUMNS, MAX_BLOCKS = 6, 40, 60


def count_section(context: ReportContext) -> str:
    """Posterior and prior probabilities of the number of groups, and the score of each number."""
    found = context.counts
    if found is None:
        return ""
    parts = []
    if len(found.n_clusters) and found.posterior.sum() > 0:
        svg, cut = charts.counts(found)
        prior = bool(np.isfinite(found.prior).any())
        legend = '<span class="swatch c0"></span>posterior<span class="swatch dot"></span>prior'
        parts = [svg, *([note(legend)] if prior else [])]
        if found.meaning == "draws":
            text = "The posterior is the share of the draws with each number of groups."
            if prior:
                text += " If the concentration is learned, the prior is averaged over the prior of the concentration."
        elif found.meaning == "tree":
            text = (
                "The probability of each number of groups among the partitions that this tree allows. It is not the "
                "posterior over all partitions, and it says nothing about other trees."
            )
        elif found.meaning == "model":
            text = "The probability of each number of groups under the model."
        else:
            text = (
                "How often each number is the best one when the members are resampled (Bayesian bootstrap)."
            )
        parts.append(note(text + (f" {cut} less probable numbers are not shown." if cut > 0 else "")))
    inner = getattr(context.model, "consensus_", context.model)
    svg = charts.curve(found.scores, int(inner.n_clusters_), "number of groups", "score")
    if svg:
        parts += [
            svg,
            note("The score of each number of groups that was compared. The line marks the chosen number."),
        ]
    return section("Number of groups", *parts)


def member_section(context: ReportContext) -> str:
    """Weight, number of clusters and agreement with the consensus of each member, and their similarity."""
    found = context.members
    if found is None:
        return ""
    M = len(found.weights)
    order = np.argsort(-found.weights, kind="stable")
    parts, top = [], max(float(found.weights.max(initial=0.0)), 1e-12)
    if M > MAX_MEMBERS:
        svg, drawn = charts.ranked(
            found.weights, found.names, "Weights of members", "members by weight", "weight"
        )
        cut = f" {drawn} of {M:,} are shown, evenly spaced." if drawn < M else ""
        parts += [svg, note(f"The weights of the members, the largest first.{cut}")]
    head, numeric = ["member", "", "weight"], [2]
    if found.n_clusters is not None:
        head, numeric = [*head, "clusters", "missing", "agreement"], [2, 3, 4, 5]
    rows = []
    for m in order[:MAX_MEMBERS].tolist():
        cells = f'<td>{safe(found.names[m], 40)}</td><td class="w">{bar(found.weights[m] / top)}</td>'
        cells += f'<td class="n">{number(float(found.weights[m]))}</td>'
        if found.n_clusters is not None:
            cells += f'<td class="n">{found.n_clusters[m]:,}</td><td class="n">{percent(float(found.missing[m]))}</td>'  # type: ignore[index]
            cells += f'<td class="n">{found.agreement[m]:.2f}</td>'  # type: ignore[index]
        rows.append(f"<tr>{cells}</tr>")
    text = _weight_meaning(context) + (" Scroll the table for the rest." if M > 15 else "")
    if found.n_clusters is not None:
        text += " Agreement is the adjusted Rand index with the consensus (1: the same groups, 0: agreement by chance)."
    if M > MAX_MEMBERS:
        rest = float(found.weights[order[MAX_MEMBERS:]].sum() / max(found.weights.sum(), 1e-300))
        text += f" The {MAX_MEMBERS} members with the largest weights are listed, of {M:,} in all; the others have "
        text += f"{percent(rest)} of the total weight."
    return section(
        "The members",
        *parts,
        table(head, rows, numeric=numeric, tall=True),
        note(text),
        _similar_members(context),
    )


def _weight_meaning(context: ReportContext) -> str:
    inner = getattr(context.model, "consensus_", context.model)
    if hasattr(inner, "explained_"):
        return (
            "The weight of a member is its given weight times the share of its information about pairs that the groups "
            "explain. It is near 0 for a random clustering."
        )
    if context.members is not None and context.members.learned:
        return "The weights were given or learned."
    return "All members that are used have the same weight."


def _similar_members(context: ReportContext) -> str:
    found = context.members
    if found is None or found.similarity is None or found.compared is None:
        return ""
    names = [found.names[m] for m in found.compared]
    picture = diagrams.heat(
        found.similarity, names, what="adjusted Rand index", title="Agreement of members", names=True
    )
    text = "Similar members are adjacent. Dark blocks are members that are nearly equal."
    if len(names) < len(found.weights):
        text += f" {len(names)} of {len(found.weights):,} are shown, evenly spaced."
    return "<h3>Similarity of the members</h3>" + picture + note(text)


def view_section(context: ReportContext) -> str:
    """Columns and groups of each view, and the probabilities that two columns share a view."""
    found = context.views
    if found is None:
        return ""
    counted = [(v, view) for v, view in enumerate(found.views) if view.counted]
    rows = [_view(v, view) for v, view in counted[:MAX_VIEWS]]
    parts = [table(["view", "columns", "groups of rows", "number of groups"], rows, kind="views")]
    text = "The bar shows the sizes of the groups."
    if found.names:
        text += " A view lists the columns that belong to it with a probability of at least one half."
    if len(counted) > MAX_VIEWS:
        text += f" The first {MAX_VIEWS} of {len(counted)} views are listed."
    parts.append(note(text))
    if found.dependence is not None and len(found.order) > 1:
        order = found.order[spread(len(found.order), MAX_COLUMNS)]
        names = [f"{found.names[d]}" for d in order]
        parts.append("<h3>Dependence of the columns</h3>")
        parts.append(
            diagrams.heat(
                found.dependence[np.ix_(order, order)],
                names,
                what="probability of dependence",
                title="Dependence of columns",
                percent=True,
                labels=found.home[order],
                picks=False,
                names=True,
            )
        )
        text = "The probability that two columns share a view. The columns of a view are adjacent."
        if len(order) < len(found.order):
            text += f" {len(order)} of {len(found.order):,} columns are shown, evenly spaced."
        parts.append(note(text))
    parts += _cells(context)
    sentence = getattr(getattr(context.model, "diagnostics_", None), "sentence", None)
    if sentence and not is_sampled(context.model):
        parts.append(f"<p>{safe(sentence, 800)}</p>")
    return section("The views", *parts)


def _cells(context: ReportContext) -> list[str]:
    """The cells of the table for each view, with the rows in the order of its groups."""
    found = context.views
    parts: list[str] = []
    if found is None or context.table is None or context.table.sparse is not None:
        return []
    for v, view in enumerate(found.views):
        names = [name for name, _ in view.columns[:MAX_CELL_COLUMNS]]
        if not view.counted or len(parts) >= MAX_MAPS:
            continue
        rows, labels, columns, values = view_cells(context.given, context.table, names, v)
        if columns:
            row_names = [f"{context.name(int(i))} ({group_name(int(k))})" for i, k in zip(rows, labels)]
            title = f"Cells of view {v + 1}"
            picture = diagrams.heat(
                values,
                row_names,
                columns=columns,
                what="rank",
                title=title,
                percent=True,
                labels=labels,
                picks=False,
            )
            parts.append(
                f"<h3>View {v + 1}: {', '.join(safe(name, 24) for name in columns[:8])}</h3>{picture}"
            )
    if parts:
        parts.append(
            note(
                "The rows are in the order of the groups of the view. The color is the rank (or the level) of a cell "
                f"in its column. At most {MAX_MAPS} views, {MAX_CELL_COLUMNS} columns and 200 evenly spaced rows are "
                "shown."
            )
        )
    return parts


def _view(v: int, view: View) -> str:
    listed = ", ".join(
        f"<span{tip(f'{name}: {percent(p)}')}>{safe(name, 40)}</span>"
        + (f" ({percent(p)})" if p < 0.95 else "")
        for name, p in view.columns[:MAX_LISTED]
    )
    more = len(view.columns) - MAX_LISTED
    listed += f", and {more:,} more" if more > 0 else ""
    total = max(int(view.sizes.sum()), 1)
    fills = "".join(
        f'<span class="fill k{k % 10}" style="width:{100 * n / total:.2f}%"'
        f"{tip(f'{group_name(k)}: {n:,} rows')}></span>"
        for k, n in enumerate(view.sizes[:60].tolist())
    )
    likely = sorted(view.n_clusters_posterior.items(), key=lambda item: -item[1])[:3]
    numbers = ", ".join(f"{K} ({percent(p)})" for K, p in likely)
    return (
        f'<tr><td class="c"><span class="key k{v % 10}"></span>view {v + 1}</td><td>{listed}</td>'
        f'<td class="w">{count(len(view.sizes), "group")}<span class="bar">{fills}</span></td><td>{numbers}</td></tr>'
    )


def tree_section(context: ReportContext) -> str:
    """The last merges of the tree."""
    found = context.tree
    if found is None:
        return ""
    text = (
        "The last merges of the tree. Dots are branches; a branch with one group has the color of this group."
    )
    if found.log_odds is not None:
        text += " The odds are against the dashed merges: the tree is cut there."
    if found.width() < found.n_leaves:
        text += f" The tree has {found.n_leaves:,} leaves; {found.width()} branches are shown."
    return section("The tree", diagrams.tree(found), note(text))


def block_section(context: ReportContext) -> str:
    """Clusters of rows by clusters of columns."""
    found = context.blocks
    if found is None:
        return ""
    text = (
        f"Groups of rows by groups of columns, drawn in proportion. The color is the {safe(found.meaning)}."
    )
    if max(len(found.row_sizes), len(found.column_sizes)) > MAX_BLOCKS:
        text += f" The {MAX_BLOCKS} largest groups of rows and of columns are shown."
    return section("The blocks", diagrams.blocks(found, MAX_BLOCKS), note(text))
