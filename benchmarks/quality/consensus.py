"""Consensus on labeled sets: every method, five kinds of ensembles, and how well its probabilities are calibrated.

Sets and ensembles are those of `labeled_ensembles`. Figures are means over sets of means over kinds and seeds, and
differences between methods are paired over sets. Held-out sets, which were not used to choose any default, are also
reported on their own. Brier scores are those of the statement "these two objects belong to the same class" over all
pairs of objects. The two columns of the alternatives of `Consensus`, and its probabilities before they were fitted on
labeled sets, are those of `consensus_grain`. Planted ensembles (equal groups, 20 members, 10% of the labels redrawn)
show whether such probabilities are calibrated if members err independently; ensembles of pure noise show whether a
method can find that there is no consensus. On these two only some of the other methods run.

The result of each set is stored when it is done: the same command goes on from there if a run was ended (`parts`).
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

from benchmarks.parts import Parts
from benchmarks.processes import stopwatch
from benchmarks.quality import consensus_tables as tables

N_SEEDS = 2
MOST_PROCESSES = 2
QUICK_SETS = {"iris", "wine", "dpmm_2d_100_generated"}  # none of the sets held out: a quick run is for tuning
QUICK_KINDS = ("a", "c")
PLANTED = {"n_samples": 500, "n_members": 20, "redrawn": 0.1}
PLANTED_GROUPS, PLANTED_SEEDS = (5, 10), 5
NOISE = {"n_samples": 300, "n_members": 20, "redrawn": 1.0}
NOISE_GROUPS, NOISE_SEEDS = (2, 5), 20
# planted ensembles and noise are about `Consensus`: of the others, some with probabilities, and those that are fast
PLANTED_METHODS = ("Consensus", "EAC lifetime", "Consensus told K", "MixtureConsensus told K", "BCE told K")
NOISE_METHODS = ("Consensus", "LACA", "NBCE from one cluster", "EAC lifetime")
PARTS = ("all", "tuned_on", "held_out")


def run(*, full: bool, repeats: int) -> dict:
    from benchmarks.quality.consensus_methods import FINDS_K, GIVEN_K, present
    from benchmarks.quality.labeled_ensembles import HELD_OUT, KINDS, TUNED_ON, default_folder

    there, missing = present()
    for name in missing:
        print(f"   {name}: its extra is not installed, skipped")
    kinds, n_seeds = (KINDS, N_SEEDS) if full else (QUICK_KINDS, 1)
    sets = [name for name in {**TUNED_ON, **HELD_OUT} if full or name in QUICK_SETS]
    asked = {"methods": there, "kinds": list(kinds), "n_seeds": n_seeds, "folder": default_folder()}

    parts = Parts("consensus")

    def one_set(name):
        found = parts.run(compare, name=name, **asked)
        print(f"   {name:25} {_in_words(found)}", flush=True)
        return name, found

    with ThreadPoolExecutor(min(MOST_PROCESSES, _n_cores())) as pool:
        found = dict(pool.map(one_set, sets))
        skipped = {name: result["skipped"] for name, result in found.items() if "skipped" in result}
        runs = {name: result for name, result in found.items() if name not in skipped}
        planted = list(
            pool.map(lambda k: parts.run(calibrate, methods=PLANTED_METHODS, n_groups=k), PLANTED_GROUPS)
        )
        n_noise = NOISE_SEEDS if full else 3
        noise = list(
            pool.map(
                lambda k: parts.run(meet_noise, methods=NOISE_METHODS, n_groups=k, n_seeds=n_noise),
                NOISE_GROUPS,
            )
        )
    summary = {
        "all": tables.summarize(runs, kinds),
        "tuned_on": tables.summarize({name: runs[name] for name in runs if name in TUNED_ON}, kinds),
        "held_out": tables.summarize({name: runs[name] for name in runs if name in HELD_OUT}, kinds),
        "planted": tables.by_method(planted, PLANTED_GROUPS, "ece"),
        "noise": tables.by_method(noise, NOISE_GROUPS, "share_of_one_cluster"),
        "cpu_minutes": round(sum(one["cpu_s"] for one in [*runs.values(), *planted, *noise]) / 60, 1),
    }
    bars_of_part = {}
    for part in PARTS:
        if summary[part]:
            print(f"\n   {part.replace('_', ' ')}: {summary[part]['n_sets']} sets")
            tables.show(summary[part], kinds, list(FINDS_K), list(GIVEN_K))
            least_gain = tables.LEAST_BRIER_GAIN if part == "held_out" else 0.0
            bars_of_part[part] = tables.bars_of(summary[part], kinds, list(GIVEN_K), least_gain)
    bars = bars_of_part["all"] | tables.bars_of_planted(summary["planted"], summary["noise"])
    tables.show_planted(summary["planted"], summary["noise"])
    for part, judged in (bars_of_part | {"all": bars}).items():
        for bar, met in judged.items():
            print(f"   {'met    ' if met else 'NOT MET'} {part.replace('_', ' ')}: {bar}")
    parts.forget()
    return {
        "sets": {"tuned_on": list(TUNED_ON), "held_out": list(HELD_OUT), "skipped": skipped},
        "kinds": list(kinds),
        "n_seeds": n_seeds,
        "planted": {
            **PLANTED,
            "n_groups": PLANTED_GROUPS,
            "n_seeds": PLANTED_SEEDS,
            "methods": PLANTED_METHODS,
        },
        "noise": {**NOISE, "n_groups": NOISE_GROUPS, "n_seeds": n_noise, "methods": NOISE_METHODS},
        "methods_not_there": missing,
        "summary": summary,
        "bars_of_part": bars_of_part,
        "bars": bars if full else {},
    }


def _n_cores() -> int:
    """Of those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _in_words(found: dict) -> str:
    if "skipped" in found:
        return f"skipped: {found['skipped']}"
    means = tables.means_over_ensembles(found["runs"], "ari")
    named = [
        f"{tables.display_name(name)} {means[name]:.3f}"
        for name in ("Consensus", *tables.CHOSEN, "LACA", "EAC told K")
        if name in means
    ]
    return f"{', '.join(named)}; {found['cpu_s']:.0f} s of CPU"


