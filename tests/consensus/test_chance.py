"""The comparison with shuffled members: few objects are shuffled first, and the decision is that of all objects."""

import numpy as np
import pytest

from partita import Consensus
from partita.consensus.default import pipeline

pytestmark = pytest.mark.filterwarnings("ignore::partita.estimator.DataWarning")


def members(seed, n=400, groups=4, count=12, redrawn=0.6):
    rng = np.random.default_rng(seed)
    z = np.arange(n) % groups
    return np.where(rng.random((n, count)) < redrawn, rng.integers(groups, size=(n, count)), z[:, None])


@pytest.fixture
def shuffled(monkeypatch):
    """The numbers of objects of all shuffles, in order."""
    sizes, share = [], pipeline.chance_share

    def count(*arguments):
        sizes.append(arguments[-1])
        return share(*arguments)

    monkeypatch.setattr(pipeline, "chance_share", count)
    return sizes


def test_weak_agreement_needs_no_shuffle_of_all_objects(shuffled, global_random_seed):
    model = Consensus(random_state=global_random_seed).fit(members(global_random_seed, redrawn=0.4))
    assert model.n_clusters_ > 1 and shuffled == [pipeline.SCREENED] * pipeline.N_SHUFFLES


def test_noise_is_judged_by_all_objects_and_no_longer_than_needed(shuffled, global_random_seed):
    model = Consensus(random_state=global_random_seed).fit(members(global_random_seed, redrawn=1.0))
    assert model.n_clusters_ == 1
    assert shuffled[: pipeline.N_SHUFFLES] == [pipeline.SCREENED] * pipeline.N_SHUFFLES
    assert set(shuffled[pipeline.N_SHUFFLES :]) == {400}
    assert 1 <= len(shuffled) - pipeline.N_SHUFFLES <= pipeline.N_SHUFFLES_OF_FEW


def test_few_objects_are_shuffled_as_they_are(shuffled, global_random_seed):
    Consensus(random_state=global_random_seed).fit(members(global_random_seed, n=2 * pipeline.SCREENED))
    assert shuffled and set(shuffled) == {2 * pipeline.SCREENED}


def test_the_screen_changes_no_answer(monkeypatch, global_random_seed):
    bag = [
        members(100 * global_random_seed + t, redrawn=share) for t, share in enumerate((0.4, 0.7, 0.85, 1.0))
    ]
    found = [Consensus(random_state=t).fit(Y).labels_ for t, Y in enumerate(bag)]
    monkeypatch.setattr(pipeline, "SCREENED", 10**9)
    for t, (Y, labels) in enumerate(zip(bag, found, strict=True)):
        np.testing.assert_array_equal(Consensus(random_state=t).fit(Y).labels_, labels)
