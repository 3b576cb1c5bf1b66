"""Words for the page; they live with the findings, which speak in them too."""

from partita.summaries.words import count, number, percent, safe, shown

__all__ = ["count", "number", "percent", "safe", "shown"]
