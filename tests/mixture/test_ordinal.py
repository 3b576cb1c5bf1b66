"""Ordinal columns in a mixture: from the table to probabilities of levels, and what refuses them."""

import itertools

import numpy as np
import pandas as pd
import pytest

from partita import BayesianTree, CrossCat, Mixture, OverlappingViews, RelationalBlocks
from partita.estimator import load
from partita.execution import open_chunks
from partita.metrics import adjusted_rand

SCALE = ["never", "seldom", "often", "always"]
ENGINES = {
    "gibbs": {"n_chains": 2, "n_draws": 20, "burn_in": 20},
    "vb": {},
    "em": {"n_clusters": 2},
}


@pytest.fixture(scope="module")
def survey():
    """Two groups that answer six questions in words; 200 rows, some answers missing."""
    rng = np.random.default_rng(7)
    z = np.repeat([0, 1], 100)
    codes = np.digitize(np.where(z, 1.1, -1.1)[:, None] + rng.normal(size=(200, 6)), [-1.3, 0.0, 1.4])
    frame = pd.DataFrame(np.array(SCALE, object)[codes], columns=[f"q{j}" for j in range(6)])
    return frame.mask(rng.random(frame.shape) < 0.05), z


def ordered(frame):
    return frame.apply(lambda column: pd.Categorical(column, categories=SCALE, ordered=True))


@pytest.mark.parametrize("inference", ENGINES)
def test_groups_are_found_and_answers_have_probabilities(inference, survey, tmp_path):
    frame, z = survey
    model = Mixture(inference=inference, kinds="ordinal", random_state=0, **ENGINES[inference]).fit(
        ordered(frame)
    )
    assert model.n_clusters_ == 2
    assert adjusted_rand(model.labels_, z) > 0.8
    proba = model.predict_proba(ordered(frame))
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert (model.predict(ordered(frame)) == proba.argmax(axis=1)).all()
    profile = model.profiles_["q0"]
    assert profile["levels"].tolist() == SCALE
    np.testing.assert_allclose(profile["probabilities"].sum(axis=1), 1.0)
    order = np.argsort(profile["latent_mean"])
    assert profile["probabilities"][order[0], 0] > profile["probabilities"][order[1], 0]
    rows, labels = model.sample(50)
    assert set(rows.ravel()) <= set(SCALE) and len(labels) == 50
    path = tmp_path / "model.partita"
    model.save(path)
    np.testing.assert_array_equal(
        load(path).score_samples(ordered(frame)), model.score_samples(ordered(frame))
    )


@pytest.mark.parametrize("inference", ENGINES)
def test_densities_are_probabilities_of_levels(inference, survey):
    frame = survey[0][["q0", "q1"]]
    model = Mixture(inference=inference, kinds=" < ".join(SCALE), random_state=0, **ENGINES[inference]).fit(
        frame
    )
    every = pd.DataFrame(list(itertools.product(SCALE, SCALE)), columns=["q0", "q1"])
    assert np.exp(model.score_samples(every)).sum() == pytest.approx(1.0, abs=1e-9)
    half = pd.DataFrame({"q0": SCALE, "q1": [None] * 4})
    assert np.exp(model.score_samples(half)).sum() == pytest.approx(1.0, abs=1e-9)


def test_all_ways_to_declare_the_order_agree(survey):
    frame, _ = survey
    settings = {"inference": "vb", "random_state": 0}
    by_words = Mixture(kinds=" < ".join(SCALE), **settings).fit(frame)
    by_dtype = Mixture(kinds="ordinal", **settings).fit(ordered(frame))
    numbers = frame.apply(lambda column: column.map({level: j for j, level in enumerate(SCALE)}))
    by_numbers = Mixture(kinds="ordinal", **settings).fit(numbers)
    backwards = Mixture(kinds="3 < 2 < 1 < 0", **settings).fit(numbers)
    for other in (by_dtype, by_numbers):
        assert other.lower_bound_ == pytest.approx(by_words.lower_bound_, rel=1e-12)
        np.testing.assert_array_equal(other.labels_, by_words.labels_)
    assert adjusted_rand(backwards.labels_, by_words.labels_) == 1.0
    assert backwards.schema_.column("q0").levels == (3.0, 2.0, 1.0, 0.0)


@pytest.mark.slow  # compiles the engine for three kinds of columns
def test_ordinal_columns_beside_others_and_outliers(survey):
    frame, z = survey
    rng = np.random.default_rng(0)
    mixed = frame.assign(
        height=z * 3.0 + rng.normal(size=200), city=np.where(rng.random(200) < 0.9, z, 1 - z).astype(str)
    )
    kinds = {f"q{j}": " < ".join(SCALE) for j in range(6)}
    model = Mixture(kinds=kinds, outliers=True, n_chains=2, n_draws=20, burn_in=20, random_state=0).fit(mixed)
    assert [model.schema_.column(name).kind for name in ("q5", "height", "city")] == [
        "ordinal",
        "real",
        "categorical",
    ]
    assert adjusted_rand(model.labels_, z) > 0.9
    assert np.isfinite(model.score_samples(mixed)).all()


@pytest.mark.parametrize("inference", ["vb", "em"])
def test_chunks_give_the_cuts_of_the_whole_table(inference, survey):
    codes = (
        survey[0]
        .apply(lambda column: column.map({level: j for j, level in enumerate(SCALE)}))
        .to_numpy(float)
    )
    settings = {"inference": inference, "kinds": "ordinal", "random_state": 0, **ENGINES[inference]}
    whole, chunks = Mixture(**settings).fit(codes), Mixture(**settings).fit(open_chunks(codes, rows=37))
    np.testing.assert_array_equal(chunks.labels_, whole.labels_)
    np.testing.assert_allclose(chunks.score_samples(codes), whole.score_samples(codes), rtol=1e-9)


@pytest.mark.parametrize("inference", ["cvb", "beam", "subclusters"])
def test_engines_without_latent_variables_refuse(inference, survey):
    with pytest.raises(
        ValueError,
        match=r"'q0' is ordinal.*'em', 'gibbs', 'memoized' or 'vb'.*declare the column 'categorical'",
    ):
        Mixture(inference=inference, kinds="ordinal").fit(ordered(survey[0]))


def test_families_without_a_conjugate_prior_refuse(survey):
    mixed = ordered(survey[0]).assign(x=np.linspace(-1, 1, 200))
    with pytest.raises(ValueError, match="ordinal, and its latent variable cannot be drawn beside Student"):
        Mixture({"real": "student"}, kinds={f"q{j}": "ordinal" for j in range(6)}).fit(mixed)


@pytest.mark.parametrize("model", [BayesianTree, CrossCat, OverlappingViews])
def test_other_models_refuse(model, survey):
    with pytest.raises(ValueError, match="latent variables of ordinal columns"):
        model(kinds="ordinal").fit(ordered(survey[0]))


def test_blocks_refuse():
    with pytest.raises(ValueError, match="'ordinal' reads latent variables"):
        RelationalBlocks(family="ordinal").fit(np.ones((4, 3)))
