"""What is set aside, and the account of how each column was read."""

import json

import numpy as np
import pandas as pd
import pytest

from partita.table import Schema, read_table
from partita.table.account import TableAccount

RNG = np.random.default_rng(0)
N = 60
SIZE = RNG.normal(size=N)


def read(**columns):
    table = read_table({"size": SIZE, **columns})
    return (
        table,
        {note.code: note for note in table.notes},
        {c.column: c for c in table.schema.account.columns},
    )


ASIDE = {
    "name": (np.array([f"visitor {k}" for k in range(N)]), "identifier"),
    "row": (np.arange(N) + 1, "identifier"),
    "customer": (5_000 + np.cumsum(RNG.integers(1, 9, N)), "identifier"),
    "record": (RNG.permutation(N) + 7, "identifier"),
    "patient_id": (RNG.permutation(10_000)[:N], "identifier"),
    "zip": (np.array([f"{k % 40:05d}" for k in range(N)]), "postal_code"),
    "zip_code": (10_000 + np.arange(N) % 40, "postal_code"),
    "remark": (np.array([f"came by tram number {k % 25} and left" for k in range(N)]), "free_text"),
    "town": (np.array([f"town {k % 40}" for k in range(N)]), "free_text"),
}


@pytest.mark.parametrize("name", ASIDE)
def test_columns_that_are_set_aside(name):
    values, code = ASIDE[name]
    table, notes, account = read(**{name: values})
    assert table.schema.kinds == ("real", "ignore") and [column.name for column in table.columns] == ["size"]
    assert (
        notes[code].level == "warning"
        and notes[code].columns == (name,)
        and "set aside" in notes[code].message
    )
    assert account[name].kind == "ignore" and account[name].remarks.startswith("set aside")
    assert f"--kind {name}=categorical" in account[name].change
    declared = read_table({"size": SIZE, name: values}, {name: "categorical"})
    assert declared.schema.kinds == ("real", "categorical")


KEPT = {
    "plan": np.array(["a", "b", "c"] * (N // 3)),
    "month": np.arange(N) % 12 + 1,
    "code": np.array(["01", "02", "03"] * (N // 3)),
    "id": np.arange(N) % 30,
    "sizes": RNG.permutation(1000)[:N],
    "city": np.array([f"city {k % 22}" for k in range(N)]),
}


@pytest.mark.parametrize("name", KEPT)
def test_columns_that_are_modeled(name):
    table, _, _ = read(**{name: KEPT[name]})
    assert "ignore" not in table.schema.kinds


def test_ranks_and_sorted_measurements_are_modeled():
    """Several columns of consecutive numbers are ranks; numbers that rise in large steps are measurements."""
    ranks = {f"rank {j}": RNG.permutation(N) for j in range(2)}
    assert read(**ranks)[0].schema.kinds == ("real", "real", "real")
    assert read(area=np.cumsum(RNG.integers(1, 900, N)))[0].schema.kinds == ("real", "real")
    text = pd.DataFrame({"size": SIZE, "record": [str(k) for k in RNG.permutation(N)]})
    assert read_table(text).schema.kinds == ("real", "ignore")


def test_the_account_names_what_is_unusual():
    columns = {
        "same": SIZE,
        "flat": np.ones(N),
        "empty": np.full(N, np.nan),
        "spend": np.where(RNG.random(N) < 0.7, 0.0, np.exp(3 * RNG.normal(size=N))),
        "age": np.where(np.arange(N) < 5, 999.0, np.linspace(18, 80, N).round()),
        "word": np.array(["yes", "-", "no"] * (N // 3), dtype=object),
    }
    table, _, account = read(**columns)
    assert account["same"].remarks == "repeats 'size'"
    assert account["flat"].remarks == "constant"
    assert account["empty"].decided == "no observed value" and account["empty"].n_missing == N
    assert "0 in " in account["spend"].remarks and "skewed" in account["spend"].remarks
    assert account["age"].remarks.startswith("missing code? 999 in 5 rows")
    assert account["age"].change == "missing_codes={'age': 999}, --na age=999"
    assert (account["word"].n_missing, account["word"].missing_as, account["word"].n_distinct) == (20, "-", 2)
    text = table.schema.describe()
    assert all(name in text for name in columns) and "60 rows." in text


def test_duplicate_rows_are_counted():
    X = np.repeat(RNG.normal(size=(30, 2)), 2, axis=0)
    X[0, 0] = np.nan
    account = read_table(X).schema.account
    assert account.n_duplicate_rows == 29 and "29 repeat an earlier row" in account.sentence()
    words = pd.DataFrame({"a": ["x", None, "x", None], "b": [1.5, 2.5, 1.5, 2.5]})
    assert read_table(words).schema.account.n_duplicate_rows == 2


def test_the_account_of_a_large_table_is_that_of_a_sample(monkeypatch):
    from partita.table import statistics

    monkeypatch.setattr(statistics, "MAX_ACCOUNT_ROWS", 20)
    account = read_table({"size": SIZE}).schema.account
    assert account.n_sampled == 20 and "those of 20 of them" in account.sentence()
    assert account.columns[0].n_distinct == 20


def test_the_account_is_saved_with_the_schema():
    schema = read(word=np.array(["yes", "no"] * (N // 2)))[0].schema
    again = Schema.from_dict(json.loads(json.dumps(schema.to_dict())))
    assert again.account == schema.account and isinstance(again.account, TableAccount)
    assert again.describe() == schema.describe()


def test_options_of_names_with_spaces_can_be_copied():
    _, _, account = read(**{"pain (0-10)": np.where(np.arange(N) % 9, np.arange(N) % 11, 999)})
    assert account["pain (0-10)"].change.endswith("--na 'pain (0-10)=999'")
    assert account["size"].change.endswith("--kind size=ignore")
