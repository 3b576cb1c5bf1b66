"""Auxiliary clusters: exact on a family with few parameters, by Monte Carlo against enumeration on real ones."""

import itertools
import math
from typing import NamedTuple

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import t as student_t

from partita.dispatch import interpreted
from partita.engines.gibbs import chain as chains
from partita.engines.gibbs import sweep
from partita.engines.gibbs.sweep import NO_LIMIT
from partita.engines.nonconjugate import neal8, parameters
from partita.engines.passes import rows
from partita.families import FAMILIES, NON_CONJUGATE, Block, Student, family_entry
from partita.families import contract as family
from partita.labels import canonical, set_partitions
from partita.partitions import (
    DirichletProcess,
    FiniteDirichlet,
    PitmanYor,
    StickBreaking,
    bind,
    log_eppf,
    simulate,
    specify,
)
from partita.testing import EnumerationResult, enumerate_partitions, n_rows

MOST = 3  # labels of the finite prior
FIXED = chains.Schedule(n_draws=10, burn_in=0, learn_concentration=False, learn_likelihood=False)
FALSE_ALARM = 1e-5  # of each Monte Carlo comparison; there are six in this file


def priors(N):
    return [DirichletProcess(1.3), PitmanYor(0.8, 0.3), bind(specify("mfm"), N), FiniteDirichlet(1.5, MOST)]


every_prior = pytest.mark.parametrize("which", range(4), ids=["dp", "pitman_yor", "mfm", "finite"])


def log_prior_of(prior, z):
    return log_eppf(prior, np.bincount(z).astype(float), max(z) + 1)


# ---- exact: a parameter with two values makes labels and parameters a finite chain --------------------------


class TwoPlaces(NamedTuple):
    """``x ~ N(theta, 1)`` where theta is one of two places."""

    places: np.ndarray
    shares: np.ndarray


@family.n_columns.register(TwoPlaces)
def _(lik):
    return 1


@family.stats_start.register(TwoPlaces)
def _(lik, d):
    return d


@family.project.register(TwoPlaces)
def _(lik, d, theta, x, L, j):
    if not math.isnan(x):
        for k in range(L.shape[1]):
            L[j, k] -= 0.5 * (x - theta[0, k]) ** 2


TOY = TwoPlaces(np.array([-0.5, 1.2]), np.array([0.3, 0.7]))
TOY_DATA = np.array([[-0.4], [np.nan], [1.5], [0.9]])


def toy_seating(z, places, fresh):
    K = max(z) + 1
    theta = np.zeros((1, K + 4))
    theta[0, :K] = TOY.places[list(places)]
    block = neal8.Placed(TOY, TOY_DATA, theta, TOY.places[list(fresh)][:, None])
    names = np.append(np.arange(K), np.full(4, -1))
    n = np.bincount(z, minlength=K + 4).astype(float)
    return sweep.Seating((block,), np.array(z), n, names, names.copy(), np.array([K]))


def toy_key(seating):
    """Labels in order of appearance, and the place of each cluster in that order."""
    slots = sweep.labels(seating)
    z = canonical(slots)
    first = [int(np.flatnonzero(z == k)[0]) for k in range(z.max() + 1)]
    at = seating.blocks[0].theta[0, slots[first]]
    return tuple(z.tolist()), tuple((at == TOY.places[1]).astype(int).tolist())


def toy_posterior(prior, limit=NO_LIMIT):
    states, log_p = [], []
    for z in set_partitions(len(TOY_DATA)):
        log_z = log_prior_of(prior, z)
        for places in itertools.product((0, 1), repeat=max(z) + 1):
            if log_z > -np.inf and max(z) < limit:
                at = TOY.places[list(places)][list(z)]
                states.append((tuple(z), places))
                log_p.append(
                    log_z
                    + np.log(TOY.shares[list(places)]).sum()
                    - 0.5 * np.nansum((TOY_DATA[:, 0] - at) ** 2)
                )
    return states, np.exp(np.array(log_p) - logsumexp(log_p))


