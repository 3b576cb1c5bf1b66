"""A table that was read before is not read again."""

import numpy as np
import pytest

from partita.table import read_table


def test_a_table_is_returned_as_it_is():
    table = read_table({"a": np.array([1.5, 2.5]), "b": np.array(["u", "v"], dtype=object)})
    assert read_table(table) is table
    assert read_table(table, {"a": "real"}) is table
    assert read_table(table, schema=table.schema) is table


def test_a_table_that_would_be_read_differently_is_refused():
    table = read_table({"a": np.array([1.5, 2.5])})
    with pytest.raises(ValueError, match="column 'a' was read as real, and count is asked for"):
        read_table(table, "count")
    with pytest.raises(ValueError, match="another schema"):
        read_table(table, schema=read_table({"a": np.array([1.5, 9.5])}).schema)
    with pytest.raises(ValueError, match="give sample_weight to read_table"):
        read_table(table, sample_weight=[1.0, 2.0])
