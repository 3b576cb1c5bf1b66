"""Examples of priors, on which the tests check the laws."""

from __future__ import annotations

from typing import Any

_examples: dict[type, list[Any]] = {}


def register_examples(*priors: Any) -> None:
    """Register examples of a prior, which the tests check against the laws.

    Examples
    --------
    >>> from partita.partitions import DirichletProcess
    >>> before = examples(DirichletProcess)
    >>> register_examples(*before)  # a prior is registered only once
    >>> examples(DirichletProcess) == before
    True
    """
    for prior in priors:
        known = _examples.setdefault(type(prior), [])
        if not any(prior is other for other in known):
            known.append(prior)


def examples(cls: type) -> list[Any]:
    """Return the examples of a class of priors, small enough to enumerate.

    Examples
    --------
    >>> from partita.partitions import StickBreaking
    >>> len(examples(StickBreaking)) >= 2
    True
    """
    return list(_examples.get(cls, []))
