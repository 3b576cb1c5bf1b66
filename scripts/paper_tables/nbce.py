"""Wang, Domeniconi, Laskey: NBCE."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

from benchmarks.papers import nbce as paper
from paper_tables.markdown import cell, command, count, listed, p_value, table

Means = dict[str, dict[str, float]]  # by method, then by data set


def nbce(result: dict) -> str:
    summary = result["summary"]
    parts = [
        "## Wang, Domeniconi and Laskey 2010 (NBCE)\n",
        f"{command('nbce')}: {paper.N_MEMBERS} k-means clusterings, k from half to twice the classes; a quarter of the rows held out; "
        f"means over {len(result['settings']['seeds'])} seeds (standard errors over them in round brackets, where they are kept; "
        "printed figures in square ones).\n",
        the_sets(summary),
        table_2(summary["table_2_f1"]),
        PERPLEXITY,
    ]
    parts += [perplexities(key, summary[key]) for key in TABLES if key in summary]
    return "\n".join(parts)


def the_sets(summary: dict) -> str:
    """Which sets stand for the paper's."""
    cut = [f"{name} ({n} rows)" for name, (_, n) in paper.STANDS_FOR.items() if n > paper.MOST_ROWS]
    shown = {"2": summary["table_2_f1"]["sets"], "4 to 7": summary["table_4_train"]["means"]["NBCE"]}
    numbers = "; ".join(
        f"tables {where} show {count(name in found for name in paper.SETS)} of the paper's sets"
        + "".join(f", without {paper.STANDS_FOR[name][0]}" for name in paper.SETS if name not in found)
        for where, found in shown.items()
    ).replace("tables 2 show", "table 2 shows")
    return (
        "Where our sets are not the paper's: `segmentation_210`, the training file, stands for ImageSegmentation (2310 rows in all); "
        "`letter_aj700` is our own draw of 700 letters A to J, for the paper's is not published; of "
        f"{listed(cut)} each seed draws {paper.MOST_ROWS}. Of the others all rows are used. {numbers[0].upper()}{numbers[1:]} (the paper has "
        "the first five in tables 6 and 7).\n"
    )


# ---- table 2 -------------------------------------------------------------------------------------------------------


def table_2(found: dict) -> str:
    sets = found["sets"]
    methods = list(next(iter(sets.values()))["ours"])
    rows = [
        [
            name,
            *(
                cell(
                    both["ours"][m],
                    2,
                    error=both.get("standard_errors", {}).get(m),
                    printed=both["printed"].get(m),
                )
                for m in methods
            ),
        ]
        for name, both in sets.items()
    ]
    tests = found["paired_t_tests"]
    lines = [
        f"{spoken(method)} less the best of the three graph methods on each set: {test['mean_difference']:+.3f}, "
        f"t = {test['t']:.2f}, {p_value(test['p'])}, ahead on {test['ahead_on']}."
        for method, test in tests.items()
    ]
    lines += [f"Printed: {found['printed']}.", below_the_members(sets), above_the_best_member(sets)]
    return (
        "### Table 2: F1 with the classes\n\n"
        "F1 is the harmonic mean of P and R: P the mean over the found clusters of the best precision with a class, R that of the best "
        "recall. (Erratum: the printed sums divide by one number and run to another.) A small cluster costs as much as a large one.\n\n"
        + table(["set", *map(spoken, methods)], rows)
        + "\n"
        + "\n".join(f"- {line}" for line in lines)
        + "\n\n"
        + verdict_of_table_2(sets, tests)
    )


def below_the_members(sets: dict) -> str:
    said = []
    for method in (*paper.GRAPH_METHODS, "NBCE", *paper.BESIDE):
        below = [name for name, both in sets.items() if both["ours"][method] < both["ours"]["mean_member"]]
        some = f" ({listed(below)})" if 0 < len(below) < len(sets) else ""
        said.append(f"{spoken(method)} on {len(below)} of {len(sets)}{some}")
    printed = count(
        both["printed"][method] < both["printed"]["mean_member"]
        for both in sets.values()
        for method in (*paper.GRAPH_METHODS, "NBCE")
    )
    return f"Below the mean member: {'; '.join(said)}. Printed: {printed} (every ensemble method beats the members)."


def above_the_best_member(sets: dict) -> str:
    def above(method: str, whose: str = "ours") -> str:
        return count(both[whose][method] > both[whose]["best_member"] for both in sets.values())

    methods = (*paper.GRAPH_METHODS, "NBCE", *paper.BESIDE)
    ours = "; ".join(f"{spoken(method)} on {above(method)}" for method in methods)
    return f"Above the best member, which nobody knows without the classes: {ours}. Printed: NBCE on {above('NBCE', 'printed')}."


