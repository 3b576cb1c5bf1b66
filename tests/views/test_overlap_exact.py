"""The overlapping model against its exact posterior: all memberships and all labels of up to two views."""

import itertools

import numpy as np
import pytest

from partita.families import Bernoulli, Block, Counts, GaussianDiagonal, Poisson
from partita.labels import set_partitions
from partita.partitions import IndianBuffet
from partita.testing.monte_carlo import FALSE_ALARM, check_geweke, chi_square, effective_size
from partita.views.depths import SHAPE_PRIOR, Depths
from partita.views.overlapping.additive import Effects, read_reals
from partita.views.overlapping.chain import OverlapChain, OverlapPlan, chain_step, overlap_steps
from partita.views.overlapping.combinations import CombinationColumns, combination_labels
from partita.views.overlapping.features import feature_step
from partita.views.overlapping.full_covariance import FullTable
from partita.views.overlapping.state import add_view, empty_state, log_joint, log_prior
from partita.views.overlapping.table import OverlapHyper, OverlapTable

N, D, VIEWS = 4, 3, 2
SLOW = pytest.mark.slow  # further kernels to compile
FIXED = OverlapPlan(
    max_per_column=2,
    max_views=VIEWS,
    n_moves=1,
    learn_buffet=False,
    learn_concentration=False,
    learn_likelihood=False,
)
REALS = np.array([[-1.2, np.nan, 1.0], [-0.9, -1.1, -1.0], [1.0, 0.9, 1.0], [1.1, 1.2, -1.1]])


def additive():
    return OverlapTable(read_reals(REALS), None), OverlapHyper(Effects(effect=3.0, b=0.1), ())


def additive_with_rows():
    """Two given row factors."""
    rows = np.array([[0.5, -1.0], [-1.2, 0.3], [0.1, 0.8], [1.5, 0.4]])
    table, hyper = additive()
    return table, hyper._replace(effects=hyper.effects._replace(rows=rows, loading=0.7))


def additive_with_sizes():
    """Row factors that multiply the effects of the clusters."""
    table, hyper = additive_with_rows()
    return table, hyper._replace(effects=hyper.effects._replace(gain=np.array([0.5, -0.3])))


def cells():
    """Binary columns, one cell missing."""
    codes = np.array([[0, 0, 1], [0, 0, 0], [1, 1, 1], [1, -1, 0]], np.int8)
    block = Block(Bernoulli(np.array([0.4, 0.3, 0.6]), np.array([0.5, 0.4, 0.2])), codes, ("a", "b", "c"))
    return OverlapTable(None, CombinationColumns((block,))), OverlapHyper(Effects(), (block.family,))


def three_kinds():
    """A real, a binary and a count column; one cell is missing."""
    gaussian = GaussianDiagonal(np.array([0.1]), np.array([0.3]), np.array([2.0]), np.array([0.2]))
    counts = Counts(np.array([[0.0], [7.0], [1.0], [6.0]]), np.array([1.0, 1.0, 0.5, 1.0]))
    blocks = (
        Block(gaussian, REALS[:, [0]], ("a",)),
        Block(Bernoulli(np.array([0.4]), np.array([0.5])), np.array([[0], [0], [1], [-1]], np.int8), ("b",)),
        Block(Poisson(np.array([0.8]), np.array([0.3])), counts, ("c",)),
    )
    return OverlapTable(None, CombinationColumns(blocks)), OverlapHyper(
        Effects(), tuple(b.family for b in blocks)
    )


def mixed():
    """Two additive columns, and one with a component per combination."""
    table, hyper = three_kinds()
    block = table.combined.blocks[1]
    table = OverlapTable(read_reals(REALS[:, :2]), CombinationColumns((block,)))
    return table, OverlapHyper(Effects(2.0), (block.family,))


def exact_posterior(table, empty, largest):
    """All states: the views as a sorted tuple of (columns, labels); equal views have half as many orderings."""
    divisions = [tuple(z) for z in set_partitions(N)]
    choices = [y for y in itertools.product([False, True], repeat=D) if any(y)]
    out = {(): log_joint(empty, table.scores((), empty.hyper))}
    for V in range(1, VIEWS + 1):
        for Z in itertools.combinations_with_replacement(divisions, V):
            scores = table.scores(tuple(np.array(z) for z in Z), empty.hyper)
            for Y in itertools.product(choices, repeat=V):
                views = tuple(sorted(zip(Y, Z, strict=True)))
                if views in out or np.sum(Y, axis=0).max() > largest:
                    continue
                state = empty
                for y, z in zip(Y, Z, strict=True):
                    state = add_view(state, np.array(z), np.flatnonzero(y))
                value = log_prior(state)
                for d in range(D):
                    value += scores(tuple(v for v in range(V) if Y[v][d]))[d]
                out[views] = value - np.log(2.0) * (V == 2 and views[0] == views[1])
    p = np.exp(np.array(list(out.values())) - max(out.values()))
    return list(out), p / p.sum()


def name(state):
    """A state in the form of the exact states."""
    columns = [tuple(y.tolist()) for y in state.Y.T]
    return tuple(sorted(zip(columns, [tuple(z.tolist()) for z in state.Z], strict=True)))


