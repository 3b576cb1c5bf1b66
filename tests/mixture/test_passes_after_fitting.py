"""How often a fit passes over all rows once its parameters are found."""

import numpy as np
import pytest

from partita import Mixture
from partita.engines.passes.memory import MemoryScorer


@pytest.fixture
def passes(monkeypatch):
    """Numbers of rows of the passes that assign rows to clusters."""
    found = []
    assign = MemoryScorer.assign

    def counted(self, n_rows, *args, **options):
        found.append(n_rows)
        return assign(self, n_rows, *args, **options)

    monkeypatch.setattr(MemoryScorer, "assign", counted)
    return found


@pytest.mark.parametrize("inference", ["em", "vb", "cvb"])
def test_labels_confidence_and_densities_come_from_one_pass(inference, passes, rng):
    z = np.repeat([0, 1, 1, 2, 2, 2], 60)  # clear groups of different sizes, the smallest first
    X = 20.0 * z[:, None] + rng.normal(size=(len(z), 3))
    model = Mixture("gaussian", n_clusters=3, inference=inference, n_init=1, random_state=0).fit(X)
    assert passes == [len(X)]
    assert np.array_equal(np.bincount(model.labels_), [180, 120, 60])
    assert np.array_equal(model.predict(X), model.labels_)
    assert model.log_likelihood_ == pytest.approx(model.score_samples(X).sum(), rel=1e-12)
    assert np.array_equal(model.predict_proba(X).max(axis=1), model.confidence_)
