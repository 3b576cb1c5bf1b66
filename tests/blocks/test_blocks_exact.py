"""The blocks of a relation against all partitions: the transition probabilities of the kernel, and compiled chains.

The reference knows nothing of grids: it walks over the cells one by one, collects the data of every block and asks the
family's log marginal.
"""

import itertools

import numpy as np
import pytest

from partita.blocks.chain import grid_sampler, join_sides, start_grid
from partita.blocks.moves import Anchors, propose
from partita.blocks.sweep import DIRECTED, TABLE, UNDIRECTED, log_joint, make_grid, seat, turned
from partita.dispatch import interpreted
from partita.engines.gibbs.chain import Schedule
from partita.engines.gibbs.sweep import NO_LIMIT
from partita.engines.passes.rows import n_stats
from partita.engines.run import run_chain
from partita.families import FAMILIES, Bernoulli
from partita.families.contract import draw, simulate
from partita.families.rows import log_marginals
from partita.labels import set_partitions
from partita.partitions import DirichletProcess, PitmanYor, log_eppf
from partita.testing import FALSE_ALARM, chi_square, effective_size, row_statistics, take

CELLWISE = sorted(name for name, entry in FAMILIES.items() if not entry.vector and entry.kind != "ordinal")
MODES = {"table": TABLE, "directed": DIRECTED, "undirected": UNDIRECTED}
PRIORS = (DirichletProcess(1.3), PitmanYor(0.8, 0.3))


def partitions(N):
    return [np.array(z) for z in set_partitions(N)]


def relation(name, mode, R, D, seed=3):
    """Cells of two relations over R x D objects with missing cells, drawn from the example of a family."""
    rng = np.random.default_rng([seed, *name.encode()])
    family, _ = FAMILIES[name].examples(rng)[0]
    theta = draw(family, np.zeros((n_stats(family), 2)), rng)
    data = simulate(family, theta, rng.integers(2, size=R * D), rng)
    if mode == UNDIRECTED:
        where = np.arange(R * D).reshape(R, D)
        data = take(data, np.where(np.tri(R, k=-1, dtype=bool), where.T, where).ravel())
    cells = data.X if hasattr(data, "X") else data
    for hole in [(0, 1), (1, 0)] if mode else [(0, 1)]:
        cells[hole[0] * D + hole[1]] = -1 if cells.dtype.kind == "i" else np.nan
    return family, data


def naive_log_joint(mode, family, data, labels, priors):
    """Log joint of partitions, cell by cell."""
    rows, columns = labels[0], labels[-1]
    blocks = {}
    for i, j in itertools.product(range(len(rows)), range(len(columns))):
        if mode == UNDIRECTED and i > j:
            continue
        pair = (int(rows[i]), int(columns[j]))
        pair = tuple(sorted(pair)) if mode == UNDIRECTED else pair
        t = row_statistics(family, data, i * len(columns) + j)
        blocks[pair] = blocks.get(pair, 0.0) + t
    total = sum(log_marginals(family, s[:, None]).sum() for s in blocks.values())
    for z, prior in zip(labels, priors, strict=False):
        total += log_eppf(prior, np.bincount(z).astype(float), int(z.max()) + 1)
    return total


def states_of(mode, R, D):
    if mode == TABLE:
        return list(itertools.product(partitions(R), partitions(D)))
    return [(z,) for z in partitions(R)]


def key(labels):
    out = []
    for z in labels:
        names = {}
        out.append(tuple(names.setdefault(int(label), len(names)) for label in z))
    return tuple(out)


def exact(mode, family, data, R, D, priors):
    states = states_of(mode, R, D)
    log_p = np.array([naive_log_joint(mode, family, data, labels, priors) for labels in states])
    pi = np.exp(log_p - log_p.max())
    return states, {key(labels): s for s, labels in enumerate(states)}, pi / pi.sum()


def grid_key(grid):
    return key(side.z for side in grid.sides)


def gibbs_moves(make, side, prior, i):
    """All assignments of one object with their probabilities, from a scan over the uniform."""
    reached = 0.0
    while reached < 1.0 - 1e-9:
        grid, log_q = make(), np.zeros(1)
        one, other = grid.sides[side], grid.sides[-1 - side]
        S, L = turned(grid, side)
        nothing, u = np.zeros(0, np.int64), np.array([reached + 1e-12])
        seat(
            grid.family, grid.cells[side], grid.mode, prior, *one, other.z, other.K, S, L,
            np.array([i]), nothing, nothing, u, 0, NO_LIMIT, log_q,
        )  # fmt: skip
        reached += float(np.exp(log_q[0]))
        yield grid_key(grid), float(np.exp(log_q[0]))


