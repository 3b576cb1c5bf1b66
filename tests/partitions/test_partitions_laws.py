"""Laws of probability that hold for every prior, checked by enumeration."""

import itertools
import pickle

import numpy as np
import pytest
from scipy import stats

from partita.dispatch import lacks
from partita.labels import canonical, set_partitions
from partita.partitions import (
    PRIORS,
    DirichletProcess,
    FiniteDirichlet,
    PitmanYor,
    bind,
    checked,
    concentration_for,
    examples,
    expected_n_clusters,
    log_eppf,
    log_labeled,
    log_mass,
    n_clusters_prior,
    simulate,
    specify,
    with_concentration,
)

SIGNIFICANCE = 1e-6


def sizes_of(z):
    return np.bincount(z).astype(float) if len(z) else np.zeros(0)


def test_labels_are_fixed_if_partitions_have_no_probability(prior):
    assert prior.fixed_labels == bool(lacks(type(prior), log_eppf))
    assert pickle.loads(pickle.dumps(prior)).fixed_labels == prior.fixed_labels


def log_partition(prior, z):
    n = sizes_of(np.asarray(z))
    return log_eppf(prior, n, len(n))


def log_label_vector(prior, z):
    return log_labeled(prior, np.bincount(z, minlength=prior.n_components).astype(float))


def label_vectors(prior, N):
    return itertools.product(range(prior.n_components), repeat=N)


def normalized(log_p):
    return np.exp(log_p - np.logaddexp.reduce(log_p))


def seats(prior, n, K):
    out = np.full(K + 1, np.nan)
    log_mass(prior, n, K, out)
    return out if np.isfinite(out[-1]) or not np.isnan(out[-1]) else out[:-1]


# ---- sums --------------------------------------------------------------------------------------------------


def test_every_prior_has_two_examples():
    for name, factory in PRIORS.items():
        assert len(examples(type(factory()))) >= 2, name
        assert type(specify(name)) is type(factory())


@pytest.mark.parametrize("N", [1, 2, 5])
def test_partitions_sum_to_one(exchangeable, N):
    assert sum(np.exp(log_partition(exchangeable, z)) for z in set_partitions(N)) == pytest.approx(
        1, abs=1e-12
    )


@pytest.mark.parametrize("N", [1, 5])
def test_label_vectors_sum_to_one(labeled, N):
    total = sum(np.exp(log_label_vector(labeled, z)) for z in label_vectors(labeled, N))
    assert total == pytest.approx(1, abs=1e-12)


def test_a_partition_is_the_sum_of_its_labelings(both):
    by_partition = {}
    for z in label_vectors(both, 4):
        key = tuple(canonical(z))
        by_partition[key] = by_partition.get(key, 0.0) + np.exp(log_label_vector(both, z))
    for z in set_partitions(4):
        assert np.exp(log_partition(both, z)) == pytest.approx(by_partition.get(z, 0.0), abs=1e-14)


def test_order_does_not_matter(exchangeable):
    n = np.array([3.0, 1.0, 2.0])
    values = [log_eppf(exchangeable, np.array(p), 3) for p in itertools.permutations(n)]
    np.testing.assert_allclose(values, values[0], rtol=1e-13)


# ---- seats -------------------------------------------------------------------------------------------------


def test_a_seat_is_a_ratio_of_partitions(exchangeable):
    """p(z_i = k | rest) from log_mass equals the conditional of the joint, for every cluster."""
    for others in set_partitions(4):
        n = sizes_of(np.array(others))
        K = len(n)
        joint = np.array([log_partition(exchangeable, (*others, k)) for k in range(K + 1)])
        if np.isneginf(log_partition(exchangeable, others)):
            continue
        out = np.empty(K + 1)
        log_mass(exchangeable, n, K, out)
        np.testing.assert_allclose(normalized(out), normalized(joint), atol=1e-13)


def test_a_seat_is_a_ratio_of_label_vectors(labeled):
    K = labeled.n_components
    for others in label_vectors(labeled, 3):
        n = np.bincount(others, minlength=K).astype(float)
        out = np.full(K + 1, np.nan)
        log_mass(labeled, n, K, out)
        if lacks(type(labeled), log_eppf):
            assert np.isnan(out[K])  # fixed labels: no seat for a new one
        else:
            assert np.isneginf(out[K])
        joint = np.array([log_label_vector(labeled, (*others, k)) for k in range(K)])
        np.testing.assert_allclose(normalized(out[:K]), normalized(joint), atol=1e-13)


