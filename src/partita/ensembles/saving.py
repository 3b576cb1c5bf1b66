"""Members as arrays and text, for files; and back."""

from __future__ import annotations

from typing import Any

from partita.ensembles.generating import Member
from partita.ensembles.members import DiagonalGaussians, NearestCenter, NearestRow

__all__ = ["member_from_state", "member_state"]

PREDICTORS = {cls.__name__: cls for cls in (NearestCenter, NearestRow, DiagonalGaussians)}


def member_state(member: Member) -> dict[str, Any]:
    """What a file holds of a member.

    Examples
    --------
    >>> import numpy as np
    >>> member = Member(np.array([0, 1]), None, None, NearestCenter(np.array([[0.0], [1.0]])))
    >>> member_from_state(member_state(member)).predict(np.array([[0.9]]))
    array([1])
    """
    name = type(member.predictor).__name__
    if name not in PREDICTORS:
        raise ValueError(
            f"a member is a {type(member.predictor.model).__name__}, which no file can hold: pickle the estimator, or "
            "use members by name"
        )
    return {**member._asdict(), "predictor": {"rule": name, **member.predictor._asdict()}}


def member_from_state(saved: dict[str, Any]) -> Member:
    """The inverse of ``member_state``."""
    fields = dict(saved["predictor"])
    return Member(**{**saved, "predictor": PREDICTORS[fields.pop("rule")](**fields)})
