"""VB: its bound never falls, and it is a bound."""

from functools import partial

import numpy as np
import pytest

from partita.dispatch import interpreted
from partita.engines.climb import vb
from partita.engines.climb.seeding import label_statistics
from partita.engines.passes.rows import Parameters, Statistics, n_stats
from partita.engines.run import iterate
from partita.families.contract import partly_seen
from partita.families.rows import scatter_rows
from partita.partitions import FiniteDirichlet, StickBreaking
from partita.testing import collapsed_bound, enumerate_labels, n_rows

PRIORS = [FiniteDirichlet(1.5, 3), StickBreaking(1.2, 3)]


def run_vb(blocks, prior, z, weights=None, max_iter=25, tol=0.0, **learn):
    weights = np.ones(n_rows(blocks[0].data)) if weights is None else weights
    state = vb.init(blocks, prior, label_statistics(blocks, weights, z, prior.n_components))
    step = partial(vb.step, blocks=blocks, weights=weights, **learn)
    return iterate(step, state, max_iter=max_iter, tol=tol, weight=weights.sum(), debug=True)


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("learn", [False, True], ids=["fixed", "learned"])
@pytest.mark.parametrize("prior", PRIORS, ids=["finite", "sticks"])
def test_bound_never_falls(family_name, prior, learn, make_mixture, rng):
    block = make_mixture(family_name)
    weights = rng.uniform(0.2, 3.0, size=40)
    run = run_vb(
        [block], prior, rng.integers(3, size=40), weights, learn_likelihood=learn, learn_concentration=learn
    )
    assert run.worst_fall == 0.0
    assert run.objectives[-1] > run.objectives[0]
    state = run.state
    bound = vb.bound(state.families, state.prior, state.statistics)
    assert state.objective == pytest.approx(bound + vb.log_hyperprior(state.prior, learn))


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("prior", PRIORS, ids=["finite", "sticks"])
def test_bound_of_a_mixed_table_never_falls(prior, make_mixture, rng):
    blocks = [make_mixture(name) for name in ("categorical", "gaussian_full", "poisson", "multinomial")]
    assert any(partly_seen(block.family, block.data) for block in blocks)
    run = run_vb(blocks, prior, rng.integers(3, size=40), max_iter=40)
    assert run.worst_fall == 0.0


@pytest.mark.parametrize("prior", [FiniteDirichlet(1.5, 2), StickBreaking(1.2, 2)], ids=["finite", "sticks"])
def test_bound_is_below_the_exact_evidence(family_name, prior, make_tiny, rng):
    """For every family, hidden coordinates of partly observed vectors integrated numerically."""
    for seed in range(2):
        block = make_tiny(family_name, seed=seed)
        exact = enumerate_labels([block], prior)
        with interpreted():
            bounds = [
                run_vb(
                    [block],
                    prior,
                    rng.integers(2, size=5),
                    max_iter=200,
                    tol=1e-10,
                    learn_likelihood=False,
                    learn_concentration=False,
                ).objective
                for _ in range(3)
            ]
        assert max(bounds) < exact.log_evidence
        assert max(bounds) > exact.log_evidence - 6.0  # and it is of some use


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("prior", [FiniteDirichlet(1.5, 3), StickBreaking(1.2, 3)], ids=["finite", "sticks"])
def test_bounds_are_ordered_for_any_responsibilities(family_name, prior, make_mixture, rng):
    """VB <= collapsed <= evidence at every factorised q."""
    block = make_mixture(family_name, N=5, K=2, holes=0.0)
    exact = enumerate_labels([block], prior)
    for concentration in (0.1, 1.0, 10.0):
        R = rng.dirichlet(np.full(3, concentration), size=5)
        S = np.zeros((n_stats(block.family), 3))
        scatter_rows(block.family, block.data, np.arange(5), S, R, S)
        entropy = -np.sum(R[R > 0] * np.log(R[R > 0]))
        plain = vb.bound((block.family,), prior, Statistics(R.sum(axis=0), (S,), np.nan, entropy, 0.0))
        collapsed = collapsed_bound(exact, R)
        assert plain <= collapsed + 1e-10
        assert collapsed <= exact.log_evidence + 1e-10


@pytest.mark.usefixtures("uncompiled")
def test_certain_labels_make_all_bounds_exact(family_name, make_mixture):
    """With q at one label vector, VB's bound is the log joint of that vector: nothing is lost but the others."""
    block, prior = make_mixture(family_name, N=5, K=2, holes=0.0), FiniteDirichlet(1.5, 2)
    exact = enumerate_labels([block], prior)
    for j in (0, 7, 21):
        R = np.eye(2)[exact.labels[j]]
        S = np.zeros((n_stats(block.family), 2))
        scatter_rows(block.family, block.data, np.arange(5), S, R, S)
        plain = vb.bound((block.family,), prior, Statistics(R.sum(axis=0), (S,), np.nan, 0.0, 0.0))
        assert plain == pytest.approx(exact.log_joint[j])
        assert collapsed_bound(exact, R) == pytest.approx(exact.log_joint[j])


@pytest.mark.usefixtures("uncompiled")
def test_sticks_are_put_in_the_order_of_their_size(make_mixture, rng):
    blocks, prior = [make_mixture("categorical", holes=0.0)], StickBreaking(1.0, 3)
    n = np.array([1.0, 30.0, 9.0])
    S = rng.random((n_stats(blocks[0].family), 3))
    ordered = vb.reordered(Statistics(n, (S,), 0.0, 0.0, 0.0), vb.size_order(prior, n))
    np.testing.assert_array_equal(ordered.n, [30.0, 9.0, 1.0])
    np.testing.assert_array_equal(ordered.S[0], S[:, [1, 2, 0]])
    assert isinstance(vb.parameters(vb.init(blocks, prior, ordered)), Parameters)


def test_the_concentration_never_gets_less_probable(rng):
    for prior in PRIORS:
        for _ in range(10):
            n = rng.gamma(1.0, 10.0, size=3)
            learned = vb.fit_concentration(prior, n)
            before, after = (vb.log_labeled(p, n) + vb.log_hyperprior(p, True) for p in (prior, learned))
            assert after >= before
