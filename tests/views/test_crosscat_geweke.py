"""Geweke's test of CrossCat: views, labels, concentrations, hyper-parameters and data together.

A correct sampler fails once in 1e6 times; what is suspicious is run again with ten times the draws.
"""

from typing import Any, NamedTuple

import numpy as np
import pytest

from partita.engines.gibbs import sweep
from partita.engines.gibbs.chain import Schedule
from partita.families import Bernoulli, Block, Categorical, Counts, GaussianDiagonal, Poisson, Ties
from partita.families.contract import constrained, draw, n_columns, simulate, stats_start, unconstrained
from partita.partitions import DirichletProcess
from partita.partitions import simulate as simulate_labels
from partita.testing import check_geweke
from partita.views.crosscat import chain
from partita.views.crosscat import state as columns
from partita.views.crosscat.depths import layout_with
from partita.views.crosscat.layout import lay_out, take_columns
from partita.views.crosscat.row_factors import (
    SPREAD_SCALE,
    SPREAD_SHAPE,
    RowFactors,
    real_cells,
    real_columns,
    without_row_factors,
)
from partita.views.crosscat.tied_cells import tie_step
from partita.views.depths import SHAPE_PRIOR, Depths
from partita.views.nuisance import GAIN_SPREAD

pytestmark = pytest.mark.slow

N = 6
WIDTH = 1.5  # of the cells of tied values
SPREAD = 0.4  # of the hyper-parameters; the chain is held to the same law
REFERENCE = (
    # variances with a light tail: a value of 1e6 would leave no digits for the chain and the test
    GaussianDiagonal(np.full(2, 0.3), np.full(2, 0.4), np.full(2, 3.0), np.full(2, 2.0)),
    Bernoulli(np.full(1, 0.8), np.full(1, 0.6)),
    Categorical.default([3], alpha=0.7),
)
# with two columns of counts, whose rows have depths
COUNTED = (*REFERENCE[1:], Poisson(np.array([1.5, 2.0]), np.array([0.5, 1.0])))
EXPOSURE = np.linspace(0.5, 2.0, N)


class State(NamedTuple):
    gamma: float
    views: np.ndarray  # of each column
    z: list
    alphas: list
    families: tuple
    data: Any
    factors: tuple | None = None  # row factors, loadings, variance of the loadings, and gains
    depths: Depths | None = None


def draw_data(state, rng):
    """New data given everything else."""
    out, at = [], 0
    for family in state.families:
        D = int(n_columns(family))
        parts = []
        for d in range(D):
            one, z = take_columns(family, np.array([d])), state.z[state.views[at + d]]
            theta = draw(one, np.zeros((int(stats_start(one, 1)), int(z.max()) + 1)), rng)
            if isinstance(one, Poisson):
                exposure = EXPOSURE * state.depths.rows
                parts.append(rng.poisson(exposure * -theta[0][z]).astype(float))
            else:
                parts.append(simulate(one, theta, z, rng))
            if isinstance(one, GaussianDiagonal) and state.factors is not None:
                sizes = RowFactors(*state.factors[:3], None, None, state.factors[3]).sizes
                parts[-1] += (sizes - 1.0)[:, None] * (theta[1] / (-2.0 * theta[2]))[z][:, None]
        at += D
        x = np.ascontiguousarray(np.column_stack(parts))
        if isinstance(family, Poisson):
            x = Counts(x, EXPOSURE)
        elif not isinstance(family, GaussianDiagonal):
            x = x.astype(np.int8)
        elif state.factors is not None:
            x = x + state.factors[0] @ state.factors[1]
        out.append(x)
    return state._replace(data=out)


def cut_normal(rng, shape):
    """The hyperprior of the chain: a normal distribution truncated at three standard deviations."""
    x = rng.standard_normal(shape)
    while (np.abs(x) > 3).any():
        x = np.where(np.abs(x) > 3, rng.standard_normal(shape), x)
    return x


