"""Consensus: what do many clusterings of the same objects agree on?"""

from partita.consensus.base import ConsensusEstimator, Found
from partita.consensus.bce import BCE
from partita.consensus.labelings import Labelings
from partita.consensus.mixture_consensus import MixtureConsensus
from partita.consensus.nbce import NBCE
from partita.consensus.qmi import QMI
from partita.consensus.voting import Voting

__all__ = ["BCE", "NBCE", "QMI", "ConsensusEstimator", "Found", "Labelings", "MixtureConsensus", "Voting"]
