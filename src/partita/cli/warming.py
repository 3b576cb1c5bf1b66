"""`partita warm`: compile what any table needs, and tell which of it is compiled already.

Compiled code is stored on disk beside the sources (or in ``NUMBA_CACHE_DIR``). Each task fits tiny tables, so that the
code of one part of the package is compiled. A record beside the compiled code names the tasks that were done with the
present sources and versions.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from partita.cli.output import Outcome
from partita.cli.progress import shows_progress
from partita.compilation import processor
from partita.kernel_files import SHIPPED_RECORD, shipped_processor
from partita.progress import tell_stage
from partita.wording import count

LARGE = 5001  # rows from which on predictive caches of discrete columns are in single precision
SHORT = {"n_chains": 1, "n_draws": 2, "burn_in": 1, "random_state": 0}
FAMILIES_OF_KINDS = {
    "real": ("gaussian", "gaussian_full", "exponential"),
    "binary": ("bernoulli",),
    "categorical": ("categorical",),
    "count": ("poisson", "multinomial"),
}


def _columns(kind: str, n_rows: int) -> np.ndarray:
    """Two columns of a kind, with two groups of rows."""
    rng = np.random.default_rng(0)
    z = np.arange(n_rows)[:, None] % 2
    if kind == "real":
        return rng.gamma(2.0, 1.0, (n_rows, 2)) + 3.0 * z
    if kind == "count":
        return rng.poisson(2.0 + 5.0 * z, (n_rows, 2))
    n_levels = 2 if kind == "binary" else 3
    return (rng.integers(n_levels, size=(n_rows, 2)) * (rng.random((n_rows, 2)) < 0.3 + 0.4 * z)).astype(
        np.int64
    )


def _fit_families(kind: str, n_rows: int = 30, **options: Any) -> None:
    from partita import Mixture

    for family in FAMILIES_OF_KINDS[kind]:
        Mixture(family=family, **(options or SHORT)).fit(_columns(kind, n_rows))


def _fit_large(kind: str) -> None:
    _fit_families(kind, LARGE, **{**SHORT, "n_draws": 1, "burn_in": 0})


def _fit_climbers(kind: str) -> None:
    from partita import Mixture

    for inference in ("vb", "em", "cvb"):
        options = {"n_clusters": 2} if inference == "em" else {"max_clusters": 3}
        for family in FAMILIES_OF_KINDS[kind]:
            Mixture(family=family, inference=inference, n_init=1, max_iter=3, random_state=0, **options).fit(
                _columns(kind, 30)
            )


def _fit_missing(kind: str) -> None:
    from partita import Mixture

    X = _columns(kind, 30).astype(float)
    X[0, 0] = np.nan
    Mixture(kinds=kind, **SHORT).fit(X)


def _fit_other_engines(kind: str) -> None:
    from partita import Mixture

    X = _columns(kind, 30)
    for options in ({"inference": "subclusters"}, {"outliers": True}):
        Mixture(kinds=kind, **SHORT, **options).fit(X)
    if kind == "real":
        Mixture(family="student", **SHORT).fit(X)
    Mixture(kinds=kind, inference="beam", beam_width=3, random_state=0).fit(X)


def _fit_ordinal() -> None:
    from partita import Mixture

    X = _columns("categorical", 30)
    Mixture(kinds="ordinal", **SHORT).fit(X)
    for inference in ("vb", "em"):
        Mixture(kinds="ordinal", inference=inference, n_clusters=2, n_init=1, max_iter=3, random_state=0).fit(
            X
        )


def _labels() -> np.ndarray:
    rng = np.random.default_rng(0)
    z = np.arange(40) % 3
    return np.stack([np.where(rng.random(40) < 0.1, rng.integers(3, size=40), z) for _ in range(6)], axis=1)


def _fit_consensus() -> None:
    import partita

    for name in ("Consensus", "LACA", "EvidenceAccumulation", "MixtureConsensus", "BCE"):
        getattr(partita, name)().fit(_labels())
    partita.NBCE(**SHORT).fit(_labels())


def _fit_trees() -> None:
    import partita

    partita.BayesianTree().fit(_columns("real", 20))
    partita.BayesianTree().fit(_columns("binary", 20))


def _fit_views() -> None:
    import partita

    X = np.column_stack([_columns(kind, 40) for kind in ("real", "binary")])
    partita.CrossCat(**SHORT).fit(X)
    partita.OverlappingViews(n_init=1, **SHORT).fit(_columns("real", 40))


def _fit_blocks() -> None:
    import partita

    partita.RelationalBlocks(**SHORT).fit(_columns("binary", 20)[:, [0, 1, 0, 1]])


def tasks(kinds: Sequence[str] = ()) -> dict[str, Callable[[], None]]:
    """What is compiled, by name; with ``kinds``, only what tables of these kinds need."""
    chosen = list(kinds) or list(FAMILIES_OF_KINDS)
    found: dict[str, Callable[[], None]] = {}
    for kind in chosen:
        found[f"chains over {kind} columns"] = lambda kind=kind: _fit_families(kind)  # type: ignore[misc]
        found[f"{kind} columns with missing cells"] = lambda kind=kind: _fit_missing(kind)  # type: ignore[misc]
        found[f"EM and VB over {kind} columns"] = lambda kind=kind: _fit_climbers(kind)  # type: ignore[misc]
        if kind != "real":
            found[f"chains over large {kind} tables"] = lambda kind=kind: _fit_large(kind)  # type: ignore[misc]
        found[f"other engines over {kind} columns"] = lambda kind=kind: _fit_other_engines(kind)  # type: ignore[misc]
    if not kinds:
        found |= {
            "ordinal columns": _fit_ordinal,
            "consensus": _fit_consensus,
            "trees": _fit_trees,
            "views": _fit_views,
            "blocks": _fit_blocks,
        }
    return found


# ---- the record ----------------------------------------------------------------------------------------------


def record_path() -> Path:
    """Where the record is kept: beside the compiled code."""
    import partita

    folder = os.environ.get("NUMBA_CACHE_DIR")
    return (
        Path(folder) if folder else Path(str(partita.__file__)).parent / "__pycache__"
    ) / "partita-warm.json"


def versions() -> dict[str, str]:
    """What compiled code depends on."""
    from importlib.metadata import version

    from partita.dispatch import package_digest

    python = f"{sys.implementation.name} {sys.version_info.major}.{sys.version_info.minor}"
    return {"python": python, "numba": version("numba"), "sources": package_digest()}


def tasks_done() -> set[str]:
    """Names of the tasks whose code is compiled, by the records of this machine and of the code in the package."""
    records = [record_path(), *([SHIPPED_RECORD] if shipped_processor(processor()) else [])]
    return set().union(*map(_tasks_of, records))


def _tasks_of(record: Path) -> set[str]:
    """The tasks of a record; none if sources or versions have changed."""
    try:
        held = json.loads(record.read_text())
        return set(held["tasks"]) if held["versions"] == versions() else set()
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def _write_record(done: set[str]) -> None:
    try:
        record_path().parent.mkdir(parents=True, exist_ok=True)
        record_path().write_text(json.dumps({"versions": versions(), "tasks": sorted(done)}))
    except OSError:  # a folder that cannot be written: code is compiled again in every process
        pass


# ---- the command ---------------------------------------------------------------------------------------------


@shows_progress
def warm(kinds: Sequence[str] = (), *, check: bool = False, verbose: bool | None = None) -> Outcome:
    """Compile everything that a table needs; later runs load it from disk.

    Parameters
    ----------
    kinds : sequence of {"real", "binary", "categorical", "count"}, default=()
        Kinds of columns to compile for; empty means all of them, and consensus, trees, views and blocks.
    check : bool, default=False
        Only tell what is not compiled yet.
    verbose : bool, default=None
        As in the estimators.

    Returns
    -------
    Outcome
    """
    unknown = [kind for kind in kinds if kind not in FAMILIES_OF_KINDS]
    if unknown:
        raise ValueError(f"no kind {unknown[0]!r} to compile for; there are {', '.join(FAMILIES_OF_KINDS)}")
    wanted, done = tasks(kinds), tasks_done()
    missing = [name for name in wanted if name not in done]
    if check:
        words = (
            f"Not compiled yet: {', '.join(missing)}. Run: partita warm"
            if missing
            else f"All {count(len(wanted), 'task')} are compiled."
        )
        return Outcome(words, {"missing": missing})
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, (name, task) in enumerate(wanted.items(), 1):
            tell_stage(f"{number} of {len(wanted)}: {name}")
            task()
            done.add(name)
            _write_record(done)
    seconds = time.process_time() - start
    words = (
        f"Compiled in {seconds:.0f} s of CPU time and stored on disk: {count(len(wanted), 'task')}, of which "
        f"{len(wanted) - len(missing)} had been done before."
    )
    return Outcome(words, {"cpu_s": round(seconds, 1), "tasks": list(wanted), "compiled": missing})
