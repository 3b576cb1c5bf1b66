"""Sweeps that work out the weights of a row once for all its copies draw what plain sweeps draw."""

import numpy as np
import pytest

from partita.dispatch import interpreted
from partita.engines.gibbs import chain as chains
from partita.engines.gibbs import duplicate_rows, sweep
from partita.families import FAMILIES
from partita.partitions import DirichletProcess, FiniteDirichlet, PitmanYor, bind, specify


def codes_with_holes(N, rng):
    X = rng.integers(3, size=(N, 2)).astype(np.int8)
    X[rng.random(X.shape) < 0.1] = -1
    return X


def two_blocks(N, rng):
    X, B = codes_with_holes(N, rng), rng.integers(2, size=(N, 1)).astype(np.int8)
    weights = np.ones(N)
    return [
        FAMILIES["categorical"].block(X, list("ab"), weights, n_levels=[3, 3]),
        FAMILIES["bernoulli"].block(B, ["c"], weights),
    ]


def copies_together(blocks):
    table = np.column_stack([block.data for block in blocks])
    _, first, inverse = np.unique(table, axis=0, return_index=True, return_inverse=True)
    rows = np.argsort(inverse.ravel(), kind="stable")
    return duplicate_rows.Visits(rows, first[inverse.ravel()[rows]])


@pytest.mark.parametrize(
    "prior",
    [DirichletProcess(2.0), PitmanYor(3.0, 0.5), bind(specify("mfm"), 80), FiniteDirichlet(1.5, 4)],
    ids=lambda prior: type(prior).__name__,
)
@pytest.mark.parametrize("limit", [sweep.NO_LIMIT, 3])
def test_the_draws_are_those_of_a_plain_sweep(prior, limit, global_random_seed):
    """Same order, same uniforms: births, deaths, more slots, a limit on the clusters."""
    rng = np.random.default_rng(global_random_seed)
    blocks = two_blocks(80, rng)
    order = copies_together(blocks)
    start = rng.integers(3, size=80) if limit == 3 else np.arange(80) % 40
    with interpreted():
        plain, ours = (sweep.seat(blocks, start) for _ in range(2))
        for _ in range(4):
            u = rng.random(80)
            plain = sweep.reseat(plain, prior, order.rows, u, limit)
            ours = duplicate_rows.reseat_copies(ours, prior, order, u, limit)
            assert np.array_equal(plain.z, ours.z)
    K = int(plain.K[0])
    assert np.array_equal(plain.n, ours.n) and K == ours.K[0] > 1
    for one, other in zip(plain.blocks, ours.blocks, strict=True):
        np.testing.assert_allclose(one.S[:, :K], other.S[:, :K], atol=1e-12)


