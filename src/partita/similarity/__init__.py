"""Clustering by similarity alone: dissimilarities of mixed tables, affinity propagation, spectral clustering."""

from partita.similarity.affinity_propagation import AffinityPropagation
from partita.similarity.dissimilarities import dissimilarity
from partita.similarity.neighbours import neighbour_graph

__all__ = ["AffinityPropagation", "dissimilarity", "neighbour_graph"]
