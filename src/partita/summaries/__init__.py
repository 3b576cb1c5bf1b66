"""Summaries of fitted models, computed once for the terminal, the report and the pictures: numbers, no drawing.

Every function reads the fitted attributes of a model and returns None if the model does not have them, so that any
estimator with ``labels_`` can be summarized.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from partita.summaries.blocks import BlockMap, block_map
    from partita.summaries.clusters import ClusterSummary, summarize_clusters
    from partita.summaries.comparison import Agreement, Flow, compare_with_truth, flow
    from partita.summaries.counts import GroupCounts, cluster_counts
    from partita.summaries.dendrograms import TreeTop, tree_top
    from partita.summaries.grains import (
        AlternativeRow,
        AtLevel,
        GrainLevels,
        Level,
        alternatives_table,
        grain_levels,
        grain_of,
    )
    from partita.summaries.members import Members, summarize_members
    from partita.summaries.pairs import PairMap, memberships_of, pair_map
    from partita.summaries.uncertainty import Uncertainty, find_uncertain
    from partita.summaries.views import View, ViewMap, lone_columns, number_of_views, view_cells, view_map

__all__ = [
    "Agreement",
    "AlternativeRow",
    "AtLevel",
    "BlockMap",
    "ClusterSummary",
    "Flow",
    "GrainLevels",
    "GroupCounts",
    "Level",
    "Members",
    "PairMap",
    "TreeTop",
    "Uncertainty",
    "View",
    "ViewMap",
    "alternatives_table",
    "block_map",
    "cluster_counts",
    "compare_with_truth",
    "find_uncertain",
    "flow",
    "grain_levels",
    "grain_of",
    "lone_columns",
    "memberships_of",
    "number_of_views",
    "pair_map",
    "summarize_clusters",
    "summarize_members",
    "tree_top",
    "view_cells",
    "view_map",
]

_MODULES = {
    "Agreement": "comparison",
    "AlternativeRow": "grains",
    "AtLevel": "grains",
    "BlockMap": "blocks",
    "ClusterSummary": "clusters",
    "GroupCounts": "counts",
    "Flow": "comparison",
    "GrainLevels": "grains",
    "Level": "grains",
    "Members": "members",
    "PairMap": "pairs",
    "TreeTop": "dendrograms",
    "Uncertainty": "uncertainty",
    "View": "views",
    "ViewMap": "views",
    "alternatives_table": "grains",
    "block_map": "blocks",
    "cluster_counts": "counts",
    "compare_with_truth": "comparison",
    "find_uncertain": "uncertainty",
    "flow": "comparison",
    "grain_levels": "grains",
    "grain_of": "grains",
    "lone_columns": "views",
    "memberships_of": "pairs",
    "number_of_views": "views",
    "pair_map": "pairs",
    "summarize_clusters": "clusters",
    "summarize_members": "members",
    "tree_top": "dendrograms",
    "view_cells": "views",
    "view_map": "views",
}


def __getattr__(name):
    # a command that only formats a number must not wait for scipy.stats, which some of these modules need
    if name in _MODULES:
        import importlib

        return getattr(importlib.import_module(f"partita.summaries.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'partita.summaries' has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *_MODULES])
