"""Pictures of views: the cells of each view, and the dependence of columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from partita.plotting.canvas import color_of, open_axes, shorten
from partita.table import CODED_KINDS

MAX_NAMES = 60  # names of more rows would overlap
MAX_COLUMNS = 40  # names of more columns would overlap


def plot_views(
    model: Any, X: Any, *, row_names: Sequence[Any] | None = None, max_views: int = 4, max_columns: int = 20
) -> np.ndarray:
    """Plot one map per view: rows in the order of its clusters, and the columns that the view explains best.

    Parameters
    ----------
    model : fitted CrossCat, or another model of views
    X : array or data frame
        The table that was fitted.
    row_names : sequence, default=None
        Names of the rows, shown if there are at most 60.
    max_views : int, default=4
        Maximum number of views.
    max_columns : int, default=20
        Maximum number of columns per view, those with the most evidence first.

    Returns
    -------
    ndarray of matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from partita import CrossCat
    >>> from partita.plotting import plot_views
    >>> rng = np.random.default_rng(0)
    >>> z = rng.integers(2, size=(60, 2))
    >>> X = np.repeat(4.0 * z, 2, axis=1) + rng.normal(size=(60, 4))
    >>> model = CrossCat(inference="vb", random_state=0).fit(X)
    >>> [ax.get_title() for ax in plot_views(model, X)]
    ['view 0: 2 clusters', 'view 1: 2 clusters']
    """
    check_is_fitted(model, "view_labels_")
    n_views = min(max(model.n_views_, 1), max_views, model.view_labels_.shape[1])
    chosen = [[name for name, _ in model.explain(v)][:max_columns] for v in range(n_views)]
    axes = _row_of_axes([len(names) for names in chosen], len(model.view_labels_), row_names is not None)
    levels = _as_numbers(model, X)
    for v, (ax, names) in enumerate(zip(axes, chosen, strict=True)):
        _draw_view(ax, model, v, names, levels, row_names)
    return axes


def _row_of_axes(widths: list[int], n_rows: int, named: bool) -> np.ndarray:
    first = open_axes(None)  # raises the usual error if matplotlib is not installed
    figure = first.figure
    first.remove()
    height = min(max(2.5 + 0.14 * n_rows, 4.0), 10.0)
    margin = 1.3 if named and n_rows <= MAX_NAMES else 0.4
    width = sum(0.19 * w + margin for w in widths)
    figure.set_size_inches(min(max(width, 4.0), 24.0), height)
    ratios = {"width_ratios": [max(w, 2) for w in widths]}
    return figure.subplots(1, len(widths), gridspec_kw=ratios, squeeze=False)[0]


def _as_numbers(model: Any, X: Any) -> dict[str, np.ndarray]:
    """Every column scaled to [0, 1]: ranks of numbers, codes of levels; missing cells are NaN."""
    table = model._read_new(X, "missing")
    out = {}
    for column in table.columns:
        values = np.asarray(column.values, float)
        if column.kind in CODED_KINDS:
            values = np.where(values < 0, np.nan, values)
        seen = np.isfinite(values)
        _, rank = np.unique(values[seen], return_inverse=True)
        out[column.name] = np.full(len(values), np.nan)
        out[column.name][seen] = rank / max(rank.max(initial=0), 1)
    return out


def _draw_view(ax: Any, model: Any, v: int, names: list[str], levels: dict, row_names: Any) -> None:
    z = model.view_labels_[:, v]
    order = np.argsort(z, kind="stable")
    image = np.column_stack([levels[name][order] for name in names])
    ax.imshow(
        np.ma.masked_invalid(image), aspect="auto", cmap="Greys", vmin=0, vmax=1.25, interpolation="nearest"
    )
    ends = np.cumsum(np.bincount(z))
    for end in ends[:-1]:
        ax.axhline(end - 0.5, color="#d55e00", linewidth=1.4)
    for k, (lo, hi) in enumerate(zip(np.append(0, ends[:-1]), ends, strict=True)):
        ax.plot([-0.72, -0.72], [lo - 0.4, hi - 0.6], color=color_of(k), linewidth=4, solid_capstyle="butt")
    ax.set_xlim(-0.95, len(names) - 0.5)
    ax.set_xticks(range(len(names)), [shorten(name, 18) for name in names], rotation=90, fontsize=7)
    ax.xaxis.tick_top()
    if row_names is not None and len(z) <= MAX_NAMES:
        ax.set_yticks(range(len(z)), [shorten(row_names[i], 18) for i in order], fontsize=6)
    else:
        ax.set_yticks([])
        ax.set_ylabel("rows")
    ax.tick_params(length=0)
    for side in ax.spines.values():
        side.set_visible(False)
    ax.set_title(f"view {v}: {len(ends)} cluster{'s' if len(ends) > 1 else ''}", fontsize=9)


def plot_dependence(model: Any, *, ax: Any = None) -> Any:
    """Plot the probability that two columns depend on each other, in the order of the views.

    Parameters
    ----------
    model : fitted CrossCat, or another model of views
    ax : matplotlib Axes, default=None

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from partita import CrossCat
    >>> from partita.plotting import plot_dependence
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> plot_dependence(CrossCat(inference="vb", random_state=0).fit(X)).get_title()
    'probability of dependence'
    """
    check_is_fitted(model, "dependence_")
    ax = open_axes(ax)
    P = model.feature_views_
    home = np.where(P.sum(axis=1) > 0, P.argmax(axis=1), P.shape[1])
    order = np.lexsort((-P.max(axis=1), home))
    image = ax.imshow(model.dependence_[np.ix_(order, order)], cmap="Greys", vmin=0, vmax=1)
    ax.figure.colorbar(image, ax=ax, shrink=0.8)
    names = [shorten(model.schema_.names[j], 18) for j in order]
    if len(names) <= MAX_COLUMNS:
        ax.set_xticks(range(len(names)), names, rotation=90, fontsize=7)
        ax.set_yticks(range(len(names)), names, fontsize=7)
    else:
        ax.set_xticks([]), ax.set_yticks([])
    ax.tick_params(length=0)
    ax.set_title("probability of dependence")
    return ax
