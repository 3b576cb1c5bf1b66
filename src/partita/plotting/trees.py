"""Pictures of trees: dendrograms, tables and curves in the order of the leaves, words of the upper nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from partita.plotting.canvas import color_of, open_axes, shorten

GRAY = "#8c8c8c"


class _Layout(NamedTuple):
    """Leaves from left to right, and the horizontal position and height of each node."""

    leaves: np.ndarray
    across: np.ndarray
    height: np.ndarray


def _lay_out(linkage: np.ndarray) -> _Layout:
    """Positions of the nodes. There is no recursion: a tree of single linkage may be as deep as it has leaves."""
    children, m = linkage[:, :2].astype(int), len(linkage) + 1
    leaves, stack = [], [2 * m - 2]
    while stack:
        node = stack.pop()
        if node < m:
            leaves.append(node)
        else:
            stack += [children[node - m, 1], children[node - m, 0]]
    across, height = np.empty(2 * m - 1), np.zeros(2 * m - 1)
    across[leaves] = np.arange(m)
    height[m:] = linkage[:, 2]
    for t, pair in enumerate(children):
        across[m + t] = across[pair].mean()
    return _Layout(np.array(leaves), across, height)


def _leaves_below(linkage: np.ndarray) -> np.ndarray:
    """The number of leaves of each merge."""
    m = len(linkage) + 1
    below = np.ones(2 * m - 1)
    for t, pair in enumerate(linkage[:, :2].astype(int)):
        below[m + t] = below[pair].sum()
    return below[m:]


def _cluster_of_nodes(linkage: np.ndarray, leaf_labels: np.ndarray) -> np.ndarray:
    """The cluster that holds all leaves of a node, or -1."""
    m = len(linkage) + 1
    owner = np.concatenate([leaf_labels, np.full(m - 1, -1)])
    for t, (i, j) in enumerate(linkage[:, :2].astype(int)):
        owner[m + t] = owner[i] if owner[i] == owner[j] else -1
    return owner


def _leaf_labels(model: Any) -> np.ndarray:
    """Labels of the leaves, which may be centers that represent several rows."""
    if not hasattr(model, "row_leaves_"):
        return model.labels_
    out = np.zeros(len(model.linkage_) + 1, int)
    out[model.row_leaves_] = model.labels_
    return out


def plot_tree(
    model: Any,
    *,
    classes: Any = None,
    odds: int = 6,
    horizontal: bool = False,
    ax: Any = None,
) -> Any:
    """Plot the tree of a fitted model, with its clusters in color and unlikely merges dashed.

    The height of a merge of a :class:`~partita.BayesianTree` is its number of leaves, on a logarithmic scale, because
    most merges have about the same odds and would overlap. A merge is dashed if the odds are against it; the tree is
    cut there. The heights of other trees are their dissimilarities.

    Parameters
    ----------
    model : fitted tree
        With a ``linkage_``.
    classes : array of shape (n_leaves,), default=None
        Known classes, shown as a colored strip under the leaves. The tree itself is then gray.
    odds : int, default=6
        Number of unlikely merges of a Bayesian tree, the highest first, at which the log odds are written.
    horizontal : bool, default=False
        Whether the root is on the left rather than at the top.
    ax : matplotlib Axes, default=None

    Returns
    -------
    matplotlib Axes
    """
    from matplotlib.collections import LineCollection

    check_is_fitted(model, "linkage_")
    linkage = np.asarray(model.linkage_)
    ax, m = open_axes(ax), len(linkage) + 1
    layout, log_odds = _lay_out(linkage), getattr(model, "log_odds_", None)
    if log_odds is not None:
        layout = layout._replace(height=np.concatenate([np.ones(m), _leaves_below(linkage)]))
    owner = np.full(2 * m - 1, -1) if classes is not None else _cluster_of_nodes(linkage, _leaf_labels(model))
    lines, colors, styles = [], [], []
    for t, (i, j) in enumerate(linkage[:, :2].astype(int)):
        top = layout.height[m + t]
        path = [(layout.across[i], layout.height[i]), (layout.across[i], top)]
        path += [(layout.across[j], top), (layout.across[j], layout.height[j])]
        lines.append([point[::-1] for point in path] if horizontal else path)
        colors.append(color_of(int(owner[m + t])) if owner[m + t] >= 0 else GRAY)
        styles.append("--" if log_odds is not None and log_odds[t] < 0 else "-")
    ax.add_collection(LineCollection(lines, colors=colors, linestyles=styles, linewidths=0.9))
    _set_scales(ax, layout, log_odds is not None, horizontal)
    if log_odds is not None and odds:
        _write_odds(ax, layout, log_odds, odds, horizontal)
    if classes is not None:
        _draw_strip(ax, np.asarray(classes)[layout.leaves], horizontal)
    return ax


def _set_scales(ax: Any, layout: _Layout, bayesian: bool, horizontal: bool) -> None:
    n, top = len(layout.leaves), max(float(layout.height.max()), 1e-12)
    leaves, heights = (ax.set_ylim, ax.set_xlim) if horizontal else (ax.set_xlim, ax.set_ylim)
    leaves(-0.5, max(n - 0.5, 0.5))
    if bayesian:
        (ax.set_xscale if horizontal else ax.set_yscale)("log")
        heights((2.0 * top, 1.0) if horizontal else (1.0, 2.0 * top))
    else:
        heights((1.05 * top, 0.0) if horizontal else (0.0, 1.05 * top))
    name = "leaves below the merge" if bayesian else "dissimilarity"
    (ax.set_xlabel if horizontal else ax.set_ylabel)(name)
    (ax.set_yticks if horizontal else ax.set_xticks)([])
    (ax.set_ylabel if horizontal else ax.set_xlabel)(f"{n} leaves")


def _write_odds(ax: Any, layout: _Layout, log_odds: np.ndarray, n_written: int, horizontal: bool) -> None:
    """Write log odds at merges with odds against them; all others would be too many to read."""
    m = len(layout.leaves)
    for t in np.flatnonzero(log_odds < 0)[-n_written:]:
        place = layout.across[m + t], layout.height[m + t]
        ax.annotate(
            f"{log_odds[t]:.3g}",
            place[::-1] if horizontal else place,
            xytext=(0, 2),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=7,
        )


def _draw_strip(ax: Any, classes: np.ndarray, horizontal: bool) -> None:
    """A strip with the colors of known classes beside the leaves, and their legend."""
    from matplotlib.patches import Patch

    names, codes = np.unique(classes, return_inverse=True)
    place = [-0.035, 0.0, 0.03, 1.0] if horizontal else [0.0, -0.045, 1.0, 0.04]
    strip = ax.inset_axes(place)
    from matplotlib.colors import ListedColormap

    colors = ListedColormap([color_of(k) for k in range(len(names))])
    image = codes[:, None] if horizontal else codes[None, :]
    strip.imshow(image, aspect="auto", cmap=colors, vmin=-0.5, vmax=len(names) - 0.5, interpolation="nearest")
    if horizontal:
        strip.invert_yaxis()
    strip.set_axis_off()
    (ax.set_ylabel if horizontal else ax.set_xlabel)("")
    handles = [Patch(color=color_of(k), label=shorten(name)) for k, name in enumerate(names)]
    ax.legend(handles=handles, fontsize=7, frameon=False, loc="upper left" if horizontal else "upper right")


def plot_leaf_table(model: Any, X: Any, *, columns: Sequence[Any] | None = None, ax: Any = None) -> Any:
    """Plot a table of numbers with its rows in the order of the leaves, and the tree on the left.

    Parameters
    ----------
    model : fitted tree
        Whose leaves are the rows of X.
    X : array (n_leaves, n_columns)
    columns : sequence, default=None
        Names of the columns.
    ax : matplotlib Axes, default=None

    Returns
    -------
    matplotlib Axes
        The axes of the table; the tree is in an inset.
    """
    check_is_fitted(model, "linkage_")
    X = np.asarray(X, float)
    ax, layout = open_axes(ax), _lay_out(np.asarray(model.linkage_))
    if len(X) != len(layout.leaves):
        raise ValueError(
            f"X has {len(X)} rows and the tree {len(layout.leaves)} leaves: give the fitted rows"
        )
    limit = float(np.nanquantile(np.abs(X), 0.99)) or 1.0
    image = ax.imshow(
        X[layout.leaves], aspect="auto", cmap="RdYlGn_r", vmin=-limit, vmax=limit, interpolation="nearest"
    )
    ax.figure.colorbar(image, ax=ax, shrink=0.6)
    ax.set_yticks([])
    names = range(X.shape[1]) if columns is None else columns
    ax.set_xticks(range(X.shape[1]), [shorten(name) for name in names], rotation=90, fontsize=8)
    tree = ax.inset_axes([-0.62, 0.0, 0.6, 1.0])
    plot_tree(model, horizontal=True, odds=0, ax=tree)
    tree.invert_yaxis()
    tree.set_axis_off()
    return ax


def plot_leaf_curves(
    model: Any, X: Any, *, columns: Sequence[Any] | None = None, n_columns: int = 4, figure: Any = None
) -> Any:
    """Plot the rows of each cluster as curves, one panel per cluster, the largest first.

    Parameters
    ----------
    model : fitted clustering
        With ``labels_``.
    X : array (n_rows, n_columns)
    columns : sequence of numbers, default=None
        Horizontal positions of the columns, such as times; None means 0, 1, 2, ...
    n_columns : int, default=4
        Panels in a row.
    figure : matplotlib Figure, default=None

    Returns
    -------
    array of matplotlib Axes
    """
    check_is_fitted(model, "labels_")
    X, K = np.asarray(X, float), int(model.labels_.max()) + 1
    where = np.arange(X.shape[1]) if columns is None else np.asarray(columns, float)
    if figure is None:
        open_axes(None).figure.clear()  # raises the usual error if matplotlib is not installed
        import matplotlib.pyplot as plt

        plt.close()
        figure = plt.figure(figsize=(2.1 * n_columns, 1.6 * -(-K // n_columns)), layout="constrained")
    axes = figure.subplots(-(-K // n_columns), n_columns, sharex=True, sharey=True, squeeze=False)
    for k, ax in enumerate(axes.flat):
        if k >= K:
            ax.set_axis_off()
            continue
        own = X[model.labels_ == k]
        ax.plot(where, own.T, color=color_of(k), linewidth=0.6, alpha=max(0.15, min(1.0, 8 / len(own))))
        ax.plot(where, own.mean(axis=0), color="black", linewidth=1.2)
        ax.set_title(f"{len(own)} rows", fontsize=8)
        ax.tick_params(labelsize=7)
    return axes


def plot_node_words(
    model: Any,
    X: Any,
    words: Sequence[Any],
    *,
    n_nodes: int = 7,
    n_words: int = 4,
    skip: int | None = None,
    ax: Any = None,
) -> Any:
    """Plot the upper nodes of a tree of documents with their numbers of documents and characteristic words.

    The words of a node are ranked by the log ratio of their smoothed shares in the node and elsewhere, times the share
    in the node. Branches of fewer than ``skip`` documents are left out.

    Parameters
    ----------
    model : fitted tree
        Whose leaves are the rows of X.
    X : array (n_leaves, n_words)
        Presence or counts of words.
    words : sequence
        Their names.
    n_nodes : int, default=7
        Number of nodes to show.
    n_words : int, default=4
        Number of words per node.
    skip : int, default=None
        Minimum number of documents of a branch; None means one fiftieth of the rows, at least 2.
    ax : matplotlib Axes, default=None

    Returns
    -------
    matplotlib Axes
    """
    check_is_fitted(model, "linkage_")
    X, ax = np.asarray(X, float), open_axes(ax)
    m = len(X)
    skip = max(2, m // 50) if skip is None else skip
    children = np.asarray(model.linkage_)[:, :2].astype(int)
    sums, sizes = np.vstack([X, np.zeros((m - 1, X.shape[1]))]), np.ones(2 * m - 1)
    for t, (i, j) in enumerate(children):
        sums[m + t], sizes[m + t] = sums[i] + sums[j], sizes[i] + sizes[j]
    shown, tree = _upper_branches(children, sizes, n_nodes, skip)
    across = _place(shown, tree)
    for node, (parent, depth) in tree.items():
        if parent is not None:
            here, there = (across[node], -depth), (across[parent], -tree[parent][1])
            ax.plot(*zip(there, here, strict=True), color=GRAY, linewidth=0.8, zorder=1)
        share = (sums[node] + 0.5) / (sizes[node] + 1.0)
        rest = (sums[-1] - sums[node] + 0.5) / (sizes[-1] - sizes[node] + 1.0)
        weight = share * np.log(share / rest) if sizes[node] < sizes[-1] else share
        top = np.argsort(-weight, kind="stable")[:n_words]
        text = "\n".join([f"{int(sizes[node])}", *(shorten(words[w], 14) for w in top)])
        ax.text(
            across[node],
            -depth,
            text,
            ha="center",
            va="center",
            fontsize=8,
            bbox={"boxstyle": "round", "facecolor": "white", "edgecolor": GRAY},
        )
    ax.set_xlim(min(across.values()) - 0.6, max(across.values()) + 0.6)
    ax.set_ylim(-max(depth for _, depth in tree.values()) - 0.6, 0.6)
    ax.set_axis_off()
    return ax


def _upper_branches(
    children: np.ndarray, sizes: np.ndarray, n_nodes: int, skip: int
) -> tuple[list[int], dict[int, tuple[int | None, int]]]:
    """Split the largest node until there are `n_nodes`; returns the leaves of the small tree, and the tree."""
    m = len(children) + 1

    def sides(node: int) -> list[int]:
        """The first split below a node in which both sides have at least `skip` documents."""
        while node >= m:
            i, j = children[node - m]
            if min(sizes[i], sizes[j]) >= skip:
                return [int(i), int(j)]
            node = int(i if sizes[i] > sizes[j] else j)
        return []

    tree: dict[int, tuple[int | None, int]] = {2 * m - 2: (None, 0)}
    ends = [2 * m - 2]
    while len(tree) + 2 <= n_nodes:
        opened = next((n for n in sorted(ends, key=lambda node: -sizes[node]) if sides(n)), None)
        if opened is None:
            break
        at = ends.index(opened)
        ends[at : at + 1] = sides(opened)
        for side in sides(opened):
            tree[side] = (opened, tree[opened][1] + 1)
    return ends, tree


def _place(ends: list[int], tree: dict[int, tuple[int | None, int]]) -> dict[int, float]:
    """Leaves from left to right, every other node above the middle of its children."""
    across = {node: float(place) for place, node in enumerate(ends)}
    for node in sorted(tree, key=lambda node: -tree[node][1]):
        if node not in across:
            across[node] = float(
                np.mean([across[side] for side, (parent, _) in tree.items() if parent == node])
            )
    return across