def split_merge_moves(make, side, priors, N):
    """All split-merge moves of one side: (target, probability of proposing, probability of accepting)."""
    z = make().sides[side].z
    for i, j in itertools.permutations(range(N), 2):
        together = bool(z[i] == z[j])
        drawn = 0.5 / N / (np.sum((z == z[i]) == together) - together)
        others = [m for m in range(N) if m not in (i, j) and z[m] in (z[i], z[j])]
        orders = list(itertools.permutations(others))
        for order in orders:
            choices = itertools.product([0.0, 1.0 - 1e-12], repeat=len(order)) if together else [()]
            for u in choices:
                u = np.array([0.5, 0.5, *u] if together else [0.5] * (2 + len(order)))
                found = propose(make(), side, priors, Anchors(i, j, together), np.array(order, np.int64), u)
                q = np.exp(found.log_q) if together else 1.0
                accept = np.exp(min(found.log_accept, 0.0))
                yield grid_key(found.grid), drawn / len(orders) * q, accept


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CELLWISE)
def test_the_log_joint_is_that_of_the_cells(name, mode, global_random_seed):
    mode = MODES[mode]
    with interpreted():
        family, data = relation(name, mode, 3, 3 if mode else 2, seed=global_random_seed)
        for labels in states_of(mode, 3, 3 if mode else 2):
            grid = make_grid(mode, family, data, labels)
            expected = naive_log_joint(mode, family, data, labels, PRIORS)
            assert log_joint(grid, PRIORS[: len(labels)]) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CELLWISE)
def test_a_sweep_leaves_the_posterior_invariant(name, mode, global_random_seed):
    """pi P = pi over all partitions of both sides, without Monte Carlo."""
    mode, R, D = MODES[mode], 3, 3
    with interpreted():
        family, data = relation(name, mode, R, D, seed=global_random_seed)
        states, index, pi = exact(mode, family, data, R, D, PRIORS)
        for side in (0, 1) if mode == TABLE else (0,):
            for i in range(R):
                P = np.zeros((len(states), len(states)))
                for s, labels in enumerate(states):

                    def make(labels=labels):
                        return make_grid(mode, family, data, labels)

                    for target, p in gibbs_moves(make, side, PRIORS[side], i):
                        P[s, index[target]] += p
                np.testing.assert_allclose(P.sum(axis=1), 1.0, atol=1e-8)
                np.testing.assert_allclose(pi @ P, pi, atol=1e-8)


@pytest.mark.parametrize("mode", MODES)
def test_split_merge_leaves_the_posterior_invariant(mode, global_random_seed):
    """Detailed balance, over all pairs of anchors, orders of the objects and splits."""
    mode = MODES[mode]
    R, D = (4, 2) if mode == TABLE else (4, 4)
    priors = PRIORS if mode == TABLE else PRIORS[1:]
    with interpreted():
        family, data = relation("bernoulli", mode, R, D, seed=global_random_seed)
        states, index, pi = exact(mode, family, data, R, D, priors)
        P = np.zeros((len(states), len(states)))
        for s, labels in enumerate(states):

            def make(labels=labels):
                return make_grid(mode, family, data, labels)

            for target, drawn, accept in split_merge_moves(make, 0, priors, R):
                P[s, index[target]] += drawn * accept
        np.testing.assert_allclose(pi[:, None] * P, (pi[:, None] * P).T, atol=1e-10)
        assert (P > 0).sum() > len(states)  # it moves


@pytest.mark.parametrize("n_moves", [0, 2], ids=["sweeps", "split-merge too"])
@pytest.mark.parametrize("mode", MODES)
def test_compiled_chains_draw_from_the_posterior(mode, n_moves):
    """4 x 4 binary cells, one of them missing: all pairs of partitions (or all partitions of a square relation)."""
    mode = MODES[mode]
    X = np.array([[1, 1, 0, 0], [1, 1, 0, 1], [0, 1, 1, 1], [0, 1, 1, 1]], np.int8)
    if mode == UNDIRECTED:
        X = np.triu(X) + np.triu(X, 1).T
    X[0, 1] = -1
    if mode == UNDIRECTED:
        X[1, 0] = -1
    family, data = Bernoulli.default(1, a=0.4, b=0.7), X.reshape(-1, 1).copy()
    priors = PRIORS if mode == TABLE else PRIORS[1:]
    states, index, pi = exact(mode, family, data, 4, 4, priors)
    start = [np.zeros(4, int)] * len(priors)
    schedule = Schedule(
        n_draws=3_000, burn_in=20, thin=1, n_moves=n_moves, learn_concentration=False, learn_likelihood=False
    )
    sampler = grid_sampler(lambda: start_grid(mode, family, data, start, priors, seed=11), schedule)
    run = run_chain(sampler, schedule)
    traces = join_sides(run.draws)
    draws = np.array([index[key(labels)] for labels in zip(*(t.labels for t in traces), strict=True)])
    counts = np.bincount(draws, minlength=len(states))
    log_pi = np.log(pi)
    effective = min(effective_size(x.astype(float)) for x in (traces[0].n_clusters, log_pi[draws]))
    assert chi_square(counts, pi, effective) > FALSE_ALARM
    # the test has power: another hyper-parameter is rejected
    other = exact(mode, family._replace(a=np.array([0.8])), data, 4, 4, priors)[2]
    assert chi_square(counts, other, effective) < FALSE_ALARM
    assert np.allclose(traces[0].log_joint[-1], log_joint(run.state.grid, priors))
