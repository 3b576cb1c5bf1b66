"""The kinds of every table in PARTITA_DATA. To renew the file after a look at the differences: python <this file>."""

import json
import os
from pathlib import Path

import pytest

from partita.table import read_file, read_table

GOLDEN = Path(__file__).with_name("golden_kinds.json")
FOLDER = os.environ.get("PARTITA_DATA")


def kinds_of(path):
    """Return the kinds with the columns that have them; one that all columns have is written alone."""
    columns = read_file(path).columns
    table = read_table({name: values for name, values in columns.items() if not name.startswith("class")})
    by_kind = {}
    for column in table.schema.columns:
        by_kind.setdefault(column.declared_kind, []).append(column.name)
    most = max(by_kind, key=lambda kind: len(by_kind[kind]))
    return {
        kind: f"the other {len(names)}" if kind == most else names for kind, names in sorted(by_kind.items())
    }


def stem(path):
    return path.name.removesuffix(".csv.gz")


TABLES = sorted(Path(FOLDER).glob("*.csv.gz")) if FOLDER else []


@pytest.mark.skipif(not FOLDER, reason="PARTITA_DATA names no folder")
@pytest.mark.parametrize("path", TABLES, ids=stem)
def test_kinds_do_not_change_unseen(path):
    assert kinds_of(path) == json.loads(GOLDEN.read_text(encoding="utf-8"))[stem(path)]


if __name__ == "__main__":
    GOLDEN.write_text(
        json.dumps({stem(path): kinds_of(path) for path in TABLES}, indent=1) + "\n", encoding="utf-8"
    )
