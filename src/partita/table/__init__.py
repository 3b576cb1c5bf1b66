"""Read tables of any type into typed columns, at fit and at predict time.

`read_table` reads arrays, data frames and sparse matrices into a `Table`. Its `Schema` stores what is needed to read
new data in the same way, and to turn codes back into the user's values.
"""

from partita.table.errors import FileError
from partita.table.files import FileTable, read_file
from partita.table.kinds import CODED_KINDS, KINDS
from partita.table.notes import Note
from partita.table.reading import read_table
from partita.table.schema import ColumnSchema, Schema
from partita.table.tables import Column, KindBlock, Table
from partita.table.weights import check_weights

__all__ = [
    "CODED_KINDS",
    "KINDS",
    "Column",
    "ColumnSchema",
    "FileError",
    "FileTable",
    "KindBlock",
    "Note",
    "Schema",
    "Table",
    "check_weights",
    "read_file",
    "read_table",
]
