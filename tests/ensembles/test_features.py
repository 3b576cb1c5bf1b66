import numpy as np
import pytest

from partita.ensembles import learn_scaling, read_features, scaled
from partita.table import read_table


@pytest.fixture
def mixed():
    rng = np.random.default_rng(0)
    return {
        "height": rng.normal(170, 10, 60),
        "visits": rng.poisson(6, 60).astype(float),
        "smokes": rng.random(60) < 0.3,
        "town": np.array(["Ulm", "Bonn", "Kiel"])[rng.integers(3, size=60)],
    }


def test_every_column_of_the_table_weighs_the_same(mixed):
    values, scaling, _ = read_features(mixed)
    variances = np.bincount(scaling.source, values.var(axis=0))
    np.testing.assert_allclose(variances, 1.0)
    assert scaling.source.tolist() == [0, 1, 2, 3, 3, 3]


def test_a_missing_cell_gets_the_mean_of_its_column(mixed):
    mixed["height"][3] = np.nan
    mixed["town"] = mixed["town"].astype(object)
    mixed["town"][5] = None
    values, scaling, _ = read_features(mixed)
    assert values[3, 0] == 0.0
    assert (values[5, scaling.source == 3] == 0.0).all()
    np.testing.assert_allclose(values.mean(axis=0), 0.0, atol=1e-12)


def test_units_do_not_matter_unless_asked_for():
    X = np.random.default_rng(0).normal(size=(50, 2))
    far = X * [1e6, 1e-3] + [1e7, 5]
    np.testing.assert_allclose(read_features(X).values, read_features(far).values, atol=1e-7)
    own = read_features(far, standardize=False).values
    np.testing.assert_allclose(own.std(axis=0), far.std(axis=0))


def test_new_rows_are_scaled_as_the_old_ones_were(mixed):
    table = read_table(mixed)
    scaling = learn_scaling(table)
    again = read_table({name: column[:7] for name, column in mixed.items()}, schema=table.schema)
    np.testing.assert_array_equal(scaled(again, scaling), scaled(table, scaling)[:7])


def test_a_constant_column_is_zero():
    assert (read_features([[1.0, 2.0], [1.0, 3.0]]).values[:, 0] == 0).all()


def test_sparse_tables_are_refused_with_a_way_out():
    from scipy import sparse

    with pytest.raises(TypeError, match="TruncatedSVD"):
        read_features(sparse.eye_array(4, format="csr"), "count")


def test_ordinal_columns_are_one_feature_of_ranks():
    table = read_table([["low"], ["high"], ["mid"], [None]], "low < mid < high")
    values = scaled(table, learn_scaling(table)).ravel()
    assert values[0] < values[2] < values[1] and values[3] == 0.0
