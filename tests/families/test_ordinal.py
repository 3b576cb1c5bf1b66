"""Ordinal columns: against quadrature over the latent variables, Geweke's test, and bugs planted in their draws."""

import itertools
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.special import ndtr

from partita.dispatch import interpreted
from partita.engines.climb import em, vb
from partita.engines.climb.seeding import label_statistics
from partita.engines.gibbs import chain as chains
from partita.engines.gibbs import partly_observed, sweep
from partita.families import Background, Block, Levels, Ordinal, background, log_background
from partita.families.columns import put_columns, take_columns, take_data
from partita.families.contract import (
    constrained,
    draw,
    expect,
    hidden_rows,
    simulate,
    summarize,
    unconstrained,
)
from partita.families.ordinal import block as ordinal_block
from partita.families.ordinal import count_levels, level_cuts, levels_of
from partita.families.rows import (
    add_expected_statistics,
    add_log_likelihood,
    add_log_predictive,
    project_rows,
    refresh_clusters,
    scatter_rows,
    score_rows,
)
from partita.labels import canonical
from partita.partitions import DirichletProcess, FiniteDirichlet, StickBreaking, specify
from partita.partitions import simulate as simulate_labels
from partita.testing import check_geweke, enumerate_partitions, geweke, posterior_p_value

PLAIN = chains.Schedule(n_moves=1, learn_concentration=False, learn_likelihood=False)


def survey(n_rows=60, seed=0, holes=0.1):
    """Two groups that answer three questions on scales of 4, 3 and 5 levels; some answers are missing."""
    rng = np.random.default_rng(seed)
    z = rng.integers(2, size=n_rows)
    values = np.where(z, 0.8, -0.8)[:, None] + rng.normal(size=(n_rows, 3)) * 0.7
    codes = np.column_stack(
        [np.digitize(values[:, d], np.linspace(-1.2, 1.2, n - 1)) for d, n in enumerate([4, 3, 5])]
    )
    codes[rng.random(codes.shape) < holes] = -1
    return ordinal_block(codes, ("a", "b", "c"), np.ones(n_rows), n_levels=[4, 3, 5]), z


def tiny():
    """Four rows of two columns, one cell missing: partitions of about equal probability."""
    codes = np.array([[0, 0], [1, -1], [2, 1], [2, 0]])
    cuts = np.array([-np.inf, -0.7, 0.4, np.inf, -np.inf, 0.3, np.inf])
    prior = [np.full(2, value) for value in (0.0, 0.3, 2.0, 0.5)]
    return Block(Ordinal(*prior, cuts, np.array([0, 4, 7])), Levels.of(codes), ("a", "b"))


# ---- the family ---------------------------------------------------------------------------------------------------


def test_cuts_are_the_quantiles_of_the_shares():
    codes = np.repeat([0, 1, 2], [200, 500, 300])[:, None]
    made = ordinal_block(codes, ("a",), np.ones(1000), n_levels=[3])
    np.testing.assert_allclose(ndtr(made.family.cuts), [0.0, 0.2, 0.7, 1.0], atol=1e-3)
    weighted = ordinal_block(codes, ("a",), np.where(codes[:, 0] == 0, 4.0, 1.0), n_levels=[3])
    np.testing.assert_allclose(ndtr(weighted.family.cuts), [0.0, 0.5, 0.8125, 1.0], atol=1e-3)
    assert (np.diff(level_cuts(np.array([5.0, 0.0, 0.0, 3.0]))) > 0).all()  # levels that do not occur


def test_a_column_of_one_level_says_nothing():
    made = ordinal_block(np.zeros((4, 1), np.int8), ("a",), np.ones(4), n_levels=[1])
    assert (made.data.codes == -1).all() and not len(hidden_rows(made.family, made.data))


def test_probabilities_of_levels_sum_to_one(uncompiled, rng):
    made, _ = survey()
    lik = made.family
    S = np.abs(rng.normal(size=(9, 4))) * 5 + [[1.0], [0.0], [9.0]] * 3
    for d, n in enumerate(lik.n_levels):
        codes = np.full((n, 3), -1)
        codes[:, d] = np.arange(n)
        rows, shown = np.arange(n), Levels.of(codes)
        theta, L, C = draw(lik, S, rng), np.zeros((n, 4)), np.zeros((12, 4))
        project_rows(lik, shown, rows, theta, L)
        np.testing.assert_allclose(np.exp(L).sum(axis=0), 1.0, rtol=1e-12)
        refresh_clusters(lik, S, C, 4)
        L[:] = 0.0
        score_rows(lik, shown, rows, C, L)
        np.testing.assert_allclose(np.exp(L).sum(axis=0), 1.0, rtol=1e-10)
        start = int(lik.n_levels[:d].sum())
        told = summarize(lik, S)["probabilities"][:, start : start + n]
        np.testing.assert_allclose(np.exp(L).T, told, rtol=1e-9, atol=1e-12)


