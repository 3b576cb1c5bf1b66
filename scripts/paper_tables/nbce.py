"""Wang, Domeniconi, Laskey: tables of NBCE, and what is counted in them."""

from __future__ import annotations

from itertools import combinations

from benchmarks.papers import nbce as paper
from paper_tables.markdown import cell, count, items, listed, p_value, table

Means = dict[str, dict[str, float]]  # by method, then by data set


# ---- table 2 -------------------------------------------------------------------------------------------------------


def f1_table(found: dict) -> str:
    sets = found["sets"]
    methods = list(next(iter(sets.values()))["ours"])
    rows = [
        [
            name,
            *(
                cell(both["ours"][m], 2, error=both["standard_errors"][m], printed=both["printed"].get(m))
                for m in methods
            ),
        ]
        for name, both in sets.items()
    ]
    return table(["set", *map(display_name, methods)], rows)


def f1_counts(found: dict) -> str:
    sets = found["sets"]
    tests = [
        f"{display_name(method)} minus the best of the three graph methods on each set: {test['mean_difference']:+.3f}, "
        f"t = {test['t']:.2f}, {p_value(test['p'])}, ahead on {test['ahead_on']}."
        for method, test in found["paired_t_tests"].items()
    ]
    times = [both["n_clusters"]["NBCE"] / both["n_classes"] for both in sets.values()]
    return items(
        [
            *tests,
            below_the_members(sets),
            above_the_best_member(sets),
            f"NBCE finds {min(times):.1f} to {max(times):.1f} times as many clusters as there are classes.",
        ]
    )


def below_the_members(sets: dict) -> str:
    said = []
    for method in (*paper.GRAPH_METHODS, "NBCE", *paper.BESIDE):
        below = [name for name, both in sets.items() if both["ours"][method] < both["ours"]["mean_member"]]
        some = f" ({listed(below)})" if 0 < len(below) < len(sets) else ""
        said.append(f"{display_name(method)} {len(below)} of {len(sets)}{some}")
    printed = count(
        both["printed"][method] < both["printed"]["mean_member"]
        for both in sets.values()
        for method in (*paper.GRAPH_METHODS, "NBCE")
    )
    return f"Sets on which a method is below the mean member: {'; '.join(said)}. Printed: {printed} in all (every method is above)."


def above_the_best_member(sets: dict) -> str:
    def above(method: str, whose: str = "ours") -> str:
        return count(both[whose][method] > both[whose]["best_member"] for both in sets.values())

    methods = (*paper.GRAPH_METHODS, "NBCE", *paper.BESIDE)
    ours = "; ".join(f"{display_name(method)} {above(method)}" for method in methods)
    return f"Sets on which a method is above the best member, which cannot be identified without the classes: {ours}. Printed: NBCE {above('NBCE', 'printed')}."


# ---- tables 3 to 7 -------------------------------------------------------------------------------------------------

SINGLETONS = "table_6_singletons"  # shares, shown as percentages
INFERENCE = {"NBCE": "Gibbs", "NBCE_cvb": "CVB", "NBCE_vb": "VB"}
NAMES = {  # methods that have another name in a table
    SINGLETONS: {"NBCE": "NBCE, TSB", "NBCE_finite": "NBCE, FSD"},
    "table_7_inference": INFERENCE,
    "table_7_held_out": INFERENCE,
}


def perplexities(summary: dict, table_name: str) -> str:
    """One of the tables 3 to 7, the differences between its methods and what is counted in it."""
    found, names, printed = summary[table_name], NAMES.get(table_name, {}), paper.printed_values(table_name)
    scale, digits = (100, 1) if table_name == SINGLETONS else (1, 3)
    means = found["means"]
    sets = list(next(iter(means.values())))
    rows = []
    for method, of_set in means.items():
        errors, theirs = found["standard_errors"][method], printed.get(method, {})
        cells = (
            cell(
                scale * of_set[name],
                digits,
                error=None if errors[name] is None else scale * errors[name],
                printed=scale * theirs[name] if name in theirs else None,
                printed_digits=1 if table_name == SINGLETONS else 2,
            )
            for name in sets
        )
        rows.append([names.get(method, method), *cells])
    gaps = "; ".join(
        f"{names.get(first, first)} − {names.get(second, second)}: {scale * gap['mean']:+.{digits + 1}f} "
        f"(se {scale * gap['standard_error']:.{digits + 1}f}), lower on {gap['lower_on']}"
        for (first, second), gap in differences(found).items()
    )
    return table(["", *sets], rows) + "\n" + items([f"{gaps}.", *COUNTS[table_name](found, printed)])


def differences(found: dict) -> dict[tuple[str, str], dict]:
    """Paired differences of all methods, computed from the means where the result does not have them."""
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
    """How many printed figures are impossible."""
    return count(not low <= value <= high for of_set in printed.values() for value in of_set.values())


def below_one(printed: Means) -> str:
    return f"Printed figures below 1, which is impossible: {outside(printed, 1, float('inf'))}."


def noise(found: dict, printed: Means) -> list[str]:
    means = found["means"]
    most = max(abs(means["NBCE"][name] - means["MM"][name]) for name in means["NBCE"])
    highest = count(max(means, key=lambda method: means[method][name]) == "BCE" for name in means["BCE"])
    return [
        f"Printed figures that are impossible with two labels: {outside(printed, 1, 2)}.",
        f"NBCE is below BCE at {lower(means, 'NBCE', 'BCE')} levels of noise, BCE below MM at {lower(means, 'BCE', 'MM')}; BCE is the "
        f"highest at {highest}. NBCE and MM differ by {most:.4f} at most.",
    ]


def orders(found: dict, printed: Means) -> list[str]:
    means = found["means"]
    lowest = count(min(means, key=lambda method: means[method][name]) == "NBCE" for name in means["NBCE"])
    return [
        below_one(printed),
        f"NBCE is the lowest on {lowest} sets, BCE below MM on {lower(means, 'BCE', 'MM')}.",
    ]


def singletons(found: dict, printed: Means) -> list[str]:
    means = found["means"]
    less = count(
        means[method][name] < value for method, of_set in printed.items() for name, value in of_set.items()
    )
    order = count(means["NBCE"][name] < means["NBCE_finite"][name] for name in printed["NBCE"])
    return [
        f"Ours are lower than printed in {less} cells. TSB is below FSD on {order} of the printed sets.",
        beyond_two_errors(found),
    ]


def inference(found: dict, printed: Means) -> list[str]:
    means = found["means"]
    return [
        *([below_one(printed)] if printed else []),
        f"Gibbs is below CVB on {lower(means, 'NBCE', 'NBCE_cvb')}, CVB below VB on {lower(means, 'NBCE_cvb', 'NBCE_vb')}.",
        beyond_two_errors(found),
    ]


COUNTS = {
    "table_3_synthetic": noise,
    "table_4_train": orders,
    "table_5_test": orders,
    SINGLETONS: singletons,
    "table_7_inference": inference,
    "table_7_held_out": inference,
}


def display_name(method: str) -> str:
    """The name of a method on the page; results have older names."""
    return method.replace("_told_K", " (K given)").replace("_", " ")
