"""Where the work runs: chunks of rows, shards of a table, and the executors that map over them.

``open_chunks`` opens a table that need not be in memory, and ``read_chunks`` learns its schema. The result is a table
in shards. Engines pass over the shards, on this machine or on a cluster.
"""

from partita.execution.choosing import choose
from partita.execution.cluster import Cluster, mapped
from partita.execution.executors import (
    CHUNK_ROWS,
    Part,
    Processes,
    Serial,
    Threads,
    make_executor,
    row_chunks,
)
from partita.execution.journal import journaled
from partita.execution.memory import check_memory
from partita.execution.reading import ShardedTable, open_shards, read_chunks, read_whole
from partita.execution.shards import LocalShards, ShardData, Shards, fold, shard_rows
from partita.execution.sources import ChunkSource, RowRange, find_chunks, open_chunks
from partita.execution.threads import one_thread_each

__all__ = [
    "CHUNK_ROWS",
    "ChunkSource",
    "Cluster",
    "LocalShards",
    "Part",
    "Processes",
    "RowRange",
    "Serial",
    "ShardData",
    "ShardedTable",
    "Shards",
    "Threads",
    "check_memory",
    "choose",
    "find_chunks",
    "fold",
    "journaled",
    "make_executor",
    "mapped",
    "one_thread_each",
    "open_chunks",
    "open_shards",
    "read_chunks",
    "read_whole",
    "row_chunks",
    "shard_rows",
]
