"""Consensus of up to ten thousand members on a few hundred objects: CPU time and agreement of `Consensus` and `NBCE`.

The members have five groups, every label is redrawn with probability 0.3. Every fit has one thread and a process of its
own, after a fit to a tenth of the members that loads the compiled code.
"""

from __future__ import annotations

from benchmarks.processes import in_own_process

N_OBJECTS, N_GROUPS, REDRAWN = 300, 5, 0.3
MEMBERS = (100, 1000, 10_000)
LIMIT_S = 60.0  # for the largest number of members
METHODS = {
    "Consensus": ("Consensus", {}),
    "NBCE, Gibbs": ("NBCE", {}),
    "NBCE, VB": ("NBCE", {"inference": "vb"}),
}


def run(*, full: bool, repeats: int) -> dict:
    sizes = MEMBERS if full else MEMBERS[:1]
    runs: dict[str, dict[str, dict]] = {}
    for name in METHODS:
        for n_members in sizes:
            one = in_own_process(fit, method=name, n_members=n_members)
            runs.setdefault(name, {})[str(n_members)] = one
            print(
                f"   {name:15} {n_members:6,} members {one['cpu_s']:8.2f} s of CPU, ARI {one['ari']:.3f}, "
                f"K = {one['n_clusters']}",
                flush=True,
            )
    most = str(sizes[-1])
    bars = {
        f"{name}: at most {LIMIT_S:g} s of CPU": found[most]["cpu_s"] <= LIMIT_S
        for name, found in runs.items()
    }
    return {
        "n_objects": N_OBJECTS,
        "n_groups": N_GROUPS,
        "redrawn": REDRAWN,
        "members": list(sizes),
        "summary": runs,
        "bars": bars if full else {},
    }


def fit(method: str, n_members: int) -> dict:
    """Fit one method, in a process of its own."""
    import warnings

    import partita
    from benchmarks.processes import stopwatch
    from partita.datasets import make_planted_ensemble
    from partita.metrics import adjusted_rand

    warnings.simplefilter("ignore")
    planted = make_planted_ensemble(N_OBJECTS, N_GROUPS, n_members, redrawn=REDRAWN, random_state=0)
    name, parameters = METHODS[method]
    estimator = getattr(partita, name)
    estimator(random_state=0, **parameters).fit(planted.X[:, : n_members // 10])
    with stopwatch() as watch:
        model = estimator(random_state=0, **parameters).fit(planted.X)
    return {
        **watch,
        "ari": adjusted_rand(planted.labels, model.labels_),
        "n_clusters": int(model.n_clusters_),
    }
