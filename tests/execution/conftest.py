"""Small tables in many shards: here a shard is one chunk, so that a few thousand rows make several shards."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from alike import label_matrix

import partita.execution.shards


@pytest.fixture(autouse=True)
def small_shards(monkeypatch):
    monkeypatch.setattr(partita.execution.shards, "SHARD_CHUNKS", 1)


@pytest.fixture(scope="module")
def cluster():
    """A Dask cluster of one worker, which is a process."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
    ) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def client(cluster):
    from distributed import Client

    with Client(cluster, timeout=60) as client:
        yield client


@pytest.fixture(scope="module")
def reals():
    """Three shards of two real columns with holes, two clusters."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9001, 2)) + np.where(rng.random((9001, 1)) < 0.4, -3.0, 3.0)
    X[rng.random(X.shape) < 0.05] = np.nan
    return X


@pytest.fixture(scope="module")
def labels():
    return label_matrix(0.3)
