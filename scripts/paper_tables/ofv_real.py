"""Niu, Dy and Ghahramani, table 2: faces and web pages."""

from __future__ import annotations

from benchmarks.papers.ofv_real import PAPER_MACHINE_SOUND
from paper_tables.markdown import items, table

NAMES = {
    "ours": "`OverlappingViews`",
    "disjoint": "the same, one view per column",
    "decorrelated": "`DecorrelatedKMeans`, K given",
    "features": "`OrthogonalViews`, features, K given",
    "clustering": "`OrthogonalViews`, clustering, K given",
    "one_view": "one view (DP)",
}
SHORT_NAMES = {
    "ours": "`OverlappingViews`",
    "disjoint": "disjoint views",
    "decorrelated": "decorrelated",
    "features": "orthogonal features",
    "clustering": "orthogonal clustering",
    "one_view": "one view",
}
PRINTED_AS = {
    "ours": ("NBMC-OFV",),
    "disjoint": ("CRP-CRP",),
    "decorrelated": ("D-kmeans",),
    "features": ("OrthProj",),
    "clustering": ("OrthProj",),
    "one_view": ("DP-Gaussian", "DP-multinomial"),
}
KNOWN = {
    "cmu_faces_640": ["person", "pose", "expression", "glasses"],
    "webkb_1041": ["university", "type"],
}


def beside_print(summary: dict, data: str) -> str:
    known = KNOWN[data]
    rows = [
        [words, *(f"{v:.3f}" for v in one["nmi"]), one["n_views"], f"{one['cpu']:.0f}"]
        for method, words in NAMES.items()
        for one in [summary["ours"][data][method]]
    ]
    idle = [""] * (len(known) - 2)
    rows += [
        [f"*printed:* {method}", *(f"{v:.2f}" for v in values), *idle, "", ""]
        for method, values in summary["paper"][data].items()
    ]
    return table([data, *known, "views", "CPU s"], rows)


def standing(summary: dict) -> str:
    """For each labeling, which methods reach their printed row."""
    lines = [
        reached(summary["ours"][data], summary["paper"][data], place, known[place])
        for data, known in KNOWN.items()
        for place in (0, 1)
    ]
    sound = "; ".join(
        f"{method} {', '.join(f'{value:.2f}' for value in values)}"
        for method, values in PAPER_MACHINE_SOUND.items()
    )
    return items([*lines, f"Machine sound, printed only: {sound}."])


def reached(found: dict, paper: dict, place: int, target: str) -> str:
    """Which methods reach their printed row, and which the best printed model."""
    own = {method: next(paper[row][place] for row in PRINTED_AS[method] if row in paper) for method in NAMES}
    values = {method: found[method]["nmi"][place] for method in NAMES}
    model = paper["NBMC-OFV"][place]
    above = [SHORT_NAMES[method] for method in values if values[method] > model]

    def those(reaching: bool) -> str:
        chosen = [method for method in own if (values[method] >= own[method]) == reaching]
        return ", ".join(f"{SHORT_NAMES[m]} {values[m]:.3f} ({own[m]:.2f})" for m in chosen) or "none"

    return (
        f"{target.capitalize()}. At or above: {those(True)}. Below: {those(False)}. Above the {model:.2f} of NBMC-OFV: "
        f"{', '.join(above) or 'none'}."
    )
