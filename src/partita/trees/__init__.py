"""Trees: groups within groups."""

from partita.trees.bayesian_tree import BayesianTree

__all__ = ["BayesianTree"]