def test_tables_of_levels_give_what_the_loops_over_cells_give(uncompiled, rng):
    made, _ = survey()
    lik, data = made.family, made.data
    rows, theta = np.arange(5, 60), draw(lik, np.zeros((9, 3)), rng)
    R, S = rng.dirichlet(np.ones(3), 55), [np.zeros((9, 3)) for _ in range(2)]
    bounds = [
        f(lik, data, rows, theta, R, s)
        for f, s in zip((scatter_rows, add_expected_statistics), S, strict=True)
    ]
    np.testing.assert_allclose(S[1], S[0], rtol=1e-12)
    assert bounds[1] == pytest.approx(bounds[0], rel=1e-12)
    C = np.zeros((12, 3))
    refresh_clusters(lik, S[0], C, 3)
    for pair, about in (((project_rows, add_log_likelihood), theta), ((score_rows, add_log_predictive), C)):
        L = [np.zeros((55, 3)) for _ in range(2)]
        for f, out in zip(pair, L, strict=True):
            f(lik, data, rows, about, out)
        np.testing.assert_allclose(L[1], L[0], rtol=1e-12)


def test_columns_can_be_taken_out_and_put_back():
    made, _ = survey()
    part = take_columns(made.family, [2, 0])
    assert part.n_levels.tolist() == [5, 4]
    np.testing.assert_array_equal(part.cuts[:6], made.family.cuts[made.family.starts[2] :])
    changed = put_columns(made.family, [2, 0], part._replace(m=np.array([7.0, 8.0])))
    assert changed.m.tolist() == [8.0, 0.0, 7.0]
    np.testing.assert_array_equal(take_data(made.data, [1]).codes[:, 0], made.data.codes[:, 1])


def test_simulated_latent_variables_lie_in_the_interval_of_their_level(rng):
    lik = tiny().family
    found = simulate(lik, draw(lik, np.zeros((6, 5)), rng), rng.integers(5, size=200), rng)
    at = lik.starts[:-1] + found.codes
    assert (lik.cuts[at] < found.latent).all() and (found.latent <= lik.cuts[at + 1]).all()
    np.testing.assert_array_equal(levels_of(lik, found.latent), found.codes)


def test_the_background_has_the_shares_of_the_levels(uncompiled):
    codes = np.repeat([0, 1, 2], [200, 500, 300])[:, None]
    made = ordinal_block(codes, ("a",), np.ones(1000), n_levels=[3])
    law = background(made.family, made.data, np.ones(1000))
    assert isinstance(law, Background)
    density = np.exp(log_background(law, Levels.of(np.array([[0], [1], [2], [-1]]))))
    np.testing.assert_allclose(density, [0.2, 0.5, 0.3, 1.0], atol=2e-3)


# ---- EM and VB ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("maximum_likelihood", [False, True])
def test_the_objective_of_em_rises(maximum_likelihood, uncompiled, rng):
    made, _ = survey()
    start = label_statistics([made], np.ones(60), rng.integers(2, size=60), 2)
    state = em.init([made], FiniteDirichlet(2.0, 2), start, maximum_likelihood=maximum_likelihood)
    values = []
    for _ in range(25):
        state = em.step(state, [made], np.ones(60))
        values.append(state.objective)
    assert (np.diff(values) > -1e-9).all() and values[-1] > values[0] + 1.0


@pytest.mark.parametrize("learn", [False, True])
def test_the_bound_of_vb_rises(learn, uncompiled, rng):
    made, z = survey()
    start = label_statistics([made], np.ones(60), rng.integers(4, size=60), 4)
    state = vb.init([made], StickBreaking(1.0, 4), start)
    values = []
    for _ in range(25):
        state = vb.step(state, [made], np.ones(60), learn_likelihood=learn, learn_concentration=learn)
        values.append(state.objective)
    assert (np.diff(values) > -1e-9).all() and values[-1] > values[0] + 1.0


