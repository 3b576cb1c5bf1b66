"""Sections that only some models have: numbers of groups, members, views, trees, blocks."""

from __future__ import annotations

import numpy as np

from partita.report import maps, pictures
from partita.report.context import Subject, is_sampled
from partita.report.markup import bar, note, section, table, tip
from partita.summaries import View, view_cells
from partita.summaries.pairs import spread
from partita.summaries.words import count, number, percent, safe

__all__ = ["block_section", "how_many", "member_section", "tree_section", "view_section"]

MOST_MEMBERS, MOST_COLUMNS, MOST_VIEWS, MOST_LISTED = 60, 200, 20, 12
MOST_MAPS, MOST_CELL_COLUMNS = 6, 40


def how_many(subject: Subject) -> str:
    """P(K) beside the prior, and the score of each number of groups."""
    found = subject.counts
    if found is None:
        return ""
    parts = []
    if len(found.n_clusters) and found.posterior.sum() > 0:
        svg, cut = pictures.counts(found)
        prior = bool(np.isfinite(found.prior).any())
        key = '<span class="swatch c0"></span>with the data<span class="swatch dot"></span>before the data'
        parts = [svg, *([note(key)] if prior else [])]
        if found.meaning == "draws":
            text = "The share of the draws with each number of groups."
            text += " Before the data: the prior at the concentration that was learned." if prior else ""
        elif found.meaning == "model":
            text = "The probability of each number of groups, as the model gives it."
        else:
            text = (
                "How often each number is the best one when the members are drawn anew (Bayesian bootstrap)."
            )
        parts.append(note(text + (f" {cut} less probable numbers are not shown." if cut > 0 else "")))
    inner = getattr(subject.model, "consensus_", subject.model)
    svg = pictures.curve(found.scores, int(inner.n_clusters_), "number of groups", found.score_name)
    if svg:
        parts += [
            svg,
            note("The score of each number of groups that was looked at; the line is the one chosen."),
        ]
    return section("How many groups", *parts)


def member_section(subject: Subject) -> str:
    """The members: weight, clusters, agreement with the answer; and which of them repeat each other."""
    found = subject.members
    if found is None:
        return ""
    M = len(found.weights)
    order = np.argsort(-found.weights, kind="stable")
    parts, top = [], max(float(found.weights.max(initial=0.0)), 1e-12)
    if M > MOST_MEMBERS:
        svg, drawn = pictures.ranked(
            found.weights, found.names, "Weights of members", "members by weight", "weight"
        )
        cut = f" {drawn} of {M:,} are drawn, evenly spaced." if drawn < M else ""
        parts += [svg, note(f"The weight of every member, the heaviest first.{cut}")]
    head, numeric = ["member", "", "weight"], [2]
    if found.n_clusters is not None:
        head, numeric = [*head, "clusters", "not seen", "agreement"], [2, 3, 4, 5]
    rows = []
    for m in order[:MOST_MEMBERS].tolist():
        cells = f'<td>{safe(found.names[m], 40)}</td><td class="w">{bar(found.weights[m] / top)}</td>'
        cells += f'<td class="n">{number(float(found.weights[m]))}</td>'
        if found.n_clusters is not None:
            cells += f'<td class="n">{found.n_clusters[m]:,}</td><td class="n">{percent(float(found.missing[m]))}</td>'  # type: ignore[index]
            cells += f'<td class="n">{found.agreement[m]:.2f}</td>'  # type: ignore[index]
        rows.append(f"<tr>{cells}</tr>")
    text = _weight_words(subject) + (" Scroll the table for the rest." if M > 15 else "")
    if found.n_clusters is not None:
        text += " Agreement is the adjusted Rand index with the answer (1 is the same grouping, 0 is chance)."
    if M > MOST_MEMBERS:
        rest = float(found.weights[order[MOST_MEMBERS:]].sum() / max(found.weights.sum(), 1e-300))
        text += f" The {MOST_MEMBERS} heaviest of {M:,} are listed; the others hold {percent(rest)} of the weight."
    return section(
        "The members", *parts, table(head, rows, numeric=numeric, tall=True), note(text), _repeats(subject)
    )


def _weight_words(subject: Subject) -> str:
    inner = getattr(subject.model, "consensus_", subject.model)
    if hasattr(inner, "explained_"):
        return (
            "The weight is the given one times the share of what the member says about pairs that the groups explain: "
            "near 0 for noise."
        )
    if subject.members is not None and subject.members.learned:
        return "Weights as the estimator found or was given them."
    return "All members that take part weigh the same."


def _repeats(subject: Subject) -> str:
    found = subject.members
    if found is None or found.similarity is None or found.compared is None:
        return ""
    names = [found.names[m] for m in found.compared]
    picture = maps.heat(
        found.similarity, names, what="adjusted Rand index", title="Agreement of members", names=True
    )
    text = (
        "Members against members, those alike side by side: dark blocks are members that repeat each other."
    )
    if len(names) < len(found.weights):
        text += f" {len(names)} of {len(found.weights):,} are drawn, evenly spaced."
    return "<h3>Which members repeat each other</h3>" + picture + note(text)


