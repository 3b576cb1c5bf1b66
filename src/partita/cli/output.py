"""What a command prints and writes: sentences or JSON on standard output, tables of columns in files."""

from __future__ import annotations

import csv
import json
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partita.cli.advice import in_options
from partita.files import write_atomically
from partita.table import FileError
from partita.table.arrow_files import PARQUET, library
from partita.table.cells import is_number

if TYPE_CHECKING:
    from partita.estimator import EarlyEnd

FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")


class Outcome(NamedTuple):
    """The result of a command."""

    words: str
    figures: dict[str, Any]
    files: dict[str, str] = {}  # path -> what it holds
    notes: list[str] = []
    interrupted: bool = False
    account: str = ""  # how each column was read
    table: str = ""  # lines that follow the words on a terminal
    stopped: EarlyEnd | None = None  # why the fit ended early
    words_aside: bool = False  # whether standard output holds a table, so that the words go to standard error


def numbered(labels: Any) -> NDArray[Any]:
    """Labels as people read them: groups from 1; -1 stays, for rows in no group and missing labels.

    Examples
    --------
    >>> numbered([0, 2, -1])
    array([ 1,  3, -1])
    """
    found = np.asarray(labels)
    return np.where(found >= 0, found + 1, found)


def clustering_sentences(context: Any) -> str:
    """Number of groups, uncertain objects and diagnostics of the chains, in one to three sentences.

    Parameters
    ----------
    context : ReportContext
        From :func:`partita.summaries.context.build_context`.
    """
    from partita.summaries.counts import number_in_words
    from partita.wording import count

    model = context.model
    if context.level is not None:
        answer = count(context.given.n_clusters_, "group")
        words = (
            f"{count(context.level, 'group')}, as asked (the answer has {answer}){_uncertain_words(context)}."
        )
        return words + _agreement_sentence(context)
    sentence = getattr(model, "sentence_", None)
    if sentence is not None:
        return sentence + _agreement_sentence(context)
    posterior = getattr(model, "n_clusters_posterior_", None)
    words = count(model.n_clusters_, "group")
    if posterior and getattr(model, "n_clusters", None) is None:
        words += f", {number_in_words(model)}"
    words += _uncertain_words(context)
    diagnosis = getattr(getattr(model, "diagnostics_", None), "sentence", "")
    return f"{words}. {diagnosis}".strip() + _agreement_sentence(context)


def _uncertain_words(context: Any) -> str:
    from partita.wording import count

    uncertain = n_uncertain(context)
    if uncertain is None:
        return ""
    of_all = count(context.clusters.n_rows, context.noun)
    return f"; {uncertain:,} of {of_all} {'is' if uncertain == 1 else 'are'} uncertain"


def _agreement_sentence(context: Any) -> str:
    if context.agreement is None:
        return ""
    return f" The adjusted Rand index with the known classes is {context.agreement.adjusted_rand:.2f}."


def n_uncertain(context: Any) -> int | None:
    """Number of uncertain objects; None if not all objects were examined."""
    found = context.clusters.uncertainty
    return int(found.uncertain.sum()) if found is not None and found.complete else None


def clustering_figures(context: Any) -> dict[str, Any]:
    """The numbers of a clustering, for programs.

    Parameters
    ----------
    context : ReportContext
        From :func:`partita.summaries.context.build_context`.
    """
    model, labels = context.model, np.asarray(context.model.labels_)
    figures: dict[str, Any] = {
        "method": type(context.given).__name__,
        "n_objects": len(labels),
        "n_clusters": int(model.n_clusters_),
        "sizes": np.bincount(labels[labels >= 0]).tolist(),
        "n_outside": int((labels < 0).sum()),
        "n_uncertain": n_uncertain(context),
    }
    posterior = getattr(model, "n_clusters_posterior_", None)
    if isinstance(posterior, dict):
        figures["n_clusters_posterior"] = {str(K): round(float(p), 6) for K, p in posterior.items()}
    if context.agreement is not None:
        figures["adjusted_rand"] = context.agreement.adjusted_rand
    figures["groups"] = [
        {"group": group.number, "size": group.size, "name": group.name, "sentence": group.sentence}
        for group in context.clusters.in_words().groups
    ]
    if context.level is not None:
        figures["n_clusters_of_answer"] = int(context.given.n_clusters_)
    figures["alternatives"] = alternatives_figures(context.alternatives)
    return figures


