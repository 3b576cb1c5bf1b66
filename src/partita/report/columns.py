"""The box on the data before the answer: kinds of the columns, missing cells, and what is unusual about them."""

from __future__ import annotations

from collections import Counter
from typing import Any

from partita.report.markup import fold, note, table
from partita.table.account import ColumnAccount, TableAccount, most_frequent_words
from partita.table.quality import SUSPECTED_CODE
from partita.wording import count, percent, safe

MAX_COLUMNS, MAX_ODD = 100, 6
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


def data_box(model: Any) -> str:
    """The data in a few sentences, what is unusual, and how each column was read in a fold-out."""
    account = getattr(getattr(model, "schema_", None), "account", None)
    if account is None or getattr(model, "_describes_members", False):
        return ""
    columns = list(account.columns)
    odd = [column for column in columns if column.remarks or column.missing_as]
    odd.sort(key=lambda column: SUSPECTED_CODE not in column.remarks)  # these make groups of their own
    items = "".join(f"<li>{_oddity(column)}</li>" for column in odd[:MAX_ODD])
    more = (
        f"<li>{count(len(odd) - MAX_ODD, 'more column')} with remarks, in the list below</li>"
        if len(odd) > MAX_ODD
        else ""
    )
    found = f"<ul>{items}{more}</ul>" if odd else ""
    words = f"<p><strong>The data.</strong> {_sentences(account)}</p>{found}"
    rest = fold("How each column was read", *_table(columns))
    return f'<div class="data" role="region" aria-label="The data">{words}{rest}</div>'


def _sentences(account: TableAccount) -> str:
    """Rows, kinds of columns, missing cells and rows that repeat others."""
    columns = [column for column in account.columns if column.decided != "set aside"]
    kinds = Counter(column.kind for column in columns)
    listed = ", ".join(f"{n} {kind}" for kind, n in kinds.most_common())
    aside = len(account.columns) - len(columns)
    text = f"{count(account.n_rows, 'row')} and {count(len(columns), 'column')} ({listed})"
    text += f"; {count(aside, 'column is', 'columns are')} set aside." if aside else "."
    missing = sum(column.n_missing for column in columns)
    if missing:
        share = percent(missing / max(account.n_rows * len(columns), 1))
        among = sum(column.n_missing > 0 for column in columns)
        text += f" {count(missing, 'cell is', 'cells are')} missing ({share}), in {count(among, 'column')}."
    else:
        text += " No cell is missing."
    constant = [column.column for column in columns if column.n_distinct == 1]
    if constant:
        text += f" {count(len(constant), 'column is', 'columns are')} constant."
    if account.n_duplicate_rows:
        text += f" {count(account.n_duplicate_rows, 'row repeats', 'rows repeat')} an earlier one."
    elif account.n_duplicate_rows == 0:
        text += " No row repeats another."
    if 0 < account.n_sampled < account.n_rows:
        text += f" Repeats and distinct values are those of {account.n_sampled:,} rows."
    return text


def _oddity(column: ColumnAccount) -> str:
    """What is unusual about a column, and how to change the reading."""
    told = [column.remarks] if column.remarks else []
    told += [f"read as missing: {column.missing_as}"] if column.missing_as else []
    useful = column.change and column.remarks not in ("", "constant")
    change = f'<br><span class="note">to change this: {safe(column.change, 120)}</span>' if useful else ""
    return f"<em>{safe(column.column, 40)}</em>: {safe('; '.join(told), 200)}{change}"


def _table(columns: list[ColumnAccount]) -> list[str]:
    """The account of the columns; columns with remarks come first if there are too many."""
    if len(columns) > MAX_COLUMNS:
        columns = sorted(columns, key=lambda column: not column.remarks)
    more = len(columns) - MAX_COLUMNS
    return [
        table(
            HEAD,
            [_row(column) for column in columns[:MAX_COLUMNS]],
            numeric=NUMERIC,
            optional=OPTIONAL,
            kind="sort reading",
            tall=True,
        ),
        note(f"{more} more columns are not shown; columns.csv has all of them.") if more > 0 else "",
    ]


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
