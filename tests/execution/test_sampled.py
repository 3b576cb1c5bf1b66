"""Models that are fitted to a sample of the rows of a large table: the same labels in memory, files and chunks."""

import numpy as np
import pytest
from sklearn.base import clone

from partita import EnsembleClustering
from partita.consensus import Voting, ensemble_clustering
from partita.execution import open_chunks
from partita.metrics import adjusted_rand

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

pytestmark = pytest.mark.filterwarnings("ignore")
N_ROWS = 3000


@pytest.fixture
def table(global_random_seed):
    """Two clusterings of the rows, one of two real columns and one of two categorical columns."""
    rng = np.random.default_rng(global_random_seed)
    one, two = rng.integers(3, size=N_ROWS), rng.integers(2, size=N_ROWS)
    reals = 8.0 * np.eye(3)[one][:, :2] + rng.normal(size=(N_ROWS, 2))
    words = np.where(rng.random((N_ROWS, 3)) < 0.1, rng.integers(2, size=(N_ROWS, 3)), two[:, None])
    return {
        "a": reals[:, 0],
        "b": reals[:, 1],
        **{f"w{d}": np.array(["no", "yes"])[words[:, d]] for d in range(3)},
    }, one


def written(columns, path):
    pq.write_table(pa.table(columns), path, row_group_size=700)
    return open_chunks(path)


ENSEMBLES = {
    "Consensus": {"n_members": 5, "n_clusters": 3},
    "Voting": {
        "n_members": 4,
        "consensus": Voting(3, random_state=0),
        "rows": 0.5,
        "base": ["kmeans", "ward"],
    },
    "number of clusters": {"n_members": 5, "member_clusters": 3},
}


@pytest.mark.parametrize("name", ENSEMBLES)
def test_ensembles_of_a_sample(name, table, tmp_path, monkeypatch):
    columns, planted = table
    reals = {name: columns[name] for name in "ab"}
    monkeypatch.setattr(ensemble_clustering, "MAX_ROWS", 800)
    model = EnsembleClustering(**ENSEMBLES[name], random_state=0)
    here = model.fit(pa.table(reals))
    assert "800 of the 3,000 rows" in here.fit_report_["sample"].message
    assert here.label_matrix_.shape[0] == 800 and len(here.labels_) == len(here.confidence_) == N_ROWS
    assert adjusted_rand(here.labels_, planted) > 0.7  # votes of four members, each of half of the rows
    there = clone(model).fit(written(reals, tmp_path / "x.parquet"))
    np.testing.assert_array_equal(there.labels_, here.labels_)
    np.testing.assert_allclose(there.confidence_, here.confidence_, rtol=1e-12)
    np.testing.assert_array_equal(there.predict(tmp_path / "x.parquet"), here.labels_)
    array = np.column_stack(list(reals.values()))
    np.save(tmp_path / "x.npy", array)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    for source in (open_chunks(mapped, rows=450), open_chunks(array, rows=999), array):
        other = clone(model).fit(source)
        np.testing.assert_array_equal(other.labels_, here.labels_)


def test_an_ensemble_of_all_rows_of_chunks(table, tmp_path):
    columns, _ = table
    model = EnsembleClustering(n_members=4, random_state=0)
    here = model.fit(pa.table(columns))
    there = clone(model).fit(written(columns, tmp_path / "x.parquet"))
    np.testing.assert_array_equal(there.labels_, here.labels_)
    np.testing.assert_array_equal(there.label_matrix_, here.label_matrix_)
    assert "sample" not in there.fit_report_ and "execution" in there.fit_report_


def test_views_of_a_sample(table, tmp_path, monkeypatch):
    from partita import CrossCat, load
    from partita.views.crosscat import estimator

    columns, planted = table
    monkeypatch.setattr(estimator, "MAX_VB_ROWS", 700)
    options = {"inference": "vb", "max_iter": 20, "n_draws": 5, "random_state": 0}
    here = CrossCat(**options).fit(pa.table(columns))
    assert here.n_views_ == 2 and here.view_labels_.shape == here.confidence_.shape == (N_ROWS, 2)
    assert "700 of the 3,000 rows" in here.fit_report_["sample"].message
    assert max(adjusted_rand(planted, labels) for labels in here.view_labels_.T) > 0.9
    source = written(columns, tmp_path / "x.parquet")
    for given in (source, open_chunks(tmp_path / "x.parquet", rows=None)):
        there = CrossCat(**options).fit(given)
        np.testing.assert_array_equal(there.view_labels_, here.view_labels_)
        np.testing.assert_allclose(there.confidence_, here.confidence_, atol=1e-12)
        assert there.row_factors_.shape == here.row_factors_.shape
    np.testing.assert_array_equal(here.predict(source), here.view_labels_)
    assert here.dependence_probability("a", "b") > 0.5 and here.explain(0)
    for refused in (lambda: here.grain_, lambda: here.at(2), lambda: here.row_similarity([0, 1])):
        with pytest.raises(AttributeError, match="sample of the rows"):
            refused()
    here.save(tmp_path / "m.npz")
    again = load(tmp_path / "m.npz")
    np.testing.assert_array_equal(again.view_labels_, here.view_labels_)
    np.testing.assert_array_equal(again.predict(pa.table(columns)), here.view_labels_)


def test_views_of_all_rows_of_chunks(table, tmp_path):
    from partita import CrossCat

    columns, _ = table
    options = {"inference": "vb", "max_iter": 20, "n_draws": 5, "random_state": 0}
    here = CrossCat(**options).fit(pa.table(columns))
    there = CrossCat(**options).fit(written(columns, tmp_path / "x.parquet"))
    np.testing.assert_array_equal(there.view_labels_, here.view_labels_)
    np.testing.assert_allclose(there.confidence_, here.confidence_)
    assert there.grain_[0].n_groups == here.grain_[0].n_groups
