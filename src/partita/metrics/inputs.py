"""Two labelings as the scores need them: checked, aligned and cross-tabulated."""

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partita.labels import canonical, contingency
from partita.labels.checks import MISSING, row_weights

DENSE_CELLS_PER_OBJECT = 16  # with fewer cells, a dense table is as quick to make as a sparse one
Missing = Literal["raise", "drop"]


class LabelPair(NamedTuple):
    """Two canonical labelings of the same objects, without missing labels, and the weights of the objects."""

    truth: NDArray[np.int64]
    found: NDArray[np.int64]
    weights: NDArray[np.float64] | None


class CrossTable(NamedTuple):
    """The cells of a contingency table that are not zero, its margins and its total."""

    classes: NDArray[Any]
    clusters: NDArray[Any]
    counts: NDArray[Any]
    class_sizes: NDArray[Any]
    cluster_sizes: NDArray[Any]
    total: Any


def align(
    labels_true: Any, labels_pred: Any, missing: Missing = "raise", sample_weight: ArrayLike | None = None
) -> LabelPair:
    """Check two labelings and number their labels; rows of weight zero count as absent.

    Examples
    --------
    >>> align(["a", "b", "a"], [5, 5, None], missing="drop").truth
    array([0, 1])
    """
    check_missing_policy(missing)
    truth = canonical(labels_true, missing=MISSING)
    found = canonical(labels_pred, missing=MISSING)
    if truth.size != found.size:
        raise ValueError(
            f"labels_true has {truth.size} labels and labels_pred has {found.size}: "
            "they must label the same objects in the same order"
        )
    if truth.size == 0:
        raise ValueError("labels_true and labels_pred are empty: at least one object is needed")
    weights = row_weights(sample_weight, truth.size, "sample_weight")
    kept = np.ones(truth.size, dtype=bool) if weights is None else weights > 0
    for name, labels in (("labels_true", truth), ("labels_pred", found)):
        if missing == "raise":
            refuse_missing(labels, name, kept)
        kept = kept & (labels != MISSING)
    if kept.all():
        return LabelPair(truth, found, weights)
    if not kept.any():
        raise ValueError("no object has both labels (and a positive weight): there is nothing to compare")
    # A cluster may lose all its objects: number again, so that none is empty.
    return LabelPair(
        canonical(truth[kept]), canonical(found[kept]), None if weights is None else weights[kept]
    )


def check_missing_policy(missing: str) -> None:
    """Refuse any policy other than "raise" and "drop".

    Examples
    --------
    >>> check_missing_policy("drop")
    """
    if missing not in ("raise", "drop"):
        raise ValueError(f"missing is {missing!r}: it must be 'raise' or 'drop'")


def refuse_missing(labels: NDArray[np.int64], name: str, kept: NDArray[np.bool_] | None = None) -> None:
    """Raise a ValueError that names the first missing label among the rows that are kept.

    Examples
    --------
    >>> refuse_missing(np.array([0, 1]), "labels_true")
    """
    holes = labels == MISSING if kept is None else (labels == MISSING) & kept
    if holes.any():
        raise ValueError(
            f"{name}[{np.argmax(holes)}] is missing (-1, None or NaN), the first of {holes.sum()}: "
            "pass missing='drop' to leave such rows out, or give them a label of their own"
        )


def cross_table(labelings: LabelPair) -> CrossTable:
    """Cross-tabulate two aligned labelings; memory grows with the objects, not with classes x clusters.

    Examples
    --------
    >>> cross_table(align([0, 0, 1], [0, 1, 1])).counts
    array([1, 1, 1])
    """
    class_sizes = np.bincount(labelings.truth, weights=labelings.weights)
    cluster_sizes = np.bincount(labelings.found, weights=labelings.weights)
    is_small = class_sizes.size * cluster_sizes.size <= DENSE_CELLS_PER_OBJECT * labelings.truth.size
    table = contingency(labelings.truth, labelings.found, labelings.weights, sparse=not is_small)
    if is_small:
        classes, clusters = np.nonzero(table)
        counts = table[classes, clusters]
    else:
        cells = table.tocoo()
        classes, clusters, counts = cells.row, cells.col, cells.data
    return CrossTable(classes, clusters, counts, class_sizes, cluster_sizes, counts.sum())
