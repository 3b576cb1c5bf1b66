"""Make src/partita/datasets/visitors.csv: 600 invented visitors of a museum in four planted groups.

Everything is drawn from the tables below with a fixed seed. The script prints how well an oracle does
that knows the tables, has the same missing cells and assigns each visitor to the most probable group; with
``--check`` it writes nothing and exits with 1 if the file would change.
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
from pathlib import Path

import numpy as np
from scipy import stats
from sklearn.metrics import adjusted_rand_score

SEED = 1685
TARGET = Path(__file__).resolve().parent.parent / "src" / "partita" / "datasets" / "visitors.csv"
MISSING = 0.06

GROUPS = {"tourist": 240, "family": 180, "student": 120, "connoisseur": 60}

# name -> mean and standard deviation per group; decimals written
REAL = {
    "minutes_inside": ([95, 130, 70, 165], [22, 28, 20, 30], 1),
    "spend": ([24, 41, 9, 33], [6.5, 11, 2.6, 10], 2),
}
# name -> Poisson rate per group
COUNT = {
    "rooms_visited": [11, 8, 7, 17],
    "photos_taken": [26, 17, 12, 5],
}
# name -> probability of yes per group
BINARY = {
    "member": [0.04, 0.22, 0.10, 0.75],
    "audio_guide": [0.55, 0.20, 0.10, 0.40],
}
# name -> levels, and their probabilities per group
CATEGORICAL = {
    "ticket": (
        ["full", "family", "student", "senior"],
        [
            [0.74, 0.04, 0.06, 0.16],
            [0.20, 0.72, 0.03, 0.05],
            [0.22, 0.02, 0.74, 0.02],
            [0.48, 0.02, 0.05, 0.45],
        ],
    ),
    "arrival": (
        ["foot", "bus", "car", "train"],
        [
            [0.30, 0.25, 0.08, 0.37],
            [0.12, 0.16, 0.60, 0.12],
            [0.40, 0.38, 0.04, 0.18],
            [0.25, 0.15, 0.35, 0.25],
        ],
    ),
}


def draw(rng: np.random.Generator) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """Return the columns (levels as codes), the groups, and which cells are seen."""
    z = rng.permutation(np.repeat(np.arange(len(GROUPS)), list(GROUPS.values())))
    columns: dict[str, np.ndarray] = {}
    for name, (mean, deviation, decimals) in REAL.items():
        columns[name] = np.round(rng.normal(np.array(mean)[z], np.array(deviation)[z]), decimals)
    for name, rate in COUNT.items():
        columns[name] = rng.poisson(np.array(rate)[z])
    for name, chance in BINARY.items():
        columns[name] = (rng.random(z.size) < np.array(chance)[z]).astype(int)
    for name, (_, probabilities) in CATEGORICAL.items():
        upper = np.cumsum(probabilities, axis=1)[z]
        columns[name] = (rng.random((z.size, 1)) >= upper[:, :-1]).sum(axis=1)
    seen = rng.random((z.size, len(columns))) >= MISSING
    return columns, z, seen


def oracle(columns: dict[str, np.ndarray], seen: np.ndarray) -> np.ndarray:
    """Return the most probable group of each visitor under the tables, from the cells that are seen."""
    sizes = np.array(list(GROUPS.values()))
    log_posterior = np.tile(np.log(sizes / sizes.sum()), (seen.shape[0], 1))
    for d, (name, x) in enumerate(columns.items()):
        if name in REAL:
            mean, deviation, _ = REAL[name]
            log_p = stats.norm.logpdf(x[:, None], mean, deviation)
        elif name in COUNT:
            log_p = stats.poisson.logpmf(x[:, None], COUNT[name])
        elif name in BINARY:
            log_p = stats.bernoulli.logpmf(x[:, None], BINARY[name])
        else:
            log_p = np.log(np.array(CATEGORICAL[name][1]).T[x])
        log_posterior += np.where(seen[:, d, None], log_p, 0.0)
    return log_posterior.argmax(axis=1)


def text(columns: dict[str, np.ndarray], z: np.ndarray, seen: np.ndarray) -> str:
    """Return the CSV: a header, one line per visitor, empty cells where not seen, the group last."""

    def written(name: str, x: np.ndarray) -> list[str]:
        if name in REAL:
            return [f"{value:.{REAL[name][2]}f}" for value in x]
        if name in COUNT:
            return [str(value) for value in x]
        if name in BINARY:
            return [("no", "yes")[value] for value in x]
        return [CATEGORICAL[name][0][value] for value in x]

    cells = [written(name, x) for name, x in columns.items()]
    groups = list(GROUPS)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*columns, "group"])
    for i, k in enumerate(z):
        writer.writerow([*(cells[d][i] if seen[i, d] else "" for d in range(len(cells))), groups[k]])
    return out.getvalue()


def main() -> int:
    parser = argparse.ArgumentParser(description="Make the table of museum visitors.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if out of date")
    options = parser.parse_args()

    columns, z, seen = draw(np.random.default_rng(SEED))
    print(f"oracle: adjusted Rand index {adjusted_rand_score(z, oracle(columns, seen)):.3f}")
    print(f"oracle without holes: {adjusted_rand_score(z, oracle(columns, np.ones_like(seen))):.3f}")
    print(f"missing cells: {1 - seen.mean():.1%}")
    table = text(columns, z, seen)
    if options.check:
        return int(TARGET.read_text(encoding="utf-8") != table)
    TARGET.write_text(table, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
