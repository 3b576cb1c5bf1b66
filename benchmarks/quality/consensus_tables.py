"""Summaries of the runs of the consensus benchmark: means, ranks, paired differences, targets."""

from __future__ import annotations

import math
import statistics

OURS, OURS_GIVEN_K = "Consensus", "Consensus told K"
CHOSEN = ("Consensus, best alternative", "Consensus, band of K given")  # with knowledge of the classes
BRIER_SLACK, MOST_ECE, LEAST_NOISE = 0.005, 0.035, 0.95
LEAST_BRIER_GAIN = 0.006
PROBABILITIES = ("brier", "ece", "confidence_auroc", "confidence_ece")
MEMBERS = ("best member", "mean member")


def display_name(method: str) -> str:
    """The name of a method on the terminal; result files have older names as keys."""
    return method.replace(" told K", ", K given")


def means_over_ensembles(runs: dict, key: str, kinds=None) -> dict[str, float]:
    """For one set: method -> mean over kinds and seeds."""
    out = {}
    for method, by_kind in runs.items():
        values = [one[key] for kind in kinds or by_kind for one in by_kind[kind] if key in one]
        if values:
            out[method] = statistics.fmean(values)
    return out


def summarize(sets: dict[str, dict], kinds) -> dict:
    """Everything the documentation quotes, for a group of sets."""
    if not sets:
        return {}
    runs = {name: found["runs"] for name, found in sets.items()}
    methods = [method for method in next(iter(runs.values())) if method != "members"]
    ari = {name: means_over_ensembles(one, "ari") for name, one in runs.items()}
    table = {}
    for method in methods:
        row = {f"ari_{kind}": _mean(runs, method, "ari", (kind,)) for kind in kinds}
        for key in ("ari", "nmi", "off", "brier", "cpu_s"):
            row[key] = _mean(runs, method, key)
        row["k_right"] = _share_right(runs, method)
        if OURS in methods and method != OURS:
            row["behind"] = _paired([one[OURS] - one[method] for one in ari.values()])
        if OURS_GIVEN_K in methods and method != OURS_GIVEN_K:
            row["behind_told"] = _paired([one[OURS_GIVEN_K] - one[method] for one in ari.values()])
        table[method] = row
    for name, key in zip(MEMBERS, ("best", "mean")):
        row = {f"ari_{kind}": _mean(runs, "members", key, (kind,)) for kind in kinds}
        table[name] = {**row, "ari": _mean(runs, "members", key)}
    return {
        "n_sets": len(runs),
        "methods": table,
        "ranks": _ranks(ari, methods),
        "brier_of_coassociation": _mean(runs, "members", "brier"),
        "probabilities": _before_and_after(runs) if OURS in methods else {},
        "by_set": {name: {method: round(v, 4) for method, v in one.items()} for name, one in ari.items()},
    }


def _before_and_after(runs: dict) -> dict[str, dict]:
    """Scores of the probabilities of `Consensus`, as they were and as they are, and the paired difference over sets."""
    out = {}
    for key in PROBABILITIES:
        pairs = [
            (
                means_over_ensembles({OURS: one[OURS]}, f"{key}_before"),
                means_over_ensembles({OURS: one[OURS]}, key),
            )
            for one in runs.values()
        ]
        values = [(was[OURS], is_[OURS]) for was, is_ in pairs if OURS in was and OURS in is_]
        out[key] = {
            "before": round(statistics.fmean(was for was, _ in values), 4),
            "after": round(statistics.fmean(is_ for _, is_ in values), 4),
            "difference": _paired([is_ - was for was, is_ in values]),
        }
    return out


def _mean(runs: dict, method: str, key: str, kinds=None) -> float:
    return round(statistics.fmean(means_over_ensembles(one, key, kinds)[method] for one in runs.values()), 4)


def _share_right(runs: dict, method: str) -> float:
    found = [one["off"] == 0 for name in runs for of_kind in runs[name][method].values() for one in of_kind]
    return round(statistics.fmean(found), 3)


def _paired(differences: list[float]) -> dict[str, float]:
    """Mean difference over sets, its standard error, wins and losses."""
    n = len(differences)
    return {
        "mean": round(statistics.fmean(differences), 4),
        "se": round(statistics.stdev(differences) / math.sqrt(n), 4) if n > 1 else math.nan,
        "wins": sum(d > 0.001 for d in differences),
        "losses": sum(d < -0.001 for d in differences),
    }


def _ranks(ari: dict[str, dict[str, float]], methods: list[str]) -> dict[str, float]:
    """Mean rank over sets, 1 the best, ties shared: among the methods that find K, and among those that are given K."""
    from benchmarks.quality.consensus_methods import FINDS_K, GIVEN_K

    out = {}
    for group in (FINDS_K, GIVEN_K):
        names = [method for method in methods if method in group]
        for method in names:
            places = [
                1
                + sum(one[other] > one[method] for other in names)
                + 0.5 * sum(one[other] == one[method] for other in names if other != method)
                for one in ari.values()
            ]
            out[method] = round(statistics.fmean(places), 2)
    return out


