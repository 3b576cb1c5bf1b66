"""Topchy, Jain and Punch."""

from __future__ import annotations

from benchmarks.papers import topchy as paper
from paper_tables.markdown import cell, command, count, listed, table

TITLES = {
    "table_5": "Table 5, half-rings (400 points, generated to the paper's description)",
    "table_6": "Table 6, two spirals (200 points, generated)",
    "table_7": "Table 7, iris",
}
AT_CHANCE = 48.5  # percent wrong; an even cut in two cannot be more than 50% wrong


def topchy(result: dict) -> str:
    summary = result["summary"]
    parts = [
        "## Topchy, Jain and Punch 2004\n",
        f"{command('topchy')}: error rates in percent, clusters matched to classes by the Hungarian method, means over "
        f"{result['n_runs']} runs ({result['n_runs_large']} on {paper.LARGE}); standard errors in round brackets, printed figures in "
        "square ones. Members are k-means from random starts; EM and QMI are the best of three starts by their objective, as in the paper.\n",
        "Galaxy (4192 objects) and Biochemistry (5542) are not to be had, so tables 3, 4 and 8 and figure 3, which are of these sets, cannot "
        f'be repeated: {paper.LARGE} stands in where a figure is shown. (Erratum: the first row of table 4, "448 248 448", is scan damage: '
        "44.8, probably 44.8, 44.8.) The points of half-rings and spirals are not published: their rows are levels, not targets.\n",
    ]
    if "table_1" in summary:
        parts.append(table_1(summary["table_1"]))
    parts += [errors(key, summary[key], result["verdicts"][key]) for key in TITLES]
    parts += [verdict(summary), figure_3(summary["figure_3"]), figure_4(summary["figure_4_and_table_8"])]
    return "\n".join(parts)


def table_1(found: dict) -> str:
    ours = found["posteriors"]
    rows = [
        [name, *labels, f"{early:.3f}", f"{late:.3f}", f"{printed:.3f}", consensus]
        for (name, (labels, printed)), early, late, consensus in zip(
            paper.TABLE_1.items(), ours["early"], ours["converged"], paper.PRINTED_CONSENSUS, strict=True
        )
    ]
    n, gaps, nearest = found["n_starts"], found["largest_difference"], found["nearest_by_iteration"]
    closest = min(nearest, key=nearest.get)
    return (
        "### Table 1: the example of twelve objects\n\n"
        + table(
            [
                "",
                *("P1", "P2", "P3", "P4"),
                f"ours, {paper.EARLY} iterations",
                "ours, converged",
                f"printed, {paper.EARLY} iterations",
                "printed consensus",
            ],
            rows,
        )
        + f"\nPosteriors of the first cluster. The paper's start is not known: of {n} random starts, {found['reach_it']} reach the best log "
        f"likelihood ({found['log_likelihood']:.4f}) and {found['reach_it_and_give_printed_consensus']} of these give the printed consensus "
        f"({found['give_printed_consensus']} of all; with the starts of `MixtureConsensus`, {found['own_starts_give_printed_consensus']} of "
        f"{n}). After {paper.EARLY} iterations the nearest start is within {gaps['early']:.3f} of print, at convergence the best is "
        f"within {gaps['converged']:.3f}; nearest of all is iteration {closest} of one start, within {nearest[closest]:.3f}. Agrees: "
        "the consensus is the printed one, and the printed posteriors are those of EM that has not converged.\n"
    )


def errors(key: str, rows: list[dict], mean_gaps: str) -> str:
    methods = list(rows[0]["ours"])
    lower = ", ".join(
        f"{method} {count(row['ours'][method] < row['printed'][method] for row in rows)}"
        for method in methods
    )
    plain = [row for row in rows if row["kmeans"] is not None]
    below = count(row["ours"]["EM"] < row["kmeans"] for row in plain)
    printed_below = count(row["printed"]["EM"] < paper.PRINTED_KMEANS[key] for row in plain)
    return (
        f"### {TITLES[key]}\n\n{error_table(rows)}\n"
        f"On average, {mean_gaps}. Rows in which ours is lower: {lower}. A member with the true number of "
        f"clusters: {spread([row['kmeans'] for row in plain])} [{paper.PRINTED_KMEANS[key]}]; EM is below it in {below} rows [{printed_below}].\n"
    )


def error_table(rows: list[dict]) -> str:
    methods = list(rows[0]["ours"])
    return table(
        ["H", "k", *methods],
        [
            [
                row["H"],
                row["k"],
                *(
                    cell(
                        row["ours"][m],
                        1,
                        error=row["standard_errors"][m],
                        printed=row.get("printed", {}).get(m),
                    )
                    for m in methods
                ),
            ]
            for row in rows
        ],
    )


def gaps(rows: list[dict], method: str) -> list[float]:
    return [row["ours"][method] - row["printed"][method] for row in rows]


def spread(values: list[float]) -> str:
    """``12.3`` or ``12.3 to 13.4``."""
    low, high = f"{min(values):.1f}", f"{max(values):.1f}"
    return low if low == high else f"{low} to {high}"


