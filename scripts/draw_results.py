"""Draw the figures of docs/results.md from the result files.

The critical-difference plot is that of Demsar (2006): mean ranks over the sets, and bars that join methods whose ranks
do not differ significantly (Nemenyi's test at 5%, after Friedman's).
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import binom, friedmanchisquare, studentized_range

ROOT = Path(__file__).resolve().parents[1]
RESULTS, IMAGES = ROOT / "benchmarks" / "results", ROOT / "docs" / "images"
OURS, OTHERS = "#c2410c", "#64748b"
GIVEN_K = ("told K", "k-LACA")  # parts of the names, in the results, of methods that are given K


def kept(name: str) -> dict[str, Any] | None:
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


# ---- consensus -----------------------------------------------------------------------------------------------------


def critical_difference(n_methods: int, n_sets: int, level: float = 0.05) -> float:
    """The smallest significant difference of two mean ranks (Nemenyi)."""
    q = studentized_range.ppf(1.0 - level, n_methods, np.inf) / math.sqrt(2.0)
    return float(q * math.sqrt(n_methods * (n_methods + 1) / (6.0 * n_sets)))


def cliques(ranks: np.ndarray, apart: float) -> list[tuple[int, int]]:
    """Longest runs of sorted ranks that lie within ``apart`` of each other, as (first, last)."""
    order, found = np.sort(ranks), []
    for i in range(len(order)):
        j = int(np.searchsorted(order, order[i] + apart, side="right")) - 1
        if j > i and not any(a <= i and j <= b for a, b in found):
            found.append((i, j))
    return found


def draw_ranks(ax: Any, names: list[str], ranks: np.ndarray, scores: np.ndarray, title: str) -> None:
    apart = critical_difference(len(names), len(scores))
    order = np.argsort(ranks)
    p = friedmanchisquare(*scores.T).pvalue
    for place, j in enumerate(order):
        ours = names[j].startswith("Consensus")
        ax.plot([1, ranks[j]], [place, place], color="#e2e8f0", lw=1, zorder=0)
        ax.plot(ranks[j], place, "o", ms=8, color=OURS if ours else OTHERS)
        color = OURS if ours else "#334155"
        ax.annotate(
            f"{ranks[j]:.2f}",
            (ranks[j], place),
            (7, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
            color=color,
        )
    sorted_ranks = ranks[order]
    for depth, (i, j) in enumerate(cliques(ranks, apart)):
        x = len(names) + 0.35 + 0.18 * depth
        ax.plot([x, x], [i - 0.25, j + 0.25], color="#0f172a", lw=3, solid_capstyle="round")
    ax.set_yticks(range(len(names)), [names[j].replace(" told K", "") for j in order])
    for label, j in zip(ax.get_yticklabels(), order, strict=True):
        label.set_color(OURS if names[j].startswith("Consensus") else "#0f172a")
    ax.set_xlim(1, len(names) + 1.1)
    ax.invert_yaxis()
    ax.set_xlabel("mean rank over the sets (1 is best)")
    ax.set_title(f"{title}\ncritical difference {apart:.2f}; Friedman p = {p:.1e}", loc="left", fontsize=9)
    ax.spines[["top", "right"]].set_visible(False)
    assert len(sorted_ranks) == len(names)


def draw_consensus(result: dict[str, Any]) -> plt.Figure:
    by_set, ranked = result["summary"]["all"]["by_set"], result["summary"]["all"]["ranks"]
    given_k = [m for m in ranked if any(mark in m for mark in GIVEN_K)]
    free = [m for m in ranked if m not in given_k]
    fig, axes = plt.subplots(
        1, 2, figsize=(11, 0.42 * max(len(given_k), len(free)) + 1.6), constrained_layout=True
    )
    for ax, names, title in (
        (axes[0], free, "Methods that find the number of clusters"),
        (axes[1], given_k, "Methods that are given it"),
    ):
        scores = np.array([[one[m] for m in names] for one in by_set.values()])
        ranks = np.array([ranked[m] for m in names])
        draw_ranks(ax, names, ranks, scores, f"{title} ({len(scores)} sets)")
    return fig


# ---- number of clusters --------------------------------------------------------------------------------------------


def draw_right_k(result: dict[str, Any]) -> plt.Figure:
    titles = {
        "ten_in_2d": ("10 groups,\n2 columns", 10),
        "ten_in_20d": ("10 groups,\n20 columns", 10),
        "fifty_in_20d": ("50 groups,\n20 columns", 50),
    }
    fig, axes = plt.subplots(1, len(titles), figsize=(9, 3.2), constrained_layout=True)
    for ax, (name, (title, planted)) in zip(axes, titles.items(), strict=True):
        found = result["summary"][name]
        ax.axhline(planted, color="#0f172a", lw=1, ls="--")
        ax.text(0.5, planted, "planted", ha="center", va="bottom", fontsize=8)
        for x, (who, color) in enumerate((("partita", OURS), ("sklearn", OTHERS))):
            numbers = [int(k) for k in str(found[who]["found"]).split(",")]
            spots = x + np.linspace(-0.14, 0.14, len(numbers))
            ax.plot(spots, numbers, "o", color=color, ms=7, alpha=0.85)
        ax.set_xticks([0, 1], ["Mixture()", "Bayesian-\nGaussianMixture"])
        ax.set_xlim(-0.5, 1.5)
        ax.set_ylim(0, 1.15 * ax.get_ylim()[1])
        ax.set_title(title, fontsize=9)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("clusters found, one dot per seed")
    return fig


# ---- views ---------------------------------------------------------------------------------------------------------


def draw_views(result: dict[str, Any]) -> plt.Figure:
    names = {
        "ours": "OverlappingViews",
        "crosscat": "CrossCat",
        "lace": "lace",
        "clustering": "orthogonal, clustering",
        "features": "orthogonal, features",
        "decorrelated": "decorrelated k-means",
        "dp_gaussian": "one view (DP Gaussian)",
    }
    table = result["summary"]["ours"]
    fig, axes = plt.subplots(1, 2, figsize=(10.5, 3.8), sharey=True, constrained_layout=True)
    for ax, s in zip(axes, ("2.0", "1.2"), strict=True):
        rows = [table[f"data{kind}_s{s}"]["average"] for kind in (1, 2, 3)]
        methods = [m for m in names if m in rows[0]]
        # slow methods ran on three of the ten tables, so each method is divided by the oracle of its own tables
        width = 0.8 / len(methods)
        for i, method in enumerate(methods):
            x = np.arange(3) - 0.4 + (i + 0.5) * width
            color = {"ours": OURS, "crosscat": "#f59e0b"}.get(method, plt.cm.Greys(0.35 + 0.08 * i))
            shares = [row[method]["nmi"] / row[method]["oracle"] for row in rows]
            ax.bar(x, shares, width * 0.92, color=color, label=names[method])
        ax.axhline(1.0, color="#0f172a", lw=1.2, ls="--")
        ax.set_xticks(range(3), ["disjoint", "ten columns\nin two views", "buffet"])
        ax.set_title(f"separation {s}", fontsize=9)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("average NMI over ten planted views,\nas a share of the oracle's")
    fig.legend(
        *axes[0].get_legend_handles_labels(), fontsize=8, ncols=4, loc="outside lower center", frameon=False
    )
    axes[0].set_ylim(0, 1.05)
    return fig


# ---- calibration ---------------------------------------------------------------------------------------------------


def draw_calibration(result: dict[str, Any]) -> plt.Figure:
    """One panel per model: a line per trait, and the band that holds 99% of the bars of uniform ranks."""
    models, n_ranks = result["models"], result["n_draws"] + 1
    low, high = binom.interval(0.99, result["n_tables"], 1.0 / n_ranks)
    n_columns = 4
    n_lines = -(-len(models) // n_columns)
    figure, axes = plt.subplots(
        n_lines, n_columns, figsize=(9.5, 1.35 * n_lines), sharex=True, sharey=True, layout="constrained"
    )
    for ax, (name, model) in zip(axes.flat, models.items(), strict=False):
        ax.axhspan(low, high, color="#e2e8f0", lw=0)
        for trait, counts in model["histograms"].items():
            ours = trait.startswith("clusters")
            ax.stairs(
                counts, np.arange(n_ranks + 1) - 0.5, color=OURS if ours else OTHERS, lw=1.4 if ours else 0.7
            )
        ax.set_title(name, fontsize=8)
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(labelsize=7)
    for ax in axes.flat[len(models) :]:
        ax.set_axis_off()
    axes[0, 0].set_ylim(0)
    figure.supxlabel("rank of the truth among the draws", fontsize=9)
    figure.supylabel("tables", fontsize=9)
    return figure


PICTURES = {
    "results_calibration.png": ("calibration", draw_calibration),
    "results_consensus.png": ("consensus", draw_consensus),
    "results_right_k.png": ("right_k", draw_right_k),
    "results_views.png": ("ofv", draw_views),
}


def main() -> int:
    for picture, (name, draw) in PICTURES.items():
        result = kept(name)
        if result is None:
            print(f"{picture}: there is no result of {name}", file=sys.stderr)
            continue
        figure = draw(result)
        figure.savefig(IMAGES / picture, dpi=130)
        plt.close(figure)
    return 0


if __name__ == "__main__":
    sys.exit(main())
