"""A label matrix as consensus methods read it: coded columns, the rows and members that take part, and notes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from partita.consensus.soft_members import Expanded, expand_members, holds_memberships
from partita.estimator import FitReport
from partita.table import Note, Schema, Table
from partita.table.levels import code_dtype
from partita.table.notes import list_names

NOISE = ("missing", "cluster", "singletons")
# notes of the table for which label matrices have notes of their own
REPLACED = ("constant", "identifier")


class Labelings(NamedTuple):
    """The part of a label matrix that a consensus is made from.

    Every row has a positive weight and at least one label; every member has a positive weight. Members without
    information (one cluster for all objects, or every object alone) are left out as long as others remain. The other
    rows are labeled afterwards, as new rows are.

    Examples
    --------
    >>> from partita.consensus.labelings import Labelings
    >>> Labelings.of([[0, 1], [0, -1], [1, 0]]).n_levels
    array([2, 2])
    """

    codes: np.ndarray  # (N, M) 0..n_levels-1, -1 missing, the smallest signed dtype that fits
    n_levels: np.ndarray  # (M,)
    weights: np.ndarray  # (N,) number of objects of each row
    member_weights: np.ndarray  # (M,)
    owners: np.ndarray  # (M,) the user's member that each column belongs to (a soft member has several)
    rows: np.ndarray  # (N,) the row of X

    @classmethod
    def of(cls, codes: Any, *, weights: Any = None, member_weights: Any = None) -> Labelings:
        """From codes 0, 1, ... (-1 missing), for tests and for labelings that a program has made."""
        codes = np.asarray(codes)
        N, M = codes.shape
        n_levels = codes.max(axis=0).astype(np.int64) + 1
        codes = np.ascontiguousarray(codes, dtype=code_dtype(int(n_levels.max(initial=1))))
        weights = np.ones(N) if weights is None else np.asarray(weights, dtype=np.float64)
        given = np.ones(M) if member_weights is None else np.asarray(member_weights, dtype=np.float64)
        return cls(codes, n_levels, weights, given, np.arange(M), np.arange(N))


class OpenedMembers(NamedTuple):
    """What ``read_table`` reads, and the member that each column belongs to."""

    X: Any
    owners: np.ndarray | None  # None: every column is one member
    names: tuple[str, ...] | None  # of the user's members, if some are soft


def open_members(X: Any, rng: np.random.Generator) -> OpenedMembers:
    """A label matrix unchanged; soft members replaced by several hard ones.

    Examples
    --------
    >>> open_members([np.eye(2)], np.random.default_rng(0)).owners
    array([0, 0, 0, 0, 0])
    """
    if not holds_memberships(X):
        return OpenedMembers(X, None, None)
    found: Expanded = expand_members(X, rng)
    return OpenedMembers(found.columns, found.owners, found.names)


def reading_options(noise: str) -> dict[str, Any]:
    """Options of ``read_table`` for the label -1."""
    return {"missing_codes": -1} if noise == "missing" else {"negative": "level"}


def other_negatives(schema: Schema) -> bool:
    """Whether some member has negative numbers other than -1 as labels."""
    return any(
        column.family in ("int", "float") and column.levels[0] < -1
        for column in schema.of_kind("categorical")
    )


def code_members(table: Table, noise: str, *, fitting: bool) -> tuple[np.ndarray, np.ndarray]:
    """Codes and numbers of levels, with the label -1 treated as ``noise`` says.

    Parameters
    ----------
    table : Table
        All columns categorical.
    noise : {"missing", "cluster", "singletons"}
        With "singletons" every object with the label -1 in a member gets a level of its own in ``fit``; for new
        objects the label -1 is missing.
    fitting : bool

    Examples
    --------
    >>> from partita.table import read_table
    >>> table = read_table([[5], [-1], [-1]], "categorical", negative="level")
    >>> code_members(table, "singletons", fitting=True)[0].T
    array([[0, 1, 2]], dtype=int8)
    """
    values, _, n_levels = table.block("categorical")
    if noise != "singletons":
        return values, n_levels
    codes, n_levels = values.astype(np.int64), n_levels.copy()
    for m, column in enumerate(table.schema.of_kind("categorical")):
        if column.family not in ("int", "float") or column.levels[0] != -1:
            continue
        alone = codes[:, m] == 0
        codes[:, m] -= codes[:, m] >= 0
        n_levels[m] -= 1
        if fitting:
            alone &= table.weights > 0
            codes[alone, m] = n_levels[m] + np.arange(np.count_nonzero(alone))
            n_levels[m] += np.count_nonzero(alone)
    return codes.astype(code_dtype(int(n_levels.max(initial=1)))), n_levels


def gather(
    table: Table, members: OpenedMembers, noise: str, member_weight: Any, report: FitReport
) -> tuple[Labelings, np.ndarray, np.ndarray]:
    """The labelings that take part in a fit, the positions of their columns in the table, and the codes of all rows."""
    codes, n_levels = code_members(table, noise, fitting=True)
    active = table.weights > 0
    n_seen = (codes[active] >= 0).sum(axis=0)
    shares, owners, use = choose_members(table.schema, members, n_levels, n_seen, member_weight, report)
    rows = np.flatnonzero(active & (codes[:, use] >= 0).any(axis=1))
    columns = np.flatnonzero(use)
    taken = np.ascontiguousarray(codes[np.ix_(rows, columns)])
    labelings = Labelings(taken, n_levels[use], table.weights[rows], shares[use], owners[use], rows)
    return labelings, columns, codes[:, columns]


def choose_members(
    schema: Schema,
    members: OpenedMembers,
    n_levels: np.ndarray,
    n_seen: np.ndarray,
    member_weight: Any,
    report: FitReport,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weight and owner of each modeled column, and which of them take part."""
    modeled = np.array([column.kind != "ignore" for column in schema.columns])
    owners = np.arange(len(modeled)) if members.owners is None else members.owners
    n_members = len(modeled) if members.names is None else len(members.names)
    names = members.names or schema.names
    given = check_member_weights(member_weight, n_members)
    shares = (given / np.bincount(owners, minlength=n_members))[owners][modeled]
    owners = owners[modeled]
    if not shares.any():
        raise ValueError("all members with labels have weight 0: give at least one of them a positive weight")
    silent = {"one_cluster": n_levels == 1, "all_alone": (n_levels == n_seen) & (n_levels > 2)}
    use = (shares > 0) & ~silent["one_cluster"] & ~silent["all_alone"]
    if use.any():
        _note_silent(silent, owners, names, report)
    else:
        use = shares > 0
    return shares, owners, use


