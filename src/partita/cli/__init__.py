"""The command line: ``partita consensus labels.csv``, ``partita cluster table.csv``; ``partita --help`` lists all."""

from partita.cli.start import main

__all__ = ["main"]
