"""Passes over rows on a device give what passes in memory give, in any library that follows the array API."""

import numpy as np
import pytest
from scipy.special import gammaln

from partita.engines.climb.seeding import label_statistics
from partita.engines.passes import device_rows as dr
from partita.engines.passes import device_scores as ds
from partita.engines.passes.device_special import log_gamma
from partita.engines.passes.rows import (
    Parameters,
    assign_rows,
    collect,
    label_rows,
    labels_in_place,
    log_joint_rows,
    partition_rows,
    plug_in,
    predictive,
    rows_in_memory,
)
from partita.execution import Part, device, executors, row_chunks
from partita.execution.label_rows import label_sizes, labels_with_weight, rows_of_ranks
from partita.families import (
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
    take,
)
from partita.families.contract import expect

xp = pytest.importorskip("array_api_strict", reason="array-api-strict plays the device")
N, K = 300, 4
NAMES = ["categorical", "gaussian", "gaussian_full", "bernoulli", "poisson", "multinomial", "exponential"]
IN_SINGLE = ("categorical", "bernoulli")  # one-hot rows are multiplied in single precision


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(device, "CHUNK_BYTES", 20_000)


def on(values, dtype=None):
    return xp.asarray(values, dtype=dtype, device=xp.Device("device1"))


def pair(name, rng, holes=True):
    """The same block in memory and on a device."""
    if name == "categorical":
        n_levels = np.array([3, 2, 5])
        codes = np.stack([rng.integers(-1 if holes else 0, v, N) for v in n_levels], axis=1).astype(np.int32)
        family = Categorical.default(n_levels, power=np.array([1.0, 0.5, 2.0]))
        bytes_ = np.where(codes < 0, 255, codes).astype(np.uint8)
        return (
            Block(family, codes, tuple("abc")),
            Block(family, dr.DeviceCodes(on(bytes_.T.copy()), {}), tuple("abc")),
        )
    if name == "bernoulli":
        codes = rng.integers(-1 if holes else 0, 2, size=(N, 3)).astype(np.int32)
        block = Block(Bernoulli(np.array([0.5, 2.0, 1.0]), np.array([1.5, 0.4, 1.0])), codes, tuple("abc"))
        bytes_ = np.where(codes < 0, 255, codes).astype(np.uint8)
        return block, block._replace(data=dr.DeviceCodes(on(bytes_.T.copy()), {}))
    if name in ("poisson", "multinomial", "exponential"):
        return amounts(name, rng, holes)
    X = rng.normal(size=(N, 3)) * [1.0, 2.0, 5.0] + [0.0, 10.0, -3.0]
    if name == "gaussian":
        X[rng.random((N, 3)) < 0.1] = np.nan
    center, scale = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
    family = GaussianDiagonal.default(3) if name == "gaussian" else GaussianFull.default(3)
    data = dr.DeviceReals(on(X), (0, 1, 2), center, scale)
    return Block(family, (X - center) / scale, tuple("xyz")), Block(family, data, tuple("xyz"))


def amounts(name, rng, holes):
    """Counts and durations in memory and on a device, of which some columns are not modeled."""
    if name == "multinomial":
        X = rng.poisson(rng.gamma(0.5, 8.0, size=(N, 5))).astype(float)
        X[:3, 1:4] = 0.0  # rows without a count
        block = Block(
            Multinomial.of(np.array([0.5, 1.0, 2.0])), CountVectors.from_dense(X[:, 1:4]), tuple("abc")
        )
        counts = dr.DeviceCounts(on(X if holes else X.astype(np.int32)), (1, 2, 3))
        return block, block._replace(data=dr.vectors_of(counts))
    poisson = name == "poisson"
    X = rng.poisson(rng.gamma(0.5, 8.0, size=(N, 3))) * 1.0 if poisson else rng.exponential(3.0, size=(N, 3))
    if holes:
        X[rng.random((N, 3)) < 0.1] = np.nan
    prior = np.array([1.3, 0.8]), np.array([0.7, 0.2])
    own = np.ascontiguousarray(X[:, [2, 0]])
    if poisson:
        block = Block(Poisson(*prior), Counts(own, np.ones(N)), tuple("xy"))
        return block, block._replace(data=dr.DeviceCounts(on(X), (2, 0)))
    data = dr.DeviceReals(on(X), (2, 0), np.zeros(2), np.ones(2))
    return Block(Exponential(*prior), own, tuple("xy")), Block(Exponential(*prior), data, tuple("xy"))


