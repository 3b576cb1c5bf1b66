"""Hostile tiny tables through every estimator: a fit, or an error in words; with checks of bounds if it is compiled."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

import partita
from partita.dispatch import interpreted
from tests.fuzz.small_models import CASES

NUMBERS = (0.0, -0.0, 1.0, -1.0, np.nan, 1e300, -1e300, 1e-300, 5e-324, 1e9, 0.1, 255.0, 256.0, 2.0**53, 3.5)
# what a fit may raise: errors in words (ValueError), refusals of memory, missing extras
ALLOWED = (ValueError, MemoryError, ImportError)


def a_table(rng: np.random.Generator, *, labels: bool) -> np.ndarray:
    """A table of at most six rows and four columns: constant, repeated, missing, huge, tiny or far from zero."""
    shape = int(rng.integers(1, 7)), int(rng.integers(1, 5))
    if labels:
        return rng.integers(-1, int(rng.integers(1, 5)), size=shape)
    kind = int(rng.integers(5))
    if kind == 0:
        return rng.choice(NUMBERS, size=shape)
    if kind == 1:
        return np.full(shape, rng.choice(NUMBERS))
    if kind == 2:
        return np.repeat(rng.choice(NUMBERS, size=(1, shape[1])), shape[0], axis=0)
    if kind == 3:
        return rng.integers(0, 3, size=shape).astype(float)
    table = (rng.normal(size=shape) * 10.0 ** rng.integers(-200, 200)).astype(object)
    table[rng.random(shape) < 0.3] = None
    table[:, 0] = rng.choice(["a", "b", ""], size=shape[0])
    return table


def describe(X: np.ndarray) -> str:
    return f"np.array({X.tolist()!r}, dtype={X.dtype.name!r})"


def try_one(seed: int, *, compiled: bool) -> str:
    """Fit one estimator to one table, and predict it; returns what happened, raises with a reproducer."""
    rng = np.random.default_rng(seed)
    case = list(CASES)[int(rng.integers(len(CASES)))]
    name, options, given = CASES[case]
    X: Any = a_table(rng, labels=isinstance(given, np.ndarray) and given.dtype.kind == "i")
    how: Any = contextlib.nullcontext() if compiled else interpreted()
    with how, warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            model = getattr(partita, name)(**options).fit(X)
            check_answer(model, X)
            return "fitted"
        except ALLOWED:
            return "refused"
        except Exception as error:
            raise AssertionError(
                f"seed {seed}: {name}(**{options!r}).fit({describe(X)}): {type(error).__name__}: {error}"
            ) from error


def check_answer(model: Any, X: np.ndarray) -> None:
    """Labels for all rows, and probabilities that are probabilities."""
    labels = next(
        (
            np.asarray(getattr(model, at))
            for at in ("labels_", "row_labels_", "view_labels_")
            if hasattr(model, at)
        ),
        None,
    )
    if labels is None or len(labels) != len(X) or labels.dtype.kind != "i":
        raise AssertionError(f"labels are {labels!r}")
    if hasattr(model, "predict_proba"):
        P = model.predict_proba(X)
        if not (np.isfinite(P).all() and (P >= 0).all() and (P.sum(axis=1) <= 1 + 1e-6).all()):
            raise AssertionError(f"probabilities are {P!r}")
    elif hasattr(model, "predict"):
        model.predict(X)


def seeds(first: int, rounds: int) -> Iterator[int]:
    return iter(range(first, first + rounds))


def main(first: int, rounds: int) -> None:
    """Run seeds ``first``, ``first + 1``, ... compiled; each is printed before it begins."""
    for seed in seeds(first, rounds):
        print(seed, end=" ", flush=True)
        print(try_one(seed, compiled=True), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
