"""The admixture of label cells on data small enough to enumerate every latent cluster."""

import itertools

import numpy as np
import pytest
from scipy.special import digamma, gammaln

from partita.consensus import label_layout
from partita.consensus.bce import concentration, gibbs, vb
from partita.families.special import log_gamma_and_digamma
from partita.testing import FALSE_ALARM, chi_square, effective_size

# three objects, three members with 2, 3 and 2 levels, one label missing: 8 cells, 256 states for two clusters
Y = np.array([[0, 2, 1], [0, 0, -1], [1, 1, 0]])
N_LEVELS = np.array([2, 3, 2])
ALPHA, ETA = np.array([0.7, 1.6]), 0.4
SEEN = np.argwhere(Y >= 0)


def laid_out(codes=Y, n_levels=N_LEVELS, weights=None, powers=None):
    weights = np.ones(len(codes)) if weights is None else np.asarray(weights, float)
    powers = np.ones(codes.shape[1]) if powers is None else np.asarray(powers, float)
    return label_layout.lay_out(codes, n_levels, weights, powers)


def naive_log_joint(codes, z, alpha, eta, n_levels):
    """Two urns, label after label: the membership's and the level's."""
    out = 0.0
    memberships = [np.array(alpha) for _ in codes]
    levels = {
        (k, m): np.full(J, eta)
        for k, m in itertools.product(range(len(alpha)), range(len(n_levels)))
        for J in [n_levels[m]]
    }
    for (i, m), k in z:
        urn, urn_of_levels, y = memberships[i], levels[k, m], codes[i, m]
        out += np.log(urn[k] / urn.sum()) + np.log(urn_of_levels[y] / urn_of_levels.sum())
        urn[k] += 1
        urn_of_levels[y] += 1
    return out


def enumerated(codes=Y, alpha=ALPHA, eta=ETA, n_levels=N_LEVELS, repeats=None):
    """All latent clusters [state, cell] and their log joint; a cell comes as often as ``repeats`` says."""
    seen = [
        tuple(cell)
        for cell in np.argwhere(codes >= 0)
        for _ in range(1 if repeats is None else repeats[cell[1]])
    ]
    states = np.array(list(itertools.product(range(len(alpha)), repeat=len(seen))))
    log_joint = np.array(
        [naive_log_joint(codes, zip(seen, z, strict=True), alpha, eta, n_levels) for z in states]
    )
    return states, log_joint


def chain_at(state, alpha=ALPHA):
    laid, _, members = gibbs.copies(laid_out())
    z = np.full(Y.shape, -1, dtype=np.int16)
    z[tuple(SEEN.T)] = state
    return gibbs.from_latent(laid, members, alpha, ETA, z)


def evidence(log_joint):
    return np.logaddexp.reduce(log_joint)


@pytest.fixture(scope="module")
def exact():
    return enumerated()


def threshold(state, cell, n_steps=50):
    """The uniform at which the kernel turns to cluster 1 for one cell, all others held where they are."""
    at = chain_at(state)
    hold = np.zeros(Y.shape)
    hold[tuple(SEEN.T)] = np.where(state == 0, 0.0, np.nextafter(1.0, 0.0))  # two clusters: the ends are sure
    i, m = SEEN[cell]
    lo, hi = 0.0, 1.0
    prior_sums = N_LEVELS * ETA
    for _ in range(n_steps):
        hold[i, m] = (lo + hi) / 2
        z, table, sums, counts = (a.copy() for a in (at.z, at.table, at.sums, at.counts))
        gibbs.sweep_labels(at.positions, at.members, at.alpha, ETA, prior_sums, z, table, sums, counts, hold)
        lo, hi = (hold[i, m], hi) if z[i, m] == 0 else (lo, hold[i, m])
    return lo


def test_a_redrawn_label_leaves_the_enumerated_posterior_where_it_is(exact):
    states, log_joint = exact
    pi = np.exp(log_joint - evidence(log_joint))
    number = {tuple(s): j for j, s in enumerate(states)}
    for cell in range(len(SEEN)):
        P = np.zeros((len(states), len(states)))
        for j, state in enumerate(states):
            stay = threshold(state, cell, 50)
            for k, p in ((0, stay), (1, 1.0 - stay)):
                new = state.copy()
                new[cell] = k
                P[j, number[tuple(new)]] += p
        assert np.abs(pi @ P - pi).max() < 1e-10


def test_log_joint_of_a_chain_is_the_product_of_two_urns(exact):
    states, log_joint = exact
    for j in range(0, 256, 17):
        assert gibbs.log_joint(chain_at(states[j])) == pytest.approx(log_joint[j], abs=1e-10)


