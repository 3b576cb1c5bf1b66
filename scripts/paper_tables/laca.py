"""LACA."""

from __future__ import annotations

from benchmarks.papers import laca as paper
from paper_tables.markdown import cell, command, count, listed, table

GRAPH_METHODS = tuple(rival for rival in paper.RIVALS if rival != "EAC-AL")
SPOKEN = {"nmi": "NMI", "f": "F"}


def laca(result: dict) -> str:
    free, told = result["summary"]["tables_2_and_3"], result["summary"]["figures_2_and_3"]
    return (
        "## Xie et al. 2013 (LACA)\n\n"
        f"{command('laca')}: {result['n_ensembles']} ensembles of {paper.N_MEMBERS} k-means clusterings on random columns for each set; "
        "numbers of clusters, pairwise F and NMI with the classes (standard errors in round brackets, printed figures in square ones). "
        "NMI divides by the geometric mean of the entropies, as the paper does. Where the paper is silent or brief: pairs are unordered, there are "
        "never fewer than two clusters, and k-LACA converges with its own number of clusters and then cuts the last tree once at k. Erratum: in "
        "3.3 and (17) the rate given that two objects belong together is ρ_e, not r_e.\n\n"
        f"### Tables 2 and 3\n\n{tables_2_and_3(free)}\n{verdict_of_tables(free)}\n"
        f"### Figures 2 and 3: told k\n\n{figures_2_and_3(told)}"
    )


# ---- tables 2 and 3 ------------------------------------------------------------------------------------------------


def tables_2_and_3(sets: dict) -> str:
    rows = []
    for name, methods in sets.items():
        for method, both in methods.items():
            ours, printed = both["ours"], both["printed"]
            rows.append(
                [
                    name,
                    method,
                    f"{ours['min']}–{ours['max']} [{printed['min']}–{printed['max']}]",
                    cell(ours["mean"], 2, printed=printed["mean"]),
                    cell(ours["deviation"], 2, printed=printed["deviation"]),
                    *(
                        cell(ours[score], 3, error=ours[f"{score}_error"], printed=printed[score])
                        for score in paper.SCORES
                    ),
                ]
            )
    return table(["set", "method", "K", "mean K", "deviation", "F", "NMI"], rows)


def verdict_of_tables(sets: dict) -> str:
    lines = [steadier(sets), *(ahead(sets, score) for score in ("f", "nmi"))]
    return "\n".join(f"- {line}" for line in lines) + f"\n\n{beside_print(sets)}\n"


def steadier(sets: dict) -> str:
    def less(whose: str) -> str:
        return count(
            methods["LACA"][whose]["deviation"] < methods["EAC-AL"][whose]["deviation"]
            for methods in sets.values()
        )

    return f"K of LACA spreads less than that of EAC-AL on {less('ours')} sets [{less('printed')}]."


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
        f"{SPOKEN[score]} of LACA is higher on {len(higher)} of {len(sets)} sets [{count(gap(methods, 'printed') > 0 for methods in sets.values())}]: "
        f"by more than one standard error of the difference (as if independent) on {len(clear)} ({listed(clear)}); lower by more than one on "
        f"{len(lower)} ({listed(lower)})."
    )


def beside_print(sets: dict) -> str:
    def gap(name: str, figure: str) -> float:
        both = sets[name]["LACA"]
        return both["ours"][figure] - both["printed"][figure]

    def farthest(figure: str) -> str:
        return max(sets, key=lambda name: abs(gap(name, figure)))

    nmi, clusters, f = farthest("nmi"), farthest("mean"), farthest("f")
    both = sets[clusters]["LACA"]
    return (
        f"NMI of LACA is at most {abs(gap(nmi, 'nmi')):.3f} from print ({nmi}, {gap(nmi, 'nmi'):+.3f}), above it on "
        f"{count(gap(name, 'nmi') > 0 for name in sets)} sets. The mean number of clusters is farthest from print on {clusters} "
        f"({both['ours']['mean']:.1f} here, {both['printed']['mean']:.1f} there; the generator is the paper's, the scale of its columns is not said). "
        f"Pairwise F, by the paper's own formula, is below print on {count(gap(name, 'f') < 0 for name in sets)} sets, by up to "
        f"{abs(gap(f, 'f')):.3f} ({f}). We do not know what the printed F is of."
    )


