"""The account of how a table was read: per column its kind, how it was decided, and what is unusual about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from partita.table.notes import Note, list_names


@dataclass(frozen=True)
class ColumnAccount:
    """How one column was read.

    Attributes
    ----------
    column, kind : str
        Its name, and the kind that would declare it.
    decided : str
        What decided the kind.
    n_missing : int
        The number of missing cells.
    missing_as : str
        Words and codes that were read as missing.
    n_distinct : int or None
        The number of distinct values, at most that of the sampled rows. None if it is not known.
    most_frequent : str
        The most frequent value.
    most_frequent_share : float or None
        Its share of the observed cells.
    skewness : float or None
        The skewness of a column of numbers.
    remarks : str
        What is unusual: constant, repeats another column, set aside, one value in most cells, a suspected missing
        code, ...
    change : str
        The option that would change how the column is read.
    repeats : str
        The column whose values it repeats.
    """

    column: str
    kind: str
    decided: str
    n_missing: int = 0
    missing_as: str = ""
    n_distinct: int | None = None
    most_frequent: str = ""
    most_frequent_share: float | None = None
    skewness: float | None = None
    remarks: str = ""
    change: str = ""
    repeats: str = ""


@dataclass(frozen=True)
class TableAccount:
    """How a table was read.

    Attributes
    ----------
    columns : tuple of ColumnAccount
        All columns, in order.
    n_rows : int
        The number of rows.
    n_duplicate_rows : int or None
        The number of rows that equal an earlier row; None if they were not compared.
    n_sampled : int
        The number of rows behind shares, distinct values, skewness and duplicates.
    """

    columns: tuple[ColumnAccount, ...]
    n_rows: int
    n_duplicate_rows: int | None = None
    n_sampled: int = 0

    def with_words(self, words: Mapping[str, Sequence[str]]) -> TableAccount:
        """Add the words that the reader of a file read as missing, by column."""
        columns = tuple(
            replace(column, missing_as=", ".join([*words[column.column], *filter(None, [column.missing_as])]))
            if column.column in words
            else column
            for column in self.columns
        )
        return replace(self, columns=columns)

    def repeats_note(self) -> Note | None:
        """Return the note on columns that repeat others; None if there are none."""
        repeated = [column for column in self.columns if column.repeats]
        if not repeated:
            return None
        names = [column.column for column in repeated]
        listed = list_names(names, [f"repeats {column.repeats!r}" for column in repeated])
        message = f"columns that repeat another one count twice: {listed}; declare them 'ignore' to use each value once"
        return Note("repeats", message, tuple(names))

    def rows(self) -> dict[str, list[Any]]:
        """Return the account as columns of a table, for files and reports."""
        names = [field.name for field in fields(ColumnAccount)]
        return {name: [getattr(column, name) for column in self.columns] for name in names}

    def sentence(self) -> str:
        """Say how many rows there are, and how many of them repeat another."""
        words = f"{self.n_rows:,} rows"
        if self.n_duplicate_rows:
            words += f", of which {self.n_duplicate_rows:,} repeat an earlier row"
        if 0 < self.n_sampled < self.n_rows:
            words += f"; shares, skewness and duplicates are those of {self.n_sampled:,} of them"
        return words + "."

    def describe(self, details: Sequence[str] | None = None) -> str:
        """Return the account as a text table."""
        head = ("column", "kind", "decided by", "missing", "distinct", "most frequent", "skewness", "details")
        lines = [head]
        for position, column in enumerate(self.columns):
            lines.append(
                (
                    shorten(column.column, 40),
                    column.kind,
                    column.decided,
                    str(column.n_missing) + (f" ({column.missing_as})" if column.missing_as else ""),
                    "" if column.n_distinct is None else f"{column.n_distinct:,}",
                    most_frequent_words(column),
                    "" if column.skewness is None else f"{column.skewness:.2f}",
                    "; ".join(
                        part
                        for part in ("" if details is None else details[position], column.remarks)
                        if part
                    ),
                )
            )
        return text_table(lines) + "\n" + self.sentence()

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary of plain Python objects."""
        return asdict(self)

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> TableAccount:
        """Restore from `to_dict`."""
        try:
            columns = tuple(ColumnAccount(**column) for column in saved["columns"])
            return cls(columns, saved["n_rows"], saved["n_duplicate_rows"], saved["n_sampled"])
        except (KeyError, TypeError) as problem:
            raise ValueError(
                f"damaged schema: its account cannot be read ({problem!r}); save it again"
            ) from None


def most_frequent_words(column: ColumnAccount) -> str:
    """Return the most frequent value and its share, in words."""
    if column.most_frequent_share is None or column.most_frequent_share < 0.005:
        return ""
    return f"{column.most_frequent} {column.most_frequent_share:.0%}"


def text_table(rows: Sequence[tuple[str, ...]]) -> str:
    """Return rows of text as aligned columns.

    Examples
    --------
    >>> print(text_table([("a", "kind"), ("long name", "real")]))
    a          kind
    long name  real
    """
    widths = [max(len(row[part]) for row in rows) for part in range(len(rows[0]) - 1)]
    return "\n".join(
        "  ".join([*(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)), row[-1]]).rstrip()
        for row in rows
    )


def shorten(text: str, limit: int) -> str:
    """Return a text of at most `limit` characters."""
    return text if len(text) <= limit else text[: limit - 3] + "..."
