"""Planted bugs in samplers: each is caught by a check of this suite that the right code passes.

A check gives the p-value of a chain on four or five objects under the exact posterior, or of Geweke's test where
hyper-parameters move. Chains are interpreted, so that one Python function can be broken at a time.
"""

import functools
import math

import numpy as np
import pytest

from partita.engines.gibbs import chain as chains
from partita.engines.gibbs import split_merge as sm
from partita.engines.gibbs import sweep as gibbs
from partita.families import Block, Categorical, GaussianDiagonal, GaussianFull, contract
from partita.labels import canonical
from partita.partitions import DirichletProcess, FiniteDirichlet, StickBreaking
from partita.testing import (
    FALSE_ALARM,
    draw_joint,
    enumerate_labels,
    enumerate_partitions,
    geweke,
    posterior_p_value,
    redraw_data,
)

N_DRAWS = 3500
SPREAD = 0.4  # of likelihood hyper-parameters

GAUSSIAN = Block(GaussianDiagonal.default(1), np.array([[-1.1], [-0.7], [0.8], [1.0]]), ())
ONE_UNSEEN = GAUSSIAN._replace(data=np.append(GAUSSIAN.data, [[np.nan]], axis=0))
TIGHT_PAIRS = GAUSSIAN._replace(data=np.array([[-3.0], [-3.1], [3.0], [3.1], [0.0]]))
VECTORS = Block(GaussianFull.default(2), np.array([[-1.1, 0.4], [-0.7, -0.5], [0.8, 0.3], [1.0, 0.9]]), ())
LEVELS = Block(Categorical.default(np.array([3])), np.array([[0], [0], [1], [-1]], np.int8), ())


# ---- the checks ----------------------------------------------------------------------------------------------


def follow(block, prior, move, broken=None):
    """P-value of a chain that repeats ``move(seating, rng)``, its family broken or not."""
    N, fixed = len(block.data), prior.n_components if isinstance(prior, StickBreaking) else None
    exact = enumerate_labels([block], prior) if fixed else enumerate_partitions([block], prior)
    if broken is not None:
        block = block._replace(family=broken(*block.family))
    seating = gibbs.seat([block], np.zeros(N, int), n_components=fixed)
    rng, draws = np.random.default_rng(0), np.empty((N_DRAWS, N), np.int64)
    for t in range(N_DRAWS):
        seating = move(seating, rng)
        z = gibbs.labels(seating)
        draws[t] = z if fixed else canonical(z)
    return posterior_p_value(exact, draws)


def sweep(prior, seating, rng, times=4):
    """Some sweeps in one call: what a sweep keeps from object to object has time to go stale."""
    rows = np.tile(np.arange(len(seating.z)), times)
    return gibbs.reseat(seating, prior, rows, rng.random(len(rows)))


def by_gibbs(block, prior, broken=None, times=4):
    return follow(block, prior, functools.partial(sweep, prior, times=times), broken)


def by_split_merge(block, n_scans, broken=None):
    prior = DirichletProcess(0.4)

    def move(seating, rng):
        for _ in range(3):
            seating, _ = sm.split_merge(seating, prior, rng, n_scans)
        return seating

    return follow(block, prior, move, broken)


def by_swaps():
    prior = StickBreaking(0.5, 3)

    def move(seating, rng):
        seating = sweep(prior, seating, rng, 1)
        for _ in range(3):
            chains.swap_labels(seating, prior, rng)
        return seating

    return follow(GAUSSIAN, prior, move)


def by_geweke(schedule, **hyper):
    """P-value of Geweke's test of one iteration of a chain."""
    family = LEVELS.family

    def step(joint, rng):
        chain = chains.start(joint.blocks, joint.prior, joint.z, int(rng.integers(2**62)), np.float64)
        chain = chains.step(chain._replace(reference=(family,)), schedule)
        learned = chain.seating.blocks[0].family
        return redraw_data(
            joint._replace(prior=chain.prior, family=learned, z=gibbs.labels(chain.seating)), rng
        )

    p = geweke(
        lambda rng: draw_joint(DirichletProcess(1.0), family, 4, rng, **hyper),
        step,
        lambda joint: joint.traits(),
        np.random.default_rng(0),
        1500,
    )
    return min(1.0, len(p) * min(p.values()))