def toy_moves(prior, z, places, i, m, limit=NO_LIMIT):
    """Where object i goes, summed over all auxiliary parameters that may be drawn."""
    tables = neal8.seat_tables(prior, len(z), 8, limit)
    for fresh in itertools.product((0, 1), repeat=m):
        s = toy_seating(z, places, fresh)
        kept = neal8.leave(s.blocks, *s[1:], i)
        neal8.fill_slots(s.blocks, kept, s.K[0] + kept, s.K[0] + m)
        lp = np.empty(s.K[0] + m)
        neal8.weigh(s.blocks, *tables, s.n, s.K, i, m, lp)
        p = np.exp(lp - logsumexp(lp))
        for k in np.flatnonzero(p):
            there = s._replace(
                blocks=(s.blocks[0]._replace(theta=s.blocks[0].theta.copy()),),
                **{name: getattr(s, name).copy() for name in s._fields[1:]},
            )
            neal8.sit(there.blocks, *there[1:], i, k)
            assert there.n.sum() == len(z)
            yield toy_key(there), p[k] * np.prod(TOY.shares[list(fresh)])


def toy_imbalance(prior, m, limit=NO_LIMIT):
    """Largest entry of pi P - pi over all objects."""
    worst = 0.0
    with interpreted():
        states, pi = toy_posterior(prior, limit)
        index = {state: s for s, state in enumerate(states)}
        for i in range(len(TOY_DATA)):
            after = np.zeros(len(pi))
            for s, (z, places) in enumerate(states):
                for target, p in toy_moves(prior, z, places, i, m, limit):
                    after[index[target]] += pi[s] * p
            worst = max(worst, np.abs(after - pi).max())
    return worst


@every_prior
@pytest.mark.parametrize("limit", [2, NO_LIMIT], ids=["at most 2", "no limit"])
@pytest.mark.parametrize("m", [1, 2])
def test_a_reseating_leaves_labels_and_parameters_invariant(which, m, limit):
    assert toy_imbalance(priors(len(TOY_DATA))[which], m, limit) < 1e-12


def weights_not_shared(blocks, seat, new_seat, n, K, i, m, lp):
    right_weigh(blocks, seat, new_seat + math.log(m), n, K, i, m, lp)


def own_parameters_lost(blocks, z, n, slot_of, name_of, K, i):
    right_leave(blocks, z, n, slot_of, name_of, K, i)
    return 0


def seat_with_oneself(blocks, z, n, slot_of, name_of, K, i):
    kept = right_leave(blocks, z, n, slot_of, name_of, K, i)
    if not kept:
        n[slot_of[z[i]]] += 1.0  # the object still counts in its old cluster, ...
    return kept


def leave_twice(blocks, z, n, slot_of, name_of, K, i, k):
    old = slot_of[z[i]]
    if old >= 0 and n.sum() == len(z):
        n[old] -= 1.0  # ... and is taken out only as it sits down
    right_sit(blocks, z, n, slot_of, name_of, K, i, k)


def wrong_parameters_kept(blocks, z, n, slot_of, name_of, K, i, k):
    """A new cluster takes the parameters of the first auxiliary one, whichever was chosen."""
    right_sit(blocks, z, n, slot_of, name_of, K, i, min(k, K[0]))


right_weigh, right_leave, right_sit = neal8.weigh, neal8.leave, neal8.sit


@pytest.mark.parametrize(
    "bugs",
    [
        {"weigh": weights_not_shared},
        {"leave": own_parameters_lost},
        {"leave": seat_with_oneself, "sit": leave_twice},
        {"sit": wrong_parameters_kept},
    ],
    ids=["not divided by m", "singleton's parameters dropped", "counts itself", "other parameters kept"],
)
def test_planted_bugs_break_invariance(bugs, monkeypatch):
    for name, bug in bugs.items():
        monkeypatch.setattr(neal8, name, bug)
    assert toy_imbalance(DirichletProcess(1.3), 2) > 1e-3


# ---- Monte Carlo against enumeration -----------------------------------------------------------------------


def mixed_table(N=5):
    """Three conjugate families, a missing cell in each."""
    rng, w = np.random.default_rng(3), np.ones(N)
    X = rng.normal(size=(N, 1))
    codes = rng.integers(3, size=(N, 1)).astype(np.int8)
    counts = rng.poisson(3.0, size=(N, 1)).astype(float)
    X[0], codes[1], counts[2] = np.nan, -1, np.nan
    return [
        FAMILIES["gaussian"].block(X, ["a"], w),
        FAMILIES["categorical"].block(codes, ["b"], w, n_levels=np.array([3])),
        FAMILIES["poisson"].block(counts, ["c"], w, exposure=None),
    ]


