"""The section on how the table was read: kinds of the columns, how they were decided, and what is unusual."""

from __future__ import annotations

from typing import Any

from partita.report.markup import note, section, table
from partita.table.account import ColumnAccount, most_frequent_words
from partita.wording import safe

MAX_COLUMNS = 100
HEAD = (
    "column",
    "kind",
    "missing",
    "distinct",
    "most frequent",
    "skewness",
    "remarks, and how to change the reading",
)
NUMERIC = (2, 3, 5)
OPTIONAL = (3, 4, 5)


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
        table(
            HEAD,
            [_row(column) for column in columns[:MAX_COLUMNS]],
            numeric=NUMERIC,
            optional=OPTIONAL,
            kind="sort reading",
            tall=True,
        ),
        note(f"{more} more columns are not shown; columns.csv has all of them.") if more > 0 else "",
    )


def _row(column: ColumnAccount) -> str:
    missing = f"{column.n_missing:,}"
    if column.missing_as:
        missing += f'<br><span class="note">{safe(column.missing_as, 60)}</span>'
    distinct = "" if column.n_distinct is None else f"{column.n_distinct:,}"
    skewness = "" if column.skewness is None else f"{column.skewness:.2f}"
    kind = f'{safe(column.kind)}<br><span class="note">{safe(column.decided, 60)}</span>'
    remarks = [safe(column.remarks, 200)] if column.remarks else []
    remarks.append(f'<span class="note">{safe(column.change, 120)}</span>')
    frequent = safe(most_frequent_words(column), 60)
    cells = [safe(column.column, 60), kind, missing, distinct, frequent, skewness, "<br>".join(remarks)]
    row = []
    for position, text in enumerate(cells):
        classes = " ".join([*["n"] * (position in NUMERIC), *["o"] * (position in OPTIONAL)])
        row.append(f'<td class="{classes}">{text}</td>' if classes else f"<td>{text}</td>")
    return f"<tr>{''.join(row)}</tr>"
