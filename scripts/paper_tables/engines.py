"""How every engine grows with rows, columns and clusters, beside the peers."""

from __future__ import annotations

from paper_tables.markdown import items, table

QUALITY = {"views": "NMI"}  # of an arena; the adjusted Rand index elsewhere
LEVEL = 0.02  # two engines agree with the planted groups equally well up to this


def arena(result: dict, name: str) -> str:
    """The sizes, the table and the peers that are faster, for one kind of problem."""
    middle, axes = result["sizes"][name]["middle"], result["sizes"][name]["axes"]
    engines, peers = result["summary"][name], result["peers"][name]
    spans = ", ".join(
        f"{axis.removeprefix('n_')} from {values[0]:,} to {values[-1]:,}" for axis, values in axes.items()
    )
    speed = f"speed beside {result['yardsticks'][name]}"
    head = ["", "CPU s", speed, "rows", "columns", "clusters", "peak MB", QUALITY.get(name, "ARI")]
    faster = [peer for peer in peers if peer in engines and is_fastest(peer, peers, engines)]
    return (
        f"{middle['n_rows']:,} rows, {middle['n_columns']} columns, {middle['n_clusters']} clusters; {spans}.\n\n"
        + table(head, [engine_row(one, title, peers, axes) for title, one in engines.items()])
        + (
            f"\nPeers that are faster than every estimator of ours with the same agreement: {', '.join(faster)}.\n"
            if faster
            else ""
        )
    )


def engine_row(one: dict, title: str, peers: list[str], axes: dict) -> list[str]:
    exponents = [one["exponents"][axis] for axis in axes]
    return [
        f"*{title}*" if title in peers else f"`{title}`",
        f"{one['middle_s']:.2f}",
        "" if one["speed"] is None else f"{one['speed']:.3g}",
        *("-" if exponent is None else f"{exponent:.2f}" for exponent in exponents),
        f"{one['peak_mb']:.0f}",
        f"{one['quality']:.2f}",
    ]


def is_fastest(peer: str, peers: list[str], engines: dict) -> bool:
    """Whether a peer takes less time than every engine of ours that agrees with the planted groups as well as it."""
    own = engines[peer]
    rivals = [
        one["middle_s"]
        for name, one in engines.items()
        if name not in peers and one["quality"] >= own["quality"] - LEVEL
    ]
    return bool(rivals) and own["middle_s"] < min(rivals)


def not_measured(result: dict) -> str:
    """Peers that were not installed, and what failed."""
    lines = [f"{peer} was not installed when this was run." for peer in result["peers_not_there"]]
    lines += [f"{name} failed: {words}" for name, words in result["failed"].items()]
    return items(lines or ["Every peer was installed when this was run, and nothing failed."])
