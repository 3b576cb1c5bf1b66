"""How real columns become blocks: lumps, transformations, tied values, and the signal.

Each step is chosen by what the columns look like, noted in the fit report, and switched off by an option:
``family={"real": ("auto", {"lumps": False})}``.

- ``lumps``: a column with one value in at least half of the rows, or far more often than any other value, becomes a
  yes-no variable (is it that value?) and, if there are enough other values, a real variable that is missing at the
  lump. Not with more columns than
  `MAX_COLUMNS`: in tables of pixels or counts of words, lumps are the shape of all columns.
- ``powers``: skewed columns are transformed if the evidence for the transformed columns is higher.
- ``ties``: a value that several rows share stands for its cell (:mod:`partita.families.ties`).
- ``signal``: the clusters live in the principal directions that matter (:func:`partita.families.find_signal`).
- ``directions``: rows that all have the length 1 are compared by angles (:class:`partita.families.VonMisesFisher`).
- ``shape``: chains learn the shape of the clusters' covariances, not only their size. Off by default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partita.engines.climb.seeding import seed_labels
from partita.engines.gibbs import chain as chains
from partita.execution.weights import count_positive, total_weight
from partita.families import (
    Block,
    Lumps,
    Power,
    Signal,
    Values,
    family_entry,
    is_wide,
    signal_of,
    take_block,
)
from partita.families.codings import (
    MIN_ALONE,
    MIN_OTHERS,
    MIN_SKEWNESS,
    Lump,
    code_lumps,
    code_values,
    find_lump,
    fit_power,
    skewness,
)
from partita.families.factors import MAX_COLUMNS, RowsInMemory, SignalRows
from partita.families.ties import find_ties
from partita.fitting.objects import rows_of_objects
from partita.labels import canonical
from partita.partitions import specify

MIN_OBJECTS, MIN_WIDE_OBJECTS = 50, 20  # with fewer, the shape of a column, or the signal of many, is chance
MOST_OPEN = 0.1  # of the variance of the scores that missing cells may leave open
LENGTH_ERROR = 1e-3  # of vectors of length 1
EVIDENCE_ROWS, EVIDENCE_ITERATIONS, EVIDENCE_SEED = 500, 30, 0
N_SEEDS = 30


class Steps(NamedTuple):
    """Which steps are allowed."""

    lumps: bool = True
    powers: bool = True
    ties: bool = True
    signal: bool = True
    directions: bool = True
    shape: bool = False


def steps_of(options: Mapping[str, Any]) -> Steps:
    """The steps that the user's options leave.

    Examples
    --------
    >>> steps_of({"ties": False}).ties
    False
    """
    for name, value in options.items():
        if name not in Steps._fields:
            raise ValueError(f"family 'auto' has no option {name!r}: it takes {', '.join(Steps._fields)}")
        if not isinstance(value, bool):
            raise ValueError(f"option {name!r} of family 'auto' is {value!r}: give True or False")
    return Steps(**options)


class _Columns(NamedTuple):
    """Real columns in the user's units, with their lumps."""

    names: Sequence[str]
    X: NDArray[np.float64]
    weights: NDArray[np.float64]
    lumps: list[Lump]
    has_lump: NDArray[np.bool_]
    is_alone: NDArray[np.bool_]  # the values beside the lump are too few to be described in each cluster

    @property
    def whole(self) -> NDArray[np.intp]:
        """Columns without a lump."""
        return np.flatnonzero(~self.has_lump)

    @property
    def parted(self) -> NDArray[np.intp]:
        """Columns whose values beside the lump have a block of their own."""
        return np.flatnonzero(self.has_lump & ~self.is_alone)


