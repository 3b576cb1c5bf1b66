"""CrossCat on planted views, its growth with the number of rows, and two real tables.

Planted: ten disjoint views of ten columns, three clusters each, means N(0, s^2). The score is the average NMI over the
best one-to-one matching of views (an unmatched view counts 0; NMI by the geometric mean, as in the tables of
NBMC-OFV). It is compared with an oracle that knows all parameters and, if lace is installed, with one of the 8 states
of lace at its defaults (100 iterations). If lace is not installed, a time measured elsewhere is used: 45 s at
N = 10,000, D = 100. CPU seconds are those of all threads.
"""

from __future__ import annotations

import importlib.util

from benchmarks.processes import in_own_process, stopwatch
from benchmarks.record import spread

LACE_SECONDS = 45.0  # where it is not installed
SETTINGS: dict[str, dict] = {
    "gibbs": {},
    "vb": {"inference": "vb"},
    "search": {"inference": "search", "n_chains": 2, "max_iter": 20},
    "one chain": {"n_chains": 1, "burn_in": 5, "n_draws": 5},
}
SEEDS = range(3000, 3003)  # not used in development


def run(*, full: bool, repeats: int) -> dict:
    from benchmarks.matching import NMI_AVERAGE

    in_own_process(planted, n_rows=200, n_columns=20, separation=2.0, setting="gibbs", seed=0)  # compiles
    in_own_process(planted, n_rows=200, n_columns=20, separation=2.0, setting="vb", seed=0)
    quality = {
        f"s = {s}": {setting: _quality(s, setting, full) for setting in ("gibbs", "vb", "search")}
        for s in ((2.0, 1.2) if full else (2.0,))
    }
    sizes = [(1000, 100), (10_000, 100), (100_000, 50)] if full else [(300, 20), (1000, 20)]
    growth: dict[str, list[dict]] = {"gibbs": [], "vb": []}
    for n_rows, n_columns in sizes:
        for setting, found in growth.items():
            asked = "one chain" if setting == "gibbs" and n_rows > 10_000 else setting
            found.append(
                in_own_process(
                    planted, n_rows=n_rows, n_columns=n_columns, separation=2.0, setting=asked, seed=2000
                )
            )
            print(f"   N = {n_rows}, D = {n_columns}, {asked}: {_in_words(found[-1])}", flush=True)
    lace, lace_s = None, LACE_SECONDS
    if importlib.util.find_spec("lace"):
        n_rows, n_columns = sizes[1]
        lace = in_own_process(planted_lace, n_rows=n_rows, n_columns=n_columns, separation=2.0, seed=2000)
        lace_s = lace["cpu_s"]
        print(f"   N = {n_rows}, D = {n_columns}, lace: {_in_words(lace)}", flush=True)
    tables = {}
    for name in ("animals_50x85", "satellites") if full else ("animals_50x85",):
        tables[name] = in_own_process(real, name=name)
        print(f"   {name}: {tables[name]['n_views']} views, {tables[name]['cpu_s']:.1f} s", flush=True)
    bars = {}
    if full:
        for s, most in (("s = 2.0", 0.98), ("s = 1.2", None)):
            own = quality[s]["gibbs"]
            least = own["oracle"]["median"] - 0.02 if most is None else most
            bars[f"N = 1,000, {s}: NMI at least {'oracle - 0.02' if most is None else most}"] = (
                own["nmi"]["median"] >= least
            )
        for setting, found in growth.items():
            bars[f"N = 10,000, D = 100, {setting}: NMI at least 0.97"] = found[1]["nmi"] >= 0.97
            bars[f"N = 10,000, D = 100, {setting}: no more CPU seconds than lace"] = (
                found[1]["cpu_s"] <= lace_s
            )
            bars[f"N = 100,000, D = 50, {setting}: under 4 GB"] = found[2]["peak_mb"] < 4000
    summary = {"quality": quality, "growth": growth, "lace": lace, "tables": tables}
    return {"summary": summary, "bars": bars, "nmi_average": NMI_AVERAGE}


