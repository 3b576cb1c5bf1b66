"""Views of a table: the columns and the clusters of each view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from partita.summaries.counts import counts_in_words
from partita.summaries.pairs import order_objects, spread
from partita.table import Table
from partita.views.draws import LIKELY, is_view
from partita.wording import count


class View(NamedTuple):
    """One view: its columns, the most probable first, and the sizes of its clusters."""

    columns: list[tuple[str, float]]  # name, probability
    sizes: NDArray[np.int64]
    n_clusters_posterior: dict[int, float]
    counted: bool  # whether at least two columns share its clusters; otherwise it is no view for a reader


class ViewMap(NamedTuple):
    """All views. `names` is empty if the model does not assign columns to views."""

    views: list[View]
    names: list[str]
    order: NDArray[np.int64]  # of the columns, so that those of a view are adjacent
    home: NDArray[np.int64]  # most probable view of each column, -1 for columns in no view
    dependence: NDArray[np.float64] | None  # [column, column], in the order of the table
    n_views_posterior: dict[int, float]
    set_aside: tuple[str, ...] = ()  # columns that are not modeled


def view_map(model: Any) -> ViewMap | None:
    """Views of a fitted model; None if it has none.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> model = SimpleNamespace(
    ...     view_labels_=np.array([[0, 0], [1, 0], [1, 1]]),
    ...     feature_views_=np.array([[0.9, 0.1], [0.0, 1.0], [0.8, 0.2]]),
    ... )
    >>> found = view_map(model)
    >>> [view.columns for view in found.views], found.order
    ([[('x0', 0.9), ('x2', 0.8)], [('x1', 1.0)]], array([0, 2, 1]))
    """
    found = getattr(model, "view_labels_", None)
    if found is None:
        return None
    labels = np.asarray(found)
    P = np.asarray(getattr(model, "feature_views_", np.zeros((0, labels.shape[-1]))), float)
    if labels.ndim != 2 or P.ndim != 2 or labels.shape[1] != P.shape[1]:
        return None
    names = _column_names(model, len(P))
    after = getattr(model, "n_clusters_posterior_", None)
    counted = is_view(P >= LIKELY, labels) if len(P) else labels.max(axis=0, initial=0) > 0
    views = []
    for v in range(P.shape[1]):
        inside = np.flatnonzero(P[:, v] >= LIKELY)
        inside = inside[np.argsort(-P[inside, v], kind="stable")]
        known = after[v] if isinstance(after, (list, tuple)) and len(after) > v else {}
        sizes = np.bincount(labels[labels[:, v] >= 0, v])
        columns = [(names[d], float(P[d, v])) for d in inside]
        views.append(View(columns, sizes[sizes > 0], dict(known), bool(counted[v])))
    home = np.where(P.max(axis=1, initial=0.0) > 0, P.argmax(axis=1) if P.shape[1] else 0, -1)
    order = np.lexsort((np.arange(len(P)), np.where(home < 0, P.shape[1], home)))
    dependence = getattr(model, "dependence_", None)
    if dependence is not None and np.shape(dependence) != (len(P), len(P)):
        dependence = None
    n_views, schema = getattr(model, "n_views_posterior_", None), getattr(model, "schema_", None)
    return ViewMap(
        views, names, order, home,
        None if dependence is None else np.asarray(dependence, float),
        dict(n_views) if isinstance(n_views, dict) else {},
        tuple(
            str(column.name) for column in getattr(schema, "columns", ()) if column.kind == "ignore"
        ),
    )  # fmt: skip


def number_of_views(found: ViewMap) -> str:
    """The number of views with its posterior; of both, views count that have two columns and two clusters.

    Examples
    --------
    >>> views = [View([("a", 1.0), ("b", 0.9)], np.array([7, 3]), {}, True)]
    >>> found = ViewMap(views, ["a", "b"], np.arange(2), np.zeros(2, int), None, {1: 0.8, 2: 0.2})
    >>> number_of_views(found)
    '1 view, most likely 1 (80%) or 2 (20%)'
    >>> number_of_views(found._replace(n_views_posterior={1: 0.1, 2: 0.9}))
    '1 view on which the draws agree, while the number of views in a single draw is most likely 2 (90%) or 1 (10%)'
    """
    n = sum(view.counted for view in found.views)
    text, known = count(n, "view"), found.n_views_posterior
    if not known:
        return text
    words = counts_in_words(known)
    if n == max(known, key=lambda number: known[number]):
        return f"{text}, {words}"
    return f"{text} on which the draws agree, while the number of views in a single draw is {words}"


def lone_columns(found: ViewMap) -> tuple[list[str], list[str]]:
    """Columns in no view: those whose rows form groups by this column alone, and those without groups.

    Examples
    --------
    >>> views = [
    ...     View([("a", 1.0)], np.array([7, 3]), {}, False),
    ...     View([("b", 1.0)], np.array([10]), {}, False),
    ... ]
    >>> lone_columns(ViewMap(views, ["a", "b", "c"], np.arange(3), np.array([0, 1, -1]), None, {}))
    (['a (2 groups)'], ['b', 'c'])
    """
    shared = {name for view in found.views if view.counted for name, _ in view.columns}
    alone = {
        name: len(view.sizes)
        for view in found.views
        if not view.counted and len(view.sizes) > 1
        for name, _ in view.columns
        if name not in shared
    }
    others = {*shared, *alone, *found.set_aside}
    without = [name for name in found.names if name not in others]
    return [f"{name} ({count(K, 'group')})" for name, K in alone.items()], without


def view_cells(
    model: Any, table: Table, names: Sequence[str], v: int, size: int = 200
) -> tuple[NDArray[np.int64], NDArray[np.int64], list[str], NDArray[np.float64]]:
    """The cells of one view: row numbers ordered by cluster, their clusters, column names, values from 0 to 1.

    At most `size` rows are taken, evenly spaced. Numbers are replaced by their ranks among all rows and categories by
    their positions in the list of levels, scaled to [0, 1]; missing cells are NaN.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from partita.table import read_table
    >>> model = SimpleNamespace(view_labels_=np.array([[1], [0], [1]]))
    >>> view_cells(model, read_table([[5.5, 1.5], [7.5, 2.5], [6.5, 0.5]]), ["x0"], 0)
    (array([1, 0, 2]), array([0, 1, 1]), ['x0'], array([[1. ],
           [0. ],
           [0.5]]))
    """
    labels = np.asarray(model.view_labels_)[:, v]
    order = order_objects(labels)
    rows = order[spread(len(order), size)]
    there = {column.name: column for column in table.columns}
    shown = [name for name in names if name in there]
    values = np.full((len(rows), len(shown)), np.nan)
    for d, name in enumerate(shown):
        cells = np.asarray(there[name].values)
        seen = ~np.isnan(cells) if cells.dtype.kind == "f" else cells >= 0
        scaled = np.full(len(cells), np.nan)
        if cells.dtype.kind == "f":
            scaled[seen] = (rankdata(cells[seen]) - 1) / max(int(seen.sum()) - 1, 1)
        else:
            scaled[seen] = cells[seen] / max(int(cells.max(initial=0)), 1)
        values[:, d] = scaled[rows]
    return rows, labels[rows], shown, values


def _column_names(model: Any, D: int) -> list[str]:
    for names in (
        getattr(getattr(model, "schema_", None), "names", None),
        getattr(model, "feature_names_in_", None),
    ):
        if names is not None and len(names) == D:
            return [str(name) for name in names]
    return [f"x{d}" for d in range(D)]
