"""Several clusterings of one table, each from its own columns (views)."""

from partita.views.crosscat.estimator import CrossCat
from partita.views.decorrelated import DecorrelatedKMeans
from partita.views.orthogonal import OrthogonalViews
from partita.views.overlapping.estimator import OverlappingViews

__all__ = ["CrossCat", "DecorrelatedKMeans", "OrthogonalViews", "OverlappingViews"]
