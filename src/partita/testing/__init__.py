"""Tools to test models: exact enumeration, tests of chains, and equations that every family must satisfy.

Write a family, register two examples, and run :func:`check_family` on them; a failure names the equation that does
not hold. No other package of the library imports this one.
"""

from partita.families import n_rows, take
from partita.testing import cell_laws, parameter_laws  # they add their laws to LAWS
from partita.testing.calibration import (
    calibration_ranks,
    check_calibration,
    rank_p_value,
    size_traits,
)
from partita.testing.data import with_missing_cells
from partita.testing.enumeration import (
    EnumerationResult,
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
from partita.testing.joint import Joint, draw_joint, redraw_data
from partita.testing.laws import LAWS, LawViolation, check_family
from partita.testing.monte_carlo import (
    FALSE_ALARM,
    check_geweke,
    chi_square,
    effective_size,
    geweke,
    posterior_p_value,
)
from partita.testing.twins import check_compiled

__all__ = [
    "FALSE_ALARM",
    "LAWS",
    "EnumerationResult",
    "Joint",
    "LawViolation",
    "Rule",
    "calibration_ranks",
    "check_calibration",
    "check_compiled",
    "check_explicit_family",
    "check_family",
    "check_geweke",
    "chi_square",
    "co_clustering",
    "collapsed_bound",
    "collapsed_update",
    "completions",
    "draw_joint",
    "effective_size",
    "enumerate_labels",
    "enumerate_partitions",
    "geweke",
    "grid",
    "label_marginals",
    "n_rows",
    "posterior_p_value",
    "rank_p_value",
    "redraw_data",
    "row_statistics",
    "size_traits",
    "subset_log_evidence",
    "take",
    "with_missing_cells",
]
