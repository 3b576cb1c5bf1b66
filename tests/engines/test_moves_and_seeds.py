"""Moves never lose; merges and deletions find what was planted; seeds do not depend on the order or copies of rows."""

from functools import partial

import numpy as np
import pytest

from partita.engines.climb import moves, vb
from partita.engines.climb.moves import deleted, merge_pairs, merged, smallest_clusters, with_moves
from partita.engines.climb.seeding import (
    SAMPLE,
    _spread_out,
    label_statistics,
    seed_parameters,
    seed_statistics,
)
from partita.engines.gibbs import split_merge as sm
from partita.engines.gibbs import sweep
from partita.engines.passes.rows import collect
from partita.engines.run import Run, iterate
from partita.families import Block, Categorical, GaussianFull
from partita.labels import canonical
from partita.partitions import DirichletProcess, FiniteDirichlet, StickBreaking
from partita.testing import take

pytestmark = pytest.mark.usefixtures("uncompiled")


def runner(blocks, weights, **learn):
    step = partial(vb.step, blocks=blocks, weights=weights, **learn)
    return partial(iterate, step, max_iter=60, tol=1e-6, weight=weights.sum(), debug=True), step


@pytest.mark.parametrize("prior", [FiniteDirichlet(1.0, 4), StickBreaking(1.0, 4)], ids=["finite", "sticks"])
def test_moves_never_end_below_where_they_started(family_name, prior, make_mixture, rng):
    block = make_mixture(family_name)
    run, step = runner([block], np.ones(40))
    state = vb.init([block], prior, label_statistics([block], np.ones(40), rng.integers(4, size=40), 4))
    objectives = [result.objective for result in with_moves(run, step, state)]
    assert objectives == sorted(objectives)


@pytest.mark.parametrize("prior", [FiniteDirichlet(1.0, 3), StickBreaking(1.0, 3)], ids=["finite", "sticks"])
def test_planted_halves_are_merged(prior, global_random_seed):
    """Two clusters, one of them cut in two along a line: VB alone may stay there, a merge does not."""
    rng = np.random.default_rng(global_random_seed)
    X = np.concatenate([rng.normal(size=(60, 2)), rng.normal(12.0, 1.0, size=(40, 2))])
    z = np.concatenate([(X[:60, 0] > 0).astype(int), np.full(40, 2)])
    block = Block(GaussianFull.default(2), X / 6.0, ("a", "b"))
    start = label_statistics([block], np.ones(100), z, 3)
    assert (0, 1) in merge_pairs((block.family,), prior, start)
    _, step = runner([block], np.ones(100), learn_likelihood=False, learn_concentration=False)

    def few(state):  # one iteration a run: VB has no time to merge by itself
        return iterate(step, state, max_iter=1, tol=0.0, weight=100.0)._replace(converged=True)

    *_, last = with_moves(few, step, vb.init([block], prior, start))
    n = np.sort(last.state.statistics.n)
    np.testing.assert_allclose(n, [0.0, 40.0, 60.0], atol=0.5)


@pytest.mark.parametrize("prior", [FiniteDirichlet(1.0, 4), StickBreaking(1.0, 4)], ids=["finite", "sticks"])
def test_a_cluster_between_others_is_deleted(prior, global_random_seed, monkeypatch):
    """A few objects of three clusters are a fourth one: no merge helps all of them, a deletion does."""
    rng = np.random.default_rng(global_random_seed)
    centers = np.array([[0.0, 0.0], [20.0, 0.0], [0.0, 20.0]])
    z = np.repeat(np.arange(3), 40)
    X = rng.normal(centers[z], 1.0)
    z[[0, 40, 80]] = 3
    block = Block(GaussianFull.default(2), X / 8.0, ("a", "b"))
    start = label_statistics([block], np.ones(120), z, 4)
    assert smallest_clusters(start)[0] == 3
    _, step = runner([block], np.ones(120), learn_likelihood=False, learn_concentration=False)
    monkeypatch.setattr(moves, "merge_pairs", lambda *_: [])

    def none(state):  # the bound at the start itself, without a pass that would dissolve the cluster anyway
        bound = vb.bound(state.families, state.prior, state.statistics._replace(entropy=0.0))
        return Run(state._replace(objective=bound), [bound], True, "converged", 0.0)

    runs = list(with_moves(none, step, vb.init([block], prior, start)))
    assert runs[1].objective > runs[0].objective
    np.testing.assert_allclose(np.sort(runs[-1].state.statistics.n), [0.0, 40.0, 40.0, 40.0], atol=0.5)


