"""Starts and time limits of searches over overlapping views."""

import numpy as np
import pytest

from partita import OverlappingViews
from partita.datasets import make_planted_views
from partita.metrics import match_labelings
from partita.views.overlapping import search
from partita.views.overlapping.additive import read_reals
from partita.views.overlapping.first_labels import cluster_rows
from partita.views.overlapping.state import empty_state
from partita.views.overlapping.table import OverlapTable


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


def test_births_are_tried_for_columns_that_depend_on_each_other(monkeypatch, rng):
    """Of 1770 pairs of noise columns 8 exceed the threshold of groups on average, and 0.2 that of births."""
    X = rng.normal(size=(400, 60))
    one = rng.integers(3, size=400)
    X[:, :2] += 4.0 * one[:, None]
    table = OverlapTable(read_reals((X - X.mean(axis=0)) / X.std(axis=0)), None)
    tried = []

    def recorded(A, *rest):
        tried.append(A.shape[1])
        return cluster_rows(A, *rest)

    monkeypatch.setattr(search, "cluster_rows", recorded)
    empty = empty_state(60, table.default_hyper())
    found, n_born = search.OverlapSearch(table, rng, empty, max_per_column=4, max_views=8).births(empty)
    assert 1 <= len(tried) <= 6
    assert n_born >= 1 and found.Y[:2].any(axis=1).all()
