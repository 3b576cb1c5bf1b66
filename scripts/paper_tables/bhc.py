"""Murphy's table 25.1: the purity of trees."""

from __future__ import annotations

from benchmarks.papers.bhc import N_GLASS, N_GLASS_DRAWN, PRINTED
from paper_tables.markdown import items, table

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


def purities(summary: dict) -> str:
    return table(
        ["set", *TREES.values()],
        [
            [
                title,
                *(
                    beside_print(summary[name]["purity"].get(method), PRINTED[name].get(method))
                    for method in TREES
                ),
            ]
            for name, title in SETS.items()
        ],
    )


def beside_print(ours: dict | None, printed: tuple[float, float] | None) -> str:
    if ours is None:
        return ""
    words = f"{ours['mean']:.3f} ± {ours['standard_error']:.3f}"
    return words + (f" ({printed[0]:.3f} ± {printed[1]:.3f})" if printed else "")


def gaps(summary: dict) -> str:
    """By how much the Bayesian tree is purer than each linkage, bold beyond two standard errors."""
    return table(
        ["set", *(TREES[method] for method in LINKAGES)],
        [
            [title, *(in_words(*gap(summary[name], method)) for method in LINKAGES)]
            for name, title in SETS.items()
        ],
    )


def gap(one: dict, method: str) -> tuple[float, float]:
    """By how much the Bayesian tree is purer than a method, and the standard error of that."""
    return one["bayesian_less"][method]["mean"], one["bayesian_less"][method]["standard_error"]


def in_words(mean: float, error: float) -> str:
    words = f"{mean:+.3f} ± {error:.3f}"
    return f"**{words}**" if abs(mean) > 2 * error else words


def standing(summary: dict) -> str:
    """On which sets the Bayesian tree is above print and above the linkages."""
    found = {name: summary[name] for name in SETS}
    below = [
        f"{name} ({one['purity']['bayesian']['mean']:.3f}, printed {PRINTED[name]['bayesian'][0]:.3f})"
        for name, one in found.items()
        if one["purity"]["bayesian"]["mean"] < PRINTED[name]["bayesian"][0]
    ]
    easier = [
        name
        for name, one in found.items()
        if all(one["purity"][method]["mean"] > mean for method, (mean, _) in PRINTED[name].items())
    ]
    worst = {
        name: min((gap(one, method) for method in LINKAGES), key=lambda g: g[0])
        for name, one in found.items()
    }
    clear = [name for name, (mean, error) in worst.items() if mean > 2 * error]
    return items(
        [
            f"Below the printed Bayesian tree: {in_a_row(below)}; at or above it elsewhere.",
            f"Every linkage is above its printed figure too on {in_a_row(easier)}.",
            *(against(found, method) for method in ("average", "ward")),
            f"Ahead of every linkage by more than two standard errors: {in_a_row(clear)}.",
            on_glass(found["glass"]["purity"]),
        ]
    )


def against(found: dict, method: str) -> str:
    all_gaps = {name: gap(one, method) for name, one in found.items()}
    ahead = [name for name, (mean, error) in all_gaps.items() if mean > error]
    behind = [name for name, (mean, error) in all_gaps.items() if -mean > error]
    within = [name for name, (mean, error) in all_gaps.items() if abs(mean) <= error]
    return (
        f"Against {TREES[method]}{' linkage' if method == 'average' else ''}: ahead by more than the standard error on "
        f"{in_a_row(ahead)}; behind by more on {in_a_row(behind)}; within it on {in_a_row(within)}."
    )


def on_glass(purity: dict) -> str:
    ours = purity["bayesian"]["mean"]
    purer = [
        f"{TREES[method]} ({purity[method]['mean']:.3f})"
        for method in (*LINKAGES, "diagonal", "fixed")
        if purity[method]["mean"] > ours
    ]
    return f"On glass, purer than the Bayesian tree ({ours:.3f}): {in_a_row(purer)}."


def in_a_row(names: list[str]) -> str:
    return ", ".join(names) or "none"
