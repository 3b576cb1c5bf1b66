"""CPU time of `Consensus` without K on 600 objects: all objects shuffled, few shuffled first, and with K given.

Without K the members are compared with shuffled ones where they agree little. Until that comparison began with a few
shuffled objects, it took most of the time of such a fit. Both ways are run here in turn, on the same ensembles of
labeled sets, and must give the same labels. Every fit has one thread.
"""

from __future__ import annotations

from benchmarks.processes import in_own_process
from benchmarks.record import spread

SETS = ("breast_cancer", "pima", "letter", "webkb_linqs", "control_chart", "iris")
KINDS = ("a", "b50", "c", "d")
WAYS = ("all objects shuffled", "few objects first", "K given")


def run(*, full: bool, repeats: int) -> dict:
    from benchmarks.quality.labeled_ensembles import default_folder

    sets = SETS if full else SETS[:2]
    found = {}
    for name in sets:
        found[name] = in_own_process(
            measure, name=name, kinds=list(KINDS), repeats=repeats, folder=default_folder()
        )
        print(
            f"   {name:15} " + ", ".join(f"{way} {found[name]['cpu_s'][way]:.3f} s" for way in WAYS),
            flush=True,
        )
    mean = {way: round(sum(one["cpu_s"][way] for one in found.values()) / len(found), 4) for way in WAYS}
    same = all(one["same_labels"] for one in found.values())
    factors = [one["cpu_s"][WAYS[0]] / one["cpu_s"][WAYS[1]] for one in found.values()]
    return {
        "sets": {name: one["cpu_s"] for name, one in found.items()},
        "kinds": list(KINDS),
        "summary": {key: mean[way] for key, way in zip(("before", "after", "given_k"), WAYS, strict=True)},
        "factor": round(mean[WAYS[0]] / mean[WAYS[1]], 2),
        "factor_of_sets": spread(factors, 2),
        "bars": {
            "the same labels": same,
            "at most half of the time without the screen": mean[WAYS[1]] <= 0.5 * mean[WAYS[0]],
        }
        if full
        else {},
    }


def measure(name: str, kinds: list[str], repeats: int, folder: str) -> dict:
    """Least CPU seconds of each way, the mean over the kinds of ensembles of one set."""
    import time
    import warnings

    import numpy as np

    from benchmarks.quality.labeled_ensembles import ensemble, labeled_set
    from partita import Consensus
    from partita.consensus.default import pipeline

    warnings.simplefilter("ignore")
    C, screened = labeled_set(name).n_classes, pipeline.SCREENED
    totals, same = dict.fromkeys(WAYS, 0.0), True
    for kind in kinds:
        Y = ensemble(name, kind, 0, folder)
        best, labels = dict.fromkeys(WAYS, np.inf), {}
        for attempt in range(repeats + 1):  # the first loads compiled code
            for way in WAYS:
                pipeline.SCREENED = 10**9 if way == WAYS[0] else screened
                model = Consensus(C if way == WAYS[2] else None, random_state=0)
                start = time.process_time()
                labels[way] = model.fit(Y).labels_
                if attempt:
                    best[way] = min(best[way], time.process_time() - start)
        same &= bool((labels[WAYS[0]] == labels[WAYS[1]]).all())
        for way in WAYS:
            totals[way] += best[way] / len(kinds)
    return {"cpu_s": {way: round(total, 4) for way, total in totals.items()}, "same_labels": same}
