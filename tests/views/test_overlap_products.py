"""Compiled passes of overlapping views against plain formulas: products, scores of sets of views, draws, refits."""

import numpy as np
import pytest

from partita.families import Block, GaussianDiagonal
from partita.views.overlapping.additive import AdditiveScores, Effects, read_reals
from partita.views.overlapping.features import draw_subset, subsets_up_to
from partita.views.overlapping.polish import PolishedColumns, _joined, entropy_of_rows
from partita.views.overlapping.state import add_view, by_views, empty_state
from partita.views.overlapping.table import OverlapHyper, OverlapTable

N, D, V = 40, 7, 4


def random_labels(rng, n_views=V):
    return tuple(np.append([0, 1, 2], rng.integers(3, size=N - 3)) for _ in range(n_views))


@pytest.fixture(params=["complete", "holes", "sizes", "groups"])
def columns(request, rng):
    """Real columns and hyper-parameters: with two patterns of missing cells, or with row factors and sizes.

    "groups": a row factor of all columns, one of some, and missing cells.
    """
    X = rng.normal(size=(N, D))
    effects = Effects(effect=2.0, b=0.4)
    if request.param in ("holes", "groups"):
        X[::5, [1, 4]] = np.nan
    if request.param == "sizes":
        effects = effects._replace(rows=rng.normal(size=(N, 2)), gain=np.array([0.4, -0.2]), loading=0.7)
    if request.param == "groups":
        parts = np.array([[True] * D, [True] * 3 + [False] * (D - 3)])
        effects = effects._replace(rows=rng.normal(size=(N, 2)), loading=0.7, parts=parts)
    return read_reals(X), effects


def design(Z, effects):
    """One-hot labels of all views, intercept and row factors."""
    size = np.ones((N, 1)) if effects.sizes is None else effects.sizes[:, None]
    rows = np.zeros((N, 0)) if effects.rows is None else effects.rows
    return np.hstack([*(np.eye(3)[z] * size for z in Z), size, rows])


def direct_score(columns, effects, Z, d):
    """Log marginal likelihood of a column up to a constant of the column: a multivariate t density."""
    seen = ~np.isnan(columns.X[:, d])
    W, x = design(Z, effects)[seen], columns.X[seen, d]
    variance = np.repeat([effects.effect, effects.center, effects.loading], [3 * len(Z), 1, effects.rank])
    if effects.parts is not None:
        variance[-effects.rank :] *= effects.parts[:, d]
    covariance = np.eye(len(x)) + (W * variance) @ W.T
    squares = x @ np.linalg.solve(covariance, x)
    return -0.5 * np.linalg.slogdet(covariance)[1] - (effects.a + 0.5 * len(x)) * np.log(
        effects.b + 0.5 * squares
    )


def test_scores_of_sets_of_views(columns, rng):
    """In the order of lists, one by one, for some columns, and all columns each under its own set."""
    data, effects = columns
    Z = random_labels(rng)
    scores, subsets = data.scores(Z, effects), subsets_up_to(V, 3)
    found = scores.of(subsets)
    for d in range(D):
        direct = np.array([direct_score(data, effects, [Z[v] for v in views], d) for views in subsets])
        assert np.allclose(found[:, d] - found[0, d], direct - direct[0])
    shuffled = [subsets[i] for i in rng.permutation(len(subsets))]
    assert np.allclose(scores.of(shuffled), [scores(views) for views in shuffled])
    assert np.allclose(scores.of_columns((1, 3), [2, 4]), scores((1, 3))[[2, 4]])
    Y = rng.random((D, V)) < 0.4
    own = sum(scores(tuple(np.flatnonzero(y)))[d] for d, y in enumerate(Y))
    assert scores.total(by_views(Y)) == pytest.approx(own)


