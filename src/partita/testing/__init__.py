"""Proof of correctness as public tools: exact enumeration, and the laws of a family.

Write a family, register two examples, and run :func:`check_family` on them; what fails says which equation does
not hold. Nothing else in the library imports this package.
"""

from partita.testing import cell_laws, parameter_laws  # put their laws among LAWS
from partita.testing.data import n_rows, take, with_holes
from partita.testing.enumeration import (
    Exact,
    co_clustering,
    collapsed_bound,
    collapsed_update,
    enumerate_labels,
    enumerate_partitions,
    label_marginals,
    row_statistics,
    subset_log_evidence,
)
from partita.testing.explicit_laws import check_explicit_family
from partita.testing.grids import Rule, completions, grid
from partita.testing.laws import LAWS, LawViolation, check_family
from partita.testing.twins import check_compiled

__all__ = [
    "LAWS",
    "Exact",
    "LawViolation",
    "Rule",
    "check_compiled",
    "check_explicit_family",
    "check_family",
    "co_clustering",
    "collapsed_bound",
    "collapsed_update",
    "completions",
    "enumerate_labels",
    "enumerate_partitions",
    "grid",
    "label_marginals",
    "n_rows",
    "row_statistics",
    "subset_log_evidence",
    "take",
    "with_holes",
]
