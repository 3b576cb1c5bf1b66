"""Xie and others: tables and figures of LACA, and what is counted in them."""

from __future__ import annotations

from statistics import fmean

from benchmarks.papers import laca as paper
from paper_tables.markdown import cell, count, items, listed, table

GRAPH_METHODS = tuple(rival for rival in paper.RIVALS if rival != "EAC-AL")
SCORE_NAMES = {"nmi": "NMI", "f": "F"}


# ---- tables 2 and 3 ------------------------------------------------------------------------------------------------


def tables_2_and_3(sets: dict) -> str:
    rows = []
    for name, methods in sets.items():
        for method, both in methods.items():
            ours, printed = both["ours"], both["printed"]
            scores = (
                cell(ours[score], 3, error=ours[f"{score}_error"], printed=printed[score])
                for score in paper.SCORES
            )
            rows.append(
                [
                    name,
                    method,
                    f"{ours['min']}–{ours['max']} [{printed['min']}–{printed['max']}]",
                    cell(ours["mean"], 2, printed=printed["mean"]),
                    cell(ours["deviation"], 2, printed=printed["deviation"]),
                    *scores,
                ]
            )
    return (
        table(["set", "method", "K", "mean K", "deviation", "F", "NMI"], rows)
        + "\n"
        + items([steadier(sets), *(ahead(sets, score) for score in ("f", "nmi")), *beside_print(sets)])
    )


def steadier(sets: dict) -> str:
    def less(whose: str) -> str:
        return count(
            methods["LACA"][whose]["deviation"] < methods["EAC-AL"][whose]["deviation"]
            for methods in sets.values()
        )

    return f"The standard deviation of K is smaller for LACA than for EAC-AL on {less('ours')} sets [{less('printed')}]."


def ahead(sets: dict, score: str) -> str:
    """On how many sets LACA is above EAC-AL, and how many of the differences are more than noise."""

    def gap(methods: dict, whose: str) -> float:
        return methods["LACA"][whose][score] - methods["EAC-AL"][whose][score]

    def error(methods: dict) -> float:
        return sum(methods[method]["ours"][f"{score}_error"] ** 2 for method in methods) ** 0.5

    higher = [name for name, methods in sets.items() if gap(methods, "ours") > 0]
    clear = [name for name in higher if gap(sets[name], "ours") > error(sets[name])]
    lower = [name for name, methods in sets.items() if gap(methods, "ours") < -error(methods)]
    return (
        f"{SCORE_NAMES[score]} of LACA is higher on {len(higher)} of {len(sets)} sets [{count(gap(methods, 'printed') > 0 for methods in sets.values())}]: "
        f"by more than one standard error of the difference (computed as if they were independent) on {len(clear)} ({listed(clear)}); lower by more than one on "
        f"{len(lower)} ({listed(lower)})."
    )


def beside_print(sets: dict) -> list[str]:
    def gap(name: str, figure: str) -> float:
        both = sets[name]["LACA"]
        return both["ours"][figure] - both["printed"][figure]

    def farthest(figure: str) -> str:
        return max(sets, key=lambda name: abs(gap(name, figure)))

    nmi, clusters, f = farthest("nmi"), farthest("mean"), farthest("f")
    both = sets[clusters]["LACA"]
    return [
        f"NMI of LACA is at most {abs(gap(nmi, 'nmi')):.3f} from the printed value ({nmi}, {gap(nmi, 'nmi'):+.3f}), above it on "
        f"{count(gap(name, 'nmi') > 0 for name in sets)} sets.",
        f"The mean number of clusters differs most from the printed one on {clusters} ({both['ours']['mean']:.1f} here, "
        f"{both['printed']['mean']:.1f} printed).",
        f"Pairwise F is below the printed value on {count(gap(name, 'f') < 0 for name in sets)} sets, by up to {abs(gap(f, 'f')):.3f} ({f}).",
    ]


# ---- figures 2 and 3 -----------------------------------------------------------------------------------------------


def rivals(sets: dict) -> str:
    """Where k-LACA is at least as good as another method, and as several at once."""
    groups = {
        **{rival: (rival,) for rival in paper.RIVALS},
        "the three graph methods": GRAPH_METHODS,
        "all four": paper.RIVALS,
    }
    head = ["method", "NMI, all (set, k)", "NMI, k = classes", "F, all (set, k)", "F, k = classes"]
    return table(
        head,
        [
            [
                title,
                *(best_of(sets, score, group, first) for score in ("nmi", "f") for first in (False, True)),
            ]
            for title, group in groups.items()
        ],
    )


def best_of(sets: dict, score: str, group: tuple[str, ...], first: bool) -> str:
    """Where k-LACA is at least as good as all of them at once."""
    each = [paper.no_lower(sets, score, rival, at_classes=first) for rival in group]
    return count(all(at) for at in zip(*each, strict=True))


def at_classes(sets: dict, score: str) -> str:
    """A score of every method with k the number of classes."""
    rows = []
    for name, by_k in sets.items():
        errors = {method: by_k[method].get(f"{score}_error", [None])[0] for method in paper.WITH_K}
        cells = [cell(by_k[method][score][0], 3, error=errors[method]) for method in paper.WITH_K]
        rows.append([name, by_k["k"][0], *cells])
    return table(["set", "k", *paper.WITH_K], rows)


def counts_over_k(sets: dict) -> str:
    def loss(name: str, rival: str, score: str, i: int = 0) -> float:
        return sets[name][rival][score][i] - sets[name]["k-LACA"][score][i]

    name, rival = max(((n, r) for n in sets for r in paper.RIVALS), key=lambda pair: loss(*pair, "nmi"))
    theirs, mine = sets[name][rival]["nmi"][0], sets[name]["k-LACA"]["nmi"][0]
    pima = count(
        all(loss("pima", r, "nmi", i) > 0 for r in GRAPH_METHODS) for i in range(len(sets["pima"]["k"]))
    )
    over_k = count(
        all(fmean(sets[n]["k-LACA"]["nmi"]) >= fmean(sets[n][r]["nmi"]) for r in GRAPH_METHODS) for n in sets
    )
    return items(
        [
            f"By the mean NMI over k it is ahead of the three graph methods on {over_k} sets.",
            f"On pima it is below all three at {pima} values of k.",
            f"The largest loss in NMI with k = classes is on {name} ({rival} {theirs:.3f} against {mine:.3f}).",
        ]
    )
