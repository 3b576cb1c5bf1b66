"""Estimators among other libraries: AnnData, frames with dates, columns in another order, searches and containers."""

import warnings

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from partita import BayesianTree, Consensus, KMedoids, LatentClass, Mixture, annotate
from partita.estimator import DataWarning
from partita.table import read_table

Z = np.tile([0, 1, 2], 20)


@pytest.fixture
def X(global_random_seed):
    return np.random.default_rng(global_random_seed).normal(size=(60, 4)) + 8.0 * Z[:, None]


def em(**parameters):
    return Mixture(inference="em", n_clusters=3, random_state=0, **parameters)


def cells_of(X):
    anndata = pytest.importorskip("anndata")
    cells = anndata.AnnData(X)
    cells.var_names = [f"gene{j}" for j in range(X.shape[1])]
    return cells


@pytest.mark.parametrize(
    "model", [em(), KMedoids(3, random_state=0), BayesianTree(random_state=0)], ids=lambda m: type(m).__name__
)
def test_anndata_is_its_matrix_with_the_names_of_its_variables(X, model):
    cells = cells_of(X)
    model.fit(cells)
    assert list(model.feature_names_in_) == ["gene0", "gene1", "gene2", "gene3"]
    np.testing.assert_array_equal(model.labels_, type(model)(**model.get_params()).fit(X).labels_)
    np.testing.assert_array_equal(model.predict(cells), model.predict(cells.to_df()))
    assert annotate(cells, model).obs["partita"].astype(int).tolist() == model.labels_.tolist()


def test_anndata_in_another_order_of_variables(X):
    cells = cells_of(X)
    model = em().fit(cells)
    with pytest.warns(DataWarning, match="matched by their names"):
        moved = model.predict(cells[:, ::-1].copy())
    np.testing.assert_array_equal(moved, model.labels_)


def test_anndata_with_counts_or_without_a_matrix(X):
    anndata, sparse = pytest.importorskip("anndata"), pytest.importorskip("scipy.sparse")
    counts = anndata.AnnData(sparse.csr_matrix(np.abs(X).round()))
    table = read_table(counts, "count")
    assert table.sparse is not None and table.n_rows == 60
    with pytest.raises(ValueError, match=r"the AnnData has no X: pass a part of it, such as obsm\['X_pca'\]"):
        em().fit(anndata.AnnData(obs={"cell": np.arange(60)}, obsm={"X_pca": X}))
    doubled = cells_of(X)
    doubled.var_names = ["a", "a", "b", "c"]
    with pytest.raises(ValueError, match="duplicate variable names: 'a'; call var_names_make_unique"):
        em().fit(doubled)


def frames(X):
    """The same table with a date, a missing one too, as frames of both libraries with different types of dates."""
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    days = [np.datetime64("2020-01-01") + np.timedelta64(int(400 * z + i % 30), "D") for i, z in enumerate(Z)]
    when = pd.Series(pd.to_datetime(days))
    when[3] = pd.NaT
    dates = [None if day is pd.NaT else day.date() for day in when]
    plain = pd.DataFrame({"when": when, "x": X[:, 0], "who": np.array(["a", "b", "c"])[Z]})
    yield "pandas", plain
    yield "pandas with a time zone", plain.assign(when=when.dt.tz_localize("Europe/Berlin"))
    yield "pandas with objects", plain.assign(when=dates)
    yield "pandas with durations", plain.assign(when=when - pd.Timestamp("2019-01-01"))
    polars = pl.DataFrame({"when": dates, "x": X[:, 0], "who": plain["who"].tolist()})
    yield "polars", polars
    yield "polars with times", polars.with_columns(pl.col("when").cast(pl.Datetime))


def test_frames_with_dates_in_any_order_of_columns(X):
    found = []
    for name, frame in frames(X):
        model = em().fit(frame)
        assert model.schema_.kinds == ("date", "real", "categorical"), name
        with pytest.warns(DataWarning, match="matched by their names"):
            moved = model.predict(frame[["who", "x", "when"]])
        np.testing.assert_array_equal(moved, model.labels_, err_msg=name)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            np.testing.assert_array_equal(model.predict(frame), model.labels_, err_msg=name)
        found.append(model.labels_)
    for labels in found[1:]:
        np.testing.assert_array_equal(labels, found[0])


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_containers_at_the_end_of_a_pipeline(X, container):
    library = pytest.importorskip(container)
    pipeline = make_pipeline(StandardScaler(), em()).set_output(transform=container)
    memberships = pipeline.fit(X).transform(X)
    assert isinstance(memberships, library.DataFrame)
    assert list(memberships.columns) == list(pipeline.get_feature_names_out())
    np.testing.assert_array_equal(memberships.to_numpy().argmax(axis=1), pipeline.predict(X))


def test_a_search_over_the_number_of_groups(X):
    folds = KFold(3, shuffle=True, random_state=0)
    numbers = {"mixture__n_clusters": [1, 3]}
    search = GridSearchCV(make_pipeline(StandardScaler(), em()), numbers, cv=folds, error_score="raise")
    assert search.fit(X).best_params_ == {"mixture__n_clusters": 3}


def test_a_search_over_the_number_of_classes(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    z = np.arange(400) % 2
    answers = (rng.random((400, 8)) < np.where(z, 0.9, 0.1)[:, None]).astype(int)
    folds = KFold(2, shuffle=True, random_state=0)
    search = GridSearchCV(
        LatentClass(1, random_state=0), {"n_clusters": [1, 2]}, cv=folds, error_score="raise"
    )
    assert search.fit(answers).best_params_ == {"n_clusters": 2}


def test_labelings_in_another_order(X):
    pd = pytest.importorskip("pandas")
    runs = pd.DataFrame({f"run{m}": np.where(np.arange(60) % 7 == m, 0, Z) for m in range(5)})
    model = Consensus(random_state=0).fit(runs)
    with pytest.warns(DataWarning, match="matched by their names"):
        moved = model.predict(runs[runs.columns[::-1]])
    np.testing.assert_array_equal(moved, model.predict(runs))
