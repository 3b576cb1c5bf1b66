"""Tables with several planted views, with the best possible labels given the true parameters."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partita.partitions import IndianBuffet, simulate
from partita.randomness import RandomState, as_generator

KINDS = {1: "disjoint", 2: "some columns shared", 3: "memberships from the buffet"}
BUFFET = IndianBuffet(2.0, 1.0)  # of the third kind
MAX_REDRAWS = 100_000


class PlantedViews(NamedTuple):
    """A table with several clusterings, with labels and true parameters.

    Attributes
    ----------
    X : ndarray (n_samples, n_features)
        The data.
    view_labels : ndarray of int, shape (n_samples, n_views)
        The component of each row in each view.
    feature_views : ndarray of bool, shape (n_features, n_views)
        Which columns belong to which views.
    oracle : ndarray of int, shape (n_samples, n_views)
        The most probable component in each view under the true parameters, given the true labels of the other views: no
        method can be expected to agree better with `view_labels`.
    parameters : dict of str to ndarray
        "means" and "deviations", both (n_views, n_clusters, n_features).
    """

    X: NDArray[np.float64]
    view_labels: NDArray[np.int64]
    feature_views: NDArray[np.bool_]
    oracle: NDArray[np.int64]
    parameters: dict[str, NDArray[np.float64]]


def make_planted_views(
    kind: int = 1,
    n_samples: int = 1000,
    n_features: int = 100,
    n_views: int = 10,
    n_clusters: int = 3,
    separation: float = 2.0,
    *,
    n_shared: int = 10,
    loading: float = 0.0,
    random_state: RandomState = None,
) -> PlantedViews:
    """Draw a table with several independent clusterings, each in its own columns.

    Cluster means are normal with standard deviation `separation`, and standard deviations uniform from 0.7 to 1.3, per
    view, cluster and column. A column of several views has the normalized product of their normal densities; a column
    without a view is standard normal.

    Parameters
    ----------
    kind : {1, 2, 3}, default=1
        1: every column in one view, with equal numbers of columns. 2: `n_shared` columns belong to two adjacent views,
        the others to one. 3: memberships from the Indian buffet process with alpha 2 and beta 1, drawn again until
        there are `n_views`.
    n_samples, n_features, n_views, n_clusters : int
        Sizes.
    separation : float, default=2.0
        Standard deviation of the means.
    n_shared : int, default=10
        Columns in two views (kind 2).
    loading : float, default=0.0
        Standard deviation of the loadings of a continuous factor per view, which correlates the columns of the view
        inside its clusters. The oracle knows the factors.
    random_state : int, RandomState, Generator, SeedSequence or None, default=None
        Source of randomness.

    Returns
    -------
    PlantedViews

    References
    ----------
    Niu, Dy and Ghahramani (2012), section 5.1 (its separation is not printed).

    Examples
    --------
    >>> from partita.datasets import make_planted_views
    >>> planted = make_planted_views(2, 200, 40, 4, random_state=0)
    >>> planted.X.shape, planted.view_labels.shape, int(planted.feature_views.sum())
    ((200, 40), (200, 4), 50)
    >>> bool((planted.oracle == planted.view_labels).mean() > 0.9)
    True
    """
    if kind not in KINDS:
        raise ValueError(f"kind is {kind!r}: give 1, 2 or 3 ({', '.join(KINDS.values())})")
    if n_views > n_features:
        raise ValueError(f"{n_views} views need at least as many columns, not {n_features}")
    rng = as_generator(random_state)
    Y = _memberships(kind, n_features, n_views, n_shared, rng)
    Z = rng.integers(n_clusters, size=(n_samples, n_views))
    shape = (n_views, n_clusters, n_features)
    means, deviations = rng.normal(0.0, separation, shape), rng.uniform(0.7, 1.3, shape)
    X = np.empty((n_samples, n_features))
    for d in range(n_features):
        precision, weighted = _product(means, deviations, Z, np.flatnonzero(Y[d]), d)
        if not Y[d].any():
            precision[:] = 1.0
        X[:, d] = weighted / precision + rng.normal(size=n_samples) / np.sqrt(precision)
    oracle = _oracle(X, Z, Y, means, deviations)
    if loading:
        loadings = np.where(Y.T, rng.normal(0.0, loading, (n_views, n_features)), 0.0)
        X += rng.normal(size=(n_samples, n_views)) @ loadings
    return PlantedViews(X, Z, Y, oracle, {"means": means, "deviations": deviations})


def _memberships(kind: int, D: int, V: int, n_shared: int, rng: np.random.Generator) -> np.ndarray:
    if kind == 3:
        for _ in range(MAX_REDRAWS):
            Y = simulate(BUFFET, D, rng).astype(bool)
            if Y.shape[1] == V:
                return Y
        raise ValueError(
            f"no {V} views among {D} columns in {MAX_REDRAWS} draws of the buffet: choose another number"
        )
    Y = np.zeros((D, V), dtype=bool)
    alone = D - (n_shared if kind == 2 else 0)
    Y[np.arange(alone), np.arange(alone) % V] = True
    for j, d in enumerate(range(alone, D)):
        Y[d, [j % V, (j + 1) % V]] = True
    return Y


def _product(means, deviations, Z, views, d) -> tuple[np.ndarray, np.ndarray]:
    """Precision of the product of the views' normal densities in column d, and precision times mean, row by row."""
    precision, weighted = np.zeros(len(Z)), np.zeros(len(Z))
    for v in views:
        each = deviations[v, Z[:, v], d] ** -2
        precision += each
        weighted += each * means[v, Z[:, v], d]
    return precision, weighted


