"""Consensus: what do many clusterings of the same objects agree on?"""

from partita.consensus.base import ConsensusEstimator, Found
from partita.consensus.bce import BCE
from partita.consensus.bipartite_modularity import BipartiteModularity
from partita.consensus.cspa import CSPA
from partita.consensus.ensemble_clustering import EnsembleClustering
from partita.consensus.evidence_accumulation import EvidenceAccumulation
from partita.consensus.front_door import Consensus
from partita.consensus.hbgf import HBGF
from partita.consensus.hgpa import HGPA
from partita.consensus.labelings import Labelings
from partita.consensus.laca import LACA
from partita.consensus.lwea import LWEA
from partita.consensus.mcla import MCLA
from partita.consensus.mixture_consensus import MixtureConsensus
from partita.consensus.nbce import NBCE
from partita.consensus.qmi import QMI
from partita.consensus.voting import Voting

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
    "ConsensusEstimator",
    "EnsembleClustering",
    "EvidenceAccumulation",
    "Found",
    "Labelings",
    "MixtureConsensus",
    "Voting",
]
