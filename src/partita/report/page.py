"""The page: sections in the order of the questions people have."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from sklearn.exceptions import NotFittedError

from partita.files import write_atomically
from partita.report import answer, certainty, course, groups, structure
from partita.report.context import Subject, gather
from partita.report.markup import section
from partita.report.recipe import recipe
from partita.summaries.words import count, safe

__all__ = ["write_report"]

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
) -> Path:
    """Write a fitted model as one HTML file that opens anywhere, offline.

    The page begins with the answer in plain words; then, as far as the model has them: sizes, how many groups, who
    belongs together, what sets each cluster apart, how sure the model is, members, views, tree, blocks, how the fit
    went, what was unusual, and how to repeat it. Figures show numbers at the pointer, a click on a cluster
    highlights it everywhere, and tables sort; without JavaScript it is the same page at rest. Text from the data is
    escaped and shortened; large things are drawn from an even sample, and the page says so.

    Parameters
    ----------
    model : fitted estimator
        Any estimator with ``labels_``, or with ``view_labels_`` and ``feature_views_``.
    path : str or path
        The file to write; it is replaced as a whole.
    X : array or data frame, optional
        What was fitted. A table adds a scatter plot, the least certain rows and, where the model has no profiles of
        its own, what sets each cluster apart; the label matrix of a consensus adds what each member looks like.
    title : str, optional
        Heading of the page.
    truth : array-like, optional
        Known groups of the rows, to compare with (None or NaN: not known).
    table : array or data frame, optional
        Columns of the same objects to describe the clusters by, where X is no table (a consensus of labels).
    names : array-like, optional
        A name for each object.

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
    subject = gather(model, X, table, truth, names)
    sections = [
        answer.answer(subject) + answer.legend(subject),
        groups.sizes(subject) if subject.views is None else "",
        structure.view_section(subject),
        structure.how_many(subject),
        certainty.together(subject),
        groups.cards(subject),
        certainty.certainty(subject),
        structure.member_section(subject),
        structure.tree_section(subject),
        structure.block_section(subject),
        groups.known_groups(subject),
        course.course(model),
        course.notes(model),
        section("To do it again", *recipe(model, groups.weight_is_uneven(subject))),
    ]
    return _replace(Path(path), _page(_heading(model, subject, title), _within(sections, MAX_BYTES)))


def _heading(model: Any, subject: Subject, title: str | None) -> str:
    if title:
        return safe(title, 120)
    if subject.views is not None:
        return f"{type(model).__name__}: {count(sum(len(view.sizes) > 1 for view in subject.views.views), 'view')}"
    return f"{type(model).__name__}: {count(int(model.n_clusters_), 'group')}"


def _within(sections: list[str], limit: int) -> list[str]:
    """Leave out the largest sections, but never the answer, until the page is small enough."""
    sections = list(sections)
    while sum(len(one.encode("utf-8", "replace")) for one in sections) > limit - 100_000:
        largest = max(range(1, len(sections)), key=lambda at: len(sections[at]))
        if len(sections[largest]) < 1000:
            break
        name = sections[largest].split("<h2>", 1)[-1].split("</h2>", 1)[0]
        sections[largest] = section(
            name, f'<p class="note">Left out: the page would be larger than {limit // 1_000_000} MB.</p>'
        )
    return [one for one in sections if one]


@cache
def _part(name: str) -> str:
    return resources.files("partita.report").joinpath(name).read_text(encoding="utf-8")


def _page(heading: str, sections: list[str]) -> str:
    script = _part("page.js")
    # only this very script may run, whatever else should find its way into the page
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