def start(block, rng):
    z = rng.integers(0, K, N)
    statistics = label_statistics([block], np.ones(N), z, K)
    return (
        z,
        statistics,
        Parameters(np.log(rng.dirichlet(np.ones(K))), (expect(block.family, statistics.S[0]),)),
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_a_pass_gives_the_same_statistics(name, weighted, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    here, there = pair(name, rng)
    weights = rng.integers(0, 3, N).astype(float) if weighted else np.ones(N)
    _, _, at = start(here, rng)
    want = collect([here], weights, at)
    found = collect([there], weights, at)
    tolerance = 1e-6 if name in IN_SINGLE else 1e-12
    np.testing.assert_allclose(found.n, want.n, rtol=tolerance)
    np.testing.assert_allclose(found.S[0], want.S[0], rtol=tolerance, atol=tolerance * N)
    assert found.log_likelihood == pytest.approx(want.log_likelihood, rel=tolerance)
    assert found.entropy == pytest.approx(want.entropy, rel=10 * tolerance)


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_scored_by_parameters_and_by_data(name, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    here, there = pair(name, rng)
    _, statistics, at = start(here, rng)
    scores = [
        [plug_in([block], at) for block in (here, there)],
        [predictive([block], statistics.S, at.log_weights) for block in (here, there)],
    ]
    for in_memory, on_device in scores:
        want = assign_rows(in_memory, N, uncertain=True)
        *there, uncertain = assign_rows(on_device, N, uncertain=True)
        labels, confidence, entropy, log_likelihood = (device.to_host(values) for values in there)
        np.testing.assert_array_equal(labels, want.labels)
        np.testing.assert_allclose(confidence, want.confidence, rtol=1e-5)
        np.testing.assert_allclose(entropy, want.entropy, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(log_likelihood, want.log_likelihood, rtol=1e-5, atol=1e-6)
        shares = np.zeros((2, N, K))
        for own, (rows, clusters, probabilities) in zip(shares, (want.uncertain, uncertain), strict=True):
            own[rows, clusters] = probabilities
        np.testing.assert_allclose(
            shares[0], shares[1], atol=1e-3 * (K + 1)
        )  # small ones may be dropped on one side
        for ours, theirs in zip(label_rows(in_memory, N, K), label_rows(on_device, N, K), strict=True):
            np.testing.assert_allclose(device.to_host(theirs), ours, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_one_pass_gives_labels_and_sums(name, weighted, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    here, there = pair(name, rng)
    weights = rng.integers(0, 3, N).astype(float) if weighted else np.ones(N)
    _, _, at = start(here, rng)
    want = partition_rows(plug_in([here], at), weights, K)
    found = partition_rows(plug_in([there], at), weights, K)
    np.testing.assert_array_equal(found.labels.get(), want.labels)
    np.testing.assert_allclose(found.confidence.get(), want.confidence, rtol=1e-5)
    np.testing.assert_allclose(found.sizes, want.sizes)
    assert found.entropy == pytest.approx(want.entropy, rel=1e-4)
    assert found.log_likelihood == pytest.approx(want.log_likelihood, rel=1e-6)
    shares = np.zeros((2, N, K))
    for own, (rows, clusters, probabilities) in zip(
        shares, (want.uncertain, found.uncertain.get()), strict=True
    ):
        own[rows, clusters] = probabilities
    np.testing.assert_allclose(shares[0], shares[1], atol=1e-3 * (K + 1))


@pytest.mark.parametrize("name", NAMES)
def test_labels_are_counted_and_rows_fetched(name, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    here, there = pair(name, rng)
    z, want, _ = start(here, rng)
    z[::7] = -1
    want = label_statistics([here], np.ones(N), z, K)
    found = label_statistics([there], np.ones(N), z, K)
    np.testing.assert_allclose(found.n, want.n)
    np.testing.assert_allclose(found.S[0], want.S[0], atol=1e-10)
    rows = np.array([5, 2, 2, 299])
    held, at = rows_in_memory([there], rows)
    pairs = zip(leaves(take(held[0].data, at)), leaves(take(here.data, rows)), strict=True)
    for found, want in pairs:
        np.testing.assert_allclose(found, want, atol=1e-12)


def leaves(data):
    """The arrays of the data of a block."""
    return data if isinstance(data, tuple) else (data,)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_a_part_has_the_rows_of_the_host(name, weighted, monkeypatch, global_random_seed):
    """Chunks of eight rows: 38 of them, of which the last has four."""
    monkeypatch.setattr(executors, "CHUNK_ROWS", 8)
    monkeypatch.setattr(row_chunks, "__defaults__", (8, 0, None))
    rng = np.random.default_rng(global_random_seed)
    here, there = pair(name, rng)
    weights = rng.integers(0, 3, N).astype(float) if weighted else np.ones(N)
    _, _, at = start(here, rng)
    tolerance = 1e-6 if name in IN_SINGLE else 1e-12
    sizes = []
    for part in [Part(number, 5) for number in range(5)]:
        rows = part.rows(np.arange(part.count(N)))
        np.testing.assert_array_equal(rows, np.concatenate(list(row_chunks(N, part=part))))
        want, found = (collect([block], weights, at, part=part) for block in (here, there))
        np.testing.assert_allclose(found.n, want.n, rtol=10 * tolerance)
        np.testing.assert_allclose(found.S[0], want.S[0], rtol=tolerance, atol=tolerance * N)
        assert found.log_likelihood == pytest.approx(want.log_likelihood, rel=tolerance)
        sizes.append(found.n.sum())
    assert sum(sizes) == pytest.approx(weights.sum(), rel=1e-6)


@pytest.mark.parametrize("name", ["categorical", "gaussian"])
def test_rows_of_each_label_are_found_on_the_device(name, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    here, there = pair(name, rng)
    weights = rng.integers(0, 2, N).astype(float)
    _, _, at = start(here, rng)
    z, far = (labels_in_place(plug_in([block], at), N) for block in (here, there))
    assert "int" in str(far.dtype)
    np.testing.assert_array_equal(device.to_host(far), z)
    for w in (np.ones(N), weights):
        z, far = labels_with_weight(z, w), labels_with_weight(far, w)
        sizes = label_sizes(z, K + 1)  # the last has no row
        np.testing.assert_array_equal(sizes, np.bincount(z[z >= 0], minlength=K + 1))
        np.testing.assert_array_equal(label_sizes(far, K + 1), sizes)
        ranks = [np.sort(rng.choice(n, size=n // 2, replace=False)) for n in sizes]
        for k, (one, other, own) in enumerate(
            zip(rows_of_ranks(z, ranks), rows_of_ranks(far, ranks), ranks, strict=True)
        ):
            np.testing.assert_array_equal(one, np.flatnonzero(z == k)[own])
            np.testing.assert_array_equal(other, one)


def test_a_row_that_no_cluster_can_have_is_shared():
    block = Block(Categorical.default([2]), dr.DeviceCodes(on(np.array([[0, 1]], np.uint8)), {}), ("a",))
    theta = np.array([[0.0, 0.0], [-np.inf, -np.inf], [-1.0, -1.0]])
    found = assign_rows(plug_in([block], Parameters(np.log([0.5, 0.5]), (theta,))), 2)
    np.testing.assert_allclose(device.to_host(found.confidence), 0.5)
    assert device.to_host(found.log_likelihood)[0] < -1e29


def test_a_full_device_is_asked_for_less():
    asked = []

    class OutOfMemoryError(RuntimeError):
        pass

    def one(lo, hi):
        asked.append(hi - lo)
        if hi - lo > 3:
            raise OutOfMemoryError("no room")
        return hi - lo

    assert sum(found for _, _, found in device.in_chunks(one, 20, 1_000)) == 20
    assert asked[0] == 20 and max(asked[asked.index(2) :]) <= 3
    with pytest.raises(OutOfMemoryError):
        list(device.in_chunks(lambda lo, hi: (_ for _ in ()).throw(OutOfMemoryError()), 4, 1))


def test_log_joints_match_in_memory(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    here, there = pair("categorical", rng)
    _, _, at = start(here, rng)
    scorer = ds.score_by_parameters([there], at.log_weights, at.thetas)
    L = ds.log_joints(scorer, [dr.features(there.family, there.data, 0, N)], ds.uploaded(scorer))
    want = log_joint_rows([here], at, np.arange(N))
    np.testing.assert_allclose(device.to_host(L), want, rtol=1e-5)


def test_log_gamma_is_that_of_scipy(rng):
    x = np.concatenate([rng.uniform(1e-4, 20.0, 1000), np.arange(1.0, 60.0), 10.0 ** rng.uniform(1, 15, 200)])
    found = device.to_host(log_gamma(on(x)))
    np.testing.assert_allclose(found, gammaln(x), rtol=2e-15, atol=1e-14)
    single = device.to_host(log_gamma(on(x.astype(np.float32))))
    np.testing.assert_allclose(single, gammaln(x), rtol=1e-5, atol=1e-4)
