"""How often a fit on a device passes over the rows, and how often it waits for the device."""

import sys

import numpy as np
import pytest

from partita import Mixture
from partita.engines.passes import device as passes
from partita.engines.subclusters.seat_labels import members_of_ranks
from partita.execution import device
from partita.fitting import fitted_attributes

xp = pytest.importorskip("array_api_strict", reason="array-api-strict plays the device")
N = 900


def on(values):
    return xp.asarray(values, device=xp.Device("device1"))


def table(family, rng, overlap=False):
    z = rng.integers(3, size=N)
    if family == "categorical":
        return np.where(rng.random((N, 5)) < 0.8, z[:, None], rng.integers(4, size=(N, 5)))
    if family == "multinomial":
        return rng.poisson(1.0 + (2.0 if overlap else 8.0) * np.eye(3)[z])
    return rng.normal(size=(N, 3)) + (2.0 if overlap else 6.0) * np.eye(3)[z]


class Counts:
    """Rows whose statistics were computed, and transfers by their direction and the size of the array."""

    def __init__(self, monkeypatch):
        self.rows, self.moves = 0, {"to_host": [], "to_device": []}
        features = passes.features

        def seen(lik, data, lo, hi):
            self.rows += hi - lo
            return features(lik, data, lo, hi)

        self._replace(monkeypatch, features, seen)
        for move in (device.to_host, device.to_device):
            self._replace(monkeypatch, move, self._moved(move))

    def _moved(self, move):
        def moved(values, *args, **options):
            self.moves[move.__name__].append(int(np.prod(values.shape)))
            return move(values, *args, **options)

        return moved

    def _replace(self, monkeypatch, old, new):
        for module in [m for name, m in sys.modules.items() if name.startswith("partita.")]:
            if vars(module).get(old.__name__) is old:
                monkeypatch.setattr(module, old.__name__, new)

    @property
    def n_passes(self):
        return self.rows / N


@pytest.mark.filterwarnings("ignore:Mixture did not converge", "ignore:the objective fell")
@pytest.mark.parametrize("inference", ["em", "vb"])
@pytest.mark.parametrize("family", ["categorical", "gaussian", "gaussian_full", "multinomial"])
def test_one_pass_and_one_wait_per_iteration_and_one_after_them(
    family, inference, monkeypatch, global_random_seed
):
    X = on(table(family, np.random.default_rng(global_random_seed), overlap=True))
    asked = {"inference": inference, "n_clusters": 3, "n_init": 1, "tol": 0.0, "random_state": 0}
    found = {}
    for max_iter in (2, 7):
        with monkeypatch.context() as patch:
            counts = Counts(patch)
            model = Mixture(family, **asked, max_iter=max_iter).fit(X)
        n_iter = model.n_iter_
        assert (
            counts.n_passes == 1 + n_iter + 1
        )  # of the seeds, of the iterations, of labels and sums together
        found[max_iter] = n_iter, *(len(sizes) for sizes in counts.moves.values())
    (few, fetched, sent), (many, fetched_by_many, sent_by_many) = found.values()
    assert few == 2 < many
    assert fetched_by_many - fetched == many - few  # sizes, statistics and sums of an iteration together
    assert sent_by_many - sent == 2 * (many - few)  # weights and parameters: nothing else is sent again


def test_labels_take_one_pass_where_clusters_are_left_empty(monkeypatch, global_random_seed):
    """Clusters that no row can have are dropped before the pass, not after it."""
    X = table("gaussian", np.random.default_rng(global_random_seed))
    labeled = []
    partitioned = passes._partitioned

    def counted(scores, weights):
        labeled.append(scores.n_clusters)
        return partitioned(scores, weights)

    monkeypatch.setattr(passes, "_partitioned", counted)
    asked = {"inference": "vb", "max_clusters": 12, "random_state": 0}
    there = Mixture("gaussian", **asked).fit(on(X))
    assert labeled == [there.n_clusters_]
    here = Mixture("gaussian", **asked).fit(X)
    np.testing.assert_array_equal(there.labels_, here.labels_)
    np.testing.assert_array_equal(here.predict(X), here.labels_)


def test_clusters_in_another_order_need_no_pass(rng):
    labels = rng.integers(-1, 3, 50)
    rows = np.sort(rng.choice(50, size=20, replace=False)).repeat(2)
    uncertain = fitted_attributes.UncertainRows(rows, np.tile([0, 2], 20).astype(np.int32), rng.random(40))
    given = fitted_attributes.Partition(labels, np.ones(50), uncertain, np.array([3.0, 9.0, 5.0]), 0.5, -7.0)
    found = fitted_attributes._renumbered(given, np.array([1, 2, 0]))
    np.testing.assert_array_equal(found.labels, np.array([2, 0, 1, -1])[labels])
    np.testing.assert_array_equal(found.sizes, [9.0, 5.0, 3.0])
    np.testing.assert_array_equal(found.uncertain.rows, rows)
    np.testing.assert_array_equal(found.uncertain.clusters, np.tile([1, 2], 20))
    swapped = uncertain.probabilities.reshape(-1, 2)[:, ::-1].ravel()
    np.testing.assert_array_equal(found.uncertain.probabilities, swapped)
    assert found[4:] == given[4:]


@pytest.mark.parametrize("n_rows", [1, 63, 64, 65, 5000])
def test_members_of_clusters_are_found_in_two_transfers(n_rows, monkeypatch, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    monkeypatch.setattr(device, "CHUNK_BYTES", 200_000)
    z = np.unique(rng.integers(4, size=n_rows), return_inverse=True)[1].astype(np.int32)
    ranks = np.stack([rng.integers(0, n, size=3) for n in np.bincount(z)])
    counts = Counts(monkeypatch)
    found = members_of_ranks(on(z), ranks)
    assert [len(sizes) for sizes in counts.moves.values()] == [2, 1]
    assert max(counts.moves["to_host"]) <= max(64, int(n_rows**0.5) + 1) * (ranks.size + len(ranks))
    np.testing.assert_array_equal(found, members_of_ranks(z, ranks))


@pytest.mark.parametrize("holes", [False, True])
def test_units_of_complete_columns_need_no_pass(holes, monkeypatch, global_random_seed):
    X = table("gaussian", np.random.default_rng(global_random_seed))
    X[0, 0] = np.nan if holes else X[0, 0]
    read = []
    sums = passes.OnDevice.sum_observed

    def counted(self, blocks, values):
        read.append(values)
        return sums(self, blocks, values)

    monkeypatch.setattr(passes.OnDevice, "sum_observed", counted)
    asked = {"inference": "em", "n_clusters": 3, "n_init": 1, "random_state": 0}
    here, there = (Mixture("gaussian", **asked).fit(rows) for rows in (X, on(X)))
    assert len(read) == holes
    assert there.log_likelihood_ == pytest.approx(here.log_likelihood_, rel=1e-9)
