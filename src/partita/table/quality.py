"""Say how each column was read: notes on what is unusual, and the account of the table."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

import numpy as np

from partita.table.account import ColumnAccount, TableAccount
from partita.table.cells import RawColumn
from partita.table.formats import find_units
from partita.table.notes import Findings, list_names
from partita.table.scales import answers_without_place
from partita.table.schema import ColumnSchema
from partita.table.statistics import count_duplicate_rows, duplicate_columns
from partita.table.suspicion import NO_EVIDENCE, CodeEvidence, codes_of_others, suspected_codes
from partita.table.tables import Column
from partita.wording import count

MIN_LUMP = 0.5  # a value in so many of the cells is a lump
MIN_IN_ORDER = 20  # dates in so few rows may be in order by chance
CHOICE_MARKS = (";", ",", "|")  # between the choices of a cell
MIN_CHOICES, MAX_CHOICES = 3, 30
MAX_ALONE = 0.1  # share of the choices that are in a single combination
MIN_SKEWNESS = 2.0  # skewness beyond this is named

SUSPECTED_CODE = "missing code?"  # how this remark begins

# finding -> remark in the account; {} is what the finding says
_REMARKS = {
    "constant": "constant",
    "ticks": "one value and empty cells",
    "strays": "unreadable texts {}",
    "suspected_code": f"{SUSPECTED_CODE} {{}}",
    "ambiguous_text": "{}",
    "text_numbers": "{}",
    "dates": "{}",
    "in_order": "never falls from row to row",
    "choices": "several choices in one cell: {}",
    "mixed_units": "several units: {}",
    "pairs": "two numbers in one cell: {}",
    "spellings": "the same word? {}",
    "identifier": "set aside: looks like an identifier",
    "identifier_modeled": "looks like an identifier",
    "postal_code": "set aside: looks like codes",
    "free_text": "set aside: names or remarks",
    "lone_minus_one": "-1 is the only negative value",
}


def note_reading(raw: RawColumn, n_codes: int, findings: Findings) -> None:
    """Note what was read in an unusual way."""
    if n_codes:
        findings.add("missing_code", raw.name, n_codes)
    if raw.words:
        findings.add("missing_words", raw.name, list_names(raw.words, limit=3))
    if raw.strays:
        findings.add("strays", raw.name, list_names(raw.strays, limit=3))
    if raw.format is None:
        texts = set(raw.observed()[:1000].tolist()) if raw.family == "str" else set()
        units = find_units(texts) - {""}
        if len(units) > 1:
            pairs = all(unit.startswith("/") for unit in units)
            findings.add(
                "pairs" if pairs else "mixed_units",
                raw.name,
                repr(min(texts)) if pairs else list_names(sorted(units)).replace("'", ""),
            )
        if choices := listed_choices(texts):
            findings.add("choices", raw.name, list_names(choices, limit=3))
        alike = spellings(texts)
        if alike:
            findings.add(
                "spellings", raw.name, "; ".join(" and ".join(map(repr, words)) for words in alike[:3])
            )
        return
    code = "dates" if raw.holds_dates else "text_numbers"
    findings.add("ambiguous_text" if raw.format.ambiguous else code, raw.name, raw.format.describe())
    if raw.holds_dates and raw.n_observed() >= MIN_IN_ORDER and raw.never_falls():
        findings.add("in_order", raw.name)


def listed_choices(texts: Collection[str]) -> list[str]:
    """Return the choices that texts seem to list, as answers with several ticks do; empty if they do not.

    Several texts consist of a few words or phrases that recur in other combinations.

    Examples
    --------
    >>> listed_choices(["Excel", "Excel, R", "R, SQL", "Excel, R, SQL", "SQL"])
    ['Excel', 'R', 'SQL']
    >>> listed_choices(["Berlin, Germany", "Paris, France", "Lyon, France"])
    []
    """
    for mark in CHOICE_MARKS:
        cells = [[part.strip() for part in text.split(mark)] for text in texts]
        times = Counter(part for parts in cells for part in set(parts))
        n_lists = sum(len(parts) > 1 for parts in cells)
        recurring = sum(n > 1 for n in times.values())
        if (
            MIN_CHOICES <= len(times) <= min(MAX_CHOICES, len(cells) - 1)
            and 2 * n_lists >= len(cells)
            and len(times) - recurring <= max(1, MAX_ALONE * len(times))  # such as "none"
            and any(len(parts) > 2 for parts in cells)
        ):
            return sorted(times)
    return []


def spellings(texts: Iterable[str]) -> list[list[str]]:
    """Return texts that differ only in upper and lower case or in spaces.

    Examples
    --------
    >>> spellings(["m", "f", "M", "free", "Free "])
    [['Free ', 'free'], ['M', 'm']]
    """
    by_word: dict[str, list[str]] = {}
    for text in texts:
        by_word.setdefault(" ".join(text.casefold().split()), []).append(text)
    return sorted(sorted(alike) for alike in by_word.values() if len(alike) > 1)


def note_suspected_codes(raw: RawColumn, active: np.ndarray | None, findings: Findings) -> CodeEvidence:
    """Note values that look like missing codes, and return the evidence for them."""
    if raw.family not in ("int", "float") or raw.labeled or raw.holds_dates:
        return NO_EVIDENCE
    evidence = raw.code_evidence(active)
    _add_suspected(raw.name, suspected_codes(evidence), findings)
    return evidence


def note_shared_codes(evidence: Mapping[str, CodeEvidence], findings: Findings) -> None:
    """Note the codes of several columns also where they are the largest or the smallest value of another one."""
    for name, codes in codes_of_others(evidence).items():
        _add_suspected(name, codes, findings)


def _add_suspected(name: str, found: Mapping[int, int], findings: Findings) -> None:
    if found:
        listed = ", ".join(f"{value} in {times} rows" for value, times in found.items())
        findings.add("suspected_code", name, listed)


def note_order(raw: RawColumn, schema: ColumnSchema, doubtful: bool, findings: Findings) -> None:
    """Note that a column is read as ordinal, or that it may be."""
    if doubtful:
        findings.add("one_scale", raw.name)
    elif schema.kind == "ordinal":
        levels = [f"{level:g}" if isinstance(level, float) else str(level) for level in schema.levels]
        shown = levels if len(levels) <= 5 else [*levels[:2], "...", levels[-1]]
        findings.add("ordered", raw.name, " < ".join(shown))
    elif schema.kind == "categorical" and raw.family == "str" and not raw.labeled:
        apart = answers_without_place([str(level) for level in schema.levels])
        if apart:
            findings.add("no_answers", raw.name, list_names(apart))


def decided_by(raw: RawColumn, kind: str, common: str | None, uniform: str | None, shared: bool) -> str:
    """Say what decided the kind of a column that is not declared."""
    if common is not None:
        return "the type of the array"
    if shared:
        return "all columns together" if uniform is not None else "the scale of several columns"
    if raw.labeled:
        return "its type, ordered categories" if kind == "ordinal" else "its type, categories"
    if raw.holds_dates:
        return "dates"
    if raw.format is not None:
        return "numbers in text"
    if raw.family == "float":
        return "integers" if raw.is_integral() else "numbers"
    if kind == "ordinal":
        return "words in their usual order"
    return {"bool": "its type, bool", "int": "integers", "str": "text"}[raw.family]


def column_account(
    raw: RawColumn, kind: str, decided: str | None, rows: slice, findings: Findings
) -> ColumnAccount:
    """Say how a column was read; `decided` is None if it is set aside."""
    found = findings.about(raw.name)
    statistics = raw.statistics(rows)
    if raw.format is not None and "most_frequent" in statistics:
        statistics["most_frequent"] = raw.format.write(float(statistics["most_frequent"]))
    remarks = [words.format(found[code]) for code, words in _REMARKS.items() if code in found]
    is_number = kind in ("real", "count", "date")
    if is_number and statistics.get("most_frequent_share", 0.0) >= MIN_LUMP and "constant" not in found:
        remarks.append(
            f"{statistics['most_frequent']} in {statistics['most_frequent_share']:.0%} of the cells"
        )
    if abs(statistics.get("skewness", 0.0)) > MIN_SKEWNESS and is_number:
        remarks.append("skewed")
    missing_as = list(raw.words)
    if "missing_code" in found:
        missing_as.append(f"a missing code in {count(int(found['missing_code'] or 0), 'cell')}")
    return ColumnAccount(
        raw.name,
        kind,
        "set aside" if decided is None else decided,
        raw.n_missing,
        ", ".join(missing_as),
        remarks="; ".join(remarks),
        change=_how_to_change(raw, kind, found, decided is None),
        **statistics,
    )


def _how_to_change(raw: RawColumn, kind: str, found: Mapping[str, int | str | None], is_aside: bool) -> str:
    """Say how the column would be read differently, in Python and on the command line."""
    if "suspected_code" in found:
        code = str(found["suspected_code"]).split()[0]
        return f"missing_codes={{{raw.name!r}: {code}}}, --na {shlex.quote(f'{raw.name}={code}')}"
    other = "categorical" if is_aside else _other_kind(raw, kind, found)
    return f"kinds={{{raw.name!r}: {other!r}}}, --kind {shlex.quote(f'{raw.name}={other}')}"


def _other_kind(raw: RawColumn, kind: str, found: Mapping[str, int | str | None]) -> str:
    """Return the kind that a user may have meant instead, one that allows every value of the column."""
    if kind == "ordinal" or (kind == "binary" and raw.family != "float"):
        return "categorical"
    if kind in ("count", "binary"):
        return "real"
    if kind == "categorical":
        return "ordinal" if "one_scale" in found else "ignore" if raw.family == "str" else "real"
    is_count = kind == "real" and raw.is_integral() and bool(raw.observed().min() >= 0)
    return "count" if is_count else "ignore"


def table_account(
    accounts: list[ColumnAccount], columns: list[Column], n_rows: int, rows: slice
) -> TableAccount:
    """Make the account of a table, with the columns and the rows that repeat others."""
    if not columns:  # a table in chunks
        return TableAccount(tuple(accounts), n_rows)
    repeats = duplicate_columns({column.name: column.values for column in columns})
    for position, account in enumerate(accounts):
        if account.column in repeats and "constant" not in account.remarks:
            words = f"repeats {repeats[account.column]!r}"
            accounts[position] = replace(
                account,
                remarks=f"{account.remarks}; {words}" if account.remarks else words,
                repeats=repeats[account.column],
            )
    arrays = [column.values for column in columns]
    n_sampled = len(range(n_rows)[rows])
    return TableAccount(tuple(accounts), n_rows, count_duplicate_rows(arrays, rows), n_sampled)