@pytest.mark.parametrize(("min_gain", "n_runs"), [(0.4, 3), (0.6, 1)])
def test_a_move_must_gain_enough(min_gain, n_runs, make_mixture, rng, monkeypatch):
    """A pass is worth 0.5: two moves leave one of three clusters, and none is made where more is asked for."""
    block = make_mixture("poisson")
    start = label_statistics([block], np.ones(40), rng.integers(3, size=40), 3)
    state = vb.init([block], FiniteDirichlet(1.0, 3), start)._replace(objective=-2.5)

    def step(moved):
        return moved._replace(objective=moved.objective + 0.5)

    def run(state):
        return Run(state, [state.objective], True, "converged", 0.0)

    monkeypatch.setattr(moves, "MAX_PASSES", 1)
    assert len(list(with_moves(run, step, state, min_gain=min_gain))) == n_runs


def test_a_deletion_takes_one_cluster_only(make_mixture, rng):
    block = make_mixture("poisson")
    start = label_statistics([block], np.ones(40), rng.integers(3, size=40), 3)
    left = deleted(start, 1)
    np.testing.assert_array_equal(left.n, start.n * [1, 0, 1])
    np.testing.assert_array_equal(left.S[0], start.S[0] * [1, 0, 1])
    one = start._replace(n=np.array([0.0, 40.0, 0.0]))
    assert smallest_clusters(one) == []


def test_pouring_keeps_totals(make_mixture, rng):
    block = make_mixture("poisson")
    start = label_statistics([block], np.ones(40), rng.integers(3, size=40), 3)
    one = merged(start, 2, 0)
    np.testing.assert_allclose(one.n.sum(), 40.0)
    np.testing.assert_allclose(one.S[0].sum(axis=1), start.S[0].sum(axis=1))
    assert one.n[0] == 0.0
    assert not one.S[0][:, 0].any()


# ---- seeds -------------------------------------------------------------------------------------------------


def test_seeds_do_not_depend_on_the_order_of_rows_nor_on_copies(
    family_name, make_mixture, global_random_seed
):
    block, order = make_mixture(family_name), np.random.default_rng(global_random_seed).permutation(40)
    shuffled = block._replace(data=take(block.data, order))
    doubled = block._replace(data=take(block.data, np.tile(order, 2)))

    def seeds(block, weights, seed):
        return seed_statistics([block], weights, 4, np.random.default_rng([global_random_seed, seed])).S[0]

    for seed in range(5):
        plain = seeds(block, np.ones(40), seed)
        np.testing.assert_array_equal(seeds(shuffled, np.ones(40), seed), plain)
        np.testing.assert_array_equal(seeds(doubled, np.ones(80), seed), plain)
        np.testing.assert_array_equal(seeds(block, np.full(40, 2.0), seed), plain)


def test_seeds_skip_rows_without_weight(global_random_seed):
    X = np.array([[0], [1], [2], [2]], np.int8)
    block = Block(Categorical.default([3]), X, ("a",))
    start = seed_statistics(
        [block], np.array([1.0, 1.0, 0.0, 0.0]), 2, np.random.default_rng(global_random_seed)
    )
    assert not start.S[0][3].any()
    assert start.n.sum() == 2.0


def test_seeds_are_spread_out(global_random_seed):
    """Three far groups, three seeds: one in each, whatever the draw."""
    X = np.repeat(np.arange(3), 20)[:, None] * 50.0 + np.random.default_rng(global_random_seed).normal(
        size=(60, 1)
    )
    block = Block(GaussianFull.default(1), X / X.std(), ("a",))
    for seed in range(20):
        start = seed_statistics([block], np.ones(60), 3, np.random.default_rng([global_random_seed, seed]))
        np.testing.assert_array_equal(np.sort(np.round(start.S[0][1] * X.std() / 50.0)), [0, 1, 2])
        found = collect([block], np.ones(60), seed_parameters([block], start))
        np.testing.assert_allclose(found.n, 20.0, atol=3.0)