def clustering_lines(context: Any) -> str:
    """The groups in words and the table of alternatives, as lines of text."""
    from partita.summaries.grains import alternatives_lines

    words = context.clusters.in_words(context.noun)
    groups = words.lines() if len(words.groups) > 1 else []
    return "\n".join([*groups, *alternatives_lines(context.alternatives)])


def alternatives_figures(rows: Sequence[Any]) -> list[dict[str, Any]]:
    """The table of alternatives, for programs."""
    return [
        {
            "name": row.name,
            "n_clusters": row.n_clusters,
            "support": round(row.support, 6),
            "sizes": row.sizes,
            "splits": {str(k + 1): [part + 1 for part in parts] for k, parts in row.splits.items()},
            "agreement": None if row.agreement is None else round(row.agreement, 6),
        }
        for row in rows
    ]


def write_columns(path: Path, columns: dict[str, Any], *, escape_formulas: bool = False) -> None:
    """Columns of equal length as CSV, TSV, Parquet, Arrow or npy, by the ending; replaced as a whole.

    With ``escape_formulas`` text in CSV and TSV that a spreadsheet would run as a formula begins with an apostrophe.
    """
    ending = path.suffix.lower()
    path.parent.mkdir(parents=True, exist_ok=True)
    with write_atomically(path) as part:
        if ending in (".csv", ".tsv"):
            with open(part, "w", newline="", encoding="utf-8") as file:
                rows = csv.writer(file, delimiter="," if ending == ".csv" else "\t", lineterminator="\n")
                shown = without_formula if escape_formulas else str
                rows.writerow(map(shown, columns))
                cells = (map(shown, as_texts(values)) for values in columns.values())
                rows.writerows(zip(*cells, strict=True))
        elif ending in (".parquet", ".pq", ".feather", ".arrow"):
            _write_arrow(part, ending, columns)
        elif ending == ".npy":
            with open(part, "wb") as file:
                np.save(file, np.column_stack([np.asarray(values) for values in columns.values()]))
        else:
            raise FileError(f"{path}: write to .csv, .tsv, .parquet, .arrow or .npy")


def as_texts(values: Sequence[Any]) -> Iterable[str]:
    """The cells of a column as text: numbers with six digits, missing cells empty.

    Examples
    --------
    >>> list(as_texts(np.array([0.5, np.nan]))), list(as_texts(np.array([1, None], dtype=object)))
    (['0.5', ''], ['1', ''])
    """
    array = np.asarray(values)
    if array.dtype.kind == "f":
        return ("" if np.isnan(value) else f"{value:.6g}" for value in array)
    return ("" if value is None else str(value) for value in array.tolist())


def without_formula(cell: str) -> str:
    """Text that a spreadsheet shows as it is; numbers stay numbers.

    Examples
    --------
    >>> without_formula("=1+1"), without_formula("plain"), without_formula("-1.5")
    ("'=1+1", 'plain', '-1.5')
    """
    return f"'{cell}" if cell.startswith(FORMULA_SIGNS) and not is_number(cell) else cell


def visible(text: str) -> str:
    """Text for a terminal: control characters, which could clear the screen or rewrite lines, are spelled out.

    Examples
    --------
    >>> visible("two lines\\n\\tand \\x1b[2J")
    'two lines\\n\\tand \\\\x1b[2J'
    """
    return "".join(
        character
        if character in "\n\t" or unicodedata.category(character) not in ("Cc", "Cf")
        else character.encode("unicode_escape").decode()
        for character in text
    )


def _write_arrow(path: Path, ending: str, columns: dict[str, Any]) -> None:
    pyarrow = library(path.name)
    table = pyarrow.table({name: pyarrow.array(np.asarray(values)) for name, values in columns.items()})
    write_arrow_table(path, ending, table)


def write_arrow_table(path: Path, ending: str, table: Any) -> None:
    """Write an Arrow table as Parquet, or as Arrow IPC."""
    if ending in PARQUET:
        from pyarrow import parquet

        parquet.write_table(table, path)
    else:
        from pyarrow import feather

        feather.write_feather(table, path, compression="uncompressed")


def write_json(outcome: Outcome) -> str:
    """The outcome as one line of JSON."""
    return json.dumps(
        {
            **outcome.figures,
            "words": in_options(outcome.words),
            "notes": [in_options(note) for note in outcome.notes],
            "files": list(outcome.files),
            "interrupted": outcome.interrupted,
            "stopped_early": outcome.stopped is not None,
            "stopped_by": None if outcome.stopped is None else outcome.stopped.reason,
        },
        ensure_ascii=False,
    )