def test_seating_in_turn_gives_the_partition(exchangeable):
    for z in set_partitions(5):
        log_p, n, K = 0.0, np.zeros(6), 0
        for k in z:
            out = np.empty(K + 1)
            log_mass(exchangeable, n[:K], K, out)
            log_p += out[k] - np.logaddexp.reduce(out)
            n[k] += 1
            K = max(K, k + 1)
            if np.isneginf(log_p):
                break
        assert log_p == pytest.approx(log_partition(exchangeable, z), abs=1e-12)


def test_stick_breaking_seats_are_probabilities():
    """Erratum of NBCE: with the printed factor for the last label they sum to less than 1."""
    for prior in examples(type(specify("stick_breaking"))):
        K = prior.n_components
        out = np.empty(K)
        log_mass(prior, np.array([2.5, 0.0, 1.25, 4.0])[:K], K, out)
        assert np.exp(out).sum() == pytest.approx(1, abs=1e-14)


def test_seats_take_views_and_leave_the_sizes_alone(prior):
    K = getattr(prior, "n_components", 3)
    whole = np.arange(1.0, 2 * K + 1)
    n, buffer = whole[::2], np.full((K + 1, 2), np.nan)
    log_mass(prior, n, K, buffer[:, 1])
    straight = np.full(K + 1, np.nan)
    log_mass(prior, n.copy(), K, straight)
    np.testing.assert_array_equal(buffer[:, 1], straight)
    np.testing.assert_array_equal(whole, np.arange(1.0, 2 * K + 1))
    short = np.empty(K)
    log_mass(prior, n, K, short)  # a buffer without room for a new cluster
    np.testing.assert_array_equal(short, straight[:K])


def test_an_empty_cluster_of_an_exchangeable_prior_has_no_seat():
    for prior in [DirichletProcess(1.0), PitmanYor(1.0, 0.5)]:
        out = np.empty(3)
        log_mass(prior, np.array([2.0, 0.0]), 2, out)
        assert np.isneginf(out[1]) and np.isfinite(out[[0, 2]]).all()


# ---- simulation --------------------------------------------------------------------------------------------


def chi_square_passes(observed, expected):
    keep = expected > 0
    assert observed[~keep].sum() == 0
    statistic = ((observed[keep] - expected[keep]) ** 2 / expected[keep]).sum()
    return stats.chi2.sf(statistic, keep.sum() - 1) > SIGNIFICANCE


@pytest.mark.parametrize("N", [4])
def test_simulations_have_their_probabilities(prior, rng, N):
    if lacks(type(prior), log_eppf):
        states, log_probability = list(label_vectors(prior, N)), log_label_vector
    else:
        states, log_probability = list(set_partitions(N)), log_partition
    index = {z: i for i, z in enumerate(states)}
    n_draws = 40 * len(states) + 2000
    observed = np.zeros(len(states))
    for _ in range(n_draws):
        observed[index[tuple(simulate(prior, N, rng).tolist())]] += 1
    assert chi_square_passes(observed, n_draws * np.exp([log_probability(prior, z) for z in states]))


def test_simulated_sizes_have_their_probabilities(exchangeable, rng):
    """With more objects, pooled by the sizes of the clusters, wrong weights are easier to detect."""
    n_draws, expected, observed = 6000, {}, {}
    for z in set_partitions(7):
        sizes = tuple(sorted(np.bincount(z)))
        expected[sizes] = expected.get(sizes, 0.0) + n_draws * np.exp(log_partition(exchangeable, z))
    for _ in range(n_draws):
        sizes = tuple(sorted(np.bincount(simulate(exchangeable, 7, rng))))
        observed[sizes] = observed.get(sizes, 0.0) + 1.0
    counts = np.array([[observed.get(sizes, 0.0), expected[sizes]] for sizes in expected])
    assert chi_square_passes(*counts.T)


def test_no_objects(prior, rng):
    assert simulate(prior, 0, rng).shape == (0,)
    if not lacks(type(prior), log_eppf):
        assert log_eppf(prior, np.zeros(0), 0) == pytest.approx(0.0, abs=1e-14)


# ---- the number of clusters --------------------------------------------------------------------------------


def enumerated_n_clusters(prior, N):
    p = np.zeros(N + 1)
    if lacks(type(prior), log_eppf):
        for z in label_vectors(prior, N):
            p[len(set(z))] += np.exp(log_label_vector(prior, z))
    else:
        for z in set_partitions(N):
            p[len(set(z))] += np.exp(log_partition(prior, z))
    return p


