"""The sub-cluster sampler over rows on a device: the random numbers and the labels of the host, and the posterior."""

import numpy as np
import pytest

from partita.engines.climb.seeding import label_statistics
from partita.engines.passes import device_rows as rows_there
from partita.engines.subclusters import moves, sampler
from partita.execution import device
from partita.execution.device_random import device_uniforms
from partita.families import (
    FAMILIES,
    Bernoulli,
    Block,
    Categorical,
    Counts,
    CountVectors,
    Exponential,
    GaussianDiagonal,
    GaussianFull,
    Multinomial,
    Poisson,
)
from partita.families import n_rows as n_rows_of
from partita.families.contract import draw
from partita.families.rows import project_rows
from partita.labels import canonical
from partita.partitions import DirichletProcess, bind
from partita.testing import enumerate_partitions

xp = pytest.importorskip("array_api_strict", reason="array-api-strict plays the device")
N = 240


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(device, "CHUNK_BYTES", 200_000)


def on(values):
    return xp.asarray(values, device=xp.Device("device1"))


def pair(name, rng):
    """The same planted block in memory and on a device."""
    z = rng.integers(4, size=N)
    if name == "categorical":
        codes = np.where(
            rng.random((N, 8)) < 0.2, rng.integers(3, size=(N, 8)), (z[:, None] + np.arange(8)) % 3
        )
        block = Block(Categorical.default([3] * 8), codes.astype(np.int32), tuple(range(8)))
        return block, block._replace(data=rows_there.DeviceCodes(on(codes.T.astype(np.uint8).copy()), {}))
    if name in ("multinomial", "poisson", "exponential", "bernoulli"):
        return amounts(name, z, rng)
    X = 9.0 * np.array([[0, 0], [0, 1], [1, 0], [1, 1]])[z] + rng.normal(size=(N, 2))
    family = (GaussianDiagonal if name == "gaussian" else GaussianFull).default(2)
    block = Block(family, X, ("x", "y"))
    return block, block._replace(data=rows_there.DeviceReals(on(X), (0, 1), np.zeros(2), np.ones(2)))


def amounts(name, z, rng):
    """Counts, durations and answers, each column about a level that depends on the group."""
    level = (z[:, None] + np.arange(8)) % 4
    if name == "bernoulli":
        codes = (rng.random((N, 8)) < 0.1 + 0.8 * (level > 1)).astype(np.int32)
        block = Block(Bernoulli.default(8), codes, tuple(range(8)))
        return block, block._replace(data=rows_there.DeviceCodes(on(codes.T.astype(np.uint8).copy()), {}))
    columns = tuple(range(8))
    if name == "exponential":
        X = rng.exponential(10.0 ** (level - 1.0))
        block = Block(Exponential(np.ones(8), np.ones(8)), X, columns)
        return block, block._replace(data=rows_there.DeviceReals(on(X), columns, np.zeros(8), np.ones(8)))
    X = rng.poisson(0.5 * 4.0**level).astype(float)
    there = rows_there.DeviceCounts(on(X), columns)
    if name == "poisson":
        block = Block(Poisson(np.ones(8), np.full(8, 0.1)), Counts(X, np.ones(N)), columns)
        return block, block._replace(data=there)
    block = Block(Multinomial.default(8), CountVectors.from_dense(X), columns)
    return block, block._replace(data=rows_there.vectors_of(there))


@pytest.mark.parametrize("lo, hi", [(0, 7), (3, 4), (5, 130)])
def test_random_numbers_are_those_of_the_host(lo, hi, global_random_seed):
    key = 2**62 + global_random_seed
    found = device_uniforms(key, 5, 1003, lo, hi, on(np.zeros(1)))
    np.testing.assert_array_equal(device.to_host(found), moves.uniforms(key, 5, 1003, lo, hi))