def real_blocks(
    X: NDArray[np.float64], names: Sequence[str], weights: NDArray[np.float64], steps: Steps, completes: bool
) -> list[Block]:
    """The blocks of real columns in memory, given in the user's units."""
    if steps.directions and are_directions(X):
        return [family_entry("vonmises_fisher").block(X, names, weights)]
    steps = allowed_steps(steps, weights, len(names))
    columns = _find_lumps(X, names, weights, steps)
    plain = _make_blocks(columns, [Power()] * len(names), steps, completes)
    powers = _find_powers(columns) if steps.powers else None
    if powers is None:
        return plain
    transformed = _make_blocks(columns, powers, steps, completes)
    return transformed if log_evidence(transformed, weights) > log_evidence(plain, weights) else plain


def allowed_steps(steps: Steps, weights: NDArray[np.float64], n_columns: int) -> Steps:
    """The steps for which there are enough objects.

    Examples
    --------
    >>> allowed_steps(Steps(), np.ones(40), 50)
    Steps(lumps=False, powers=False, ties=False, signal=True, directions=True, shape=False)
    """
    if count_objects(weights) >= MIN_OBJECTS:
        return steps
    wide = n_columns > MAX_COLUMNS and count_objects(weights) >= MIN_WIDE_OBJECTS
    return steps._replace(lumps=False, powers=False, ties=False, signal=steps.signal and wide, shape=False)


def are_directions(X: NDArray[np.float64]) -> bool:
    """Whether the rows are complete and have the length 1, so that only their directions differ.

    Examples
    --------
    >>> are_directions(np.eye(3)), are_directions(np.ones((3, 3)))
    (True, False)
    """
    return X.shape[1] > 2 and bool(np.all(np.abs(np.linalg.norm(X, axis=1) - 1.0) <= LENGTH_ERROR))


def _find_lumps(
    X: NDArray[np.float64], names: Sequence[str], weights: NDArray[np.float64], steps: Steps
) -> _Columns:
    lumps = [find_lump(x, weights) for x in X.T]
    is_possible = steps.lumps and len(names) <= MAX_COLUMNS
    has_lump = np.array([is_possible and lump.stands_out and lump.share < 1.0 for lump in lumps], bool)
    is_alone = np.array([lump.share >= MIN_ALONE or lump.n_others < MIN_OTHERS for lump in lumps], bool)
    return _Columns(names, X, weights, lumps, has_lump, is_alone)


def _find_powers(columns: _Columns) -> list[Power] | None:
    """A transformation for each column that is skewed; None if no column is."""
    powers = [Power()] * len(columns.names)
    for d in (*columns.whole, *columns.parted):
        x = np.where(
            columns.has_lump[d] & (columns.X[:, d] == columns.lumps[d].value), np.nan, columns.X[:, d]
        )
        if abs(skewness(x, columns.weights)) > MIN_SKEWNESS:
            powers[d] = fit_power(x, columns.weights)
    return powers if any(power.exponent != 1.0 for power in powers) else None


def _make_blocks(columns: _Columns, powers: Sequence[Power], steps: Steps, completes: bool) -> list[Block]:
    """Columns without a lump together, then the lumps, then the values beside them."""
    blocks = []
    if len(columns.whole):
        blocks.append(_whole_block(columns, [powers[d] for d in columns.whole], steps, completes))
    if columns.has_lump.any():
        blocks.append(_lump_block(columns, np.flatnonzero(columns.has_lump)))
    if len(columns.parted):
        blocks.append(_part_block(columns, columns.parted, powers))
    return blocks


def _whole_block(columns: _Columns, powers: list[Power], steps: Steps, completes: bool) -> Block:
    X = np.ascontiguousarray(columns.X[:, columns.whole])
    names = tuple(columns.names[d] for d in columns.whole)
    coding = code_values(X, columns.weights, np.full(len(names), np.nan), tuple(powers))
    Z, log_slope = coding.encode(X)
    holes = bool(np.isnan(Z).any())
    complete = not holes and len(names) >= 2
    name, signal = gaussian_for(columns.weights, names, holes, completes), None
    if steps.signal and len(names) >= 2:
        rows = RowsInMemory(Z, columns.weights)
        name, signal = model_of_vectors(rows, name, lambda found: share_open(found, Z, columns.weights))
    data = Z if signal is None else np.ascontiguousarray(signal.scores(Z))
    options = {"shape": True} if steps.shape and name == "gaussian_full" else {}
    block = family_entry(name).block(data, names, columns.weights, **options)
    ties = None
    if complete and name == "gaussian_full" and len(names) <= MAX_COLUMNS and steps.ties:
        ties = find_ties(X, columns.weights, lambda values: coding.encode(values)[0])
    return block._replace(
        signal=signal,
        log_rest=log_slope if signal is None else signal.log_rest(Z) + log_slope,
        coding=coding if coding.is_skewed.any() else None,
        ties=ties,
    )