# ---- in processes of their own ---------------------------------------------------------------------------------


def compare(name: str, methods: list[str], kinds: list[str], n_seeds: int, folder: str) -> dict:
    """All methods on all ensembles of one set."""
    import warnings

    from benchmarks.quality.consensus_methods import METHODS, ONE_SEED
    from benchmarks.quality.labeled_ensembles import ensemble, labeled_set

    warnings.simplefilter("ignore")
    try:
        data = labeled_set(name)
    except FileNotFoundError as error:
        return {"skipped": str(error)}
    runs: dict[str, dict[str, list[dict]]] = {}
    with stopwatch() as watch:
        for kind in kinds:
            for seed in range(n_seeds):
                Y = ensemble(name, kind, seed, folder)
                runs.setdefault("members", {}).setdefault(kind, []).append(_judge_members(Y, data.classes))
                for method in methods:
                    if seed > 0 and method in ONE_SEED:
                        continue
                    with stopwatch() as fit:
                        outcome = METHODS[method](Y, data.n_classes, seed)
                    scores = _judge(outcome, data.classes) | {"cpu_s": round(fit["cpu_s"], 3)}
                    judged = {method: scores}
                    if outcome.model is not None:
                        judged |= _judge_model(outcome.model, Y, data.classes, scores)
                    for judged_name, one in judged.items():
                        runs.setdefault(judged_name, {}).setdefault(kind, []).append(one)
    return {"runs": runs, "cpu_s": round(watch["cpu_s"], 1)}