NO_MOVES = chains.Schedule(n_moves=0, learn_concentration=False, learn_likelihood=False)
CHECKS = {
    "gibbs": lambda: by_gibbs(ONE_UNSEEN, DirichletProcess(2.0)),
    "gibbs on tight pairs": lambda: by_gibbs(TIGHT_PAIRS, DirichletProcess(1.0)),
    "gibbs, seats that depend on K": lambda: by_gibbs(GAUSSIAN, FiniteDirichlet(3.0, 3)),
    "gibbs on vectors": lambda broken=None: by_gibbs(VECTORS, DirichletProcess(1.0), broken, 1),
    "split-merge, sequential": lambda: by_split_merge(GAUSSIAN, 0),
    "split-merge, restricted": lambda: by_split_merge(GAUSSIAN, 1),
    "split-merge of levels": lambda *broken: by_split_merge(LEVELS, 0, *broken),
    "stick-breaking with swaps": by_swaps,
    "concentration": lambda: by_geweke(NO_MOVES._replace(learn_concentration=True), learn_concentration=True),
    "likelihood": lambda: by_geweke(NO_MOVES._replace(learn_likelihood=True), spread=SPREAD),
}


@pytest.fixture(autouse=True)
def small_spread(monkeypatch, uncompiled):
    monkeypatch.setattr(chains, "HYPER_SPREAD", SPREAD)


@pytest.mark.parametrize("check", CHECKS)
def test_right_code_passes(check):
    assert CHECKS[check]() > FALSE_ALARM


# ---- functions broken one at a time ----------------------------------------------------------------------------


def stale_count(right):
    """The size of the cluster that an object leaves is not decreased."""

    def take(blocks, prior, z, n, slot_of, name_of, K, mass, i, old, new, limit):
        right(blocks, prior, z, n, slot_of, name_of, K, mass, i, old, new, limit)
        if old not in (-1, new):
            n[old] += 1.0
            mass[old] = gibbs.log_seat(prior, n[old])

    return take


def stale_seat(right):
    """Its size is, but the log weight kept for its seat is not."""

    def take(blocks, prior, z, n, slot_of, name_of, K, mass, i, old, new, limit):
        before = mass[old]
        right(blocks, prior, z, n, slot_of, name_of, K, mass, i, old, new, limit)
        if old >= 0:
            mass[old] = before

    return take


def stale_new_seat(right):
    """The weight of a new cluster is that of before the last one was opened."""

    def take(blocks, prior, z, n, slot_of, name_of, K, mass, i, old, new, limit):
        before = mass[K[0]]
        right(blocks, prior, z, n, slot_of, name_of, K, mass, i, old, new, limit)
        mass[K[0]] = before

    return take


def off_by_one_seat(right):
    """The object that is to be seated counts among the members of its own cluster."""

    def weigh(blocks, prior, n, K, mass, i, k, lp, acc):
        right(blocks, prior, n, K, mass, i, k, lp, acc)
        if k >= 0:
            lp[k] += gibbs.log_seat(prior, n[k]) - gibbs.log_seat(prior, n[k] - 1.0)

    return weigh


def stale_cache(right):
    """The predictive of the cluster that an object leaves is not touched."""

    def add_row(blocks, i, k, w):
        before = [block.C.copy() for block in blocks]
        right(blocks, i, k, w)
        if w < 0:
            for block, C in zip(blocks, before, strict=True):
                block.C[:] = C

    return add_row


def dropped_hastings_term(right):
    """The probability of building just this split is left out."""

    def build(*args):
        right(*args)
        return 0.0

    return build