def p_value(states, p, drawn):
    """P-values of all states, and of the memberships only."""
    place = {state: i for i, state in enumerate(states)}
    found = np.array([place[state] for state in drawn])
    log_p = np.log(p)
    traits = [
        np.array([len(s) for s in states]),
        log_p,
        np.array([sum(sum(y) for y, _ in s) for s in states]),
    ]
    effective = min(effective_size(trait[found].astype(float)) for trait in traits)
    counts = np.bincount(found, minlength=len(states))
    groups = {}
    for i, state in enumerate(states):
        groups.setdefault(tuple(y for y, _ in state), []).append(i)
    coarse = [np.array([x[g].sum() for g in groups.values()]) for x in (counts, p)]
    return 2.0 * min(chi_square(counts, p, effective), chi_square(*coarse, effective))


@pytest.mark.parametrize(
    "make",
    [
        additive,
        additive_with_rows,
        additive_with_sizes,
        cells,
        pytest.param(mixed, marks=SLOW),
        pytest.param(three_kinds, marks=SLOW),
    ],
)
def test_chain_has_the_exact_posterior(make, global_random_seed):
    """False alarm once in a million runs; row factors are held fixed."""
    table, hyper = make()
    empty = empty_state(D, hyper, IndianBuffet(1.2, 0.8), 0.9)
    states, p = exact_posterior(table, empty, FIXED.max_per_column)
    assert len(states) == 1 + 7 * 15 + 105 * 106 // 2
    rng, state, drawn = np.random.default_rng(global_random_seed), empty, []
    for _ in range(2000):
        for _ in range(2):
            for step in overlap_steps(table, FIXED)[:2]:
                state = step(OverlapChain(state, rng)).state
        drawn.append(name(state))
    assert p_value(states, p, drawn) > FALSE_ALARM


@SLOW
def test_full_covariances_have_the_exact_posterior(global_random_seed):
    """Disjoint views with correlated columns."""
    table = FullTable(np.where(np.isnan(REALS), 0.2, REALS))
    empty = empty_state(D, table.default_hyper(), IndianBuffet(1.2, 0.8), 0.9)
    divisions = [tuple(z) for z in set_partitions(N)]
    choices = [y for y in itertools.product([False, True], repeat=D) if any(y)]
    found = {}
    for V in range(VIEWS + 1):
        for views in itertools.combinations_with_replacement(
            sorted(itertools.product(choices, divisions)), V
        ):
            if V == 0 or np.sum([y for y, _ in views], axis=0).max() <= 1:
                state = empty
                for y, z in views:
                    state = add_view(state, np.array(z), np.flatnonzero(y))
                found[views] = table.log_joint(state)
    p = np.exp(np.array(list(found.values())) - max(found.values()))
    rng, state, drawn = np.random.default_rng(global_random_seed), empty, []
    for _ in range(1200):
        for _ in range(2):
            state = chain_step(table, state, rng, FIXED._replace(max_per_column=1))
        drawn.append(name(state))
    assert p_value(list(found), p / p.sum(), drawn) > FALSE_ALARM


def test_one_view_a_column_and_memberships_one_by_one():
    """Disjoint views; and the step that is used if there are too many sets of views to list."""
    table, hyper = additive()
    empty = empty_state(D, hyper, IndianBuffet(1.2, 0.8), 0.9)
    for largest in (1, 2):
        states, p = exact_posterior(table, empty, largest)
        plan, rng, state, drawn = (
            FIXED._replace(max_per_column=largest),
            np.random.default_rng(largest),
            empty,
            [],
        )
        for _ in range(800):
            for _ in range(2):
                state = feature_step(table, state, rng, max_per_column=largest, max_views=VIEWS, max_listed=0)
                state = chain_step(table, state, rng, plan)
            drawn.append(name(state))
        assert p_value(states, p, drawn) > FALSE_ALARM


# ---- Geweke ----------------------------------------------------------------------------------------------------------

PLAN = OverlapPlan(max_per_column=2, max_views=4, n_moves=2)
ROWS = 5


def draw_state(rng, rank, with_gain, parts=None):
    """Hyper-parameters, row factors, memberships and labels from the prior, given the limits."""
    from partita.partitions import DirichletProcess, simulate
    from partita.views.nuisance import GAIN_SPREAD
    from partita.views.overlapping.additive import EFFECT_HYPERPRIOR

    while True:
        buffet = IndianBuffet(rng.exponential(), rng.exponential())
        Y = simulate(buffet, D, rng).astype(bool)
        if Y.shape[1] <= PLAN.max_views and Y.sum(axis=1).max(initial=0) <= PLAN.max_per_column:
            break
    concentration = rng.exponential()
    effect, loading = rng.gamma(EFFECT_HYPERPRIOR.shape, size=2) / EFFECT_HYPERPRIOR.rate
    rows = rng.normal(size=(ROWS, rank)) if rank else None
    gain = GAIN_SPREAD * rng.normal(size=rank) if with_gain else None
    effects = Effects(effect=effect, a=2.0, b=1.0, loading=loading, rows=rows, gain=gain, parts=parts)
    hyper = OverlapHyper(effects, ())
    state = empty_state(D, hyper, buffet, concentration)
    for y in Y.T:
        state = add_view(state, simulate(DirichletProcess(concentration), ROWS, rng), np.flatnonzero(y))
    return state