def test_a_chain_visits_states_as_often_as_they_are_probable(exact, global_random_seed):
    states, log_joint = exact
    rng = np.random.default_rng(global_random_seed)
    chain = chain_at(states[0])
    n_draws, thin = 20_000, 2
    visited = np.empty(n_draws, dtype=int)
    radix = 2 ** np.arange(len(SEEN))[::-1]
    for t in range(n_draws):
        for _ in range(thin):
            chain = gibbs.step(chain, rng)
        visited[t] = chain.z[tuple(SEEN.T)] @ radix
    pi = np.exp(log_joint - evidence(log_joint))
    effective = min(
        effective_size(x[visited]) for x in (log_joint, states[:, 0].astype(float), states.sum(axis=1) * 1.0)
    )
    counts = np.bincount(visited, minlength=256)
    assert chi_square(counts, pi, effective) > FALSE_ALARM
    # and it would notice a smoothing that is two fifths off (a fifth off is noticed by 8 of 10 seeds only)
    off = enumerated(eta=1.4 * ETA)[1]
    assert chi_square(counts, np.exp(off - evidence(off)), effective) < 1e-3
    # counts that the sweeps carried along are those of the labels
    fresh = chain_at(chain.z[tuple(SEEN.T)])
    for name in ("table", "sums", "counts"):
        np.testing.assert_array_equal(getattr(chain, name), getattr(fresh, name))


def test_memberships_of_a_chain_are_those_of_the_enumeration():
    """Asymmetric alpha and given names: few switches, so the pool's mean is compared with states aligned to it."""
    states, log_joint = enumerated()
    pi = np.exp(log_joint - evidence(log_joint))
    laid, _, _ = gibbs.copies(laid_out())
    pool = gibbs.new_pool(3, 7, 2)
    for j in np.argsort(-pi)[:2]:
        one = gibbs.new_pool(3, 7, 2)
        gibbs.add_draw(one, chain_at(states[j]))
        n = np.array([[((states[j] == k) & (SEEN[:, 0] == i)).sum() for k in range(2)] for i in range(3)])
        np.testing.assert_allclose(
            one.memberships, (ALPHA + n) / (ALPHA.sum() + n.sum(axis=1, keepdims=True))
        )
    # the same draw with its names exchanged adds the same
    gibbs.add_draw(pool, chain_at(states[5], np.array([0.7, 1.6])))
    once = pool.memberships.copy(), pool.beta.copy()
    gibbs.add_draw(pool, chain_at(1 - states[5], np.array([1.6, 0.7])))
    np.testing.assert_allclose(pool.memberships, 2 * once[0])
    np.testing.assert_allclose(pool.beta, 2 * once[1])
    np.testing.assert_allclose(pool.alpha, 2 * ALPHA)
    assert laid.positions.shape == (3, 3)


def test_repeated_labels_of_a_member_share_their_distributions():
    repeated, rows, members = gibbs.copies(laid_out(weights=[1, 2, 0], powers=[1, 2, 1]))
    assert rows.tolist() == [0, 1, 1] and members.tolist() == [0, 1, 1, 2]
    assert repeated.positions.tolist() == [[0, 4, 4, 6], [0, 2, 2, -1], [0, 2, 2, -1]]
    for which in ("weights", "powers"):
        with pytest.raises(ValueError, match=r"0\.5 at position 1.*whole numbers"):
            gibbs.copies(laid_out(**{which: [1, 0.5, 1]}))


def climb(laid, K=2, alpha=None, n_steps=300, learn=False, seed=0, smoothing=ETA):
    alpha = np.full(K, 1.0) if alpha is None else alpha
    state = vb.init(laid, alpha, smoothing, np.random.default_rng(seed))
    bounds = []
    for _ in range(n_steps):
        state = vb.step(state, laid, smoothing, learn_alpha=learn)
        bounds.append(state.objective)
    return state, np.array(bounds)


@pytest.mark.parametrize("powers", [None, [1, 2, 1]])
def test_bound_rises_and_stays_below_the_evidence(powers, global_random_seed):
    log_joint = enumerated(repeats=powers)[1]
    finals = []
    for seed in range(5):
        bounds = climb(laid_out(powers=powers), alpha=ALPHA, seed=global_random_seed + seed)[1]
        assert np.diff(bounds).min() > -1e-10
        finals.append(bounds[-1])
    assert max(finals) <= evidence(log_joint)
    # a q that is sure of all latent clusters has their log joint for a bound, so the best is no worse
    assert max(finals) >= log_joint.max()


def test_bound_is_the_evidence_where_nothing_is_hidden(global_random_seed):
    """One cluster: the factors are exact."""
    log_joint = enumerated(alpha=np.array([0.9]))[1]
    assert climb(laid_out(), K=1, seed=global_random_seed)[1][-1] == pytest.approx(
        evidence(log_joint), abs=1e-10
    )


