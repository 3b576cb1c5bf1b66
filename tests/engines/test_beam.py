"""Beam search and A* against all partitions of a few objects; interpreted, so that no compiler is waited for."""

import itertools

import numpy as np
import pytest

from partita.dispatch import interpreted
from partita.engines.sequential import beam, population
from partita.engines.sequential.population import grow, populate
from partita.families import (
    FAMILIES,
    Bernoulli,
    Block,
    Categorical,
    GaussianDiagonal,
    GaussianFull,
)
from partita.families.contract import datum, log_marginal, n_columns, observe, stats_start
from partita.labels import canonical
from partita.partitions import DirichletProcess, FiniteDirichlet, PitmanYor, StickBreaking, specify
from partita.testing import enumerate_partitions, take, with_holes

PRIORS = [
    DirichletProcess(0.8),
    PitmanYor(0.5, 0.4),
    FiniteDirichlet(1.5, 3),
    specify("mfm", rate=0.3, max_components=20),
]
EXAMPLES = [
    (name, k)
    for name, entry in FAMILIES.items()
    for k in range(len(entry.examples(np.random.default_rng(0))))
]


pytestmark = pytest.mark.usefixtures("uncompiled_unless_slow")


def example(name, which=0, N=5, seed=0, holes=0.0):
    rng = np.random.default_rng(seed)
    lik, data = FAMILIES[name].examples(rng)[which]
    data = take(data, range(N))
    return Block(lik, with_holes(data, holes, rng) if holes else data, ("x",))


