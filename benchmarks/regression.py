"""Compare the last small run with the committed ratios and qualities: ``python -m benchmarks.regression``.

Reads ``benchmarks/out`` (what ``python -m benchmarks`` has written) and ``benchmarks/baseline.json``, and writes
``benchmarks/out/regression.md``. Only figures that do not depend on the machine are compared: ratios to another
program or to a yardstick of the same run, and agreement with planted groups. ``--keep`` makes the last run the
baseline.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.processes import ROOT

OUT, BASELINE = ROOT / "benchmarks" / "out", ROOT / "benchmarks" / "baseline.json"
SLACK = 2.0  # a ratio that is worse by more than this factor is marked
DROP = 0.05  # a quality that is lower by more than this is marked


class Figure(NamedTuple):
    """A value of a result: where it is, what it is called, and whether it is a ratio (higher is better)."""

    benchmark: str
    path: str
    words: str
    ratio: bool = True
    data: bool = False  # whether it is another figure without the data sets of PARTITA_DATA


FIGURES = (
    Figure("em_latent_class", "ratio_cpu_per_iteration", "EM: StepMix's CPU time over ours"),
    Figure("dp_gaussian", "ratio", "DP Gaussian: scikit-learn's CPU time over ours"),
    Figure(
        "engines", "label matrices.Mixture em.speed", "EM on label matrices: StepMix's CPU time over ours"
    ),
    Figure("engines", "label matrices.Consensus.speed", "Consensus: StepMix's CPU time over ours"),
    Figure("engines", "real tables.Gaussian vb.speed", "Gaussian VB: scikit-learn's EM time over ours"),
    Figure(
        "engines", "trees and graphs.Agglomerative.speed", "average link: fastcluster's CPU time over ours"
    ),
    Figure("engines", "views.CrossCat vb.speed", "CrossCat by VB: lace's CPU time over ours"),
    Figure("sweeps", "clusters_12.ratio_to_logs.median", "sweeps: time without the cache over ours"),
    Figure("sweeps", "clusters_12.ratio_to_c.median", "sweeps: time of the C program over ours"),
    Figure("yardsticks", "import.ratio", "import partita: time of a bare interpreter over ours"),
    Figure(
        "yardsticks", "import_mixture.ratio", "import Mixture: time to import scikit-learn's base over ours"
    ),
    Figure("yardsticks", "reading.ratio", "reading codes: time of numpy's passes over ours"),
    Figure("yardsticks", "purity.ratio", "dendrogram purity: linear growth over ours"),
    Figure("yardsticks", "particle_filter.ratio", "particle filter: linear growth over ours"),
    Figure("yardsticks", "beam.ratio", "beam search: linear growth over ours"),
    Figure("yardsticks", "large_report.ratio", "report of a million objects: linear growth over ours"),
    Figure("right_k", "ten_in_2d.partita.ari.median", "planted mixtures: ARI", ratio=False),
    Figure("consensus", "all.methods.Consensus.ari", "consensus: ARI to the classes", False, True),
    Figure(
        "consensus", "all.methods.Consensus told K.ari", "consensus, K given: ARI to the classes", False, True
    ),
    Figure("crosscat", "quality.s = 2.0.gibbs.nmi.median", "CrossCat: NMI with planted views", ratio=False),
    Figure("ofv", "ours.data1_s2.0.average.ours.nmi", "overlapping views, Data 1: NMI", ratio=False),
    Figure("ofv", "ours.data2_s2.0.average.ours.nmi", "overlapping views, Data 2: NMI", ratio=False),
    Figure("stability", "iris.default.between_seeds.mean", "iris: ARI between seeds", ratio=False),
)


def look_up(document: Any, path: str) -> Any:
    """The value at a path of keys; a key may hold points itself."""
    if path in ("", None):
        return document
    for key in sorted((key for key in document if path == key or path.startswith(f"{key}.")), key=len)[::-1]:
        return look_up(document[key], path[len(key) + 1 :])
    return None


def found(folder: Path = OUT) -> dict[str, float]:
    """The figures of the last run, as far as it has them."""
    values = {}
    for figure in FIGURES:
        path = folder / f"{figure.benchmark}.json"
        if path.exists() and (os.environ.get("PARTITA_DATA") or not figure.data):
            value = look_up(json.loads(path.read_text(encoding="utf-8"))["summary"], figure.path)
            if isinstance(value, (int, float)):
                values[figure.words] = float(value)
    return values


def is_worse(figure: Figure, now: float, then: float) -> bool:
    """Whether a figure fell by more than noise explains."""
    return now * SLACK < then if figure.ratio else now < then - DROP


def page(now: dict[str, float], then: dict[str, float]) -> tuple[str, int]:
    """The page, and how many figures are worse."""
    lines = [
        "# The last run compared with the committed one",
        "",
        "| | last run | committed | |",
        "|---|---|---|---|",
    ]
    n_worse = 0
    for figure in FIGURES:
        a, b = now.get(figure.words), then.get(figure.words)
        if a is None and b is None:
            continue
        worse = a is not None and b is not None and is_worse(figure, a, b)
        n_worse += worse
        cells = ("not run" if value is None else f"{value:.3g}" for value in (a, b))
        lines.append(f"| {figure.words} | {' | '.join(cells)} | {'**worse**' if worse else ''} |")
    return "\n".join(lines) + "\n", n_worse


def main(arguments: list[str]) -> int:
    now = found()
    if "--keep" in arguments:
        BASELINE.write_text(json.dumps(now, indent=1) + "\n", encoding="utf-8")
        return 0
    then = json.loads(BASELINE.read_text(encoding="utf-8")) if BASELINE.exists() else {}
    text, n_worse = page(now, then)
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "regression.md").write_text(text, encoding="utf-8")
    print(text)
    return int(n_worse > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
