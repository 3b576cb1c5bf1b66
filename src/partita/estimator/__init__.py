"""The base of all estimators: reading of tables, the report of a fit, random states, save and load."""

from partita.estimator.annotated import annotate
from partita.estimator.base import TableEstimator
from partita.estimator.report import DataWarning, FitReport, warn_user
from partita.estimator.storage import ModelFileError, load
from partita.randomness import as_generator

__all__ = [
    "DataWarning",
    "FitReport",
    "ModelFileError",
    "TableEstimator",
    "annotate",
    "as_generator",
    "load",
    "warn_user",
]
