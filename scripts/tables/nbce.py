"""Wang, Domeniconi, Laskey: NBCE."""

from __future__ import annotations

from tables.markdown import command, table


def nbce(result: dict) -> str:
    summary = result["summary"]
    parts = [
        "## Wang, Domeniconi and Laskey 2010 (NBCE)\n",
        f"{command('nbce')}: ten k-means clusterings, k from half to twice the classes; a quarter of the rows held out.\n",
    ]
    if "table_2_f1" in summary:
        found = summary["table_2_f1"]
        methods = list(next(iter(found["sets"].values()))["ours"])
        rows = [
            [
                name,
                *(
                    f"{both['ours'][m]:.2f}"
                    + (f" ({both['printed'][m]:.2f})" if m in both["printed"] else "")
                    for m in methods
                ),
            ]
            for name, both in found["sets"].items()
        ]
        tests = "\n".join(
            f"- {method.replace('_', ' ')} less the best of the three graph methods on each set: "
            f"{test['mean_difference']:+.3f}, t = {test['t']:.2f}, p = {test['p']:.3f}, ahead on {test['ahead_on']}."
            for method, test in found["paired_t_tests"].items()
        )
        parts += [
            "### Table 2: F1 with the classes (printed in brackets)\n",
            table(["set", *(m.replace("_", " ") for m in methods)], rows),
            tests + f"\n- Printed: {found['printed']}.\n",
            "The literal model, told nothing, does not reach its printed figures: it takes every member for independent "
            "evidence and finds many small clusters. Told the number of classes it is level with the graph methods, and "
            "`Consensus`, which corrects for dependent members, is level or ahead without being told.\n",
        ]
    titles = {
        "table_3_synthetic": "Table 3: perplexity, two clusters with outliers, by label noise",
        "table_4_train": "Table 4: perplexity of the training rows",
        "table_5_test": "Table 5: perplexity of the rows held out",
        "table_6_singletons": "Table 6: share of objects in clusters of one",
        "table_7_inference": "Table 7: perplexity of the training rows, by inference",
    }
    for key, title in titles.items():
        means = summary[key]["means"]
        sets = list(next(iter(means.values())))
        rows = [
            [method.replace("_", " "), *(f"{found[name]:.3f}" for name in sets)]
            for method, found in means.items()
        ]
        gaps = "; ".join(
            f"{pair.replace('_', ' ')}: {gap['mean']:+.4f} (se {gap['standard_error']:.4f}), lower on {gap['lower_on']}"
            for pair, gap in summary[key]["differences"].items()
        )
        parts += [
            f"### {title}\n",
            table(["", *sets], rows),
            f"{gaps}. Printed: {result['printed_order'][key]}.\n",
        ]
    return "\n".join(parts)
