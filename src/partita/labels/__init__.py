"""Label vectors and label matrices, which chains and ensembles have in common.

A label vector is a clustering of N objects; a label matrix (objects x members) is an ensemble of
clusterings or the draws of a chain. Labels are integers from 0, and -1 means "missing".
"""

from typing import TYPE_CHECKING

from partita.labels.enumeration import n_set_partitions, set_partitions
from partita.labels.matrices import (
    Histograms,
    OneHot,
    Signatures,
    label_histograms,
    one_hot,
    signatures,
)
from partita.labels.vectors import canonical, contingency, group_name, ordered_by_size

if TYPE_CHECKING:
    from partita.labels.coassociation import Coassociation

__all__ = [
    "Coassociation",
    "Histograms",
    "OneHot",
    "Signatures",
    "canonical",
    "contingency",
    "group_name",
    "label_histograms",
    "n_set_partitions",
    "one_hot",
    "ordered_by_size",
    "set_partitions",
    "signatures",
]


def __getattr__(name):
    # it is a linear operator of scipy, which scores and readers of labels do not need
    if name == "Coassociation":
        from partita.labels.coassociation import Coassociation

        return Coassociation
    raise AttributeError(f"module 'partita.labels' has no attribute {name!r}")
