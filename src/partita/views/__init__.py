"""Views: one table, many clusterings, each by its own columns."""

from partita.views.crosscat import CrossCat

__all__ = ["CrossCat"]
