"""NBCE against full enumeration, with missing labels and a power; the joint is written out here, not asked for."""

import itertools
import math

import numpy as np
import pytest

from partita import NBCE
from partita.consensus.mixtures.label_mixtures import label_block
from partita.dispatch import interpreted
from partita.engines.climb.seeding import label_statistics
from partita.engines.climb.vb import evidence, learn_hyper
from partita.engines.gibbs import sweep
from partita.labels import set_partitions
from partita.partitions import DirichletProcess, FiniteDirichlet, StickBreaking
from partita.testing import (
    FALSE_ALARM,
    EnumerationResult,
    enumerate_labels,
    enumerate_partitions,
    posterior_p_value,
)

Y = np.array([[0, 0, 1], [0, 1, -1], [1, 1, 1], [1, 2, 0], [0, 2, 1], [-1, 0, 0]])
BETA, ALPHA, K = 0.7, 1.3, 3
WEIGHTS = np.array([1.0, 0.5, 2.0])
lgamma = math.lgamma


def log_likelihood(z, Y, powers):
    """Equation (4) of the paper, observed labels only, each member to its power."""
    total = 0.0
    for m, w in enumerate(powers):
        J = Y[:, m].max() + 1
        for k in set(z):
            seen = [Y[i, m] for i in range(len(z)) if z[i] == k and Y[i, m] >= 0]
            total += w * (lgamma(J * BETA) - lgamma(J * BETA + len(seen)))
            total += w * sum(lgamma(BETA + seen.count(j)) - lgamma(BETA) for j in range(J))
    return total


def log_dp(z):
    n = np.bincount(z)
    steps = sum(math.log(ALPHA + i) for i in range(len(z)))
    return len(n) * math.log(ALPHA) + sum(lgamma(size) for size in n) - steps


def log_fsd(z):
    """Of the partition: of its labels, times the ways to name its clusters."""
    n = np.bincount(z)
    if len(n) > K:
        return -np.inf
    labeled = lgamma(ALPHA) - lgamma(ALPHA + len(z))
    labeled += sum(lgamma(ALPHA / K + size) - lgamma(ALPHA / K) for size in n)
    return labeled + lgamma(K + 1) - lgamma(K - len(n) + 1)


def log_tsb(z):
    n = np.bincount(z, minlength=K)
    total = (K - 1) * math.log(ALPHA)
    for k in range(K - 1):
        after = n[k + 1 :].sum()
        total += lgamma(1 + n[k]) + lgamma(ALPHA + after) - lgamma(1 + ALPHA + n[k] + after)
    return total


PRIORS = {
    "dirichlet_process": (DirichletProcess(ALPHA), log_dp),
    "finite": (FiniteDirichlet(ALPHA, K), log_fsd),
    "stick_breaking": (StickBreaking(ALPHA, K), log_tsb),
}


def exact_posterior(name, Y, powers):
    log_prior = PRIORS[name][1]
    if name == "stick_breaking":
        states = list(itertools.product(range(K), repeat=len(Y)))
    else:
        states = list(set_partitions(len(Y)))
    joint = [log_prior(np.array(z)) + log_likelihood(tuple(z), Y, powers) for z in states]
    return EnumerationResult(np.array(states), np.array(joint))


def few(name):
    return Y[:5] if name == "stick_breaking" else Y


@pytest.mark.parametrize("name", PRIORS)
@pytest.mark.parametrize("powers", [np.ones(3), 0.6 * WEIGHTS], ids=["plain", "powered"])
def test_the_joint_is_that_of_the_paper(name, powers):
    labels = few(name)
    block = label_block(labels, [2, 3, 2], powers, BETA)
    with interpreted():
        enumerate_all = enumerate_labels if name == "stick_breaking" else enumerate_partitions
        found = enumerate_all([block], PRIORS[name][0])
    right = exact_posterior(name, labels, powers)
    order = {tuple(z): joint for z, joint in zip(right.labels.tolist(), right.log_joint, strict=True)}
    np.testing.assert_allclose(found.log_joint, [order[tuple(z)] for z in found.labels.tolist()], atol=1e-9)


def canonical(z):
    names = {}
    return tuple(names.setdefault(label, len(names)) for label in z)


