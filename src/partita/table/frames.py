"""Columns as a data frame of the library that the user asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

LIBRARIES = ("pandas", "polars", "pyarrow")


def make_frame(columns: Mapping[str, Sequence[Any]], as_frame: str) -> Any:
    """Columns as a data frame of a library; "dict" gives them as they are.

    Parameters
    ----------
    columns : dict of sequences
    as_frame : {"dict", "pandas", "polars", "pyarrow"}

    Examples
    --------
    >>> make_frame({"a": [1, 2]}, "dict")
    {'a': [1, 2]}
    """
    if as_frame not in ("dict", *LIBRARIES):
        allowed = ", ".join(map(repr, ("dict", *LIBRARIES)))
        raise ValueError(f"as_frame must be one of {allowed}; got {as_frame!r}")
    if as_frame == "dict":
        return dict(columns)
    import narwhals as nw

    backend: Any = as_frame
    try:
        return nw.from_dict(dict(columns), backend=backend).to_native()
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"as_frame={as_frame!r} needs {as_frame}, which is not installed: pip install {as_frame}, or use "
            "as_frame='dict', which needs nothing"
        ) from error