def by_method(found: list[dict], groups, key: str) -> dict:
    """method -> number of groups -> value."""
    names = found[0]["found"]
    return {name: {str(k): one["found"][name] for k, one in zip(groups, found)} for name in names} | {
        "of": key
    }


# ---- targets ---------------------------------------------------------------------------------------------------


def bars_of(summary: dict, kinds, given_k: list[str], least_gain: float) -> dict[str, bool]:
    """Which targets are met on a group of sets; targets whose methods did not run are left out."""
    table, bars = summary["methods"], {}
    if OURS in table:
        ours = table[OURS]
        for rival in ("NBCE from one cluster", "NBCE", "EAC lifetime"):
            if rival in table:
                ahead = all(ours[f"ari_{kind}"] > table[rival][f"ari_{kind}"] for kind in kinds)
                bars[f"ahead of {rival} on every kind"] = ahead
        if "LACA" in table:
            bars["ahead of LACA on average"] = ours["ari"] > table["LACA"]["ari"]
        gap = table["EAC told K"]["behind"]
        bars["level with EAC with K given on average (one paired standard error)"] = gap["mean"] >= -gap["se"]
        limit = summary["brier_of_coassociation"] + BRIER_SLACK
        bars[f"Brier score within {BRIER_SLACK} of plain co-association"] = ours["brier"] <= limit
        found = summary["probabilities"]
        gain = -found["brier"]["difference"]["mean"]
        bars[f"Brier score lower than before by at least {least_gain:g}"] = gain >= least_gain
        bars["calibration error of pairs no higher than before"] = (
            found["ece"]["after"] <= found["ece"]["before"]
        )
        ranks = found["confidence_auroc"]["difference"]
        bars["confidence ranks objects as before (one paired standard error)"] = ranks["mean"] >= -ranks["se"]
        errors = found["confidence_ece"]["difference"]
        bars["confidence as calibrated as before (one paired standard error)"] = (
            errors["mean"] <= errors["se"]
        )
    rivals = [name for name in given_k if name in table and name != OURS_GIVEN_K]
    if OURS_GIVEN_K in table and rivals:
        best = max(rivals, key=lambda name: table[name]["ari"])
        gap = table[best]["behind_told"]
        bars[f"K given: level with the best method ({display_name(best)})"] = gap["mean"] >= -gap["se"]
    return bars


def bars_of_planted(planted: dict, noise: dict) -> dict[str, bool]:
    bars = {}
    for k, error in planted.get(OURS, {}).items():
        bars[f"planted, {k} groups: calibration error below {MOST_ECE}"] = error < MOST_ECE
    for k, share in noise.get(OURS, {}).items():
        bars[f"pure noise, {k} labels: one cluster in {LEAST_NOISE:.0%} of ensembles"] = share >= LEAST_NOISE
    return bars


# ---- on the terminal -------------------------------------------------------------------------------------------


def show(summary: dict, kinds, free: list[str], given_k: list[str]) -> None:
    head = "".join(f"{kind:>7}" for kind in kinds)
    print(f"   {'':25}{head}    ARI    NMI  |K-C| right   rank  Brier  cpu s   Consensus minus it (se)  w/l")
    for name in [*free, *CHOSEN, *given_k, *MEMBERS]:
        row = summary["methods"].get(name)
        if row is None:
            continue
        line = "".join(f"{row[f'ari_{kind}']:7.3f}" for kind in kinds) + f"{row['ari']:7.3f}"
        if "nmi" in row:
            line += f"{row['nmi']:7.3f}{row['off']:7.2f}{row['k_right']:6.0%}"
            rank = summary["ranks"].get(name)
            line += f"{'':7}" if rank is None else f"{rank:7.2f}"
            line += f"{row['brier']:7.3f}{row['cpu_s']:7.2f}"
        gap = row.get("behind_told" if name in given_k else "behind")
        if gap:
            line += f"   {gap['mean']:+.3f} ({gap['se']:.3f})  {gap['wins']}/{gap['losses']}"
        print(f"   {display_name(name):25}{line}")
    print(f"   Brier score of plain co-association: {summary['brier_of_coassociation']:.4f}")
    for key, one in summary["probabilities"].items():
        gap = one["difference"]
        print(
            f"   {key.replace('_', ' '):18} before {one['before']:.4f}, after {one['after']:.4f}: "
            f"{gap['mean']:+.4f} ({gap['se']:.4f})"
        )


def show_planted(planted: dict, noise: dict) -> None:
    print("\n   planted ensembles, calibration error by number of groups; pure noise, share of one cluster")
    for name, values in planted.items():
        if isinstance(values, dict) and not name.endswith(": ARI"):
            errors = ", ".join(f"{k}: {v:.4f}" for k, v in values.items())
            shares = ", ".join(f"{k}: {v:.2f}" for k, v in noise.get(name, {}).items())
            print(f"   {name:25} ECE {errors}" + (f"   one cluster {shares}" if shares else ""))
