"""The last merges of a tree, laid out for drawing."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

MAX_LEAVES = 300_000  # branches of larger trees are not colored by cluster


class TreeTop(NamedTuple):
    """The last merges of a tree. Leaves are at 0, 1, ... from left to right, in the order of `leaf_sizes`."""

    merges: NDArray[np.int64]  # row of each shown merge in the linkage
    places: NDArray[np.float64]  # [merge, 2] horizontal positions of the two branches
    feet: NDArray[np.float64]  # [merge, 2] heights of the lower ends of the branches
    heights: NDArray[np.float64]  # [merge]
    log_odds: NDArray[np.float64] | None  # [merge]
    leaf_sizes: NDArray[np.int64]
    leaf_labels: NDArray[np.int64] | None  # cluster of all rows of a leaf; -1 if there are several
    n_leaves: int  # of the whole tree

    def width(self) -> int:
        """Number of leaves that are shown."""
        return len(self.leaf_sizes)


def tree_top(model: Any, size: int = 40) -> TreeTop | None:
    """The last ``size - 1`` merges of ``linkage_``; None if the model has no tree.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> Z = np.array([[0, 1, 1.0, 2], [2, 3, 2.0, 2], [4, 5, 5.0, 4]])
    >>> top = tree_top(SimpleNamespace(linkage_=Z), size=2)
    >>> top.leaf_sizes, top.heights, top.places
    (array([2, 2]), array([5.]), array([[0., 1.]]))
    """
    Z = getattr(model, "linkage_", None)
    if Z is None or np.ndim(Z) != 2 or not len(Z) or np.shape(Z)[1] != 4:
        return None
    Z = np.asarray(Z, float)
    n = len(Z) + 1
    first = max(len(Z) - (size - 1), 0)  # the first merge that is shown
    children, heights = Z[:, :2].astype(np.int64), Z[:, 2]
    roots = _roots(children, n, first)
    leaves = _leaves_in_order(children, n, first, roots)
    place = {node: float(at) for at, node in enumerate(leaves)}
    foot = {node: 0.0 for node in leaves}
    merges, places, feet = [], [], []
    for row in range(first, len(Z)):
        a, b = children[row].tolist()
        merges.append(row)
        places.append((place[a], place[b]))
        feet.append((foot[a], foot[b]))
        place[n + row], foot[n + row] = (place[a] + place[b]) / 2, float(heights[row])
    sizes = np.array([1 if node < n else int(Z[node - n, 3]) for node in leaves], dtype=np.int64)
    odds = getattr(model, "log_odds_", None)
    shown = None if odds is None or np.shape(odds) != (len(Z),) else np.asarray(odds, float)[first:]
    return TreeTop(
        np.array(merges), np.array(places), np.array(feet), heights[first:], shown, sizes,
        _leaf_labels(model, children, n, leaves), n,
    )  # fmt: skip


def _roots(children: np.ndarray, n: int, first: int) -> list[int]:
    """Nodes that are not merged further: one for a full tree."""
    total = n + len(children)
    inside = np.zeros(total, bool)
    inside[children[first:].ravel()] = True
    return [node for node in range(n + first, total) if not inside[node]]


def _leaves_in_order(children: np.ndarray, n: int, first: int, roots: list[int]) -> list[int]:
    leaves, stack = [], roots[::-1]
    while stack:
        node = stack.pop()
        if node < n + first:
            leaves.append(int(node))
        else:
            left, right = children[node - n].tolist()
            stack += [right, left]
    return leaves


def _leaf_labels(model: Any, children: np.ndarray, n: int, leaves: list[int]) -> NDArray[np.int64] | None:
    labels = getattr(model, "labels_", None)
    if labels is None or n > MAX_LEAVES:
        return None
    own = getattr(model, "row_leaves_", None)
    leaf_of = np.arange(len(labels)) if own is None else np.asarray(own)
    if len(leaf_of) != len(labels) or leaf_of.max(initial=-1) >= n:
        return None
    owner = np.full(n + len(children), -1, dtype=np.int64)
    owner[leaves] = np.arange(len(leaves))
    for row in range(len(children) - 1, -1, -1):  # from the top down, so that parents come first
        if owner[n + row] >= 0:
            owner[children[row]] = owner[n + row]
    seen = (leaf_of >= 0) & (np.asarray(labels) >= 0)
    at, z = owner[leaf_of[seen]], np.asarray(labels)[seen]
    counts = np.zeros((len(leaves), int(z.max(initial=0)) + 1), np.int64)
    np.add.at(counts, (at[at >= 0], z[at >= 0]), 1)
    pure = counts.max(axis=1) == counts.sum(axis=1)
    return np.where(pure & (counts.sum(axis=1) > 0), counts.argmax(axis=1), -1)
