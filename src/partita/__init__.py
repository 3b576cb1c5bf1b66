"""partita: probabilistic clustering. Many clusterings into one, one table into many."""

from partita._version import __version__

_EXPORTS = {
    "BCE": "partita.consensus",
    "BipartiteModularity": "partita.consensus",
    "CSPA": "partita.consensus",
    "Consensus": "partita.consensus",
    "CrossCat": "partita.views",
    "DPGaussian": "partita.mixture",
    "DPMultinomial": "partita.mixture",
    "DecorrelatedKMeans": "partita.views",
    "EnsembleClustering": "partita.consensus",
    "EvidenceAccumulation": "partita.consensus",
    "HBGF": "partita.consensus",
    "HGPA": "partita.consensus",
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
    "Voting": "partita.consensus",
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
    "BipartiteModularity",
    "Consensus",
    "CrossCat",
    "DPGaussian",
    "DPMultinomial",
    "DecorrelatedKMeans",
    "EnsembleClustering",
    "EvidenceAccumulation",
    "LatentClass",
    "Mixture",
    "MixtureConsensus",
    "OrthogonalViews",
    "OverlappingViews",
    "Voting",
    "__version__",
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
