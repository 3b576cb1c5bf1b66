"""A pass over the rows: the same sums whoever runs it, in whatever blocks; weights are copies."""

import numpy as np
import pytest

from partita.engines.climb import em, vb
from partita.engines.climb.seeding import label_statistics
from partita.engines.passes import memory
from partita.engines.passes.rows import (
    Parameters,
    assign_rows,
    collect,
    label_rows,
    log_joint_rows,
    n_stats,
    plug_in,
)
from partita.execution import Serial, Threads, row_chunks
from partita.families.contract import draw
from partita.partitions import FiniteDirichlet
from partita.testing import take

pytestmark = pytest.mark.usefixtures("uncompiled")
MIXED = ("categorical", "gaussian_full", "poisson", "multinomial")


def parameters_of(blocks, K, rng):
    thetas = tuple(draw(b.family, np.zeros((n_stats(b.family), K)), rng) for b in blocks)
    return Parameters(np.log(rng.dirichlet(np.ones(K))), thetas)


def assert_same(a, b, **tolerance):
    for left, right in zip((a.n, *a.S, *a[2:]), (b.n, *b.S, *b[2:]), strict=True):
        if tolerance:
            np.testing.assert_allclose(left, right, **tolerance)
        else:
            np.testing.assert_array_equal(left, right)


@pytest.fixture
def mixed(make_mixture, rng):
    blocks = [make_mixture(name) for name in MIXED]
    return blocks, rng.uniform(0.5, 2.0, size=40), parameters_of(blocks, 3, rng)


def test_collect_does_not_depend_on_the_executor(mixed, monkeypatch):
    blocks, weights, at = mixed
    monkeypatch.setattr(memory, "row_chunks", lambda n, start=0, part=None: row_chunks(n, size=7))
    serial = collect(blocks, weights, at, Serial())
    for n_jobs in (2, 3, -1):
        assert_same(collect(blocks, weights, at, Threads(n_jobs)), serial)


@pytest.mark.parametrize("size", [1, 7, 39, 41])
def test_collect_does_not_depend_on_the_size_of_blocks(size, mixed, monkeypatch):
    blocks, weights, at = mixed
    whole = collect(blocks, weights, at)
    monkeypatch.setattr(memory, "row_chunks", lambda n, start=0, part=None: row_chunks(n, size=size))
    assert_same(collect(blocks, weights, at), whole, rtol=1e-10, atol=1e-10)


def test_weight_two_is_a_duplicate_and_weight_zero_is_absence(family_name, make_mixture, rng):
    block = make_mixture(family_name)
    at = parameters_of([block], 3, rng)
    weights = rng.integers(0, 3, size=40).astype(float)
    rows = np.repeat(np.arange(40), weights.astype(int))
    copies = block._replace(data=take(block.data, rows))
    left = collect([block], weights, at)
    assert_same(left, collect([copies], np.ones(len(rows)), at), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("engine", ["em", "vb"])
def test_steps_with_weights_are_steps_with_copies(engine, make_mixture, rng):
    blocks = [make_mixture(name) for name in MIXED]
    weights = rng.integers(0, 3, size=40).astype(float)
    rows = np.repeat(np.arange(40), weights.astype(int))
    copies = [block._replace(data=take(block.data, rows)) for block in blocks]
    z, prior = rng.integers(3, size=40), FiniteDirichlet(6.0, 3)

    def three_steps(blocks, weights, z):
        start = label_statistics(blocks, weights, z, 3)
        if engine == "em":
            state = em.init(blocks, prior, start, maximum_likelihood=False)
        else:
            state = vb.init(blocks, prior, start)
        for _ in range(3):
            state = (em if engine == "em" else vb).step(state, blocks, weights)
        return state

    one, other = three_steps(blocks, weights, z), three_steps(copies, np.ones(len(rows)), z[rows])
    assert one.objective == pytest.approx(other.objective, rel=1e-8)
    np.testing.assert_allclose(one.statistics.n, other.statistics.n, rtol=1e-6)


def test_order_of_rows_and_of_clusters_does_not_matter(mixed, rng):
    blocks, weights, at = mixed
    order, swap = rng.permutation(40), np.array([2, 0, 1])
    shuffled = [block._replace(data=take(block.data, order)) for block in blocks]
    whole = collect(blocks, weights, at)
    assert_same(collect(shuffled, weights[order], at), whole, rtol=1e-10, atol=1e-10)
    renamed = collect(
        blocks, weights, Parameters(at.log_weights[swap], tuple(theta[:, swap] for theta in at.thetas))
    )
    np.testing.assert_allclose(renamed.n, whole.n[swap])


def test_assignment_agrees_with_the_probabilities(mixed):
    blocks, _, at = mixed
    score = plug_in(blocks, at)
    proba, log_likelihood = label_rows(score, 40, 3)
    found = assign_rows(score, 40)
    np.testing.assert_array_equal(found.labels, proba.argmax(axis=1))
    np.testing.assert_allclose(found.confidence, proba.max(axis=1))
    np.testing.assert_allclose(found.log_likelihood, log_likelihood)
    np.testing.assert_allclose(
        log_likelihood, np.logaddexp.reduce(log_joint_rows(blocks, at, np.arange(40)), 1)
    )


def test_a_row_that_no_cluster_explains_is_shared_and_said():
    L = np.array([[-np.inf, -np.inf], [0.0, 0.0]])
    P, log_likelihood = memory.normalized(L.copy())
    np.testing.assert_allclose(P, 0.5)
    assert log_likelihood[0] == -np.inf
    R, sums = L.copy(), np.zeros(2)
    memory.normalize_rows(R, np.array([2.0, 1.0]), sums)
    np.testing.assert_allclose(R, [[1.0, 1.0], [0.5, 0.5]])
    assert sums[0] == -np.inf
    assert sums[1] == pytest.approx(3 * np.log(2))
    weightless = np.zeros(2)
    memory.normalize_rows(L.copy(), np.array([0.0, 1.0]), weightless)
    assert np.isfinite(weightless).all()