def blobs(N, seed, spread=3.0, D=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(0, spread, (3, D))[rng.integers(3, size=N)] + rng.normal(size=(N, D))
    return Block(GaussianDiagonal.default(D), (X - X.mean(axis=0)) / X.std(axis=0), tuple(range(D)))


def codes(N, seed, levels=(3, 3, 2)):
    rng = np.random.default_rng(seed)
    X = np.stack([rng.integers(v, size=N) for v in levels], axis=1).astype(np.int8)
    return Block(Categorical.default(levels), X, tuple(range(len(levels))))


def value_of(exact, labels):
    at = np.flatnonzero((exact.labels == canonical(labels)).all(axis=1))
    return exact.log_joint[at[0]]


# ---- beam ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", PRIORS, ids=lambda p: type(p).__name__)
@pytest.mark.parametrize("name, which", EXAMPLES)
def test_a_beam_that_holds_all_partitions_finds_the_best(name, which, prior, global_random_seed):
    blocks = [example(name, which, seed=global_random_seed)]
    exact = enumerate_partitions(blocks, prior)
    found = beam.beam_search(blocks, prior, width=52)
    assert found.log_joint == pytest.approx(exact.log_joint.max(), abs=1e-9)
    assert value_of(exact, found.labels) == pytest.approx(found.log_joint, abs=1e-9)


def test_seven_objects(global_random_seed):
    blocks = [blobs(7, global_random_seed + 3)]
    exact = enumerate_partitions(blocks, PRIORS[0])
    found = beam.beam_search(blocks, PRIORS[0], width=877)
    assert found.log_joint == pytest.approx(exact.log_joint.max(), abs=1e-9)
    np.testing.assert_array_equal(found.labels, exact.labels[exact.log_joint.argmax()])


@pytest.mark.parametrize("width", [1, 2, 5])
def test_a_narrow_beam_is_never_better_than_exact_and_says_its_true_log_joint(width, global_random_seed):
    for seed in range(4):
        blocks = [blobs(6, global_random_seed + seed, spread=1.0), codes(6, global_random_seed + seed)]
        exact = enumerate_partitions(blocks, PRIORS[1])
        found = beam.beam_search(blocks, PRIORS[1], width=width)
        assert found.log_joint <= exact.log_joint.max() + 1e-9
        assert found.log_joint == pytest.approx(value_of(exact, found.labels), abs=1e-9)


def test_wider_is_better_on_average(global_random_seed):
    values = np.array(
        [
            [
                beam.beam_search([codes(9, global_random_seed + s)], PRIORS[0], width=w).log_joint
                for w in (1, 4, 16, 64)
            ]
            for s in range(12)
        ]
    )
    assert np.all(np.diff(values.mean(axis=0)) >= 0) and values[:, -1].mean() > values[:, 0].mean() + 0.1


def test_missing_cells_and_mixed_blocks(global_random_seed):
    blocks = [
        example("categorical", holes=0.3, seed=global_random_seed),
        example("gaussian", holes=0.3, seed=global_random_seed),
        example("poisson", holes=0.2, seed=global_random_seed),
    ]
    blocks[1].data[2] = np.nan
    exact = enumerate_partitions(blocks, PRIORS[3])
    assert beam.beam_search(blocks, PRIORS[3], width=52).log_joint == pytest.approx(exact.log_joint.max())


def test_equal_rows_are_interchangeable_and_held_once():
    X = np.repeat(np.array([[0, 0, 0], [1, 1, 1]], np.int8), 4, axis=0)[[0, 4, 1, 5, 2, 6, 3, 7]]
    block = Block(Categorical.default([2, 2, 2]), X, ("a", "b", "c"))
    exact = enumerate_partitions([block], PRIORS[0])
    hashes, ids = beam.row_hashes([block])
    assert len(set(hashes)) == len(set(ids)) == 2
    pool, *_ = grow(
        populate([block.family], 200),
        beam.Best(200),
        PRIORS[0],
        [block],
        np.arange(8),
        np.zeros(8),
        hashes,
        0,
    )
    H = pool.counts[0]
    kinds = {tuple(sorted(map(tuple, pool.blocks[0].S[:, pool.columns[p, : pool.K[p]]].T))) for p in range(H)}
    classes = {tuple(sorted(tuple(sorted(ids[z == k])) for k in range(z.max() + 1))) for z in exact.labels}
    assert len(kinds) == H == len(classes) < 200  # 4140 partitions, all of their kinds fit into the beam
    found = beam.beam_search([block], PRIORS[0], width=len(classes))
    assert found.log_joint == pytest.approx(exact.log_joint.max())


def test_rows_in_another_order_with_the_order_undone_change_nothing(global_random_seed):
    block, shuffle = (
        blobs(12, global_random_seed + 1),
        np.random.default_rng(global_random_seed).permutation(12),
    )
    there = beam.beam_search([block], PRIORS[0], width=8, order=np.arange(12))
    moved = block._replace(data=take(block.data, shuffle))
    back = beam.beam_search([moved], PRIORS[0], width=8, order=np.argsort(shuffle))
    assert back.log_joint == pytest.approx(there.log_joint)
    np.testing.assert_array_equal(canonical(back.labels[np.argsort(shuffle)]), there.labels)


def test_the_number_of_components_is_a_bound(global_random_seed):
    assert (
        beam.beam_search([blobs(9, global_random_seed)], FiniteDirichlet(9.0, 2), width=20).labels.max() <= 1
    )


def test_edges_and_mistakes(global_random_seed):
    block = codes(1, global_random_seed)
    assert beam.beam_search([block], PRIORS[0]).labels.tolist() == [0]
    assert beam.a_star([block], PRIORS[0]).status == "optimal"
    with pytest.raises(ValueError, match="width is 0"):
        beam.beam_search([block], PRIORS[0], width=0)
    with pytest.raises(ValueError, match="each of the 3 objects once"):
        beam.beam_search([codes(3, global_random_seed)], PRIORS[0], order=[0, 1, 1])
    with pytest.raises(TypeError, match="exchangeable prior"):
        beam.beam_search([block], StickBreaking(1.0, 4))
    hidden = Block(GaussianFull.default(2), np.array([[0.0, np.nan], [1.0, 1.0]]), ("a", "b"))
    with pytest.raises(ValueError, match="partly seen"):
        beam.beam_search([hidden], PRIORS[0])


# ---- A* ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", PRIORS, ids=lambda p: type(p).__name__)
@pytest.mark.parametrize("name, which", EXAMPLES)
def test_a_star_proves_the_best_partition(name, which, prior, global_random_seed):
    blocks = [example(name, which, seed=global_random_seed + 1)]
    exact = enumerate_partitions(blocks, prior)
    found = beam.a_star(blocks, prior, width=1)
    assert found.status == "optimal" and found.admissible
    assert found.log_joint == pytest.approx(exact.log_joint.max(), abs=1e-9)
    assert found.upper_bound == pytest.approx(found.log_joint)
    assert value_of(exact, found.labels) == pytest.approx(found.log_joint, abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_a_star_on_overlapping_mixed_data(seed, global_random_seed):
    blocks = [
        blobs(6, global_random_seed + seed, spread=0.7, D=1),
        codes(6, global_random_seed + seed, levels=(2,)),
    ]
    exact = enumerate_partitions(blocks, PRIORS[0])
    found = beam.a_star(blocks, PRIORS[0], width=1)
    assert found.status == "optimal" and found.log_joint == pytest.approx(exact.log_joint.max(), abs=1e-9)


@pytest.mark.parametrize("name, which", EXAMPLES)
def test_no_company_beats_the_ceiling(name, which, global_random_seed):
    """log_ceiling(s, x, r) >= log p(x | s and any r others), for all of the examples' objects as company."""
    block = example(name, which, N=6, seed=global_random_seed + 2)
    lik, data = block.family, block.data
    for d in range(n_columns(lik)):
        size = stats_start(lik, d + 1) - stats_start(lik, d)
        x = datum(lik, data, 0, d)
        s = np.zeros(size)
        observe(lik, d, s, datum(lik, data, 1, d), 1.0)
        for more in range(5):
            ceiling = beam.log_ceiling(lik, d, s, x, float(more))
            for others in itertools.combinations_with_replacement(range(6), more):
                with_others = s.copy()
                for i in others:
                    observe(lik, d, with_others, datum(lik, data, i, d), 1.0)
                with_x = with_others.copy()
                observe(lik, d, with_x, x, 1.0)
                assert log_marginal(lik, d, with_x) - log_marginal(lik, d, with_others) <= ceiling + 1e-9


@pytest.mark.parametrize("prior", PRIORS, ids=lambda p: type(p).__name__)
@pytest.mark.parametrize("name", ["gaussian", "categorical", "poisson"])
def test_what_a_node_promises_is_never_too_little(name, prior, global_random_seed):
    block = example(name, N=6, seed=global_random_seed + 3)
    exact = enumerate_partitions([block], prior)
    live = (beam.Pooled(block.family, block.data, *(np.zeros((40, 8)) for _ in range(2))),)
    rows, n, log_joint, promise = np.arange(6), np.zeros(8), np.empty(8), np.empty(8)
    for placed in range(1, 5):
        for path in {tuple(z[:placed]) for z in exact.labels}:
            inside = enumerate_partitions([block._replace(data=take(block.data, range(placed)))], prior)
            at = np.array(path)
            g = value_of(inside, at)
            K = beam.expand(live, prior, rows, at, placed, g, True, n, log_joint, promise)
            for k in range(K):
                below = (exact.labels[:, : placed + 1] == [*path, k]).all(axis=1)
                assert exact.log_joint[below].max(initial=-np.inf) <= promise[k] + 1e-9


def test_when_nodes_run_out_it_says_so(global_random_seed):
    blocks = [blobs(7, global_random_seed + 1, spread=0.5)]
    exact = enumerate_partitions(blocks, PRIORS[0])
    found = beam.a_star(blocks, PRIORS[0], max_nodes=4, width=1)
    assert found.status == "not proved" and found.n_nodes < 12
    assert found.log_joint <= exact.log_joint.max() + 1e-9 <= found.upper_bound + 1e-8


def test_a_family_without_a_proof_is_not_called_optimal(monkeypatch, global_random_seed):
    blocks = [example("bernoulli", seed=global_random_seed)]
    monkeypatch.delitem(beam.log_ceiling.table, Bernoulli)
    found = beam.a_star(blocks, PRIORS[0])
    assert (found.status, found.admissible, found.upper_bound) == ("not proved", False, np.inf)
    assert found.log_joint == pytest.approx(enumerate_partitions(blocks, PRIORS[0]).log_joint.max())


def test_equal_rows_spare_a_star_most_nodes(monkeypatch):
    X = np.array([[0, 0], [0, 1], [1, 0]], np.int8)[[0, 1, 2, 0, 1, 2, 0]]
    block = Block(Categorical.default([2, 2]), X, ("a", "b"))
    best = enumerate_partitions([block], PRIORS[0]).log_joint.max()
    found = beam.a_star([block], PRIORS[0], width=1)
    monkeypatch.setattr(beam, "_met", lambda *_: False)
    plain = beam.a_star([block], PRIORS[0], width=1)
    assert found.log_joint == pytest.approx(best) and found.status == plain.status == "optimal"
    assert found.n_nodes < plain.n_nodes


# ---- planted bugs --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, bug",
    [
        ("log_seat", lambda prior, n: 0.0),
        ("log_new_seat", lambda prior, N, K: np.log(2 * prior.concentration)),
        ("move_slot", lambda *_: None),
        ("score_row", lambda *_: None),
    ],
)
def test_planted_bugs_are_caught(monkeypatch, name, bug):
    monkeypatch.setattr(
        population, "check", lambda *_: None
    )  # it asks the real functions who implements them
    monkeypatch.setattr(population, name, bug)
    with pytest.raises(AssertionError):
        test_a_beam_that_holds_all_partitions_finds_the_best("gaussian", 0, PRIORS[0], 0)


def test_a_ceiling_that_is_too_low_is_caught(monkeypatch):
    monkeypatch.setattr(beam, "log_open_ceiling", lambda *_: -3.0)
    with pytest.raises(AssertionError):
        test_what_a_node_promises_is_never_too_little("gaussian", PRIORS[0], 0)


# ---- compiled ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_compiled_search_is_the_same(global_random_seed):
    blocks = [blobs(12, global_random_seed, D=5)]
    with interpreted():
        slow = beam.beam_search(blocks, PRIORS[0], width=10)
        proof = beam.a_star(blocks, PRIORS[0], max_nodes=200)
    fast = beam.beam_search(blocks, PRIORS[0], width=10)
    np.testing.assert_array_equal(fast.labels, slow.labels)
    assert fast.log_joint == pytest.approx(slow.log_joint)
    again = beam.a_star(blocks, PRIORS[0], max_nodes=200)
    assert again[2:4] == proof[2:4] and again.log_joint == pytest.approx(proof.log_joint)
    many = [blobs(2000, global_random_seed, D=5)]
    assert beam.beam_search(many, PRIORS[0], width=100).labels.max() >= 2
