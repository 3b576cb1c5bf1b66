"""Clustering by similarity alone: dissimilarities of mixed tables, affinity propagation, spectral clustering."""

from partita.similarity.affinity_propagation import AffinityPropagation
from partita.similarity.dissimilarities import dissimilarity
from partita.similarity.laplacians import cut, laplacian_matrix, normalized_cut
from partita.similarity.neighbors import neighbor_graph
from partita.similarity.spectral import SpectralClustering

__all__ = [
    "AffinityPropagation",
    "SpectralClustering",
    "cut",
    "dissimilarity",
    "laplacian_matrix",
    "neighbor_graph",
    "normalized_cut",
]
