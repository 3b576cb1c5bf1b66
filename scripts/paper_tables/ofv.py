"""Niu, Dy and Ghahramani, table 1: planted views."""

from __future__ import annotations

from statistics import fmean

from benchmarks.papers.ofv import N_SLOW_SEEDS, PAPER_SECONDS, SLOW, standard_error
from paper_tables.markdown import items, table

CELLS = [(kind, s) for s in ("2.0", "1.2") for kind in (1, 2, 3)]
HEAD = ["", *(f"Data {kind}, s = {s}" for kind, s in CELLS)]
NAMES = {
    "ours": "`OverlappingViews`",
    "crosscat": "`CrossCat` (disjoint views)",
    "lace": "lace, at its defaults (one of its 8 states)",
    "decorrelated": "`DecorrelatedKMeans`, given 10 x 3",
    "features": "`OrthogonalViews`, features, given 10 x 3",
    "clustering": "`OrthogonalViews`, clustering, given 10 x 3",
    "dp_gaussian": "`DPGaussian` (one view)",
}
PRINTED_AS = {  # the printed row of each of our methods
    "ours": "NBMC-OFV",
    "features": "OrthProj",
    "clustering": "OrthProj",
    "decorrelated": "D-kmeans",
    "crosscat": "CRP-CRP",
    "dp_gaussian": "DP-Gauss",
}


def in_order(found: dict) -> list[dict]:
    return [found[f"data{kind}_s{s}"] for kind, s in CELLS]


def all_seeds(found: dict) -> str:
    cells = in_order(found)
    means = [one["average"]["ours"] for one in cells]
    return table(
        HEAD,
        [
            *(
                [NAMES[method], *(nmi_of(one, method) for one in cells)]
                for method in NAMES
                if method not in SLOW
            ),
            ["oracle (knows all parameters)", *(over_seeds(one["seeds"], "oracle") for one in cells)],
            [
                "`OverlappingViews`, views that can be found",
                *(f"{one['good']:.3f} of {one['good_oracle']:.3f}" for one in means),
            ],
            [
                "`OverlappingViews`, number of views (ten planted)",
                *(f"{one['n_views']:.1f}" for one in means),
            ],
        ],
    )


def first_seeds(found: dict) -> str:
    """Results for the seeds on which the slower methods ran, and how these seeds differ from all seeds."""
    cells = in_order(found)
    first = [one["seeds"][:N_SLOW_SEEDS] for one in cells]
    rows = [
        [NAMES["ours"], *(over_seeds(seeds, "nmi") for seeds in first)],
        *([NAMES[method], *(nmi_of(one, method) for one in cells)] for method in NAMES if method in SLOW),
        ["oracle (knows all parameters)", *(over_seeds(seeds, "oracle") for seeds in first)],
    ]
    reached = " and ".join(
        f"{mean_of(first[i], 'oracle'):.3f} at s = {CELLS[i][1]} (all seeds: {mean_of(cells[i]['seeds'], 'oracle'):.3f})"
        for i, (kind, _) in enumerate(CELLS)
        if kind == 3
    )
    return table(HEAD, rows) + "\n" + items([f"On Data 3 the oracle reaches {reached}."])


def nmi_of(cell: dict, method: str) -> str:
    """The mean, and its standard error where the result has it or the seeds to work it out."""
    if method == "ours":
        return over_seeds(cell["seeds"], "nmi")
    error = cell["average"][method].get("nmi_se")
    return f"{cell['average'][method]['nmi']:.3f}" + (f" ± {error:.3f}" if error is not None else "")


def over_seeds(seeds: list[dict], key: str) -> str:
    return f"{mean_of(seeds, key):.3f} ± {standard_error([one[key] for one in seeds]):.3f}"


def mean_of(seeds: list[dict], key: str) -> float:
    return fmean(one[key] for one in seeds)


def printed(paper: dict) -> str:
    return table(
        ["method", "Data 1", "Data 2", "Data 3", "seconds"],
        [
            [method, *(f"{value:.2f}" for value in values), f"{PAPER_SECONDS[method]:,}"]
            for method, values in paper.items()
        ],
    )


def standing(summary: dict) -> str:
    """Overlapping beside disjoint views, and where each method is above its printed row."""
    cells = in_order(summary["ours"])
    gaps = [mean_of(one["seeds"][:N_SLOW_SEEDS], "nmi") - one["average"]["crosscat"]["nmi"] for one in cells]
    lines = [
        f"On the same seeds `OverlappingViews` is no lower than `CrossCat` in {sum(gap >= 0 for gap in gaps)} of {len(gaps)} columns, "
        f"by {', '.join(f'{gap:+.3f}' for gap in gaps)}."
    ]
    for row, values in summary["paper"].items():
        own = [method for method, printed_as in PRINTED_AS.items() if printed_as == row]
        best = [max(one["average"][method]["nmi"] for method in own) for one in cells]
        reached = {cell: value >= values[cell[0] - 1] for value, cell in zip(best, CELLS, strict=True)}
        name = NAMES[own[0]].split("`")[1]
        variant = ", the better variant" if len(own) > 1 else ""
        lines.append(f"{row} (`{name}`{variant}): {above_and_below(reached)}.")
    return items(lines)


def above_and_below(reached: dict[tuple[int, str], bool]) -> str:
    """On which data a method reaches its printed row, at both separations or at one."""
    if len(set(reached.values())) == 1:
        return f"{'at or above' if all(reached.values()) else 'below'} its printed row in every column"
    words = []
    for kind in (1, 2, 3):
        at = [s for (k, s), yes in reached.items() if k == kind and yes]
        words.append(
            f"Data {kind} {'at or above' if len(at) == 2 else 'below' if not at else f'at or above at s = {at[0]} only'}"
        )
    return "against its printed row: " + ", ".join(words)