def test_bound_is_the_textbook_sum_of_expectations(global_random_seed):
    """At any q: prior and likelihood terms minus the entropies, written out cell by cell."""
    laid = laid_out(weights=[1, 3, 2], powers=[1, 0.5, 2])
    state = vb.init(laid, ALPHA, ETA, np.random.default_rng(global_random_seed))
    for _ in range(2):
        before = state.log_theta.copy(), vb.exp_expected_log(state.table, laid.starts)
        state = vb.step(state, laid, ETA, learn_alpha=False)
    log_B = np.log(vb.exp_expected_log(state.table, laid.starts))
    bound = 0.0
    for i, row in enumerate(laid.positions):
        gamma = ALPHA.copy()
        of_labels = 0.0
        for m, l in enumerate(row):
            if l >= 0:
                phi = np.exp(before[0][i]) * before[1][l]
                phi /= phi.sum()
                gamma += laid.powers[m] * phi
                of_labels += laid.powers[m] * phi @ (state.log_theta[i] + log_B[l] - np.log(phi))
        bound += laid.weights[i] * (of_labels + minus_kl(gamma, ALPHA, state.log_theta[i]))
    for m, (lo, hi) in enumerate(itertools.pairwise(laid.starts)):
        for k in range(2):
            bound += minus_kl(state.table[lo:hi, k], np.full(N_LEVELS[m], ETA), log_B[lo:hi, k])
    assert state.objective == pytest.approx(bound, abs=1e-10)


def minus_kl(posterior, prior, expected_log):
    """``E_q[log p - log q]`` of Dirichlet factors."""

    def log_density(a):
        return gammaln(a.sum()) - gammaln(a).sum() + (a - 1) @ expected_log

    return log_density(prior) - log_density(posterior)


@pytest.fixture
def mixed(global_random_seed):
    """Sixty objects, every third of them half in one group and half in the other."""
    rng = np.random.default_rng(global_random_seed)
    theta = np.repeat([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]], 20, axis=0)
    z = (rng.random((60, 30)) > theta[:, :1]).astype(int)
    codes = np.where(rng.random((60, 30)) < 0.9, z, 1 - z)
    codes[rng.random((60, 30)) < 0.1] = -1
    return codes, theta


@pytest.mark.parametrize("learn", [True, "symmetric"])
def test_bound_rises_while_the_concentration_is_learned(mixed, learn, global_random_seed):
    codes, theta = mixed
    laid = laid_out(codes, np.full(30, 2))
    state, bounds = climb(laid, learn=learn, seed=global_random_seed)
    assert np.diff(bounds).min() > -1e-9
    assert bounds[-1] > climb(laid, alpha=np.full(2, 30.0), seed=global_random_seed)[1][-1] + 1.0
    if learn == "symmetric":
        assert state.alpha[0] == state.alpha[1]
    found = label_layout.fold_in(laid, state.alpha, vb.exp_expected_log(state.table, laid.starts))
    found = found if found[0, 0] > 0.5 else found[:, ::-1]
    assert np.abs(found - theta).mean() < 0.1
    assert np.abs(found[40:] - 0.5).mean() < 0.12


@pytest.mark.parametrize(
    ("learn", "rtol"), [(False, 1e-10), (True, 1e-5)]
)  # Newton stops where it is good enough
def test_weights_are_repeated_rows(mixed, learn, rtol, global_random_seed):
    codes, _ = mixed
    w = np.random.default_rng([global_random_seed, 0]).integers(0, 4, size=60)
    table = np.random.default_rng([global_random_seed, 1]).random((60, 2))
    out = []
    for laid in (
        laid_out(codes, np.full(30, 2), weights=w),
        laid_out(np.repeat(codes, w, axis=0), np.full(30, 2)),
    ):
        state = vb.init(laid, np.ones(2), ETA, np.random.default_rng([global_random_seed, 0]), table)
        for _ in range(20):
            state = vb.step(state, laid, ETA, learn_alpha=learn)
        out.append(state)
    np.testing.assert_allclose(out[0].table, out[1].table, rtol=rtol)
    np.testing.assert_allclose(out[0].alpha, out[1].alpha, rtol=rtol)
    assert out[0].objective == pytest.approx(out[1].objective, rel=rtol)


def test_members_that_say_nothing_are_left_out(global_random_seed):
    codes = np.column_stack([Y, np.zeros(3, int)])
    silent = laid_out(codes, np.append(N_LEVELS, 1))
    assert (silent.positions[:, 3] == -1).all()
    assert climb(silent, alpha=ALPHA, seed=global_random_seed)[1][-1] == pytest.approx(
        climb(laid_out(), alpha=ALPHA, seed=global_random_seed)[1][-1], abs=1e-9
    )
    assert (laid_out(powers=[1, 0, 1]).positions[:, 1] == -1).all()


