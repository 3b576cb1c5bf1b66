"""Murphy's chapter: trees, blocks and the figures of Dirichlet-process mixtures."""

from __future__ import annotations

from math import hypot, inf
from typing import Any

from benchmarks.papers.bhc import N_GLASS, N_GLASS_DRAWN, PRINTED
from paper_tables.markdown import bars_of, command, table

TREES = {
    "single": "single",
    "complete": "complete",
    "average": "average",
    "ward": "Ward",
    "bayesian": "`BayesianTree`",
    "fixed": "fixed prior",
    "diagonal": "no covariances",
}
LINKAGES = ("single", "complete", "average", "ward")
SETS = {
    "synthetic": "synthetic (generated)",
    "newsgroups": "newsgroups (stand-in)",
    "spambase": "spambase (other rows)",
    "digits": "digits (stand-in)",
    "glass": f"glass ({N_GLASS_DRAWN} of {N_GLASS} rows)",
}


def figures(result: dict) -> str:
    """Figures 25.1, 25.7 and 25.8."""
    drawn, climb = result["summary"]["figure_25_7"], result["summary"]["figure_25_8"]
    samplers, n_starts, n_sweeps = climb["samplers"], climb["n_starts"], climb["n_sweeps"]
    titles = {
        "dp": "Dirichlet process",
        "finite": "finite mixture, K = 4",
        "dp_split_merge": "Dirichlet process, split-merge",
    }
    rows = [
        [titles[name], f"{one['arrived']} of {n_starts}", one["sweeps_until_half_arrived"] or "never",
         f"{one['median_at_end']:.1f}", f"{one['worst_at_end']:.1f}"]
        for name, one in samplers.items()
    ]  # fmt: skip
    agreement = ", ".join(f"{value:.2f} after {draw}" for draw, value in drawn["rand"].items())
    dp, finite = (samplers[name]["sweeps_until_half_arrived"] or inf for name in ("dp", "finite"))
    stuck = n_starts - samplers["finite"]["arrived"]
    return (
        "## Murphy 2012, chapter 25\n\n### Figure 25.1\n\n"
        "Purity 12/17 and Rand index 92/136, with 20, 20, 24 and 72 pairs, come out exactly: "
        "`test_murphy_figure` in `tests/metrics/test_metrics_flat.py`.\n\n"
        "### Figures 25.7 and 25.8\n\n"
        f"{command('murphy')}: the book's points are not published, these come from four Gaussians in the plane; "
        "the pictures are on [answers](answers.md). The printed figures have no numbers to stand beside ours.\n\n"
        "Figure 25.7, 100 points. Printed: draws after 50, 100 and 200 iterations and P(K) that look reasonable. Here: adjusted "
        f"Rand index with the planted labels {agreement} iterations (who knows all parameters: {drawn['oracle_rand']:.2f}). P(K) is "
        f"largest at {drawn['mode']} ({drawn['mode_share']:.2f}); the four planted have {drawn['planted_share']:.2f}: a "
        "Dirichlet process expects small clusters beside the large ones, and a hundred points do not talk it out of them.\n\n"
        f"Figure 25.8, 300 points, {n_sweeps} sweeps from {n_starts} starts; a start has arrived within five nats of the planted "
        f"labels ({climb['planted']:.1f}).\n\n"
        + table(["sampler", "arrived", "sweeps until half have", "median at the end", "worst"], rows)
        + f"\nPrinted: the Dirichlet process converges sooner most of the time. {'Agrees' if dp < finite else 'Does not agree'}. Printed "
        "without a figure: the finite mixture often stays in poor optima. "
        + (
            f"{stuck} of {n_starts} starts do so here.\n"
            if stuck
            else f"Not so here: all its starts arrive within {n_sweeps} sweeps.\n"
        )
    )


# ---- table 25.1 ----------------------------------------------------------------------------------------------------


def bhc(result: dict) -> str:
    found = {name: result["summary"][name] for name in SETS}
    rows = [
        [
            SETS[name],
            *(purity_beside_print(one["purity"].get(method), PRINTED[name].get(method)) for method in TREES),
        ]
        for name, one in found.items()
    ]
    gaps = [
        [SETS[name], *(gap_in_words(*gap(one, method)) for method in LINKAGES)] for name, one in found.items()
    ]
    return (
        "### Table 25.1 (Heller and Ghahramani 2005): dendrogram purity\n\n"
        f"{command('bhc')}: mean of {found['glass']['n_draws']} draws ± standard error (printed in brackets; the book does not say what its ± is). The "
        'book writes "purity", which is its (25.5); the figures are *dendrogram* purity, the expected share of a class in the '
        "smallest subtree that holds two of its leaves. *Fixed prior*: hyper-parameters are not learned; *no covariances*: "
        "diagonal Gaussians, on real columns only.\n\n"
        + table(["set", *TREES.values()], rows)
        + "\n`BayesianTree` less each linkage, ± its standard error"
        + (
            " over the draws"
            if paired(found)
            else " (from the two errors as if the draws were apart; they are the same, so it is mostly too large)"
        )
        + ", bold beyond twice that:\n\n"
        + table(["set", *(TREES[method] for method in LINKAGES)], gaps)
        + f"\n{bars_of(result)}\n\n{bhc_verdict(found)}"
    )


