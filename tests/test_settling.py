"""Chains that stop when those from opposite starts agree: the rounds of the driver, the rule, and the estimators."""

import warnings
from typing import NamedTuple

import numpy as np
import pytest

from partita import NBCE, DPGaussian, Mixture
from partita.engines.checkpoints import Checkpoint
from partita.engines.gibbs.chain import ChainDraw
from partita.engines.run import Control, Sampler, Settling, run_chains
from partita.execution import make_executor
from partita.fitting.settling import CHECKS, MIN_DRAWS, ONE_CHAIN, halves_agree
from partita.trace import Trace

CHECKED = (4, 6, 10)


class Schedule(NamedTuple):
    n_draws: int | None = None
    burn_in: int | None = None
    thin: int = 1


FREE = Schedule()


def counting(number):
    """A sampler whose state, and draw, is the number of its iterations."""
    return Sampler(
        start=lambda: 0,
        steps=[lambda state: state + 1],
        log_joint=lambda state: 0.0,
        draw=lambda state, value: state,
        n_clusters=lambda state: 1,
    )


def run(schedule=FREE, *, agreed=10**9, n_chains=2, n_jobs=None, min_draws=2, folder=None, **control):
    """Chains whose draws agree at every check from iteration ``agreed`` on; with the checks that were made."""
    seen = []

    def agree(draws):
        seen.append([list(chain) for chain in draws])
        return draws[0][-1] >= agreed

    chains = run_chains(
        counting, n_chains, schedule,
        control=Control(**control), executor=make_executor(n_jobs), settling=Settling(CHECKED, agree, min_draws),
        checkpoint=lambda number: None if folder is None else Checkpoint(folder, number, "counting"),
    )  # fmt: skip
    return chains, seen


def kept(chains):
    return [chain.draws for chain in chains.runs]


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_chains_stop_at_the_first_check_that_agrees(n_jobs):
    chains, seen = run(agreed=6, n_jobs=n_jobs)
    assert seen == [[[3, 4]] * 2, [[4, 5, 6]] * 2]
    assert kept(chains) == [[4, 5, 6]] * 2
    assert (chains.burn_in, chains.agreed_at, chains.reason, chains.n_iter) == (3, 6, "done", 6)


def test_chains_that_agree_go_on_to_their_draws():
    chains, seen = run(agreed=4, min_draws=13)
    assert len(seen) == 1
    assert kept(chains) == [list(range(3, 10))] * 2
    assert chains.agreed_at == 4


def test_chains_that_never_agree_end_after_the_last_check():
    chains, _ = run()
    assert kept(chains) == [[6, 7, 8, 9, 10]] * 2
    assert chains.agreed_at is None and chains.reason == "done"


def test_a_given_number_of_draws_is_kept_to():
    assert kept(run(Schedule(n_draws=5), agreed=4)[0]) == [[3, 4, 5, 6, 7]] * 2
    assert kept(run(Schedule(n_draws=1), agreed=6)[0]) == [[6]] * 2
    assert kept(run(Schedule(n_draws=7))[0]) == [list(range(6, 13))] * 2


def test_a_given_burn_in_is_kept_to():
    chains, seen = run(Schedule(burn_in=7), agreed=13)
    assert seen[0] == [[8, 9, 10, 11]] * 2
    assert kept(chains) == [list(range(8, 14))] * 2
    assert (chains.burn_in, chains.agreed_at) == (7, 13)


def test_thinned_draws():
    chains, seen = run(Schedule(thin=2), agreed=6)
    assert seen == [[[4]] * 2, [[4, 6]] * 2]
    assert kept(chains) == [[4, 6]] * 2
    assert kept(run(Schedule(thin=2, n_draws=4), agreed=4)[0]) == [[4, 6, 8, 10]] * 2


def stop_at(run, iteration):
    return lambda progress: (progress.run, progress.iteration) == (run, iteration)


def test_a_fit_that_stops_before_the_first_check_is_provisional():
    chains, seen = run(callback=stop_at(1, 3))
    assert chains.provisional and not seen
    assert chains.reason == "callback"
    assert len(chains.draws) == 1


def test_a_fit_that_stops_between_checks_has_the_burn_in_of_the_last_one():
    chains, seen = run(callback=stop_at(0, 8))
    assert len(seen) == 2 and not chains.provisional
    assert kept(chains) == [[4, 5, 6, 7, 8], [4, 5, 6]]
    assert (chains.burn_in, chains.reason) == (3, "callback")


def test_a_stop_at_a_check_ends_the_fit():
    chains, _ = run(callback=stop_at(1, 6))
    assert kept(chains) == [[4, 5, 6]] * 2
    assert chains.reason == "callback"


def test_an_interrupt_keeps_what_there_is_if_asked():
    def interrupt(progress):
        if (progress.run, progress.iteration) == (1, 5):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(callback=interrupt)
    chains, _ = run(callback=interrupt, keep_partial=True)
    assert kept(chains) == [[3, 4, 5, 6], [3, 4, 5]]
    assert chains.reason == "interrupted"