def partition_shares(blocks, prior, exact, n_batches, batch, schedule=FIXED):
    """Share of each partition in each batch of a chain."""
    index = {tuple(z.tolist()): s for s, z in enumerate(exact.labels)}
    N = len(exact.labels[0])
    chain = neal8.start(blocks, prior, np.zeros(N, int), seed=11)
    for _ in range(100):
        chain = neal8.step(chain, schedule._replace(burn_in=100))
    shares = np.zeros((n_batches, len(exact.labels)))
    for b in range(n_batches):
        for _ in range(batch):
            chain = neal8.step(chain, schedule)
            shares[b, index[tuple(canonical(sweep.labels(chain.seating)).tolist())]] += 1 / batch
    return shares


def worst_p_value(shares, p, batch):
    """Smallest p-value of the t-tests on batch means, Bonferroni corrected; rare partitions count as one."""
    common = p * batch > 1.5  # expected visits in a batch
    means = np.column_stack([shares[:, common], shares[:, ~common].sum(axis=1)])
    target = np.append(p[common], p[~common].sum())
    error = means.std(axis=0, ddof=1) / math.sqrt(len(means))
    far = np.abs(means.mean(axis=0) - target) / np.maximum(error, 1e-12)
    return float(min(1.0, 2 * student_t.sf(far, len(means) - 1).min() * len(target)))


@every_prior
def test_conjugate_families_meet_enumeration(which):
    blocks, prior, batch = mixed_table(), priors(5)[which], 100
    exact = enumerate_partitions(blocks, prior)
    shares = partition_shares(blocks, prior, exact, 40, batch)
    assert worst_p_value(shares, exact.posterior, batch) > FALSE_ALARM


def test_the_comparison_has_power(monkeypatch):
    """New seats weighed three times too heavy: not divided by m."""
    right = neal8.seat_tables

    def heavy(*args):
        seat, new_seat = right(*args)
        return seat, new_seat + math.log(3)

    blocks, prior, batch = mixed_table(), DirichletProcess(1.3), 100
    exact = enumerate_partitions(blocks, prior)
    monkeypatch.setattr(neal8, "seat_tables", heavy)
    shares = partition_shares(blocks, prior, exact, 40, batch)
    assert worst_p_value(shares, exact.posterior, batch) < FALSE_ALARM / 1000


def student_table():
    lik = Student(*(np.array([value]) for value in (0.2, 1.5, -0.3, 0.6, 3.0)))
    return Block(lik, np.array([[-1.0], [-0.7], [2.5], [0.4]]), ("a",))


def student_exact(block, prior):
    """Enumeration with the two parameters summed out on a grid, densities by scipy."""
    m, s, a, b, df = (value[0] for value in block.family)
    location, log_scale = np.meshgrid(
        np.linspace(m - 8 * s, m + 8 * s, 300), np.linspace(a - 8 * b, a + 8 * b, 200), indexing="ij"
    )
    log_cell = np.log(16 * s / 299) + np.log(16 * b / 199) - np.log(2 * np.pi * s * b)
    log_cell = log_cell - 0.5 * ((location - m) / s) ** 2 - 0.5 * ((log_scale - a) / b) ** 2
    log_f = [student_t.logpdf(x, df, location, np.exp(log_scale)) for x in block.data[:, 0]]
    evidence = {}
    for members in itertools.product((0, 1), repeat=len(log_f)):
        chosen = [f for f, there in zip(log_f, members, strict=True) if there]
        evidence[members] = logsumexp(sum(chosen, log_cell))
    assert evidence[(0,) * len(log_f)] == pytest.approx(0.0, abs=1e-9)
    Z = np.array(list(set_partitions(len(log_f))))
    log_p = [
        log_prior_of(prior, z) + sum(evidence[tuple((z == k).astype(int))] for k in range(z.max() + 1))
        for z in Z
    ]
    return EnumerationResult(Z, np.array(log_p))


def test_a_family_without_conjugate_prior_meets_enumeration():
    block, prior, batch = student_table(), DirichletProcess(1.3), 150
    exact = student_exact(block, prior)
    shares = partition_shares([block], prior, exact, 40, batch)
    assert worst_p_value(shares, exact.posterior, batch) > FALSE_ALARM


