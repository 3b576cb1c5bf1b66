import numpy as np
import pytest

from partita.datasets import make_planted_ensemble


def test_groups_are_equal_and_members_name_them_differently():
    planted = make_planted_ensemble(103, 5, 20, redrawn=0.0, random_state=0)
    assert set(np.bincount(planted.labels)) == {20, 21}
    for m in range(20):
        np.testing.assert_array_equal(planted.X[:, m], planted.parameters["names"][planted.labels, m])
    assert (planted.parameters["names"] != np.arange(5)[:, None]).any()
    np.testing.assert_array_equal(planted.oracle, planted.labels)


def test_labels_are_redrawn_and_missing_as_often_as_asked():
    """Five standard errors either way."""
    planted = make_planted_ensemble(5000, 4, 20, redrawn=0.2, missing=0.3, random_state=0)
    seen = planted.X >= 0
    assert abs(seen.mean() - 0.7) < 5 * np.sqrt(0.21 / 1e5)
    right = np.take_along_axis(planted.parameters["names"], planted.labels[:, None], axis=0) == planted.X
    assert abs(right[seen].mean() - (0.8 + 0.2 / 4)) < 5 * np.sqrt(0.15 * 0.85 / seen.sum())


def test_pure_noise_says_nothing():
    planted = make_planted_ensemble(400, 3, 30, redrawn=1.0, random_state=0)
    assert abs((planted.oracle == planted.labels).mean() - 1 / 3) < 0.12


@pytest.mark.parametrize("options", [{"redrawn": 1.2}, {"missing": -0.1}, {"n_members": 0}])
def test_options_out_of_range_are_refused(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        make_planted_ensemble(**options)
