"""The schema: JSON, decoding, description."""

import dataclasses
import json
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partita.table import ColumnSchema, Schema, read_table


def mixed_table():
    return read_table(
        pd.DataFrame(
            {
                "text": ["b", None, "a"],
                "whole": [3, 5, 3],
                "float codes": [1.0, 2.0, np.nan],
                "flag": [True, False, True],
                "zero one": [0, 1, 1],
                "real": [0.1, 0.2, 0.4],
                "count": [1, 2, 3],
                "declared": pd.Categorical(["u", "v", "u"], categories=["w", "v", "u"]),
                "huge": np.array([2**64 - 1, 0, 5], dtype=np.uint64),
                "empty": [None, None, None],
            }
        ),
        {"count": "count"},
    )


def typed(levels):
    return [(type(level), level) for level in levels]


def test_json_round_trip_keeps_values_and_types():
    schema = mixed_table().schema
    back = Schema.from_dict(json.loads(json.dumps(schema.to_dict(), allow_nan=False)))
    assert back == schema
    for one, two in zip(schema.columns, back.columns, strict=True):
        assert typed(one.levels) == typed(two.levels)
        assert typed(one.levels_declared) == typed(two.levels_declared)
    assert [typed(schema.column(name).levels)[0][0] for name in ("text", "whole", "float codes", "flag")] == [
        str,
        int,
        float,
        bool,
    ]


def test_pickle():
    schema = mixed_table().schema
    schema.column("text")
    assert pickle.loads(pickle.dumps(schema)) == schema


def test_frozen():
    schema = mixed_table().schema
    with pytest.raises(dataclasses.FrozenInstanceError):
        schema.named = False
    with pytest.raises(dataclasses.FrozenInstanceError):
        schema.columns[0].kind = "real"


def test_kinds_read_the_same_data_again():
    frame = pd.DataFrame({"a": [1, 2], "b": [None, None], "c": [0.5, 1.5]})
    schema = read_table(frame).schema
    assert read_table(frame, schema.kinds).schema == schema


def test_decode():
    schema = mixed_table().schema
    assert schema.decode("text", [1, 0, -1]).tolist() == ["b", "a", None]
    assert schema.decode("whole", np.array([[0, 1], [-1, 0]], dtype=np.int8)).tolist() == [[3, 5], [None, 3]]
    assert schema.decode("flag", [1]).tolist() == [True]
    assert schema.decode(0, []).tolist() == []
    with pytest.raises(ValueError, match=r"column 'text' must lie in -1 \.\. 1, got 0 \.\. 2"):
        schema.decode("text", [0, 2])
    with pytest.raises(ValueError, match="must lie in"):
        schema.decode("text", [-2])
    with pytest.raises(ValueError, match="must be integers"):
        schema.decode("text", [0.5])
    with pytest.raises(ValueError, match="column 'real' is real and has no codes"):
        schema.decode("real", [0])
    with pytest.raises(ValueError, match="no column 'nope'"):
        schema.decode("nope", [0])
    with pytest.raises(ValueError, match="no column at position 10"):
        schema.column(10)


def test_describe():
    text = mixed_table().schema.describe()
    assert text.splitlines()[0].split()[:4] == ["column", "kind", "decided", "by"]
    assert "2 levels: 'a', 'b'" in text and "empty        ignore" in text
    long = read_table(pd.DataFrame({"n" * 10_000: ["v" * 10_000, "w"]})).schema.describe()
    assert len(long) < 400


def test_of_kind():
    schema = mixed_table().schema
    assert [column.name for column in schema.of_kind("binary")] == ["flag", "zero one"]
    with pytest.raises(ValueError, match="unknown kind 'number'"):
        schema.of_kind("number")


DAMAGE = {
    "format": lambda d: d.update(format=99),
    "no columns": lambda d: d.pop("columns"),
    "columns no list": lambda d: d.update(columns=3),
    "missing key": lambda d: d["columns"][0].pop("levels"),
    "kind": lambda d: d["columns"][0].update(kind="color"),
    "level type": lambda d: d["columns"][0].update(levels=["a", 1]),
    "bool for int": lambda d: d["columns"][1].update(levels=[True, 5]),
    "level order": lambda d: d["columns"][0].update(levels=["b", "a"]),
    "level twice": lambda d: d["columns"][0].update(levels=["a", "a"]),
    "no levels": lambda d: d["columns"][0].update(levels=[]),
    "scale": lambda d: d["columns"][5].update(scale=0.0),
    "center": lambda d: d["columns"][5].update(center=float("nan")),
    "text for number": lambda d: d["columns"][5].update(center="one"),
    "name twice": lambda d: d["columns"][0].update(name="whole"),
    "missing codes": lambda d: d["columns"][1].update(missing_codes=[None]),
    "format of text": lambda d: d["columns"][1].update(format={"holds": "words"}),
    "account": lambda d: d.update(account={"columns": [{"size": 1}]}),
    "binary with three": lambda d: d["columns"][4].update(levels=[0, 1, 2]),
    "column no mapping": lambda d: d["columns"].append(3),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_damaged_dictionaries_are_refused(damage):
    saved = mixed_table().schema.to_dict()
    damage(saved)
    with pytest.raises(ValueError, match="schema"):
        Schema.from_dict(saved)


def test_not_a_dictionary():
    with pytest.raises(ValueError, match="not a schema"):
        Schema.from_dict([1])


levels = st.one_of(
    st.lists(st.text(), min_size=1, max_size=20),
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=20),
    st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=20),
    st.lists(st.booleans(), min_size=1, max_size=20),
    st.lists(st.integers(-(2**60), 2**60).map(float), min_size=1, max_size=20),
)


@settings(max_examples=300, deadline=None)
@given(levels, st.data())
def test_any_column_of_values_round_trips(values, data):
    """Reading, saving, loading, reading again and decoding returns the user's values."""
    holes = data.draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values)))
    cells = [None if hole else value for hole, value in zip(holes, values, strict=True)]
    if all(holes):
        cells.append(values[0])
    column = np.empty((len(cells), 1), dtype=object)
    column[:, 0] = cells
    table = read_table(column, "categorical", negative="level")
    codes = table.column("x0").values
    assert typed(table.schema.decode("x0", codes)) == typed(cells)
    assert sorted(set(codes.tolist()) - {-1}) == list(range(table.schema.column("x0").n_levels))
    schema = Schema.from_dict(json.loads(json.dumps(table.schema.to_dict())))
    again = read_table(column[::-1], schema=schema, handle_unknown="error")
    np.testing.assert_array_equal(again.column("x0").values, codes[::-1])


def test_column_schema_by_hand():
    column = ColumnSchema("a", "binary", "int", (0, 1))
    assert ColumnSchema.from_dict(column.to_dict()) == column