def test_walks_find_the_posterior_of_the_parameters():
    """One cluster: mean of location and log scale against the grid, five standard errors of batch means."""
    block = student_table()
    m, s, a, b, df = (value[0] for value in block.family)
    location, log_scale = np.meshgrid(
        np.linspace(m - 6 * s, m + 6 * s, 400), np.linspace(a - 6 * b, a + 6 * b, 300), indexing="ij"
    )
    log_p = -0.5 * ((location - m) / s) ** 2 - 0.5 * ((log_scale - a) / b) ** 2
    log_p = sum((student_t.logpdf(x, df, location, np.exp(log_scale)) for x in block.data[:, 0]), log_p)
    p = np.exp(log_p - logsumexp(log_p))
    draws = parameters.parameter_draws(block, np.zeros(4, int), 1, seed=0, n_draws=4000)[:, :, 0]
    batches = draws.reshape(40, 100, 2).mean(axis=1)
    error = batches.std(axis=0, ddof=1) / math.sqrt(40)
    right = [(p * location).sum(), (p * log_scale).sum()]
    assert np.all(np.abs(batches.mean(axis=0) - right) < 5.5 * error)


# ---- Geweke ------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("learn", [False, True], ids=["fixed", "learning"])
@pytest.mark.parametrize("mixed", [False, True], ids=["student", "student and gaussian"])
def test_geweke(mixed, learn, global_random_seed):
    """Forward simulation against the chain with its data redrawn: K, largest cluster, a parameter, the data."""
    N, rng = 6, np.random.default_rng(global_random_seed)
    families = [Student(*(np.array([value]) for value in (0.2, 1.5, -0.3, 0.6, 5.0)))]
    if mixed:
        families.append(FAMILIES["gaussian"].examples(rng)[0][0])
    schedule = FIXED._replace(learn_concentration=learn)

    def forward():
        prior = DirichletProcess(rng.gamma(1.0) if learn else 1.3)
        z = canonical(simulate(prior, N, rng))
        thetas = [family.draw(lik, np.zeros((parameters.n_stats(lik), z.max() + 1)), rng) for lik in families]
        data = [family.simulate(lik, theta, z, rng) for lik, theta in zip(families, thetas, strict=True)]
        return prior, z, thetas, data

    def look(prior, z, thetas, data):
        sizes = np.bincount(z)
        return [
            sizes.size,
            sizes.max(),
            thetas[0][0, z[0]],
            thetas[0][1, z[0]],
            np.log1p(np.abs(data[-1])).mean(),
            math.log(prior.concentration),
        ]

    straight = np.array([look(*forward()) for _ in range(8000)])
    prior, z, thetas, data = forward()
    blocks = [Block(lik, x, ()) for lik, x in zip(families, data, strict=True)]
    chain = neal8.start(blocks, prior, z, seed=5)
    chain = chain._replace(walks=tuple(w and w._replace(width=np.array([2.0, 1.0])) for w in chain.walks))
    seen = []
    for _ in range(24_000):
        chain = neal8.step(chain, schedule)
        z, thetas = sweep.labels(chain.seating), neal8.thetas(chain)
        seen.append(look(chain.prior, z, thetas, [block.data for block in chain.seating.blocks]))
        redrawn = tuple(
            block._replace(data=np.ascontiguousarray(family.simulate(block.family, theta, z, rng)))
            for block, theta in zip(chain.seating.blocks, thetas, strict=True)
        )
        chain = chain._replace(seating=chain.seating._replace(blocks=redrawn))
    batches = np.array(seen).reshape(60, -1, len(seen[0])).mean(axis=1)
    error = np.hypot(
        batches.std(axis=0, ddof=1) / math.sqrt(60), straight.std(axis=0) / math.sqrt(len(straight))
    )
    far = np.abs(batches.mean(axis=0) - straight.mean(axis=0)) / np.maximum(error, 1e-12)
    assert np.all(far < 5.0)  # a correct sampler fails one in a hundred thousand


@pytest.mark.slow
def test_learning_of_hyper_parameters_meets_their_prior():
    """Without data the hyper-parameters follow their hyperprior, parameters and labels theirs."""
    block = Block(Student.default(1), np.full((4, 1), np.nan), ("a",))
    chain = neal8.start([block], DirichletProcess(1.3), np.zeros(4, int), seed=2)
    free = {"m": [], "s": [], "a": [], "b": []}
    for _ in range(30_000):
        chain = neal8.step(chain, FIXED._replace(learn_likelihood=True), n_walks=2)
        for name, value in family.unconstrained(chain.seating.blocks[0].family).items():
            free[name].append(float(value[0]))
    center = family.unconstrained(block.family)
    for name, values in free.items():
        moved = (np.array(values) - center[name][0]) / chains.HYPER_SPREAD
        for power, right in ((1, 0.0), (2, 1.0)):
            batches = (moved**power).reshape(30, -1).mean(axis=1)
            error = batches.std(ddof=1) / math.sqrt(30)
            assert abs(batches.mean() - right) < 6 * error, (name, power)


