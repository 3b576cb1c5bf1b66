"""Drawn pictures with several groupings: stick figures, colored letters, digits beside a turned digit.

Stick figures follow Guennemann et al. (2014, SMVC): 900 pictures of 20 x 20 pixels, three poses of the upper and
three of the lower body, drawn independently. Letters follow Miklautz et al. (2020, ENRC): pictures of 9 x 7 pixels in
red, green and blue, with a letter, its color and a marked corner. Here the three colors have the same red, and the
letter is underlined in its color, so that some columns depend on the letter only and some on the color only. In both,
the picture has a gray background and a brightness of its own, by which all pixels are multiplied.

Digits are scikit-learn's, 8 x 8 pixels; the right half of a picture is another picture, of the digit 4, which is
turned by one of three angles and a small angle of its own.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from benchmarks.quality.known_views import KnownViews, dependent_columns

SIDE = 20  # of a stick figure, in pixels
HALF_WIDTH, BACKGROUND = 0.9, 0.3  # of a stroke, in pixels; gray level behind a figure
DARKEST, PIXEL_NOISE = 0.5, 0.05  # brightness is uniform from DARKEST to 1
HEAD_RADIUS = 2.2
# segments from (x, y) to (x, y) with y downwards, and the center of the head
ARMS = {
    "raised": (((10, 9), (4, 1)), ((10, 9), (16, 1)), ((10, 6), (10, 10))),
    "stretched": (((10, 8), (1, 8)), ((10, 8), (18, 8)), ((10, 6), (10, 10))),
    "bowing": (((10, 10), (3, 7)), ((3, 7), (1, 9.5)), ((10, 10), (6, 4))),
}
HEADS = {"raised": (10, 3.5), "stretched": (10, 3.5), "bowing": (6, 2.6)}
LEGS = {
    "together": (((9, 11), (9, 19)), ((11, 11), (11, 19))),
    "apart": (((10, 11), (3, 19)), ((10, 11), (17, 19))),
    "kicking": (((10, 11), (1, 13)), ((10, 11), (14, 15)), ((14, 15), (19, 19))),
}
LETTERS = {
    "A": ("..#..", ".#.#.", "#...#", "#...#", "#####", "#...#", "#...#"),
    "B": ("####.", "#...#", "#...#", "####.", "#...#", "#...#", "####."),
    "C": (".###.", "#...#", "#....", "#....", "#....", "#...#", ".###."),
    "X": ("#...#", "#...#", ".#.#.", "..#..", ".#.#.", "#...#", "#...#"),
    "Y": ("#...#", "#...#", ".#.#.", "..#..", "..#..", "..#..", "..#.."),
    "Z": ("#####", "....#", "...#.", "..#..", ".#...", "#....", "#####"),
}
COLORS = {"red": (1.0, 0.2, 0.2), "yellow": (1.0, 1.0, 0.2), "magenta": (1.0, 0.2, 1.0)}
CORNERS = {"top left": (0, 0), "top right": (0, 6), "bottom left": (8, 0), "bottom right": (8, 6)}
TURNED_DIGIT, ANGLES, ANGLE_NOISE = 4, (0.0, 120.0, 240.0), 8.0  # degrees


def make_stick_figures(n_rows: int = 900, seed: int = 0) -> KnownViews:
    """Stick figures in three poses of the upper and three of the lower body: one pixel per column."""
    uppers = [np.maximum(strokes(ARMS[pose]), disk(HEADS[pose])) for pose in ARMS]
    lowers = [strokes(LEGS[pose]) for pose in LEGS]
    templates = np.array([[np.maximum(upper, lower).ravel() for lower in lowers] for upper in uppers])
    return photographed(BACKGROUND + (1 - BACKGROUND) * templates, ("upper", "lower"), n_rows, seed)


def make_letters(n_rows: int = 900, seed: int = 0) -> KnownViews:
    """Letters with a color and a marked corner: red, green and blue of one pixel are three columns."""
    templates = np.full((len(LETTERS), len(COLORS), len(CORNERS), 9, 7, 3), BACKGROUND)
    for (i, letter), (j, color), (k, corner) in product(*map(enumerate, (LETTERS, COLORS, CORNERS))):
        picture = templates[i, j, k]
        lit = np.array([[mark == "#" for mark in line] for line in (*LETTERS[letter], "#####")])
        picture[1:, 1:6][lit] = COLORS[color]
        picture[CORNERS[corner]] = 1.0
    return photographed(
        templates.reshape(*templates.shape[:3], -1), ("letter", "color", "corner"), n_rows, seed
    )


def photographed(templates: np.ndarray, names: tuple[str, ...], n_rows: int, seed: int) -> KnownViews:
    """Rows of independent groups, each with a brightness of its own, and noise."""
    rng = np.random.default_rng(seed)
    groups = [rng.integers(n, size=n_rows) for n in templates.shape[:-1]]
    brightness = rng.uniform(DARKEST, 1.0, (n_rows, 1))
    X = brightness * templates[tuple(groups)]
    X += rng.normal(0.0, PIXEL_NOISE, X.shape)
    return KnownViews(X, dict(zip(names, groups)), dict(zip(names, dependent_columns(templates))))


def strokes(segments) -> np.ndarray:
    """Gray levels of segments with soft edges, by the distance of each pixel to the nearest segment."""
    y, x = np.mgrid[:SIDE, :SIDE].astype(float)
    nearest = np.full((SIDE, SIDE), np.inf)
    for (x0, y0), (x1, y1) in segments:
        dx, dy = x1 - x0, y1 - y0
        along = np.clip(((x - x0) * dx + (y - y0) * dy) / (dx * dx + dy * dy), 0.0, 1.0)
        nearest = np.minimum(nearest, np.hypot(x - x0 - along * dx, y - y0 - along * dy))
    return np.clip(HALF_WIDTH + 0.5 - nearest, 0.0, 1.0)


def disk(center: tuple[float, float]) -> np.ndarray:
    """Gray levels of a head."""
    y, x = np.mgrid[:SIDE, :SIDE].astype(float)
    return np.clip(HEAD_RADIUS + 0.5 - np.hypot(x - center[0], y - center[1]), 0.0, 1.0)


def make_turned_digits(n_rows: int = 900, seed: int = 0) -> KnownViews:
    """A digit beside a turned digit 4, 64 columns each."""
    from scipy.ndimage import rotate
    from sklearn.datasets import load_digits

    rng = np.random.default_rng(seed)
    digits = load_digits()
    left = rng.choice(len(digits.target), n_rows, replace=n_rows > len(digits.target))
    right = rng.choice(np.flatnonzero(digits.target == TURNED_DIGIT), n_rows)
    turn = rng.integers(len(ANGLES), size=n_rows)
    angles = np.array(ANGLES)[turn] + rng.normal(0.0, ANGLE_NOISE, n_rows)
    turned = [rotate(digits.images[i], angle, reshape=False, order=1) for i, angle in zip(right, angles)]
    X = np.hstack([digits.images[left].reshape(n_rows, -1), np.reshape(turned, (n_rows, -1))])
    labels = {"digit": digits.target[left], "angle": turn}
    return KnownViews(X, labels, {"digit": np.arange(64), "angle": np.arange(64, 128)})
