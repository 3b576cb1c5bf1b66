"""``partita predict``: the groups of new rows by a saved model."""

from __future__ import annotations

import inspect
import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partita.cli.appended import check_output, write_appended
from partita.cli.clustering import check_grain
from partita.cli.output import Outcome, numbered, write_columns
from partita.cli.progress import shows_progress
from partita.cli.results import SOURCE_FILE, find_model, named_rows
from partita.cli.sources import InputTable, open_table
from partita.cli.standard_input import STANDARD
from partita.progress import tell_stage
from partita.table import FileError
from partita.table.notes import list_names
from partita.table.reading import REORDERED
from partita.wording import count

UNCERTAIN_BELOW = 0.8  # confidence, as in the reports


class Assigned(NamedTuple):
    """Groups of new rows: one column of labels per view, with the confidence where the model has one."""

    labels: NDArray[np.int64]  # [row, view]; one view for most models
    views: NDArray[np.int64]  # numbers of the views, from 1
    confidence: NDArray[np.float64] | None
    n_groups: int | None  # of the model, for one view
    notes: list[str]


@shows_progress
def predict(
    model: str | Path,
    path: str | Path,
    *,
    grain: str | None = None,
    out: str | Path | None = None,
    output: str | None = None,
    jobs: int | None = None,
    verbose: bool | None = None,
    **reading: Any,
) -> Outcome:
    """Find the groups of new rows.

    The columns of the fit are found by their names, in any order; further columns are not used.

    Parameters
    ----------
    model : str or path
        A folder that a command wrote, or a file that ``save`` wrote.
    path : str or path
        The new rows.
    grain : str, default=None
        The level of the grain: "coarse", "medium", "fine", "agreed" or a number of groups. None means that of the
        command that wrote the model.
    out : path, default=None
        The file of groups to write; None means ``<name of the file>-groups.csv``.
    output : str, default=None
        Where to write the new rows with their groups, see :func:`partita.cli.appended.write_appended`.
    jobs : int, default=None
        Number of threads.
    verbose : bool, default=None
        Whether to show the progress; None means: in a terminal.
    **reading
        Options of :func:`partita.cli.sources.open_table`.

    Returns
    -------
    Outcome
    """
    check_grain(grain)
    check_output(output)
    place = find_model(model)
    source = place.with_name(SOURCE_FILE)
    recorded = json.loads(source.read_text(encoding="utf-8")) if source.is_file() else {}
    tell_stage(f"reading {place}")
    from partita import load

    fitted = load(place)
    if not hasattr(fitted, "predict"):
        raise ValueError(
            f"{place}: {type(fitted).__name__} has no rule for new rows: fit the old and the new rows together"
        )
    table, X = _open_new(fitted, path, recorded, reading)
    if jobs is not None and "n_jobs" in fitted.get_params():
        fitted.set_params(n_jobs=jobs)
    grain = grain or recorded.get("grain")
    tell_stage("predicting")
    found = _assign(fitted, X, grain)
    groups = _columns(found)
    name = table.path.name.split(".")[0]
    target = Path(out) if out is not None else table.path.with_name(f"{name}-groups.csv")
    write_columns(target, named_rows(table, "row", groups), escape_formulas=table.escape_formulas)
    appended = write_appended(output, table, groups, table.path.with_name(f"{name}-table"))
    return Outcome(
        _words(fitted, found, grain),
        _figures(fitted, found),
        {str(target): f"the {' and the '.join(_contents(found))} of each row", **appended.files},
        [*(note.message for note in table.notes), *found.notes, *appended.notes],
        words_aside=output == STANDARD,
    )


# ---- new rows ------------------------------------------------------------------------------------------------------


def _open_new(
    fitted: Any, path: str | Path, recorded: dict[str, Any], reading: dict[str, Any]
) -> tuple[InputTable, Any]:
    """The new rows, and what the model reads of them: the columns of the fit, found by name."""
    holds_labels = type(fitted).__module__.startswith("partita.consensus") and hasattr(
        fitted, "member_weights_"
    )
    table = open_table(path, labels=holds_labels, mark_codes=True, **_with_names(path, recorded, reading))
    schema = fitted.schema_
    if schema is None:
        raise ValueError(
            f"this {type(fitted).__name__} was fitted to similarities, not to a table: it reads no file"
        )
    # labels that were text at the fit stay as the file has them, even where all new ones are integers
    integers = {column.name for column in schema.columns if column.family != "str"} if holds_labels else set()
    have = dict(table.all_columns) | {k: v for k, v in table.columns.items() if k in integers}
    names = [column.name for column in schema.columns]
    if not schema.named and not set(names) <= set(have):  # fitted to an array: columns without names
        return table, _by_position(table, len(names))
    needed = [column.name for column in schema.columns if column.kind != "ignore"]
    _check_columns([name for name in needed if name not in have], list(have), table.path)
    nothing = np.full(table.n_rows, None, dtype=object)
    ordered = table._replace(columns={name: have.get(name, nothing) for name in names})
    table = table._replace(notes=(*table.notes, *_column_notes(needed, table, recorded)))
    if recorded.get("command") == "blocks":
        return table, ordered.matrix()
    return table, ordered.columns if schema.named else ordered.matrix()


def _with_names(path: str | Path, recorded: dict[str, Any], reading: dict[str, Any]) -> dict[str, Any]:
    """The options of reading; rows have the names of the same column as in the fit, if it is there."""
    own = recorded.get("id")
    if reading.get("id_column") is not None or own is None:
        return reading
    return reading | {"id_column": own, "id_is_optional": True}