def test_the_bound_of_vb_stays_below_the_evidence(uncompiled):
    made = tiny()
    parts = [
        made._replace(family=take_columns(made.family, [d]), data=take_data(made.data, [d])) for d in (0, 1)
    ]
    one_cluster = [evidence_of_all(part) for part in parts]
    state = vb.init(
        [made], FiniteDirichlet(1.0, 1), label_statistics([made], np.ones(4), np.zeros(4, int), 1)
    )
    for _ in range(30):
        state = vb.step(state, [made], np.ones(4), learn_likelihood=False, learn_concentration=False)
    assert sum(one_cluster) - 1.0 < state.objective < sum(one_cluster)


def evidence_of_all(part):
    """Log probability of all answers of a column in one cluster, by sampling from the prior."""
    lik, rng = part.family, np.random.default_rng(0)
    theta = draw(lik, np.zeros((3, 20000)), rng)
    L = np.zeros((4, 20000))
    project_rows(lik, part.data, np.arange(4), theta, L)
    return float(np.log(np.exp(L.sum(axis=0)).mean()))


# ---- chains -------------------------------------------------------------------------------------------------------


def exact_partitions(made, prior):
    """The posterior by quadrature: given a partition, columns are independent."""
    parts = [
        Block(take_columns(made.family, [d]), take_data(made.data, [d]), (made.columns[d],)) for d in range(2)
    ]
    return enumerate_partitions(parts, prior)


def draws_of_chain(made, prior, n_draws, thin, seed=0, schedule=PLAIN):
    chain = chains.start([made], prior, np.zeros(4, int), seed, dtype=np.float64)
    out = []
    for t in range(n_draws * thin):
        chain = chains.step(chain, schedule)
        if t % thin == thin - 1:
            out.append(canonical(sweep.labels(chain.seating)))
    return np.array(out)


@pytest.mark.parametrize("prior", [DirichletProcess(1.0), specify("mfm")], ids=["dp", "mfm"])
def test_chains_agree_with_quadrature(prior, global_random_seed):
    exact = exact_partitions(tiny(), prior)
    with interpreted():
        draws = draws_of_chain(tiny(), prior, 1000, 2, seed=global_random_seed)
    assert posterior_p_value(exact, draws) > 1e-6


@pytest.mark.slow  # compiled, and long enough to see one per cent
@pytest.mark.parametrize("prior", [DirichletProcess(1.0), specify("mfm")], ids=["dp", "mfm"])
def test_long_chains_agree_with_quadrature(prior, global_random_seed):
    draws = draws_of_chain(tiny(), prior, 12_000, 1, seed=global_random_seed)
    assert posterior_p_value(exact_partitions(tiny(), prior), draws) > 1e-6


def test_latent_variables_stay_in_their_intervals_and_answers_do_not_change():
    made, _ = survey(30)
    codes = made.data.codes.copy()
    with interpreted():
        chain = chains.start([made], DirichletProcess(1.0), np.zeros(30, int), 1)
        for _ in range(3):
            chain = chains.step(chain, chains.Schedule(n_moves=2))
    done = chain.seating.blocks[0].data
    np.testing.assert_array_equal(made.data.codes, codes)
    assert np.isnan(made.data.latent).all()
    seen = codes >= 0
    assert np.isfinite(done.latent[seen]).all() and np.isnan(done.latent[~seen]).all()
    np.testing.assert_array_equal(levels_of(made.family, done.latent)[seen], codes[seen])


# bugs in the draws of the latent variables: each must be seen by the comparison with quadrature


def uniform_in_the_interval(right):
    def careless(lik, shown, theta, rows, z, rng, out):
        at = lik.starts[:-1] + shown.codes[rows]
        lo, hi = np.maximum(lik.cuts[at], -3.0), np.clip(lik.cuts[at + 1], -3.0, 3.0)
        out.latent[rows] = np.where(shown.codes[rows] >= 0, lo + rng.random(lo.shape) * (hi - lo), np.nan)

    return careless


def of_the_wrong_cluster(right):
    def careless(lik, shown, theta, rows, z, rng, out):
        return right(lik, shown, theta, rows, np.zeros_like(z), rng, out)

    return careless


def at_the_mean_parameters(right):
    def careless(lik, shown, theta, rows, z, rng, out):
        return right(
            lik, shown, np.tile(expect(lik, np.zeros_like(theta))[:, :1], theta.shape[1]), rows, z, rng, out
        )

    return careless


@pytest.mark.slow
@pytest.mark.parametrize("bug", [uniform_in_the_interval, of_the_wrong_cluster, at_the_mean_parameters])
def test_a_wrong_draw_of_the_latent_variables_is_caught(bug, monkeypatch):
    monkeypatch.setattr(partly_observed, "impute", bug(partly_observed.impute))
    prior = DirichletProcess(1.0)
    draws = draws_of_chain(tiny(), prior, 12_000, 1)
    assert posterior_p_value(exact_partitions(tiny(), prior), draws) < 1e-6