def test_compiled_sweeps_draw_the_same(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    N = 400
    X = codes_with_holes(N, rng)
    blocks = [FAMILIES["categorical"].block(X, list("ab"), np.ones(N), n_levels=[3, 3])]
    order, prior = copies_together(blocks), DirichletProcess(5.0)
    plain, ours = (sweep.seat(blocks, np.zeros(N, int)) for _ in range(2))
    for _ in range(10):
        u = rng.random(N)
        plain = sweep.reseat(plain, prior, order.rows, u)
        ours = duplicate_rows.reseat_copies(ours, prior, order, u)
    assert np.array_equal(plain.z, ours.z)
    assert plain.K[0] > 3


@pytest.mark.parametrize("start", ["divided at random", "two copies apart"])
def test_weights_survive_a_run_of_copies_that_changes_them_by_thousands_of_nats(start, global_random_seed):
    """A row of 1200 columns fits its cluster better and better as its copies gather; without itself it fits nowhere."""
    rng = np.random.default_rng(global_random_seed)
    N, D = 200, 1200
    kind = rng.integers(10, size=N)
    X = rng.integers(10, size=(10, D)).astype(np.int8)[kind]
    blocks = [FAMILIES["categorical"].block(X, range(D), np.ones(N), n_levels=[10] * D)]
    order, prior = copies_together(blocks), DirichletProcess(1.0)
    z = np.arange(N) % 4
    if start == "two copies apart":
        z = np.zeros(N, int)
        for k in range(10):
            z[np.flatnonzero(kind == k)[-2:]] = k + 1
    plain, ours = (sweep.seat(blocks, z) for _ in range(2))
    for _ in range(3):
        u = rng.random(N)
        plain = sweep.reseat(plain, prior, order.rows, u)
        ours = duplicate_rows.reseat_copies(ours, prior, order, u)
        assert np.array_equal(plain.z, ours.z)
    assert np.count_nonzero(plain.z != z) > N / 2


def test_an_order_brings_copies_together(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    seating = sweep.seat(two_blocks(4000, rng), np.zeros(4000, int))
    order = duplicate_rows.visits(seating.blocks)
    assert np.array_equal(np.sort(order.rows), np.arange(4000))
    table = np.column_stack([live.data for live in seating.blocks])
    assert np.array_equal(table[order.rows], table[order.first])
    n_distinct = len(np.unique(table, axis=0))
    assert np.count_nonzero(np.diff(order.first)) == n_distinct - 1


def test_copies_in_a_large_table_are_found(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    N = 90_000
    X = rng.integers(200, size=(20_000, 3)).astype(np.int16)[rng.integers(20_000, size=N)]
    blocks = [FAMILIES["categorical"].block(X, list("abc"), np.ones(N), n_levels=[200] * 3)]
    order = duplicate_rows.visits(sweep.seat(blocks, np.zeros(N, int)).blocks)
    assert np.count_nonzero(np.diff(order.first)) == len(np.unique(X, axis=0)) - 1


@pytest.mark.parametrize("case", ["few rows", "distinct rows", "many distinct rows", "real columns"])
def test_where_rows_hardly_repeat_they_keep_their_order(case, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    N = {"few rows": 300, "many distinct rows": 90_000}.get(case, 4000)
    weights = np.ones(N)
    if case == "real columns":
        blocks = [FAMILIES["gaussian"].block(rng.integers(3, size=(N, 1)).astype(float), ["a"], weights)]
    elif "distinct" in case:
        X = rng.integers(200, size=(N, 3))
        blocks = [FAMILIES["categorical"].block(X.astype(np.int16), list("abc"), weights, n_levels=[200] * 3)]
    else:
        blocks = two_blocks(N, rng)
    assert duplicate_rows.visits(sweep.seat(blocks, np.zeros(N, int)).blocks) is None


def test_a_chain_finds_the_order_once_and_keeps_it(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    X = rng.integers(2, size=(3500, 3)).astype(np.int8)
    blocks = [FAMILIES["categorical"].block(X, list("abc"), np.ones(3500), n_levels=[2] * 3)]
    schedule = chains.Schedule(n_moves=1, learn_likelihood=False)
    chain = chains.start(blocks, DirichletProcess(1.0), np.zeros(3500, int), seed=1)
    assert chain.visits is None
    chain = chains.step(chain, schedule)
    order = chain.visits
    assert order is not None and np.count_nonzero(np.diff(order.first)) == 7
    assert chains.step(chain, schedule).visits is order


def test_an_object_that_holds_its_cluster_together_may_leave_it(global_random_seed):
    """Unlike rows in pairs: a cluster owes its weight to the object that is asked, which must not hide the others."""
    rng = np.random.default_rng(global_random_seed)
    D, most = 60, 0
    for _ in range(10):
        X = rng.integers(10, size=(8, D)).astype(np.int8)
        blocks = [FAMILIES["categorical"].block(X, range(D), np.ones(8), n_levels=[10] * D)]
        order, prior = copies_together(blocks), DirichletProcess(1.0)
        plain, ours = (sweep.seat(blocks, np.arange(8) // 2) for _ in range(2))
        for _ in range(3):
            u = rng.random(8)
            plain = sweep.reseat(plain, prior, order.rows, u)
            ours = duplicate_rows.reseat_copies(ours, prior, order, u)
            assert np.array_equal(plain.z, ours.z)
        most = max(most, int(plain.K[0]))
    assert most > 4


def test_a_copy_may_leave_a_cluster_that_another_has_just_come_to(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    D, left = 150, 0
    X = rng.integers(10, size=(2, D)).astype(np.int8)[[0, 1, 1, 1]]
    blocks = [FAMILIES["categorical"].block(X, range(D), np.ones(4), n_levels=[10] * D)]
    order = duplicate_rows.Visits(np.array([1, 2]), np.array([1, 1]))
    for _ in range(60):
        u = rng.random(2)
        plain, ours = (sweep.seat(blocks, np.array([0, 0, 1, 2])) for _ in range(2))
        plain = sweep.reseat(plain, DirichletProcess(1.0), order.rows, u)
        ours = duplicate_rows.reseat_copies(ours, DirichletProcess(1.0), order, u)
        assert np.array_equal(plain.z, ours.z)
        left += plain.z[1] != plain.z[2]
    assert 0 < left < 60


def test_blocks_without_columns_have_no_say():
    """Views of a table may have none of a family's columns."""
    N = 4000
    codes, nothing = np.arange(N)[:, None] % 3, np.empty((N, 0))
    blocks = [
        FAMILIES["categorical"].block(codes.astype(np.int8), ["a"], np.ones(N), n_levels=[3]),
        FAMILIES["gaussian"].block(nothing, [], np.ones(N)),
        FAMILIES["bernoulli"].block(nothing.astype(np.int8), [], np.ones(N)),
    ]
    seating = sweep.seat(blocks, np.zeros(N, int))
    assert np.count_nonzero(np.diff(duplicate_rows.visits(seating.blocks).first)) == 2
    assert duplicate_rows.visits(seating.blocks[1:]) is None
