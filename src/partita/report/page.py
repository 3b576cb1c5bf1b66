"""The page: sections in the order of the questions people have."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from partita.report import pictures, sampled
from partita.report.findings import Agreement, Findings, Trait, compare, examine
from partita.report.recipe import recipe
from partita.report.style import STYLE
from partita.report.words import count, number, percent, safe
from partita.table import Table, read_table

__all__ = ["write_report"]

THRESHOLD = 0.8
MAX_CARDS, MAX_TRAITS, MAX_GROUPS, MAX_ROWS = 40, 10, 30, 12
NOTEWORTHY = ("missing", "constant", "not_converged", "bound_reached", "cut_short")  # besides all warnings
ENGINES = {"vb": "variational Bayes", "em": "expectation maximisation", "cvb": "collapsed variational Bayes"}


def write_report(model: Any, path: Any, X: Any = None, title: str | None = None, truth: Any = None) -> Path:
    """Write a fitted model as one HTML file that opens anywhere, offline.

    The page begins with the answer in plain words; then sizes, what sets each cluster apart, how sure the model is, how
    the fit went, and how to repeat it. Text from the data is escaped and shortened; long lists and large
    scatter plots are cut, and the page says so.

    Parameters
    ----------
    model : fitted estimator
        A :class:`~partita.Mixture` or :class:`~partita.LatentClass`.
    path : str or path
        The file to write; it is replaced as a whole.
    X : array or data frame, optional
        The table that was fitted: adds a scatter plot of two columns and the least certain rows.
    title : str, optional
        Heading of the page.
    truth : array-like, optional
        Known groups of the rows, to compare with (None or NaN: not known).

    Returns
    -------
    pathlib.Path

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> from partita import Mixture
    >>> from partita.report import write_report
    >>> X = np.random.default_rng(0).normal(size=(40, 1))
    >>> model = Mixture("gaussian", n_clusters=2, inference="em", random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_report(model, pathlib.Path(folder) / "report.html").read_text(encoding="utf-8")
    >>> page.startswith("<!doctype html>"), "2 groups" in page
    (True, True)
    """
    check_is_fitted(model, "profiles_")
    findings = examine(model, THRESHOLD)
    table = None if X is None else read_table(X, schema=model.schema_)
    if table is not None and table.n_rows != findings.n_rows:
        raise ValueError(
            f"X has {table.n_rows} rows and the model was fitted to {findings.n_rows}: pass that table"
        )
    agreement = None if truth is None else compare(model, truth)
    sections = [
        _answer(model, findings, agreement),
        _sizes(model, findings),
        _cards(findings),
        _certainty(model, findings, X, table),
        *([] if agreement is None else [_truth(agreement)]),
        _course(model),
        _notes(model),
        _section("To do it again", *recipe(model, _is_weighted(model, len(model.labels_)))),
    ]
    heading = safe(title or f"{type(model).__name__}: {count(model.n_clusters_, 'group')}", 120)
    page = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{heading}</title><style>{STYLE}</style></head>\n<body><h1>{heading}</h1>\n"
        + "\n".join(sections)
        + "\n</body></html>\n"
    )
    return _replace(Path(path), page)


def _replace(path: Path, page: str) -> Path:
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.write_text(page, encoding="utf-8", errors="replace")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return path


# ---- the answer ------------------------------------------------------------------------------------------------


def _answer(model: Any, found: Findings, agreement: Agreement | None) -> str:
    sizes = found.sizes[found.sizes > 0]
    given = getattr(model, "n_clusters", None) is not None
    lines = [
        f"<strong>{count(model.n_clusters_, 'group')}</strong>"
        + (" (the number that was asked for)" if given and model.n_clusters == model.n_clusters_ else "")
        + _how_many(model, given)
        + f" in {count(found.n_rows, 'row')} and {count(found.n_columns, 'column')}"
        + (
            f"; the largest has {count(int(sizes.max()), 'row')} ({percent(sizes.max() / found.n_rows)}), "
            f"the smallest {int(sizes.min()):,} ({percent(sizes.min() / found.n_rows)})."
            if len(sizes) > 1
            else "."
        )
    ]
    if found.n_rows > found.sizes.sum():
        lines.append(f"{count(int(found.n_rows - found.sizes.sum()), 'row')} outside: outliers.")
    if given and model.n_clusters != model.n_clusters_:
        empty = model.n_clusters - model.n_clusters_
        lines.append(
            f"Of the {model.n_clusters} that were asked for, {empty} {'has' if empty == 1 else 'have'} no rows."
        )
    if (
        sampled.is_sampled(model) and "do_not_trust_k" not in model.fit_report_
    ):  # else among the warnings below
        lines.append(sampled.verdict(model))
    if len(sizes) > 1:
        lines.append(_uncertain(model, found))
        lines.append("The columns that tell the groups apart best: " + _list(found.telling[:3]) + ".")
    if agreement is not None:
        lines.append(
            f"Against the known groups the adjusted Rand index is {agreement.adjusted_rand:.2f} "
            "(1 is the same grouping, 0 is chance)."
        )
    return f'<div class="answer">{"".join(f"<p>{line}</p>" for line in lines)}{_unusual(model)}</div>'


def _how_many(model: Any, given: bool) -> str:
    known = getattr(model, "n_clusters_posterior_", None)
    return "" if given or not known else f", {sampled.counts_in_words(known)},"


def _uncertain(model: Any, found: Findings) -> str:
    unsure, drawn = found.n_uncertain, sampled.is_sampled(model)
    if not unsure:
        if drawn:
            return f"No row is uncertain: each shares its group in at least {percent(found.threshold)} of the draws."
        return f"No row is uncertain: each has a probability of at least {found.threshold:g} for its group."
    why = (
        f"they share a cluster with the other rows of their group in less than {percent(found.threshold)} of the draws"
        if drawn
        else f"the model gives their own group a probability below {found.threshold:g}"
    )
    return (
        f"<strong>{count(unsure, 'row')} ({percent(unsure / found.n_rows)}) "
        f"{'is' if unsure == 1 else 'are'} uncertain</strong>: {why}."
    )


def _list(telling: list[tuple[str, float]]) -> str:
    return ", ".join(f"<em>{safe(name)}</em>" for name, _ in telling)


def _unusual(model: Any) -> str:
    notes = [note for note in model.fit_report_ if note.level == "warning" or note.code in NOTEWORTHY]
    if not notes:
        return "<p>Nothing unusual was noticed about the data.</p>"
    items = "".join(f"<li>{safe(note.message, 400)}</li>" for note in notes[:6])
    return f"<p>Worth knowing:</p><ul>{items}</ul>"


# ---- sections --------------------------------------------------------------------------------------------------


def _section(title: str, *parts: str) -> str:
    return f"<section><h2>{title}</h2>{''.join(parts)}</section>"


def _note(text: str) -> str:
    return f'<p class="note">{text}</p>'


def _sizes(model: Any, found: Findings) -> str:
    rows, shown = [], np.flatnonzero(found.sizes)
    largest = max(int(found.sizes.max()), 1)
    for k in shown[: 3 * MAX_CARDS]:
        rows.append(
            f'<tr><td class="c">{_key(k)}cluster {k}</td><td class="w">{pictures.bar(found.sizes[k] / largest, k)}</td>'
            f'<td class="n">{found.sizes[k]:,}</td><td class="n">{percent(found.sizes[k] / found.n_rows)}</td>'
            f'<td class="n">{found.uncertain[k]:,}</td><td class="n">{found.confidence[k]:.2f}</td></tr>'
        )
    head = (
        '<tr><th>group</th><th></th><th class="n">rows</th><th class="n">share</th><th class="n">uncertain</th>'
        '<th class="n">confidence</th></tr>'
    )
    notes = []
    if len(shown) > 3 * MAX_CARDS:
        notes.append(_note(f"The {3 * MAX_CARDS} largest of {len(shown)} are shown."))
    total = getattr(model, "weight_total_", found.n_rows)
    if abs(total - found.n_rows) > 1e-9 * max(total, 1):
        notes.append(
            _note(f"Rows are counted here; with their weights they stand for {number(total)} objects.")
        )
    return _section(
        "How large the groups are", f'<div class="scroll"><table>{head}{"".join(rows)}</table></div>', *notes
    )


def _is_weighted(model: Any, n_rows: int) -> bool:
    total = getattr(model, "weight_total_", n_rows)
    return abs(total - n_rows) > 1e-9 * max(total, 1)


def _key(k: int) -> str:
    return f'<span class="key fill c{k % 10}"></span>'


def _cards(found: Findings) -> str:
    shown = np.flatnonzero(found.sizes)
    cards = [_card(k, found) for k in shown[:MAX_CARDS]]
    notes = [
        _note(
            "The columns that set a group apart most come first. Numbers are means (± standard deviation); a "
            "percentage is the share of the value that differs most. The bar says how far the cell of this one column, "
            "on average, tells a member of the group from the other rows: empty is not at all, full is completely."
        )
    ]
    if len(shown) > MAX_CARDS:
        notes.append(_note(f"The {MAX_CARDS} largest of {len(shown)} groups are shown."))
    if found.n_columns > MAX_TRAITS:
        notes.append(
            _note(f"The {MAX_TRAITS} most telling of {found.n_columns} columns are shown for each group.")
        )
    return _section("What makes each group different", *notes, f'<div class="cards">{"".join(cards)}</div>')


def _card(k: int, found: Findings) -> str:
    head = '<tr><th>column</th><th>this group</th><th>all rows</th><th class="w"></th></tr>'
    rows = "".join(_trait(trait, k) for trait in found.traits[k][:MAX_TRAITS])
    return (
        f'<div class="card k{k % 10}"><h3>cluster {k}: {count(int(found.sizes[k]), "row")}</h3>'
        f'<div class="scroll"><table class="traits">{head}{rows}</table></div></div>'
    )


def _trait(trait: Trait, k: int) -> str:
    return (
        f"<tr><td>{safe(trait.column, 40).replace('_', '_<wbr>')}</td>"
        f"<td>{safe(trait.here)}</td><td>{safe(trait.whole)}</td>"
        f'<td class="w">{pictures.bar(trait.strength, k)}</td></tr>'
    )


def _certainty(model: Any, found: Findings, X: Any, table: Table | None) -> str:
    confidence, drawn = np.asarray(model.confidence_), sampled.is_sampled(model)
    below = "probability to sit with the rows of its cluster" if drawn else "probability of its own cluster"
    parts = [
        pictures.histogram(confidence, found.threshold, below),
        _note(
            "Confidence is the share of the draws in which a row is together with another row of its group, on average "
            "over those rows. It includes the doubt about the number of groups, not the doubt about the kind of model."
            if drawn
            else "Confidence is the probability of a row's own group under the fitted model. It does not include the "
            "doubt about the model itself, nor about the number of groups."
        ),
    ]
    if table is not None:
        parts += [_scatter(model, found, table), _least_certain(model, X)]
    return _section("How sure the model is", *parts)


def _scatter(model: Any, found: Findings, table: Table) -> str:
    names = [
        name
        for name, _ in found.telling
        if model.schema_.column(name).kind in ("real", "count") and table.sparse is None
    ][:2]
    if len(names) < 2:
        return ""
    U, V = (np.asarray(table.column(name).values, float) for name in names)
    firm = np.asarray(model.confidence_) >= found.threshold
    svg, drawn, seen = pictures.scatter(U, V, model.labels_, firm, (names[0], names[1]))
    absent = found.n_rows - seen
    text = "The two most telling numeric columns, coloured by group; uncertain rows are hollow."
    if np.any(np.asarray(model.labels_) < 0):
        text += " Outliers are black."
    if drawn < seen:
        text += f" {drawn:,} of {seen:,} rows are drawn, evenly spaced."
    if absent:
        text += f" {count(absent, 'row')} without one of the two values {'is' if absent == 1 else 'are'} not drawn."
    return svg + _note(text)


def _least_certain(model: Any, X: Any) -> str:
    confidence, drawn = np.asarray(model.confidence_), sampled.is_sampled(model)
    if len(model.weights_) < 2 or len(confidence) * len(model.weights_) > 20_000_000:
        return ""
    rows = np.argsort(confidence, kind="stable")
    rows = rows[np.asarray(model.labels_)[rows] >= 0][:MAX_ROWS]
    R = model.predict_proba(X)[rows]
    others = np.where(np.arange(R.shape[1]) == model.labels_[rows][:, None], -1.0, R)
    second = others.argmax(axis=1)
    body = "".join(
        f'<tr><td class="n">{i}</td><td class="c">{_key(int(model.labels_[i]))}cluster {model.labels_[i]}</td>'
        f'<td class="n">{confidence[i]:.2f}</td><td class="c">{_key(int(s))}cluster {s}</td>'
        f'<td class="n">{r[s]:.2f}</td></tr>'
        for i, s, r in zip(rows, second, R)
    )
    head = (
        f'<tr><th class="n">row</th><th>group</th><th class="n">{"confidence" if drawn else "probability"}</th>'
        '<th>next</th><th class="n">probability</th></tr>'
    )
    text = "Rows are counted from 0."
    if drawn:
        text += (
            " The probability of the next group is that of the one partition shown here, not of all draws."
        )
    return (
        f'<h3>The {len(rows)} least certain rows</h3><div class="scroll"><table>{head}{body}</table></div>'
        + _note(text)
    )


def _truth(agreement: Agreement) -> str:
    used = np.flatnonzero(agreement.table.sum(axis=0))[:MAX_GROUPS]
    head = "<tr><th>known group</th>" + "".join(f'<th class="n">{_key(k)}{k}</th>' for k in used) + "</tr>"
    body = "".join(
        f"<tr><td>{safe(name, 40)}</td>" + "".join(f'<td class="n">{row[k]:,}</td>' for k in used) + "</tr>"
        for name, row in list(zip(agreement.names, agreement.table))[:MAX_GROUPS]
    )
    cut = len(agreement.names) > MAX_GROUPS or np.count_nonzero(agreement.table.sum(axis=0)) > MAX_GROUPS
    text = (
        f"Adjusted Rand index {agreement.adjusted_rand:.3f}, normalised mutual information "
        f"{agreement.normalized_mutual_info:.3f}."
    ) + (f" The first {MAX_GROUPS} rows and columns are shown." if cut else "")
    return _section(
        "Beside the known groups", f'<div class="scroll"><table>{head}{body}</table></div>', _note(text)
    )


def _course(model: Any) -> str:
    if sampled.is_sampled(model):
        return _section("How the fit went", *sampled.course(model), _criteria(model))
    trace = np.asarray(model.objective_trace_)
    svg, drawn = pictures.line(trace)
    engine = ENGINES.get(getattr(model, "inference", ""), "the engine")
    end = "converged" if model.converged_ else "<strong>did not converge</strong>"
    text = f"The best start of {engine} {end} after {count(len(trace), 'iteration')}"
    text += f"; its objective rose to {trace[-1]:,.2f}." if len(trace) else "."
    if drawn < len(trace):
        text += f" {drawn} of {len(trace)} iterations are drawn."
    return _section("How the fit went", f"<p>{text}</p>", svg, _criteria(model))


def _criteria(model: Any) -> str:
    known = {
        "lower_bound_": "lower bound of the log evidence",
        "log_likelihood_": "log likelihood",
        "bic_": "BIC",
        "aic_": "AIC",
        "entropy_r2_": "relative entropy R²",
    }
    rows = "".join(
        f'<tr><td>{words}</td><td class="n">{getattr(model, name):,.2f}</td></tr>'
        for name, words in known.items()
        if hasattr(model, name)
    )
    return f'<div class="scroll"><table>{rows}</table></div>'


def _notes(model: Any) -> str:
    items = "".join(
        f"<li>{'<strong>warning:</strong> ' if note.level == 'warning' else ''}{safe(note.message, 600)}</li>"
        for note in list(model.fit_report_)[:50]
    )
    more = len(model.fit_report_) - 50
    return _section(
        "The fit report",
        f"<ul>{items}</ul>" if items else "<p>Nothing unusual.</p>",
        _note(f"{more} more notes are not shown.") if more > 0 else "",
    )
