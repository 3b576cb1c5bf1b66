"""What the terminal output and the report are written from: the model and its summaries, each computed once."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partita.summaries import (
    Agreement,
    AlternativeRow,
    AtLevel,
    BlockMap,
    ClusterSummary,
    GrainLevels,
    GroupCounts,
    Members,
    PairMap,
    TreeTop,
    ViewMap,
    alternatives_table,
    block_map,
    cluster_counts,
    compare_with_truth,
    find_uncertain,
    grain_levels,
    grain_of,
    memberships_of,
    pair_map,
    summarize_clusters,
    summarize_members,
    tree_top,
    view_map,
)
from partita.summaries.grains import MAX_LEVELS
from partita.table import Table, read_table

CONFIDENCE_THRESHOLD = 0.8  # objects below it are uncertain
MAX_LEAVES = 40  # of the tree that is drawn
MIN_LEVELS = 4  # of the grain: the answer and the alternatives
MAX_DESCRIBED, MAX_CELLS = 1_000, 60_000_000  # levels x columns, and levels x columns x rows


class ReportContext(NamedTuple):
    """The model and its summaries. What a model does not have is None."""

    given: Any  # the model as it was given
    model: Any  # the same, the clustering of its first view, or the model at another level of its grain
    noun: str  # what is clustered: "row" or "object"
    clusters: ClusterSummary
    table: Table | None  # the columns that describe the clusters
    names: NDArray[Any] | None  # of the objects
    memberships: NDArray[np.float64] | None  # [object, cluster], of models that are not an ensemble
    agreement: Agreement | None
    pairs: PairMap | None
    counts: GroupCounts | None
    members: Members | None
    views: ViewMap | None
    tree: TreeTop | None
    blocks: BlockMap | None
    grain: GrainLevels | None
    alternatives: list[AlternativeRow]
    truth: Any  # known groups as they were given
    level: int | None  # number of groups where this is another level of the grain than the answer

    def name(self, i: int) -> str:
        """The name of an object, or its number."""
        return f"{self.noun} {i}" if self.names is None else str(self.names[i])

    def at(self, n_clusters: int) -> ReportContext:
        """The same at another level of the grain; what is not about single groups stays that of the answer."""
        model = AtLevel(self.given, n_clusters)
        pairs = None if self.pairs is None else self.pairs.sorted_by(model.labels_, model.confidence_)
        uncertainty = find_uncertain(model, pairs, CONFIDENCE_THRESHOLD)
        clusters = summarize_clusters(model, CONFIDENCE_THRESHOLD, table=self.table, uncertainty=uncertainty)
        return self._replace(
            model=model,
            clusters=clusters,
            pairs=pairs,
            memberships=None,
            agreement=None if self.truth is None else compare_with_truth(model, self.truth),
            level=n_clusters,
        )


def is_sampled(model: Any) -> bool:
    """Whether the fit has draws."""
    return hasattr(model, "trace_")


def build_context(
    model: Any,
    X: Any = None,
    *,
    table: Any = None,
    truth: Any = None,
    names: Any = None,
    at: int | str | None = None,
) -> ReportContext:
    """Compute the summaries of a fitted model.

    Parameters
    ----------
    model : fitted estimator
        A model of views without ``labels_`` is summarized by the clusters of its first view.
    X, table, truth, names
        As in :func:`partita.report.write_report`. X may be a :class:`partita.table.Table`, which is not read again.
    at : int or str, default=None
        The level of the grain that is described: a number of groups, or the name of a level ("coarse"). None is the
        answer of the model.

    Returns
    -------
    ReportContext
    """
    given, views = model, view_map(model)
    if not hasattr(model, "labels_") and views is not None:
        model = FirstView(model)
    n = len(model.labels_)
    members = summarize_members(model, X)
    blocks = block_map(model, X) if views is None else None
    is_table = blocks is None and not hasattr(model, "member_weights_")
    described = _describing_table(model, X, table, n, is_table)
    memberships = memberships_of(model, X) if members is None else None
    pairs = pair_map(model, X, memberships=memberships)
    uncertainty = find_uncertain(model, pairs, CONFIDENCE_THRESHOLD)
    level = None if at is None else level_of(model, at)
    found = ReportContext(
        given=given,
        model=model,
        noun="row" if members is None or hasattr(model, "members_") else "object",
        clusters=summarize_clusters(model, CONFIDENCE_THRESHOLD, table=described, uncertainty=uncertainty),
        table=described,
        names=_check_names(names, n),
        memberships=memberships,
        agreement=None if truth is None else compare_with_truth(model, truth),
        pairs=pairs,
        counts=cluster_counts(model),
        members=members,
        views=views,
        tree=tree_top(model, MAX_LEAVES),
        blocks=blocks,
        grain=_shown_levels(model, level, described, n) if views is None and blocks is None else None,
        alternatives=alternatives_table(model) if views is None else [],
        truth=truth,
        level=None,
    )
    return found if level is None else found.at(level)


def _shown_levels(model: Any, level: int | None, table: Table | None, n_rows: int) -> GrainLevels | None:
    """The levels between which the page moves; fewer for tables whose columns take long to describe."""
    columns = len(getattr(model, "profiles_", ())) if table is None else len(table.columns)
    affordable = min(MAX_DESCRIBED // max(columns, 1), MAX_CELLS // max(columns * n_rows, 1))
    most = int(min(max(affordable, MIN_LEVELS), MAX_LEVELS))
    return grain_levels(model, most, also=() if level is None else (level,))


def level_of(model: Any, at: int | str) -> int:
    """The number of groups that a user means by `at`; an error where the model has no such level."""
    grain = grain_of(model)
    if grain is None:
        raise ValueError(
            f"this {type(model).__name__} has no grain: leave the grain out, or give the number of clusters"
        )
    return grain.n_clusters_at(int(at) if isinstance(at, str) and at.isdigit() else at)


class FirstView:
    """A model of views as the clustering of its first view."""

    def __init__(self, model: Any) -> None:
        self._model = model
        labels = np.asarray(model.view_labels_)
        self.labels_ = labels[:, 0] if labels.shape[1] else np.zeros(len(labels), np.int64)
        self.n_clusters_ = len(np.unique(self.labels_[self.labels_ >= 0]))

    def __getattr__(self, name: str) -> Any:
        if name in (
            "confidence_",
            "profiles_",
            "n_clusters_posterior_",
            "trace_",
            "predict_proba",
            "coclustering",
            "_own_profiles",
        ):
            raise AttributeError(name)  # these belong to all views, not to the first
        return getattr(self.__dict__["_model"], name)


def _describing_table(model: Any, X: Any, table: Any, n: int, is_table: bool) -> Table | None:
    """The table that describes the clusters: `table` if it is given, otherwise X unless it is a label matrix."""
    if table is not None:
        found, name = read_table(table), "table"
    elif X is not None and is_table and hasattr(model, "schema_"):
        found, name = read_table(X, schema=model.schema_), "X"
    elif X is not None and is_table and np.ndim(X) == 2 and np.shape(X) != (n, n):  # (n, n): dissimilarities
        found, name = read_table(X), "X"
    else:
        return None
    if found.n_rows != n:
        raise ValueError(f"{name} has {found.n_rows} rows and the model was fitted to {n}: pass that table")
    return found


def _check_names(names: Any, n: int) -> NDArray[Any] | None:
    if names is None:
        return None
    found = np.asarray(names, dtype=object)
    if found.shape != (n,):
        raise ValueError(f"names has shape {found.shape}: give one name per object, {n} in all")
    return found