def _by_position(table: InputTable, n_columns: int) -> Any:
    if len(table.columns) != n_columns:
        raise FileError(
            f"{table.path}: the model was fitted to {count(n_columns, 'column')} without names, and the file has "
            f"{len(table.columns)}: give a file with these columns in the same order"
        )
    return table.matrix()


def _check_columns(missing: Sequence[str], have: Sequence[str], path: Path) -> None:
    if not missing:
        return
    alike = {name.strip().casefold(): name for name in have}
    near = [
        f"{alike[one.strip().casefold()]!r} for {one!r}" for one in missing if one.strip().casefold() in alike
    ]
    hint = f" (the file has {', '.join(near)}: rename it)" if near else ""
    raise FileError(
        f"{path}: the model needs columns that the file does not have: {list_names(missing, limit=20)}{hint}; the file "
        f"has {list_names(have, limit=20)}"
    )


def _column_notes(needed: Sequence[str], table: InputTable, recorded: dict[str, Any]) -> list[Any]:
    """Notes on columns in another order, and on columns that the model does not know."""
    from partita.table import Note

    notes, have = [], list(table.all_columns)
    there = [name for name in have if name in set(needed)]
    if there != list(needed):
        notes.append(Note("reordered", REORDERED))
    known = {*needed, *recorded.get("columns", ()), table.id_column, recorded.get("truth")}
    more = [name for name in have if name not in known]
    if more:
        notes.append(Note("unused", f"columns that the model does not use: {list_names(more)}", tuple(more)))
    return notes


# ---- groups --------------------------------------------------------------------------------------------------------


def _assign(fitted: Any, X: Any, grain: str | None) -> Assigned:
    at: dict[str, Any] = {}
    if grain is not None:
        if "at" not in inspect.signature(fitted.predict).parameters:
            raise ValueError(f"this {type(fitted).__name__} has no grain: leave --grain out")
        at = {"at": int(grain) if grain.isdigit() else grain}
    from partita.estimator import DataWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", DataWarning)
        labels = np.asarray(fitted.predict(X, **at))
        proba = None
        if labels.ndim == 1 and hasattr(fitted, "predict_proba"):
            proba = np.asarray(fitted.predict_proba(X, **at))
    notes = list(dict.fromkeys(str(one.message) for one in caught))
    if labels.ndim == 2:
        views = getattr(fitted, "counted_views_", np.arange(labels.shape[1]))
        return Assigned(labels[:, views], views + 1, None, None, notes)
    confidence = None
    if proba is not None:
        own = proba[np.arange(len(labels)), np.maximum(labels, 0)]
        confidence = np.where(labels >= 0, own, 1.0 - proba.sum(axis=1))
    K = int(getattr(fitted, "n_clusters_", labels.max(initial=-1) + 1)) if proba is None else proba.shape[1]
    return Assigned(labels[:, None], np.ones(1, int), confidence, K, notes)


def _columns(found: Assigned) -> dict[str, Any]:
    if found.n_groups is None:
        columns = zip(found.views, found.labels.T, strict=True)
        return {f"view_{number}": numbered(labels) for number, labels in columns}
    groups: dict[str, Any] = {"group": numbered(found.labels[:, 0])}
    return groups if found.confidence is None else groups | {"confidence": found.confidence}


def _contents(found: Assigned) -> list[str]:
    if found.n_groups is None:
        return ["group in each view"]
    return ["group"] if found.confidence is None else ["group", "confidence"]


def _figures(fitted: Any, found: Assigned) -> dict[str, Any]:
    figures: dict[str, Any] = {"method": type(fitted).__name__, "n_objects": len(found.labels)}
    if found.n_groups is None:
        sizes = [_sizes(labels, int(labels.max(initial=-1)) + 1) for labels in found.labels.T]
        return figures | {
            "n_views": len(sizes),
            "views": [
                {"view": number, "sizes": one}
                for number, one in zip(found.views.tolist(), sizes, strict=True)
            ],
        }
    figures |= {"n_clusters": found.n_groups, "sizes": _sizes(found.labels[:, 0], found.n_groups)}
    figures["n_outside"] = int((found.labels < 0).sum())
    figures["n_uncertain"] = _n_uncertain(found)
    return figures


def _sizes(labels: NDArray[np.int64], n_groups: int) -> list[int]:
    return np.bincount(labels[labels >= 0], minlength=n_groups).tolist()


def _n_uncertain(found: Assigned) -> int | None:
    return None if found.confidence is None else int((found.confidence < UNCERTAIN_BELOW).sum())


def _words(fitted: Any, found: Assigned, grain: str | None) -> str:
    rows = count(len(found.labels), "row")
    if found.n_groups is None:
        return f"{rows} in the groups of {count(found.labels.shape[1], 'view')} of the model ({type(fitted).__name__})."
    sizes = _sizes(found.labels[:, 0], found.n_groups)
    listed = ", ".join(f"{size:,}" for size in sizes[:20]) + (", ..." if len(sizes) > 20 else "")
    scale = "" if grain is None else f" at the grain {grain}"
    words = f"{rows} in {count(found.n_groups, 'group')} of the model ({type(fitted).__name__}){scale}; sizes: {listed}"
    outside = int((found.labels < 0).sum())
    words += f"; {outside:,} in no group" if outside else ""
    uncertain = _n_uncertain(found)
    if uncertain is not None:
        words += f"; {uncertain:,} {'is' if uncertain == 1 else 'are'} uncertain (confidence below {UNCERTAIN_BELOW:g})"
    return words + "."
