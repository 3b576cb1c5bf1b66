"""The engine that fits a table for ``inference="auto"``: chains where they take about a minute, otherwise a faster one.

Chains sample the posterior, so they come first: collapsed Gibbs sampling, then sub-cluster sampling, whose iterations
are faster for most families. Variational Bayes is next, memoized where the table has several parts; it gives one fit.
Parameters that only chains of collapsed
Gibbs sampling have select these chains, however long they take.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from partita.engines.climb import memoized
from partita.engines.passes.replicates import any_partly_seen
from partita.families import CountVectors, VonMisesFisher, entry_of
from partita.families.contract import is_conjugate
from partita.families.registry import Block
from partita.fitting.chains import resolve_sampling_prior
from partita.fitting.climb import resolve_prior
from partita.fitting.contract import Settings
from partita.fitting.engines import ENGINES

AUTO = "auto"
CANDIDATES = ("gibbs", "subclusters", "memoized", "vb")  # the first that can fit the table in time
MAX_SECONDS = 60.0  # of chains that are chosen
MIN_NOTED = 10.0  # seconds of chains before the report says how long they take
N_ITERATIONS = 60  # of chains that stop when they agree, typically
# Seconds per iteration, object and column (observed count in count vectors) on one core, measured with 5 to 20
# clusters. They hardly depend on the number of clusters: with more of them sweeps take longer, and
# split-merge moves, which divide single clusters, less.
CELL_SECONDS = {
    "gibbs": {"categorical": 8e-8, "bernoulli": 8e-8, "gaussian": 4e-7, "gaussian_full": 4e-7, "multinomial": 4e-7},
    "subclusters": {"categorical": 1.2e-7, "bernoulli": 1.2e-7, "gaussian": 2e-7, "gaussian_full": 3e-7},
}  # fmt: skip
OTHER_CELL_SECONDS = {"gibbs": 8e-7, "subclusters": 4e-7}  # of the other families


class EngineChoice(NamedTuple):
    """The engine that was chosen, and the reason in a sentence; empty if no note is needed."""

    inference: str
    sentence: str = ""


def chain_seconds(inference: str, blocks: Sequence[Block], n_objects: float, n_chains: int) -> float:
    """Approximate seconds of chains that stop when they agree, one chain after the other.

    Examples
    --------
    >>> from partita.families import Categorical
    >>> block = Block(Categorical.default([4] * 20), np.zeros((10, 20), np.int8), tuple(range(20)))
    >>> round(chain_seconds("gibbs", [block], 100_000, 4))
    38
    """
    each = CELL_SECONDS[inference]
    total = sum(
        _cells_per_object(block) * each.get(entry_of(block.family).name, OTHER_CELL_SECONDS[inference])
        for block in blocks
    )
    return total * n_objects * N_ITERATIONS * n_chains


def _cells_per_object(block: Block) -> float:
    if isinstance(block.data, CountVectors):
        return len(block.data.indices) / max(len(block.data.indptr) - 1, 1)
    return float(len(block.columns) if block.signal is None else block.signal.n_scores)


def choose_engine(settings: Settings, weights: np.ndarray, blocks: Sequence[Block]) -> EngineChoice:
    """The engine for a table in memory."""
    if needs_gibbs(settings):
        return EngineChoice("gibbs")
    possible = [name for name in CANDIDATES if _can_fit(name, settings, weights, blocks)]
    if "vb" in possible and any(isinstance(block.family, VonMisesFisher) for block in blocks):
        reason = "of directions it finds the coarser groups, where chains divide real ones into many small clusters"
        return EngineChoice(
            "vb", f"{ENGINES['vb'].title} was chosen: {reason}; to sample, set inference='gibbs'"
        )
    n_objects = float(weights.sum())
    seconds = {name: chain_seconds(name, blocks, n_objects, settings.n_chains) for name in CELL_SECONDS}
    in_time = [name for name in possible if name not in seconds or seconds[name] <= MAX_SECONDS]
    chosen = in_time[0] if in_time else min(possible or ["gibbs"], key=lambda name: seconds[name])
    about = duration(seconds["gibbs"])
    if chosen != "gibbs":
        reason = f"{ENGINES['gibbs'].title} would take about {about}; to use it, set inference='gibbs'"
        if "gibbs" not in possible:
            reason = "chains need weights that are whole numbers, and a weight is not a whole number"
        return EngineChoice(chosen, f"{ENGINES[chosen].title} was chosen: {reason}")
    if seconds["gibbs"] < MIN_NOTED:
        return EngineChoice("gibbs")
    faster = next((name for name in ("memoized", "vb") if name in possible), None)
    other = f"inference={faster!r} is faster" if faster else "no faster engine supports this model"
    return EngineChoice("gibbs", f"{ENGINES['gibbs'].title} was chosen: about {about} on one core; {other}")


def choose_for_chunks(settings: Settings, n_rows: int | None) -> EngineChoice:
    """The engine for a table that is not read into memory as a whole; its number of rows may not be known yet."""
    if needs_gibbs(settings):
        return EngineChoice("gibbs")
    chosen = "memoized" if n_rows is None or memoized.n_parts(n_rows) > 1 else "vb"
    other = "inference='subclusters' also reads chunks and samples the posterior"
    return EngineChoice(
        chosen, f"{ENGINES[chosen].title} was chosen, because the table is read in chunks; {other}"
    )


def choose_for_device(settings: Settings) -> EngineChoice:
    """The engine for an array on a device.

    Memoized variational Bayes runs there if it is asked for; it has not been timed on a GPU.
    """
    if settings.outliers or settings.precision != "auto":
        return EngineChoice("gibbs")
    if needs_gibbs(settings):
        return EngineChoice("subclusters")
    other = "inference='subclusters' also runs there and samples the posterior"
    return EngineChoice("vb", f"{ENGINES['vb'].title} was chosen, because the table is on a device; {other}")


def needs_gibbs(settings: Settings) -> bool:
    """Whether parameters are given that are for collapsed Gibbs sampling alone, or that say how chains run."""
    names = ("outliers", "n_chains", "n_draws", "burn_in", "thin", "precision", "partition")
    default = Settings()
    return any(getattr(settings, name) != getattr(default, name) for name in names)


def _can_fit(inference: str, settings: Settings, weights: np.ndarray, blocks: Sequence[Block]) -> bool:
    """Whether an engine takes the parameters, weights and families."""
    engine = ENGINES[inference]
    if inference == "memoized" and memoized.n_parts(len(weights)) == 1:
        return False
    if engine.counts_objects and not np.all(weights == np.floor(weights)):
        return False
    if settings.max_clusters is not None and not engine.bounds_n_clusters:
        return False
    if not engine.takes_non_conjugate and not all(is_conjugate(block.family) for block in blocks):
        return False
    if not engine.completes_vectors and any_partly_seen(blocks):
        return False
    return _takes_prior(inference, settings)


def _takes_prior(inference: str, settings: Settings) -> bool:
    """Whether an engine takes the prior; one that no engine takes is refused by the engine that is chosen."""
    try:
        if ENGINES[inference].bounds_evidence:
            resolve_prior(settings.prior, inference, 2, settings.n_clusters is not None, None)
            return True
        prior: Any = resolve_sampling_prior(settings.prior, settings.n_clusters, settings.max_clusters, None)
    except (ValueError, TypeError):
        return False
    return inference == "gibbs" or not prior.fixed_labels


def duration(seconds: float) -> str:
    """A rough duration in words.

    Examples
    --------
    >>> duration(42.3), duration(100.0), duration(743.0), duration(9000.0)
    ('42 seconds', '2 minutes', '12 minutes', '2.5 hours')
    """
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:,.3g} hours"