def verdict_of_table_2(sets: dict, tests: dict) -> str:
    def best_graph(name: str) -> str:
        return max(paper.GRAPH_METHODS, key=sets[name]["ours"].__getitem__)

    lost = [
        f"{name} ({both['ours']['Consensus']:.3f} against {both['ours'][best_graph(name)]:.3f} of {best_graph(name)})"
        + (", the one set that took part in no choice of ours" if name == paper.HELD_OUT else "")
        for name, both in sets.items()
        if both["ours"]["Consensus"] < both["ours"][best_graph(name)]
    ]
    return (
        "The lead of NBCE does not come out. The literal model, told nothing, takes every member for independent evidence"
        f"{clusters_found(sets)}: it is ahead of the graph methods, which are told the number of classes, on {tests['NBCE']['ahead_on']} "
        f"sets. Told that number too, it is {standing(tests['NBCE_told_K'])}. `Consensus`, which corrects for dependent members and is "
        f"told nothing, is ahead on {tests['Consensus']['ahead_on']}, on average {standing(tests['Consensus'])}, and behind on "
        f"{listed(lost)}.\n"
    )


def clusters_found(sets: dict) -> str:
    if not all("n_clusters" in both for both in sets.values()):
        return ""
    times = [both["n_clusters"]["NBCE"] / both["n_classes"] for both in sets.values()]
    return f" and finds {min(times):.1f} to {max(times):.1f} times as many clusters as there are classes"


def standing(test: dict) -> str:
    """Where the paired t-test puts a method beside the best graph method."""
    if test["p"] >= 0.05:
        return f"not told apart from the best of them ({p_value(test['p'])})"
    return f"{'ahead of' if test['t'] > 0 else 'behind'} the best of them ({p_value(test['p'])})"


# ---- tables 3 to 7 -------------------------------------------------------------------------------------------------

PERPLEXITY = (
    "### Tables 3 to 7: which p(Y)\n\n"
    "Perplexity is exp(−log p(Y) / labels), the paper's (12). p(Y) of NBCE and MM: the sum over clusters at the posterior means of the "
    "label probabilities, the label counts of MM smoothed by half a count; of BCE: each label predicted from the memberships that the "
    "row's labels before it leave. A label that a member has only among the rows held out is missing for every method. The paper does "
    "not say what its p(Y) is. NBCE is by Gibbs with the stick-breaking prior where nothing else is said; MM and BCE are told the "
    "number of classes. Erratum: as p(Y) is at most 1, perplexity is at least 1, and two labels give at most 2 to a model that is no "
    "worse than a coin. Neither order is a law: MM is the maximum likelihood at its number of clusters, so it can win in training.\n"
)


class Table(NamedTuple):
    """What is said above and below one table of perplexities."""

    title: str
    names: dict[str, str]  # methods that have another name in this table
    verdict: str  # name of the function that writes it


TABLES = {
    "table_3_synthetic": Table(
        "Table 3: perplexity of rows held out, two clusters with outliers, by label noise", {}, "noise"
    ),
    "table_4_train": Table("Table 4: perplexity of the training rows", {}, "orders"),
    "table_5_test": Table("Table 5: perplexity of the rows held out", {}, "orders"),
    "table_6_singletons": Table(
        "Table 6: objects in clusters of one (%)",
        {"NBCE": "NBCE, TSB", "NBCE_finite": "NBCE, FSD"},
        "singletons",
    ),
    "table_7_inference": Table(
        "Table 7: perplexity of the training rows, by inference",
        {"NBCE": "Gibbs", "NBCE_cvb": "CVB", "NBCE_vb": "VB"},
        "inference",
    ),
    "table_7_held_out": Table(
        "Beside table 7: the same of the rows held out (not printed)",
        {"NBCE": "Gibbs", "NBCE_cvb": "CVB", "NBCE_vb": "VB"},
        "inference",
    ),
}


