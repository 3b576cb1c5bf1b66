"""Starts of variational Bayes: chains and seeds on samples, then few passes over all rows."""

import numpy as np
import pytest

from partita import Mixture
from partita.engines.run import Control
from partita.families import Block, GaussianDiagonal
from partita.fitting import variational_starts
from partita.fitting.climb import fit_vb
from partita.fitting.contract import Request
from partita.metrics import adjusted_rand
from partita.partitions import StickBreaking


@pytest.fixture
def groups(global_random_seed):
    """Five groups of 9,000 rows, six standard deviations apart in some column or other."""
    rng = np.random.default_rng(global_random_seed)
    centers = 6.0 * np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]])
    z = rng.integers(5, size=9000)
    return rng.normal(centers[z], 1.0), z


def request(n_init, seed, control=None):
    return Request(
        n_components=12, exact=False, prior=StickBreaking(1.0, 12), learn_concentration=True, learn_likelihood=True,
        maximum_likelihood=False, order=1, init="seeds", rngs=np.random.default_rng(seed).spawn(n_init), tol=1e-5,
        max_iter=200, control=control or Control(), debug=True, executor=None,
    )  # fmt: skip


@pytest.mark.parametrize("kind", variational_starts.STARTS)
def test_every_kind_of_start_leaves_few_passes_over_all_rows(groups, kind, global_random_seed, monkeypatch):
    X, z = groups
    monkeypatch.setattr(variational_starts, "STARTS", (kind,))
    model = Mixture("gaussian", inference="vb", n_init=1, random_state=global_random_seed).fit(X)
    assert model.n_clusters_ == 5
    assert adjusted_rand(model.labels_, z) > 0.98
    assert model.n_iter_ <= 20  # seeds over all rows need about a hundred


def test_the_objective_over_all_rows_rises_from_the_first_pass(groups, global_random_seed):
    """The objectives of samples are not those of the table: none of them is reported."""
    X, _ = groups
    steps = []
    control = Control(callback=lambda progress: steps.append(progress.objective) and False)
    block = Block(GaussianDiagonal.default(3), (X - X.mean(axis=0)) / X.std(axis=0), ("a", "b", "c"))
    found = fit_vb([block], np.ones(len(X)), request(1, global_random_seed, control))
    assert steps == found.run.objectives
    assert found.run.worst_fall == 0.0
    assert found.statistics.n.sum() == pytest.approx(len(X))


def test_no_run_over_a_sample_begins_after_the_time_limit(groups, global_random_seed, monkeypatch):
    X, _ = groups
    block = Block(GaussianDiagonal.default(3), X / 6.0, ("a", "b", "c"))
    sizes = []
    climbed = variational_starts._climbed
    monkeypatch.setattr(variational_starts, "_climbed", lambda *args: sizes.append(args[4]) or climbed(*args))
    for time_limit, expected in ((None, [2000]), (0.0, [])):
        sizes.clear()
        ask = request(1, global_random_seed, Control(time_limit=time_limit))
        state = variational_starts.start_vb([block], np.ones(len(X)), ask, 0)
        assert sizes == expected
        assert state.statistics.n.sum() == pytest.approx(len(X))


def test_the_sample_of_the_chain_has_whole_counts_in_proportion_to_the_weights():
    counts = variational_starts._whole_counts(np.r_[1000.0, 1000.0, np.full(50, 1e-3)], 500)
    assert counts.sum() == 500
    np.testing.assert_allclose(counts[:2], 250, atol=1)
    np.testing.assert_array_equal(variational_starts._whole_counts(np.array([3.0, 1.0, 2.0]), 500), [3, 1, 2])


def test_collapsed_sweeps_open_no_cluster_that_vb_leaves_empty(global_random_seed):
    """True of every table. Without closed clusters the sweeps found a third one in 13 of 60 such tables, so ten tables
    miss the defect with probability 0.09.
    """
    rng = np.random.default_rng([global_random_seed, 3])
    z = np.repeat([0, 1], [44, 36])
    for _ in range(10):
        X = rng.normal(12.0 * z[:, None] - 6.0, 1.0, (80, 2))
        by_vb, by_cvb = (
            Mixture(
                inference=inference, max_clusters=3, tol=1e-3, n_init=1, random_state=global_random_seed
            ).fit(X)
            for inference in ("vb", "cvb")
        )
        assert by_cvb.n_clusters_ <= by_vb.n_clusters_
