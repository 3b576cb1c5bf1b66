"""Starts and time limits of searches over overlapping views."""

import numpy as np
import pytest

from partita import OverlappingViews
from partita.datasets import make_planted_views
from partita.metrics import match_labelings


@pytest.mark.parametrize("init", ["screen", "forward", "none"])
def test_every_start_finds_two_planted_views(init, global_random_seed):
    """One start may join or split a cluster: 0.87 in the worst of 200 fresh seeds per start. One view alone is 0.5."""
    planted = make_planted_views(1, 200, 12, 2, separation=4.0, random_state=global_random_seed)
    model = OverlappingViews(
        init=init, n_init=1, n_chains=1, n_draws=3, burn_in=2, random_state=global_random_seed
    ).fit(planted.X)
    assert match_labelings(planted.view_labels, model.view_labels_).average > 0.7


def test_a_time_limit_ends_a_long_search():
    rng = np.random.default_rng(0)
    smooth = np.cumsum(
        rng.normal(size=(300, 60)), axis=1
    )  # like the pixels of a line: searches add many views
    # 200 searches would take most of a minute, so half of a second is never enough for them
    model = OverlappingViews(
        n_init=200, n_chains=1, n_draws=5, burn_in=2, time_limit=1.0, random_state=0
    ).fit(smooth)
    assert "by the time limit: " in model.fit_report_["searches_cut_short"].message
    assert model.n_views_ >= 1
