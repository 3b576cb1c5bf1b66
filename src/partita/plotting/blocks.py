"""Relations in blocks: the cells sorted by the clusters of rows and columns, and how many clusters each side has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from partita.plotting.canvas import color_of, open_axes, shorten

MAX_NAMES = 120  # more names would not be readable
MISSING = "#e8b4a0"
BORDER = "#d55e00"


def plot_blocks(
    model: Any,
    X: ArrayLike,
    *,
    row_names: Sequence[Any] | None = None,
    column_names: Sequence[Any] | None = None,
    ax: Any = None,
) -> Any:
    """Plot the cells of a relation, with rows and columns sorted by cluster and lines between the clusters.

    Darker cells have larger values; missing cells are tinted. Within a cluster, objects are sorted by confidence.

    Parameters
    ----------
    model : RelationalBlocks
        Fitted to X.
    X : array-like of numbers (rows, columns)
        The relation; one of them, if there are several. Give the codes of levels that are not numbers.
    row_names, column_names : sequence of str, default=None
        Names of the rows and columns, shown if there are at most 120.
    ax : matplotlib Axes, default=None

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import warnings
    >>> from partita import RelationalBlocks
    >>> from partita.plotting import plot_blocks
    >>> X = np.kron(np.eye(2), np.ones((4, 3)))
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # the chains are too short for reliable results
    ...     model = RelationalBlocks(n_chains=1, n_draws=20, burn_in=20, random_state=0).fit(X)
    >>> plot_blocks(model, X).get_title(loc="left")
    '2 x 2 clusters'
    """
    check_is_fitted(model, "row_labels_")
    cells = np.asarray(X, float)
    rows, columns = model.row_labels_, model.column_labels_
    if cells.shape != (len(rows), len(columns)):
        raise ValueError(
            f"X has shape {cells.shape} and the model {len(rows)} rows and {len(columns)} columns: give the relation "
            "that was fitted"
        )
    ax = open_axes(ax)
    down = np.lexsort((-model.row_confidence_, rows))
    across = np.lexsort((-model.column_confidence_, columns))
    import matplotlib

    shades = matplotlib.colormaps["Greys"].with_extremes(bad=MISSING)
    ax.imshow(
        np.ma.masked_invalid(cells[down][:, across]), cmap=shades, aspect="auto", interpolation="nearest"
    )
    for edge in np.cumsum(np.bincount(rows))[:-1]:
        ax.axhline(edge - 0.5, color=BORDER, linewidth=0.8)
    for edge in np.cumsum(np.bincount(columns))[:-1]:
        ax.axvline(edge - 0.5, color=BORDER, linewidth=0.8)
    _name(ax.yaxis, row_names, down, 0)
    _name(ax.xaxis, column_names, across, 90)
    ax.tick_params(length=0)
    ax.set_title(f"{model.n_row_clusters_} x {model.n_column_clusters_} clusters", loc="left")
    return ax


def _name(axis: Any, names: Sequence[Any] | None, order: np.ndarray, rotation: float) -> None:
    if names is None or len(order) > MAX_NAMES:
        axis.set_ticks([])
        return
    if len(names) != len(order):
        raise ValueError(
            f"{len(names)} names for {len(order)} rows or columns: give one name per row or column"
        )
    labels = [shorten(names[i], 16) for i in order]
    axis.set_ticks(np.arange(len(order)), labels, fontsize=5, rotation=rotation)


def plot_side_clusters(
    model: Any, side: str = "rows", *, reference: int | None = None, ax: Any = None
) -> Any:
    """Plot the posterior of the number of clusters of the rows or the columns of a relation.

    Parameters
    ----------
    model : RelationalBlocks
    side : {"rows", "columns"}, default="rows"
    reference : int, default=None
        A number of clusters to compare with, drawn as a line.
    ax : matplotlib Axes, default=None

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import warnings
    >>> from partita import RelationalBlocks
    >>> from partita.plotting import plot_side_clusters
    >>> X = np.kron(np.eye(2), np.ones((4, 3)))
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")  # the chains are too short for reliable results
    ...     model = RelationalBlocks(n_chains=1, n_draws=20, burn_in=20, random_state=0).fit(X)
    >>> plot_side_clusters(model, "columns").get_xlabel()
    'clusters of columns'
    """
    check_is_fitted(model, "row_labels_")
    if side not in ("rows", "columns"):
        raise ValueError(f"side is {side!r}: give 'rows' or 'columns'")
    ax = open_axes(ax)
    found = model.n_row_clusters_posterior_ if side == "rows" else model.n_column_clusters_posterior_
    K = np.arange(min(found), max(found) + 1)
    ax.bar(K, [found.get(int(k), 0.0) for k in K], color=color_of(0), width=0.7, label="posterior")
    if reference is not None:
        ax.axvline(reference, color=BORDER, linestyle="--", linewidth=1.5, label=f"published: {reference}")
        ax.legend(frameon=False)
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set_xlabel(f"clusters of {side}")
    ax.set_ylabel("probability")
    return ax
