"""Memoized VB: the bound rises with every visit to a part, one part is VB, the place of the table does not matter."""

from functools import partial
from itertools import pairwise

import numpy as np
import pytest

from partita import Mixture
from partita.engines.climb import memoized, vb
from partita.engines.climb.births import Birth, divide, divided, propose_births
from partita.engines.climb.seeding import label_statistics
from partita.engines.passes import packing
from partita.engines.passes.rows import collect, pack
from partita.engines.run import iterate
from partita.execution import Part, open_chunks, row_chunks, shards
from partita.execution import executors as executors_module
from partita.families import Block, Categorical, GaussianFull
from partita.metrics import adjusted_rand
from partita.partitions import FiniteDirichlet, StickBreaking
from partita.testing import enumerate_labels

PRIORS = [FiniteDirichlet(1.0, 4), StickBreaking(1.0, 4)]


@pytest.fixture
def small_chunks(monkeypatch):
    """Chunks of eight rows, so that small tables have several parts."""
    for module in (executors_module, memoized):
        monkeypatch.setattr(module, "CHUNK_ROWS", 8)
    monkeypatch.setattr(row_chunks, "__defaults__", (8, 0, None))
    monkeypatch.setattr(memoized, "MIN_CHUNKS", 1)


def started(block, prior, rng, N):
    statistics = label_statistics([block], np.ones(N), rng.integers(4, size=N), 4)
    return memoized.MemoizedState((block.family,), prior, statistics, -np.inf)


