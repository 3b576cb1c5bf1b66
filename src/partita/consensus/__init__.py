"""Consensus: what do many clusterings of the same objects agree on?"""

from partita.consensus.base import ConsensusEstimator, Found
from partita.consensus.bce.estimator import BCE
from partita.consensus.default.estimator import Consensus
from partita.consensus.ensemble_clustering import EnsembleClustering
from partita.consensus.graphs.bipartite_modularity import BipartiteModularity
from partita.consensus.graphs.cspa import CSPA
from partita.consensus.graphs.hbgf import HBGF
from partita.consensus.graphs.hgpa import HGPA
from partita.consensus.graphs.mcla import MCLA
from partita.consensus.labelings import Labelings
from partita.consensus.linkage.evidence_accumulation import EvidenceAccumulation
from partita.consensus.linkage.laca import LACA
from partita.consensus.linkage.lwea import LWEA
from partita.consensus.mixtures.mixture_consensus import MixtureConsensus
from partita.consensus.mixtures.nbce import NBCE
from partita.consensus.votes.qmi import QMI
from partita.consensus.votes.voting import Voting

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
