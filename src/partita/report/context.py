"""What a page is about: the model, and all that was found out about it before anything is written."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partita.summaries import (
    Agreement,
    BlockMap,
    Counts,
    Findings,
    Members,
    PairMap,
    TreeTop,
    ViewMap,
    block_map,
    cluster_counts,
    compare,
    doubts,
    examine,
    members_of,
    pair_map,
    tree_top,
    view_map,
)
from partita.table import Table, read_table

__all__ = ["Subject", "gather", "is_sampled"]

THRESHOLD = 0.8
LEAVES = 40


class Subject(NamedTuple):
    """Everything the sections read. What a model does not have is None."""

    given: Any  # the model as it was given
    model: Any  # the same, or the clustering of its first view
    noun: str  # what is clustered: "row" or "object"
    found: Findings
    X: Any
    table: Table | None  # what the clusters are described by
    names: NDArray[Any] | None  # of the objects
    agreement: Agreement | None
    pairs: PairMap | None
    counts: Counts | None
    members: Members | None
    views: ViewMap | None
    tree: TreeTop | None
    blocks: BlockMap | None

    def name(self, i: int) -> str:
        """The name of an object, or its number."""
        return f"{self.noun} {i}" if self.names is None else str(self.names[i])


def is_sampled(model: Any) -> bool:
    """Whether the fit has draws."""
    return hasattr(model, "trace_")


def gather(model: Any, X: Any, table: Any, truth: Any, names: Any) -> Subject:
    """Look at a model from all sides. A model of views alone is shown by its first view."""
    given, views = model, view_map(model)
    if not hasattr(model, "labels_") and views is not None:
        model = FirstView(model)
    n = len(model.labels_)
    members = members_of(model, X)
    blocks = block_map(model, X) if views is None else None
    described = _described(
        model, X, table, n, is_table=blocks is None and not hasattr(model, "member_weights_")
    )
    pairs = pair_map(model, X)
    return Subject(
        given=given,
        model=model,
        noun="row" if members is None or hasattr(model, "members_") else "object",
        found=examine(model, THRESHOLD, table=described, doubt=doubts(model, pairs, THRESHOLD)),
        X=X,
        table=described,
        names=_checked_names(names, n),
        agreement=None if truth is None else compare(model, truth),
        pairs=pairs,
        counts=cluster_counts(model),
        members=members,
        views=views,
        tree=tree_top(model, LEAVES),
        blocks=blocks,
    )


class FirstView:
    """A model of views, read as the clustering of its first view."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self.labels_ = np.asarray(model.view_labels_)[:, 0]
        self.n_clusters_ = len(np.unique(self.labels_[self.labels_ >= 0]))

    def __getattr__(self, name: str) -> Any:
        if name in (
            "confidence_",
            "profiles_",
            "n_clusters_posterior_",
            "trace_",
            "predict_proba",
            "coclustering",
        ):
            raise AttributeError(name)  # of all views, not of the first
        return getattr(self.__dict__["_model"], name)


def _described(model: Any, X: Any, table: Any, n: int, is_table: bool) -> Table | None:
    """The table that describes the clusters: the one that was fitted, or one given beside a matrix of labels."""
    if table is not None:
        found = read_table(table)
        what = "table"
    elif X is not None and is_table and hasattr(model, "schema_"):
        found = read_table(X, schema=model.schema_)
        what = "X"
    elif (
        X is not None and is_table and np.ndim(X) == 2 and np.shape(X) != (n, n)
    ):  # else distances, most likely
        found = read_table(X)
        what = "X"
    else:
        return None
    if found.n_rows != n:
        raise ValueError(f"{what} has {found.n_rows} rows and the model was fitted to {n}: pass that table")
    return found


def _checked_names(names: Any, n: int) -> NDArray[Any] | None:
    if names is None:
        return None
    found = np.asarray(names, dtype=object)
    if found.shape != (n,):
        raise ValueError(f"names has shape {found.shape}: give one name for each of {n} objects")
    return found