def test_products_of_other_labels_are_extended(columns, rng):
    """Views that are added, dropped, changed and put in another order; the numbers are those without anything kept."""
    data, effects = columns
    Z = random_labels(rng)
    other = random_labels(rng, 1)
    for labels in (Z, Z[:2], (*Z[1:], *other), (Z[3], other[0], Z[0]), (), Z[::-1], Z):
        kept = AdditiveScores(data, labels, effects)
        W, seen = design(labels, effects), ~np.isnan(data.X)
        assert np.allclose(kept.T, W.T @ data.filled)
        for (members, _), G in zip(data.patterns, kept.G, strict=True):
            rows = W[seen[:, members[0]]]
            assert np.allclose(G, rows.T @ rows)
    changed = effects._replace(effect=3.0, rows=None if effects.rows is None else effects.rows * 2.0)
    assert np.allclose(AdditiveScores(data, Z, changed).T, design(Z, changed).T @ data.filled)


def test_residuals_of_parameters(columns, rng):
    data, effects = columns
    state = empty_state(D, OverlapHyper(effects, ()))
    for z in random_labels(rng):
        state = add_view(state, z, np.flatnonzero(rng.random(D) < 0.5))
    found = data.parameters(state, effects, rng)
    coefficients = np.vstack([*found.effects, found.intercept, found.loadings])
    fit = design(state.Z, effects) @ coefficients
    assert np.allclose(found.residual, data.X - fit, equal_nan=True)
    assert all((effect[:, ~state.Y[:, v]] == 0).all() for v, effect in enumerate(found.effects))


def test_drawn_sets_have_their_probabilities(rng):
    """The uniform number cuts the cumulative distribution; in views that are not shared nothing changes."""
    subsets = subsets_up_to(3, 2)
    members = np.array([[v in views for v in range(3)] for views in subsets])
    values, odds, shared = rng.normal(size=len(subsets)), rng.normal(size=3), np.array([True, False, True])
    y = np.array([False, True, False])
    log_p = np.where(members[:, 1], values + members[:, [0, 2]] @ odds[[0, 2]], -np.inf)
    p = np.exp(log_p - np.logaddexp.reduce(log_p))
    grid = (np.arange(20_000) + 0.5) / 20_000
    drawn = [draw_subset(members, values, y, shared, odds, u) for u in grid]
    assert np.allclose(np.bincount(drawn, minlength=len(p)) / len(grid), p, atol=2e-4)


@pytest.mark.parametrize("columns", ["holes", "sizes"], indirect=True)
def test_refit_is_taking_out_and_putting_back(columns, rng):
    data, effects = columns
    state = empty_state(D, OverlapHyper(effects, ()))
    for z in random_labels(rng, 2):
        state = add_view(state, z, np.flatnonzero(rng.random(D) < 0.8))
    table = OverlapTable(data, None)
    one, other = PolishedColumns(table, state), PolishedColumns(table, state)
    for v in (0, 1, 0):
        z, L = state.Z[v], np.zeros((N, 3))
        raw, inverse = one.take_out(v, np.eye(3)[z])
        expected = one.score(v, raw, inverse)
        one.put_back(v, np.eye(3)[z], raw, inverse)
        other.refit(v, z, L)
        assert np.allclose(L, expected)
        for name in ("residual", "spread"):
            assert np.allclose(getattr(one, name), getattr(other, name))
        assert np.allclose(one.effects[v], other.effects[v])
        assert np.allclose(one.factors[v], other.factors[v])
    p = rng.dirichlet(np.ones(4), size=6)
    assert entropy_of_rows(np.log(p) + 3.0) == pytest.approx(-(p * np.log(p)).sum())


def test_uncertain_clusters_are_not_joined(global_random_seed):
    """Clusters that overlap, in two columns; a cluster that was cut in two at random is joined again."""
    from partita.partitions import DirichletProcess

    rng = np.random.default_rng(global_random_seed)
    z = np.append([0, 1], rng.integers(2, size=1998))
    X = 0.9 * (2.0 * z[:, None] - 1.0) + rng.normal(size=(2000, 2))
    blocks = [Block(GaussianDiagonal.default(2, k=0.3, a=2.0, b=2.0), X, ())]
    assert _joined(blocks, z, DirichletProcess(1.0)).max() == 1
    cut = np.where((z == 1) & (rng.random(2000) < 0.5), 2, z)
    assert np.array_equal(_joined(blocks, cut, DirichletProcess(1.0)) == z[0], z == z[0])
