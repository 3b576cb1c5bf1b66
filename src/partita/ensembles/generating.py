"""Generation of ensembles: many clusterings of one table, as a label matrix."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partita.ensembles.features import Features, read_features
from partita.ensembles.members import (
    ALGORITHMS,
    QUADRATIC,
    DiagonalGaussians,
    Fit,
    NearestCenter,
    NearestRow,
    Rows,
    fit_algorithm,
)
from partita.ensembles.noise import add_label_noise
from partita.ensembles.seeds import member_seeds
from partita.execution import make_executor, one_thread_each
from partita.execution.digests import digest
from partita.execution.journal import read_arrays, write_arrays
from partita.progress import show_progress

SPACES = ("all", "subspace", "projection")
MIN_SUBSPACE = 3  # columns of a random subset, as in the LACA paper


class Recipe(NamedTuple):
    """How the members of an ensemble are generated; see :func:`generate` for the fields."""

    base: Any = "kmeans"
    n_clusters: Any = None
    space: str = "all"
    rows: str | float = "all"
    left_out: str = "missing"
    label_noise: float = 0.0
    max_exact: int = 2000


class Member(NamedTuple):
    """One clustering of all objects, and how it labels new ones."""

    labels: NDArray[np.int64]
    columns: NDArray[np.int64] | None  # features that the member uses; None: all
    projection: NDArray[np.float64] | None
    predictor: Any

    def predict(self, features: Rows) -> NDArray[np.int64]:
        """Labels of new rows of features."""
        return self.predictor.predict(_seen_by(features, self.columns, self.projection))


class MemberProgress(NamedTuple):
    """Argument of a callback after each member; returning True stops with the members so far."""

    member: int
    n_members: int
    n_clusters: int
    seconds: float

    @property
    def run(self) -> int:
        """For the display of the progress: a member is a run of one iteration."""
        return self.member

    @property
    def iteration(self) -> int:
        """See ``run``."""
        return 1


def generate(
    X: Any,
    base: Any = "kmeans",
    *,
    n_members: int = 20,
    n_clusters: Any = None,
    space: str = "all",
    rows: str | float = "all",
    left_out: str = "missing",
    label_noise: float = 0.0,
    max_exact: int = 2000,
    kinds: Any = None,
    standardize: bool = True,
    random_state: Any = None,
    n_jobs: int | None = None,
    callback: Callable[[MemberProgress], bool | None] | None = None,
    verbose: bool | None = None,
) -> NDArray[np.int64]:
    """Cluster a table many times, with random variation between the members.

    Parameters
    ----------
    X : array or data frame
        The table; see :func:`partita.table.read_table`. Real and count columns are standardized, categories become
        one-hot columns that together weigh as much as one real column, missing cells get the mean of their column.
    base : str, clusterer, or a sequence of them, default="kmeans"
        The algorithm: "kmeans", "minibatch_kmeans" (large tables), "ward", "gmm" (diagonal Gaussian mixture),
        "spectral", or a scikit-learn clusterer (each member fits a copy; its -1 labels are missing). The members use
        the algorithms of a sequence in turn.
    n_members : int, default=20
        Number of clusterings.
    n_clusters : int, pair, list or None, default=None
        Number of clusters of a member: a number; a pair ``(low, high)``, from which each member draws; a list, used in
        turn. None draws from 2 to the square root of the number of rows (and leaves a scikit-learn clusterer as it is).
    space : {"all", "subspace", "projection"}, default="all"
        Columns that a member uses: all; a random subset of 3 or more; a random projection of all features onto as many
        dimensions as the square root of their number (at least 2).
    rows : {"all", "bootstrap"} or float, default="all"
        Objects that a member uses: all; a bootstrap sample (about 63% of them); a share, drawn without replacement.
    left_out : {"missing", "predict"}, default="missing"
        Label of the other objects: -1, or the one that the member predicts.
    label_noise : float, default=0
        Share of the labels of each member that are changed at random (:func:`add_label_noise`).
    max_exact : int, default=2000
        The cost of "ward" and "spectral" grows with the square of the number of rows. With more rows than this they
        use a random sample of this size, and the other objects get the label of the nearest row in it.
    kinds, standardize
        As for :func:`partita.ensembles.read_features`.
    random_state : int, RandomState, Generator, SeedSequence or None
        Source of randomness. The answer does not depend on `n_jobs`, and a larger ensemble starts with the
        members of a smaller one.
    n_jobs : int, optional
        Number of members that are fitted at a time (threads; -1: one per core).
    callback : callable, optional
        Called after each member with a :class:`MemberProgress`; returning True stops.
    verbose : bool, optional
        Whether to show the progress on standard error. None, the default, shows a bar in terminals and notebooks and
        nothing elsewhere; True prints lines where there is no terminal.

    Returns
    -------
    ndarray of int, shape (n_objects, n_members)
        Labels 0, 1, ... in every column; -1 is missing.

    Examples
    --------
    >>> from partita.datasets import make_gaussian_clusters
    >>> X = make_gaussian_clusters(100, n_clusters=3, separation=8.0, random_state=0).X
    >>> Y = generate(X, n_members=5, n_clusters=(2, 6), rows="bootstrap", random_state=0)
    >>> Y.shape, bool((Y == -1).any())
    ((100, 5), True)
    """
    recipe = Recipe(base, n_clusters, space, rows, left_out, label_noise, max_exact)
    features = read_features(X, kinds, standardize=standardize)
    with show_progress("ensemble", verbose) as display:
        display.begin_runs(n_members, "member", 1, is_limit=False)

        def show_and_call(progress: MemberProgress) -> bool | None:
            display.advance(progress)
            return None if callback is None else callback(progress)

        members = fit_members(features, recipe, n_members, random_state, n_jobs, show_and_call)
    return np.column_stack([member.labels for member in members])


def fit_members(
    features: Features,
    recipe: Recipe,
    n_members: int,
    random_state: Any = None,
    n_jobs: int | None = None,
    callback: Callable[[MemberProgress], bool | None] | None = None,
    *,
    executor: Any = None,
    resume: Any = None,
    keep_partial: bool = False,
) -> list[Member]:
    """Fit the members of an ensemble, each with what it needs to label new rows.

    ``executor`` says where they are fitted, ``resume`` names a folder that keeps the finished members, and with
    ``keep_partial`` an interrupt (Ctrl-C) returns those instead of raising.

    Examples
    --------
    >>> features = read_features([[0.0], [0.1], [5.0], [5.1]])
    >>> members = fit_members(features, Recipe(n_clusters=2), 3, random_state=0)
    >>> members[0].predict(features.values)
    array([0, 0, 1, 1])
    """
    check_recipe(recipe, n_members)
    seeds = member_seeds(random_state, n_members)

    kept = None if resume is None else MemberFolder(resume, (features.values, str(recipe)))

    def make(m: int) -> tuple[Member, float]:
        start = time.perf_counter()
        member = None if kept is None else kept.load(m, seeds[m])
        if member is None:
            with one_thread_each():
                member = _fit_member(features, recipe, m, np.random.default_rng(seeds[m]))
            if kept is not None:
                kept.save(m, seeds[m], member)
        return member, time.perf_counter() - start

    members: list[Member] = []
    try:
        for member, seconds in make_executor(n_jobs, executor).map(make, range(n_members)):
            members.append(member)
            n_found = int(member.labels.max(initial=-1)) + 1
            progress = MemberProgress(len(members) - 1, n_members, n_found, seconds)
            if callback is not None and callback(progress):
                break
    except KeyboardInterrupt:
        if not keep_partial or not members:
            raise
    return members


# ---- one member ------------------------------------------------------------------------------------------------


def _fit_member(features: Features, recipe: Recipe, m: int, rng: np.random.Generator) -> Member:
    bases = _in_turn(recipe.base)
    base, n_rows = bases[m % len(bases)], len(features.values)
    n_clusters = _draw_n_clusters(recipe.n_clusters, base, n_rows, m, rng)
    columns, projection = _draw_space(recipe.space, features.scaling.source, rng)
    view = _seen_by(features.values, columns, projection)
    seen = _draw_rows(recipe.rows, n_rows, rng)
    fitted_on = _shortened(seen, base, recipe.max_exact, n_rows, rng)
    fit = fit_algorithm(base, view if fitted_on is None else view[fitted_on], n_clusters, rng)
    labels = _spread(fit, view, fitted_on, seen, recipe.left_out)
    if recipe.label_noise:
        labels = add_label_noise(labels, recipe.label_noise, random_state=rng)
    return Member(labels, columns, projection, fit.predictor)


def _draw_n_clusters(asked: Any, base: Any, n_rows: int, m: int, rng: np.random.Generator) -> int | None:
    if asked is None:
        if not isinstance(base, str):
            return None
        asked = (2, max(2, math.isqrt(n_rows)))
    if isinstance(asked, tuple):
        return int(rng.integers(asked[0], asked[1], endpoint=True))
    return int(asked[m % len(asked)]) if isinstance(asked, (list, np.ndarray)) else int(asked)


def _draw_space(
    space: str, source: NDArray[np.int64], rng: np.random.Generator
) -> tuple[NDArray[np.int64] | None, NDArray[np.float64] | None]:
    if space == "subspace":
        n_columns = int(source.max()) + 1
        size = rng.integers(min(MIN_SUBSPACE, n_columns), n_columns, endpoint=True)
        chosen = rng.choice(n_columns, size=int(size), replace=False)
        return np.flatnonzero(np.isin(source, chosen)), None  # the levels of a category stay together
    if space == "projection":
        n_dimensions = min(source.size, max(2, math.isqrt(source.size)))
        return None, rng.standard_normal((source.size, n_dimensions)) / math.sqrt(n_dimensions)
    return None, None


def _draw_rows(rows: str | float, n_rows: int, rng: np.random.Generator) -> NDArray[np.int64] | None:
    """Rows that a member uses, repeated as often as they were drawn; None: all."""
    if rows == "all":
        return None
    if rows == "bootstrap":
        return np.sort(rng.integers(n_rows, size=n_rows))
    size = max(1, round(float(rows) * n_rows))
    return np.sort(rng.choice(n_rows, size=size, replace=False))


def _shortened(
    seen: NDArray[np.int64] | None, base: Any, max_exact: int, n_rows: int, rng: np.random.Generator
) -> NDArray[np.int64] | None:
    """Rows that the algorithm is run on: a sample if its cost is quadratic and there are many rows."""
    n_seen = n_rows if seen is None else len(seen)
    if not (isinstance(base, str) and base in QUADRATIC and n_seen > max_exact):
        return seen
    sample = np.sort(rng.choice(n_seen, size=max_exact, replace=False))
    return sample if seen is None else seen[sample]


def _seen_by(
    features: Rows, columns: NDArray[np.int64] | None, projection: NDArray[np.float64] | None
) -> Rows:
    view = features if columns is None else features[:, columns]
    return view if projection is None else view @ projection


def _spread(
    fit: Fit,
    view: Rows,
    fitted_on: NDArray[np.int64] | None,
    seen: NDArray[np.int64] | None,
    left_out: str,
) -> NDArray[np.int64]:
    """Labels of all objects from the labels of those that the algorithm was run on."""
    if fitted_on is None:
        return fit.labels
    labels = np.full(len(view), -2, np.int64)
    labels[fitted_on[::-1]] = fit.labels[::-1]  # the label of a repeated row is that of its first copy
    wanted = labels == -2
    if left_out == "missing" and seen is not None:
        unseen = np.ones(len(view), bool)
        unseen[seen] = False
        labels[unseen] = -1
        wanted &= ~unseen
    if wanted.any():
        labels[wanted] = fit.predictor.predict(view[wanted])
    return labels


# ---- checks ----------------------------------------------------------------------------------------------------


def _in_turn(base: Any) -> Sequence[Any]:
    return list(base) if isinstance(base, (list, tuple)) else [base]


def check_recipe(recipe: Recipe, n_members: int) -> None:
    """Raise an error for a recipe that cannot work, before any member is fitted."""
    if n_members < 1:
        raise ValueError(f"n_members is {n_members}: an ensemble needs at least one member")
    for problem in _problems(recipe):
        raise ValueError(problem)


def _problems(recipe: Recipe) -> Iterator[str]:
    bases = _in_turn(recipe.base)
    if not bases:
        yield "base is empty: name at least one algorithm"
    for base in bases:
        if isinstance(base, str) and base not in ALGORITHMS:
            yield f"base {base!r} is unknown: choose from {', '.join(ALGORITHMS)}, or give a scikit-learn clusterer"
        if not isinstance(base, str) and not hasattr(base, "fit_predict"):
            yield f"base {base!r} has no fit_predict: give a scikit-learn clusterer, or one of {', '.join(ALGORITHMS)}"
    yield from _problems_of_n_clusters(recipe.n_clusters)
    if recipe.space not in SPACES:
        yield f"space is {recipe.space!r}: choose from {', '.join(SPACES)}"
    if isinstance(recipe.rows, str):
        if recipe.rows not in ("all", "bootstrap"):
            yield f"rows is {recipe.rows!r}: give 'all', 'bootstrap' or a share between 0 and 1"
    elif not 0 < recipe.rows <= 1:
        yield f"rows is {recipe.rows}: the share of rows that a member sees must be above 0 and at most 1"
    if recipe.left_out not in ("missing", "predict"):
        yield f"left_out is {recipe.left_out!r}: choose 'missing' or 'predict'"
    if not 0 <= recipe.label_noise <= 1:
        yield f"label_noise is {recipe.label_noise}: a share must lie between 0 and 1"
    if recipe.max_exact < 2:
        yield f"max_exact is {recipe.max_exact}: at least 2 rows must be seen"


def _problems_of_n_clusters(asked: Any) -> Iterator[str]:
    if asked is None:
        return
    numbers = [asked] if np.ndim(asked) == 0 else list(asked)
    if not numbers or any(int(number) != number or number < 1 for number in numbers):
        yield f"n_clusters is {asked!r}: give whole numbers from 1 upwards"
    elif isinstance(asked, tuple) and (len(asked) != 2 or asked[0] > asked[1]):
        yield f"n_clusters is {asked!r}: give a pair (low, high) with low <= high, or a list, which is used in turn"


# ---- storage --------------------------------------------------------------------------------------------------

PREDICTORS = {cls.__name__: cls for cls in (NearestCenter, NearestRow, DiagonalGaussians)}


def member_state(member: Member) -> dict[str, Any]:
    """A member as a dictionary of arrays and text, for files.

    Examples
    --------
    >>> member = Member(np.array([0, 1]), None, None, NearestCenter(np.array([[0.0], [1.0]])))
    >>> member_from_state(member_state(member)).predict(np.array([[0.9]]))
    array([1])
    """
    name = type(member.predictor).__name__
    if name not in PREDICTORS:
        raise ValueError(
            f"a member is a {type(member.predictor.model).__name__}, which cannot be written to a file: pickle the "
            "estimator, or give the base algorithm by name"
        )
    return {**member._asdict(), "predictor": {"rule": name, **member.predictor._asdict()}}


def member_from_state(saved: dict[str, Any]) -> Member:
    """The inverse of ``member_state``."""
    fields = dict(saved["predictor"])
    return Member(**{**saved, "predictor": PREDICTORS[fields.pop("rule")](**fields)})


class MemberFolder:
    """Finished members in a folder, one file each.

    Parameters
    ----------
    folder : path
    about : anything of numbers, text and arrays
        What the members depend on; a file of another ensemble is refused.
    """

    def __init__(self, folder: Any, about: Any):
        self.folder, self._about = Path(folder), about
        self.folder.mkdir(parents=True, exist_ok=True)

    def load(self, m: int, seed: np.random.SeedSequence) -> Member | None:
        """Member ``m``; None if it has not been saved."""
        if not self._file(m).exists():
            return None
        saved = read_arrays(self._file(m))
        if str(saved.pop("about")) != self._digest(seed):
            raise ValueError(
                f"{self._file(m)} belongs to another ensemble (other data, parameters or seed): give resume= a folder "
                "of its own, or remove this one"
            )
        fields = {name: saved.get(name) for name in ("labels", "columns", "projection")}
        rule = {
            name.removeprefix("rule_"): value for name, value in saved.items() if name.startswith("rule_")
        }
        return member_from_state({**fields, "predictor": {"rule": str(saved["rule"]), **rule}})

    def save(self, m: int, seed: np.random.SeedSequence, member: Member) -> None:
        """Write member ``m``."""
        state = member_state(member)
        predictor = dict(state.pop("predictor"))
        arrays = {name: value for name, value in state.items() if value is not None}
        arrays |= {"rule": np.array(predictor.pop("rule")), "about": np.array(self._digest(seed))}
        write_arrays(self._file(m), arrays | {f"rule_{name}": value for name, value in predictor.items()})

    def _file(self, m: int) -> Path:
        return self.folder / f"member{m:05d}.npz"

    def _digest(self, seed: np.random.SeedSequence) -> str:
        return digest((self._about, seed.generate_state(4)))
