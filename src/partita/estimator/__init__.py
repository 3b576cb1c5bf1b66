"""The base of all estimators: reading of tables, the report of a fit, random states, save and load."""

from partita.estimator.annotated import annotate
from partita.estimator.base import TableEstimator
from partita.estimator.cluster_prior import HasClusterPrior
from partita.estimator.grain import GrainMixin, sum_probabilities
from partita.estimator.judging import (
    EarlyEnd,
    diagnose_chains,
    early_end,
    have_converged,
    judge_chains,
    note_early_end,
    note_stop,
)
from partita.estimator.report import DataWarning, FitReport, warn_user
from partita.estimator.resumption import claim_folder
from partita.estimator.running import RUNNING_CONSTRAINTS, RunningMixin
from partita.estimator.storage import ModelFileError, load
from partita.randomness import as_generator

__all__ = [
    "RUNNING_CONSTRAINTS",
    "DataWarning",
    "EarlyEnd",
    "FitReport",
    "GrainMixin",
    "HasClusterPrior",
    "ModelFileError",
    "RunningMixin",
    "TableEstimator",
    "annotate",
    "as_generator",
    "claim_folder",
    "diagnose_chains",
    "early_end",
    "have_converged",
    "judge_chains",
    "load",
    "note_early_end",
    "note_stop",
    "sum_probabilities",
    "warn_user",
]
