"""When chains and searches over views have run long enough."""

import numpy as np
import pytest

from partita import CrossCat, OverlappingViews
from partita.datasets import make_planted_views
from partita.views.overlapping.chain import searches_agree
from partita.views.overlapping.state import add_view, empty_state
from partita.views.settling import CHECKS, outline, views_agree, views_settling

MEMBERSHIP = np.repeat(np.eye(2, dtype=bool), 3, axis=0)  # two views of three columns


def labels_of(rng, n_rows=60):
    return np.column_stack([rng.permutation(n_rows) % 3, rng.permutation(n_rows) % 2])


def test_chains_with_the_same_views_agree(rng):
    """Also if views and clusters are numbered differently."""
    labels = labels_of(rng)
    one = outline(MEMBERSHIP, labels)
    other = outline(MEMBERSHIP[:, ::-1], (labels.max(axis=0) - labels)[:, ::-1])
    assert views_agree([[one], [other]])
    assert views_agree([[one, one], [other], [other], [one]])
    assert not views_agree([[one], []])


@pytest.mark.parametrize("what", ["number", "columns", "rows"])
def test_chains_with_other_views_disagree(what, rng):
    labels = labels_of(rng)
    one = outline(MEMBERSHIP, labels)
    other = {
        "number": outline(np.ones((6, 1), bool), labels[:, :1]),
        "columns": outline(MEMBERSHIP[rng.permutation([0, 3, 1, 4, 2, 5])], labels),
        "rows": outline(MEMBERSHIP, np.column_stack([labels[:, 0], rng.permutation(labels[:, 1])])),
    }[what]
    if what == "columns":
        other = outline(MEMBERSHIP[[0, 3, 1, 4, 2, 5]], labels)
    assert not views_agree([[one], [other]])
    assert not views_agree([[one, one], [one, other]])


def test_searches(rng):
    labels, empty = labels_of(rng).T, empty_state(6, None)
    one = add_view(add_view(empty, labels[0], [0, 1, 2]), labels[1], [3, 4, 5])
    turned = add_view(add_view(empty, labels[1], [3, 4, 5]), labels[0], [0, 1, 2])
    assert searches_agree(one, turned)
    assert searches_agree(empty, empty)
    assert not searches_agree(one, empty)
    assert not searches_agree(one, add_view(empty, labels[0], [0, 1, 2]))


def test_a_given_schedule_is_kept():
    assert views_settling(1, None, None, outline) is None
    assert views_settling(2, 5, 5, outline) is None
    assert views_settling(2, 5, None, outline, max_iter=20).checks == [
        check for check in CHECKS if check <= 20
    ]


@pytest.mark.parametrize("estimator", [CrossCat, OverlappingViews])
def test_length_of_chains(estimator, global_random_seed):
    """Chains with well separated views agree at the first check; a given schedule is followed."""
    planted = make_planted_views(1, 80, 8, 2, separation=6.0, random_state=global_random_seed)
    few = {"random_state": global_random_seed, "nuisance": 0, "n_chains": 2}
    model = estimator(**few).fit(planted.X)
    assert model.n_views_ in (2, 3)  # the two planted ones; chains may add a view of one cluster more
    if "settled" in model.fit_report_:  # a chain may hold two views as one for some time
        assert len(model.draws_) >= 24
        assert model.n_iter_ <= CHECKS[-1] + 24
    else:
        assert "not_settled" in model.fit_report_
    given = estimator(n_draws=3, burn_in=2, **few).fit(planted.X)
    assert (given.n_iter_, len(given.draws_)) == (5, 6)
    assert "settled" not in given.fit_report_
