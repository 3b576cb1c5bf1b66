"""Pictures of fitted models. Every function plots what the model already has and returns matplotlib Axes."""

from partita.plotting.blocks import plot_blocks, plot_side_clusters
from partita.plotting.chains import plot_climb, plot_draw, plot_trace
from partita.plotting.coclustering import plot_coclustering, plot_member_agreement, plot_members
from partita.plotting.comparison import plot_alluvial, plot_contingency
from partita.plotting.fits import plot_confidence, plot_confidence_by_object, plot_objective
from partita.plotting.grains import plot_grain
from partita.plotting.groups import plot_profiles, plot_scatter, plot_traits
from partita.plotting.n_clusters import plot_k_scores, plot_n_clusters
from partita.plotting.priors import plot_mixture_draw, plot_stick, plot_stick_weights, plot_table_growth
from partita.plotting.trees import plot_leaf_curves, plot_leaf_table, plot_node_words, plot_tree
from partita.plotting.views import plot_dependence, plot_views

__all__ = [
    "plot_alluvial",
    "plot_blocks",
    "plot_climb",
    "plot_coclustering",
    "plot_confidence",
    "plot_confidence_by_object",
    "plot_contingency",
    "plot_dependence",
    "plot_draw",
    "plot_grain",
    "plot_k_scores",
    "plot_leaf_curves",
    "plot_leaf_table",
    "plot_member_agreement",
    "plot_members",
    "plot_mixture_draw",
    "plot_n_clusters",
    "plot_node_words",
    "plot_objective",
    "plot_profiles",
    "plot_scatter",
    "plot_side_clusters",
    "plot_stick",
    "plot_stick_weights",
    "plot_table_growth",
    "plot_trace",
    "plot_traits",
    "plot_tree",
    "plot_views",
]
