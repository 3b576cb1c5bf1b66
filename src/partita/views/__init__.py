"""Views: one table, many clusterings, each by its own columns."""

from partita.views.crosscat import CrossCat
from partita.views.overlapping import OverlappingViews

__all__ = ["CrossCat", "OverlappingViews"]
