"""Growth of the models of views, and CrossCat on planted and on real tables."""

from __future__ import annotations

from paper_tables.markdown import items, table


def overlapping_growth(sizes: list[dict]) -> str:
    rows = [
        [
            f"{one['n_rows']:,}",
            one["n_columns"],
            f"{one['nmi']:.3f}",
            f"{one['oracle']:.3f}",
            f"{one['cpu']:.1f}",
            f"{1e6 * one['cpu'] / one['n_rows'] / one['n_columns']:.0f}",
            f"{one['peak_mb']:.0f}",
        ]
        for one in sizes
    ]
    return table(["rows", "columns", "NMI", "oracle", "CPU s", "microseconds per cell", "peak MB"], rows)


def crosscat_quality(result: dict) -> str:
    mean = result.get("nmi_average", "arithmetic")  # what results without the key were measured by
    rows = [
        [s, setting, f"{one['nmi']['median']:.3f}", f"{one['oracle']['median']:.3f}", f"{one['n_views']['median']:.0f}",
         f"{one['cpu_s']['median']:.1f}"]
        for s, found in result["summary"]["quality"].items()
        for setting, one in found.items()
    ]  # fmt: skip
    head = ["separation", "inference", "NMI", "oracle", "views", "CPU s"]
    return table(head, rows) + "\n" + items([f"NMI divides by the {mean} mean of the entropies."])


def crosscat_growth(summary: dict) -> str:
    named = [
        (f"`CrossCat`, {setting}" + (", one chain" if one["setting"] == "one chain" else ""), one)
        for setting, found in summary["growth"].items()
        for one in found
    ]
    if summary["lace"]:
        named.append(("lace, at its defaults", summary["lace"]))
    rows = [
        [name, f"{one['n_rows']:,}", one["n_columns"], f"{one['nmi']:.3f}", f"{one['oracle']:.3f}", one["n_views"],
         f"{one['cpu_s']:.1f}", f"{one['peak_mb']:.0f}"]
        for name, one in named
    ]  # fmt: skip
    return table(["", "rows", "columns", "NMI", "oracle", "views", "CPU s", "peak MB"], rows)


def crosscat_real(tables: dict) -> str:
    """Two real tables: how many views, with which probability, and whether the chains agree."""
    rows = [
        [
            name,
            one["n_views"],
            ", ".join(f"{number}: {p:.2f}" for number, p in one["n_views_posterior"].items()),
            ", ".join(map(str, one["clusters"][: one["n_views"]])),
            "agree" if one["chains_agree"] else "**disagree**",
            f"{one['largest_spread']:.2f}",
            f"{one['cpu_s']:.1f}",
        ]
        for name, one in tables.items()
    ]
    head = ["views in the estimate", "P(number of views)", "their clusters", "chains", "largest spread"]
    return table(["", *head, "CPU s"], rows)


VIEW_METHODS = {
    "crosscat": "`CrossCat`",
    "overlapping": "`OverlappingViews`",
    "lace": "lace",
    "orthogonal": "orthogonal views",
    "decorrelated": "decorrelated k-means",
    "kmeans": "k-means",
    "oracle": "k-means, given the columns",
}


def known_groupings(summary: dict) -> str:
    """NMI of every method with each known grouping, and how many groups this has."""
    methods = [name for name in VIEW_METHODS if any(name in one["methods"] for one in summary.values())]
    rows = [
        [f"{name.replace('_', ' ')}, {grouping} ({group['n_groups']})"]
        + [f"{group['nmi'][method]:.2f}" if method in group["nmi"] else "" for method in methods]
        for name, one in summary.items()
        for grouping, group in one["groups"].items()
    ]
    return table(["table, grouping (groups)", *(VIEW_METHODS[method] for method in methods)], rows)


def fits_of_known_groupings(summary: dict) -> str:
    """Size of each table, and what the methods that are given nothing found there."""
    rows = [
        [
            name.replace("_", " "),
            f"{one['n_rows']:,} x {one['n_columns']}",
            VIEW_METHODS[method],
            found["n_views"][0],
            found["clusters"],
            f"{found['cpu_s']:.0f}" + (", stopped by the time limit" if found["stopped"] else ""),
        ]
        for name, one in summary.items()
        for method, found in one["methods"].items()
        if method in ("crosscat", "overlapping", "lace")
    ]
    return table(["table", "rows x columns", "method", "views", "their clusters", "CPU s"], rows)
