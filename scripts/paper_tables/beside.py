"""What no paper prints: growth of all engines, and what a sample costs."""

from __future__ import annotations

from paper_tables.markdown import command, table

QUALITY = {"views": "NMI"}  # of an arena of `engines`; the adjusted Rand index elsewhere


def engines(result: dict) -> str:
    parts = [
        "## Beside the papers: how every engine grows\n\n"
        f"{command('engines')}: CPU seconds of a fit at a middle size, a peer's time over it (above 1: faster than the peer), and the slope of log time "
        "on log size along each axis. Ten iterations or sweeps where an engine iterates; a whole fit where it does not. An exponent "
        "well below 1 says that fixed costs, or a bound on what is looked at, still rule at these sizes; a dash, that one fit was "
        "all that its time allowed. Peers in italics.\n"
    ]
    for arena, engines_there in result["summary"].items():
        middle, axes = result["sizes"][arena]["middle"], result["sizes"][arena]["axes"]
        yardstick, peers = result["yardsticks"][arena], result["peers"][arena]
        spans = ", ".join(
            f"{axis.removeprefix('n_')} from {values[0]:,} to {values[-1]:,}" for axis, values in axes.items()
        )
        rows = [
            [
                f"*{name}*" if name in peers else f"`{name}`",
                f"{one['middle_s']:.2f}",
                "" if one["speed"] is None else f"{one['speed']:.3g}",
                *(
                    "-" if one["exponents"][axis] is None else f"{one['exponents'][axis]:.2f}"
                    for axis in axes
                ),
                f"{one['peak_mb']:.0f}",
                f"{one['quality']:.2f}",
            ]
            for name, one in engines_there.items()
        ]
        faster = [
            name for name in peers if name in engines_there and one_is_fastest(name, peers, engines_there)
        ]
        parts.append(
            f"### {arena.capitalize()}\n\n"
            f"{middle['n_rows']:,} rows, {middle['n_columns']} columns, {middle['n_clusters']} clusters; {spans}.\n\n"
            + table(
                [
                    "",
                    "CPU s",
                    f"speed beside {yardstick}",
                    "rows",
                    "columns",
                    "clusters",
                    "peak MB",
                    QUALITY.get(arena, "ARI"),
                ],
                rows,
            )
            + (f"\nFaster than all of ours that agree as well: {', '.join(faster)}.\n" if faster else "")
        )
    absent = ", ".join(result["peers_not_there"])
    if absent:
        parts.append(f"Not installed when this was run: {absent}.\n")
    for name, words in result["failed"].items():
        parts.append(f"{name} failed: {words}\n")
    return "\n".join(parts)


def one_is_fastest(name: str, peers: list[str], engines_there: dict) -> bool:
    """Whether a peer takes less time than every engine of ours that agrees with the planted groups as well as it."""
    own = engines_there[name]
    rivals = [
        one["middle_s"]
        for other, one in engines_there.items()
        if other not in peers and one["quality"] >= own["quality"] - 0.02
    ]
    return bool(rivals) and own["middle_s"] < min(rivals)


def tree_reduction(result: dict) -> str:
    rows = [
        [
            f"{one['set']}, {one['kind']}",
            one["method"],
            f"{one['n_distinct']:,}",
            f"{one['exact']['ari_to_classes']:.3f} ({one['exact']['cpu_s']:.1f} s)",
            *(
                f"{found['ari_to_exact']:.3f}, {found['ari_to_classes']:.3f} ({found['cpu_s']:.1f} s)"
                for found in one["reduced"].values()
            ),
        ]
        for one in result["runs"]
    ]
    limits = list(result["runs"][0]["reduced"])
    return (
        "## Beside the papers: what a sample of the distinct rows costs trees\n\n"
        f"{command('tree_reduction')}: {result['n_members']} k-means clusterings; LACA, and average-link evidence accumulation told the "
        "number of classes, on all distinct rows and on a sample to which the others join. ARI to the exact tree's answer, ARI to the "
        "classes, CPU seconds.\n\n"
        + table(
            ["set", "method", "distinct rows", "exact: to classes", *(f"{limit} rows" for limit in limits)],
            rows,
        )
    )
