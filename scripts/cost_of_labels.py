"""What a clustering of very many labels takes: machines, hours, network and price, from measured figures.

    python scripts/cost_of_labels.py --labels 1e12 --members 20 --iterations 20 --core-price 0.05

The figures are those of benchmarks/results: the time of a row in an iteration and the overhead of Dask from
dask_overhead.json, the time of reading and labeling a row from parquet.json, the time of a device from gpu.json. They
are scaled to the rows, members and iterations that are asked for; prices are those that are given.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.scale.dask_overhead import overhead_seconds  # noqa: E402

DEVICE_BYTES = 120e9  # of labels that a device of 141 GB holds beside its work space
DEFAULTS = {"labels": 1e12, "members": 20, "iterations": 20, "core_price": 0.05, "device_price": 4.0}


class Cost(NamedTuple):
    """A fit on a number of machines."""

    machines: str
    gb_each: float  # of labels in the memory of each, a byte per label
    seconds: float  # of an iteration
    busy: float  # share of an iteration in which the machines compute
    hours: float  # of the fit
    driver_mb: float  # through the driver, in all iterations
    price: float


def on_workers(results: dict[str, Any], workers: int, asked: dict[str, float]) -> Cost:
    """One core per worker, labels in its memory."""
    dask, reading = results["dask_overhead"], results["parquet"]["runs"][-1]
    rows = asked["labels"] / asked["members"]
    width = asked["members"] / dask["size"]["n_members"]
    work = rows / workers * dask["seconds_a_row"] * width
    moved = dask["bytes_out"] + dask["bytes_back"]
    seconds = work + overhead_seconds(workers, dask, dask["summary"]["overhead"])
    once = reading["cpu_s"] - results["parquet"]["size"]["iterations"] * reading["cpu_s_per_iteration"]
    once *= rows / workers / reading["n_rows"] * width
    hours = (asked["iterations"] * seconds + once) / 3600.0
    return Cost(
        f"{workers:,} cores",
        asked["labels"] / workers / 1e9,
        seconds,
        work / seconds,
        hours,
        asked["iterations"] * moved / 1e6,
        hours * workers * asked["core_price"],
    )


def on_devices(results: dict[str, Any], asked: dict[str, float]) -> Cost:
    """As few devices as hold the labels, each with its share of the rows; what they would exchange is left out."""
    size, gpu = results["gpu"]["size"], results["gpu"]["summary"]["sizes"][-1]
    n_devices = math.ceil(asked["labels"] / DEVICE_BYTES)
    rows = asked["labels"] / asked["members"] / n_devices
    seconds = rows / gpu["n_rows"] * gpu["fused_ms"] / 1e3 * asked["members"] / size["n_columns"]
    hours = asked["iterations"] * seconds / 3600.0
    return Cost(
        f"{n_devices} devices (H200)",
        asked["labels"] / n_devices / 1e9,
        seconds,
        1.0,
        hours,
        0.0,
        hours * n_devices * asked["device_price"],
    )


def all_costs(results: dict[str, Any], asked: dict[str, float]) -> list[Cost]:
    """On clusters of several sizes, and on devices."""
    return [
        *(on_workers(results, workers, asked) for workers in (100, 1000, 10_000)),
        on_devices(results, asked),
    ]


def cells(cost: Cost) -> list[str]:
    """The cells of a row of the table."""
    return [
        cost.machines,
        f"{cost.gb_each:,.1f} GB",
        f"{cost.seconds:,.1f} s",
        f"{cost.busy:.0%}",
        f"{cost.hours:,.2g} h" if cost.hours >= 0.1 else f"{60 * cost.hours:,.1f} min",
        f"{cost.driver_mb:,.1f} MB",
        f"{cost.price:,.2f}",
    ]


HEAD = ["machines", "labels on each", "iteration", "busy", "whole fit", "through the driver", "price"]


def read_results(folder: Path = ROOT / "benchmarks" / "results") -> dict[str, Any]:
    """The results that the figures come from."""
    names = ("dask_overhead", "parquet", "gpu")
    return {name: json.loads((folder / f"{name}.json").read_text(encoding="utf-8")) for name in names}


def main() -> None:
    parser = argparse.ArgumentParser(description="What a clustering of very many labels takes.")
    for name, value in DEFAULTS.items():
        parser.add_argument(
            f"--{name.replace('_', '-')}", type=float, default=value, help=f"default {value:g}"
        )
    asked = vars(parser.parse_args())
    print(f"{asked['labels']:g} labels, {asked['members']:g} members, {asked['iterations']:g} iterations")
    print("; ".join(HEAD))
    for cost in all_costs(read_results(), asked):
        print("; ".join(cells(cost)))


if __name__ == "__main__":
    main()
