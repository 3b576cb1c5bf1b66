"""Credible balls: which partitions are as good as the estimate, and how far they go."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partita.posterior.draws import check_partition, gather
from partita.posterior.losses import loss_matrix

TIE = 1e-10  # distances that differ by less are equal


class CredibleBall(NamedTuple):
    """The smallest ball around a partition that holds at least `level` of the posterior.

    The bounds are draws inside the ball, each a matrix with one label vector a row (several where they tie):
    `horizontal` lies furthest from the centre; `upper_vertical` is furthest among those with the fewest clusters,
    `lower_vertical` among those with the most.
    """

    radius: float
    level: float
    mass: float  # share of the draws inside, at least `level`
    horizontal: NDArray[np.int64]
    upper_vertical: NDArray[np.int64]
    lower_vertical: NDArray[np.int64]
    distances: NDArray[np.float64]  # [draw], to the centre, in the order of the draws


def credible_ball(
    draws: ArrayLike,
    partition: ArrayLike,
    *,
    level: float = 0.95,
    loss: str = "vi",
    weights: ArrayLike | None = None,
) -> CredibleBall:
    """The smallest ball of partitions around an estimate with at least `level` of the posterior draws.

    Good for: saying how far the partitions reach that the data do not rule out; the vertical bounds show what the
    coarsest and the finest of them look like. Not for: judging single objects (see `confidence`).

    Parameters
    ----------
    draws : array-like of int, shape (T, N)
        Label vectors from the posterior, one a row.
    partition : array-like of int, shape (N,)
        The centre, for example of `point_estimate`.
    level : float, default=0.95
        Posterior mass, above 0 and at most 1.
    loss : {"vi", "binder", "nvi", "nid"}, default="vi"
        The distance.
    weights : array-like of float, shape (T,), default=None
        Weight of each draw.

    Returns
    -------
    CredibleBall

    References
    ----------
    Wade and Ghahramani (2018), Bayesian Analysis 13.

    Examples
    --------
    >>> draws = [[0, 0, 1, 1]] * 18 + [[0, 0, 0, 0], [0, 1, 2, 3]]
    >>> ball = credible_ball(draws, [0, 0, 1, 1], level=0.95)
    >>> ball.radius, ball.mass
    (1.0, 1.0)
    >>> ball.upper_vertical.tolist(), ball.lower_vertical.tolist()
    ([[0, 0, 0, 0]], [[0, 1, 2, 3]])
    """
    if not 0.0 < level <= 1.0:
        raise ValueError(f"level is {level}: it must be above 0 and at most 1")
    found = gather(draws, weights)
    centre = check_partition(partition, found.n_objects)
    distances = loss_matrix(centre[None].astype(np.int64), draws, loss)[0]
    far = distances[found.sources]
    order = np.argsort(far, kind="stable")
    reached = np.cumsum(found.weights[order])
    # a level of 19 in 20 is met by 19 of 20 draws, whatever the rounding of the sum
    radius = float(far[order[min(int(np.searchsorted(reached, level - 1e-12)), len(order) - 1)]])
    inside = np.flatnonzero(far <= radius + TIE)
    n_clusters = found.n_clusters[inside]
    fewest, most = n_clusters.min(), n_clusters.max()

    def furthest(rows: NDArray[np.intp]) -> NDArray[np.int64]:
        return found.labels[rows[far[rows] >= far[rows].max() - TIE]].astype(np.int64)

    return CredibleBall(
        radius,
        level,
        float(found.weights[inside].sum()),
        furthest(inside),
        furthest(inside[n_clusters == fewest]),
        furthest(inside[n_clusters == most]),
        distances,
    )
