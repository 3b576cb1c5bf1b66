"""Where the work runs: blocks of rows, and the executors that map over them."""

from partita.execution.executors import BLOCK_ROWS, Serial, Threads, make_executor, row_blocks

__all__ = ["BLOCK_ROWS", "Serial", "Threads", "make_executor", "row_blocks"]
