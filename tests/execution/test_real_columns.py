"""The steps of real columns out of core: the signal and directions are those of the same table in memory."""

import numpy as np
import pytest
from alike import same

from partita import Mixture
from partita.execution import open_chunks
from partita.fitting.shard_columns import RowsInShards

N = 9001  # three shards
IN_MEMORY = {"real": ("auto", {"lumps": False, "powers": False})}
ASKED = {"n_init": 1, "max_iter": 12, "random_state": 0}

pytestmark = pytest.mark.filterwarnings("ignore:Mixture did not converge", "ignore:Mixture stopped")


def groups(rng, n_columns):
    return 4.0 * rng.normal(size=(3, n_columns))[rng.integers(3, size=N)] + rng.normal(size=(N, n_columns))


def redundant(rng):
    """Two columns almost follow from the others."""
    X = groups(rng, 3)
    return np.column_stack([X, X.sum(axis=1), 3.0 - X[:, 0]]) + 0.01 * rng.normal(size=(N, 5))


def wide(rng):
    """Fewer directions than columns."""
    return groups(rng, 4) @ rng.normal(size=(4, 40)) + rng.normal(size=(N, 40))


def wide_with_holes(rng):
    return np.where(rng.random((N, 40)) < 0.05, np.nan, wide(rng))


def wide_noise(rng):
    return rng.normal(size=(N, 33)) * np.arange(1, 34)


def directions(rng):
    X = groups(rng, 5)
    return X / np.linalg.norm(X, axis=1, keepdims=True)


TABLES = {
    "redundant": (redundant, ("signal", "steps")),
    "wide": (wide, ("signal", "steps")),
    "wide with holes": (wide_with_holes, ("signal", "filled", "steps")),
    "wide noise": (wide_noise, ("steps",)),
    "directions": (directions, ("directions",)),
}


@pytest.mark.parametrize("inference", ["em", "vb"])
@pytest.mark.parametrize("name", TABLES)
def test_the_model_is_that_of_the_table_in_memory(name, inference, rng):
    make, codes = TABLES[name]
    X = make(rng)
    size = {"n_clusters": 3} if inference == "em" else {"max_clusters": 5}
    here = Mixture(IN_MEMORY, inference=inference, **size, **ASKED).fit(X)
    there = Mixture(inference=inference, **size, **ASKED).fit(open_chunks(X, rows=1000))
    assert there.n_iter_ == here.n_iter_
    np.testing.assert_array_equal(there.labels_, here.labels_)
    np.testing.assert_allclose(
        there.weights_, here.weights_, rtol=1e-6
    )  # directions may have another sign, so
    np.testing.assert_allclose(there.confidence_, here.confidence_, atol=1e-6)  # profiles are compared below
    assert there.log_likelihood_ == pytest.approx(here.log_likelihood_, rel=1e-9)
    for code in codes:
        assert code in there.fit_report_, code
    for code in {"signal", "filled", "directions"} & set(codes):
        assert here.fit_report_[code].message == there.fit_report_[code].message
    np.testing.assert_allclose(there.score_samples(X[:50]), here.score_samples(X[:50]), rtol=1e-6, atol=1e-8)
    np.testing.assert_array_equal(there.predict(open_chunks(X[:500], rows=100)), there.labels_[:500])
    for column, profile in here.profiles_.items():
        for what, values in profile.items():
            np.testing.assert_allclose(there.profiles_[column][what], values, rtol=1e-6, atol=1e-8)


def test_the_signal_is_switched_off(rng):
    X = redundant(rng)
    off = {"real": ("auto", {"signal": False})}
    model = Mixture(off, inference="em", n_clusters=3, **ASKED).fit(open_chunks(X))
    assert "signal" not in model.fit_report_
    same(Mixture("gaussian_full", inference="em", n_clusters=3, **ASKED).fit(X), model, 1e-6)


def test_rows_of_weight_zero_take_no_part_in_the_signal(rng):
    X = redundant(rng)
    X[::3] = 100.0 * rng.normal(size=X[::3].shape)
    weights = np.where(np.arange(N) % 3 == 0, 0.0, 1.0 + np.arange(N) % 2)
    models = (
        Mixture(IN_MEMORY, inference="em", n_clusters=3, **ASKED).fit(given, sample_weight=weights)
        for given in (X, open_chunks(X))
    )
    same(*models, 1e-6)


def test_moments_that_leave_out_a_shard_are_noticed(rng, monkeypatch):
    """A planted bug: the comparison with the table in memory sees it."""
    X = redundant(rng)
    X[:4096, 4] += rng.normal(size=4096)  # in the first shard nothing follows from the other columns
    moments = RowsInShards.moments

    def broken(self, signal=None):
        self._weights = np.where(np.arange(N) < 4096, 0.0, self._weights)
        return moments(self, signal)

    monkeypatch.setattr(RowsInShards, "moments", broken)
    here = Mixture(IN_MEMORY, inference="em", n_clusters=3, **ASKED).fit(X)
    there = Mixture(inference="em", n_clusters=3, **ASKED).fit(open_chunks(X))
    assert here.fit_report_["signal"].message != there.fit_report_["signal"].message
