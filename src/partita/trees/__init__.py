"""Trees: groups within groups."""

from partita.trees.agglomerative import Agglomerative
from partita.trees.bayesian.estimator import BayesianTree
from partita.trees.choosing import gap_statistic, lifetimes
from partita.trees.divisive import BisectingClusters, Diana
from partita.trees.medoids import KMedoids

__all__ = [
    "Agglomerative",
    "BayesianTree",
    "BisectingClusters",
    "Diana",
    "KMedoids",
    "gap_statistic",
    "lifetimes",
]
