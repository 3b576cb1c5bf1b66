"""``partition="map"``: the draw of the highest posterior density, in which the hyperprior counts."""

import numpy as np
import pytest

from partita import Mixture, RelationalBlocks
from partita.engines.gibbs.chain import HYPER_SPREAD, ChainDraw
from partita.families import Bernoulli
from partita.fitting.chains import log_posterior
from partita.fitting.contract import Request
from partita.labels import canonical
from partita.trace import Trace

pytestmark = pytest.mark.filterwarnings("ignore::partita.estimator.DataWarning")

QUICK = {"n_chains": 2, "n_draws": 60, "burn_in": 10, "partition": "map"}


def same_partition(a, b):
    return np.array_equal(canonical(a), canonical(b))


@pytest.mark.parametrize("prior", ["dirichlet_process", "pitman_yor", "mfm"])
def test_the_concentration_counts(prior, rng, global_random_seed):
    """The unit exponential prior of the concentration; that of the discount is uniform."""
    X = rng.normal(size=(12, 1))
    model = Mixture(
        "gaussian", prior, "gibbs", learn_hyper=False, random_state=global_random_seed, **QUICK
    ).fit(X)
    best = np.argmax(model.trace_.log_joint - model.trace_.concentration)
    assert same_partition(model.labels_, model.trace_.labels[best])


def test_both_sides_of_blocks_count(rng, global_random_seed):
    X = rng.integers(2, size=(8, 7))
    model = RelationalBlocks(learn_hyper=False, random_state=global_random_seed, **QUICK).fit(X)
    rows, columns = model.row_trace_, model.column_trace_
    best = np.argmax(rows.log_joint - rows.concentration - columns.concentration)
    assert same_partition(model.row_labels_, rows.labels[best])
    assert same_partition(model.column_labels_, columns.labels[best])


@pytest.mark.parametrize("learned", [False, True])
def test_a_draw_of_improbable_hyper_parameters_loses(learned):
    """Two draws of nearly equal log joint: the second has a hyper-parameter two standard deviations from its center."""
    center, one = Bernoulli.default(1), np.ones(1)
    far = center._replace(a=center.a * np.exp(2.0 * HYPER_SPREAD))
    draws = [
        ChainDraw(Trace(np.zeros((1, 3), int), height * one, one, 0.5 * one, np.nan * one, one), (family,))
        for height, family in ((0.0, center), (1.5, far))
    ]
    fields = dict.fromkeys(Request._fields)
    ask = Request(**(fields | {"learn_likelihood": learned, "learn_concentration": True}))
    heights = log_posterior(draws, [center], ask)
    np.testing.assert_allclose(heights, [-0.5, 1.0 - 2.0 * learned], atol=1e-12)