def check_member_weights(member_weight: Any, n_members: int) -> np.ndarray:
    """One finite weight per member, none negative, not all zero; None is ones.

    Examples
    --------
    >>> check_member_weights([1, -1], 2)
    Traceback (most recent call last):
    ...
    ValueError: member_weight of member 1 is -1.0: weights are finite and at least 0
    """
    if member_weight is None:
        return np.ones(n_members)
    try:
        weights = np.array(member_weight, dtype=np.float64)
    except (TypeError, ValueError) as problem:
        raise ValueError(f"member_weight must hold one number per member: {problem}") from problem
    if weights.shape != (n_members,):
        raise ValueError(
            f"member_weight has the shape {weights.shape}, but there are {n_members} members: give one number each"
        )
    bad = ~np.isfinite(weights) | (weights < 0)
    if bad.any():
        m = int(np.argmax(bad))
        raise ValueError(f"member_weight of member {m} is {weights[m]}: weights are finite and at least 0")
    if not weights.any():
        raise ValueError("member_weight is zero for every member: give at least one a positive weight")
    return weights


def open_report(table: Any, noise: str) -> FitReport:
    """The notes of the table, adapted to label matrices."""
    report = FitReport(note for note in table.notes if note.code not in REPLACED)
    if noise == "missing":
        return report
    words = {
        "cluster": "the label -1 is read as one further cluster of its member",
        "singletons": "objects with the label -1 are read as clusters of one object",
    }
    noisy = [
        column.name
        for column in table.schema.of_kind("categorical")
        if column.family in ("int", "float") and column.levels[0] == -1
    ]
    if noisy:
        report.notes.append(Note("noise", f"{words[noise]}: {list_names(noisy)}", tuple(noisy)))
    return report


def _note_silent(silent: dict[str, np.ndarray], owners: np.ndarray, names: Any, report: FitReport) -> None:
    words = {
        "one_cluster": "members with all objects in one cluster hold no information and have weight 0",
        "all_alone": "members with every object alone hold no information and have weight 0",
    }
    for code, which in silent.items():
        if which.any():
            listed = tuple(names[m] for m in dict.fromkeys(owners[which].tolist()))
            report.add(code, f"{words[code]}: {list_names(listed)}", listed)