# ---- manners -----------------------------------------------------------------------------------------------


def two_groups(seed, N=200):
    """Two groups with tails so heavy that they have no variance, in standardised columns."""
    rng = np.random.default_rng(seed)
    truth = np.arange(N) % 2
    X = np.where(truth[:, None] == 1, 4.0, -4.0) + 0.5 * rng.standard_t(2.0, size=(N, 2))
    return (X - X.mean(axis=0)) / X.std(axis=0), truth


@pytest.mark.parametrize("seed", range(3))
def test_heavy_tails_stay_with_their_group(seed, global_random_seed):
    """From one cluster to the two groups; a Gaussian gives what lies far out clusters of its own."""
    X, truth = two_groups(global_random_seed + seed)
    schedule = chains.Schedule(n_draws=40, burn_in=150, learn_likelihood=False)
    traces = {}
    for name, options in (("student", {"df": 2.0}), ("gaussian", {})):
        block = family_entry(name).block(X, ["a", "b"], np.ones(len(X)), **options)
        traces[name] = chains.run_mixture_chain(
            [block],
            DirichletProcess(1.0),
            np.zeros(len(X), int),
            schedule,
            seed=seed,
            algorithm=neal8.algorithm(),
        ).trace
    agreement = [max(np.mean((z == k) == truth) for k in np.unique(z)) for z in traces["student"].labels]
    large = [(np.bincount(z) > 0.1 * len(X)).sum() for z in traces["student"].labels]
    assert np.median(large) == 2 and np.median(agreement) > 0.97
    assert traces["student"].n_clusters.mean() + 1.5 < traces["gaussian"].n_clusters.mean()


def test_a_chain_depends_on_its_seed_alone():
    blocks = [*mixed_table(), student_table()._replace(data=np.array([[0.1], [np.nan], [2.0], [1.0], [9.0]]))]
    schedule = chains.Schedule(n_draws=4, burn_in=2)
    with interpreted():
        runs = [
            chains.run_mixture_chain(
                blocks,
                PitmanYor(1.0, 0.2),
                np.zeros(5, int),
                schedule,
                seed=seed,
                algorithm=neal8.algorithm(2),
            )
            for seed in (5, 5, 6)
        ]
        assert runs[0][0].log_joint[-1] == pytest.approx(neal8.log_joint(runs[0][1]))
    for field, again in zip(runs[0][0], runs[1][0], strict=True):
        np.testing.assert_array_equal(field, again)
    assert not np.array_equal(runs[0][0].log_joint, runs[2][0].log_joint)


def test_slots_grow_and_draws_come_in_portions(monkeypatch):
    """Many clusters, few draws ahead: sizes stay those of the labels, and parameters follow their clusters."""
    monkeypatch.setattr(neal8, "DRAWN_AT_ONCE", 60)
    X = np.linspace(-50, 50, 30)[:, None]
    lik = Student(*(np.array([value]) for value in (0.0, 40.0, -2.0, 0.3, 20.0)))
    with interpreted():
        chain = neal8.start([Block(lik, X, ("a",))], DirichletProcess(50.0), np.zeros(30, int), seed=0)
        for _ in range(6):
            chain = neal8.step(chain, FIXED._replace(burn_in=6))
    z, K = sweep.labels(chain.seating), int(chain.seating.K[0])
    assert K > 16  # more than there was room for at the start
    np.testing.assert_array_equal(np.bincount(z, minlength=K), sweep.sizes(chain.seating))
    np.testing.assert_array_equal(np.unique(z), np.arange(K))
    (theta,) = neal8.thetas(chain)
    # the objects sit near the parameters of their clusters, so these were not mixed up
    assert np.median(np.abs(X[:, 0] - theta[0, z])) < 3.0


def test_what_cannot_be_served_is_refused(global_random_seed):
    block = student_table()
    with pytest.raises(TypeError, match=r"StickBreaking has no log_seat.*exchangeable prior"):
        neal8.start([block], StickBreaking(1.0, 3), np.zeros(4, int), seed=0)
    lik, data = FAMILIES["gaussian_full"].examples(np.random.default_rng(global_random_seed))[0]
    data = data.copy()
    data[0, 0] = np.nan
    with pytest.raises(ValueError, match="some coordinates missing"):
        neal8.start([Block(lik, data, ())], DirichletProcess(1.0), np.zeros(len(data), int), seed=0)

    assert parameters.non_conjugate([block, *mixed_table()]) == ["Student"]
    assert "student" in NON_CONJUGATE and "student" not in FAMILIES


