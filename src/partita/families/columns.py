"""Columns of a block: take some of them out, and put learned hyper-parameters back.

Models that move columns between views (CrossCat, overlapping views) read one column at a time. These functions give
them the family and the data of some columns. The defaults suit families whose hyper-parameters are arrays with one
entry per column, and data in a plain array; every other family or container registers its own version.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from partita.families.contract import n_columns


@singledispatch
def take_columns(lik: Any, positions: np.ndarray) -> Any:
    """Return the family of the columns at ``positions``, with their hyper-parameters.

    Examples
    --------
    >>> from partita.families import Bernoulli, Categorical
    >>> take_columns(Bernoulli(np.array([1.0, 2.0]), np.array([3.0, 4.0])), [1])
    Bernoulli(a=array([2.]), b=array([4.]))
    >>> take_columns(Categorical.default([3, 2, 4]), [0, 2]).n_levels
    array([3, 4])
    """
    return type(lik)(*(value[positions] if _has_columns(lik, value) else value for value in lik))


@singledispatch
def put_columns(lik: Any, positions: np.ndarray, part: Any) -> Any:
    """Return the family with the hyper-parameters of ``part`` in the columns at ``positions``.

    Examples
    --------
    >>> from partita.families import Bernoulli
    >>> whole = Bernoulli(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    >>> put_columns(whole, [1], Bernoulli(np.array([9.0]), np.array([8.0])))
    Bernoulli(a=array([1., 9.]), b=array([3., 8.]))
    """
    values = []
    for value, new in zip(lik, part, strict=True):
        if _has_columns(lik, value):
            value = value.copy()
            value[positions] = new
        values.append(value)
    return type(lik)(*values)


def _has_columns(lik: Any, value: Any) -> bool:
    """Whether a hyper-parameter is an array with one entry per column."""
    return isinstance(value, np.ndarray) and value.shape == (int(n_columns(lik)),)


@singledispatch
def take_data(data: Any, positions: Any) -> Any:
    """Return the columns at ``positions`` of the data of a block, in row-major order.

    Examples
    --------
    >>> take_data(np.array([[1.0, 2.0], [3.0, 4.0]]), [1])
    array([[2.],
           [4.]])
    """
    return np.ascontiguousarray(data[:, positions])


@singledispatch
def column_by_column(data: Any) -> Any:
    """Return the same data in column-major order, in which reading one column is fast.

    Examples
    --------
    >>> column_by_column(np.zeros((3, 2))).flags.f_contiguous
    True
    """
    return np.asfortranarray(data)
