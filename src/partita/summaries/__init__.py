"""What a fitted model says, worked out once for the page and for the pictures: numbers, no drawing.

Every function reads the fitted attributes that are there and says None where a model has nothing of the kind, so that
any estimator with ``labels_`` can be shown.
"""

from partita.summaries.blocks import BlockMap, block_map
from partita.summaries.clusters import Agreement, Findings, Trait, compare, describe_groups, examine
from partita.summaries.comparison import Flow, flow
from partita.summaries.counts import Counts, cluster_counts
from partita.summaries.dendrograms import TreeTop, tree_top
from partita.summaries.doubt import Doubt, doubts
from partita.summaries.members import Members, members_of
from partita.summaries.pairs import PairMap, pair_map
from partita.summaries.views import View, ViewMap, view_cells, view_map

__all__ = [
    "Agreement",
    "BlockMap",
    "Counts",
    "Doubt",
    "Findings",
    "Flow",
    "Members",
    "PairMap",
    "Trait",
    "TreeTop",
    "View",
    "ViewMap",
    "block_map",
    "cluster_counts",
    "compare",
    "describe_groups",
    "doubts",
    "examine",
    "flow",
    "members_of",
    "pair_map",
    "tree_top",
    "view_cells",
    "view_map",
]
