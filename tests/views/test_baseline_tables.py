"""The tables that `DecorrelatedKMeans` and `OrthogonalViews` take, and those that they refuse."""

import numpy as np
import pytest

from partita import DecorrelatedKMeans, OrthogonalViews

CLASSES = [DecorrelatedKMeans, OrthogonalViews]


@pytest.mark.parametrize("cls", CLASSES)
def test_row_86_the_layout_of_an_array_does_not_matter(cls, rng):
    X = rng.normal(size=(200, 5)) * 10.0 ** rng.integers(-3, 4, size=5)
    one, *others = (
        cls([3, 2], random_state=0).fit(given)
        for given in (X, np.asfortranarray(X), X[::-1].copy()[::-1], np.repeat(X, 2, axis=1)[:, ::2])
    )
    for other in others:
        assert np.array_equal(one.view_labels_, other.view_labels_)


@pytest.mark.parametrize("cls", CLASSES)
def test_row_86_tables_of_any_container(cls, rng):
    import pandas as pd
    import polars as pl

    X = rng.normal(size=(40, 3))
    names = ["a", "b", "c"]
    plain = cls([2, 2], random_state=0).fit(X)
    for frame in (pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)):
        model = cls([2, 2], random_state=0).fit(frame)
        assert np.array_equal(model.view_labels_, plain.view_labels_)
        assert model.feature_names_in_.tolist() == names
        assert np.array_equal(model.predict(frame), plain.predict(X))


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize(
    "bad, words", [(np.inf, "column 'x1', row 5"), (np.nan, "column 'x1' has no value in row 5")]
)
def test_row_86_bad_cells_are_named(cls, bad, words, rng):
    X = rng.normal(size=(40, 3))
    model = cls([2, 2], random_state=0).fit(X)
    X[5, 1] = bad
    with pytest.raises(ValueError, match=words):
        cls([2, 2]).fit(X)
    with pytest.raises(ValueError, match=words):
        model.predict(X)
