"""The laws of a family: equations that tie its functions to each other, each checked on examples.

A family is right when its small functions agree: what the cache predicts must be what the marginal says, what is
drawn must be what is expected. :func:`check_family` runs every law that the family has the functions for; a
violation names the equation, both of its sides, and where they differ. Laws by Monte Carlo allow five standard
errors, so a correct family fails one in millions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from partita.dispatch import interpreted
from partita.families.contract import cache_start, n_columns, partly_seen, stats_start
from partita.families.rows import project_rows, refresh_clusters, score_rows
from partita.testing.data import n_rows
from partita.testing.enumeration import row_statistics
from partita.testing.grids import grid

N_DRAWS = 20_000
SIGMAS = 5.0


class LawViolation(AssertionError):
    """An equation that a family must satisfy and does not."""


class Law(NamedTuple):
    """A law: its equation, its check, and whether the check speaks of a given family and its data."""

    equation: str
    check: Callable[[Any, Any, np.random.Generator], None]
    applies: Callable[[Any, Any], bool]


LAWS: dict[str, Law] = {}


def complete(lik: Any, data: Any) -> bool:
    return not partly_seen(lik, data)


def plain(lik: Any, data: Any) -> bool:
    """Whether nothing is hidden, and likelihoods are densities rather than powers of them."""
    return complete(lik, data) and not powered(lik)


def powered(lik: Any) -> bool:
    return not np.all(getattr(lik, "power", 1.0) == 1.0)


def measurable(lik: Any, data: Any) -> bool:
    """Whether all values of a datum are known, and its likelihood is a density rather than a power of one."""
    if powered(lik):
        return False
    return type(lik) in grid.registry or any(cls in grid.registry for cls in type(lik).__mro__[1:-1])


def law(name: str, equation: str, applies: Callable[[Any, Any], bool] = complete) -> Callable:
    """Put a check among the laws."""

    def add(check: Callable) -> Callable:
        LAWS[name] = Law(equation, check, applies)
        return check

    return add


def check_family(
    lik: Any, data: Any, rng: np.random.Generator | None = None, *, skip: Sequence[str] = ()
) -> list[str]:
    """Check every law on a family and a few objects; raises :class:`LawViolation` at the first that fails.

    Runs uncompiled, so that a new family needs no compiler to be tried.

    Parameters
    ----------
    lik : NamedTuple
        The family.
    data : container
        A handful of objects (8 will do) in the family's container; missing cells are welcome, and vectors with
        hidden coordinates are checked against sums over what they hide.
    rng : Generator, default=None
        For the draws; by default the same ones every time.
    skip : sequence of str, default=()
        Names in ``LAWS`` to leave out (an approximate ``curvature``, say).

    Returns
    -------
    list of str
        The laws that were checked.

    Examples
    --------
    >>> from partita.families import Bernoulli
    >>> held = check_family(Bernoulli.default(1), np.array([[1], [0], [-1], [1]]))
    >>> "chain rule" in held and "predictive is a density" in held
    True
    """
    rng = np.random.default_rng(0) if rng is None else rng
    checked = []
    with interpreted():
        for name, (_, check, applies) in LAWS.items():
            if name not in skip and applies(lik, data):
                check(lik, data, rng)
                checked.append(name)
    return checked


def agree(name: str, lik: Any, left: Any, right: Any, tol: Any = 1e-9, where: str = "") -> None:
    """Raise unless both sides agree; ``tol`` is absolute per unit of size."""
    left, right = np.broadcast_arrays(np.asarray(left, float), np.asarray(right, float))
    slack = np.broadcast_to(tol, left.shape) * (1.0 + np.abs(right))
    bad = ~((np.abs(left - right) <= slack) | (left == right))
    if bad.any():
        at = np.unravel_index(np.argmax(bad), bad.shape)
        place = "".join([f", {where}" if where else "", f", entry {tuple(map(int, at))}" if at else ""])
        raise LawViolation(
            f"{type(lik).__name__} breaks {LAWS[name].equation}: {left[at]:.10g} is not {right[at]:.10g} "
            f"({name}{place})"
        )


# ---- what the checks share ---------------------------------------------------------------------------------


def columns(lik: Any) -> range:
    return range(int(n_columns(lik)))


def slices(lik: Any, d: int) -> tuple[slice, int]:
    """Rows of the statistics of a column, and the height of its cache."""
    rows = slice(int(stats_start(lik, d)), int(stats_start(lik, d + 1)))
    return rows, int(cache_start(lik, d + 1) - cache_start(lik, d))


def rows_statistics(lik: Any, data: Any) -> np.ndarray:
    """``t(x)`` of every object, [statistic, object]."""
    return np.stack([row_statistics(lik, data, i) for i in range(n_rows(data))], axis=1)


def predictives(lik: Any, S: np.ndarray, data: Any) -> np.ndarray:
    """Log predictive [object, cluster] of all objects under the statistics of each cluster."""
    C = np.zeros((int(cache_start(lik, n_columns(lik))), S.shape[1]))
    refresh_clusters(lik, S, C, S.shape[1])
    L = np.zeros((n_rows(data), S.shape[1]))
    score_rows(lik, data, np.arange(len(L)), C, L)
    return L


def densities(lik: Any, theta: np.ndarray, data: Any) -> np.ndarray:
    L = np.zeros((n_rows(data), theta.shape[1]))
    project_rows(lik, data, np.arange(len(L)), theta, L)
    return L


def inner(theta: np.ndarray, T: np.ndarray) -> np.ndarray:
    """``<theta_k, t_i>``, [object, cluster]; 0 x (-inf) is 0."""
    with np.errstate(invalid="ignore"):
        return np.where(T[:, :, None] == 0.0, 0.0, T[:, :, None] * theta[:, None, :]).sum(axis=0)


def nested_statistics(lik: Any, data: Any) -> np.ndarray:
    """Statistics of nobody, of the first half of the objects, and of all."""
    T = rows_statistics(lik, data)
    half = T[:, : T.shape[1] // 2].sum(axis=1)
    return np.stack([np.zeros(len(T)), half, T.sum(axis=1)], axis=1)