def view_section(subject: Subject) -> str:
    """Views: their columns and groups, and how sure it is that two columns belong together."""
    found = subject.views
    if found is None:
        return ""
    rows = [_view(v, view) for v, view in enumerate(found.views[:MOST_VIEWS])]
    parts = [table(["view", "columns", "groups of rows", "numbers of groups"], rows, kind="views")]
    text = "The bar shows the sizes of the groups."
    if found.names:
        text += " A column is listed where its probability to be in the view is at least one half."
    if len(found.views) > MOST_VIEWS:
        text += f" The first {MOST_VIEWS} of {len(found.views)} views are listed."
    parts.append(note(text))
    if found.dependence is not None and len(found.order) > 1:
        order = found.order[spread(len(found.order), MOST_COLUMNS)]
        names = [f"{found.names[d]}" for d in order]
        parts.append("<h3>Which columns depend on each other</h3>")
        parts.append(
            maps.heat(
                found.dependence[np.ix_(order, order)],
                names,
                what="probability to depend on each other",
                title="Dependence of columns",
                percent=True,
                labels=found.home[order],
                picks=False,
                names=True,
            )
        )
        text = "The probability that two columns share a view; columns of a view lie side by side."
        if len(order) < len(found.order):
            text += f" {len(order)} of {len(found.order):,} columns are drawn, evenly spaced."
        parts.append(note(text))
    parts += _cells(subject)
    sentence = getattr(getattr(subject.model, "diagnostics_", None), "sentence", None)
    if sentence and not is_sampled(subject.model):
        parts.append(f"<p>{safe(sentence, 800)}</p>")
    return section("The views", *parts)


def _cells(subject: Subject) -> list[str]:
    """The table itself, view by view: its columns, and the rows in the order of its groups."""
    found = subject.views
    parts: list[str] = []
    if found is None or subject.table is None or subject.table.sparse is not None:
        return []
    for v, view in enumerate(found.views):
        names = [name for name, _ in view.columns[:MOST_CELL_COLUMNS]]
        if len(view.sizes) < 2 or len(parts) >= MOST_MAPS:
            continue
        rows, labels, columns, values = view_cells(subject.given, subject.table, names, v)
        if columns:
            told = [f"{subject.name(int(i))} (cluster {k})" for i, k in zip(rows, labels)]
            title = f"Cells of view {v + 1}"
            picture = maps.heat(
                values,
                told,
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
        cut = (
            f" At most {MOST_MAPS} views, {MOST_CELL_COLUMNS} columns and 200 rows (evenly spaced) are drawn."
        )
        parts.append(
            note(
                "Columns of a view by rows in the order of its groups; the colour is the rank (or level) in its column."
                + cut
            )
        )
    return parts


def _view(v: int, view: View) -> str:
    listed = ", ".join(
        f"<span{tip(f'{name}: {percent(p)}')}>{safe(name, 40)}</span>"
        + (f" ({percent(p)})" if p < 0.95 else "")
        for name, p in view.columns[:MOST_LISTED]
    )
    more = len(view.columns) - MOST_LISTED
    listed += f", and {more:,} more" if more > 0 else ""
    total = max(int(view.sizes.sum()), 1)
    fills = "".join(
        f'<span class="fill k{k % 10}" style="width:{100 * n / total:.2f}%"{tip(f"cluster {k}: {n:,} rows")}></span>'
        for k, n in enumerate(view.sizes[:60].tolist())
    )
    likely = sorted(view.n_clusters_posterior.items(), key=lambda item: -item[1])[:3]
    numbers = ", ".join(f"{K} ({percent(p)})" for K, p in likely)
    return (
        f'<tr><td class="c"><span class="key k{v % 10}"></span>view {v + 1}</td><td>{listed}</td>'
        f'<td class="w">{count(len(view.sizes), "group")}<span class="bar">{fills}</span></td><td>{numbers}</td></tr>'
    )


def tree_section(subject: Subject) -> str:
    """The top of the tree of merges."""
    found = subject.tree
    if found is None:
        return ""
    text = "The last merges of the tree; dots are branches, in the colour of their group where they hold one alone."
    if found.log_odds is not None:
        text += " A dashed merge has the odds against it: that is where the tree is cut."
    if found.width() < found.n_leaves:
        text += f" The top {found.width()} branches of {found.n_leaves:,} leaves are drawn."
    return section("The tree", maps.tree(found), note(text))


def block_section(subject: Subject) -> str:
    """Clusters of rows by clusters of columns."""
    found = subject.blocks
    if found is None:
        return ""
    most = 60
    text = (
        f"Groups of rows by groups of columns, as large as they are; the colour is the {safe(found.meaning)}."
    )
    if max(len(found.row_sizes), len(found.column_sizes)) > most:
        text += f" The {most} largest of each are drawn."
    return section("The blocks", maps.blocks(found, most), note(text))
