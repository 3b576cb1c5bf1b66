"""The report: one HTML page with a section per question."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from sklearn.exceptions import NotFittedError

from partita.files import write_atomically
from partita.report import columns, confidence, fit, grains, groups, overview, structure
from partita.report.markup import note, section
from partita.summaries.context import ReportContext, build_context
from partita.wording import count, safe

MAX_BYTES = 15_000_000


def write_report(
    model: Any,
    path: Any,
    X: Any = None,
    title: str | None = None,
    truth: Any = None,
    *,
    table: Any = None,
    names: Any = None,
    at: int | str | None = None,
) -> Path:
    """Write a report about a fitted model: one HTML file that needs no other file and no network.

    The page begins with how the table was read and what is unusual about it, and with the result in a few sentences.
    The sections that follow depend on the model: sizes of the groups, a portrait of each group (its name and the
    columns that distinguish it), number of groups, co-clustering, confidence, members, views, tree, blocks, the course
    of the fit, its notes, and the call that repeats it. If the model has a grain, a slider regroups the tables, the
    portraits and the pictures for other numbers of groups. Figures show values at the pointer, a click on a cluster
    highlights it in all figures, and tables can be sorted. Without JavaScript the page shows the same content. Text
    from the data is escaped and shortened. Large data are drawn from an even sample, and the page says so.

    Parameters
    ----------
    model : fitted estimator
        Any estimator with ``labels_``, or with ``view_labels_`` and ``feature_views_``.
    path : str or path
        The file to write. An existing file is replaced as a whole.
    X : array or data frame, default=None
        What was fitted. With a table the page has a scatter plot, the least certain rows and, for models without
        ``profiles_``, the columns that distinguish each cluster; with the label matrix of a consensus it compares the
        members.
    title : str, default=None
        Heading of the page.
    truth : array-like, default=None
        Known groups of the rows, which are compared with the clusters (None or NaN: not known).
    table : array or data frame, default=None
        Columns of the same objects that describe the clusters, if X is not a table but a label matrix.
    names : array-like, default=None
        One name per object.
    at : int or str, default=None
        The level of the grain at which the page begins: a number of groups, or the name of a level ("coarse"). None is
        the answer of the model. The slider of the page moves to the other levels.

    Returns
    -------
    pathlib.Path

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from partita import Consensus
    >>> from partita.report import write_report
    >>> model = Consensus(random_state=0).fit([[0, 0, 1], [0, 0, 1], [1, 1, 1], [1, 1, 0]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_report(model, pathlib.Path(folder) / "report.html").read_text(encoding="utf-8")
    >>> page.startswith("<!doctype html>"), "2 groups" in page
    (True, True)
    """
    if not hasattr(model, "labels_") and not hasattr(model, "view_labels_"):
        raise NotFittedError(
            f"this {type(model).__name__} is not fitted (it has neither labels_ nor view_labels_): call fit first"
        )
    context = build_context(model, X, table=table, truth=truth, names=names, at=at)
    return write_context(context, path, title)


def write_context(context: ReportContext, path: Any, title: str | None = None) -> Path:
    """Write the page of a model whose summaries are already computed."""
    model = context.given
    sections = [
        columns.data_box(model)
        + overview.overview(context)
        + grains.slider(context)
        + grains.part("legend", context),
        grains.grain_section(context),
        grains.part("sizes", context) if context.views is None else "",
        structure.view_section(context),
        grains.part("traits", context),
        structure.count_section(context),
        confidence.pair_section(context),
        grains.part("confidence", context),
        confidence.scatter_section(context),
        structure.member_section(context),
        structure.tree_section(context),
        structure.block_section(context),
        grains.part("truth", context),
        fit.fit_section(model),
        fit.notes_section(model),
        fit.repeat_section(model, groups.has_weights(context)),
        grains.templates(context),
    ]
    return _replace(Path(path), _page(_heading(model, context, title), _within(sections, MAX_BYTES)))


def _heading(model: Any, context: ReportContext, title: str | None) -> str:
    if title:
        return safe(title, 120)
    if context.views is not None:
        return f"{type(model).__name__}: {count(sum(len(view.sizes) > 1 for view in context.views.views), 'view')}"
    return f"{type(model).__name__}: {count(int(model.n_clusters_), 'group')}"


def _within(sections: list[str], limit: int) -> list[str]:
    """Leave out the largest sections, but never the overview, until the page is small enough."""
    sections = list(sections)
    while sum(len(one.encode("utf-8", "replace")) for one in sections) > limit - 100_000:
        largest = max(range(1, len(sections)), key=lambda at: len(sections[at]))
        if len(sections[largest]) < 1000:
            break
        name = sections[largest].split("<h2>", 1)[-1].split("</h2>", 1)[0]
        sections[largest] = section(
            name, note(f"This section is left out: the page would be larger than {limit // 1_000_000} MB.")
        )
    return [one for one in sections if one]


@cache
def _part(name: str) -> str:
    return resources.files("partita.report").joinpath(name).read_text(encoding="utf-8")


def _page(heading: str, sections: list[str]) -> str:
    script = _part("page.js")
    # only this script may run, whatever else the page contains
    known = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{known}'"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f"<title>{heading}</title><style>{_part('page.css')}</style></head>\n<body><h1>{heading}</h1>\n"
        + "\n".join(sections)
        + f"\n<script>{script}</script></body></html>\n"
    )


def _replace(path: Path, page: str) -> Path:
    with write_atomically(path) as temporary:
        temporary.write_text(page, encoding="utf-8", errors="replace", newline="\n")
    return path
