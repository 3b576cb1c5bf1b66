import numpy as np
import pytest

from partita.ensembles import (
    add_label_noise,
    agreement_with,
    describe,
    medoid_member,
    noisy_copies,
    pairwise_agreement,
    select_members,
)
from partita.metrics import adjusted_rand, normalized_mutual_info

SCORES = {"ari": adjusted_rand, "nmi": normalized_mutual_info}


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("holes", [0.0, 0.4])
def test_agreement_is_that_of_each_pair_where_both_have_seen(score, holes):
    rng = np.random.default_rng(5)
    Y = rng.integers(rng.integers(1, 7, size=9), size=(50, 9))
    Y[:, 4] = Y[:, 3]
    Y[:, 5] = np.arange(50)
    Y[:, 6] = np.arange(50)[::-1]
    Y = np.where(rng.random(Y.shape) < holes, -1, Y)
    found = pairwise_agreement(Y, score)
    for a in range(9):
        for b in range(9):
            both = (Y[:, a] >= 0) & (Y[:, b] >= 0)
            assert found[a, b] == pytest.approx(SCORES[score](Y[both, a], Y[both, b]), abs=1e-12)


@pytest.mark.parametrize("score", SCORES)
def test_agreement_with_one_clustering_is_a_row_of_the_pairs(rng, score):
    Y = np.where(rng.random((50, 6)) < 0.3, -1, rng.integers(4, size=(50, 6)))
    labels = np.where(rng.random(50) < 0.3, -1, rng.integers(4, size=50))
    expected = pairwise_agreement(np.column_stack([labels, Y]), score)[0, 1:]
    np.testing.assert_allclose(agreement_with(labels, Y, score), expected, rtol=1e-12)
    with pytest.raises(ValueError, match="choose 'ari' or 'nmi'"):
        agreement_with(labels, Y, "rand")


def test_members_that_share_no_object_cannot_be_compared():
    Y = np.array([[0, -1, 0], [1, -1, 1], [-1, 0, 0], [-1, 1, 1]])
    assert np.isnan(pairwise_agreement(Y)[0, 1]) and np.isnan(agreement_with(Y[:, 0], Y)[1])
    found = describe(Y)
    assert found.quality.tolist() == [1.0, 1.0, 1.0] and found.medoid == 0
    assert found.missing.tolist() == [0.5, 0.5, 0.0]


def test_one_member():
    found = describe(np.array([[0], [1]]))
    assert found.quality.tolist() == [1.0] and found.diversity == 0.0 and found.medoid == 0


def test_a_member_without_labels_is_refused():
    with pytest.raises(ValueError, match="remove it"):
        pairwise_agreement(np.array([[0, -1], [1, -1]]))


def test_the_medoid_is_the_member_nearest_to_the_others():
    truth = np.repeat([0, 1, 2], 40)
    Y = np.column_stack([noisy_copies(truth, 6, 0.3, random_state=0), truth])
    assert medoid_member(Y) == 6
    found = describe(Y)
    assert found.diversity == pytest.approx(1 - (found.agreement.sum() - 7) / 42)


def test_selection():
    truth = np.repeat([0, 1, 2], 40)
    noise = np.random.default_rng(0).integers(3, size=(120, 3))
    Y = np.column_stack([noisy_copies(truth, 5, 0.1, random_state=0), noise])
    assert set(select_members(Y, 5, diversity=0.0)) == set(range(5))  # the members that say the same
    assert set(select_members(Y, 4, diversity=1.0)) >= {5, 6, 7}  # the members that differ
    assert select_members(Y, 8).tolist() == list(range(8))
    for n_members, diversity, words in [
        (0, 0.5, "from 1 to 8"),
        (9, 0.5, "from 1 to 8"),
        (2, 1.5, "between 0 and 1"),
    ]:
        with pytest.raises(ValueError, match=words):
            select_members(Y, n_members, diversity=diversity)


def test_no_matrix_of_pairs_of_objects():
    """At 200,000 objects it would take 320 GB."""
    Y = np.random.default_rng(0).integers(5, size=(200_000, 3))
    np.testing.assert_allclose(pairwise_agreement(Y), np.eye(3), atol=1e-3)


@pytest.mark.parametrize("share", [0.05, 0.2, 1.0])
def test_label_noise_changes_as_many_labels_as_asked(share):
    labels = np.tile([0, 1, 2, 5], 25)
    Y = noisy_copies(labels, 6, share, random_state=0)
    assert ((labels[:, None] != Y).sum(axis=0) == round(100 * share)).all()
    assert set(Y.ravel()) == {0, 1, 2, 5}
    assert (Y[:, 0] != Y[:, 1]).any()


def test_noise_is_even_over_the_other_labels():
    """Chi-square with two degrees of freedom; a false alarm in a thousand (13.8)."""
    noisy = add_label_noise(
        np.zeros((30_000, 1), int) + np.arange(4)[np.arange(30_000) % 4][:, None], 0.5, random_state=1
    )
    moved = noisy[np.arange(30_000) % 4 == 0, 0]
    counts = np.bincount(moved, minlength=4)[1:]
    assert ((counts - counts.mean()) ** 2 / counts.mean()).sum() < 13.8


def test_noise_leaves_holes_and_single_labels_alone():
    Y = np.array([[0, 0], [-1, 0], [1, 0], [1, -1]])
    noisy = add_label_noise(Y, 1.0, random_state=0)
    assert noisy.tolist() == [[1, 0], [-1, 0], [0, 0], [0, -1]]
    assert Y[0, 0] == 0  # the input is not changed
    with pytest.raises(ValueError, match="between 0 and 1"):
        add_label_noise(Y, -0.1)
    with pytest.raises(ValueError, match="at least one member"):
        noisy_copies([0, 1], 0)
