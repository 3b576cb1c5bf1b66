"""Labels in AnnData, and from there to a file and back."""

import numpy as np
import pytest

from partita import Consensus, Mixture, annotate

anndata = pytest.importorskip("anndata")


@pytest.fixture
def runs():
    rng = np.random.default_rng(0)
    z = np.repeat([0, 1, 2], 30)
    return np.where(rng.random((90, 8)) < 0.1, rng.integers(3, size=(90, 8)), z[:, None])


def test_consensus_of_annotations_and_back(runs, tmp_path):
    cells = anndata.AnnData(np.zeros((90, 2)))
    for m, run in enumerate(runs.T):
        cells.obs[f"leiden_{m}"] = run.astype(str)
    columns = [f"leiden_{m}" for m in range(8)]
    model = Consensus(random_state=0).fit(cells.obs[columns])
    annotate(cells, model, key_added="consensus")
    cells.write_h5ad(tmp_path / "cells.h5ad")
    again = anndata.read_h5ad(tmp_path / "cells.h5ad")
    assert again.obs["consensus"].astype(int).tolist() == model.labels_.tolist()
    np.testing.assert_allclose(again.obs["consensus_confidence"], model.confidence_)
    assert again.uns["consensus"]["n_clusters"] == model.n_clusters_ == 3
    assert again.uns["consensus"]["summary"] == str(model.summary_)
    np.testing.assert_allclose(again.uns["consensus"]["member_weights"], model.member_weights_)


def test_other_models_and_other_objects(runs):
    cells = anndata.AnnData(np.random.default_rng(0).normal(size=(90, 2)))
    model = Mixture("gaussian", n_clusters=2, inference="em", random_state=0).fit(cells.to_df())
    assert annotate(cells, model) is cells
    assert {"partita", "partita_confidence", "partita_K2", "partita_finest"} <= set(cells.obs.columns)
    with pytest.raises(ValueError, match="90 objects and the AnnData has 50"):
        annotate(cells[:50].copy(), model)


def test_all_levels_of_the_grain(runs, tmp_path):
    cells = anndata.AnnData(np.zeros((90, 2)))
    model = Consensus(random_state=0).fit(runs)
    annotate(cells, model, key_added="c").write_h5ad(tmp_path / "cells.h5ad")
    again = anndata.read_h5ad(tmp_path / "cells.h5ad")
    grain, tree = model.grain_, again.uns["c"]["grain"]
    for K in range(2, grain.n_groups + 1):
        assert again.obs[f"c_K{K}"].astype(int).tolist() == model.at(K).labels.tolist()
    for one in model.alternatives_:
        assert again.obs[f"c_{one.name}"].astype(int).tolist() == one.labels.tolist()
        assert tree["alternatives"][one.name] == one.n_clusters
    assert again.obs["c_finest"].tolist() == grain.labels.tolist()
    for name in ("joins", "heights", "support", "sizes"):
        np.testing.assert_array_equal(tree[name], getattr(grain, name))
    assert tree["support_meaning"] == grain.support_meaning
