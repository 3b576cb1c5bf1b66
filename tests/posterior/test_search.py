import numpy as np
import pytest

from partita.posterior import loss_matrix
from partita.posterior.draws import gather
from partita.posterior.losses import make_loss
from partita.posterior.search import best_cluster, make_target, new_candidate, objective, shift

CASES = [("vi", 1.0), ("vi", 0.4), ("binder", 1.0), ("binder", 1.5), ("nvi", 1.0), ("nid", 1.0)]


@pytest.fixture
def candidate_of_some(global_random_seed):
    """A candidate in which 14 of 20 objects have a cluster, after some have moved."""

    def make(loss, a):
        rng = np.random.default_rng(global_random_seed)
        draws = rng.integers(4, size=(9, 20))
        found = gather(draws)
        target = make_target(found, make_loss(loss, a), None)
        candidate = new_candidate(target, 8)
        for i in range(14):
            shift(target, candidate, i, rng.integers(5), 1)
        for i in (3, 7, 11):
            shift(target, candidate, i, candidate.z[i], -1)
            shift(target, candidate, i, rng.integers(5), 1)
        return draws, target, candidate

    return make


@pytest.mark.parametrize(("loss", "a"), CASES)
@pytest.mark.parametrize("thing", [2, 17])  # with and without a cluster
def test_costs_of_clusters_are_differences_of_losses(loss, a, thing, candidate_of_some):
    """The costs of the clusters for an object are the expected losses up to a constant, whichever objects have one."""
    draws, target, candidate = candidate_of_some(loss, a)
    out = np.empty(8)
    k_best = best_cluster(target, candidate, thing, out, np.empty(8))
    assigned = np.flatnonzero((candidate.z >= 0) | (np.arange(20) == thing))
    wanted = []
    for k in range(6):
        z = candidate.z.copy()
        z[thing] = k
        wanted.append(loss_matrix(z[assigned][None], draws[:, assigned], loss, a=a).mean())
    n = len(assigned)
    wanted = np.array(wanted) * (n * n if loss == "binder" else n)
    others = candidate.sizes[:6] - (np.arange(6) == candidate.z[thing])
    places = [*np.flatnonzero(others > 0), np.flatnonzero(others == 0)[0]]  # all new clusters are equivalent
    assert len(places) >= 3  # and only the first of them has a cost
    costs = out[places] - out[places[0]]
    assert np.allclose(costs, wanted[places] - wanted[places[0]], atol=1e-4)  # tables are in single precision
    assert wanted[k_best] <= wanted.min() + 1e-4
    least, second = np.sort(wanted[places])[:2]
    assert candidate.margins[thing] == pytest.approx(second - least, abs=1e-4)


@pytest.mark.parametrize(("loss", "a"), CASES)
def test_the_objective_follows_the_moves(loss, a, candidate_of_some):
    draws, target, candidate = candidate_of_some(loss, a)

    def value():
        assigned = np.flatnonzero(candidate.z >= 0)
        n = len(assigned)
        mean = loss_matrix(candidate.z[assigned][None], draws[:, assigned], loss, a=a).mean()
        return mean * (n * n if loss == "binder" else n)

    before, known = objective(target, candidate), value()
    k = candidate.z[5]
    shift(target, candidate, 5, k, -1)
    shift(target, candidate, 5, (k + 1) % 5, 1)
    assert objective(target, candidate) - before == pytest.approx(value() - known, abs=1e-4)


def test_a_shift_and_its_reverse_leave_the_candidate_as_it_was(candidate_of_some):
    _, target, candidate = candidate_of_some("nvi", 1.0)
    before = [np.copy(field) for field in candidate]
    k = candidate.z[4]
    shift(target, candidate, 4, k, -1)
    shift(target, candidate, 4, 6, 1)
    shift(target, candidate, 4, 6, -1)
    shift(target, candidate, 4, k, 1)
    candidate.ints[0] = before[-1][0]  # the columns in use are trimmed by the descent, not here
    for old, new in zip(before, candidate, strict=True):
        assert np.allclose(old, new, atol=1e-9)


def test_groups_weigh_as_many_objects_as_they_hold(global_random_seed):
    """A cost of moving a group is the cost of moving its objects together."""
    rng = np.random.default_rng(global_random_seed)
    groups = np.repeat(np.arange(6), [3, 1, 4, 2, 1, 5])
    draws = rng.permuted(np.tile(np.arange(6) % 3, (7, 1)), axis=1)[:, groups]
    found = gather(draws, collapse=True)
    assert sorted(found.group_weights) == [1, 1, 2, 3, 4, 5]
    target = make_target(found, make_loss("vi"), None)
    candidate = new_candidate(target, 4)
    z = rng.integers(3, size=6)
    for g in range(6):
        shift(target, candidate, g, z[g], 1)
    for g in range(6):
        out = np.empty(4)
        best_cluster(target, candidate, g, out, np.empty(4))
        wanted = np.array(
            [
                loss_matrix(np.where(np.arange(6) == g, k, z)[found.groups][None], draws).mean()
                for k in range(3)
            ]
        )
        assert np.allclose(out[:3] - out[0], 16 * (wanted - wanted[0]), atol=1e-4)
