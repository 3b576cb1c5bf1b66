"""What every public estimator has to do: scikit-learn's checks, and the conventions on parameters, files and labels."""

import importlib.util
import inspect
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import partita

SHORT_CHAINS = {
    "n_chains": 2,
    "n_draws": 8,
    "burn_in": 4,
}  # the checks do not ask whether chains have converged

# Settings with which an estimator is quick on small tables.
SETTINGS = {
    "AffinityPropagation": {},
    "Agglomerative": {},
    "BCE": {"n_clusters": 2, "n_init": 1},
    "BayesianTree": {},
    "BipartiteModularity": {"n_init": 1},
    "BisectingClusters": {},
    "CSPA": {"n_clusters": 2, "balance": 0.05},
    "Consensus": {},
    "CrossCat": {"family": "gaussian", "inference": "vb", "n_chains": 1, "n_draws": 2, "max_iter": 20},
    "DPGaussian": SHORT_CHAINS,
    "DPMultinomial": SHORT_CHAINS,
    "DecorrelatedKMeans": {"n_init": 1},
    "Diana": {},
    "EnsembleClustering": {"n_members": 5},
    "EvidenceAccumulation": {},
    "HBGF": {"n_clusters": 2, "n_init": 1},
    "HGPA": {"n_clusters": 2, "balance": 0.05},
    "KMedoids": {"n_clusters": 2},
    "LACA": {},
    "LWEA": {"n_clusters": 2},
    "LatentClass": {"n_clusters": 2},
    "MCLA": {"n_clusters": 2, "balance": 0.05},
    "Mixture": {"inference": "vb", "n_init": 1},
    "MixtureConsensus": {"n_clusters": 2, "n_init": 2},
    "NBCE": {"inference": "vb", "n_init": 1},
    "OrthogonalViews": {"n_init": 1},
    "OverlappingViews": {"n_init": 1, "n_chains": 1, "n_draws": 2, "burn_in": 1},
    "QMI": {"n_clusters": 2, "n_init": 1},
    "RelationalBlocks": {"n_chains": 1, "n_draws": 10, "burn_in": 10, "n_moves": 2},
    "SpectralClustering": {"n_clusters": 2},
    "Voting": {},
}

# Other engines of the same estimators.
MORE = [
    ("BayesianTree", {"family": "gaussian", "max_exact": 20}),
    ("Mixture", {"inference": "em", "n_clusters": 3}),
    ("Mixture", SHORT_CHAINS),
]
SLOW = [
    ("CrossCat", {"n_chains": 1, "n_draws": 2, "burn_in": 2}),
    ("CrossCat", {"inference": "search", "n_chains": 1, "max_iter": 3}),
    ("DPGaussian", SHORT_CHAINS),
    ("DPMultinomial", SHORT_CHAINS),
    ("Mixture", {"inference": "cvb", "n_init": 1, "max_clusters": 5}),  # a sweep is one object at a time
    ("Mixture", {"inference": "subclusters", **SHORT_CHAINS}),
    ("Mixture", {"outliers": True, "n_chains": 1, "n_draws": 10, "burn_in": 10}),
    ("NBCE", SHORT_CHAINS),
    ("NBCE", {"inference": "cvb", "n_init": 1, "max_clusters": 5}),
    ("Mixture", {"inference": "memoized", "n_init": 1, "max_clusters": 5}),
]
ONLY_SLOW = {"DPGaussian", "DPMultinomial"}  # Mixture with the same engine is checked in the fast tests

# What an estimator cannot be fitted without.
EXTRAS = {
    "CSPA": "pymetis",
    "MCLA": "pymetis",
    "HGPA": "mtkahypar",
    "BipartiteModularity": "leidenalg",
    "KMedoids": "kmedoids",
}

READ_CODES = {  # label matrices, and the answers of latent classes
    "BCE", "BipartiteModularity", "CSPA", "Consensus", "EvidenceAccumulation", "HBGF", "HGPA", "LACA", "LWEA",
    "LatentClass", "MCLA", "MixtureConsensus", "NBCE", "QMI", "Voting",
}  # fmt: skip
CODES = dict.fromkeys(
    (
        "check_clustering",
        "check_positive_only_tag_during_fit",
        "check_sample_weight_equivalence_on_dense_data",
    ),
    "the data are continuous, and the estimator reads codes",
)
COUNTS = dict.fromkeys(
    (
        *CODES,
        "check_estimator_sparse_array",
        "check_estimator_sparse_matrix",
        "check_sample_weight_equivalence_on_sparse_data",
    ),
    "the data are continuous, and count vectors are integers",
)
ORDER = {
    "check_sample_weight_equivalence_on_dense_data": "a chain visits objects in order: the same replicates in another "
    "order give other draws",
}
OUTLIERS = {
    "check_sample_weight_equivalence_on_dense_data": "shares of draws are equal up to Monte Carlo error",
    "check_fit_score_takes_y": "partial_fit refuses later rows, whose outliers it cannot tell",
    "check_n_features_in_after_fitting": "partial_fit refuses later rows, whose outliers it cannot tell",
}


