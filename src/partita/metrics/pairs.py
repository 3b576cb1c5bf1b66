"""Clustering as decisions about pairs of objects: counts, precision, recall, F, and their intervals."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partita.metrics.inputs import Labelings, Missing, align, cross_table
from partita.randomness import as_generator


class PairCounts(NamedTuple):
    """Unordered pairs of objects: together in both, only in the found, only in the true, in neither."""

    tp: int
    fp: int
    fn: int
    tn: int


class PairScores(NamedTuple):
    """Pairwise precision, recall and their F."""

    precision: float
    recall: float
    f: float


class Interval(NamedTuple):
    """An estimate with the ends of its confidence interval."""

    estimate: float
    low: float
    high: float


class PairIntervals(NamedTuple):
    """Bootstrap intervals of pairwise precision, recall and F."""

    precision: Interval
    recall: Interval
    f: Interval


def pair_counts(
    labels_true: Any,
    labels_pred: Any,
    *,
    sample_weight: ArrayLike | None = None,
    missing: Missing = "raise",
) -> PairCounts:
    """Count the pairs of objects that two clusterings put together or apart.

    The counts come from the contingency table; no pair is ever visited.

    Parameters
    ----------
    labels_true, labels_pred : array-like, shape (N,)
        Labels of any type.
    sample_weight : array-like of whole numbers, shape (N,), default=None
        How often each row occurs (for example the weights of `partita.labels.signatures`). Copies of one
        row are pairs too, as they are when the row is written out repeatedly.
    missing : {"raise", "drop"}, default="raise"
        What to do with objects that miss a label (-1, None, NaN): ValueError, or leave them out.

    Returns
    -------
    PairCounts
        `tp`, `fp`, `fn`, `tn`, exact; all 0 for a single object.

    Examples
    --------
    >>> pair_counts(list("AAAAABABBBBCAACCC"), [1] * 6 + [2] * 6 + [3] * 5)
    PairCounts(tp=20, fp=20, fn=24, tn=72)
    """
    labelings = align(labels_true, labels_pred, missing, sample_weight)
    if labelings.weights is not None and (labelings.weights % 1).any():
        weight = labelings.weights[np.argmax(labelings.weights % 1 > 0)]
        raise ValueError(
            f"sample_weight holds {weight}: weights of pairs must be whole numbers, as they count copies"
        )
    table = cross_table(labelings)
    total = int(table.total)
    tp, together, true = (_n_pairs(n) for n in (table.counts, table.cluster_sizes, table.class_sizes))
    return PairCounts(tp, together - tp, true - tp, total * (total - 1) // 2 - together - true + tp)


def pairwise_scores(
    labels_true: Any,
    labels_pred: Any,
    *,
    beta: float = 1.0,
    sample_weight: ArrayLike | None = None,
    missing: Missing = "raise",
) -> PairScores:
    """Precision, recall and F of the decision "these two objects belong together".

    Where nothing is claimed (only singletons found) the precision is 1, where nothing is to be found
    (only singletons true) the recall is 1, and where both hold F is 1.

    Parameters
    ----------
    labels_true, labels_pred : array-like, shape (N,)
        Labels of any type.
    beta : float, default=1.0
        Recall counts beta times as much as precision in F.
    sample_weight, missing
        As for `pair_counts`.

    Returns
    -------
    PairScores
        `precision`, `recall`, `f`.

    Examples
    --------
    >>> pairwise_scores([0, 0, 1, 1], [0, 0, 0, 1])
    PairScores(precision=0.3333333333333333, recall=0.5, f=0.4)
    """
    _check_beta(beta)
    counts = pair_counts(labels_true, labels_pred, sample_weight=sample_weight, missing=missing)
    return _scores(counts.tp, counts.fp, counts.fn, beta)


def pairwise_precision(
    labels_true: Any,
    labels_pred: Any,
    *,
    sample_weight: ArrayLike | None = None,
    missing: Missing = "raise",
) -> float:
    """Share of the pairs found together that belong together; see `pairwise_scores`.

    Parameters
    ----------
    labels_true, labels_pred, sample_weight, missing
        As for `pair_counts`.

    Returns
    -------
    float

    Examples
    --------
    >>> round(pairwise_precision([0, 0, 1, 1], [0, 0, 0, 1]), 6)
    0.333333
    """
    return pairwise_scores(labels_true, labels_pred, sample_weight=sample_weight, missing=missing).precision


def pairwise_recall(
    labels_true: Any,
    labels_pred: Any,
    *,
    sample_weight: ArrayLike | None = None,
    missing: Missing = "raise",
) -> float:
    """Share of the pairs that belong together that are found together; see `pairwise_scores`.

    Parameters
    ----------
    labels_true, labels_pred, sample_weight, missing
        As for `pair_counts`.

    Returns
    -------
    float

    Examples
    --------
    >>> pairwise_recall([0, 0, 1, 1], [0, 0, 0, 1])
    0.5
    """
    return pairwise_scores(labels_true, labels_pred, sample_weight=sample_weight, missing=missing).recall


def pairwise_f(
    labels_true: Any,
    labels_pred: Any,
    *,
    beta: float = 1.0,
    sample_weight: ArrayLike | None = None,
    missing: Missing = "raise",
) -> float:
    """F of pairwise precision and recall, their weighted harmonic mean; see `pairwise_scores`.

    Parameters
    ----------
    labels_true, labels_pred, beta, sample_weight, missing
        As for `pairwise_scores`.

    Returns
    -------
    float

    Examples
    --------
    >>> pairwise_f([0, 0, 1, 1], [0, 0, 0, 1])
    0.4
    """
    return pairwise_scores(
        labels_true, labels_pred, beta=beta, sample_weight=sample_weight, missing=missing
    ).f


def pairwise_intervals(
    labels_true: Any,
    labels_pred: Any,
    *,
    beta: float = 1.0,
    confidence: float = 0.95,
    n_resamples: int = 999,
    random_state: Any = None,
    missing: Missing = "raise",
) -> PairIntervals:
    """Bootstrap intervals of pairwise precision, recall and F.

    Objects are resampled, not pairs: pairs that share an object are not independent. Two copies of one
    object are not counted as a pair, since every clustering puts them together. The ends are percentiles.

    Parameters
    ----------
    labels_true, labels_pred : array-like, shape (N,)
        Labels of any type.
    beta : float, default=1.0
        Recall counts beta times as much as precision in F.
    confidence : float, default=0.95
        Coverage that is aimed at, between 0 and 1.
    n_resamples : int, default=999
        Number of bootstrap resamples.
    random_state : int, Generator or None, default=None
        Seed or generator; numpy's global generator is never touched.
    missing : {"raise", "drop"}, default="raise"
        What to do with objects that miss a label (-1, None, NaN): ValueError, or leave them out.

    Returns
    -------
    PairIntervals
        `precision`, `recall` and `f`, each an `Interval` (`estimate`, `low`, `high`).

    Examples
    --------
    >>> truth, found = [0] * 30 + [1] * 30, [0] * 27 + [1] * 33
    >>> f = pairwise_intervals(truth, found, random_state=0).f
    >>> f.low < f.estimate < f.high
    True
    """
    _check_beta(beta)
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence}: it must lie between 0 and 1")
    if n_resamples < 1:
        raise ValueError(f"n_resamples is {n_resamples}: at least one resample is needed")
    labelings = align(labels_true, labels_pred, missing)
    rng = as_generator(random_state)
    tails = [(1 - confidence) / 2, (1 + confidence) / 2]
    estimate = pairwise_scores(labelings.truth, labelings.found, beta=beta)
    low, high = np.quantile(_resampled_scores(labelings, beta, n_resamples, rng), tails, axis=0).tolist()
    return PairIntervals(*(Interval(*ends) for ends in zip(estimate, low, high)))


def _resampled_scores(
    labelings: Labelings, beta: float, n_resamples: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    truth, found, _ = labelings
    n_objects = truth.size
    n_clusters = int(found.max()) + 1
    _, cell = np.unique(truth * n_clusters + found, return_inverse=True)
    scores = np.empty((n_resamples, 3))
    for draw in scores:
        copies = np.bincount(rng.integers(n_objects, size=n_objects), minlength=n_objects)
        self_pairs = int(copies @ (copies - 1)) // 2
        tp, together, true = (
            _n_pairs(np.bincount(labels, weights=copies)) - self_pairs for labels in (cell, found, truth)
        )
        draw[:] = _scores(tp, together - tp, true - tp, beta)
    return scores


def _n_pairs(sizes: NDArray[Any]) -> int:
    """Pairs within groups of whole-number sizes, exact also where the sizes are kept as floats."""
    n = sizes.astype(np.int64)
    return int((n * (n - 1) // 2).sum())


def _scores(tp: int, fp: int, fn: int, beta: float) -> PairScores:
    precision = tp / (tp + fp) if tp + fp else 1.0
    recall = tp / (tp + fn) if tp + fn else 1.0
    hits = (1 + beta**2) * tp
    errors = beta**2 * fn + fp
    return PairScores(precision, recall, hits / (hits + errors) if hits + errors else 1.0)


def _check_beta(beta: float) -> None:
    if not beta > 0:
        raise ValueError(f"beta is {beta}: the weight of recall in F must be positive")