def verdict(summary: dict) -> str:
    rows = [row for key in TITLES for row in summary[key]]
    thirds = [row for row in summary["table_5"] if row["k"] == 3]
    worse = ", ".join(
        f"{method} in {count(gap > 0 for gap in gaps(thirds, method))} ({min(gaps(thirds, method)):+.1f} to {max(gaps(thirds, method)):+.1f})"
        for method in thirds[0]["ours"]
    )
    iris, spirals = summary["table_7"], summary["table_6"]
    plain = [row for row in summary["table_5"] if row["k"] == 2]
    lower = count(gap < 0 for method in spirals[0]["ours"] for gap in gaps(spirals, method))
    chance = count(row["printed"]["HGPA"] >= AT_CHANCE for row in rows)
    on_iris = f"{spread([row['printed']['HGPA'] for row in iris])} on iris, where ours is {spread([row['ours']['HGPA'] for row in iris])}"
    return (
        f"What agrees: EM and MCLA on iris, EM {spread_signed(gaps(iris, 'EM'))} from print and MCLA {spread_signed(gaps(iris, 'MCLA'))}; EM on half-rings with k = 2, {spread_signed(gaps(plain, 'EM'))}.\n\n"
        "What does not:\n\n"
        f"- Half-rings with k = 3 (rows worse here, differences): {worse}. The points are not the paper's, and where a third cluster cuts "
        "the rings decides.\n"
        f"- Two spirals: ours is lower in {lower} cells. The points are not the paper's.\n"
        f"- HGPA is printed at {AT_CHANCE} or more, which is chance for two clusters, in {chance} rows, and at {on_iris}: its "
        "partitioner is another one here.\n"
        f"- CSPA on iris is worse here ({spread_signed(gaps(iris, 'CSPA'))}): probably because an even cut must part objects that most members "
        "do not tell apart, by a draw.\n"
        f"- QMI is lower here in {count(gap < 0 for gap in gaps(rows, 'QMI'))} rows; the paper takes three starts too, so we do not know why.\n"
    )


def spread_signed(values: list[float]) -> str:
    return f"{min(values):+.1f} to {max(values):+.1f}"


def figure_3(rows: list[dict]) -> str:
    best = {method: min(rows, key=lambda row: row["ours"][method]) for method in rows[0]["ours"]}
    last = rows[-1]
    ahead = [str(row["k"]) for row in rows if row["ours"]["MCLA"] < row["ours"]["EM"]]
    hgpa = spread([row["ours"][paper.NOT_DRAWN] for row in rows])
    return (
        f"### Figure 3, on {paper.LARGE} ({paper.LARGE_CLASSES} classes) in the place of Galaxy\n\n"
        + error_table(rows)
        + "\n![Error against the number of clusters in the members; error against the share of labels deleted]"
        "(images/topchy_3_4.png)\n\n"
        f"Left, the table; {paper.NOT_DRAWN} ({hgpa}) is left out of the picture, for it would flatten the others. Right, figure 4.\n\n"
        f"Printed: EM worked best where k is the number of classes or a little more, and MCLA gains from more. Here EM is at its own best at k = {best['EM']['k']}, "
        f"but it is not the best method: QMI has the lower error at {count(row['ours']['QMI'] < row['ours']['EM'] for row in rows)} k, MCLA at "
        f"k = {listed(ahead)}. MCLA gains up to k = {best['MCLA']['k']} ({best['MCLA']['ours']['MCLA']:.1f}) and then loses "
        f"({last['ours']['MCLA']:.1f} at k = {last['k']}).\n"
    )


def figure_4(sets: dict) -> str:
    lines = {(name, shape): found for name, shapes in sets.items() for shape, found in shapes.items()}
    shares = list(next(iter(lines.values())))
    rows = [
        [name, shape, *(cell(at[share]["mean"], 1, error=at[share]["standard_error"]) for share in shares)]
        for (name, shape), at in lines.items()
    ]

    def rise(key: tuple[str, str], share: str) -> float:
        return lines[key][share]["mean"] - lines[key]["0.0"]["mean"]

    def largest(share: str) -> str:
        key = max(lines, key=lambda key: rise(key, share))
        return f"{rise(key, share):+.1f} points ({key[0]}, {key[1]})"

    twins = [
        (key, (key[0], key[1].replace("H = 5", "H = 10"))) for key in lines if key[1].startswith("H = 5")
    ]
    less = count(rise(ten, "0.5") < rise(five, "0.5") for five, ten in twins)
    return (
        "### Figure 4, and the sweep of table 8 on sets of ours: error of EM with labels deleted\n\n"
        + table(["set", "ensemble", *(f"{float(share):.0%}" for share in shares)], rows)
        + "\nFigure 4 is iris with H = 5, k = 3 (a curve without numbers); table 8 is of the two sets that are not to be had. Printed: little change with a tenth or a fifth of "
        "the labels deleted, and less loss with H = 10 than with H = 5. Here the largest rise at a fifth is "
        f"{largest('0.2')}, on iris {max(rise(key, '0.2') for key in lines if key[0] == 'iris'):+.1f}; at half it is {largest('0.5')}. With H = 10 the "
        f"rise at half is the smaller one in {less} pairs.\n"
    )
