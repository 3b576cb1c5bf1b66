"""Where the work runs: blocks of rows, and the executors that map over them.

``open_blocks`` opens what need not be in memory; ``read_blocks`` learns its schema; the parts that come out are what
engines pass over, here or on a cluster.
"""

from partita.execution.choosing import choose
from partita.execution.cluster import Cluster
from partita.execution.executors import BLOCK_ROWS, Processes, Serial, Threads, make_executor, row_blocks
from partita.execution.journal import journaled
from partita.execution.memory import check_memory
from partita.execution.parts import LocalParts, PartData, Parts, fold, part_rows
from partita.execution.reading import PartedTable, open_parts, read_blocks, read_whole
from partita.execution.sources import BlockSource, find_blocks, open_blocks
from partita.execution.threads import one_thread_each

__all__ = [
    "BLOCK_ROWS",
    "BlockSource",
    "Cluster",
    "LocalParts",
    "PartData",
    "PartedTable",
    "Parts",
    "Processes",
    "Serial",
    "Threads",
    "check_memory",
    "choose",
    "find_blocks",
    "fold",
    "journaled",
    "make_executor",
    "one_thread_each",
    "open_blocks",
    "open_parts",
    "part_rows",
    "read_blocks",
    "read_whole",
    "row_blocks",
]
