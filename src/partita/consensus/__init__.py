"""Consensus: what do many clusterings of the same objects agree on?"""

from partita.consensus.base import ConsensusEstimator, Found
from partita.consensus.front_door import Consensus
from partita.consensus.labelings import Labelings

__all__ = ["Consensus", "ConsensusEstimator", "Found", "Labelings"]