def _quality(separation: float, setting: str, full: bool) -> dict:
    n_rows, n_columns = (1000, 100) if full else (300, 20)
    found = [
        in_own_process(
            planted, n_rows=n_rows, n_columns=n_columns, separation=separation, setting=setting, seed=seed
        )
        for seed in (SEEDS if full else SEEDS[:1])
    ]
    out = {key: spread([one[key] for one in found]) for key in ("nmi", "oracle", "n_views", "cpu_s")}
    print(
        f"   s = {separation}, {setting}: NMI {out['nmi']['median']:.3f} (oracle {out['oracle']['median']:.3f}), "
        f"{out['n_views']['median']} views, {out['cpu_s']['median']:.1f} s",
        flush=True,
    )
    return out


def _in_words(one: dict) -> str:
    return (
        f"NMI {one['nmi']:.3f} (oracle {one['oracle']:.3f}), {one['n_views']} views, {one['cpu_s']:.1f} s of CPU, "
        f"{one['peak_mb']:.0f} MB"
    )


# ---- in a process of its own -----------------------------------------------------------------------------------


def planted(n_rows: int, n_columns: int, separation: float, setting: str, seed: int) -> dict:
    import warnings

    from partita import CrossCat
    from partita.datasets.views import make_planted_views

    warnings.simplefilter("ignore")
    V = max(n_columns // 10, 2)
    data = make_planted_views(1, n_rows, n_columns, V, separation=separation, random_state=seed)
    CrossCat(**SETTINGS[setting], random_state=0).fit(data.X[:100])  # loads the compiled code
    with stopwatch() as watch:
        model = CrossCat(**SETTINGS[setting], random_state=0).fit(data.X)
    return {
        "nmi": average_nmi(data.view_labels, model.view_labels_),
        "oracle": average_nmi(data.view_labels, data.oracle),
        "n_views": model.n_views_,
        "cpu_s": round(watch["cpu_s"], 2),
        "n_rows": n_rows,
        "n_columns": n_columns,
        "setting": setting,
    }


def planted_lace(n_rows: int, n_columns: int, separation: float, seed: int) -> dict:
    from benchmarks.papers.ofv import fit_lace
    from partita.datasets.views import make_planted_views

    V = max(n_columns // 10, 2)
    data = make_planted_views(1, n_rows, n_columns, V, separation=separation, random_state=seed)
    with stopwatch() as watch:
        labels = fit_lace(data.X)
    return {
        "nmi": average_nmi(data.view_labels, labels),
        "oracle": average_nmi(data.view_labels, data.oracle),
        "n_views": int(labels.shape[1]),
        "cpu_s": round(watch["cpu_s"], 2),
        "n_rows": n_rows,
        "n_columns": n_columns,
    }


def average_nmi(planted_labels, found_labels) -> float:
    """Over the best matching of views, by the geometric mean."""
    from benchmarks.matching import matched_nmi

    return round(float(matched_nmi(planted_labels, found_labels).mean()), 4)


def real(name: str) -> dict:
    model, _, frame, cpu_s = fit_real(name)
    return {
        "n_views": model.n_views_,
        "n_views_posterior": {str(k): p for k, p in model.n_views_posterior_.items()},
        "clusters": (model.view_labels_.max(axis=0) + 1).tolist(),
        "explained_by": [
            [column for column, _ in model.explain(v)[:8]]
            for v in range(min(model.n_views_, model.view_labels_.shape[1]))
        ],
        "chains_agree": bool(model.diagnostics_.ok),
        "largest_spread": float(model.diagnostics_.dependence_spread.max()),
        "n_missing": int(frame.isna().to_numpy().sum()),
        "cpu_s": round(cpu_s, 2),
    }


def fit_real(name: str):
    """A real table at the default settings: the model, the names of its rows, the table, CPU seconds."""
    import warnings

    import pandas as pd

    from benchmarks.data import load_benchmark
    from partita import CrossCat

    data = load_benchmark(name)
    frame = pd.DataFrame(data.X, columns=data.feature_names)
    if data.X.dtype == object:
        frame = frame.infer_objects()
    with warnings.catch_warnings(), stopwatch() as watch:
        warnings.simplefilter("ignore")  # what the diagnostics say is in the result
        model = CrossCat(random_state=0).fit(frame)
    return model, data.ids, frame, watch["cpu_s"]
