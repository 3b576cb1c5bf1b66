"""A trace as an xarray DataTree in ArviZ's schema."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from partita._version import __version__
from partita.posterior.diagnostics import by_chain, size_entropy
from partita.trace import Trace


def arviz_groups(trace: Trace) -> tuple[dict[str, dict[str, tuple[tuple[str, ...], Any]]], dict[str, Any]]:
    """The groups `posterior` and `sample_stats` as (dimensions, array) pairs, and the attributes of the tree.

    Chains are cut to the length of the shortest; the attribute `note` says how many draws that left out.

    Examples
    --------
    >>> zeros = np.zeros(4)
    >>> trace = Trace(np.zeros((4, 3), int), zeros, zeros + 1, zeros, zeros, np.array([0, 0, 1, 1]))
    >>> groups, attributes = arviz_groups(trace)
    >>> dimensions, array = groups["posterior"]["labels"]
    >>> dimensions, array.shape
    (('chain', 'draw', 'object'), (2, 2, 3))
    """
    rows = by_chain(trace)
    of_draws = ("chain", "draw")
    posterior: dict[str, tuple[tuple[str, ...], Any]] = {
        "labels": ((*of_draws, "object"), np.asarray(trace.labels)[rows]),
        "n_clusters": (of_draws, np.asarray(trace.n_clusters)[rows]),
    }
    for name in ("concentration", "discount"):
        values = np.asarray(getattr(trace, name), dtype=float)[rows]
        if not np.isnan(values).all():
            posterior[name] = (of_draws, values)
    posterior["size_entropy"] = (of_draws, size_entropy(trace.labels)[rows])
    stats: dict[str, tuple[tuple[str, ...], Any]] = {"lp": (of_draws, np.asarray(trace.log_joint)[rows])}
    attributes: dict[str, Any] = {"inference_library": "partita", "inference_library_version": __version__}
    left_out = len(trace.labels) - rows.size
    if left_out:
        attributes["note"] = (
            f"{left_out} draws were left out: every chain is cut to the {rows.shape[1]} draws of the shortest"
        )
    return {"posterior": posterior, "sample_stats": stats}, attributes


def to_datatree(trace: Trace, *, objects: ArrayLike | None = None) -> Any:
    """A trace as an `xarray.DataTree` that ArviZ reads.

    Group `posterior` holds labels (chain, draw, object), n_clusters, concentration, discount (where the prior has one)
    and the entropy of the sizes, group `sample_stats` the log joint as `lp`. Labels mean nothing across draws: do not
    average them.

    Parameters
    ----------
    trace : Trace
        Draws of one chain or several. Unequal chains are cut to the shortest, with a `note` in the attributes.
    objects : array-like, default=None
        Names of the objects; 0, 1, 2, ... by default.

    Returns
    -------
    xarray.DataTree

    Raises
    ------
    ImportError
        Where xarray (2024.10 or later) is not installed.

    Examples
    --------
    >>> zeros = np.zeros(4)
    >>> trace = Trace(np.zeros((4, 3), int), zeros, zeros + 1, zeros, zeros, np.array([0, 0, 1, 1]))
    >>> tree = to_datatree(trace)  # doctest: +SKIP
    >>> tree["posterior"]["labels"].shape  # doctest: +SKIP
    (2, 2, 3)
    """
    try:
        from xarray import Dataset, DataTree
    except ImportError:
        raise ImportError(
            "to_datatree needs xarray (2024.10 or later), which is not installed: install the extra `arviz`, "
            "pip install 'partita[arviz]'"
        ) from None
    groups, attributes = arviz_groups(trace)
    n_chains, n_draws, n_objects = groups["posterior"]["labels"][1].shape
    names = np.arange(n_objects) if objects is None else np.asarray(objects)
    if names.shape != (n_objects,):
        raise ValueError(f"objects has shape {names.shape}, but the draws label {n_objects} objects")
    coordinates = {"chain": np.unique(trace.chain), "draw": np.arange(n_draws), "object": names}
    return DataTree.from_dict(
        {
            "/": Dataset(attrs=attributes),
            **{
                f"/{group}": Dataset(
                    values,
                    coords={
                        name: coordinate
                        for name, coordinate in coordinates.items()
                        if any(name in dimensions for dimensions, _ in values.values())
                    },
                    attrs=attributes,
                )
                for group, values in groups.items()
            },
        }
    )
