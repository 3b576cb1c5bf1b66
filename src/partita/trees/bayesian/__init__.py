"""Bayesian hierarchical clustering: a tree whose merges have posterior odds."""
