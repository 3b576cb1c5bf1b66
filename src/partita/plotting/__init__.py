"""Pictures of fitted models. Every function draws what the model already holds, and returns matplotlib's Axes."""

from partita.plotting.chains import plot_n_clusters, plot_trace
from partita.plotting.consensus import plot_k_scores
from partita.plotting.draws import plot_climb, plot_draw
from partita.plotting.fits import plot_confidence, plot_objective
from partita.plotting.groups import plot_profiles, plot_scatter
from partita.plotting.views import plot_dependence, plot_views

__all__ = [
    "plot_climb",
    "plot_confidence",
    "plot_dependence",
    "plot_draw",
    "plot_k_scores",
    "plot_n_clusters",
    "plot_objective",
    "plot_profiles",
    "plot_scatter",
    "plot_trace",
    "plot_views",
]