@pytest.mark.parametrize("name", PRIORS)
def test_gibbs_leaves_the_powered_posterior_invariant(name):
    """pi P = pi for the update of every object, no Monte Carlo."""
    labels, prior, powers = few(name)[:4], PRIORS[name][0], 0.6 * WEIGHTS
    exact = exact_posterior(name, labels, powers)
    fixed = name == "stick_breaking"
    index = {tuple(z): s for s, z in enumerate(exact.labels.tolist())}
    block = label_block(labels, [2, 3, 2], powers, BETA)
    with interpreted():
        for i in range(len(labels)):
            P = np.zeros((len(index), len(index)))
            for z, s in index.items():
                if not np.isfinite(exact.log_joint[s]):
                    continue
                seats = sweep.seat([block], np.array(z), n_components=K if fixed else None)
                lp = np.empty(len(seats.n))
                if fixed:
                    sweep.fixed_weights(seats.blocks, prior, seats.z, seats.n, i, lp)
                    room = K
                else:
                    sweep.seat_weights(
                        seats.blocks, prior, seats.z, seats.n, seats.slot_of, seats.name_of, seats.K, i, lp
                    )
                    room = seats.K[0] + 1
                p = np.exp(lp[:room] - lp[:room].max())
                for k in range(room):
                    q = list(z if fixed else sweep.labels(seats))
                    q[i] = k
                    if p[k] > 0:
                        P[s, index[tuple(q) if fixed else canonical(q)]] += p[k] / p.sum()
            np.testing.assert_allclose(exact.posterior @ P, exact.posterior, atol=1e-10)


@pytest.mark.parametrize("name", PRIORS)
def test_chains_draw_from_the_exact_posterior(name, global_random_seed):
    """False alarms one in a million; the same draws are refused by the posterior with another power."""
    labels = few(name)
    model = NBCE(
        name, power=0.6, max_clusters=None if name == "dirichlet_process" else K, concentration=ALPHA,
        smoothing=BETA, n_chains=1, n_draws=4000, burn_in=50, random_state=global_random_seed,
    )  # fmt: skip
    with pytest.warns(UserWarning):
        model.fit(labels, member_weight=WEIGHTS)
    draws = model.trace_.labels.astype(int)
    assert posterior_p_value(exact_posterior(name, labels, 0.6 * WEIGHTS), draws) > FALSE_ALARM
    assert posterior_p_value(exact_posterior(name, labels, 1.5 * WEIGHTS), draws) < FALSE_ALARM


@pytest.mark.parametrize(("inference", "order"), [("vb", 1), ("cvb", 1), ("cvb", 2)])
def test_bounds_are_below_the_evidence(inference, order, global_random_seed):
    exact = exact_posterior("stick_breaking", Y[:5], 0.6 * WEIGHTS)
    model = NBCE(
        "stick_breaking", inference, power=0.6, max_clusters=K, concentration=ALPHA, smoothing=BETA, order=order,
        random_state=global_random_seed,
    )  # fmt: skip
    with pytest.warns(UserWarning):
        model.fit(Y[:5], member_weight=WEIGHTS)
    log_evidence = np.logaddexp.reduce(exact.log_joint)
    assert log_evidence - 5.0 < model.lower_bound_ < log_evidence


def test_one_pseudo_count_is_learned_from_all_members_by_their_powers(global_random_seed):
    """Newton's answer is the best on a grid of the powered evidence, which differs from the plain one's."""
    rng = np.random.default_rng(global_random_seed)
    z = np.repeat([0, 1], 100)
    sharp = np.where(rng.random(200) < 0.05, 1 - z, z)
    codes = np.column_stack([sharp, rng.integers(2, size=200)]).astype(np.int8)
    best = []
    for powers in (np.array([1.0, 1.0]), np.array([3.0, 0.1])):
        block = label_block(codes, [2, 2], powers)
        with interpreted():
            statistics = label_statistics([block], np.ones(200), z, 2)
            family = block.family
            for _ in range(5):
                family = learn_hyper(family, statistics.S[0], statistics.n)
            grid = np.exp(np.linspace(np.log(1e-2), np.log(50), 400))
            heights = [evidence(family._replace(alpha=np.full(2, a)), statistics.S[0]).sum() for a in grid]
        assert np.ptp(family.alpha) == 0.0
        assert family.alpha[0] == pytest.approx(grid[np.argmax(heights)], rel=0.03)
        best.append(family.alpha[0])
    assert best[1] < 0.7 * best[0]


def test_copies_share_the_power_of_one(global_random_seed):
    """Ten copies that count a tenth each say exactly what the member says: bound, labels, learned hyper-parameters."""
    rng = np.random.default_rng(global_random_seed)
    labels = np.where(
        rng.random((60, 4)) < 0.2, rng.integers(3, size=(60, 4)), np.repeat([0, 1, 2], 20)[:, None]
    )
    one = NBCE(inference="vb", random_state=global_random_seed).fit(labels)
    ten = NBCE(inference="vb", power=0.1, random_state=global_random_seed).fit(np.repeat(labels, 10, axis=1))
    assert ten.lower_bound_ == pytest.approx(one.lower_bound_, abs=1e-3)
    assert np.array_equal(ten.labels_, one.labels_)
    assert ten.smoothing_ == pytest.approx(one.smoothing_, rel=1e-2)