def model_of_vectors(
    rows: SignalRows, otherwise: str, share_open: Callable[[Signal], float]
) -> tuple[str, Signal | None]:
    """Family and signal of standardized columns; vectors of few columns with missing cells are left to the engines."""
    wide = is_wide(rows.n_rows, rows.n_columns)
    if rows.has_holes and not wide:
        return otherwise, None
    signal = signal_of(rows)
    if signal is None:
        return ("gaussian" if wide else "gaussian_full"), None
    if rows.has_holes and share_open(signal) > MOST_OPEN:
        return otherwise, None
    return "gaussian_full", signal


def share_open(signal: Signal, Z: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """Mean share of the variance of the scores that missing cells leave open, of rows with any observed cell."""
    rows = ~np.isnan(Z).all(axis=1) & (weights > 0)
    return float(signal.undetermined(Z[rows]).mean()) if rows.any() else 1.0


def _lump_block(columns: _Columns, which: NDArray[np.intp]) -> Block:
    X = np.ascontiguousarray(columns.X[:, which])
    values = np.array([columns.lumps[d].value for d in which])
    coding = code_lumps(X, columns.weights, values, columns.is_alone[which])
    codes, log_rest = coding.encode(X)
    names = tuple(columns.names[d] for d in which)
    block = family_entry("bernoulli").block(codes, names, columns.weights, n_levels=np.full(len(which), 2))
    return block._replace(log_rest=log_rest, coding=coding)


def _part_block(columns: _Columns, which: NDArray[np.intp], powers: Sequence[Power]) -> Block:
    """Values beside the lumps, independent inside a cluster: missing cells add nothing."""
    X = np.ascontiguousarray(columns.X[:, which])
    lumps = np.array([columns.lumps[d].value for d in which])
    coding = code_values(X, columns.weights, lumps, tuple(powers[d] for d in which))
    Z, log_slope = coding.encode(X)
    block = family_entry("gaussian").block(Z, tuple(columns.names[d] for d in which), columns.weights)
    return block._replace(log_rest=log_slope, coding=coding)


def log_evidence(blocks: Sequence[Block], weights: NDArray[np.float64]) -> float:
    """Log joint probability of table and partition in short chains over a sample of the rows, in the user's units.

    The larger mean of two chains, one that starts from one cluster and one that starts from many. For the same rows it
    compares models whose parameters have the same priors.
    """
    whole = bool(np.all(weights == np.floor(weights)))
    objects = rows_of_objects(weights) if whole else np.flatnonzero(weights)
    rows = objects[
        np.unique(np.linspace(0, len(objects) - 1, min(len(objects), EVIDENCE_ROWS)).round().astype(int))
    ]
    sample = [take_block(block, rows) for block in blocks]
    log_rest = sum(float(block.log_rest.sum()) for block in sample if block.log_rest is not None)
    found = []
    for number in range(2):
        z = np.zeros(len(rows), np.int64)
        if number:
            rng = chains.generator(EVIDENCE_SEED, 0, chains.START)
            z = canonical(seed_labels(sample, min(N_SEEDS, max(len(rows) // 5, 1)), rng))
        chain = chains.start(sample, specify("mfm"), z, EVIDENCE_SEED + number)
        values = []
        for _ in range(EVIDENCE_ITERATIONS):
            chain = chains.step(chain, chains.Schedule())
            values.append(chains.log_joint(chain))
        found.append(float(np.mean(values[-EVIDENCE_ITERATIONS // 3 :])))
    return max(found) + log_rest


def count_objects(weights: np.ndarray) -> int:
    """Number of objects: the total weight, or the number of rows with a weight where that is larger."""
    return max(count_positive(weights), int(total_weight(weights)))


def gaussian_for(weights: np.ndarray, columns: Sequence[str], holes: bool, completes: bool) -> str:
    """Full covariance where there are enough rows to learn it: most real tables have correlated columns.

    Examples
    --------
    >>> gaussian_for(np.ones(100), ["a", "b"], holes=False, completes=True)
    'gaussian_full'
    """
    if not (2 <= len(columns) <= 30 and count_objects(weights) >= 5 * len(columns)):
        return "gaussian"
    return "gaussian_full" if completes or not holes else "gaussian"


# ---- what the fit report says ------------------------------------------------------------------------------------


def describe_steps(blocks: Sequence[Block]) -> list[tuple[str, str]]:
    """Code and sentence of a note for each step that was taken."""
    notes = [_describe_lumps(block, blocks) for block in blocks if isinstance(block.coding, Lumps)]
    skewed = [
        name
        for block in blocks
        if isinstance(block.coding, Values)
        for name, is_skewed in zip(block.columns, block.coding.is_skewed)
        if is_skewed
    ]
    if skewed:
        text = f"skewed columns are modeled on a transformed scale, which fits better: {_names(skewed)}"
        notes.append(("powers", f"{text}. {switch('powers')} switches this off"))
    tied = [block.columns[d] for block in blocks if block.ties is not None for d in block.ties.columns]
    if tied:
        text = f"values that several rows share stand for the interval around them: {_names(tied)}"
        notes.append(("ties", f"{text}. {switch('ties')} takes them as exact"))
    for block in blocks:
        if block.signal is not None:
            D, d = len(block.columns), block.signal.n_scores
            share = block.signal.share()
            text = f"the clusters are modeled in {d} principal directions of {D} real columns, with {share:.1%} of the"
            notes.append(
                ("signal", f"{text} variance; the other directions hardly vary or look like noise. "
                 f"{switch('signal')} uses all directions"),
            )  # fmt: skip
        if getattr(block.family, "learns_shape", 0.0):
            text = f"chains learn the shape of the clusters' covariances, not only their size: {_names(block.columns)}"
            notes.append(("shape", f"{text}. {switch('shape')} learns the size only"))
    return notes


def _describe_lumps(block: Block, blocks: Sequence[Block]) -> tuple[str, str]:
    assert isinstance(block.coding, Lumps)
    parted = {name for other in blocks if isinstance(other.coding, Values) for name in other.columns}
    shown = [f"{name} ({value:g})" for name, value in zip(block.columns, block.coding.values)]
    split = [name for name in block.columns if name in parted]
    alone = [name for name in block.columns if name not in parted]
    parts = [
        f"one value is far more frequent than all others: {_names(shown)}. Whether a cell has it is a yes-no variable"
    ]
    if split:
        parts.append(f"the other values of {_names(split)} are a variable of their own")
    if alone:
        parts.append(f"the few other values of {_names(alone)} do not distinguish groups")
    return "lumps", f"{'; '.join(parts)}. {switch('lumps')} models these columns as they are"


def filled_note(left: float) -> str:
    """What filling in missing cells means, if they leave a share of the variance of the scores open."""
    return (
        "missing cells of real columns are filled in with their expectation given the other cells of the row; "
        f"they leave {left:.1%} of the variance in the principal directions open, which probabilities of "
        "labels do not reflect. family={'real': 'gaussian'} models the columns one by one"
    )


def switch(step: str) -> str:
    """How a user switches a step off."""
    return f"family={{'real': ('auto', {{'{step}': False}})}}"


def _names(names: Sequence[Any], most: int = 6) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(str, names[:most])) + more
