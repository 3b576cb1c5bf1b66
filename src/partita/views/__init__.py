"""Views: one table, many clusterings, each by its own columns."""