class Uniform(NamedTuple):
    """``x ~ Uniform(0, exp(theta))``: a family that gives most data no density at all, with its own update."""

    b: np.ndarray


@family.n_columns.register(Uniform)
def _(lik):
    return 1


@family.stats_start.register(Uniform)
def _(lik, d):
    return d


@family.project.register(Uniform)
def _(lik, d, theta, x, L, j):
    for k in range(L.shape[1]):
        L[j, k] += -theta[0, k] if 0 <= x <= math.exp(theta[0, k]) else -math.inf


@family.log_prior.register(Uniform)
def _(lik, theta):
    return -0.5 * (theta[0] / lik.b[0]) ** 2


@family.draw.register(Uniform)
def _(lik, S, rng):
    return lik.b[0] * rng.standard_normal(S.shape)


def test_impossible_seats_are_never_taken():
    X = np.array([[0.1], [0.2], [5.0], [4.0], [0.3]])
    with interpreted():
        chain = neal8.start(
            [Block(Uniform(np.array([2.0])), X, ())], DirichletProcess(1.0), np.zeros(5, int), 0
        )
        for _ in range(30):
            chain = neal8.step(chain, FIXED)
            (theta,) = neal8.thetas(chain)
            assert np.all(X[:, 0] <= np.exp(theta[0, sweep.labels(chain.seating)]))
        with pytest.raises(ValueError, match="widen the prior"):
            neal8.start([Block(Uniform(np.array([0.1])), X, ())], DirichletProcess(1.0), np.zeros(5, int), 0)


def test_a_family_may_bring_its_own_update():
    class Own(Uniform):
        pass

    @family.update.register(Own)
    def _(lik, data, z, theta, rng):
        return np.full_like(theta, 2.0)

    with interpreted():
        chain = neal8.start(
            [Block(Own(np.array([2.0])), np.ones((3, 1)), ())], DirichletProcess(1.0), [0, 0, 1], 0
        )
        chain = neal8.step(chain, FIXED)
    assert np.all(neal8.thetas(chain)[0] == 2.0)


def test_predictions_average_over_parameters():
    """The predictive of one cluster against the grid; of a conjugate family, against its own."""
    block = student_table()
    one = DirichletProcess(1e-9)
    with_x = [
        student_exact(block._replace(data=np.append(block.data, [[x]], axis=0)), one) for x in (0.0, 6.0)
    ]
    without = student_exact(block, one)
    right = [e.log_joint[0] - without.log_joint[0] for e in with_x]
    right = np.array(right) - [log_prior_of(one, np.zeros(5, int)) - log_prior_of(one, np.zeros(4, int))] * 2
    new = block._replace(data=np.array([[0.0], [6.0]]))
    score = parameters.predictive([block], np.zeros(4, int), np.zeros(1), seed=0, new=[new], n_draws=1000)
    np.testing.assert_allclose(score(np.arange(2))[:, 0], right, atol=0.15)
    blocks, z = mixed_table(), np.array([0, 0, 1, 1, 1])
    S = [parameters.statistics(b, z, 2) for b in blocks]
    expected = rows.predictive(blocks, S, np.log([0.4, 0.6]))(np.arange(5))
    np.testing.assert_allclose(
        parameters.predictive(blocks, z, np.log([0.4, 0.6]), seed=0)(np.arange(5)), expected
    )


@pytest.mark.parametrize("name", sorted({*FAMILIES, *NON_CONJUGATE}))
def test_every_family_may_take_part(name, global_random_seed):
    """Beside a family that is not conjugate, everything learned."""
    lik, data = family_entry(name).examples(np.random.default_rng(global_random_seed))[0]
    N = n_rows(data)
    other = Block(Student.default(1), np.linspace(-2, 2, N)[:, None], ("a",))
    with interpreted():
        chain = neal8.start([Block(lik, data, ()), other], DirichletProcess(1.0), np.arange(N) % 3, seed=0)
        for _ in range(3):
            chain = neal8.step(chain, chains.Schedule())
            assert np.isfinite(neal8.log_joint(chain))
    assert int(chain.seating.n.sum()) == N
    if family.unconstrained(lik):
        assert any(not np.array_equal(a, b) for a, b in zip(chain.seating.blocks[0].family, lik, strict=True))