def test_folding_in_is_the_fixed_point_of_the_update(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    B = rng.random((7, 2))
    powers = np.array([1.0, 0.5, 2.0])
    found = label_layout.fold_in(laid_out(powers=powers), ALPHA, B)
    for row, shares in zip(laid_out().positions, found, strict=True):
        total = ALPHA.sum() + powers[row >= 0].sum()
        weights = np.exp(digamma(total * shares))
        counts = sum(powers[m] * weights * B[l] / (weights @ B[l]) for m, l in enumerate(row) if l >= 0)
        np.testing.assert_allclose((ALPHA + counts) / total, shares, atol=1e-5)


def rows_of(n_levels):
    return np.array(list(itertools.product(*[range(J) for J in n_levels])))


def test_probability_of_rows_sums_to_one_and_is_close_to_the_integral(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    beta = np.concatenate([rng.dirichlet(np.full(J, 0.5), size=2).T for J in N_LEVELS])
    every = rows_of(N_LEVELS)
    found = np.exp(label_layout.log_predictive_rows(laid_out(every), ALPHA, beta))
    assert found.sum() == pytest.approx(1.0, abs=1e-12)
    exact = [integral(row, beta) for row in laid_out(every).positions]
    assert np.sum(exact) == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(found, exact, rtol=0.1)
    one = laid_out(np.where(np.arange(3) == 1, every, -1))
    np.testing.assert_allclose(
        np.exp(label_layout.log_predictive_rows(one, ALPHA, beta)),
        [integral(row, beta) for row in one.positions],
    )


def integral(row, beta):
    """Over the memberships, by summing out every latent cluster."""
    seen = row[row >= 0]
    out = 0.0
    for z in itertools.product(range(2), repeat=len(seen)):
        urn, p = ALPHA.copy(), 1.0
        for l, k in zip(seen, z, strict=True):
            p *= urn[k] / urn.sum() * beta[l, k]
            urn[k] += 1
        out += p
    return out


@pytest.mark.parametrize("symmetric", [False, True])
def test_concentration_of_a_chain_has_its_posterior(symmetric, global_random_seed):
    """Against a grid: two clusters, counts held fixed; one concentration for each of them, or one that they share."""
    counts = np.array([[3.0, 1.0, 4.0], [4.0, 1.0, 3.0], [0.0, 0.0, 8.0]])
    grid = np.exp(np.linspace(np.log(concentration.MIN_ALPHA), np.log(60.0), 160))
    if symmetric:
        log_p = np.array(
            [concentration.log_memberships(np.array([a, a]), counts) - a + np.log(a) for a in grid]
        )[:, None]
    else:
        log_p = np.array(
            [
                [
                    concentration.log_memberships(np.array([a, b]), counts) - a - b + np.log(a * b)
                    for b in grid
                ]
                for a in grid
            ]
        )
    p = np.exp(log_p - log_p.max())
    p = p.sum(axis=1) / p.sum()  # of log alpha_0
    rng = np.random.default_rng(global_random_seed)
    alpha, draws = np.ones(2), []
    for _ in range(4000):
        alpha = concentration.walk_alpha(alpha, counts, rng, symmetric=symmetric)
        draws.append(np.log(alpha[0]))
    draws = np.array(draws)
    mean = p @ np.log(grid)
    deviation = np.sqrt(p @ (np.log(grid) - mean) ** 2)
    error = deviation / np.sqrt(effective_size(draws))
    assert abs(draws.mean() - mean) < 5.0 * error  # false alarms: 6e-7
    assert not symmetric or alpha[0] == alpha[1]


def test_log_gamma_and_digamma_are_those_of_scipy():
    for x in (0.005, 0.3, 1.0, 2.5, 9.99, 10.0, 1e3, 1e12):
        np.testing.assert_allclose(log_gamma_and_digamma(x), (gammaln(x), digamma(x)), rtol=1e-13, atol=1e-13)


def test_newton_finds_the_maximum_and_keeps_to_its_range(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    for true in ([0.3, 4.0, 1.0], [0.05, 0.05, 0.05], [80.0, 20.0, 300.0]):
        mean_log = np.log(np.maximum(rng.dirichlet(true, size=20_000), 1e-300)).mean(axis=0)
        for start in (0.01, 1.0, 500.0):
            found = concentration.fit_alpha(np.full(3, start), mean_log)
            found = concentration.fit_alpha(found, mean_log)
            slope = digamma(found.sum()) - digamma(found) + mean_log
            assert np.abs(slope * found).max() < 1e-4
    pure = concentration.fit_alpha(np.ones(2), np.array([-300.0, -300.0]))
    np.testing.assert_array_equal(pure, concentration.MIN_ALPHA)
