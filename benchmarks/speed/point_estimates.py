"""The partition of least expected variation of information: CPU time and memory, for certain and uncertain posteriors.

*Clear* draws are noisy copies of a planted partition: every object has its own probability of another label, 15% on
average, and its own other cluster. In *doubtful* draws that probability is 40%, and in every draw two random pairs of
clusters are merged and two random clusters are split. The targets are the CPU seconds that R's salso (16 runs, 1000
draws) took on similar machines; it was not run here.
"""

from __future__ import annotations

from benchmarks.processes import in_own_process, stopwatch
from benchmarks.record import spread

SALSO_CPU_S = {500: 0.5, 1000: 1.0, 2000: 2.3}
LARGE = (20_000, 500)
MOST_MB = 2000
N_CLUSTERS = 15


def run(*, full: bool, repeats: int) -> dict:
    sizes = [(n, 1000) for n in SALSO_CPU_S] + [LARGE] if full else [(500, 200), (1000, 200)]
    summary: dict = {}
    for kind in ("clear", "doubtful"):
        points = []
        for n_objects, n_draws in sizes:
            found = [
                in_own_process(estimate, kind=kind, n_objects=n_objects, n_draws=n_draws, seed=seed)
                for seed in range(repeats)
            ]
            points.append(
                {
                    "n_objects": n_objects,
                    "n_draws": n_draws,
                    "cpu_s": spread([one["cpu_s"] for one in found]),
                    "wall_s": spread([one["wall_s"] for one in found]),
                    "peak_mb": spread([one["peak_mb"] for one in found], 1),
                    "before_mb": spread([one["before_mb"] for one in found], 1),
                    "n_clusters": spread([one["n_clusters"] for one in found]),
                    "expected_loss_bits": spread([one["expected_loss"] for one in found]),
                    "planted_loss_bits": spread([one["planted_loss"] for one in found]),
                    "hits_of_starts": [f"{one['n_hits']} of {one['n_starts']}" for one in found],
                }
            )
            last = {key: value["median"] for key, value in points[-1].items() if isinstance(value, dict)}
            print(
                f"   {kind:9} {n_objects:>7,} objects x {n_draws:>5,} draws: {last['cpu_s']:.2f} s of CPU, peak "
                f"{last['peak_mb']:.0f} MB, loss {last['expected_loss_bits']:.4f} "
                f"(planted {last['planted_loss_bits']:.4f})",
                flush=True,
            )
        summary[kind] = points
    return {"repeats": repeats, "salso_cpu_s": SALSO_CPU_S, "summary": summary, "bars": _bars(summary)}


def _bars(summary: dict) -> dict[str, bool]:
    bars = {}
    for kind, points in summary.items():
        for point in points:
            n, seen = point["n_objects"], SALSO_CPU_S.get(point["n_objects"])
            if seen is not None:
                bars[f"{kind}, {n} objects: no more than {seen} s of CPU"] = point["cpu_s"]["median"] <= seen
            bars[f"{kind}, {n} objects: under {MOST_MB} MB"] = point["peak_mb"]["max"] < MOST_MB
    return bars


# ---- in processes of their own ---------------------------------------------------------------------------------


def make_draws(kind: str, n_objects: int, n_draws: int, seed: int):
    """Draws and the planted partition."""
    import numpy as np

    rng = np.random.default_rng(seed)
    z, second = rng.integers(N_CLUSTERS, size=(2, n_objects))
    strays = 2 * (0.15 if kind == "clear" else 0.4) * rng.random(n_objects)
    draws = np.empty((n_draws, n_objects), dtype=np.int16)
    for row in draws:
        row[:] = np.where(rng.random(n_objects) < strays, second, z)
        if kind == "doubtful":
            a, b, c, d, e, f = rng.choice(N_CLUSTERS, size=6, replace=False)
            row[row == b], row[row == d] = a, c
            row[(row == e) & (rng.random(n_objects) < 0.5)] = N_CLUSTERS
            row[(row == f) & (rng.random(n_objects) < 0.5)] = N_CLUSTERS + 1
    return draws, z


def estimate(kind: str, n_objects: int, n_draws: int, seed: int) -> dict:
    from benchmarks.processes import peak_mb
    from partita.posterior import expected_loss, point_estimate

    point_estimate(make_draws("clear", 80, 10, 0)[0], random_state=0)  # compiled code is loaded here
    draws, z = make_draws(kind, n_objects, n_draws, seed)
    before = peak_mb()
    with stopwatch() as seconds:
        found = point_estimate(draws, random_state=seed)
    return {
        **seconds,
        "before_mb": round(before, 1),
        "n_clusters": found.n_clusters,
        "expected_loss": found.expected_loss,
        "planted_loss": expected_loss(z, draws),
        "n_hits": found.n_hits,
        "n_starts": found.n_starts,
    }
