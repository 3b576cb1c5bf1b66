"""Consensus: what do many clusterings of the same objects agree on?"""

from partita.consensus.base import ConsensusEstimator, Found
from partita.consensus.front_door import Consensus
from partita.consensus.labelings import Labelings
from partita.consensus.mixture_consensus import MixtureConsensus
from partita.consensus.nbce import NBCE

__all__ = ["NBCE", "Consensus", "ConsensusEstimator", "Found", "Labelings", "MixtureConsensus"]