def swapped_split_direction(right):
    """For the reverse of a merge, every member's side is exchanged."""

    def allocate(blocks, prior, members, sides, forced, u, m):
        if np.any(forced < 0) or len(forced) == 0:
            return right(blocks, prior, members, sides, forced, u, m)
        kept = [(block.S.copy(), block.C.copy()) for block in blocks], sides.copy(), m.copy()
        log_q = right(blocks, prior, members, sides, 1 - forced, u, m)
        for block, (S, C) in zip(blocks, kept[0], strict=True):
            block.S[:], block.C[:] = S, C
        sides[:], m[:] = kept[1:]
        right(blocks, prior, members, sides, forced, u, m)
        return log_q

    return allocate


def anchors_as_if_drawn_evenly(right):
    """The probability of choosing just these anchors is left out."""
    return lambda *args: 0.0


def split_without_its_prior(right):
    return lambda prior, n, K: 0.0


def swap_without_its_prior(right):
    return lambda prior, n: 0.0


def concentration_ignores_the_number_of_objects(right):
    """As if each cluster had one member."""
    return lambda prior, n, rng: right(prior, np.ones(np.count_nonzero(n)), rng)


def variance_for_standard_deviation(right):
    return right**2


BROKEN_FUNCTIONS = [  # (module, what is broken, how, the check that catches it)
    (gibbs, "take", stale_count, "gibbs"),
    (gibbs, "take", stale_seat, "gibbs"),
    (gibbs, "take", stale_new_seat, "gibbs, seats that depend on K"),
    (gibbs, "weigh", off_by_one_seat, "gibbs"),
    (gibbs, "add_row", stale_cache, "gibbs on tight pairs"),
    (sm, "allocate", dropped_hastings_term, "split-merge, sequential"),
    (sm, "allocate", dropped_hastings_term, "split-merge, restricted"),
    (sm, "allocate", swapped_split_direction, "split-merge, sequential"),
    (sm, "log_anchor_ratio", anchors_as_if_drawn_evenly, "split-merge, sequential"),
    (sm, "log_eppf", split_without_its_prior, "split-merge, sequential"),
    (chains, "log_labeled", swap_without_its_prior, "stick-breaking with swaps"),
    (chains, "sample_hyper", concentration_ignores_the_number_of_objects, "concentration"),
    (chains, "HYPER_SPREAD", variance_for_standard_deviation, "likelihood"),
]


@pytest.mark.parametrize(
    ("module", "name", "bug", "check"),
    BROKEN_FUNCTIONS,
    ids=[f"{name}-{bug.__name__}-{check}" for _, name, bug, check in BROKEN_FUNCTIONS],
)
def test_broken_function_is_caught(module, name, bug, check, monkeypatch):
    monkeypatch.setattr(module, name, bug(getattr(module, name)))
    assert CHECKS[check]() < FALSE_ALARM


# ---- families broken one function at a time: a subclass inherits all others ------------------------------------------


def wrong_dirichlet_constant(right):
    return lambda lik, d, s: right(lik, d, s) - math.lgamma(lik.alpha[d])


def missing_half_log_determinant(right):
    """The cache holds the packed Cholesky factor behind four numbers and the mean."""

    def score(lik, d, c, x, K, out):
        right(lik, d, c, x, K, out)
        p = len(x)
        diagonal = [4 + p + a * (a + 1) // 2 + a for a in range(p)]
        out[:K] += np.log(c[diagonal, :K]).sum(axis=0)

    return score


BROKEN_FAMILIES = [
    (Categorical, "log_marginal", wrong_dirichlet_constant, "split-merge of levels"),
    (GaussianFull, "score", missing_half_log_determinant, "gibbs on vectors"),
]


@pytest.mark.parametrize(
    ("base", "name", "bug", "check"), BROKEN_FAMILIES, ids=[bug.__name__ for _, _, bug, _ in BROKEN_FAMILIES]
)
def test_broken_family_is_caught(base, name, bug, check):
    broken, function = type(f"Broken{base.__name__}", (base,), {}), getattr(contract, name)
    function.register(broken)(bug(function.dispatch(base)))
    try:
        assert CHECKS[check](broken) < FALSE_ALARM
    finally:
        function.table.pop(broken)
