"""The section on how the table was read: kinds of the columns, how they were decided, and what is unusual."""

from __future__ import annotations

from typing import Any

from partita.report.markup import note, section, table
from partita.summaries.formatting import safe
from partita.table.account import ColumnAccount, most_frequent_words

MAX_COLUMNS = 100
HEAD = (
    "column",
    "kind",
    "decided by",
    "missing",
    "distinct",
    "most frequent",
    "skewness",
    "remarks",
    "to change",
)


def column_section(model: Any) -> str:
    """The account of the columns; columns with remarks come first if there are too many."""
    account = getattr(getattr(model, "schema_", None), "account", None)
    if account is None or type(model).__module__.startswith("partita.consensus"):
        return ""
    columns = list(account.columns)
    if len(columns) > MAX_COLUMNS:
        columns.sort(key=lambda column: not column.remarks)
    more = len(columns) - MAX_COLUMNS
    return section(
        "How the table was read",
        f"<p>{safe(account.sentence())}</p>",
        table(HEAD, [_row(column) for column in columns[:MAX_COLUMNS]], numeric=(3, 4, 6), tall=True),
        note(f"{more} more columns are not shown; columns.csv has all of them.") if more > 0 else "",
    )


def _row(column: ColumnAccount) -> str:
    missing = str(column.n_missing) + (f" ({column.missing_as})" if column.missing_as else "")
    distinct = "" if column.n_distinct is None else f"{column.n_distinct:,}"
    skewness = "" if column.skewness is None else f"{column.skewness:.2f}"
    texts = [
        column.column,
        column.kind,
        column.decided,
        missing,
        distinct,
        most_frequent_words(column),
        skewness,
    ]
    numeric = (3, 4, 6)
    cells = [
        f'<td class="n">{safe(text, 60)}</td>' if position in numeric else f"<td>{safe(text, 60)}</td>"
        for position, text in enumerate(texts)
    ]
    cells += [f"<td>{safe(column.remarks, 200)}</td>", f"<td>{safe(column.change, 120)}</td>"]
    return f"<tr>{''.join(cells)}</tr>"
