"""Summaries of a matrix of label draws: one partition, P(K), confidence, and convergence diagnostics.

All functions work on draws x objects, from a chain or from an ensemble of clusterings. Only `coclustering_matrix`
forms a matrix of pairs.
"""

from partita.posterior.alignment import AlignedSummary, AlignmentResult, align_draws, summarize_aligned
from partita.posterior.balls import CredibleBall, credible_ball
from partita.posterior.checks import (
    ColumnCheck,
    LogScores,
    ScoreDifference,
    compare_log_scores,
    held_out_log_scores,
    predictive_checks,
)
from partita.posterior.cluster_counts import (
    ClusterCounts,
    ConcentrationSensitivity,
    CredibleSet,
    concentration_sensitivity,
    credible_set,
    n_clusters_posterior,
)
from partita.posterior.confidence import Confidence, confidence
from partita.posterior.convergence import ess_bulk, ess_tail, rhat
from partita.posterior.datatree import to_datatree
from partita.posterior.diagnostics import Diagnostics, Quantity, diagnose
from partita.posterior.estimates import PointEstimate, best_draw, map_draw, point_estimate
from partita.posterior.grain import Alternative, Grain, GrainLevel
from partita.posterior.losses import expected_loss, loss_matrix
from partita.posterior.similarity import (
    coclustering,
    coclustering_matrix,
    coclustering_pairs,
    coclustering_with_clusters,
)
from partita.posterior.votes import vote

__all__ = [
    "AlignedSummary",
    "AlignmentResult",
    "Alternative",
    "ClusterCounts",
    "ColumnCheck",
    "ConcentrationSensitivity",
    "Confidence",
    "CredibleBall",
    "CredibleSet",
    "Diagnostics",
    "Grain",
    "GrainLevel",
    "LogScores",
    "PointEstimate",
    "Quantity",
    "ScoreDifference",
    "align_draws",
    "best_draw",
    "coclustering",
    "coclustering_matrix",
    "coclustering_pairs",
    "coclustering_with_clusters",
    "compare_log_scores",
    "concentration_sensitivity",
    "confidence",
    "credible_ball",
    "credible_set",
    "diagnose",
    "ess_bulk",
    "ess_tail",
    "expected_loss",
    "held_out_log_scores",
    "loss_matrix",
    "map_draw",
    "n_clusters_posterior",
    "point_estimate",
    "predictive_checks",
    "rhat",
    "summarize_aligned",
    "to_datatree",
    "vote",
]
