"""Reading a CSV file of a million rows and twenty columns: CPU seconds beside polars and pyarrow alone.

The file has ten columns of measurements, four of integers, four of categories, one with missing cells and one of 0 and
1. polars and pyarrow infer the types of the columns; partita also searches for missing words and leading zeros. "Typed"
adds `read_table`: kinds, levels, scales, notes and the account. The second file is dirty: money, percent, decimal
commas, dates and missing codes, which the others leave as text. Every reading is in a process of its own, after a small
file was read.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.processes import in_own_process, stopwatch
from benchmarks.record import spread

READERS = ("pyarrow", "polars", "partita", "partita_typed")
MOST_RATIO = 2.0


def run(*, full: bool, repeats: int) -> dict:
    n_rows = 1_000_000 if full else 50_000
    found: dict[str, dict] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in ("clean", "dirty"):
            path = str(Path(folder) / f"{name}.csv")
            in_own_process(write_table, {}, path=path, n_rows=n_rows, dirty=name == "dirty")
            found[name] = {"megabytes": round(Path(path).stat().st_size / 1e6, 1)}
            for reader in READERS:
                seconds = [in_own_process(read, {}, path=path, reader=reader) for _ in range(repeats)]
                found[name][reader] = {
                    key: spread([one[key] for one in seconds]) for key in ("wall_s", "cpu_s")
                }
                print(
                    f"   {name:6} {reader:14} CPU {found[name][reader]['cpu_s']['median']:6.2f} s", flush=True
                )
    cpu = {reader: found["clean"][reader]["cpu_s"]["median"] for reader in READERS}
    ratios = {other: round(cpu["partita"] / cpu[other], 2) for other in ("pyarrow", "polars")}
    return {
        "repeats": repeats,
        "n_rows": n_rows,
        "summary": {**found, "ratios": ratios},
        "bars": {
            f"reading takes at most {MOST_RATIO:g} times the CPU time of {other}": ratio <= MOST_RATIO
            for other, ratio in ratios.items()
        },
    }


# ---- in a process of its own -----------------------------------------------------------------------------------


def write_table(path: str, n_rows: int, dirty: bool) -> dict:
    """Write the table with polars, whose formatting is fast."""
    import numpy as np
    import polars as pl

    rng = np.random.default_rng(0)
    columns = {f"size{j}": rng.normal(10.0, 3.0, n_rows).round(4) for j in range(10)}
    columns |= {f"visits{j}": rng.poisson(20, n_rows) for j in range(4)}
    columns |= {
        f"plan{j}": np.array(["basic", "plus", "family", "none"])[rng.integers(4, size=n_rows)]
        for j in range(4)
    }
    frame = pl.DataFrame(columns | {"flag": rng.integers(2, size=n_rows)})
    age = pl.Series("age", rng.integers(18, 90, n_rows)).cast(pl.String)
    frame = frame.with_columns(
        pl.when(pl.Series(rng.random(n_rows) < 0.1)).then(pl.lit("NA")).otherwise(age).alias("age")
    )
    if dirty:
        days = pl.Series(np.datetime64("2015-01-01") + rng.integers(3000, size=n_rows))
        frame = frame.with_columns(
            ("$" + pl.col("size0").cast(pl.String)).alias("size0"),
            (pl.col("size1").cast(pl.String) + "%").alias("size1"),
            pl.col("size2").cast(pl.String).str.replace(".", ",", literal=True).alias("size2"),
            days.dt.strftime("%d/%m/%Y").alias("size3"),
            pl.when(pl.col("visits0") == 20)
            .then(pl.lit("-"))
            .otherwise(pl.col("visits0").cast(pl.String))
            .alias("visits0"),
        )
    frame.write_csv(path)
    return {}


def read(path: str, reader: str) -> dict:
    """Read the file once, after the libraries are imported."""
    import polars
    import pyarrow.csv

    from partita.table import read_file, read_table

    def once(file: str) -> None:
        if reader == "polars":
            polars.read_csv(file, infer_schema_length=None)
        elif reader == "pyarrow":
            pyarrow.csv.read_csv(file)
        else:
            columns = read_file(file).columns
            if reader == "partita_typed":
                read_table(columns)

    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder) / "small.csv"
        with open(path, encoding="utf-8") as file:
            small.write_text("".join(next(file) for _ in range(100)), encoding="utf-8")
        once(str(small))
    with stopwatch() as seconds:
        once(path)
    return seconds
