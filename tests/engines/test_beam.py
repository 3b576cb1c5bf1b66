"""Beam search against all partitions of a few objects; interpreted, so that no compiler is waited for."""

import numpy as np
import pytest

from partita.dispatch import interpreted
from partita.engines.sequential import beam, population
from partita.engines.sequential.population import grow, populate
from partita.families import (
    FAMILIES,
    Block,
    Categorical,
    GaussianDiagonal,
    GaussianFull,
)
from partita.labels import canonical
from partita.partitions import DirichletProcess, FiniteDirichlet, PitmanYor, StickBreaking, specify
from partita.testing import enumerate_partitions, take, with_missing_cells

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


@pytest.fixture(autouse=True)
def uncompiled(request):
    if "slow" in request.keywords:
        yield
    else:
        with interpreted():
            yield


def example(name, which=0, N=5, seed=0, holes=0.0):
    rng = np.random.default_rng(seed)
    lik, data = FAMILIES[name].examples(rng)[which]
    data = take(data, range(N))
    return Block(lik, with_missing_cells(data, holes, rng) if holes else data, ("x",))


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
def test_a_beam_that_holds_all_partitions_finds_the_best(name, which, prior):
    blocks = [example(name, which)]
    exact = enumerate_partitions(blocks, prior)
    found = beam.beam_search(blocks, prior, width=52)
    assert found.log_joint == pytest.approx(exact.log_joint.max(), abs=1e-9)
    assert value_of(exact, found.labels) == pytest.approx(found.log_joint, abs=1e-9)


def test_seven_objects():
    blocks = [blobs(7, 3)]
    exact = enumerate_partitions(blocks, PRIORS[0])
    found = beam.beam_search(blocks, PRIORS[0], width=877)
    assert found.log_joint == pytest.approx(exact.log_joint.max(), abs=1e-9)
    np.testing.assert_array_equal(found.labels, exact.labels[exact.log_joint.argmax()])


@pytest.mark.parametrize("width", [1, 2, 5])
def test_a_narrow_beam_is_never_better_than_exact_and_says_its_true_log_joint(width):
    for seed in range(4):
        blocks = [blobs(6, seed, spread=1.0), codes(6, seed)]
        exact = enumerate_partitions(blocks, PRIORS[1])
        found = beam.beam_search(blocks, PRIORS[1], width=width)
        assert found.log_joint <= exact.log_joint.max() + 1e-9
        assert found.log_joint == pytest.approx(value_of(exact, found.labels), abs=1e-9)


def test_wider_is_better_on_average():
    values = np.array(
        [
            [beam.beam_search([codes(9, s)], PRIORS[0], width=w).log_joint for w in (1, 4, 16, 64)]
            for s in range(12)
        ]
    )
    assert np.all(np.diff(values.mean(axis=0)) >= 0) and values[:, -1].mean() > values[:, 0].mean() + 0.1


def test_missing_cells_and_mixed_blocks():
    blocks = [
        example("categorical", holes=0.3),
        example("gaussian", holes=0.3),
        example("poisson", holes=0.2),
    ]
    blocks[1].data[2] = np.nan
    exact = enumerate_partitions(blocks, PRIORS[3])
    assert beam.beam_search(blocks, PRIORS[3], width=52).log_joint == pytest.approx(exact.log_joint.max())


def test_equal_rows_are_interchangeable_and_held_once():
    X = np.repeat(np.array([[0, 0, 0], [1, 1, 1]], np.int8), 4, axis=0)[[0, 4, 1, 5, 2, 6, 3, 7]]
    block = Block(Categorical.default([2, 2, 2]), X, ("a", "b", "c"))
    exact = enumerate_partitions([block], PRIORS[0])
    hashes, ids = beam.row_hashes([block]), X[:, 0]
    assert len(set(hashes)) == 2
    assert len(set(zip(hashes.tolist(), ids.tolist(), strict=True))) == 2
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


def test_rows_in_another_order_with_the_order_undone_change_nothing():
    block, shuffle = blobs(12, 1), np.random.default_rng(0).permutation(12)
    there = beam.beam_search([block], PRIORS[0], width=8, order=np.arange(12))
    moved = block._replace(data=take(block.data, shuffle))
    back = beam.beam_search([moved], PRIORS[0], width=8, order=np.argsort(shuffle))
    assert back.log_joint == pytest.approx(there.log_joint)
    np.testing.assert_array_equal(canonical(back.labels[np.argsort(shuffle)]), there.labels)


def test_the_number_of_components_is_a_bound():
    assert beam.beam_search([blobs(9, 0)], FiniteDirichlet(9.0, 2), width=20).labels.max() <= 1


def test_edges_and_mistakes():
    block = codes(1, 0)
    assert beam.beam_search([block], PRIORS[0]).labels.tolist() == [0]
    with pytest.raises(ValueError, match="width is 0"):
        beam.beam_search([block], PRIORS[0], width=0)
    with pytest.raises(ValueError, match="each of the 3 objects once"):
        beam.beam_search([codes(3, 0)], PRIORS[0], order=[0, 1, 1])
    with pytest.raises(TypeError, match="exchangeable prior"):
        beam.beam_search([block], StickBreaking(1.0, 4))
    hidden = Block(GaussianFull.default(2), np.array([[0.0, np.nan], [1.0, 1.0]]), ("a", "b"))
    with pytest.raises(ValueError, match="partly observed"):
        beam.beam_search([hidden], PRIORS[0])


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
        test_a_beam_that_holds_all_partitions_finds_the_best("gaussian", 0, PRIORS[0])


# ---- compiled ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_compiled_search_is_the_same():
    blocks = [blobs(12, 0, D=5)]
    with interpreted():
        slow = beam.beam_search(blocks, PRIORS[0], width=10)
    fast = beam.beam_search(blocks, PRIORS[0], width=10)
    np.testing.assert_array_equal(fast.labels, slow.labels)
    assert fast.log_joint == pytest.approx(slow.log_joint)
    assert beam.beam_search([blobs(2000, 0, D=5)], PRIORS[0], width=100).labels.max() >= 2
