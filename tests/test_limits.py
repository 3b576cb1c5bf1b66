"""Every engine keeps to the limit on the number of clusters, in its answer and in every draw."""

import numpy as np
import pytest

import partita
from partita import Mixture

LIMIT = 2
SHORT = {"n_chains": 2, "n_draws": 6, "burn_in": 4, "random_state": 0}
CENTERS = 9.0 * np.arange(5)
ROWS = np.arange(60) % 5
REAL = CENTERS[ROWS, None] + np.random.default_rng(0).normal(size=(60, 2))  # five groups, far apart
CODES = np.column_stack([ROWS, (ROWS + 1) % 5, (2 * ROWS) % 5])

CHAINS = {
    "gaussian": {"family": "gaussian"},
    "gaussian_full": {"family": "gaussian_full"},
    "exponential": {"family": "exponential"},
    "student": {"family": "student"},
    "student, DP": {"family": "student", "prior": "dirichlet_process"},
    "student, Pitman-Yor": {"family": "student", "prior": "pitman_yor"},
    "DP": {"prior": "dirichlet_process"},
    "Pitman-Yor": {"prior": "pitman_yor"},
    "finite": {"prior": "finite"},
    "stick-breaking": {"prior": "stick_breaking"},
    "outliers": {"outliers": True},
    "missing coordinates": {"family": "gaussian_full", "holes": True},
    "categorical": {"kinds": "categorical", "codes": True},
    "ordinal": {"kinds": "ordinal", "codes": True},
    "poisson": {"kinds": "count", "codes": True},
}


@pytest.mark.parametrize("options", CHAINS.values(), ids=CHAINS)
def test_no_draw_of_a_chain_has_more_clusters(options):
    options = dict(options)
    X = np.abs(REAL) if options.get("family") == "exponential" else REAL.copy()
    if options.pop("holes", False):
        X[::7, 0] = np.nan
    if options.pop("codes", False):
        X = CODES
    model = Mixture(max_clusters=LIMIT, **SHORT, **options).fit(X)
    n_clusters = [len(set(draw) - {-1}) for draw in np.asarray(model.trace_.labels)]
    assert 1 < max(n_clusters) <= LIMIT
    assert model.n_clusters_ <= LIMIT and max(model.n_clusters_posterior_) <= LIMIT


@pytest.mark.parametrize("inference", ["vb", "memoized", "cvb"])
def test_no_answer_has_more_clusters(inference):
    model = Mixture(max_clusters=LIMIT, inference=inference, random_state=0).fit(REAL)
    assert 1 < model.n_clusters_ <= LIMIT


@pytest.mark.parametrize("inference", ["gibbs", "subclusters", "em", "vb", "memoized", "cvb", "beam"])
def test_a_given_number_is_a_limit_too(inference):
    options = SHORT if inference in ("gibbs", "subclusters") else {"random_state": 0}
    model = Mixture(n_clusters=LIMIT, inference=inference, **options).fit(REAL)
    assert model.n_clusters_ <= LIMIT and len(model.weights_) <= LIMIT
    if hasattr(model, "trace_"):
        assert model.trace_.n_clusters.max() <= LIMIT


def test_new_rows_open_no_cluster_beyond_the_limit():
    """The posterior predictive has no seat of a new cluster where all that are allowed are in use."""
    model = Mixture("gaussian", max_clusters=LIMIT, **SHORT).fit(REAL)
    full = [len(draw.log_weights) - 1 == LIMIT for draw in model._fitted.draws]
    assert any(full) and all(
        np.isneginf(draw.log_weights[-1])
        for draw, is_full in zip(model._fitted.draws, full, strict=True)
        if is_full
    )


@pytest.mark.parametrize("inference", ["subclusters", "beam"])
def test_engines_without_a_limit_say_so(inference):
    with pytest.raises(ValueError, match="cannot bound the number of clusters"):
        Mixture(max_clusters=LIMIT, inference=inference).fit(REAL)


@pytest.mark.parametrize("inference", ["gibbs", "vb", "memoized", "cvb"])
def test_no_consensus_has_more_clusters(inference):
    options = {"n_chains": 2, "n_draws": 6, "burn_in": 4} if inference == "gibbs" else {}
    model = partita.NBCE(max_clusters=LIMIT, inference=inference, random_state=0, **options).fit(CODES)
    assert 1 < model.n_clusters_ <= LIMIT


def test_no_view_has_more_clusters():
    """In CrossCat the limit is one of the variational engine only, as its page says."""
    model = partita.CrossCat(max_clusters=LIMIT, inference="vb", random_state=0).fit(REAL)
    assert all(1 < len(np.unique(labels)) <= LIMIT for labels in model.view_labels_.T)
