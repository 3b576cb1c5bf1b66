"""Clustering by similarity alone: dissimilarities of mixed tables, affinity propagation, spectral clustering."""

from partita.similarity.dissimilarities import dissimilarity

__all__ = ["dissimilarity"]