# ---- figures 2 and 3 -----------------------------------------------------------------------------------------------


def figures_2_and_3(sets: dict) -> str:
    n_k = len(paper.TIMES_CLASSES)
    rows = [
        [
            rival,
            *(
                count(paper.no_lower(sets, score, rival, at_classes=first))
                for score in ("nmi", "f")
                for first in (False, True)
            ),
        ]
        for rival in paper.RIVALS
    ]
    for title, rivals in (("the three graph methods", GRAPH_METHODS), ("all four", paper.RIVALS)):
        rows.append(
            [
                title,
                *(best_of(sets, score, rivals, first) for score in ("nmi", "f") for first in (False, True)),
            ]
        )
    return (
        f"k has {n_k} values from the number of classes to three times it (the paper takes every k). Where k-LACA is at least as good as a rival:\n\n"
        + table(["rival", "NMI, all (set, k)", "NMI, k = classes", "F, all (set, k)", "F, k = classes"], rows)
        + "".join(f"\n{SPOKEN[score]} at k = classes:\n\n{at_classes(sets, score)}" for score in ("nmi", "f"))
        + f"\n{verdict_of_figures(sets)}\n"
        "![NMI with the classes against the number of clusters asked for](images/laca_nmi.png)\n\n"
        "![Pairwise F with the classes against the number of clusters asked for](images/laca_f.png)\n"
    )


def best_of(sets: dict, score: str, rivals: tuple[str, ...], first: bool) -> str:
    """Where k-LACA is at least as good as all of them at once."""
    each = [paper.no_lower(sets, score, rival, at_classes=first) for rival in rivals]
    return count(all(at) for at in zip(*each, strict=True))


def at_classes(sets: dict, score: str) -> str:
    rows = []
    for name, told in sets.items():
        errors = {method: told[method].get(f"{score}_error", [None])[0] for method in paper.TOLD}
        cells = [cell(told[method][score][0], 3, error=errors[method]) for method in paper.TOLD]
        rows.append([name, told["k"][0], *cells])
    return table(["set", "k", *paper.TOLD], rows)


def verdict_of_figures(sets: dict) -> str:
    def loss(name: str, rival: str, score: str, i: int = 0) -> float:
        return sets[name][rival][score][i] - sets[name]["k-LACA"][score][i]

    name, rival = max(((n, r) for n in sets for r in paper.RIVALS), key=lambda pair: loss(*pair, "nmi"))
    theirs, mine = sets[name][rival]["nmi"][0], sets[name]["k-LACA"]["nmi"][0]
    pima = count(
        all(loss("pima", r, "nmi", i) > 0 for r in GRAPH_METHODS) for i in range(len(sets["pima"]["k"]))
    )
    over_k = count(
        all(mean(sets[n]["k-LACA"]["nmi"]) >= mean(sets[n][r]["nmi"]) for r in GRAPH_METHODS) for n in sets
    )
    return (
        "Printed (curves, no numbers; EAC-AL is not among them): k-LACA is better or competitive on almost all sets, pima's NMI excepted. Here: on the mean "
        f"of NMI over k it is ahead of the three graph methods on {over_k} sets, and on pima it is below all three at {pima} k. The lead is at k "
        f"above the number of classes: with k = classes it is ahead of those three at once on {best_of(sets, 'nmi', GRAPH_METHODS, True)} by NMI and "
        f"{best_of(sets, 'f', GRAPH_METHODS, True)} by F, and at least MCLA's on {count(paper.no_lower(sets, 'nmi', 'MCLA', at_classes=True))} and "
        f"{count(paper.no_lower(sets, 'f', 'MCLA', at_classes=True))}; the largest loss in NMI is on {name} ({rival} {theirs:.3f} against "
        f"{mine:.3f}). EAC-AL told k, which is average link too, is behind it "
        f"little more often than ahead.\n"
    )


def mean(values: list[float]) -> float:
    return sum(values) / len(values)
