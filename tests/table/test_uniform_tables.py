"""Tables that hold one measurement get one kind for all columns."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

from partita.table import read_table

RNG = np.random.default_rng(0)


def frame_of(X, stem="v"):
    return pd.DataFrame(X, columns=[f"{stem}{j}" for j in range(X.shape[1])])


def kinds_of(X, **options):
    return read_table(X, **options).schema.kinds


TABLES = {
    "pixels": (load_digits().data.astype(int), "real"),
    "grey levels": (RNG.integers(0, 256, size=(300, 40)), "real"),
    "word counts": (RNG.poisson(RNG.uniform(0.05, 0.6, size=60), size=(300, 60)), "count"),
    "counts": (RNG.poisson(5.0, size=(300, 40)), "count"),
    "a few columns of counts": (RNG.poisson(8.0, size=(300, 12)), "count"),
    "features on one scale": (
        np.hstack([RNG.binomial(15, 0.5, size=(300, 6)), RNG.integers(0, 16, size=(300, 6))]),
        "real",
    ),
    "expression": (np.where(RNG.random((300, 40)) < 0.6, 0.0, RNG.gamma(2.0, size=(300, 40))), "real"),
    "answers": (RNG.integers(1, 6, size=(300, 40)), "categorical"),
    "numbers of things": (
        RNG.poisson(RNG.lognormal(0, 1.2, size=60) * RNG.gamma(2.0, 0.5, size=(300, 60))),
        "real",
    ),
    "presence": (RNG.integers(0, 2, size=(300, 40)), "binary"),
}


@pytest.mark.parametrize("name", TABLES)
def test_one_kind_for_one_measurement(name):
    X, kind = TABLES[name]
    table = read_table(frame_of(X))
    assert set(table.schema.kinds) == {kind}


def test_the_note_says_why_and_how_to_change_it():
    X = load_digits().data.astype(int)
    notes = {note.code: note for note in read_table(frame_of(X)).notes}
    assert "the same kind ('real'); declare kinds to change this" in notes["uniform"].message
    assert "uniform" not in {note.code for note in read_table(frame_of(X[:, 18:27])).notes}  # too few columns
    assert set(kinds_of(frame_of(X), kinds="categorical")) == {"categorical"}
    assert set(kinds_of(frame_of(X), kinds={"v?": "count"})[:10]) == {"count"}


def test_fractions_with_two_values_are_two_states():
    """A full covariance would find a cluster of width zero in them; in a short column two values say nothing."""
    switch = np.where(np.arange(40) < 3, 1.0, 0.48)
    frame = {"switch": switch, "size": RNG.normal(size=40)}
    assert kinds_of(frame) == ("binary", "real")
    assert kinds_of({"switch": switch[:19], "size": frame["size"][:19]}) == ("real", "real")


def test_tables_of_several_measurements_keep_their_kinds():
    flags = RNG.integers(0, 2, size=(200, 30))
    columns = {f"flag{j}": flags[:, j] for j in range(30)}
    mixed = {**columns, "age": RNG.integers(18, 90, 200), "visits": RNG.poisson(4, 200)}
    found = dict(zip(mixed, kinds_of(mixed), strict=True))
    assert found["flag3"] == "binary" and found["age"] == "real" and found["visits"] == "count"
    with_text = {**{f"p{j}": RNG.integers(0, 17, 200) for j in range(40)}, "word": np.array(["a", "b"] * 100)}
    assert len(set(kinds_of(with_text))) == 2


def test_patterns_declare_many_columns():
    frame = frame_of(RNG.poisson(1.0, size=(50, 12)), "word")
    frame["age"] = RNG.normal(size=50)
    assert kinds_of(frame, kinds={"word*": "count"}) == ("count",) * 12 + ("real",)
    assert kinds_of(frame, kinds={"word*": "count", "word3": "real"})[3] == "real"
    assert kinds_of(frame, kinds={"word?": "count", "word1[01]": "ignore"})[9:12] == (
        "count",
        "ignore",
        "ignore",
    )
    with pytest.raises(ValueError, match=r"kinds: no column matches 'term\*'; the columns are 'word0'"):
        read_table(frame, {"term*": "count"})
    with pytest.raises(ValueError, match="kinds declares column 'word1' twice"):
        read_table(frame, {"word*": "count", "*1": "real"})
    literal = pd.DataFrame({"a*": [1, 2], "ab": [1, 2]})
    assert kinds_of(literal, kinds={"a*": "count"}) == ("count", "categorical")