def test_seeds_of_large_data_come_from_a_sample(global_random_seed):
    N = SAMPLE + 200
    X = (np.arange(N) % 3)[:, None].astype(np.int8)
    start = seed_statistics(
        [Block(Categorical.default([3]), X, ("a",))], np.ones(N), 3, np.random.default_rng(global_random_seed)
    )
    np.testing.assert_array_equal(start.S[0][1:].sum(axis=1), 1.0)  # one of each level


def test_few_seeds_are_compared_with_few_objects(rng):
    """Most scores of pairs are never computed, unless there are so many seeds that each object is tried."""
    X = rng.normal(size=(200, 2))
    L = -((X[:, None] - X) ** 2).sum(axis=2)
    asked = []

    def scores(objects):
        asked.extend(objects.tolist())
        return L[:, objects]

    def seeds(scores, K):
        return _spread_out(np.diag(L), scores, np.ones(200), K, np.random.default_rng(0)).tolist()

    few = seeds(scores, 5)
    assert len(set(few)) == 5
    assert len(asked) < 50
    asked.clear()
    assert len(set(seeds(scores, 60))) == 60
    assert len(asked) == 200  # each object once


# ---- merges that cannot be accepted ------------------------------------------------------------------------------


def moved(blocks, z, n_scans, monkeypatch, *, look=True):
    """Labels, outcomes and the number of passes over members of forty split-merge moves."""
    passes = []
    allocate, is_hopeless = sm.allocate, sm.is_hopeless
    with monkeypatch.context() as patch:
        patch.setattr(sm, "allocate", lambda *args: passes.append(args) or allocate(*args))
        patch.setattr(sm, "is_hopeless", lambda *args: look and is_hopeless(*args))
        seating = sweep.seat(blocks, np.asarray(z))
        seating, outcomes = sm.split_merge(
            seating, DirichletProcess(1.0), np.random.default_rng(7), n_scans, n_moves=40
        )
    return sweep.labels(seating), outcomes, len(passes) // (n_scans + 1)


@pytest.mark.parametrize("n_scans", [0, 2])
def test_a_hopeless_merge_passes_over_no_member(n_scans, two_groups, monkeypatch):
    """Groups that are far apart: each rejected merge ends before any member is visited, with the same labels."""
    X, z = two_groups
    blocks = [Block(GaussianFull.default(2), X / 6.0, ("a", "b"))]
    labels, outcomes, n_passes = moved(blocks, z, n_scans, monkeypatch)
    slow_labels, slow_outcomes, slow_passes = moved(blocks, z, n_scans, monkeypatch, look=False)
    np.testing.assert_array_equal(labels, slow_labels)
    assert outcomes == slow_outcomes
    assert slow_passes == 40
    assert 0 < n_passes < 35  # about twenty of the moves are splits


@pytest.mark.parametrize("n_scans", [0, 1])
def test_the_bound_of_merges_changes_nothing(n_scans, make_mixture, family_name, rng, monkeypatch):
    """From clusters that are no clusters, every family: the same moves as when each merge is tried in full."""
    block = make_mixture(family_name, holes=0.0)
    for z in (np.arange(40) % 2, canonical(rng.integers(4, size=40))):
        early, full = (moved([block], z, n_scans, monkeypatch, look=look) for look in (True, False))
        np.testing.assert_array_equal(early[0], full[0])
        assert early[1] == full[1]


def test_merges_of_equal_rows_are_tried_in_full(monkeypatch):
    """One cluster in two halves: merges are accepted, so their bound must let them pass."""
    block = Block(Categorical.default([2]), np.zeros((40, 1), np.int8), ("a",))
    z = np.arange(40) % 2
    early, full = (moved([block], z, 0, monkeypatch, look=look) for look in (True, False))
    assert early[1] == full[1]
    assert early[1]["merge"] > 0