def draw_data(state, rng):
    effects = state.hyper.effects
    sizes = np.ones(ROWS) if effects.gain is None else 1.0 + effects.rows @ effects.gain
    X = np.empty((ROWS, D))
    for d in range(D):
        noise = np.sqrt(effects.b / rng.gamma(effects.a))
        X[:, d] = sizes * noise * np.sqrt(effects.center) * rng.normal() + noise * rng.normal(size=ROWS)
        if effects.rank:
            loadings = noise * np.sqrt(effects.loading) * rng.normal(size=effects.rank)
            X[:, d] += effects.rows @ (loadings if effects.parts is None else loadings * effects.parts[:, d])
        for v in np.flatnonzero(state.Y[d]):
            K = int(state.Z[v].max()) + 1
            X[:, d] += sizes * (noise * np.sqrt(effects.effect) * rng.normal(size=K))[state.Z[v]]
    return OverlapTable(read_reals(X), None)


def traits(pair):
    state, table = pair
    return {
        "views": state.n_views,
        "memberships": int(state.Y.sum()),
        "clusters": sum(int(z.max()) + 1 for z in state.Z),
        "alpha": state.buffet.alpha,
        "beta": state.buffet.beta,
        "concentration": state.concentration,
        "effect": state.hyper.effects.effect,
        "log joint": table.log_joint(state),
    } | _row_traits(state.hyper.effects, table.additive.X)


def _row_traits(effects, X):
    """Numbers that do not depend on the signs and the order of row factors."""
    if effects.rows is None:
        return {}
    return {
        "loading": effects.loading,
        "size of factors": float((effects.rows**2).sum()),
        "first row": float((effects.rows[0] ** 2).sum()),
        "along the data": float(np.abs(effects.rows.T @ np.tanh(X[:, 0])).sum()),
        "gain": 0.0 if effects.gain is None else float((effects.gain**2).sum()),
        "first size": 1.0 if effects.gain is None else float(1.0 + effects.rows[0] @ effects.gain),
    }


EXPOSURE = np.linspace(0.5, 2.0, ROWS)
COUNTS = Poisson(np.array([1.5, 2.0, 1.0]), np.array([0.5, 1.0, 0.7]))


def draw_counts(state, rng):
    """Counts with a rate per combination of clusters, exposures and depths."""
    X, depths = np.empty((ROWS, D)), state.hyper.depths
    for d in range(D):
        z = combination_labels(state.Z, tuple(np.flatnonzero(state.Y[d])), ROWS)
        rates = rng.gamma(COUNTS.a[d], size=ROWS) / COUNTS.b[d]
        X[:, d] = rng.poisson(EXPOSURE * depths.rows * rates[z])
    block = Block(COUNTS, Counts(X, EXPOSURE), ("a", "b", "c"))
    return OverlapTable(None, CombinationColumns((block,)))


def count_traits(pair):
    state, table = pair
    depths, X = state.hyper.depths, table.combined.blocks[0].data.X
    return {
        "views": state.n_views,
        "memberships": int(state.Y.sum()),
        "clusters": sum(int(z.max()) + 1 for z in state.Z),
        "log shape": float(np.log(depths.shape)),
        "depth": float(np.tanh(depths.rows[1])),
        "spread of depths": float(np.tanh(depths.rows).std()),
        "counts": float(np.log1p(X).mean()),
        "depth and counts": float((np.tanh(depths.rows) * np.log1p(X[:, 0])).mean()),
    }


@pytest.mark.slow
def test_geweke_with_depths():
    """Hyper-parameters of the rates are held fixed."""
    plan = PLAN._replace(learn_likelihood=False)

    def draw(rng):
        state = draw_state(rng, 0, False)
        shape = rng.gamma(SHAPE_PRIOR.shape) / SHAPE_PRIOR.rate
        depths = Depths(np.maximum(rng.gamma(shape, size=ROWS), 1e-300) / shape, shape, EXPOSURE)
        state = state._replace(hyper=OverlapHyper(Effects(), (COUNTS,), depths))
        return state, draw_counts(state, rng)

    def step(pair, rng):
        state = chain_step(pair[1], pair[0], rng, plan)
        return state, draw_counts(state, rng)

    check_geweke(draw, step, count_traits, 3, 3000, more=5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rank", "with_gain", "parts"),
    [(0, False, None), (2, False, None), (2, True, None), (2, False, [[True] * D, [False, True, True]])],
)
def test_geweke(rank, with_gain, parts):
    parts = None if parts is None else np.array(parts)

    def draw(rng):
        state = draw_state(rng, rank, with_gain, parts)
        return state, draw_data(state, rng)

    def step(pair, rng):
        state = chain_step(pair[1], pair[0], rng, PLAN)
        return state, draw_data(state, rng)

    check_geweke(draw, step, traits, 3, 3000, more=5)
