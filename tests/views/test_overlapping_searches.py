"""Where searches over overlapping views start, and when they end."""

import numpy as np
import pytest

from partita import OverlappingViews
from partita.datasets import make_planted_views
from partita.metrics import match_labelings


@pytest.mark.parametrize("init", ["screen", "forward", "none"])
def test_every_start_finds_two_planted_views(init, global_random_seed):
    planted = make_planted_views(1, 200, 12, 2, separation=2.5, random_state=global_random_seed)
    model = OverlappingViews(
        init=init, n_init=1, n_chains=1, n_draws=3, burn_in=2, random_state=global_random_seed
    ).fit(planted.X)
    assert match_labelings(planted.view_labels, model.view_labels_).average > 0.9


def test_a_search_keeps_to_half_of_the_time_limit(clock, global_random_seed):
    """Each look at the clock takes a second."""
    rng = np.random.default_rng(global_random_seed)
    smooth = np.cumsum(rng.normal(size=(100, 40)), axis=1)  # pixels in a row: no end of views
    clock.tick = 1.0
    model = OverlappingViews(
        n_init=2, n_chains=1, n_draws=5, burn_in=2, time_limit=20.0, random_state=global_random_seed
    ).fit(smooth)
    assert not model.converged_ and model.n_iter_ < 7  # the chain, too, is cut short
    assert "ended early: time limit" in " ".join(note.message for note in model.fit_report_.notes)
    assert model.n_views_ >= 1