def _judge(outcome, classes) -> dict:
    import numpy as np

    from partita.metrics import adjusted_rand, normalized_mutual_info

    i, j = np.triu_indices(len(classes), 1)
    errors = outcome.probabilities(i, j) - (classes[i] == classes[j])
    K = np.unique(outcome.labels).size
    return {
        "ari": round(adjusted_rand(classes, outcome.labels), 4),
        "nmi": round(normalized_mutual_info(classes, outcome.labels), 4),
        "K": int(K),
        "off": int(abs(K - np.unique(classes).size)),
        "brier": round(float(np.mean(errors**2)), 4),
    }


def _judge_model(model, Y, classes, scores: dict) -> dict[str, dict]:
    """Of a `Consensus`: its probabilities before and after, which go into its scores, and its alternatives."""
    from benchmarks.quality.consensus_grain import chosen_alternatives, judge_probabilities

    with stopwatch() as watch:
        chosen = chosen_alternatives(model, classes)
    scores |= judge_probabilities(model, Y, classes)
    cpu_s = {"cpu_s": round(scores["cpu_s"] + watch["cpu_s"], 3)}
    return {name: _judge(outcome, classes) | cpu_s for name, outcome in chosen.items()}


def _judge_members(Y, classes) -> dict:
    """The best and the mean member, and the Brier score of the plain co-association."""
    import numpy as np

    from benchmarks.quality.consensus_methods import Outcome, coassociation
    from partita.metrics import adjusted_rand

    scores = [adjusted_rand(classes, member, missing="drop") for member in Y.T]
    plain = _judge(Outcome(np.zeros(len(Y), int), coassociation(Y)), classes)
    return {
        "best": round(max(scores), 4),
        "mean": round(float(np.mean(scores)), 4),
        "brier": plain["brier"],
        "missing": round(float((Y < 0).mean()), 3),
    }


def calibrate(methods: list[str], n_groups: int) -> dict:
    """Expected calibration error of the pair probabilities of each method on planted ensembles."""
    import warnings

    import numpy as np

    from benchmarks.quality.consensus_grain import before, calibration_error
    from benchmarks.quality.consensus_methods import METHODS, Outcome, coassociation
    from partita.datasets import make_planted_ensemble
    from partita.metrics import adjusted_rand

    warnings.simplefilter("ignore")
    found: dict[str, list[float]] = {}
    with stopwatch() as watch:
        for seed in range(PLANTED_SEEDS):
            planted = make_planted_ensemble(n_clusters=n_groups, random_state=seed, **PLANTED)
            i, j = np.triu_indices(len(planted.labels), 1)
            same = planted.labels[i] == planted.labels[j]
            plain = Outcome(planted.labels, coassociation(planted.X))
            for name, outcome in [("co-association", plain)] + [
                (method, METHODS[method](planted.X, n_groups, seed)) for method in methods
            ]:
                found.setdefault(name, []).append(calibration_error(outcome.probabilities(i, j), same))
                ari = adjusted_rand(planted.labels, outcome.labels)
                found.setdefault(f"{name}: ARI", []).append(ari)
                if outcome.model is not None:
                    former = before(outcome.model, planted.X).pairs(i, j)
                    found.setdefault(f"{name}, before", []).append(calibration_error(former, same))
    means = {name: round(float(np.mean(values)), 4) for name, values in found.items()}
    return {"found": means, "cpu_s": round(watch["cpu_s"], 1)}


def meet_noise(methods: list[str], n_groups: int, n_seeds: int) -> dict:
    """How often each method finds one cluster, that is no consensus, in members that have nothing in common."""
    import warnings

    import numpy as np

    from benchmarks.quality.consensus_methods import METHODS
    from partita.datasets import make_planted_ensemble

    warnings.simplefilter("ignore")
    found: dict[str, list[bool]] = {name: [] for name in methods}
    with stopwatch() as watch:
        for seed in range(n_seeds):
            Y = make_planted_ensemble(n_clusters=n_groups, random_state=1000 + seed, **NOISE).X
            for name in methods:
                found[name].append(np.unique(METHODS[name](Y, n_groups, seed).labels).size == 1)
    return {
        "found": {name: float(np.mean(one)) for name, one in found.items()},
        "cpu_s": round(watch["cpu_s"], 1),
    }
