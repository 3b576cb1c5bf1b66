"""Tied values in chains: drawn inside their cells from the right distribution, and the posterior that follows."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import truncnorm

from partita import Mixture
from partita.engines.gibbs import chain as chains
from partita.engines.gibbs import tied_values
from partita.engines.subclusters.chain import algorithm
from partita.families import Block, GaussianFull, Signal, Ties, take_block
from partita.families.rows import log_marginals
from partita.families.ties import find_ties, redraw
from partita.labels import canonical, set_partitions
from partita.metrics import adjusted_rand
from partita.partitions import bind, log_eppf, specify
from partita.testing import FALSE_ALARM, EnumerationResult, posterior_p_value

WIDTH = 1.6  # of a cell: wide, so that values anywhere else in it, or none drawn, change the posterior


def make_ties(Z, column=0, width=WIDTH):
    """The values of one column known to an interval around them."""
    low, high = np.full(Z.shape, np.nan), np.full(Z.shape, np.nan)
    low[:, column], high[:, column] = Z[:, column] - 0.4 * width, Z[:, column] + 0.6 * width
    return Ties(Z, low, high)


def make_signal(rng):
    axes = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    return Signal.of(np.ascontiguousarray(axes), np.array([1.2, 0.8, 0.3]), 2)


@pytest.mark.parametrize("with_signal", [False, True])
def test_redrawing_keeps_the_truncated_normal(with_signal, rng):
    """Cells drawn from their conditional distribution have it again after a step: means within five standard errors."""
    n = 20_000
    signal = make_signal(rng) if with_signal else None
    A = rng.normal(size=(2, 2))
    precisions, means = (A @ A.T + np.eye(2))[None], rng.normal(size=(1, 2))
    Q = precisions if signal is None else signal.column_precisions(precisions)
    m = means if signal is None else signal.column_means(means)
    D = Q.shape[1]
    row = rng.normal(size=D)
    ties = make_ties(np.tile(row, (n, 1)))
    # exact draws: the other columns are fixed, so the tied one is a truncated normal variable
    sd = 1.0 / np.sqrt(Q[0, 0, 0])
    center = m[0, 0] - Q[0, 0, 1:] @ (row[1:] - m[0, 1:]) * sd**2
    law = truncnorm((ties.low[0, 0] - center) / sd, (ties.high[0, 0] - center) / sd, center, sd)
    values = ties.start(rng)
    data = redraw(ties, signal, means, precisions, np.zeros(n, int), values, rng)
    x = values[:, 0]
    assert ((x >= ties.low[:, 0]) & (x <= ties.high[:, 0])).all()
    for power in (1, 2):
        moment = law.expect(lambda t, power=power: t**power)
        error = (x**power).std() / np.sqrt(n)
        assert abs((x**power).mean() - moment) < 5 * error
    np.testing.assert_array_equal(values[:, 1:], ties.values[:, 1:])
    np.testing.assert_allclose(data, values if signal is None else signal.scores(values))


def test_values_anywhere_in_their_cells_are_caught(rng, monkeypatch):
    """A planted bug: even draws in place of those of the truncated normal."""
    monkeypatch.setattr("partita.families.ties.draw_interval", lambda a, b, u: a + u * (b - a))
    with pytest.raises(AssertionError):
        test_redrawing_keeps_the_truncated_normal(False, rng)


def test_two_tied_columns_of_a_row_are_drawn_together(rng):
    """Alternating draws of two correlated cells reach their joint distribution, computed on a grid."""
    n = 20_000
    Q, m = np.array([[[2.0, -1.5], [-1.5, 2.0]]]), np.zeros((1, 2))
    Z = np.tile([0.5, -0.3], (n, 1))
    ties = Ties(Z, Z - 0.7, Z + 0.9)
    values = ties.start(rng)
    for _ in range(12):
        redraw(ties, None, m, Q, np.zeros(n, int), values, rng)
    grid = [np.linspace(ties.low[0, d], ties.high[0, d], 801) for d in range(2)]
    x, y = np.meshgrid(*grid, indexing="ij")
    p = np.exp(-0.5 * (Q[0, 0, 0] * x * x + 2 * Q[0, 0, 1] * x * y + Q[0, 1, 1] * y * y))
    p /= p.sum()
    for f in (lambda x, y: x, lambda x, y: y, lambda x, y: x * y):
        found = f(*values.T)
        assert abs(found.mean() - (p * f(x, y)).sum()) < 5.5 * found.std() / np.sqrt(n)


def exact_posterior(block, prior, n_nodes=10):
    """Sum over all partitions, cells integrated by quadrature over the tied value of each row."""
    ties, signal = block.ties, block.signal
    N = len(ties.values)
    prior = bind(prior, N)
    t, w = np.polynomial.legendre.leggauss(n_nodes)
    nodes, log_weights = [], []
    for i in range(N):
        Z = np.tile(ties.values[i], (n_nodes, 1))
        half = 0.5 * (ties.high[i, 0] - ties.low[i, 0])
        Z[:, 0] = ties.low[i, 0] + half * (t + 1)
        log_weights.append(np.log(half * w) + (0.0 if signal is None else signal.log_rest(Z)))
        Y = Z if signal is None else signal.scores(Z)
        nodes.append(np.stack([np.ones(n_nodes), *Y.T, Y[:, 0] ** 2, Y[:, 0] * Y[:, 1], Y[:, 1] ** 2]))
    evidence = {}
    for mask in range(1, 2**N):
        S, log_w = np.zeros((6, 1)), np.zeros(1)
        for i in range(N):
            if mask >> i & 1:
                S = (S[:, :, None] + nodes[i][:, None, :]).reshape(6, -1)
                log_w = (log_w[:, None] + log_weights[i][None, :]).ravel()
        evidence[mask] = logsumexp(log_marginals(block.family, np.ascontiguousarray(S)).sum(axis=0) + log_w)
    labels = np.array(list(set_partitions(N)))
    log_joint = [
        log_eppf(prior, np.bincount(z).astype(float), z.max() + 1)
        + sum(evidence[sum(1 << i for i in np.flatnonzero(z == k))] for k in range(z.max() + 1))
        for z in labels
    ]
    return EnumerationResult(labels, np.array(log_joint))


ALGORITHMS = {"gibbs": chains.collapsed_gibbs, "subclusters": lambda: algorithm(np.ones(4, np.int64))}


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ALGORITHMS)
@pytest.mark.parametrize("with_signal", [False, True])
def test_chains_draw_from_the_exact_posterior(with_signal, sampler, global_random_seed):
    rng = np.random.default_rng([global_random_seed, 5])
    signal = make_signal(rng) if with_signal else None
    Z = np.array([[-1.0, 0.2, 0.1], [-0.9, -0.3, 0.0], [1.0, 0.4, -0.2], [1.2, 0.9, 0.1]])
    Z = Z[:, : 3 if with_signal else 2].copy()
    family = GaussianFull.of(np.zeros(2), 0.3, 5.0, 0.4 * np.eye(2))
    data = Z if signal is None else signal.scores(Z)
    block = Block(family, data, ("a", "b"), signal, ties=make_ties(Z))
    prior = specify("mfm", rate=0.4)
    exact = exact_posterior(block, prior)
    schedule = chains.Schedule(learn_concentration=False, learn_likelihood=False, n_moves=2)
    own = ALGORITHMS[sampler]()
    chain = own.start([block], prior, np.zeros(4, int), global_random_seed)
    draws = np.empty((6000, 4), np.int64)
    for i in range(len(draws)):
        for _ in range(3):
            chain = chains.step(chain, schedule, own.steps)
        draws[i] = canonical(chains.sweep.labels(chain.seating))
    assert posterior_p_value(exact, draws) > FALSE_ALARM
    plain = exact_posterior(block._replace(ties=make_ties(Z, width=0.01)), prior)
    assert posterior_p_value(plain, draws) < FALSE_ALARM  # exact values have another posterior


def test_ties_do_not_depend_on_the_order_of_rows_or_on_how_copies_are_given(rng):
    X = np.round(rng.normal(size=(200, 2)), 1)
    encode = lambda values: values  # noqa: E731
    ties = find_ties(X, np.ones(200), encode)
    order = rng.permutation(200)
    again = find_ties(X[order], np.ones(200), encode)
    np.testing.assert_array_equal(ties.low[order], again.low)
    weights = rng.integers(0, 3, 200).astype(float)
    rows = np.repeat(np.arange(200), weights.astype(int))
    copies = find_ties(X[rows], np.ones(len(rows)), encode)
    weighted = find_ties(X, weights, encode)
    np.testing.assert_array_equal(weighted.high[rows], copies.high)


def test_fine_values_are_exact(rng):
    assert find_ties(rng.normal(size=(300, 2)), np.ones(300), lambda v: v) is None
    fine = np.round(rng.normal(size=(300, 2)), 3)
    assert find_ties(np.repeat(fine, 2, axis=0), np.ones(600), lambda v: v) is not None
    assert find_ties(np.round(rng.normal(size=(30_000, 1)), 3), np.ones(30_000), lambda v: v) is None


def test_rows_and_ties_are_taken_together(rng):
    Z = rng.normal(size=(6, 2))
    block = Block(GaussianFull.default(2), Z, ("a", "b"), ties=make_ties(Z), log_rest=np.arange(6.0))
    some = take_block(block, [4, 1, 1])
    np.testing.assert_array_equal(some.ties.low, block.ties.low[[4, 1, 1]])
    np.testing.assert_array_equal(some.log_rest, [4.0, 1.0, 1.0])
    assert tied_values.has_ties([some])


def test_a_column_of_few_values_opens_no_clusters(rng):
    """Rounded to half a deviation: rows that share a value exactly are no group."""
    z = np.repeat([0, 1], 150)
    X = np.column_stack([np.round(2 * rng.normal(4.0 * z)) / 2, np.round(2 * rng.normal(4.0 * z)) / 2])
    model = Mixture(random_state=0).fit(X)
    assert "ties" in model.fit_report_
    assert model.n_clusters_ == 2
    assert adjusted_rand(z, model.labels_) > 0.85
