"""Summary of the clusters: sizes, confidence, and the groups in words."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partita.descriptions import (
    GroupDescription,
    GroupsDescription,
    GroupsSummary,
    Trait,
    describe_labels,
    profile_groups,
)
from partita.summaries.uncertainty import Uncertainty, find_uncertain
from partita.table import ColumnSchema, Table


class ClusterSummary(NamedTuple):
    """Sizes, uncertainty and traits per cluster. Clusters without rows are included."""

    n_rows: int
    n_columns: int  # columns that are described
    sizes: NDArray[np.int64]  # rows per cluster
    uncertain: NDArray[np.int64]  # uncertain rows per cluster
    examined: NDArray[np.int64]  # rows per cluster of which it is known whether they are uncertain
    confidence: NDArray[np.float64]  # mean per cluster
    groups: tuple[GroupDescription, ...]  # the clusters that have rows, in words
    profiles: dict[str, Any]  # what they are described by, by column
    traits: list[list[Trait]]  # per cluster, the most informative column first
    informative_columns: list[tuple[str, float]]  # name and information about the clusters, the largest first
    threshold: float  # confidence below which a row is uncertain
    uncertainty: Uncertainty | None

    @property
    def n_uncertain(self) -> int:
        """Number of uncertain rows among the examined ones."""
        return int(self.uncertain.sum())

    def in_words(self, noun: str = "row") -> GroupsSummary:
        """The groups in words; without groups if their columns are not known."""
        return GroupsSummary(self.groups if self.informative_columns else (), self.n_rows, noun=noun)


def summarize_clusters(
    model: Any, threshold: float = 0.8, *, table: Table | None = None, uncertainty: Uncertainty | None = None
) -> ClusterSummary:
    """Sizes, uncertainty and traits of each cluster.

    Parameters
    ----------
    model : fitted estimator
    threshold : float, default=0.8
        Confidence below which an object is uncertain.
    table : Table, default=None
        Table of the same objects to describe the clusters by, for models without profiles of their own.
    uncertainty : Uncertainty, default=None
        The uncertain objects, if they were found before.

    Returns
    -------
    ClusterSummary

    Examples
    --------
    >>> from partita import Consensus
    >>> from partita.table import read_table
    >>> model = Consensus(random_state=0).fit([[0, 0], [0, 0], [1, 1], [1, 1]])
    >>> found = summarize_clusters(model, table=read_table([[1.0, 5.0], [1.2, 4.0], [8.0, 4.5], [8.4, 5.0]]))
    >>> found.sizes, [trait.column for trait in found.traits[0]], found.traits[0][0].here
    (array([2, 2]), ['x0', 'x1'], '1.1 ± 0.1')
    """
    labels = np.asarray(model.labels_)
    found, profiles = _describe(model, labels, table)
    K, sizes = len(found.sizes), found.sizes
    uncertainty = find_uncertain(model, None, threshold) if uncertainty is None else uncertainty
    uncertain, examined = np.zeros(K, np.int64), np.zeros(K, np.int64)
    if uncertainty is not None:
        of = labels[uncertainty.objects]
        examined = np.bincount(of[of >= 0], minlength=K)
        uncertain = np.bincount(of[uncertainty.uncertain & (of >= 0)], minlength=K)
    return ClusterSummary(
        n_rows=len(labels),
        n_columns=len(profiles),
        sizes=sizes,
        uncertain=uncertain,
        examined=examined,
        confidence=_mean_confidence(model, labels, sizes),
        groups=found.groups,
        profiles=profiles,
        traits=found.traits,
        informative_columns=found.informative_columns,
        threshold=threshold,
        uncertainty=uncertainty,
    )


def _describe(
    model: Any, labels: np.ndarray, table: Table | None
) -> tuple[GroupsDescription, dict[str, Any]]:
    """The groups in words and their profiles: those of the model, of the table, or of the table that was fitted."""
    if isinstance(getattr(model, "profiles_", None), dict) and hasattr(model, "weights_"):
        weights = np.asarray(model.weights_, float)
        observed = model._observed() if hasattr(model, "_observed") else None
        return (
            describe_labels(labels, model.profiles_, model.schema_.column, weights, observed=observed),
            model.profiles_,
        )
    if table is not None:
        K = int(labels.max(initial=-1)) + 1
        profiles = profile_groups(labels, table, K)
        return describe_labels(labels, profiles, table.schema.column), profiles
    own = (
        model._own_profiles()
        if hasattr(model, "_own_profiles") and not hasattr(model, "view_labels_")
        else []
    )
    if not own or model._describes_members:  # labels of members distinguish no groups that people could name
        return describe_labels(labels, {}, _no_column), {}
    return describe_labels(labels, own[0], model._column_of), own[0]


def _no_column(name: str) -> ColumnSchema:
    raise ValueError(f"no column {name!r}: the groups are not described by columns")


def _mean_confidence(model: Any, labels: np.ndarray, sizes: np.ndarray) -> NDArray[np.float64]:
    if getattr(model, "confidence_", None) is None:
        return np.full(len(sizes), np.nan)
    inside = labels >= 0  # outliers (-1) are in no cluster
    own = np.asarray(model.confidence_, float)[inside]
    return np.bincount(labels[inside], weights=own, minlength=len(sizes)) / np.maximum(sizes, 1)
