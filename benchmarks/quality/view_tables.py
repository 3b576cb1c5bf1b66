"""The tables of the benchmark `views_real`: four by recipes, two from the folder of data sets."""

from __future__ import annotations

import numpy as np

from benchmarks.quality.drawn_views import make_letters, make_stick_figures, make_turned_digits
from benchmarks.quality.known_views import KnownViews
from benchmarks.quality.survey_views import make_styled_survey

MADE = {
    "stick_figures": make_stick_figures,
    "letters": make_letters,
    "turned_digits": make_turned_digits,
    "survey": make_styled_survey,
}
COLLECTED = {
    "faces": ("cmu_faces_640", ("person", "pose")),
    "web_pages": ("webkb_1041", ("university", "type")),
}
TABLES = (*MADE, *COLLECTED)
MAX_ROWS = 900
DATA_SEED = 2026  # of recipes and of samples of rows: methods are repeated on the same table


def load_known_views(name: str, n_rows: int | None = None) -> KnownViews:
    """A table by its name, with fewer rows if `n_rows` is given."""
    if name in MADE:
        return MADE[name](seed=DATA_SEED, **({} if n_rows is None else {"n_rows": n_rows}))
    from benchmarks.data import load_benchmark
    from benchmarks.papers.ofv_real import thinned

    file, groupings = COLLECTED[name]
    table = load_benchmark(file)
    X = thinned(table.X, file, full=False) if name == "faces" else table.X.astype(int)
    rows = np.sort(np.random.default_rng(DATA_SEED).permutation(len(X))[: n_rows or MAX_ROWS])
    return KnownViews(X[rows], {g: table.target[rows, j] for j, g in enumerate(groupings)}, {})