@pytest.mark.parametrize("N", [0, 1, 6])
def test_number_of_clusters_against_enumeration(prior, N):
    p = n_clusters_prior(prior, N)
    padded = np.zeros(N + 1)
    padded[: len(p)] = p
    np.testing.assert_allclose(padded, enumerated_n_clusters(prior, N), atol=1e-13)
    assert expected_n_clusters(prior, N) == pytest.approx(padded @ np.arange(N + 1), abs=1e-11)


def test_number_of_clusters_of_many_objects(prior):
    p = n_clusters_prior(prior, 300)
    assert p.sum() == pytest.approx(1, abs=1e-12)
    assert (p >= 0).all()
    assert expected_n_clusters(prior, 300) == pytest.approx(p @ np.arange(len(p)), rel=1e-9)


def test_stick_breaking_by_draws_agrees_with_the_exact_law(monkeypatch):
    from partita.partitions import stick_breaking

    prior = specify("stick_breaking", concentration=1.5, n_components=6)
    exact, mean = n_clusters_prior(prior, 50), expected_n_clusters(prior, 50)
    monkeypatch.setattr(stick_breaking, "MAX_EXACT_OBJECTS", 0)
    drawn = n_clusters_prior(prior, 50)
    expected = exact * stick_breaking.N_DRAWS
    assert chi_square_passes(drawn * stick_breaking.N_DRAWS, expected)
    assert expected_n_clusters(prior, 50) == pytest.approx(mean, abs=5 * 6 / np.sqrt(stick_breaking.N_DRAWS))


def test_concentration_for_a_number_of_clusters(prior):
    target = expected_n_clusters(with_concentration(prior, 0.5), 40)
    assert concentration_for(prior, target, 40) == pytest.approx(0.5, rel=1e-6)
    with pytest.raises(ValueError, match="the prior mean of"):
        concentration_for(prior, 41.0, 40)


# ---- relations between priors ------------------------------------------------------------------------------


def test_pitman_yor_without_discount_is_the_dirichlet_process():
    for z in set_partitions(5):
        assert log_partition(PitmanYor(1.3, 0.0), z) == pytest.approx(log_partition(DirichletProcess(1.3), z))


def test_many_components_approach_the_dirichlet_process():
    far = [log_partition(FiniteDirichlet(1.3, 10**7), z) for z in set_partitions(5)]
    np.testing.assert_allclose(
        far, [log_partition(DirichletProcess(1.3), z) for z in set_partitions(5)], atol=1e-5
    )


def test_one_known_number_of_components_is_the_finite_dirichlet():
    fixed = specify("mfm", gamma=0.6, components=[0.0, 0.0, 1.0])
    finite = FiniteDirichlet(1.8, 3)
    for prior in (fixed, bind(fixed, 5), bind(fixed, 99)):
        for z in set_partitions(5):
            assert log_partition(prior, z) == pytest.approx(log_partition(finite, z), abs=1e-12)
    np.testing.assert_allclose(n_clusters_prior(fixed, 8)[:4], n_clusters_prior(finite, 8)[:4], atol=1e-13)


# ---- values ------------------------------------------------------------------------------------------------


def test_priors_pickle_and_check(prior):
    again = pickle.loads(pickle.dumps(checked(prior)))
    for mine, theirs in zip(prior, again):
        np.testing.assert_array_equal(mine, theirs)
        assert type(theirs) in (float, int, np.ndarray)


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("dirichlet_process", {"concentration": 0}, "concentration is 0"),
        ("dirichlet_process", {"concentration": np.nan}, "concentration is nan"),
        ("pitman_yor", {"discount": 1.0}, "discount is 1.0"),
        ("pitman_yor", {"concentration": -0.3, "discount": 0.2}, "greater than -discount"),
        ("mfm", {"gamma": -1.0}, "gamma is -1.0"),
        ("mfm", {"components": "uniform"}, 'components is "uniform"'),
        ("mfm", {"components": [0.0, 0.0]}, "not all 0"),
        ("mfm", {"rate": 1.5}, "below 1"),
        ("finite", {"n_components": 2.5}, "n_components is 2.5"),
        ("stick_breaking", {"n_components": 0}, "n_components is 0"),
        ("nothing", {}, "unknown prior"),
    ],
)
def test_bad_parameters_say_what_is_wrong(name, parameters, message):
    with pytest.raises(ValueError, match=message):
        specify(name, **parameters)


def test_a_prior_says_what_it_lacks():
    from partita.partitions import expect_log_weights

    with pytest.raises(TypeError, match="DirichletProcess has no expect_log_weights"):
        expect_log_weights(DirichletProcess(1.0), np.ones(2))
    with pytest.raises(TypeError, match="DirichletProcess has no implementation of log_labeled"):
        log_labeled(DirichletProcess(1.0), np.ones(2))