def _oracle(X, Z, Y, means, deviations) -> np.ndarray:
    out = np.empty_like(Z)
    for v in range(Z.shape[1]):
        L = np.zeros((len(X), means.shape[1]))
        for d in np.flatnonzero(Y[:, v]):
            others = np.flatnonzero(Y[d] & (np.arange(Z.shape[1]) != v))
            precision, weighted = _product(means, deviations, Z, others, d)
            own = deviations[v, :, d] ** -2
            total = precision[:, None] + own
            gap = X[:, [d]] - (weighted[:, None] + own * means[v, :, d]) / total
            L += 0.5 * np.log(total) - 0.5 * total * gap**2
        out[:, v] = L.argmax(axis=1)
    return out


POSES = {  # strokes from and to (row, column), on a canvas of height and width 1
    "upper": (
        (((0.40, 0.50), (0.08, 0.22)), ((0.40, 0.50), (0.08, 0.78))),
        (((0.36, 0.50), (0.36, 0.06)), ((0.36, 0.50), (0.36, 0.94))),
        (((0.30, 0.50), (0.52, 0.20)), ((0.30, 0.50), (0.52, 0.80))),
    ),
    "lower": (
        (((0.62, 0.50), (0.96, 0.42)), ((0.62, 0.50), (0.96, 0.58))),
        (((0.62, 0.50), (0.94, 0.14)), ((0.62, 0.50), (0.94, 0.86))),
        (((0.62, 0.50), (0.72, 0.08)), ((0.62, 0.50), (0.72, 0.92))),
    ),
}
BODY = (((0.10, 0.50), (0.20, 0.50)), ((0.20, 0.50), (0.62, 0.50)))
STROKE_WIDTH = 0.045


def make_stick_figures(
    n_samples: int = 900,
    size: int = 20,
    *,
    brightness: float = 0.3,
    contrast: float = 0.0,
    noise: float = 0.15,
    random_state: RandomState = None,
) -> PlantedViews:
    """Draw images of stick figures whose arms and legs are posed independently, in three ways each.

    The pose of the arms and that of the legs are two clusterings of the images. Every image has its own brightness,
    which all of its pixels share, so its pixels depend on each other within the clusters, too.

    Parameters
    ----------
    n_samples : int, default=900
        Number of images.
    size : int, default=20
        Height and width of the images, in pixels.
    brightness : float, default=0.3
        Standard deviation of the brightness of an image, which is added to all of its pixels; the stroke has height 1.
    contrast : float, default=0.0
        Standard deviation of the height of the strokes of an image.
    noise : float, default=0.15
        Standard deviation of the noise of a pixel.
    random_state : int, RandomState, Generator, SeedSequence or None, default=None
        Source of randomness.

    Returns
    -------
    PlantedViews
        With one column per pixel. `feature_views` holds the pixels that a pose changes; `oracle` are the labels of the
        nearest figure of each image, given its brightness and contrast.

    Examples
    --------
    >>> from partita.datasets import make_stick_figures
    >>> figures = make_stick_figures(50, random_state=0)
    >>> figures.X.shape, figures.view_labels.shape, bool((figures.oracle == figures.view_labels).all())
    ((50, 400), (50, 2), True)
    """
    rng = as_generator(random_state)
    parts = [np.array([_drawn([*pose], size) for pose in POSES[part]]) for part in ("upper", "lower")]
    body = _drawn(list(BODY), size)
    figures = np.minimum(body + parts[0][:, None] + parts[1][None, :], 1.0)  # [arms, legs, pixel]
    Z = rng.integers(3, size=(n_samples, 2))
    level = brightness * rng.standard_normal((n_samples, 1))
    gain = 1.0 + contrast * rng.standard_normal((n_samples, 1))
    noiseless = gain * figures[Z[:, 0], Z[:, 1]] + level
    X = noiseless + noise * rng.standard_normal(noiseless.shape)
    gaps = ((X - level)[:, None] - gain[:, None] * figures.reshape(9, -1)[None]) ** 2
    nearest = gaps.sum(axis=2).argmin(axis=1)
    changed = np.column_stack([np.ptp(figures, axis=v).max(axis=0) > 0.01 for v in (0, 1)])
    return PlantedViews(X, Z, changed, np.column_stack(np.divmod(nearest, 3)), {"figures": figures})


def _drawn(strokes: list, size: int) -> np.ndarray:
    """Blurred strokes on a square of pixels, flattened; 1 in the middle of a stroke."""
    at = (np.arange(size) + 0.5) / size
    points = np.stack(np.meshgrid(at, at, indexing="ij"), axis=-1).reshape(-1, 2)
    out = np.zeros(len(points))
    for begin, end in np.asarray(strokes):
        along = np.clip((points - begin) @ (end - begin) / ((end - begin) ** 2).sum(), 0.0, 1.0)
        gap = ((points - begin - along[:, None] * (end - begin)) ** 2).sum(axis=1)
        out = np.maximum(out, np.exp(-0.5 * gap / STROKE_WIDTH**2))
    return out