def test_parts_divide_the_rows(small_chunks):
    assert [len(rows) for rows in row_chunks(20)] == [8, 8, 4]
    for start in (0, 5, 24):
        found = [
            start + rows for number in range(3) for rows in row_chunks(61, start=start, part=Part(number, 3))
        ]
        np.testing.assert_array_equal(np.sort(np.concatenate(found)), start + np.arange(61))
        for rows in found:
            assert len(set(rows // 8)) == 1
    own = np.concatenate(list(row_chunks(61, part=Part(1, 3))))
    assert set(own // 8 % 3) == {1}


@pytest.mark.usefixtures("uncompiled", "small_chunks")
@pytest.mark.parametrize("prior", PRIORS, ids=["finite", "sticks"])
def test_the_bound_rises_with_every_part(family_name, prior, make_mixture, rng, monkeypatch):
    block, bounds = make_mixture(family_name), []
    learned = vb.learned

    def noted(state, **learning):
        new = learned(state, **learning)
        slack = new.rounding + 1e-9 * (1.0 + abs(new.objective))
        bounds.append((new.objective, slack))
        return new

    monkeypatch.setattr(memoized, "learned", noted)
    state = started(block, prior, rng, 40)
    for _ in range(4):
        state = memoized.step(state, [block], np.ones(40))
    assert len(bounds) == 1 + 3 * 5 and len(state.parts) == 5
    for (before, _), (after, slack) in pairwise(bounds):
        assert after >= before - slack


@pytest.mark.usefixtures("uncompiled", "small_chunks")
def test_the_statistics_are_the_sum_of_the_parts(family_name, make_mixture, rng):
    """After a visit with the same parameters, the parts add up to a pass over all rows."""
    block = make_mixture(family_name)
    state = started(block, PRIORS[0], rng, 40)
    whole = collect([block], np.ones(40), vb.parameters(state))
    found = memoized.step(state, [block], np.ones(40)).statistics
    np.testing.assert_allclose(found.n, whole.n, rtol=1e-13)
    np.testing.assert_allclose(found.S[0], whole.S[0], rtol=1e-11, atol=1e-12)
    assert found.entropy == pytest.approx(whole.entropy, rel=1e-12)


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("prior", PRIORS, ids=["finite", "sticks"])
def test_one_part_is_variational_bayes(family_name, prior, make_mixture, rng):
    block = make_mixture(family_name)
    one = started(block, prior, rng, 40)
    other = vb.VBState(*one[:4])
    for _ in range(5):
        one, other = (m.step(s, [block], np.ones(40)) for m, s in ((memoized, one), (vb, other)))
        assert one.objective == other.objective
        np.testing.assert_array_equal(one.statistics.S[0], other.statistics.S[0])


@pytest.mark.usefixtures("uncompiled", "small_chunks")
def test_the_bound_is_below_the_evidence(make_mixture, global_random_seed):
    """By enumeration of all label vectors, at every iteration."""
    rng = np.random.default_rng(global_random_seed)
    block, prior = make_mixture("categorical", N=10, K=2, holes=0.0), FiniteDirichlet(1.5, 2)
    evidence = np.logaddexp.reduce(enumerate_labels([block], prior).log_joint)
    z = rng.integers(2, size=10)
    state = memoized.MemoizedState(
        (block.family,), prior, label_statistics([block], np.ones(10), z, 2), -np.inf
    )
    for _ in range(20):
        state = memoized.step(state, [block], np.ones(10), learn_likelihood=False, learn_concentration=False)
        assert state.objective <= evidence + 1e-9
    assert len(state.parts) == 2


@pytest.mark.usefixtures("small_chunks")
def test_fixed_points_are_those_of_variational_bayes(global_random_seed):
    """A state that VB no longer changes is not changed by visits to parts either."""
    rng = np.random.default_rng(global_random_seed)
    z = rng.integers(3, size=300)
    X = rng.normal(8.0 * np.eye(3)[z], 1.0)
    block, weights, prior = Block(GaussianFull.default(3), X / 4.0, ("a", "b", "c")), np.ones(300), PRIORS[0]
    start = label_statistics([block], weights, z, 4)
    step = partial(vb.step, blocks=[block], weights=weights)
    state = iterate(step, vb.init([block], prior, start), max_iter=500, tol=1e-13, weight=1.0).state
    moved = memoized.MemoizedState(*state[:4])
    for _ in range(5):
        moved = memoized.step(moved, [block], weights)
    assert len(moved.parts) > 1
    assert moved.objective == pytest.approx(state.objective, rel=1e-9)
    np.testing.assert_allclose(moved.statistics.n, state.statistics.n, atol=1e-3)


def halves(rng, K=4):
    """Four distant groups that a start has put together into one cluster."""
    z = rng.integers(K, size=400)
    centers = 12.0 * np.eye(K)
    X = rng.normal(centers[z], 1.0)
    return Block(GaussianFull.default(K), X / X.std(), tuple("abcd")), z


@pytest.mark.usefixtures("uncompiled")
def test_births_divide_a_cluster_of_several_groups(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    block, planted = halves(rng)
    prior, weights = StickBreaking(1.0, 8), np.ones(400)
    start = label_statistics([block], weights, np.zeros(400, np.int64), 8)
    state = memoized.step(memoized.MemoizedState((block.family,), prior, start, -np.inf), [block], weights)
    proposed = list(propose_births(state, [block], weights, rng))
    assert proposed
    n = proposed[0].n
    assert n.sum() == pytest.approx(400.0)
    moved = state.at(proposed[0])
    for _ in range(5):
        moved = memoized.step(moved, [block], weights)
    assert moved.objective > state.objective + 100.0
    found = np.sort(moved.statistics.n[moved.statistics.n > 1.0])
    np.testing.assert_allclose(found, np.sort(np.bincount(planted)), atol=2.0)


@pytest.mark.usefixtures("uncompiled")
def test_births_leave_a_single_group_alone(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    X = rng.normal(size=(200, 3))
    block = Block(GaussianFull.default(3), X, tuple("abc"))
    assert divide(0, [block], np.ones(200), 200.0, 7, rng) is None


def test_a_division_keeps_the_other_clusters(rng, make_mixture):
    block = make_mixture("categorical")
    statistics = label_statistics([block], np.ones(40), rng.integers(2, size=40), 5)
    own = statistics.S[0][:, 1]
    half = Birth(1, statistics.n[1] * np.array([0.25, 0.75]), (np.outer(own, [0.25, 0.75]),), 1.0)
    moved = divided(statistics, [half])
    np.testing.assert_allclose(moved.n.sum(), statistics.n.sum())
    np.testing.assert_allclose(moved.S[0].sum(axis=1), statistics.S[0].sum(axis=1))
    np.testing.assert_array_equal(moved.S[0][:, 0], statistics.S[0][:, 0])
    assert np.count_nonzero(moved.n) == 3


def table(kind, rng, N=30_000):
    z = rng.integers(5, size=N)
    if kind == "real":
        return rng.normal(6.0 * rng.normal(size=(5, 4))[z], 1.0), z
    levels = rng.integers(4, size=(5, 12))
    return np.where(rng.random((N, 12)) < 0.2, rng.integers(4, size=(N, 12)), levels[z]).astype(np.int8), z


@pytest.mark.parametrize("kind", ["real", "categorical"])
def test_the_place_of_the_table_does_not_matter(kind, global_random_seed):
    """The same labels from an array, in chunks of any size, in threads: parts depend on rows alone."""
    rng = np.random.default_rng(global_random_seed)
    X, planted = table(kind, rng)
    options = {"inference": "memoized", "kinds": kind, "n_init": 1, "random_state": 0}
    here = Mixture(**options).fit(X)
    assert memoized.n_parts(len(X)) > 1
    for rows, jobs in ((5000, None), (40_000, 2)):
        there = Mixture(**options, n_jobs=jobs).fit(open_chunks(X, rows=rows))
        np.testing.assert_array_equal(there.labels_, here.labels_)
        assert there.lower_bound_ == pytest.approx(here.lower_bound_, rel=1e-10)
    if kind == "categorical":
        assert there.lower_bound_ == here.lower_bound_
        assert adjusted_rand(planted, here.labels_) > 0.9
    other = Mixture(**{**options, "inference": "vb"}).fit(X)
    # both stop when the bound per row rises by less than tol
    assert here.lower_bound_ > other.lower_bound_ - 1e-3 * len(X)


def test_shards_in_scratch_files(rng, monkeypatch):
    """Scratch files are mapped, so that a visit to a part reads its own rows only."""
    X, _ = table("categorical", rng, 40_000)
    options = {"inference": "memoized", "kinds": "categorical", "n_init": 1, "random_state": 0}
    here = Mixture(**options).fit(X)
    monkeypatch.setattr(shards, "MEMORY_BYTES", 1)
    monkeypatch.setattr(shards, "SHARD_CHUNKS", 4)
    there = Mixture(**options).fit(open_chunks(X, rows=9000))
    np.testing.assert_array_equal(there.labels_, here.labels_)
    assert there.lower_bound_ == here.lower_bound_


def test_a_fit_goes_on_where_it_was_stopped(tmp_path, rng):
    X, _ = table("categorical", rng, 20_000)
    options = {"inference": "memoized", "kinds": "categorical", "n_init": 1, "random_state": 0, "tol": 1e-9}
    whole = Mixture(**options).fit(X)
    first = Mixture(**options, resume=tmp_path, callback=lambda progress: progress.iteration == 2).fit(X)
    assert first.n_iter_ == 2 < whole.n_iter_
    again = Mixture(**options, resume=tmp_path).fit(X)
    np.testing.assert_array_equal(again.labels_, whole.labels_)
    assert again.lower_bound_ == whole.lower_bound_


def test_parts_of_packed_columns(small_chunks, rng, monkeypatch):
    monkeypatch.setattr(packing, "MIN_ROWS", 100)
    codes = rng.integers(2, size=(600, 6)).astype(np.int8)
    block = Block(Categorical.default([2] * 6), codes, tuple(range(6)))
    (packed,) = pack([block], 600)
    assert isinstance(packed, packing.PackedBlock)
    state = started(block, PRIORS[0], rng, 600)
    at = vb.parameters(state)
    for number in range(3):
        plain, quick = (collect([b], np.ones(600), at, None, Part(number, 3)) for b in (block, packed))
        np.testing.assert_allclose(quick.S[0], plain.S[0], rtol=1e-12)
