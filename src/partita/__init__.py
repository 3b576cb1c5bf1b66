"""partita: probabilistic clustering. One clustering from many, and many clusterings from one table."""

from partita._version import __version__

_EXPORTS = {
    "AffinityPropagation": "partita.similarity",
    "Agglomerative": "partita.trees",
    "BCE": "partita.consensus",
    "BayesianTree": "partita.trees",
    "BipartiteModularity": "partita.consensus",
    "BisectingClusters": "partita.trees",
    "CSPA": "partita.consensus",
    "Consensus": "partita.consensus",
    "CrossCat": "partita.views",
    "DPGaussian": "partita.mixture",
    "DPMultinomial": "partita.mixture",
    "Diana": "partita.trees",
    "DecorrelatedKMeans": "partita.views",
    "EnsembleClustering": "partita.consensus",
    "EvidenceAccumulation": "partita.consensus",
    "HBGF": "partita.consensus",
    "HGPA": "partita.consensus",
    "KMedoids": "partita.trees",
    "LACA": "partita.consensus",
    "LWEA": "partita.consensus",
    "LatentClass": "partita.mixture",
    "MCLA": "partita.consensus",
    "Mixture": "partita.mixture",
    "MixtureConsensus": "partita.consensus",
    "NBCE": "partita.consensus",
    "OrthogonalViews": "partita.views",
    "OverlappingViews": "partita.views",
    "QMI": "partita.consensus",
    "RelationalBlocks": "partita.blocks",
    "SpectralClustering": "partita.similarity",
    "Voting": "partita.consensus",
    "annotate": "partita.estimator",
    "load": "partita.estimator",
}

__all__ = [
    "BCE",
    "CSPA",
    "HBGF",
    "HGPA",
    "LACA",
    "LWEA",
    "MCLA",
    "NBCE",
    "QMI",
    "AffinityPropagation",
    "Agglomerative",
    "BayesianTree",
    "BipartiteModularity",
    "BisectingClusters",
    "Consensus",
    "CrossCat",
    "DPGaussian",
    "DPMultinomial",
    "DecorrelatedKMeans",
    "Diana",
    "EnsembleClustering",
    "EvidenceAccumulation",
    "KMedoids",
    "LatentClass",
    "Mixture",
    "MixtureConsensus",
    "OrthogonalViews",
    "OverlappingViews",
    "RelationalBlocks",
    "SpectralClustering",
    "Voting",
    "__version__",
    "annotate",
    "load",
]


def __getattr__(name):
    # `import partita` stays cheap: scikit-learn and the rest are loaded with the first model
    if name in _EXPORTS:
        import importlib

        return getattr(importlib.import_module(_EXPORTS[name]), name)
    raise AttributeError(f"module 'partita' has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *_EXPORTS])
