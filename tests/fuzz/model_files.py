"""Saved models whose arrays were altered: they are refused by name, or their predictions are defined."""

from __future__ import annotations

import copy
import sys
import warnings

import numpy as np

from partita.dispatch import interpreted
from partita.estimator.array_laws import arrays_in
from partita.estimator.storage import part_state, restore_part
from tests.fuzz.small_models import CASES, fitted

HUGE = 10**9


def cut(array, rng):
    """Without its last entries along one axis."""
    axis = int(rng.integers(array.ndim)) if array.ndim else 0
    return np.take(array, range(array.shape[axis] - 1), axis) if array.ndim and array.shape[axis] else None


def grown(array, rng):
    """With its last entries twice."""
    axis = int(rng.integers(array.ndim)) if array.ndim else 0
    if not (array.ndim and array.shape[axis]):
        return None
    return np.concatenate([array, np.take(array, [-1], axis)], axis)


def one_value(value):
    """One entry has another value."""

    def change(array, rng):
        if not array.size or (array.dtype.kind != "f" and not np.isfinite(value)):
            return None
        out = array.astype(np.int64) if array.dtype.kind == "i" else array.copy()
        out.flat[int(rng.integers(out.size))] = value
        return out

    return change


def as_type(dtype):
    """The same numbers in another type."""

    def change(array, rng):
        with np.errstate(all="ignore"):
            return None if array.dtype == dtype else array.astype(dtype)

    return change


CHANGES = {
    "cut": cut,
    "grown": grown,
    "huge": one_value(HUGE),
    "offset": lambda array, rng: array.astype(np.int64) + HUGE if array.dtype.kind == "i" else None,
    "nan": one_value(np.nan),
    "inf": one_value(np.inf),
    "negative": one_value(-2),
    "zeros": lambda array, rng: np.zeros_like(array),
    "float32": as_type(np.float32),
    "int64": as_type(np.int64),
    "complex": as_type(np.complex128),
    "text": as_type(np.dtype("U8")),
    "transposed": lambda array, rng: array.T.copy() if array.ndim > 1 else None,
}


def replaced(tree, path, array):
    """The tree with another array at a place."""
    if not path:
        return array
    step, _, rest = path.partition(".")
    if isinstance(tree, dict):
        key = next(key for key in tree if str(key) == step)
        return {**tree, key: replaced(tree[key], rest, array)}
    if hasattr(tree, "_fields"):
        return tree._replace(**{step: replaced(getattr(tree, step), rest, array)})
    items = list(tree)
    items[int(step)] = replaced(items[int(step)], rest, array)
    return type(tree)(items)


def predicted(model, X):
    """All answers of a model for the rows of its fit, as far as it has them."""
    for method in ("predict", "predict_proba", "score_samples"):
        if hasattr(model, method):
            getattr(model, method)(X)


def check_forgery(case, path, array, change, seed):
    model = fitted(case)
    part = copy.deepcopy(part_state(model))
    forged = CHANGES[change](array, np.random.default_rng(seed))
    if forged is None:
        return "unchanged"
    part["state"] = replaced(part["state"], path, forged)
    hint = f"{case}: {path} {change} (seed {seed})"
    with warnings.catch_warnings(), np.errstate(all="ignore"), interpreted():
        warnings.simplefilter("ignore")
        try:
            again = restore_part(part)
        except Exception:  # `load` reports whatever fails here as a ModelFileError
            return "refused"
        try:
            predicted(again, CASES[case][2])
        except (ValueError, OverflowError):  # interpreted kernels raise where compiled ones have infinity
            return "refused"
        except Exception as error:
            raise AssertionError(f"{hint}: {error!r}") from error
    return "harmless"


def places(case):
    return list(arrays_in(part_state(fitted(case))["state"]))


def try_one(seed: int) -> str:
    """One random change of one random array of one random model."""
    rng = np.random.default_rng(seed)
    case = list(CASES)[int(rng.integers(len(CASES)))]
    found = places(case)
    path, array = found[int(rng.integers(len(found)))]
    return check_forgery(case, path, array, list(CHANGES)[int(rng.integers(len(CHANGES)))], seed)


def main(first: int, rounds: int) -> None:
    """Run seeds ``first``, ``first + 1``, ...; each is printed before it begins."""
    for seed in range(first, first + rounds):
        print(seed, end=" ", flush=True)
        print(try_one(seed), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
