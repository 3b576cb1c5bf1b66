"""Consensus: what do many clusterings of the same objects agree on?"""

from partita.consensus.base import ConsensusEstimator, Found
from partita.consensus.ensemble_clustering import EnsembleClustering
from partita.consensus.labelings import Labelings

__all__ = ["ConsensusEstimator", "EnsembleClustering", "Found", "Labelings"]
