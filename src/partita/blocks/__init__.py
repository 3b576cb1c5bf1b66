"""Rows and columns together: relations whose cells come in blocks."""

from partita.blocks.estimator import RelationalBlocks

__all__ = ["RelationalBlocks"]
