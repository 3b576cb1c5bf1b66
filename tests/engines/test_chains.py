"""Chains: seeds, traces, label swaps and the walk over hyper-parameters."""

import math

import numpy as np
import pytest

from partita.dispatch import interpreted
from partita.engines.gibbs import chain as chains
from partita.engines.gibbs import sweep
from partita.families import FAMILIES
from partita.families.contract import breadth, constrained, held, unconstrained
from partita.partitions import DirichletProcess, StickBreaking, log_labeled

FIXED = chains.Schedule(n_draws=3, burn_in=1, n_moves=1, learn_concentration=False, learn_likelihood=False)


def table(N=12):
    rng = np.random.default_rng(0)
    X = np.where(np.arange(N)[:, None] < N // 2, -2.0, 2.0) + rng.normal(size=(N, 2))
    return [FAMILIES["gaussian"].block(X, list("ab"), np.ones(N))]


def test_a_chain_depends_on_its_seed_alone():
    with interpreted():
        runs = [
            chains.run_mixture_chain(
                table(), DirichletProcess(1.0), np.zeros(12, int), chains.Schedule(3, 1), seed=seed
            )[0]
            for seed in (5, 5, 6)
        ]
    for field, again in zip(runs[0], runs[1], strict=True):
        np.testing.assert_array_equal(field, again)
    assert not np.array_equal(runs[0].concentration, runs[2].concentration)


def test_a_trace_is_compact_and_says_what_the_chain_saw():
    with interpreted():
        run = chains.run_mixture_chain(
            table(), DirichletProcess(1.0), np.zeros(12, int), FIXED, seed=1, number=2
        )
        trace, chain = run.trace, run.chain
        assert trace.log_joint[-1] == pytest.approx(chains.log_joint(chain))
    assert trace.labels.shape == (3, 12) and trace.labels.dtype == np.int8
    assert [len(np.unique(z)) for z in trace.labels] == trace.n_clusters.tolist()
    assert trace.chain.tolist() == [2, 2, 2]


def test_label_swaps_follow_the_prior_of_their_order(global_random_seed):
    """Two labels of sizes 5 and 1: the share of time in each order is that of the prior."""
    prior = StickBreaking(0.5, 2)
    z = np.array([0, 0, 0, 0, 0, 1])
    with interpreted():
        seating = sweep.seat(table(6), z, n_components=2)
        rng = np.random.default_rng(global_random_seed)
        large_first = []
        for _ in range(2000):
            chains.swap_labels(seating, prior, rng)
            large_first.append(seating.n[0] == 5)
            assert np.array_equal(np.bincount(seating.z, minlength=2), seating.n)
        fresh = sweep.seat(table(6), seating.z, n_components=2)
    np.testing.assert_allclose(seating.blocks[0].S, fresh.blocks[0].S, atol=1e-12)
    odds = math.exp(log_labeled(prior, np.array([1.0, 5.0])) - log_labeled(prior, np.array([5.0, 1.0])))
    batches = np.array(large_first, float).reshape(40, 50).mean(axis=1)
    assert abs(batches.mean() - 1 / (1 + odds)) < 5 * batches.std(ddof=1) / math.sqrt(40) + 1e-3


@pytest.mark.parametrize("name", ["gaussian", "categorical", "gaussian_full"])
def test_without_data_hyper_parameters_follow_their_hyperprior(name, global_random_seed):
    with interpreted():
        if name == "categorical":
            block = FAMILIES[name].block(
                np.full((4, 2), -1, np.int8), list("ab"), np.ones(4), n_levels=[3, 3]
            )
        else:
            block = FAMILIES[name].block(np.full((4, 2), np.nan), list("ab"), np.ones(4))
        seating, rng = sweep.seat([block], np.zeros(4, int)), np.random.default_rng(global_random_seed)
        draws = []
        for _ in range(1600):
            seating = chains.learn_likelihood(seating, (block.family,), rng)
            free, first = unconstrained(seating.blocks[0].family), unconstrained(block.family)
            for f in held(block.family):
                np.testing.assert_array_equal(free.pop(f), first[f])
            draws.append(
                np.concatenate([(free[f] - first[f]).ravel() / breadth(block.family, f) for f in free])
            )
    scaled = np.array(draws) / chains.HYPER_SPREAD
    batches = scaled.reshape(16, 100, -1)
    for moment, expected in ((batches, 0.0), (batches**2, 1.0)):
        means = moment.mean(axis=1)
        error = means.std(axis=0, ddof=1) / math.sqrt(16)
        assert np.all(np.abs(means.mean(axis=0) - expected) < 7 * error)


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_the_free_scale_is_a_round_trip(name, global_random_seed):
    for lik, _ in FAMILIES[name].examples(np.random.default_rng(global_random_seed)):
        for field, value in unconstrained(lik).items():
            again = unconstrained(constrained(lik, field, value + 0.3))
            np.testing.assert_allclose(again[field], value + 0.3)
            for other, kept in unconstrained(lik).items():
                if other != field:
                    np.testing.assert_allclose(again[other], kept)