def expected_failures(model):
    """The checks that cannot pass, each with its reason."""
    name = type(model).__name__
    if name in READ_CODES:
        return CODES
    if name == "DPMultinomial":
        return COUNTS
    if getattr(model, "outliers", None) is True:
        return OUTLIERS
    if name == "DPGaussian" or (name == "Mixture" and model.inference in ("auto", "gibbs", "subclusters")):
        return ORDER
    return {}


def installed(name):
    """Whether an estimator can be fitted here."""
    return name not in EXTRAS or importlib.util.find_spec(EXTRAS[name]) is not None


def make(name, **parameters):
    return getattr(partita, name)(**(SETTINGS[name] | parameters))


def made(settings):
    return [getattr(partita, name)(**parameters) for name, parameters in settings if installed(name)]


NAMES = [name for name in partita.__all__ if isinstance(getattr(partita, name), type)]
FITTED = [
    pytest.param(name, marks=pytest.mark.skipif(not installed(name), reason=f"{EXTRAS.get(name)} is missing"))
    for name in NAMES
]


def test_every_estimator_is_in_the_table():
    assert set(SETTINGS) == set(NAMES)


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    made([*((name, SETTINGS[name]) for name in SETTINGS if name not in ONLY_SLOW), *MORE]),
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(made(SLOW), expected_failed_checks=expected_failures)
def test_scikit_learn_check_of_slow_engines(estimator, check):
    check(estimator)


# ---- parameters --------------------------------------------------------------------------------------------------


def parameters_of(cls):
    return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]


@pytest.mark.parametrize("name", NAMES)
def test_init_only_stores_its_parameters(name):
    cls = getattr(partita, name)
    given = {parameter: object() for parameter in parameters_of(cls)}
    model = cls(**given)
    assert {key: vars(model).get(key) for key in given} == given
    fixed = {parameter for base in cls.__mro__[1:] for parameter in parameters_of(base)}  # by a preset
    assert set(given) <= set(vars(model)) <= set(given) | fixed


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FITTED)
def test_fit_leaves_the_parameters_alone(name, codes):
    model = make(name)
    before = model.get_params(deep=False)
    model.fit(codes)
    after = model.get_params(deep=False)
    assert before.keys() == after.keys()
    assert [key for key in before if before[key] is not after[key]] == []


# ---- what a fitted model can do ------------------------------------------------------------------------------------


@pytest.fixture
def codes(global_random_seed):
    """Two planted groups seen in four columns of codes: a table that every estimator reads."""
    rng = np.random.default_rng(global_random_seed)
    z = np.repeat([0, 1], 20)[:, None]
    return np.where(rng.random((40, 4)) < 0.9, z, 1 - z)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FITTED)
def test_a_saved_model_is_the_same_model(name, codes, tmp_path):
    model = make(name, random_state=0).fit(codes)
    model.save(tmp_path / "model.npz")
    loaded = partita.load(tmp_path / "model.npz")
    assert type(loaded) is type(model) and repr(loaded) == repr(model)
    assert set(fitted_attributes(loaded)) == set(fitted_attributes(model))
    for key, value in fitted_attributes(model).items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(getattr(loaded, key), value, err_msg=key)
    if hasattr(model, "predict"):
        np.testing.assert_array_equal(loaded.predict(codes), model.predict(codes))


def fitted_attributes(model):
    return {key: value for key, value in vars(model).items() if key.endswith("_") and not key.startswith("_")}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FITTED)
def test_fit_predict_gives_the_labels(name, codes):
    model = make(name, random_state=0).fit(codes)
    if hasattr(model, "labels_"):
        np.testing.assert_array_equal(clone(model).fit_predict(codes), model.labels_)
    else:
        assert hasattr(model, "view_labels_"), f"{name} has neither labels_ nor view_labels_"


# ---- the reference -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_the_reference_names_it(name):
    page = (Path(__file__).resolve().parents[1] / "docs" / "api.md").read_text(encoding="utf-8")
    assert re.search(rf"^::: partita\.\w+\.{name}$", page, re.MULTILINE)