def perplexities(key: str, found: dict) -> str:
    layout, means, printed = TABLES[key], found["means"], paper.printed_values(key)
    scale, digits = (100, 1) if key == "table_6_singletons" else (1, 3)
    sets = list(next(iter(means.values())))
    rows = []
    for method, of_set in means.items():
        errors, theirs = found.get("standard_errors", {}).get(method, {}), printed.get(method, {})
        rows.append(
            [
                layout.names.get(method, method),
                *(
                    cell(
                        scale * of_set[name],
                        digits,
                        error=None if errors.get(name) is None else scale * errors[name],
                        printed=scale * theirs[name] if name in theirs else None,
                        printed_digits=1 if scale == 100 else 2,
                    )
                    for name in sets
                ),
            ]
        )
    gaps = "; ".join(
        f"{layout.names.get(first, first)} − {layout.names.get(second, second)}: {scale * gap['mean']:+.{digits + 1}f} "
        f"(se {scale * gap['standard_error']:.{digits + 1}f}), lower on {gap['lower_on']}"
        for (first, second), gap in differences(found).items()
    )
    return (
        f"### {layout.title}\n\n{table(['', *sets], rows)}\n"
        f"{gaps}. {VERDICTS[layout.verdict](found, printed)}\n"
    )


def differences(found: dict) -> dict[tuple[str, str], dict]:
    """Paired differences of all methods, those that are not kept worked out from the means."""
    means = found["means"]
    return {
        (first, second): found["differences"].get(f"{first} - {second}")
        or paper.difference(means[first], means[second])
        for first, second in combinations(means, 2)
    }


def lower(means: Means, first: str, second: str) -> str:
    """On how many sets the first method is below the second."""
    return count(means[first][name] < means[second][name] for name in means[first])


def beyond_two_errors(found: dict) -> str:
    pairs = differences(found)
    large = [pair for pair, gap in pairs.items() if abs(gap["mean"]) > 2 * gap["standard_error"]]
    return f"Mean differences beyond two standard errors: {len(large)} of {len(pairs)}."


def outside(printed: Means, low: float, high: float) -> str:
    """How many printed figures no model can have."""
    return count(not low <= value <= high for of_set in printed.values() for value in of_set.values())


def noise(found: dict, printed: Means) -> str:
    means = found["means"]
    values = [value for of_set in printed.values() for value in of_set.values()]
    most = max(abs(means["NBCE"][name] - means["MM"][name]) for name in means["NBCE"])
    highest = count(max(means, key=lambda method: means[method][name]) == "BCE" for name in means["BCE"])
    return (
        f"Printed: {paper.PRINTED['table_3_synthetic']}, {min(values):.2f} to {max(values):.2f}; of these, {outside(printed, 1, 2)} are "
        f"impossible with two labels. NBCE below BCE agrees ({lower(means, 'NBCE', 'BCE')}); BCE below MM does not "
        f"({lower(means, 'BCE', 'MM')}): BCE is the highest at {highest} levels, and NBCE and MM are level, {most:.4f} apart at most. The paper does not say of "
        "which rows its figures are; ours are of rows held out."
    )


def orders(found: dict, printed: Means) -> str:
    means = found["means"]
    names = list(means["NBCE"])
    lowest = count(min(means, key=lambda method: means[method][name]) == "NBCE" for name in names)
    return (
        f"Printed: NBCE < BCE < MM on all seven sets; {outside(printed, 1, float('inf'))} printed figures are below 1, which is impossible. "
        f"NBCE is the lowest here too, on {lowest}; BCE below MM comes out on {lower(means, 'BCE', 'MM')}: reversed."
    )


def singletons(found: dict, printed: Means) -> str:
    means = found["means"]
    values = [100 * value for of_set in printed.values() for value in of_set.values()]
    less = count(
        means[method][name] < value for method, of_set in printed.items() for name, value in of_set.items()
    )
    both = [name for name in printed["NBCE"] if name in means["NBCE"]]
    order = count(means["NBCE"][name] < means["NBCE_finite"][name] for name in both)
    return (
        f"Printed: {min(values):.1f} to {max(values):.1f}%, {paper.PRINTED['table_6_singletons']}. Ours are lower than printed in {less} "
        f"cells. TSB is below FSD on {order} of the printed sets. {beyond_two_errors(found)}"
    )


def inference(found: dict, printed: Means) -> str:
    means = found["means"]
    said = (
        f"Printed: {paper.PRINTED['table_7_inference']}; {outside(printed, 1, float('inf'))} printed figures are below 1, which is impossible. "
        if printed
        else ""
    )
    return f"{said}Gibbs is below CVB on {lower(means, 'NBCE', 'NBCE_cvb')}, CVB below VB on {lower(means, 'NBCE_cvb', 'NBCE_vb')}. {beyond_two_errors(found)}"


VERDICTS = {"noise": noise, "orders": orders, "singletons": singletons, "inference": inference}


def spoken(method: str) -> str:
    return method.replace("_", " ")
