"""Agreement of a tree with classes."""

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partita.labels import canonical
from partita.labels.checks import MISSING
from partita.metrics.inputs import Missing, check_missing_policy, refuse_missing


def dendrogram_purity(
    linkage: ArrayLike,
    labels_true: Any,
    *,
    draw: Literal["leaf", "pair"] = "leaf",
    missing: Missing = "raise",
) -> float:
    """Expected share of a class in the smallest subtree that holds two of its leaves.

    Two distinct leaves of one class are drawn at random; the share of that class among the leaves of the
    smallest subtree with both is averaged. It is 1 exactly if every class is within a subtree of its own.
    This is what the "purity" of Bayesian hierarchical clustering (Heller and Ghahramani 2005) means. The
    sum over pairs is grouped by the node where they meet, and the smaller child's classes are folded into
    the larger child's, so that a tree of N leaves and C classes costs O(N min(log N, C)) and O(N) memory.

    Parameters
    ----------
    linkage : array-like, shape (N - 1, 4)
        Tree in the format of `scipy.cluster.hierarchy.linkage`; only the first two columns are read, so
        that heights may have any sign or order.
    labels_true : array-like, shape (N,)
        Class of every leaf, of any type.
    draw : {"leaf", "pair"}, default="leaf"
        "leaf" draws one leaf among all and then another of its class; "pair" draws among all pairs within
        classes, which gives large classes more weight. They agree where classes have one size. Classes
        with one leaf do not enter; if there is no other class the purity is 1.
    missing : {"raise", "drop"}, default="raise"
        What to do with leaves whose class is missing (-1, None, NaN): ValueError, or count them nowhere,
        also not in the size of a subtree.

    Returns
    -------
    float

    Examples
    --------
    >>> from scipy.cluster.hierarchy import linkage
    >>> tree = linkage([[0.0], [1.0], [10.0], [11.5]])
    >>> dendrogram_purity(tree, ["a", "a", "b", "b"])
    1.0
    >>> dendrogram_purity(tree, ["a", "b", "a", "b"])
    0.5
    """
    check_missing_policy(missing)
    if draw not in ("leaf", "pair"):
        raise ValueError(f"draw is {draw!r}: it must be 'leaf' or 'pair'")
    labels = canonical(labels_true, missing=MISSING)
    if labels.size == 0:
        raise ValueError("labels_true is empty: a tree has at least one leaf")
    if missing == "raise":
        refuse_missing(labels, "labels_true")
    children = _checked_children(linkage, labels.size)
    sizes = np.bincount(labels[labels != MISSING])
    pairs = sizes * (sizes - 1) // 2
    repeated = pairs > 0
    if not repeated.any():
        return 1.0
    shares = _summed_shares(children, labels, sizes.size)[repeated]
    if draw == "pair":
        return float(shares.sum() / pairs[repeated].sum())
    return float(np.average(shares / pairs[repeated], weights=sizes[repeated]))


def _checked_children(linkage: ArrayLike, n_leaves: int) -> NDArray[np.int64]:
    tree = np.asarray(linkage, dtype=np.float64)
    if tree.size == 0:
        tree = tree.reshape(0, 4)
    if tree.ndim != 2 or tree.shape[1] < 2 or tree.shape[0] != n_leaves - 1:
        raise ValueError(
            f"linkage has shape {tree.shape} and labels_true has {n_leaves} labels: "
            f"a tree with {n_leaves} leaves has {n_leaves - 1} merges, shape ({n_leaves - 1}, 4)"
        )
    children = tree[:, :2]
    present = n_leaves + np.arange(n_leaves - 1)[:, None]
    wrong = ~((children >= 0) & (children < present) & (children % 1 == 0)).all(axis=1)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"linkage[{row}] merges the nodes {children[row].tolist()}: "
            f"only the nodes 0 to {n_leaves + row - 1} exist before that merge"
        )
    nodes, uses = np.unique(children, return_counts=True)
    if (uses > 1).any():
        raise ValueError(
            f"linkage merges node {int(nodes[np.argmax(uses > 1)])} more than once: this is not a tree"
        )
    return children.astype(np.int64)


def _summed_shares(
    children: NDArray[np.int64], labels: NDArray[np.int64], n_classes: int
) -> NDArray[np.float64]:
    """For every class, the sum over its pairs of leaves of its share in the subtree where they meet."""
    shares = [0.0] * n_classes
    counts: list[dict[int, int] | None] = [
        {label: 1} if label != MISSING else {} for label in labels.tolist()
    ]
    sizes = [len(count or {}) for count in counts]
    for left, right in children.tolist():
        small, large = counts[left] or {}, counts[right] or {}
        counts[left] = counts[right] = None
        if len(small) > len(large):
            small, large = large, small
        size = sizes[left] + sizes[right]
        for label, n_small in small.items():
            n_large = large.get(label, 0)
            if n_large:
                shares[label] += n_small * n_large * (n_small + n_large) / size
            large[label] = n_small + n_large
        counts.append(large)
        sizes.append(size)
    return np.array(shares)
