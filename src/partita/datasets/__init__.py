"""Example data: a bundled table, tables and ensembles with planted clusters, draws from priors."""

from partita.datasets.bundled import Dataset, load_visitors
from partita.datasets.planted import (
    Planted,
    make_categorical_clusters,
    make_gaussian_clusters,
    make_mixed_clusters,
    make_planted_ensemble,
)
from partita.datasets.priors import (
    MixtureDraw,
    sample_dp_mixture,
    sample_restaurant,
    sample_stick_breaking,
    table_growth,
)
from partita.datasets.views import PlantedViews, make_planted_views, make_stick_figures

__all__ = [
    "Dataset",
    "MixtureDraw",
    "Planted",
    "PlantedViews",
    "load_visitors",
    "make_categorical_clusters",
    "make_gaussian_clusters",
    "make_mixed_clusters",
    "make_planted_ensemble",
    "make_planted_views",
    "make_stick_figures",
    "sample_dp_mixture",
    "sample_restaurant",
    "sample_stick_breaking",
    "table_growth",
]
