"""`read_table`: read tables of any type into typed columns."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from partita.table.account import ColumnAccount
from partita.table.aside import Reason, is_shuffled_numbering, reason_to_set_aside
from partita.table.cells import RawColumn, first_row, place
from partita.table.codes import CodesLike, resolve_codes
from partita.table.columns import Policy, encode_column, identifier_error, learn_column
from partita.table.formats import find_decimal_mark
from partita.table.kinds import (
    MIN_UNIFORM_COLUMNS,
    KindsLike,
    facts_of,
    infer_common_kind,
    infer_kind,
    infer_uniform_kind,
    resolve_kinds,
    resolve_orders,
)
from partita.table.notes import Findings, Note, list_names
from partita.table.quality import (
    column_account,
    decided_by,
    note_order,
    note_reading,
    note_shared_codes,
    note_suspected_codes,
    table_account,
)
from partita.table.scales import Ratings, find_ratings, ordered_levels
from partita.table.schema import ColumnSchema, Schema
from partita.table.sources import Source, is_sparse, matrix_of, open_source
from partita.table.statistics import sampled_rows
from partita.table.suspicion import CodeEvidence
from partita.table.tables import Column, Table
from partita.table.text import number_texts, read_known_text, read_text
from partita.table.weights import check_weights
from partita.wording import count as quantity

REORDERED = "the columns are in another order than in fit: they are matched by their names"


def read_table(
    X: Any,
    kinds: KindsLike = None,
    *,
    schema: Schema | None = None,
    sample_weight: Any = None,
    handle_unknown: str = "missing",
    missing_codes: CodesLike = None,
    negative: str = "error",
    identifiers: str = "warn",
    infer_ordinal: bool | str = True,
    estimator_name: str = "this estimator",
) -> Table:
    """Read a table of any type into typed columns.

    NaN, None, NA, NaT, nulls and masked cells are missing, and so are the usual words for it in text ("NA", "-", "?").
    Text that is numbers or dates as people write them is read as such. Columns that name the rows or hold remarks are
    set aside. Values are never dropped, imputed or relabeled without a note, and X is never changed. The function emits
    no warnings; they are in `notes`.

    Parameters
    ----------
    X : array, data frame, list of rows or sparse matrix
        numpy arrays of any real, text or object dtype (masked ones too), pandas and polars frames, Arrow tables,
        AnnData objects (their X, with the names of the variables), mappings from names to columns, and objects with
        `__array__`, `__arrow_c_stream__` or `__dataframe__`. Sparse matrices need `kinds="count"` or `kinds="binary"`
        and stay sparse. A `Table` is returned as it is, if the other arguments agree with how it was read.
    kinds : None, str, mapping or sequence, default=None
        The kinds of the columns: "real", "count", "binary", "categorical", "ordinal", "date" or "ignore". One for all
        columns, one per column, or a mapping from column names, patterns like "word*" or positions (the others are
        inferred). The rules of inference are in the docstring of `partita.table.kinds`. The levels of an ordinal column
        are in the order that its container declares (an ordered pandas Categorical, a polars Enum), numbers otherwise
        in increasing order, and answers ("disagree", "agree") in the usual one; the order of other words is declared in
        place of the kind, as "low < mid < high".
    schema : Schema, default=None
        Read X like the table from which this schema was learned: same columns, kinds, levels and units. The kinds and
        the missing codes then come from the schema.
    sample_weight : number or array-like of shape (n_rows,), default=None
        Weights for the center and scale of real columns. Rows of weight zero are read, but kinds, levels and scales are
        not learned from them.
    handle_unknown : {"missing", "error"}, default="missing"
        With `schema`: whether unknown categories are read as missing, with a note, or raise an error.
    missing_codes : number, str, sequence or mapping, default=None
        Values that mean missing: for all columns, or a mapping from column names, patterns or positions. By default, -1
        is a negative code like any other; see `partita.table.codes`.
    negative : {"error", "level"}, default="error"
        Whether negative integers in a column declared categorical raise an error or are levels. In text and in columns
        of a categorical dtype they are always levels; if the kind is inferred they are levels, with a note.
    identifiers : {"warn", "error"}, default="warn"
        What to do if all (more than 20) values of a column of text are distinct: set it aside, or raise an error.
    infer_ordinal : bool or "numbers", default=True
        Whether columns with an order are inferred to be ordinal; otherwise they are ordinal only if they are declared.
        With "numbers", answers in whole numbers on one scale are real, and other columns with an order are categorical.
    estimator_name : str, default="this estimator"
        The name of the estimator, for messages about the number of features.

    Returns
    -------
    Table
        Columns, schema and notes.

    Raises
    ------
    ValueError
        With the column, the row and the remedy. TypeError where scikit-learn raises one (np.matrix, unexpected sparse
        input, cells that are neither numbers nor text).

    Examples
    --------
    >>> table = read_table([["red", 1.5], ["blue", None], ["red", 3.5]])
    >>> [(column.name, column.kind) for column in table.columns]
    [('x0', 'categorical'), ('x1', 'real')]
    >>> table.block("categorical").values.ravel()
    array([1, 0, 1], dtype=int8)
    >>> new = read_table([["green", 2.5]], schema=table.schema)
    >>> new.block("categorical").values, new.notes[-1].message
    (array([[-1]], dtype=int8), "values not seen at fit are read as missing: 'x0' (1)")
    """
    _check_options(kinds, schema, handle_unknown, negative, identifiers)
    X = matrix_of(X)
    policy = Policy(missing_codes, negative, identifiers, handle_unknown, infer_ordinal)
    if isinstance(X, Table):
        return _check_table(X, kinds, schema, sample_weight)
    if is_sparse(X):
        from partita.table.sparse import read_sparse

        return read_sparse(X, kinds, schema, sample_weight, estimator_name)
    source = open_source(X)
    weights = check_weights(sample_weight, source.n_rows)
    findings = Findings()
    if schema is None:
        schema, columns = learn_schema(source, kinds, weights, policy, findings)
    else:
        schema.check_features(source.names, source.named, estimator_name)
        places = schema.positions_in(source.names, source.named)
        if places != sorted(places):
            findings.add_note(Note("reordered", REORDERED, level="warning"))
        columns = [
            _encode_known(source.column(position), remembered, policy, findings)
            for position, remembered in zip(places, schema.columns, strict=True)
            if remembered.kind != "ignore"
        ]
    _note_empty_rows(columns, source.n_rows, findings)
    return Table(schema, columns, source.n_rows, weights, findings.notes())


def _check_table(table: Table, kinds: KindsLike, schema: Schema | None, sample_weight: Any) -> Table:
    """Return a table that was read before, unless it would now be read differently."""
    if sample_weight is not None:
        raise ValueError("a Table has its weights already: give sample_weight to read_table where it is read")
    if schema is not None and table.schema != schema:
        raise ValueError("the Table was read with another schema: pass the data it was read from")
    for column, kind in zip(table.schema.columns, resolve_kinds(kinds, table.schema.names), strict=True):
        if kind is not None and column.declared_kind not in (
            kind,
            "ignore",
        ):  # columns without values are ignored
            raise ValueError(
                f"column {column.name!r} was read as {column.declared_kind}, and {kind} is asked for: give kinds to "
                "read_table where the Table is read"
            )
    return table


def _check_options(
    kinds: KindsLike,
    schema: Schema | None,
    handle_unknown: str,
    negative: str,
    identifiers: str,
) -> None:
    allowed = {
        "handle_unknown": (handle_unknown, ("missing", "error")),
        "negative": (negative, ("error", "level")),
        "identifiers": (identifiers, ("warn", "error")),
    }
    for option, (value, choices) in allowed.items():
        if value not in choices:
            raise ValueError(f"{option} must be {choices[0]!r} or {choices[1]!r}, got {value!r}")
    if schema is not None and kinds is not None:
        raise ValueError(
            "kinds and schema were both given; the schema already contains the kinds, so leave out one of them"
        )


def learn_schema(
    source: Source, kinds: KindsLike, weights: np.ndarray, policy: Policy, findings: Findings
) -> tuple[Schema, list[Column]]:
    """Learn kinds, levels and scales of the columns of a source; return the schema and the encoded columns.

    Examples
    --------
    >>> source = open_source([["b"], ["a"]])
    >>> learn_schema(source, None, np.ones(2), Policy(), Findings())[0].columns[0].levels
    ('a', 'b')
    """
    declared = resolve_kinds(kinds, source.names, source.labels)
    codes = resolve_codes(policy.missing_codes, source.names, source.labels)
    orders = resolve_orders(kinds, source.names, source.labels)
    # None means that all rows are used, and that all weights are 1: the common and fast cases
    active = None if weights.all() else weights > 0
    row_weights = None if np.all(weights == 1.0) else weights
    common = _common_kind(source, declared, active, codes)
    doubtful: set[int] = set()
    if common in ("categorical", "count", "real") and _holds_integers(source, declared):
        common, doubtful = _common_integers(source, declared, active, codes, policy, common)
    # Columns whose kinds do not depend on other columns are read one at a time, to save memory.
    apart = common is not None or None not in declared
    raws = {} if apart else _read_columns(source, declared, codes, orders, active)
    aside = _set_aside(raws, declared, active, policy)
    shared, shared_kinds, more = _shared_kinds(raws, declared, aside, active, policy)
    doubtful |= more
    remembered: list[ColumnSchema] = []
    columns: list[Column] = []
    inferred: dict[str, str] = {}
    accounts: list[ColumnAccount] = []
    evidence: dict[str, CodeEvidence] = {}  # of missing codes
    differing = False  # whether a column on its own would have another kind
    rows = sampled_rows(source.n_rows)
    for position, name in enumerate(source.names):
        kind = declared[position]
        if kind == "ignore":
            remembered.append(ColumnSchema(name, "ignore"))
            accounts.append(ColumnAccount(name, "ignore", "declared"))
            continue
        read = raws.pop(position, None) or _read_column(
            source, position, kind, codes[position], orders[position], active
        )
        raw = read.raw
        note_reading(raw, read.n_codes, findings)
        if raw.n_observed(active) == 0:
            findings.add("empty_columns", name)
            remembered.append(ColumnSchema(name, "ignore"))
            accounts.append(ColumnAccount(name, "ignore", "no observed value", raw.n_missing))
            continue
        if position in aside:
            if not {"mixed_units", "pairs"} & findings.about(name).keys():  # which say why
                findings.add(aside[position].code, name, aside[position].n_distinct)
            remembered.append(ColumnSchema(name, "ignore"))
            accounts.append(column_account(raw, "ignore", None, rows, findings))
            continue
        decided = "declared"
        if kind is None:
            own = _own_kind(raw, active, policy) if common is None else common
            kind = inferred[name] = shared_kinds.get(position, own)
            differing |= kind != own
            decided = decided_by(raw, kind, common, shared, position in shared_kinds)
        column_schema = learn_column(
            raw,
            kind,
            inferred=declared[position] is None,
            policy=policy,
            weights=row_weights,
            missing_codes=codes[position],
            order=orders[position],
            findings=findings,
        )
        evidence[name] = note_suspected_codes(raw, active, findings)
        note_order(raw, column_schema, policy.infer_ordinal is True and position in doubtful, findings)
        remembered.append(column_schema)
        columns.append(_encode_learned(raw, column_schema, findings))
        accounts.append(column_account(raw, column_schema.declared_kind, decided, rows, findings))
    if not columns:
        _raise_nothing_left(declared)
    note_shared_codes(evidence, findings)
    if shared is not None and differing:
        findings.add("uniform", shared)
    if inferred:
        findings.add_note(_kinds_note(inferred))
    whole = (
        len(weights) == source.n_rows
    )  # the summary of a table in chunks has one weight, and no rows to compare
    account = table_account(accounts, columns if whole else [], source.n_rows, rows)
    return Schema(tuple(remembered), source.named, account), columns


class _Read(NamedTuple):
    """A column after its text was read, and the number of cells that hold a missing code."""

    raw: RawColumn
    n_codes: int


def _read_column(
    source: Source,
    position: int,
    kind: str | None,
    codes: tuple[Any, ...],
    order: tuple[str, ...],
    active: np.ndarray | None,
    decimal: str | None = None,
) -> _Read:
    raw, n_before = source.column(position).without(codes)
    was_text = raw.family == "str"
    raw = read_text(raw, kind, active, decimal, levels=order)
    if not was_text or raw.family == "str":
        return _Read(raw, n_before)
    raw, n_after = raw.without(codes)  # codes among numbers that were written as text
    return _Read(raw, n_before + n_after)


def _read_columns(
    source: Source,
    declared: list[str | None],
    codes: list[tuple[Any, ...]],
    orders: list[tuple[str, ...]],
    active: np.ndarray | None,
) -> dict[int, _Read]:
    reads = {
        position: _read_column(source, position, kind, codes[position], orders[position], active)
        for position, kind in enumerate(declared)
        if kind != "ignore"
    }
    formats = {position: read.raw.format for position, read in reads.items()}
    with_marks = [position for position, how in formats.items() if how is not None and how.has_marks]
    if not any(how is not None and how.decimal == "," for how in formats.values()):
        return reads
    texts = (
        number_texts(source.column(position).without(codes[position])[0], active) for position in with_marks
    )
    if find_decimal_mark(texts) == ",":  # it decides in columns that decide nothing
        for position in with_marks:
            kind, order = declared[position], orders[position]
            reads[position] = _read_column(source, position, kind, codes[position], order, active, ",")
    return reads


def _set_aside(
    raws: dict[int, _Read], declared: list[str | None], active: np.ndarray | None, policy: Policy
) -> dict[int, Reason]:
    """Return the columns to set aside; none if no column would be left."""
    modeled = [position for position, read in raws.items() if read.raw.n_observed(active)]
    found = {
        position: reason
        for position in modeled
        if declared[position] is None and (reason := reason_to_set_aside(raws[position].raw, active))
    }
    shuffled = [
        position
        for position in modeled
        if declared[position] is None
        and position not in found
        and is_shuffled_numbering(raws[position].raw, active)
    ]
    if len(shuffled) == 1:  # several are ranks
        found[shuffled[0]] = Reason("identifier", raws[shuffled[0]].raw.n_observed(active))
    for position, reason in found.items():
        if policy.identifiers == "error" and reason.code == "identifier":
            raise identifier_error(raws[position].raw.name, reason.n_distinct)
    return {} if len(found) == len(modeled) else found


def _own_kind(raw: RawColumn, active: np.ndarray | None, policy: Policy) -> str:
    """Return the kind that a column has on its own."""
    if policy.infer_ordinal is True and ordered_levels(raw, active):
        return "ordinal"
    return infer_kind(raw, active)


def _shared_kinds(
    raws: dict[int, _Read],
    declared: list[str | None],
    aside: dict[int, Reason],
    active: np.ndarray | None,
    policy: Policy,
) -> tuple[str | None, dict[int, str], set[int]]:
    """Return the kind of a table that holds one measurement, the kinds of columns that others decided, and the columns
    on one scale of which it is not known whether they have an order.
    """
    undeclared = {
        position: read.raw
        for position, read in raws.items()
        if declared[position] is None and position not in aside and read.raw.n_observed(active)
    }
    numbers = {
        position: facts_of(raw, active)
        for position, raw in undeclared.items()
        if raw.family in ("int", "float") and not raw.labeled and not raw.holds_dates
    }
    uniform = infer_uniform_kind(list(numbers.values())) if len(numbers) == len(undeclared) else None
    ratings = Ratings(set(), set())
    if policy.infer_ordinal and uniform in (None, "categorical"):
        plain = {position: fact for position, fact in numbers.items() if undeclared[position].format is None}
        names = {position: raw.name for position, raw in undeclared.items()}
        ratings = find_ratings(plain, undeclared.__getitem__, names, active)
    if uniform is not None and 2 * len(ratings.ordered) >= len(numbers):
        uniform = policy.kind_of_answers  # answers to a few questions may not reach the ends of the scale
    if uniform is None:
        return None, dict.fromkeys(ratings.ordered, policy.kind_of_answers), ratings.doubtful
    return uniform, dict.fromkeys(numbers, uniform), ratings.doubtful if uniform == "categorical" else set()


def _common_kind(
    source: Source, declared: list[str | None], active: np.ndarray | None, codes: list[tuple[Any, ...]]
) -> str | None:
    """Infer the common kind of all undeclared columns of a numeric array; None for other sources."""
    undeclared = [position for position, kind in enumerate(declared) if kind is None]
    family = source.uniform_family(undeclared) if undeclared else None
    if family is None:
        return None

    columns = (source.column(position).without(codes[position])[0] for position in undeclared)
    return infer_common_kind(columns, family, active)


def _holds_integers(source: Source, declared: list[str | None]) -> bool:
    """Whether the undeclared columns of an array have an integer type."""
    return (
        source.uniform_family([position for position, kind in enumerate(declared) if kind is None]) == "int"
    )


def _common_integers(
    source: Source,
    declared: list[str | None],
    active: np.ndarray | None,
    codes: list[tuple[Any, ...]],
    policy: Policy,
    common: str,
) -> tuple[str, set[int]]:
    """Return the kind of an array of integers, and its columns that may have an order or not.

    `common` is the kind if the array does not hold one measurement by the rules for frames.
    """

    def column(position: int) -> RawColumn:
        return source.column(position).without(codes[position])[0]

    facts = {
        position: facts_of(raw, active)
        for position, kind in enumerate(declared)
        if kind is None and (raw := column(position)).n_observed(active)
    }
    kind = infer_uniform_kind(list(facts.values())) or common
    if kind != "categorical" or not policy.infer_ordinal:
        return kind, set()
    ratings = find_ratings(facts, column, source.names, active)
    is_survey = len(facts) >= MIN_UNIFORM_COLUMNS and 2 * len(ratings.ordered) >= len(facts)
    if ratings.ordered == set(facts) or is_survey:
        return policy.kind_of_answers, set()
    return kind, ratings.doubtful


def _encode_learned(raw: RawColumn, schema: ColumnSchema, findings: Findings) -> Column:
    values, unknown = encode_column(raw, schema)
    if unknown is not None and unknown.any():  # unknown values can occur only in rows of weight zero
        findings.add("unweighted_levels", raw.name, int(np.count_nonzero(unknown)))
    if raw.n_missing:
        findings.add("missing", raw.name, raw.n_missing)
    values.flags.writeable = False
    return Column(schema.name, schema.kind, values)


def _encode_known(raw: RawColumn, schema: ColumnSchema, policy: Policy, findings: Findings) -> Column:
    raw, count = raw.without(schema.missing_codes)
    given = raw
    raw = read_known_text(raw, schema)
    if raw is not given:
        raw, count_in_text = raw.without(schema.missing_codes)
        count += count_in_text
    if count:
        findings.add("missing_code", schema.name, count)
    if raw.strays:
        _note_unreadable(given, raw, policy, findings)
    values, unknown = encode_column(raw, schema)
    if raw.n_missing:
        findings.add("missing", schema.name, raw.n_missing)
    if unknown is not None and unknown.any():
        if policy.handle_unknown == "error":
            row = first_row(unknown)
            raise ValueError(
                f"{place(schema.name, row)}: {raw.values[row]!r} was not seen at fit; correct the value, or "
                "pass handle_unknown='missing'"
            )
        findings.add("unknown_levels", schema.name, int(np.count_nonzero(unknown)))
    values.flags.writeable = False
    return Column(schema.name, schema.kind, values)


def _note_unreadable(given: RawColumn, raw: RawColumn, policy: Policy, findings: Findings) -> None:
    """Note the texts of new data that do not have the format of the fitted column, or raise an error."""
    hits = np.fromiter((text in raw.strays for text in given.values), bool, len(given.values))
    row = first_row(hits)
    if policy.handle_unknown == "error":
        raise ValueError(
            f"{place(raw.name, row)}: {given.values[row]!r} cannot be read as at fit; correct the value, or pass "
            "handle_unknown='missing'"
        )
    listed = f"{int(np.count_nonzero(hits))}, the first is {given.values[row]!r} in row {row}"
    findings.add("unreadable", raw.name, listed)


def _raise_nothing_left(declared: list[str | None]) -> None:
    if all(kind == "ignore" for kind in declared):
        raise ValueError("every column is declared 'ignore'; declare at least one column of another kind")
    raise ValueError(
        "every cell is missing: no column that is not ignored has an observed value; check how the data "
        "were loaded"
    )


def _kinds_note(inferred: dict[str, str]) -> Note:
    groups: dict[str, list[str]] = {}
    for name, kind in inferred.items():
        groups.setdefault(kind, []).append(name)
    listed = "; ".join(f"{kind}: {list_names(names)}" for kind, names in groups.items())
    return Note("kinds", f"kinds inferred from the values: {listed}", tuple(inferred))


def _note_empty_rows(columns: list[Column], n_rows: int, findings: Findings) -> None:
    empty = np.ones(n_rows, bool)
    for column in columns:
        empty &= column.values < 0 if column.values.dtype.kind == "i" else np.isnan(column.values)
        if not empty.any():
            return
    findings.add_note(empty_rows_note(int(np.count_nonzero(empty)), first_row(empty)))


def empty_rows_note(count: int, first: int) -> Note:
    """Return the note on rows without observed values.

    Examples
    --------
    >>> empty_rows_note(2, 7).code
    'empty_rows'
    """
    message = (
        f"{quantity(count, 'row')} without any observed value, whose probabilities are the shares of the clusters; the "
        f"first is row {first} (rows count from 0)"
    )
    return Note("empty_rows", message, level="warning")
