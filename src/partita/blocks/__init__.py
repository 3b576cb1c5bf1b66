"""Clusterings of rows and columns at the same time: relations with block structure."""

from partita.blocks.estimator import RelationalBlocks

__all__ = ["RelationalBlocks"]