def draw_factors(rng, rank, with_gain, parts):
    if not rank:
        return None
    spread = SPREAD_SCALE / rng.gamma(SPREAD_SHAPE)
    gain = GAIN_SPREAD * rng.normal(size=rank) if with_gain else None
    loadings = np.sqrt(spread) * rng.normal(size=(rank, 2))
    if parts is not None:
        loadings = np.where(parts, loadings, 0.0)
    return rng.normal(size=(N, rank)), loadings, spread, gain


def draw_depths(rng):
    shape = rng.gamma(SHAPE_PRIOR.shape) / SHAPE_PRIOR.rate
    # a depth that rounds to 0 would have no logarithm
    return Depths(np.maximum(rng.gamma(shape, size=N), 1e-300) / shape, shape, EXPOSURE)


def draw_state(rng, learn, rank=0, reference=REFERENCE, with_gain=False, parts=None):
    gamma = rng.exponential() if learn else 1.0
    views = simulate_labels(DirichletProcess(gamma), 4, rng)
    alphas = [rng.exponential() if learn else 1.0 for _ in range(views.max() + 1)]
    z = [simulate_labels(DirichletProcess(a), N, rng) for a in alphas]
    families = reference
    if learn:
        families = []
        for family in reference:
            for name, value in unconstrained(family).items():
                gap = SPREAD * cut_normal(rng, value.shape)
                family = constrained(family, name, value + gap)
            families.append(family)
    depths = draw_depths(rng) if reference is COUNTED else None
    factors = draw_factors(rng, rank, with_gain, parts)
    state = State(gamma, views, z, alphas, tuple(families), None, factors, depths)
    return draw_data(state, rng)


def cells(x):
    """Real values as tied ones, each in a cell of an even grid; the values of the last row are exact."""
    low = WIDTH * np.floor(x / WIDTH)
    low[-1] = np.nan
    return Ties(x, low, low + WIDTH)


def by_chain(learn, reference=REFERENCE, tied=False, parts=None, **moves):
    schedule = Schedule(n_moves=1, learn_concentration=learn, learn_likelihood=learn)
    concentration = None if learn else 1.0
    plan = columns.CrossCatPlan(
        schedule, concentration=concentration, learn_views=learn, dtype=np.float64, **moves
    )

    def move(state, rng):
        if tied:  # the state that is compared has the values that the step of the ties has drawn
            state = draw_data(state, rng)
        blocks = [Block(f, x, ()) for f, x in zip(reference, state.data, strict=True)]
        if tied:
            blocks[0] = blocks[0]._replace(ties=cells(state.data[0]), columns=("a", "b"))
        layout = layout_with(lay_out(blocks), state.depths)
        V = int(state.views.max()) + 1
        groups = [np.flatnonzero(state.views == v).tolist() for v in range(V)]
        priors = [DirichletProcess(a) for a in state.alphas]
        factors, families = None, list(state.families)
        if state.factors is not None:
            factors = RowFactors(
                *state.factors[:3], real_columns(layout), real_cells(layout), state.factors[3], parts
            )
            layout = without_row_factors(layout, factors)
            families[0] = type(layout.blocks[0].family)(*families[0])
        table = columns.start(layout, groups, state.z, priors, rng, plan, families, state.gamma)
        table = chain.step(table._replace(factors=factors, depths=state.depths), plan, rng)
        data = None
        if tied:
            table = tie_step(table, rng, np.float64)
            data = [table.layout.blocks[0].data if factors is None else table.factors.raw, *state.data[1:]]
        views = np.empty(4, int)
        for v, view in enumerate(table.views):
            views[columns.columns_in(layout, view.units)] = v
        new = State(
            table.prior.concentration,
            views,
            [sweep.labels(view.chain.seating) for view in table.views],
            [view.chain.prior.concentration for view in table.views],
            (type(reference[0])(*table.families[0]), *table.families[1:]),
            data,
            None if factors is None else (*table.factors[:3], table.factors.gain),
            table.depths,
        )
        return new if tied else draw_data(new, rng)

    return move


