"""Data to try things on: a bundled table, planted clusters with their oracle, a folder of benchmarks."""

from partita.datasets.bundled import Dataset, load_visitors
from partita.datasets.ensembles import make_planted_ensemble, make_two_clusters_with_outliers
from partita.datasets.folder import Benchmark, load_benchmark
from partita.datasets.planted import (
    Planted,
    make_categorical_clusters,
    make_gaussian_clusters,
    make_mixed_clusters,
)
from partita.datasets.views import PlantedViews, make_planted_views

__all__ = [
    "Benchmark",
    "Dataset",
    "Planted",
    "PlantedViews",
    "load_benchmark",
    "load_visitors",
    "make_categorical_clusters",
    "make_gaussian_clusters",
    "make_mixed_clusters",
    "make_planted_ensemble",
    "make_planted_views",
    "make_two_clusters_with_outliers",
]
