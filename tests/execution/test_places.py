"""The same labels wherever the rows are: in memory, in a Parquet file, on Dask workers and on a device."""

import numpy as np
import pytest
from alike import label_matrix

from partita import (
    LACA,
    NBCE,
    Consensus,
    CrossCat,
    EnsembleClustering,
    EvidenceAccumulation,
    Mixture,
    MixtureConsensus,
)
from partita.consensus import LWEA, QMI, Voting, ensemble_clustering, reduction
from partita.execution import open_chunks
from partita.views.crosscat import estimator as crosscat

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
da = pytest.importorskip("dask.array")

pytestmark = pytest.mark.filterwarnings("ignore")

N_ROWS = 5000
FEW = {"n_init": 1, "max_iter": 8, "random_state": 0}
CHAIN = {"inference": "subclusters", "n_chains": 1, "burn_in": 3, "n_draws": 3, "random_state": 0}
CATEGORIES = {"kinds": "categorical"}
METHODS = {
    "Mixture by EM": Mixture(inference="em", n_clusters=4, **FEW, **CATEGORIES),
    "Mixture by VB": Mixture(inference="vb", max_clusters=6, **FEW, **CATEGORIES),
    "Mixture by memoized VB": Mixture(inference="memoized", max_clusters=6, **FEW, **CATEGORIES),
    "Mixture by sub-clusters": Mixture(**CHAIN, **CATEGORIES),
    "MixtureConsensus": MixtureConsensus(4, **FEW),
    "NBCE by VB": NBCE(inference="vb", max_clusters=6, **FEW),
    "NBCE by sub-clusters": NBCE(**CHAIN),
    "Consensus": Consensus(4, random_state=0),
    "EvidenceAccumulation": EvidenceAccumulation(4, max_exact=300, random_state=0),
    "LWEA": LWEA(4, max_exact=300, random_state=0),
    "LACA": LACA(4, max_exact=300, random_state=0),
    "Voting": Voting(4, random_state=0),
    "QMI": QMI(4, random_state=0),
    "EnsembleClustering": EnsembleClustering(n_members=4, random_state=0, **CATEGORIES),
    "CrossCat by VB": CrossCat(inference="vb", n_draws=2, random_state=0, **CATEGORIES),
}
SLOW = ("CrossCat by VB",)
ON_DEVICE = (
    "Mixture by EM",
    "Mixture by VB",
    "Mixture by memoized VB",
    "Mixture by sub-clusters",
    "MixtureConsensus",
    "NBCE by VB",
)


@pytest.fixture
def small_limits(monkeypatch):
    """Nothing of the size of the table fits into memory: distinct rows are many, and so are those of a sample."""
    monkeypatch.setattr(reduction, "MAX_BYTES", 6 * 300)
    monkeypatch.setattr(reduction, "MAX_SAMPLE", 1500)
    monkeypatch.setattr(ensemble_clustering, "MAX_ROWS", 800)
    monkeypatch.setattr(crosscat, "MAX_VB_ROWS", 800)


def table():
    """Six columns of four categories; two rows in five have a missing cell or are alone with their values."""
    Y = label_matrix(0.3, N_ROWS)
    Y[Y < 0] = 1
    return Y


def fitted(name, X, **options):
    model = METHODS[name]
    known = model.get_params(deep=False)
    options = {key: value for key, value in options.items() if key in known}  # others use the open client
    made = type(model)(**{**known, **options}).fit(X)
    return made.view_labels_ if name.startswith("CrossCat") else made.labels_


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in METHODS]
)
def test_labels_are_the_same_everywhere(name, small_limits, client, tmp_path):
    Y = table()
    here = fitted(name, Y)
    assert len(here) == N_ROWS and len(np.unique(here)) > 1
    columns = {f"x{j}": np.ascontiguousarray(Y[:, j]) for j in range(Y.shape[1])}
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet", row_group_size=1300)
    np.testing.assert_array_equal(fitted(name, open_chunks(tmp_path / "rows.parquet")), here)
    on_workers = da.from_array(Y, chunks=(1100, 6))
    np.testing.assert_array_equal(fitted(name, on_workers, executor=client), here)


@pytest.mark.parametrize("name", ON_DEVICE)
def test_labels_on_a_device_are_those_of_the_host(name):
    """Log joints of categories are in single precision there: one row in a thousand may be between two clusters."""
    xp = pytest.importorskip("array_api_strict", reason="array-api-strict plays the device")
    Y = table()
    there = fitted(name, xp.asarray(Y.astype(np.int64), device=xp.Device("device1")))
    assert np.mean(there != fitted(name, Y)) <= 1e-3
