"""Several labelings against several others, matched one to one."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partita.metrics.information import normalized_mutual_info


class MatchingResult(NamedTuple):
    """Result of `match_labelings`.

    `average` is the sum of the matched scores over the number of true labelings (one without a
    partner scores 0) and `average_matched` their mean over the matched ones only; `pairs` holds the matched
    (true, found) indices, one pair per row, and `scores` every true labeling against every found one.
    """

    average: float
    average_matched: float
    pairs: NDArray[np.int64]
    scores: NDArray[np.float64]


def match_labelings(
    truths: Any, founds: Any, *, score: Callable[[Any, Any], float] = normalized_mutual_info
) -> MatchingResult:
    """Match true and found labelings one to one so that the sum of their scores is largest.

    For multiple views: each true view is compared with at most one found view. The numbers may differ;
    the labelings left over have no partner.

    Parameters
    ----------
    truths, founds : sequence of labelings, or matrix (objects x labelings)
        A list or tuple is read as a sequence of label vectors. An array or data frame with two dimensions
        is read by columns, as `view_labels_` is laid out.
    score : callable, default=normalized_mutual_info
        `score(labels_true, labels_pred)`; greater is better.
        `functools.partial` sets its options, for example `average="geometric"` for the tables of
        NBMC-OFV or `missing="drop"`; missing labels are an error otherwise.

    Returns
    -------
    MatchingResult
        `average`, `average_matched`, `pairs`, `scores`.

    Examples
    --------
    >>> colors, shapes = ["r", "r", "b", "b"], [0, 1, 0, 1]
    >>> found = match_labelings([colors, shapes], [[5, 6, 5, 6], [1, 1, 1, 1], [2, 2, 3, 3]])
    >>> found.average
    1.0
    >>> found.pairs
    array([[0, 2],
           [1, 0]])
    """
    from scipy.optimize import linear_sum_assignment

    truths, founds = _labelings(truths, "truths"), _labelings(founds, "founds")
    scores = np.array([[score(truth, found) for found in founds] for truth in truths], dtype=np.float64)
    if np.isnan(scores).any():
        i, j = np.argwhere(np.isnan(scores))[0]
        raise ValueError(f"score(truths[{i}], founds[{j}]) is NaN: the matching needs numbers")
    rows, columns = linear_sum_assignment(scores, maximize=True)
    matched = scores[rows, columns]
    return MatchingResult(
        average=float(matched.sum() / len(truths)),
        average_matched=float(matched.mean()),
        pairs=np.column_stack([rows, columns]).astype(np.int64),
        scores=scores,
    )


def _labelings(labelings: Any, name: str) -> list[Any]:
    if not isinstance(labelings, (list, tuple)):
        matrix = np.asarray(labelings)
        if matrix.ndim != 2:
            raise ValueError(
                f"{name} has shape {matrix.shape}: pass a list of labelings or a matrix (objects x labelings)"
            )
        labelings = list(matrix.T)
    if len(labelings) == 0:
        raise ValueError(f"{name} is empty: at least one labeling is needed on both sides")
    return list(labelings)
