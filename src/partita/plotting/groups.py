"""Pictures of the clusters: one column, two columns, or the columns that distinguish them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from partita.labels import group_name
from partita.plotting.canvas import color_of, marker_of, open_axes, open_grid, shorten
from partita.summaries import summarize_clusters
from partita.table import Table, read_table

MAX_LEVELS, MAX_NAMED = 12, 12


def plot_profiles(
    model: Any, column: str | None = None, X: Any = None, *, max_columns: int = 9, ax: Any = None
) -> Any:
    """Plot one column in each group, or the columns that distinguish the groups.

    Of real columns mean and standard deviation are shown, of counts the rate, of binary and categorical columns the
    shares of the levels (at most twelve, those with the largest share in any group).

    Parameters
    ----------
    model : fitted estimator
    column : str, default=None
        Name of a column ("x0", "x1", ... for arrays). None plots the most informative columns, in one figure.
    X : array or data frame, default=None
        A table of the same objects, for models that do not know the columns of their rows, such as a consensus.
    max_columns : int, default=9
        Maximum number of columns without ``column``.
    ax : matplotlib Axes, default=None
        For one column.

    Returns
    -------
    matplotlib Axes
        Without ``column`` an array of Axes, the most informative column first.

    Examples
    --------
    >>> from partita import Agglomerative
    >>> from partita.plotting import plot_profiles
    >>> model = Agglomerative(n_clusters=2).fit(
    ...     [[1.0, 5.5], [1.1, 6.5], [1.2, 4.5], [8.0, 5.5], [8.2, 6.5], [8.4, 4.5]]
    ... )
    >>> [ax.get_title(loc="left") for ax in plot_profiles(model)]
    ['x0', 'x1']
    """
    check_is_fitted(model, "labels_")
    found = summarize_clusters(model, table=None if X is None else _same_objects(model, X))
    if not found.profiles:
        raise ValueError(
            f"this {type(model).__name__} does not know the columns of its rows: pass X, a table of the same objects"
        )
    if column is not None:
        if column not in found.profiles:
            raise ValueError(
                f"no profile of column {column!r}: the model has {', '.join(list(found.profiles)[:10])}"
            )
        ax = open_axes(ax)
        _draw_profile(ax, column, found.profiles[column])
        return ax
    if ax is not None:
        raise ValueError("ax is for one column: give column, or leave ax out")
    names = [name for name, _ in found.informative_columns[:max_columns]]
    axes = open_grid(len(names))
    for one, name in zip(axes, names):
        _draw_profile(one, name, found.profiles[name])
    for group in found.groups[:MAX_NAMED]:
        style = {"color": color_of(group.label), "marker": marker_of(group.label), "linestyle": ""}
        axes[0].plot([], [], label=shorten(f"{group.number}: {group.name}", 60), **style)
    handles = [handle for handle in axes[0].lines if not handle.get_label().startswith("_")]
    axes[0].figure.legend(handles=handles, loc="outside upper left", frameon=False, fontsize="small")
    return axes


def _draw_profile(ax: Any, column: str, profile: dict[str, np.ndarray]) -> None:
    if "probabilities" in profile:
        _draw_levels(ax, profile)
    else:
        _draw_values(ax, profile)
    ax.set_title(shorten(column, 40), loc="left")


def _same_objects(model: Any, X: Any) -> Table:
    """The table of the objects that were clustered."""
    table = read_table(X)
    if table.n_rows != len(model.labels_):
        raise ValueError(
            f"X has {table.n_rows} rows and the model was fitted to {len(model.labels_)}: pass the same objects"
        )
    return table


def plot_traits(model: Any, X: Any = None, *, max_columns: int = 25, ax: Any = None) -> Any:
    """Plot how well one cell of each column identifies the members of each cluster.

    Parameters
    ----------
    model : fitted estimator
        With ``profiles_``, or any clustering of the rows of X.
    X : array or data frame, default=None
        A table of the objects, for models without ``profiles_``, such as a consensus.
    max_columns : int, default=25
        Maximum number of columns; the most informative ones are shown.
    ax : matplotlib Axes, default=None

    Returns
    -------
    matplotlib Axes
        One image (columns x clusters), from 0 (as in all objects) to 1 (one cell identifies the cluster).

    Examples
    --------
    >>> from partita import Consensus
    >>> from partita.plotting import plot_traits
    >>> model = Consensus(random_state=0).fit([[0, 0], [0, 0], [1, 1], [1, 1]])
    >>> ax = plot_traits(model, [[1.0, 5.0], [1.2, 4.0], [8.0, 4.5], [8.4, 5.0]])
    >>> ax.images[0].get_array().shape, [tick.get_text() for tick in ax.get_yticklabels()]
    ((2, 2), ['x0', 'x1'])
    """
    check_is_fitted(model, "labels_")
    found = summarize_clusters(model, table=None if X is None else _same_objects(model, X))
    if not found.profiles:
        raise ValueError(f"{type(model).__name__} has no profiles_: pass X, a table of the same objects")
    names = [name for name, _ in found.informative_columns[:max_columns]]
    shown = np.flatnonzero(found.sizes)
    by_name = [{trait.column: trait.strength for trait in found.traits[k]} for k in shown]
    strengths = np.array([[one[name] for one in by_name] for name in names])
    ax = open_axes(ax)
    image = ax.imshow(strengths, vmin=0.0, vmax=1.0, cmap="Blues", interpolation="nearest", aspect="auto")
    ax.set_yticks(np.arange(len(names)), [shorten(name) for name in names])
    ax.set_xticks(np.arange(len(shown)), [str(k + 1) for k in shown])
    ax.set_xlabel("group")
    if len(names) < found.n_columns:
        ax.set_title(f"the {len(names)} most informative of {found.n_columns} columns", loc="left")
    ax.figure.colorbar(image, ax=ax, label="strength", shrink=0.8)
    return ax


def _draw_levels(ax: Any, profile: dict[str, np.ndarray]) -> None:
    P = np.asarray(profile["probabilities"])
    shown = np.sort(np.argsort(-P.max(axis=0), kind="stable")[:MAX_LEVELS])
    width = 0.8 / len(P)
    for k, row in enumerate(P):
        offset = (k - (len(P) - 1) / 2) * width
        ax.bar(np.arange(len(shown)) + offset, row[shown], width, color=color_of(k), label=group_name(k))
    labels = [shorten(profile["levels"][v]) for v in shown]
    long = sum(map(len, labels)) > 40
    ax.set_xticks(np.arange(len(shown)), labels, rotation=40 if long else 0, ha="right" if long else "center")
    ax.set_ylabel("probability" + (f" (of {P.shape[1]} levels)" if P.shape[1] > len(shown) else ""))
    ax.set_ylim(0.0, 1.0)


def _draw_values(ax: Any, profile: dict[str, np.ndarray]) -> None:
    name = next(name for name in ("mean", "rate", "share") if name in profile)
    values, deviations = np.asarray(profile[name]), profile.get("sd")
    for k, value in enumerate(values):
        error = None if deviations is None else deviations[k]
        ax.errorbar(
            k,
            value,
            yerr=error,
            color=color_of(k),
            marker=marker_of(k),
            capsize=4,
            label=group_name(k),
            linestyle="",
        )
    ax.set_xticks(np.arange(len(values)), [str(k + 1) for k in range(len(values))])
    ax.set_xlabel("group")
    ax.set_ylabel("mean ± standard deviation" if deviations is not None else name)
    ax.margins(x=0.15)


def plot_scatter(
    model: Any, X: Any, x: str, y: str, *, threshold: float = 0.8, max_points: int = 5000, ax: Any = None
) -> Any:
    """Plot two real or count columns, colored by cluster. Uncertain objects are hollow.

    Parameters
    ----------
    model : fitted estimator
    X : array or data frame
        The table that was fitted. Objects without one of the two values are not shown.
    x, y : str
        Names of the columns.
    threshold : float, default=0.8
        Objects whose ``confidence_`` is below it are hollow.
    max_points : int, default=5000
        Maximum number of objects. Of more, an even sample is shown, and the title says so.
    ax : matplotlib Axes, default=None

    Returns
    -------
    matplotlib Axes
        Per cluster one collection of points, and one of its uncertain objects.
    """
    check_is_fitted(model, "labels_")
    columns = [model.schema_.column(name) for name in (x, y)]
    for column in columns:
        if column.kind not in ("real", "count"):
            raise ValueError(
                f"column {column.name!r} is {column.kind}: a scatter plot needs real or count columns"
            )
    table = read_table(X, schema=model.schema_)
    if table.n_rows != len(model.labels_):
        raise ValueError(
            f"X has {table.n_rows} rows and the model was fitted to {len(model.labels_)}: pass that table"
        )
    ax = open_axes(ax)
    U, V = (np.asarray(table.column(column.name).values, float) for column in columns)
    seen = np.flatnonzero(~(np.isnan(U) | np.isnan(V)))
    drawn = seen[np.linspace(0, len(seen) - 1, max_points).astype(int)] if len(seen) > max_points else seen
    certain = np.asarray(model.confidence_) >= threshold
    for k in np.unique(model.labels_[drawn]):
        rows = drawn[model.labels_[drawn] == k]
        style = {"marker": marker_of(k), "s": 26, "edgecolors": color_of(k)}
        sure, unsure = rows[certain[rows]], rows[~certain[rows]]
        ax.scatter(
            U[sure],
            V[sure],
            c=color_of(k),
            alpha=0.75,
            label=group_name(k),
            **style,
        )
        ax.scatter(U[unsure], V[unsure], facecolors="none", linewidths=1.6, label=None, **style)
    if not certain[drawn].all():
        ax.scatter([], [], facecolors="none", edgecolors="0.3", s=26, linewidths=1.6, label="uncertain")
    if len(drawn) < len(seen):
        ax.set_title(f"{len(drawn)} of {len(seen)} objects", loc="left")
    ax.set_xlabel(shorten(x, 40))
    ax.set_ylabel(shorten(y, 40))
    ax.legend(frameon=False)
    return ax
