"""Summaries of fitted models, computed once for the terminal, the report and the pictures: numbers, no drawing.

Every function reads the fitted attributes of a model and returns None if the model does not have them, so that any
estimator with ``labels_`` can be summarized.
"""

from partita.summaries.blocks import BlockMap, block_map
from partita.summaries.clusters import ClusterSummary, Trait, describe_groups, summarize_clusters
from partita.summaries.comparison import Agreement, Flow, compare_with_truth, flow
from partita.summaries.counts import Counts, cluster_counts
from partita.summaries.dendrograms import TreeTop, tree_top
from partita.summaries.members import Members, summarize_members
from partita.summaries.pairs import PairMap, memberships_of, pair_map
from partita.summaries.uncertainty import Uncertainty, find_uncertain
from partita.summaries.views import View, ViewMap, view_cells, view_map

__all__ = [
    "Agreement",
    "BlockMap",
    "ClusterSummary",
    "Counts",
    "Flow",
    "Members",
    "PairMap",
    "Trait",
    "TreeTop",
    "Uncertainty",
    "View",
    "ViewMap",
    "block_map",
    "cluster_counts",
    "compare_with_truth",
    "describe_groups",
    "find_uncertain",
    "flow",
    "memberships_of",
    "pair_map",
    "summarize_clusters",
    "summarize_members",
    "tree_top",
    "view_cells",
    "view_map",
]