def purity_beside_print(ours: dict | None, printed: tuple[float, float] | None) -> str:
    if ours is None:
        return ""
    words = f"{ours['mean']:.3f} ± {ours['standard_error']:.3f}"
    return words + (f" ({printed[0]:.3f} ± {printed[1]:.3f})" if printed else "")


def gap(one: dict, method: str) -> tuple[float, float]:
    """By how much the Bayesian tree is purer than a method, and the standard error of that."""
    if "bayesian_less" in one:
        return one["bayesian_less"][method]["mean"], one["bayesian_less"][method]["standard_error"]
    ours, other = one["purity"]["bayesian"], one["purity"][method]
    return ours["mean"] - other["mean"], hypot(ours["standard_error"], other["standard_error"])


def paired(found: dict) -> bool:
    return all("bayesian_less" in one for one in found.values())


def gap_in_words(mean: float, error: float) -> str:
    words = f"{mean:+.3f} ± {error:.3f}"
    return f"**{words}**" if abs(mean) > 2 * error else words


def bhc_verdict(found: dict) -> str:
    """What agrees with the print and what does not."""
    printed = {name: PRINTED[name]["bayesian"][0] for name in found}
    ours = {name: one["purity"]["bayesian"]["mean"] for name, one in found.items()}
    below = [
        f"{name} ({ours[name]:.3f}, printed {printed[name]:.3f})"
        for name in found
        if ours[name] < printed[name]
    ]
    easier = [
        name
        for name, one in found.items()
        if all(one["purity"][method]["mean"] > mean for method, (mean, _) in PRINTED[name].items())
    ]
    lines = [
        f"- Below the printed Bayesian tree: {in_a_row(below)}; at or above it elsewhere. The rows are nowhere the book's, and on "
        f"{in_a_row(easier)} every linkage is above its printed figure too."
    ]
    for method in ("average", "ward"):
        gaps = {name: gap(one, method) for name, one in found.items()}
        ahead = [name for name, (mean, error) in gaps.items() if mean > error]
        behind = [name for name, (mean, error) in gaps.items() if -mean > error]
        within = [name for name, (mean, error) in gaps.items() if abs(mean) <= error]
        lines.append(
            f"- Against {TREES[method]}{' linkage' if method == 'average' else ''}: ahead by more than the standard error on "
            f"{in_a_row(ahead)}; behind by more on {in_a_row(behind)}; within it on {in_a_row(within)}."
        )
    best = {
        name: min((gap(one, method) for method in LINKAGES), key=lambda g: g[0])
        for name, one in found.items()
    }
    clear = [name for name, (mean, error) in best.items() if mean > 2 * error]
    lines.append(
        f"- Printed: much better than every linkage on all sets but glass. Ahead of every linkage by more than two standard errors "
        f"here: {in_a_row(clear)}."
    )
    return "\n".join([*lines, glass_verdict(found["glass"]["purity"])]) + "\n"


def glass_verdict(purity: dict) -> str:
    ours = purity["bayesian"]["mean"]
    ahead = [TREES[method] for method in LINKAGES if purity[method]["mean"] > ours]
    others = [
        f"{TREES[method]} ({purity[method]['mean']:.3f})"
        for method in ("diagonal", "fixed")
        if purity[method]["mean"] > ours
    ]
    loser = "every linkage is" if len(ahead) == len(LINKAGES) else f"{in_a_row(ahead)} are"
    return (
        f"- Glass: {loser} purer than the Bayesian tree ({ours:.3f}); the print has it last too. Settings other than the default "
        f"that are purer: {in_a_row(others)}. Why: [trees](trees.md)."
    )


def in_a_row(names: list[str]) -> str:
    return ", ".join(names) or "none"


# ---- blocks --------------------------------------------------------------------------------------------------------


def irm(result: dict) -> str:
    animals, cells = result["summary"]["animals"], result["summary"]["hidden_cells"]
    rows = [
        [f"clusters of {side}", *numbers_of_clusters(animals[key], animals["found"][place])]
        for place, (key, side) in enumerate((("rows", "animals"), ("columns", "features")))
    ]
    features, estimate = animals["columns"], animals["found"][1]
    return (
        "### Figure 25.18 (Kemp et al. 2006): animals in blocks\n\n"
        f"{command('irm')}: 50 animals, 85 features; more on [blocks](blocks.md). The estimate is the partition of least expected "
        "variation of information.\n\n"
        + table(
            ["", "printed", "P(printed)", "posterior mean", "most probable", "in the estimate", "R-hat"], rows
        )
        + f"\n{bars_of(result)}\n\n"
        f"The number of animals' clusters agrees. Of features the posterior is wide and lies higher: {features['published']} has "
        f"{features['published_share']:.2f}, {features['mode']} is most probable, and the estimate, which averages over draws, has "
        f"{estimate}. Hidden cells (no printed figure): {cells['accuracy']:.1%} rightly predicted, {cells['column_accuracy']:.1%} by "
        "the share of their column.\n\n"
        "![Animals and features in blocks](images/irm_animals.png)\n"
    )


def numbers_of_clusters(side: dict[str, Any], estimate: int) -> list[str]:
    return [
        f"{side['published']}",
        f"{side['published_share']:.2f}",
        f"{side['mean']:.1f}",
        f"{side['mode']}",
        f"{estimate}",
        f"{side['rhat']:.3f}",
    ]
