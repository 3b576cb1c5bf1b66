"""Rows of the table of bad inputs that concern these estimators."""

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse as sp
from sklearn.exceptions import NotFittedError

from partita import AffinityPropagation, SpectralClustering
from partita.estimator import DataWarning
from partita.metrics import adjusted_rand

MODELS = {
    "affinity": lambda **options: AffinityPropagation(preference=-20.0, random_state=0, **options),
    "spectral": lambda **options: SpectralClustering(random_state=0, **options),
}


@pytest.fixture(params=MODELS)
def make(request):
    return MODELS[request.param]


def test_rows_1_to_6_missing_and_infinite_cells(make, two_groups):
    X, z = two_groups
    X = X.copy()
    X[3, 0] = np.nan
    model = make().fit(X)
    assert adjusted_rand(model.labels_, z) == 1.0 and "missing" in model.fit_report_
    objects = X.astype(object)
    objects[3, 0], objects[5, 1], objects[6, 1] = None, pd.NA, np.nan
    assert adjusted_rand(make().fit(objects).labels_, z) == 1.0
    X[7] = np.nan  # a row that says nothing is kept, and told of
    with pytest.warns(DataWarning, match="1 row without any observed value"):
        model = make().fit(X)
    assert len(model.labels_) == len(X) and model.labels_.min() >= 0
    with pytest.warns(DataWarning, match="without any observed value are ignored"):
        make().fit(np.column_stack([two_groups[0], np.full(len(X), np.nan)]))
    with pytest.raises(ValueError, match=r"'x1', row 2"):
        make().fit([[0.0, 1.0], [1.0, 2.0], [2.0, np.inf]])
    with pytest.raises(ValueError, match="every cell is missing"):
        make().fit(np.full((4, 2), np.nan))


def test_rows_7_to_10_constant_identical_few(make, two_groups, quiet):
    X, z = two_groups
    model = make().fit(np.column_stack([X, np.ones(len(X))]))
    assert adjusted_rand(model.labels_, z) == 1.0
    with quiet():
        assert make().fit(np.full((6, 2), 3.5)).n_clusters_ == 1
        assert make().fit([[0.5, 1.5]]).labels_.tolist() == [0]
    assert make().fit([[0.5, 1.5], [2.5, 2.5]]).labels_.shape == (2,)
    with pytest.raises(ValueError, match="0 sample"):
        make().fit(np.empty((0, 2)))


def test_row_11_more_clusters_than_rows(global_random_seed):
    with pytest.warns(DataWarning, match="n_clusters is 5, and there are only 3 distinct rows"):
        model = SpectralClustering(5, random_state=global_random_seed).fit([[0.5], [1.5], [7.5], [7.5]])
    assert model.n_clusters_ == 3


def test_rows_16_to_19_containers(make, two_groups):
    X, z = two_groups
    x, y, color = X[:, 0], X[:, 1], np.where(z == 1, "red", "blue")
    frames = [
        pd.DataFrame(
            {"x": x, "y": y, "color": pd.Categorical(color, ["blue", "green", "red"]), "on": z == 1}
        ),
        pl.DataFrame({"x": x, "y": y, "color": pl.Series(color, dtype=pl.Categorical), "on": z == 1}),
        pd.DataFrame({"x": x, "y": y, "color": pd.array(color, "string"), "on": pd.array(z, "Int64")}),
    ]
    first, *others = [make().fit(frame).labels_ for frame in frames]
    assert adjusted_rand(first, z) == 1.0
    for labels in others:
        np.testing.assert_array_equal(labels, first)


def test_row_27_unknown_levels(make):
    z = np.repeat([0, 1], 15)
    frame = pd.DataFrame({"x": np.linspace(0, 1, 30) + 9 * z, "color": np.where(z == 1, "red", "blue")})
    new = pd.DataFrame({"x": [0.2, 9.5], "color": ["green", "red"]})
    model = make().fit(frame)
    with pytest.warns(DataWarning, match="not seen at fit"):
        assert model.predict(new).tolist() == [model.labels_[0], model.labels_[-1]]
    with pytest.raises(ValueError, match="'green' was not seen at fit"):
        make(handle_unknown="error").fit(frame).predict(new)


