"""Values that look like missing codes: 999 among ages, 9 among answers from 1 to 5."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

# Numbers that questionnaires and instruments write for "no answer".
_USUAL = np.array(
    (
        7,
        8,
        9,
        66,
        77,
        88,
        96,
        97,
        98,
        99,
        666,
        777,
        888,
        996,
        997,
        998,
        999,
        7777,
        8888,
        9997,
        9998,
        9999,
        99999,
        999999,
    )
)
_USUAL = np.concatenate([_USUAL, -_USUAL]).astype(np.float64)


class CodeEvidence(NamedTuple):
    """How often the usual missing codes occur in a column, and the range of its other values.

    Examples
    --------
    >>> suspected_codes(code_evidence(np.array([31.0, 999.0, 44.0, 999.0, 25.0])))
    {999: 2}
    """

    counts: dict[float, int]
    low: float
    high: float


NO_EVIDENCE = CodeEvidence({}, np.inf, -np.inf)


def code_evidence(seen: np.ndarray) -> CodeEvidence:
    """Collect the evidence for missing codes from the observed numbers of a column."""
    if len(seen) == 0 or seen.dtype.kind not in "iuf":
        return NO_EVIDENCE
    low, high = float(seen.min()), float(seen.max())
    if low not in _USUAL and high not in _USUAL:  # only a value beyond all others is suspicious
        return CodeEvidence({}, low, high)
    usual = np.isin(seen, _USUAL)
    values, counts = np.unique(seen[usual], return_counts=True)
    others = seen[~usual]
    span = (float(others.min()), float(others.max())) if len(others) else (np.inf, -np.inf)
    return CodeEvidence(dict(zip(map(float, values), counts.tolist(), strict=True)), *span)


def merge_evidence(parts: Sequence[CodeEvidence]) -> CodeEvidence:
    """Combine the evidence of several chunks."""
    counts: dict[float, int] = {}
    low, high = np.inf, -np.inf
    for part in parts:
        for value, count in part.counts.items():
            counts[value] = counts.get(value, 0) + count
        for edge in (part.low, part.high):
            # a chunk whose edges were no codes did not count the codes inside of its range
            if np.isfinite(edge):
                low, high = min(low, edge), max(high, edge)
    return CodeEvidence(counts, low, high)


def suspected_codes(evidence: CodeEvidence) -> dict[int, int]:
    """Return the values that look like missing codes, with their numbers of cells.

    A usual code is suspicious if it occurs at least twice, and lies outside the range of the values that are no usual
    codes by at least the width of that range: 999 beside ages, 99 or 9 beside answers from 1 to 5.
    """
    low, high = evidence.low, evidence.high
    if not low < high:
        return {}
    return {
        int(value): count
        for value, count in sorted(evidence.counts.items())
        if count > 1 and max(value - high, low - value) >= high - low
    }


def codes_of_others(evidence: Mapping[str, CodeEvidence], least: int = 2) -> dict[str, dict[int, int]]:
    """Return codes that are suspicious in at least `least` columns, for the columns in which they are not.

    There a code occurs twice or more, and lies outside the range of the values that are no usual codes: 99 among ages,
    if it means "no answer" in other questions.

    Examples
    --------
    >>> answers = code_evidence(np.array([1.0, 5, 3, 2, 99, 99]))
    >>> codes_of_others({"q1": answers, "q2": answers, "age": code_evidence(np.array([18.0, 80, 99, 99]))})
    {'age': {99: 2}}
    """
    suspected = {name: suspected_codes(found) for name, found in evidence.items()}
    times = Counter(code for codes in suspected.values() for code in codes)
    out = {}
    for name, found in evidence.items():
        codes = {
            code: found.counts[code]
            for code, n_columns in sorted(times.items())
            if n_columns >= least and found.counts.get(code, 0) > 1 and not found.low <= code <= found.high
        }
        if codes and not suspected[name]:
            out[name] = codes
    return out
