"""What a command leaves behind: words or JSON on standard output, files in a folder."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from partita.files import write_atomically
from partita.table import FileError

__all__ = ["Outcome", "describe", "in_words", "n_uncertain", "write_columns", "write_json"]

UNCERTAIN = 0.8


class Outcome(NamedTuple):
    """What a command found."""

    words: str
    figures: dict[str, Any]
    files: dict[str, str] = {}  # path -> what it holds
    notes: list[str] = []
    interrupted: bool = False


def in_words(model: Any, n_objects: int, noun: str = "row", X: Any = None) -> str:
    """The answer in a sentence or two."""
    from partita.report.sampled import counts_in_words
    from partita.summaries.words import count

    summary = getattr(model, "summary_", None)
    if isinstance(summary, str):
        return summary
    known = getattr(model, "n_clusters_posterior_", None)
    chances = f", {counts_in_words(known)}" if known and getattr(model, "n_clusters", None) is None else ""
    unsure = n_uncertain(model, X)
    sure = (
        ""
        if unsure is None
        else f"; {unsure:,} of {count(n_objects, noun)} {'is' if unsure == 1 else 'are'} uncertain"
    )
    words = f"{count(model.n_clusters_, 'group')}{chances}{sure}."
    diagnosis = getattr(getattr(model, "diagnostics_", None), "sentence", "")
    return f"{words} {diagnosis}".strip()


def n_uncertain(model: Any, X: Any = None) -> int | None:
    """How many objects are uncertain, by the rule of the report; None where that is not known of all of them."""
    from partita.summaries import doubts, pair_map

    found = doubts(model, pair_map(model, X), UNCERTAIN)
    return int(found.uncertain.sum()) if found is not None and found.complete else None


def describe(model: Any, X: Any = None) -> dict[str, Any]:
    """The figures of a clustering, for machines."""
    labels = np.asarray(model.labels_)
    figures = {
        "method": type(model).__name__,
        "n_objects": len(labels),
        "n_clusters": int(model.n_clusters_),
        "sizes": np.bincount(labels[labels >= 0]).tolist(),
        "n_outside": int((labels < 0).sum()),
        "n_uncertain": n_uncertain(model, X),
    }
    known = getattr(model, "n_clusters_posterior_", None)
    if isinstance(known, dict):
        figures["n_clusters_posterior"] = {str(K): round(float(p), 6) for K, p in known.items()}
    return figures


def write_columns(path: Path, columns: dict[str, Any]) -> None:
    """Columns of equal length as CSV, TSV, Parquet, Arrow or npy, by the ending; replaced as a whole."""
    ending = path.suffix.lower()
    path.parent.mkdir(parents=True, exist_ok=True)
    with write_atomically(path) as part:
        if ending in (".csv", ".tsv"):
            with open(part, "w", newline="", encoding="utf-8") as file:
                rows = csv.writer(file, delimiter="," if ending == ".csv" else "\t", lineterminator="\n")
                rows.writerow(columns)
                rows.writerows(zip(*(_cells(values) for values in columns.values()), strict=True))
        elif ending in (".parquet", ".pq", ".feather", ".arrow"):
            _write_arrow(part, ending, columns)
        elif ending == ".npy":
            with open(part, "wb") as file:
                np.save(file, np.column_stack([np.asarray(values) for values in columns.values()]))
        else:
            raise FileError(f"{path}: write to .csv, .tsv, .parquet, .arrow or .npy")


def _cells(values: Sequence[Any]) -> Iterable[Any]:
    array = np.asarray(values)
    if array.dtype.kind == "f":
        return ("" if np.isnan(value) else f"{value:.6g}" for value in array)
    return array.tolist()


def _write_arrow(path: Path, ending: str, columns: dict[str, Any]) -> None:
    try:
        import pyarrow
        from pyarrow import feather, parquet
    except ImportError:
        raise FileError(f'{path.name}: pyarrow writes this format: pip install "partita[io]"') from None
    table = pyarrow.table({name: pyarrow.array(np.asarray(values)) for name, values in columns.items()})
    if ending in (".parquet", ".pq"):
        parquet.write_table(table, path)
    else:
        feather.write_feather(table, path, compression="uncompressed")


def write_json(outcome: Outcome) -> str:
    """Everything that a program may want to know, in one line of JSON."""
    return json.dumps(
        {
            **outcome.figures,
            "words": outcome.words,
            "notes": outcome.notes,
            "files": list(outcome.files),
            "interrupted": outcome.interrupted,
        },
        ensure_ascii=False,
    )
