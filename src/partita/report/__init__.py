"""Reports: a fitted model on one self-contained HTML page."""

from partita.report.page import write_report

__all__ = ["write_report"]