# ---- Geweke's test ------------------------------------------------------------------------------------------------


class State(NamedTuple):
    """Prior, family, labels, and simulated answers with their latent variables."""

    prior: Any
    lik: Any
    z: np.ndarray
    data: Levels


N, SPREAD = 8, 0.4
CENTER = Ordinal(
    *(np.full(2, value) for value in (0.2, 0.4, 3.0, 2.0)),
    np.array([-np.inf, -0.5, 0.6, np.inf, -np.inf, 0.1, np.inf]),
    np.array([0, 4, 7]),
)


def redraw(state, rng):
    theta = draw(state.lik, np.zeros((6, int(state.z.max()) + 1)), rng)
    return state._replace(data=simulate(state.lik, theta, state.z, rng))


def from_prior(prior, spread):
    def begin(rng):
        lik = CENTER
        for name, value in unconstrained(lik).items():
            lik = constrained(lik, name, value + spread * rng.standard_normal(value.shape))
        return redraw(State(prior, lik, simulate_labels(prior, N, rng), None), rng)

    return begin


def by_chain(schedule, n_steps=2):
    """Iterations of a chain that knows the answers, and starts at the latent variables that made them."""

    def move(state, rng):
        shown = Block(state.lik, Levels.of(state.data.codes), ())
        z = np.unique(state.z, return_inverse=True)[1]
        chain = chains.start([shown], state.prior, z, int(rng.integers(2**62)), np.float64)
        chain = chain._replace(reference=(CENTER,))
        chain.seating.blocks[0].data.latent[:] = state.data.latent
        sweep.rebuild(chain.seating.blocks, sweep.labels(chain.seating))
        for _ in range(n_steps):
            chain = chains.step(chain, schedule)
        state = state._replace(lik=chain.seating.blocks[0].family, z=sweep.labels(chain.seating))
        return redraw(state, rng)

    return move


def traits(state):
    sizes = np.bincount(state.z)
    found = {"K": float(np.count_nonzero(sizes)), "largest": float(sizes.max())}
    found |= {name: float(value[0]) for name, value in unconstrained(state.lik).items()}
    together = state.z[:, None] == state.z
    alike = state.data.codes[:, 0][:, None] == state.data.codes[:, 0]
    return found | {"answers": float(state.data.codes.sum()), "alike": float((together & alike).sum())}


def run_geweke(schedule, spread, n_draws=2500):
    prior = DirichletProcess(1.0)
    check_geweke(from_prior(prior, spread), by_chain(schedule), traits, seed=0, n_draws=n_draws)


@pytest.mark.slow
def test_geweke():
    run_geweke(PLAIN, 0.0)


@pytest.mark.slow
def test_geweke_with_learned_hyper_parameters(monkeypatch):
    monkeypatch.setattr(chains, "HYPER_SPREAD", SPREAD)
    run_geweke(PLAIN._replace(learn_likelihood=True), SPREAD)


@pytest.mark.slow
@pytest.mark.parametrize("bug", [uniform_in_the_interval, of_the_wrong_cluster])
def test_geweke_sees_a_wrong_draw(bug, monkeypatch):
    monkeypatch.setattr(chains, "HYPER_SPREAD", SPREAD)
    monkeypatch.setattr(partly_observed, "impute", bug(partly_observed.impute))
    move = by_chain(PLAIN._replace(learn_likelihood=True))
    found = geweke(from_prior(DirichletProcess(1.0), SPREAD), move, traits, np.random.default_rng(0), 4000)
    assert min(found.values()) < 1e-6


def test_counts_of_levels():
    codes = np.array([[0, 1], [2, -1], [2, 0]])
    counts = count_levels(codes, np.array([3, 2]), np.array([1.0, 1.0, 2.0]))
    np.testing.assert_array_equal(counts, [[1.0, 0.0, 3.0], [2.0, 1.0, 0.0]])


def test_all_answers_of_two_columns_have_probability_one_together(uncompiled, rng):
    made = tiny()
    codes = np.array(list(itertools.product(range(3), range(2))))
    theta, L = draw(made.family, np.zeros((6, 2)), rng), np.zeros((6, 2))
    project_rows(made.family, Levels.of(codes), np.arange(6), theta, L)
    np.testing.assert_allclose(np.exp(L).sum(axis=0), 1.0)