def traits(state):
    """Numbers that do not depend on the names of views and clusters."""
    first = int(state.views[0])
    out = {
        "views": float(state.views.max() + 1),
        "largest view": float(np.bincount(state.views).max()),
        "columns 0 and 2 together": float(state.views[0] == state.views[2]),
        "gamma": state.gamma,
        "clusters of column 0": float(state.z[first].max() + 1),
        "clusters": float(sum(z.max() + 1 for z in state.z)),
        "alpha of column 0": state.alphas[first],
    }
    for family in state.families:
        for name, value in unconstrained(family).items():
            out[f"{type(family).__name__} {name}"] = float(value[0])
    if state.depths is not None:
        counts = state.data[-1].X
        out["log shape"] = float(np.log(state.depths.shape))
        out["depth"] = float(np.tanh(state.depths.rows[1]))
        out["spread of depths"] = float(np.tanh(state.depths.rows).std())
        out["counts"] = float(np.log1p(counts).mean())
        out["depth and counts"] = float((np.tanh(state.depths.rows) * np.log1p(counts[:, 0])).mean())
        return out
    x = state.data[0]
    out["cell"] = float(np.tanh(x[0, 0]))
    out["scatter"] = float(np.tanh(x[:, 0]).std())
    out["ones"] = float(state.data[1].mean())
    if state.factors is not None:
        rows, loadings, spread, gain = state.factors
        out["gain"] = 0.0 if gain is None else float((gain**2).sum())
        out["first size"] = 1.0 if gain is None else float(1.0 + rows[0] @ gain)
        out["spread"] = spread
        out["size of rows"] = float((rows**2).sum())
        out["size of loadings"] = float((loadings[:, 0] ** 2).sum())
        out["part of a cell"] = float((rows @ loadings)[0, 1])
        out["along the data"] = float(np.abs(rows.T @ np.tanh(x[:, 0])).sum())
    return out


OF_A_GROUP = np.array([[True, True], [False, True]])  # the second row factor has no part in the first column


@pytest.mark.parametrize(
    ("with_gain", "parts"),
    [(False, None), (True, None), (False, OF_A_GROUP)],
    ids=["plain", "gains", "of a group"],
)
def test_geweke_with_row_factors(with_gain, parts, monkeypatch):
    monkeypatch.setattr("partita.engines.gibbs.chain.HYPER_SPREAD", SPREAD)
    moves = {"births_per_unit": 0.5, "merges_per_view": 1.0}
    check_geweke(
        lambda rng: draw_state(rng, True, 2, with_gain=with_gain, parts=parts),
        by_chain(True, parts=parts, **moves),
        traits,
        seed=0,
        n_draws=2000,
        more=5,
    )


@pytest.mark.parametrize("rank", [0, 2], ids=["plain", "with row factors"])
def test_geweke_with_ties(rank, monkeypatch):
    monkeypatch.setattr("partita.engines.gibbs.chain.HYPER_SPREAD", SPREAD)
    check_geweke(
        lambda rng: draw_state(rng, True, rank, with_gain=rank > 0),
        by_chain(True, tied=True, births_per_unit=0.5, merges_per_view=1.0),
        traits,
        seed=0,
        n_draws=2000,
        more=5,
    )


def test_geweke_with_depths(monkeypatch):
    monkeypatch.setattr("partita.engines.gibbs.chain.HYPER_SPREAD", SPREAD)
    moves = {"births_per_unit": 0.5, "merges_per_view": 1.0}
    check_geweke(
        lambda rng: draw_state(rng, True, reference=COUNTED),
        by_chain(True, COUNTED, **moves),
        traits,
        seed=0,
        n_draws=2000,
        more=5,
    )


@pytest.mark.parametrize(
    "moves",
    [
        {"births_per_unit": 0.0, "merges_per_view": 0.0, "n_auxiliary": 2},
        {"births_per_unit": 0.5, "merges_per_view": 1.0},
    ],
    ids=["gibbs", "all"],
)
@pytest.mark.parametrize("learn", [False, True], ids=["fixed", "learned"])
def test_geweke(learn, moves, monkeypatch):
    monkeypatch.setattr("partita.engines.gibbs.chain.HYPER_SPREAD", SPREAD)
    check_geweke(
        lambda rng: draw_state(rng, learn), by_chain(learn, **moves), traits, seed=0, n_draws=2000, more=5
    )
