"""Consensus of label matrices on a device: the answer of the host, and nothing of the size of the matrix copied."""

import numpy as np
import pytest

from partita import NBCE, Consensus, MixtureConsensus
from partita.execution.later import Later

xp = pytest.importorskip("array_api_strict", reason="array-api-strict plays the device")


def on(values):
    return xp.asarray(values, device=xp.Device("device1"))


def members(rng, n_rows=300):
    z = rng.integers(3, size=n_rows)
    codes = np.where(rng.random((n_rows, 6)) < 0.8, z[:, None], rng.integers(4, size=(n_rows, 6)))
    return codes, z


def models():
    asked = {"n_clusters": 3, "n_init": 1, "max_iter": 8, "tol": 0.0, "random_state": 0}
    return [MixtureConsensus(**asked), NBCE(inference="vb", **asked)]


@pytest.mark.filterwarnings("ignore:.* did not converge")
@pytest.mark.parametrize("number", [0, 1])
def test_the_answer_is_that_of_the_host(number, global_random_seed):
    codes, _ = members(np.random.default_rng(global_random_seed))
    codes[::9, 1] = -1
    codes[7] = -1  # a row without labels
    here, there = (models()[number].fit(X) for X in (codes, on(codes)))
    np.testing.assert_array_equal(there.labels_, here.labels_)
    np.testing.assert_allclose(there.confidence_, here.confidence_, atol=1e-3)
    np.testing.assert_allclose(there.weights_, here.weights_, rtol=1e-4)
    np.testing.assert_array_equal(there.predict(codes[:40]), here.predict(codes[:40]))
    np.testing.assert_array_equal(there.at(2).labels, here.at(2).labels)
    np.testing.assert_allclose(there.grain_.support, here.grain_.support, atol=1e-3)
    assert len(there._uncertain[0])


@pytest.mark.filterwarnings("ignore:.* did not converge")
@pytest.mark.parametrize("number", [0, 1])
def test_labels_are_fetched_when_they_are_read(number, monkeypatch, global_random_seed):
    codes, _ = members(np.random.default_rng(global_random_seed))
    fetched = []
    get = Later.get
    monkeypatch.setattr(Later, "get", lambda self: fetched.append(1) or get(self))
    model = models()[number].fit(on(codes))
    assert not fetched
    assert len(model.labels_) == len(model.confidence_) == len(codes)
    n = len(fetched)
    assert n and len(model.labels_) == len(codes) and len(fetched) == n  # once


def test_what_a_device_cannot_do_is_said(global_random_seed):
    codes, _ = members(np.random.default_rng(global_random_seed))
    with pytest.raises(ValueError, match="Consensus does not run on a device: MixtureConsensus does"):
        Consensus().fit(on(codes))
    with pytest.raises(ValueError, match="NBCE does not run on a device"):
        NBCE().fit(on(codes))
    with pytest.raises(ValueError, match="noise='cluster' is for labels on the host"):
        MixtureConsensus(noise="cluster").fit(on(codes))