def test_rows_28_and_29_names(make, two_groups):
    frame = pd.DataFrame(two_groups[0], columns=["height", "weight"])
    model = make().fit(frame)
    assert model.feature_names_in_.tolist() == ["height", "weight"]
    with pytest.warns(DataWarning, match="another order"):
        np.testing.assert_array_equal(model.predict(frame[["weight", "height"]]), model.predict(frame))
    with pytest.raises(ValueError, match="X has 1 features"):
        model.predict(frame.to_numpy()[:, :1])
    with pytest.raises(ValueError, match="duplicate column names"):
        make().fit(pd.DataFrame(two_groups[0], columns=["a", "a"]))


@pytest.mark.parametrize("scale, offset", [(1e200, 0), (1e-200, 0), (1.0, 1e9), (-3.0, 5.0)])
def test_row_30_units(make, two_groups, quiet, scale, offset):
    with quiet():
        model = make().fit(two_groups[0] * scale + offset)
    assert adjusted_rand(model.labels_, make().fit(two_groups[0]).labels_) == 1.0


def test_row_31_dtypes(make, two_groups):
    X = two_groups[0].astype(np.float16)
    expected = make().fit(X.astype(np.float64)).labels_
    for dtype in (np.float16, np.float32, np.longdouble):
        np.testing.assert_array_equal(make().fit(X.astype(dtype)).labels_, expected)
    with pytest.raises(ValueError, match="Complex data"):
        make().fit(X.astype(complex))


def test_row_33_two_points(make, quiet, global_random_seed):
    X = np.repeat([[0.5, 1.5], [4.5, 2.5]], [30, 20], axis=0)
    with quiet():
        model = make().fit(X)
    assert len(np.unique(model.labels_[:30])) == len(np.unique(model.labels_[30:])) == 1
    two = SpectralClustering(2, random_state=global_random_seed).fit(X)
    assert np.bincount(two.labels_).tolist() == [30, 20]


def test_rows_41_and_42_layouts(make, two_groups):
    X = two_groups[0]
    expected = make().fit(X).labels_
    readonly = X.copy()
    readonly.flags.writeable = False
    for other in (np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2], readonly, X.astype(">f8"), X.tolist()):
        np.testing.assert_array_equal(make().fit(other).labels_, expected)
    masked = np.ma.masked_array(X, np.zeros(X.shape, bool))
    np.testing.assert_array_equal(make().fit(masked).labels_, expected)
    with pytest.raises(TypeError):
        make().fit(np.matrix(X))
    with pytest.raises(TypeError, match="Sparse data was passed"):
        make().fit(sp.csr_array(X))
    with pytest.raises(ValueError, match="reshape"):
        make().fit(X[:, 0])


def test_row_43_weights(two_groups):
    X = two_groups[0]
    for bad in (-np.ones(45), np.full(45, np.nan), np.ones(3), np.zeros(45)):
        with pytest.raises(ValueError):
            MODELS["affinity"]().fit(X, sample_weight=bad)


def test_row_51_random_states(two_groups, global_random_seed):
    X = two_groups[0]
    for cls in (AffinityPropagation, SpectralClustering):
        before = np.random.get_state()[1].copy()
        for state in (
            None,
            3,
            np.random.RandomState(0),
            np.random.default_rng(global_random_seed),
            np.random.SeedSequence(1),
        ):
            cls(random_state=state).fit(X)
        assert (np.random.get_state()[1] == before).all()
        with pytest.raises(ValueError, match="not negative"):
            cls(random_state=-1).fit(X)


def test_rows_64_and_65_again_and_before(make, two_groups):
    X = two_groups[0]
    with pytest.raises(NotFittedError):
        make().predict(X)
    model = make().fit(X)
    labels = model.labels_.copy()
    np.testing.assert_array_equal(model.fit(X).labels_, labels)
    np.testing.assert_array_equal(make().fit_predict(X), labels)
    np.testing.assert_array_equal(model.predict(X), labels)
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(twin.predict(X), labels)
    with pytest.raises(ValueError):
        model.fit(np.full((4, 2), np.nan))
    np.testing.assert_array_equal(model.labels_, labels)  # a fit that fails leaves the last good one
