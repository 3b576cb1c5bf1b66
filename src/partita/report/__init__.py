"""A fitted model on one page: a single HTML file that needs nothing else, opened by the answer in plain words."""

from partita.report.page import write_report

__all__ = ["write_report"]
