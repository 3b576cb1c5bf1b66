"""Rows and columns together: relations whose cells come in blocks."""

from partita.blocks.model import RelationalBlocks

__all__ = ["RelationalBlocks"]
