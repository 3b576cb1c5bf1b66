"""Consensus: what do many clusterings of the same objects agree on?"""

from partita.consensus.base import ConsensusEstimator, Found
from partita.consensus.bce import BCE
from partita.consensus.labelings import Labelings

__all__ = ["BCE", "ConsensusEstimator", "Found", "Labelings"]
