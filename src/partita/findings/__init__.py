"""What a fitted model says, worked out once for the page and for the pictures: numbers, no drawing.

Every function reads the fitted attributes that are there and says None where a model has nothing of the kind, so that
any estimator with ``labels_`` can be shown.
"""

from partita.findings.blocks import BlockMap, block_map
from partita.findings.clusters import Agreement, Findings, Trait, compare, describe_groups, examine
from partita.findings.comparison import Flow, flow
from partita.findings.counts import Counts, cluster_counts
from partita.findings.dendrograms import TreeTop, tree_top
from partita.findings.doubt import Doubt, doubts
from partita.findings.members import Members, members_of
from partita.findings.pairs import PairMap, pair_map
from partita.findings.views import View, ViewMap, view_cells, view_map

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
