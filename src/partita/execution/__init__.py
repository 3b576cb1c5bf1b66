"""Where the work runs: blocks of rows, and the executors that map over them."""

from partita.execution.executors import BLOCK_ROWS, Serial, Threads, make_executor, row_blocks
from partita.execution.memory import check_memory
from partita.execution.threads import one_thread_each

__all__ = [
    "BLOCK_ROWS",
    "Serial",
    "Threads",
    "check_memory",
    "make_executor",
    "one_thread_each",
    "row_blocks",
]