@pytest.mark.parametrize(
    "name", ["gaussian", "gaussian_full", "multinomial", "poisson", "exponential", "bernoulli"]
)
def test_chains_have_the_labels_of_the_host(name, global_random_seed):
    here, there = pair(name, np.random.default_rng(global_random_seed))
    prior = bind(DirichletProcess(1.0), N)
    states = [sampler.init([b], np.ones(N), prior, np.random.default_rng(0)) for b in (here, there)]
    accepted = 0
    for t in range(20):
        states = [
            sampler.step(state, [b], prior, n_launch=2, n_coins=2, n_crowds=1, warm_up=t < 2)
            for state, b in zip(states, (here, there), strict=True)
        ]
        one, other = states
        np.testing.assert_array_equal(device.to_host(other.labels), one.labels)
        np.testing.assert_allclose(other.n, one.n)
        np.testing.assert_allclose(other.seats.S[0], one.seats.S[0], rtol=1e-9, atol=1e-9)
        assert sampler.log_joint(other, [there], prior) == pytest.approx(
            sampler.log_joint(one, [here], prior)
        )
        accepted += one.moves.splits_accepted
    assert accepted


def test_log_likelihoods_are_linear_in_parameters(rng):
    """The log odds of two sub-clusters are read off the difference of their parameters."""
    for entry in FAMILIES.values():
        for lik, data in entry.examples(rng):
            n = n_rows_of(data)
            S = label_statistics([Block(lik, data, ())], np.ones(n), np.arange(n) % 2, 2).S[0]
            both = np.ascontiguousarray(draw(lik, S, rng))
            apart = np.ascontiguousarray(both[:, :1] - both[:, 1:])
            L = [np.zeros((n, theta.shape[1])) for theta in (both, apart)]
            for theta, out in zip((both, apart), L, strict=True):
                project_rows(lik, data, np.arange(n), theta, out)
            np.testing.assert_allclose(L[1][:, 0], L[0][:, 0] - L[0][:, 1], atol=1e-9, err_msg=entry.name)


def test_passes_over_categories_have_the_labels_of_the_host(global_random_seed):
    """But for a draw at the very edge: log joints are in single precision."""
    here, there = pair("categorical", np.random.default_rng(global_random_seed))
    prior = bind(DirichletProcess(1.0), N)
    z = canonical(np.arange(N) % 5)
    one, other = (
        sampler.init([b], np.ones(N), prior, np.random.default_rng(0), labels=z) for b in (here, there)
    )
    np.testing.assert_array_equal(other.seats.S[0], one.seats.S[0])
    streams = [moves.Stream.of(9, 1) for _ in range(4)]
    seated = [
        sampler.reseat(state.seats, [b], prior, stream, None)
        for state, b, stream in zip((one, other), (here, there), streams[:2], strict=True)
    ]
    labels = device.to_host(seated[1].z)
    assert np.mean(labels != seated[0].z) < 0.02
    counted = sampler.init([here], np.ones(N), prior, np.random.default_rng(0), labels=labels)
    np.testing.assert_array_equal(seated[1].S[0], counted.seats.S[0])
    tossed = [
        sampler.toss(state.seats, [b], 1, stream, 7, None)
        for state, b, stream in zip((one, other), (here, there), streams[2:], strict=True)
    ]
    np.testing.assert_array_equal(device.to_host(tossed[1].z), tossed[0].z)
    np.testing.assert_array_equal(tossed[1].S[0], tossed[0].S[0])


@pytest.mark.slow
def test_partitions_have_their_exact_probabilities():
    codes = np.array([[0, 1, 0], [0, 1, 0], [0, 1, 1], [1, 1, 2]], np.int32)
    block = Block(Categorical.default(np.array([2, 2, 3])), codes, ("a", "b", "c"))
    exact = enumerate_partitions([block], DirichletProcess(1.3))
    place = {tuple(z): i for i, z in enumerate(exact.labels)}
    there = [block._replace(data=rows_there.DeviceCodes(on(codes.T.astype(np.uint8).copy()), {}))]
    prior = bind(DirichletProcess(1.3), 4)
    state = sampler.init(there, np.ones(4), prior, np.random.default_rng(0))
    counts = np.zeros(len(place))
    for _ in range(1000):
        state = sampler.step(state, there, prior, n_launch=1, n_coins=1, n_crowds=1)
        counts[place[tuple(canonical(device.to_host(state.labels)))]] += 1
    assert 0.5 * np.abs(counts / counts.sum() - exact.posterior).sum() < 0.15


def test_weights_are_refused(global_random_seed):
    _, there = pair("gaussian", np.random.default_rng(global_random_seed))
    with pytest.raises(ValueError, match="on a device every row is one object"):
        sampler.init([there], np.full(N, 2.0), DirichletProcess(1.0), np.random.default_rng(0))
