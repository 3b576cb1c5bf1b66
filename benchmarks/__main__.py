"""Run the benchmarks: ``python -m benchmarks [names] [--full]``.

Without ``--full`` the sizes are small, so that all of them together take a quarter of an hour, and the results go to
``benchmarks/out/``. With ``--full`` they have the sizes that the documentation quotes, and go to
``benchmarks/results/``, which is kept.
"""

import argparse
import importlib
import os
import sys
import time
import traceback

from benchmarks.record import save

BENCHMARKS = {
    "em_latent_class": "benchmarks.speed.em_latent_class",
    "startup": "benchmarks.speed.startup",
    "default_fit": "benchmarks.speed.default_fit",
    "yardsticks": "benchmarks.speed.yardsticks",
    "growth": "benchmarks.speed.growth",
    "engines": "benchmarks.speed.engines",
    "point_estimates": "benchmarks.speed.point_estimates",
    "sweeps": "benchmarks.speed.sweeps",
    "million": "benchmarks.speed.million",
    "subclusters": "benchmarks.speed.subclusters",
    "dp_gaussian": "benchmarks.speed.dp_gaussian",
    "affinity": "benchmarks.speed.affinity",
    "reading": "benchmarks.speed.reading",
    "right_k": "benchmarks.quality.right_k",
    "calibration": "benchmarks.quality.calibration",
    "ordinal_survey": "benchmarks.quality.ordinal_survey",
    "real_tables": "benchmarks.quality.real_tables",
    "planted_tables": "benchmarks.quality.planted_tables",
    "wide_tables": "benchmarks.quality.wide_tables",
    "real_variants": "benchmarks.quality.real_variants",
    "prior_tables": "benchmarks.quality.prior_tables",
    "mean_priors": "benchmarks.quality.mean_priors",
    "stability": "benchmarks.quality.stability",
    "views_real": "benchmarks.quality.views_real",
    "correlated_views": "benchmarks.quality.correlated_views",
    "spectral": "benchmarks.quality.spectral",
    "consensus": "benchmarks.quality.consensus",
    "tree_reduction": "benchmarks.quality.tree_reduction",
    "consensus_speed": "benchmarks.speed.consensus",
    "consensus_chance": "benchmarks.speed.consensus_chance",
    "many_members": "benchmarks.speed.many_members",
    "murphy": "benchmarks.papers.murphy",
    "nbce": "benchmarks.papers.nbce",
    "topchy": "benchmarks.papers.topchy",
    "laca": "benchmarks.papers.laca",
    "irm": "benchmarks.papers.irm",
    "bhc": "benchmarks.papers.bhc",
    "trees": "benchmarks.speed.trees",
    "ofv": "benchmarks.papers.ofv",
    "ofv_real": "benchmarks.papers.ofv_real",
    "ofv_text": "benchmarks.papers.ofv_text",
    "ofv_speed": "benchmarks.papers.ofv_speed",
    "crosscat": "benchmarks.papers.crosscat",
    "gpu": "benchmarks.gpu.em_step",
    "stochastic": "benchmarks.scale.stochastic",
    "parquet": "benchmarks.scale.parquet",
    "dask_overhead": "benchmarks.scale.dask_overhead",
}
# those without a kept result: ratios for benchmarks.regression alone, and new ones that have not run in full
NOT_KEPT = {"yardsticks"}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure partita.")
    parser.add_argument("names", nargs="*", help=f"which ones, of {', '.join(BENCHMARKS)}; default: all")
    parser.add_argument("--full", action="store_true", help="the sizes that the documentation quotes")
    parser.add_argument(
        "--repeats", type=int, help="repetitions of each measurement (default 3; small runs 1)"
    )
    options = parser.parse_args(arguments)
    repeats = options.repeats or (3 if options.full else 1)
    unknown = sorted(set(options.names) - set(BENCHMARKS))
    if unknown:
        parser.error(f"no benchmark {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    missed, failed = [], []
    for name in options.names or BENCHMARKS:
        print(f"== {name}{' (full size)' if options.full else ''}", flush=True)
        begun = time.monotonic()
        try:
            result = importlib.import_module(BENCHMARKS[name]).run(full=options.full, repeats=repeats)
        except Exception as error:  # the others are hours of work that one failure must not stop
            if "PARTITA_DATA" in str(error) and not os.environ.get("PARTITA_DATA"):
                print("   skipped: it needs data sets (PARTITA_DATA names their folder)", flush=True)
            else:
                traceback.print_exc()
                failed.append(name)
            continue
        path = save(name, result, full=options.full)
        print(f"   written to {path}, {time.monotonic() - begun:.0f} s", flush=True)
        missed += [f"{name}: {bar}" for bar, met in result.get("bars", {}).items() if not met]
    for bar in missed:
        print(f"target not met: {bar}")
    for name in failed:
        print(f"failed: {name} (its error is above)")
    return int(bool(failed) or (bool(missed) and options.full))


if __name__ == "__main__":
    sys.exit(main())
