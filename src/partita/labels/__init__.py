"""Label vectors and label matrices: the vocabulary that chains and ensembles share.

A label vector is a clustering of N objects; a label matrix (objects x members) is an ensemble of
clusterings or the draws of a chain. Labels are integers from 0, and -1 means "not seen".
"""

from partita.labels.coassociation import Coassociation
from partita.labels.enumeration import n_set_partitions, set_partitions
from partita.labels.matrices import (
    Histograms,
    OneHot,
    Signatures,
    label_histograms,
    one_hot,
    signatures,
)
from partita.labels.vectors import canonical, contingency, ordered_by_size

__all__ = [
    "Coassociation",
    "Histograms",
    "OneHot",
    "Signatures",
    "canonical",
    "contingency",
    "label_histograms",
    "n_set_partitions",
    "one_hot",
    "ordered_by_size",
    "set_partitions",
    "signatures",
]