@pytest.mark.parametrize("killed", [2, 5, 8])
def test_resume_after_a_kill_repeats_the_checks(tmp_path, killed):
    """Draws, also those that were given up after a check, are read again; at 8 the chains had agreed before."""

    def kill(progress):
        if (progress.run, progress.iteration) == (1, killed):
            raise MemoryError

    with pytest.raises(MemoryError):
        run(agreed=6, min_draws=14, folder=tmp_path, callback=kill)
    chains, seen = run(agreed=6, min_draws=14, folder=tmp_path)
    whole, all_seen = run(agreed=6, min_draws=14)
    assert kept(chains) == kept(whole) == [list(range(4, 11))] * 2
    assert seen == all_seen and chains.agreed_at == whole.agreed_at == 6


# ---- the rule --------------------------------------------------------------------------------------------------


def as_draws(*chains):
    zeros = np.zeros(1)
    return [
        [
            ChainDraw(Trace(np.asarray(z)[None], zeros, np.array([max(z) + 1]), zeros, zeros, zeros), ())
            for z in chain
        ]
        for chain in chains
    ]


ONE, TWO, THREE = [0] * 12, [0] * 6 + [1] * 6, [0] * 6 + [1] * 3 + [2] * 3
OTHER = [0, 1] * 6


def test_equal_halves_agree():
    assert halves_agree(as_draws([TWO] * 3, [TWO] * 3))
    assert halves_agree(as_draws([TWO, THREE, TWO, TWO], [TWO, TWO, THREE, TWO]))


def test_another_partition_with_the_same_number_of_clusters_does_not_agree():
    assert not halves_agree(as_draws([TWO] * 3, [OTHER] * 3))


def test_numbers_of_clusters_must_be_distributed_alike():
    """Both halves vote for two clusters."""
    assert halves_agree(as_draws([TWO] * 10, [TWO] * 8 + [THREE] * 2))
    assert not halves_agree(as_draws([TWO] * 10, [TWO] * 6 + [THREE] * 4))


def test_even_and_odd_chains_are_compared():
    assert not halves_agree(as_draws([TWO] * 3, [OTHER] * 3, [TWO] * 3, [OTHER] * 3))
    assert halves_agree(as_draws([TWO] * 3, [TWO] * 3, [OTHER], [OTHER]))


def test_outliers_are_compared_too():
    out = [-1] * 4 + [0] * 8
    assert halves_agree(as_draws([out] * 3, [out] * 3))
    assert not halves_agree(as_draws([out] * 3, [[0] * 12] * 3))


# ---- the estimators --------------------------------------------------------------------------------------------


def two_groups(n=20):
    rng = np.random.default_rng(0)
    return rng.normal(size=(2 * n, 2)) + np.repeat([[0.0], [9.0]], n, axis=0)


def fit(model, X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X)


def labelings():
    Y = np.repeat(np.repeat([0, 1], 12)[:, None], 6, axis=1)
    return np.where(np.random.default_rng(1).random(Y.shape) < 0.1, 1 - Y, Y)


@pytest.mark.parametrize(
    ("model", "X"),
    [
        (Mixture("gaussian", random_state=0), two_groups()),
        (DPGaussian(random_state=0), two_groups()),
        (Mixture("gaussian", inference="subclusters", random_state=0), two_groups()),
        (NBCE(random_state=0), labelings()),
    ],
)
def test_the_default_stops_when_chains_agree(model, X):
    fit(model, X)
    assert "settled" in model.fit_report_
    assert model.n_clusters_ == 2
    assert model.n_iter_ < CHECKS[-1]
    assert model.burn_in_ < model.n_iter_
    assert len(model.trace_.labels) >= MIN_DRAWS


def test_stopping_chooses_among_the_iterations_of_a_chain_that_does_not_stop():
    """The same draws as with the burn-in and the number of draws that the run has chosen."""
    X = two_groups()
    free = fit(Mixture("gaussian", random_state=0), X)
    n_draws = len(free.trace_.labels) // 4
    fixed = fit(Mixture("gaussian", burn_in=free.burn_in_, n_draws=n_draws, random_state=0), X)
    np.testing.assert_array_equal(free.trace_.labels, fixed.trace_.labels)
    np.testing.assert_array_equal(free.trace_.log_joint, fixed.trace_.log_joint)
    assert "settled" not in fixed.fit_report_ and fixed.burn_in_ == free.burn_in_


def test_what_the_user_gives_is_kept_to():
    X = two_groups(8)
    model = fit(Mixture("gaussian", n_draws=7, random_state=0), X)
    assert np.bincount(model.trace_.chain).tolist() == [7] * 4
    model = fit(Mixture("gaussian", burn_in=3, random_state=0), X)
    assert model.burn_in_ == 3 and len(model.trace_.labels) >= MIN_DRAWS
    model = fit(Mixture("gaussian", n_chains=1, random_state=0), X)
    assert (model.burn_in_, len(model.trace_.labels)) == ONE_CHAIN


def test_the_number_of_jobs_does_not_change_the_draws():
    X = two_groups(8)
    one, two = (fit(Mixture("gaussian", random_state=0, n_jobs=n), X) for n in (1, 2))
    np.testing.assert_array_equal(one.trace_.labels, two.trace_.labels)
