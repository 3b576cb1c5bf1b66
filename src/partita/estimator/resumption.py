"""The folder of ``resume=``: what the fit in it depends on, and the refusal of the folder of another fit.

A checkpoint holds the state of a fit, and a state does not show from which data it came: a chain resumed on another
table of the same shape would return the groups of the first one. The file ``fit.json`` of the folder therefore holds
digests of the data, the weights and every parameter, and a fit begins only if they are its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from partita._version import __version__
from partita.execution.digests import digest
from partita.files import write_atomically
from partita.table import Table

FILE = "fit.json"
# Parameters that say how a fit runs: its result does not depend on them, or they only lengthen it.
RUNNING = {"time_limit", "callback", "keep_partial", "n_jobs", "executor", "resume", "verbose"}
LENGTH = {"max_iter", "tol"}
PRIOR = {"prior", "concentration", "view_concentration", "smoothing", "buffet", "prior_pairs"}
# Files of writers that were killed. Only names that a fit writes: other files of the folder belong to somebody else.
UNFINISHED = re.compile(
    r"\.(fit\.json|[a-z]+\d+(_draw\d+)?\.npz)\.[0-9a-f]{8}\.(json|npz)"
    r"|([a-z]+\d+(_draw\d+)?\.npz|pass\d{6})\.part\d*"
)
MAX_SHOWN = 60  # characters of a parameter in a message


def claim_folder(estimator: Any, data: Any, weights: Any = None) -> None:
    """Record in the folder of ``resume=`` what the fit depends on, or refuse the folder of another fit.

    Parameters
    ----------
    estimator : object with ``get_params``
        Nothing is done if it has no parameter ``resume``, or if that is None.
    data : tree of anything
        What is fitted, as :func:`partita.execution.digests.digest` reads it; or a Table.
    weights : tree of anything
        Weights of the rows, and of the members of an ensemble.
    """
    folder = getattr(estimator, "resume", None)
    if folder is None:
        return
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    _remove_unfinished(folder)
    asked = _description(estimator, data, weights)
    path = folder / FILE
    if path.exists():
        differences = _differences(_read(path), asked)
        if differences:
            raise ValueError(
                f"{folder} belongs to another fit: {'; '.join(differences)}. Give resume= a folder of its own, or "
                "remove this one to begin again"
            )
        return
    if any(folder.glob("*.npz")):
        raise ValueError(
            f"{folder} belongs to another fit: it has checkpoints but no {FILE}, which says what they depend on. Give "
            "resume= a folder of its own, or remove this one to begin again"
        )
    with write_atomically(path) as temporary:
        temporary.write_text(json.dumps(asked, indent=1))


def _description(estimator: Any, data: Any, weights: Any) -> dict[str, Any]:
    """Digests of everything, and parameters as text, for messages."""
    params = {
        name: value
        for name, value in estimator.get_params(deep=False).items()
        if name not in RUNNING and name not in LENGTH
    }
    params |= estimator._meant_parameters() if hasattr(estimator, "_meant_parameters") else {}
    return {
        "version": __version__,
        "estimator": type(estimator).__name__,
        "data": digest(_content(data)),
        "weights": digest(weights),
        "parameters": {name: [digest(value), _shown(value)] for name, value in params.items()},
    }


def _content(data: Any) -> Any:
    """The cells of a table with the names, kinds and levels that give them their meaning."""
    if not isinstance(data, Table):
        return data
    meanings = [(c.name, c.kind, c.levels) for c in data.schema.columns]
    return meanings, [column.values for column in data.columns], data.sparse


def _differences(found: Mapping[str, Any], asked: Mapping[str, Any]) -> list[str]:
    """What differs, in words."""
    said = []
    for key in ("version", "estimator"):
        if found[key] != asked[key]:
            said.append(f"the {key} is {asked[key]}, that of the folder {found[key]}")
    if found["estimator"] != asked["estimator"]:
        return said
    said += [f"the {key} differ" for key in ("data", "weights") if found[key] != asked[key]]
    before, now = found["parameters"], asked["parameters"]
    names = [name for name in now if before.get(name, [None])[0] != now[name][0]]
    for title, of_prior in (("the prior", True), ("the model parameters", False)):
        changed = [name for name in names if (name in PRIOR) == of_prior]
        if changed:
            listed = ", ".join(
                f"{name}={now[name][1]} instead of {before.get(name, [None, '?'])[1]}" for name in changed
            )
            said.append(f"{title} differ{'s' if of_prior else ''}: {listed}")
    return said


def _shown(value: Any) -> str:
    """A short text of a parameter."""
    if isinstance(value, np.ndarray):
        return f"array of shape {value.shape}"
    text = " ".join(repr(value).split())
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 3]}..."


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
        if set(found) != {"version", "estimator", "data", "weights", "parameters"}:
            raise ValueError("it has other entries")
        dict(found["parameters"])
    except (OSError, ValueError, TypeError) as error:
        raise ValueError(
            f"{path} cannot be read ({error}): remove the folder to begin the fit again"
        ) from error
    return found


def _remove_unfinished(folder: Path) -> None:
    """Remove what a killed process was writing: files are renamed when they are complete."""
    for path in folder.iterdir():
        if path.is_file() and UNFINISHED.fullmatch(path.name):
            path.unlink(missing_ok=True)
