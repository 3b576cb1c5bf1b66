"""What all commands that fit a model write into their folder, and what they tell beside the result."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from partita.cli.output import write_columns
from partita.cli.sources import InputTable
from partita.table import FileError, Note
from partita.table.notes import READING_CODES, list_names
from partita.wording import one_line

if TYPE_CHECKING:
    from partita.summaries.context import ReportContext

MODEL_FILE, SOURCE_FILE, REPORT_FILE = "model.npz", "source.json", "report.html"
LABELS_FILE, COLUMNS_FILE = "labels.csv", "columns.csv"
SHOWN_NOTES = (
    "missing",
    "not_converged",
    "bound_reached",
    "cut_short",
)  # besides warnings and notes on reading
FIRST_NOTES = ("suspected_code",)
TOLD_ELSEWHERE = ("kinds", "interrupted")  # in a line of their own
MIN_AGREEMENT = 0.1  # with the result: a clustering below it is named


class Destination(NamedTuple):
    """Where the results go: a folder, and the table with its groups; None is the default, or nothing."""

    out: str | Path | None
    output: str | None

    def folder(self, table: InputTable) -> Path:
        """The folder of the results, which is made."""
        name = f"{table.path.name.split('.')[0]}-partita"
        folder = Path(self.out) if self.out else table.path.with_name(name)
        folder.mkdir(parents=True, exist_ok=True)
        return folder


def noting_replaced(table: InputTable, folder: Path, command: str) -> InputTable:
    """The table with a note if its results replace those of another command in the same folder."""
    try:
        before = json.loads((folder / SOURCE_FILE).read_text(encoding="utf-8"))["command"]
    except (OSError, ValueError, KeyError, TypeError):
        return table
    if before == command:
        return table
    message = (
        f"the results of `partita {one_line(before)}` in {folder} are replaced; -o writes to another folder"
    )
    return table._replace(notes=(*table.notes, Note("replaced", message, level="warning")))


def find_model(model: str | Path) -> Path:
    """The file of a saved model: the path itself, or that in a folder which a command wrote."""
    path = Path(model)
    if path.is_dir():
        path = path / MODEL_FILE
    if not path.exists():
        raise FileError(
            f"{model}: there is no model; give a folder that partita wrote, or a file written by save()"
        )
    return path


def named_rows(table: InputTable, noun: str, columns: dict[str, Any]) -> dict[str, Any]:
    """Columns about the rows after their names, which stand under the name of their own column."""
    own = table.id_column if table.id_column is not None and table.id_column not in columns else noun
    names = np.arange(table.n_rows) if table.names is None else table.names
    return {own: names, **columns}


def context_of(model: Any, X: Any, table: InputTable, grain: str | None = None) -> ReportContext:
    """The summaries of a fitted model."""
    from partita.summaries.context import build_context

    return build_context(model, X, truth=table.truth, names=table.names, at=grain)


def write_page(context: ReportContext, path: Path, title: str | None) -> dict[str, str]:
    """Write the report; returns its path with what it holds."""
    from partita.report.page import write_context

    write_context(context, path, title)
    return {str(path): "the report: open it in a browser"}


def write_report(model: Any, X: Any, table: InputTable, folder: Path) -> dict[str, str]:
    """Write the report of a model without further summaries on the terminal."""
    return write_page(context_of(model, X, table), folder / REPORT_FILE, table.path.name)


def save_model(
    model: Any,
    folder: Path,
    table: InputTable,
    command: str,
    interrupted: bool,
    grain: str | None = None,
) -> dict[str, str]:
    """Write the model, and how its table is read again."""
    model.save(folder / MODEL_FILE)
    source = {
        "command": command,
        "file": None if table.content is not None else _relative(table.path, folder),
        "columns": list(table.columns),
        "id": table.id_column,
        "truth": table.truth_column,
        "encoding": table.encoding,
        "na": list(table.na),
        "skip": list(table.skip),
        "separator": table.separator,
        "key": table.key,
        "format": table.format,
        "interrupted": interrupted,
        "grain": grain,
    }
    (folder / SOURCE_FILE).write_text(json.dumps(source, indent=1) + "\n", encoding="utf-8")
    return {str(folder / MODEL_FILE): "the model; partita.load() reads it"}


def _relative(path: Path, folder: Path) -> str:
    """The path of a file as seen from a folder, so that both can be moved together and no home is named."""
    try:
        return Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()
    except ValueError:  # another drive
        return path.name


def notes_of(model: Any, table: InputTable) -> list[str]:
    """All notes, each once: what most often makes false groups, warnings, how the table was read, then the others."""
    own = [note for note in model.fit_report_ if note.code not in TOLD_ELSEWHERE]
    ranks: dict[str, int] = {}
    for note in _joined([*table.notes, *own]):
        about_reading = note.code in READING_CODES or note.code in SHOWN_NOTES
        rank = 0 if note.code in FIRST_NOTES else 1 if note.level == "warning" else 2 if about_reading else 3
        ranks[note.message] = min(rank, ranks.get(note.message, rank))
    return sorted(ranks, key=ranks.__getitem__)


def _joined(notes: list[Any]) -> list[Any]:
    """The notes, with those of the file and of its columns on words that mean missing as one."""
    words = [note for note in notes if note.code == "missing_words"]
    if len(words) < 2:
        return notes
    begin = words[0].message.partition(": ")[0]
    listed = ", ".join(dict.fromkeys(note.message.partition(": ")[2] for note in words))
    joined = replace(words[0], message=f"{begin}: {listed}")
    return [joined, *(note for note in notes if note.code != "missing_words")]


def member_notes(context: ReportContext) -> list[str]:
    """The members of an ensemble that have no part in the result."""
    members = context.members
    if members is None or members.agreement is None or len(members.names) < 3:
        return []
    junk = (members.weights == 0) if members.learned else np.zeros(len(members.weights), bool)
    junk |= members.agreement < MIN_AGREEMENT
    if not junk.any() or junk.all() or context.model.n_clusters_ == 1:
        return []
    told = [members.names[m] for m in np.flatnonzero(junk)]
    indices = [f"{members.agreement[m]:.2f}" for m in np.flatnonzero(junk)]
    listed = list_names(told, indices)
    return [
        "clusterings that hardly agree with the result (adjusted Rand index with it): "
        f"{listed}; leave them out with --ignore to see whether the result changes"
    ]


def write_account(
    model: Any, folder: Path, table: InputTable, more: dict[str, Any] | None = None
) -> dict[str, str]:
    """Write how each column was read; `more` are further columns about the same columns."""
    account = getattr(getattr(model, "schema_", None), "account", None)
    if account is None:
        return {}
    columns = account.rows()
    columns["change"] = [re.sub(r"^.*?\}, (?=--)", "", text) for text in columns["change"]]
    write_columns(
        folder / COLUMNS_FILE,
        {"column": columns.pop("column"), **(more or {}), **columns},
        escape_formulas=table.escape_formulas,
    )
    return {str(folder / COLUMNS_FILE): "how each column was read"}
