"""What holds for the grain of every estimator that has one."""

import inspect
import itertools

import numpy as np
import pytest

import partita
from partita import load
from partita.estimator import GrainMixin
from partita.fitting.grain import EvidenceLoss
from partita.posterior import Grain
from partita.posterior.grain import HEIGHTS, SUPPORTS, checked_grain
from partita.posterior.joining import join_most_confused

CHAINS = {"n_chains": 2, "n_draws": 10, "burn_in": 5}
TABLES, LABELS, COUNTS, CLASSES = "table", "labels", "counts", "classes"
CASES = [
    ("Agglomerative", {}, TABLES),
    ("Agglomerative", {"linkage": "ward", "n_clusters": 5}, TABLES),
    ("BayesianTree", {"family": "gaussian"}, TABLES),
    ("BayesianTree", {"family": "gaussian", "n_clusters": 7}, TABLES),
    ("BisectingClusters", {"n_clusters": 4}, TABLES),
    ("Consensus", {}, LABELS),
    ("Consensus", {"n_clusters": 6}, LABELS),
    ("Consensus", {"max_clusters": 5}, LABELS),
    ("DPGaussian", CHAINS, TABLES),
    ("DPMultinomial", {"inference": "vb"}, COUNTS),
    ("Diana", {}, TABLES),
    ("EnsembleClustering", {"n_members": 8}, TABLES),
    ("EvidenceAccumulation", {}, LABELS),
    ("EvidenceAccumulation", {"linkage": "single"}, LABELS),
    ("EvidenceAccumulation", {"max_exact": 12}, LABELS),
    ("LACA", {}, LABELS),
    ("LACA", {"n_clusters": 4}, LABELS),
    ("LWEA", {"n_clusters": 3}, LABELS),
    ("LatentClass", {"n_clusters": 4, "n_init": 2}, CLASSES),
    ("Mixture", CHAINS, TABLES),
    ("Mixture", {**CHAINS, "outliers": True}, TABLES),
    ("Mixture", {**CHAINS, "family": "student"}, TABLES),
    ("Mixture", {"inference": "vb", "n_init": 1}, TABLES),
    ("Mixture", {"inference": "em", "n_clusters": 6, "n_init": 1}, TABLES),
    ("Mixture", {"inference": "cvb", "max_clusters": 5, "n_init": 1}, TABLES),
    ("Mixture", {"inference": "subclusters", **CHAINS}, TABLES),
    ("MixtureConsensus", {"n_clusters": 5, "n_init": 2}, LABELS),
    ("NBCE", CHAINS, LABELS),
    ("NBCE", {"inference": "vb", "n_init": 1}, LABELS),
]


def data_of(kind, seed):
    """Four groups of 15, and one odd row, of which three are near each other."""
    rng = np.random.default_rng([seed, 11])
    z = np.repeat(np.arange(4), 15)
    if kind == TABLES:
        centers = np.array([[0.0, 0.0], [4.0, 0.0], [2.0, 4.0], [30.0, 30.0]])
        return np.concatenate([centers[z] + rng.normal(size=(60, 2)), [[500.0, -500.0]]])
    if kind == LABELS:
        Y = np.where(rng.random((60, 12)) < 0.15, rng.integers(5, size=(60, 12)), z[:, None])
        Y[:, :4] = np.minimum(Y[:, :4], 1)
        Y[rng.random(Y.shape) < 0.1] = -1
        return Y.astype(float)
    if kind == COUNTS:
        return rng.poisson(np.where(np.arange(6) // 2 == (z % 3)[:, None], 9.0, 1.0)).astype(float)
    return rng.binomial(1, np.where((np.arange(8) // 2 == z[:, None]), 0.9, 0.2)).astype(float)


@pytest.fixture(scope="module")
def fitted(request):
    """The model of a case, fitted once, its data, and a cache for further fits."""
    fits = {}

    def fit(case, seed):
        name, settings, kind = case
        key = (name, repr(settings), seed)
        if key not in fits:
            cls = getattr(partita, name)
            random = {"random_state": 0} if "random_state" in inspect.signature(cls).parameters else {}
            X = data_of(kind, seed)
            fits[key] = cls(**settings, **random).fit(X), X
        return fits[key]

    return fit


every_grain = pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[1]}")
quiet = pytest.mark.filterwarnings("ignore")


def test_every_estimator_with_a_grain_is_among_the_cases():
    public = [getattr(partita, name) for name in partita.__all__]
    have = {cls.__name__ for cls in public if isinstance(cls, type) and issubclass(cls, GrainMixin)}
    assert have == {name for name, _, _ in CASES}


@quiet
@every_grain
def test_levels_are_nested_and_the_tree_passes_through_the_answer(case, fitted, global_random_seed):
    model, X = fitted(case, global_random_seed)
    grain = model.grain_
    assert isinstance(grain, Grain) and grain.height_kind in HEIGHTS and grain.support_kind in SUPPORTS
    checked_grain(grain, len(X))
    assert ((grain.support >= 0) & (grain.support <= 1)).all()
    assert np.isfinite(grain.heights).all() and (grain.heights >= 0).all()
    assert grain.n_groups >= model.n_clusters_
    finer = None
    for K in range(grain.n_groups, 0, -1):
        labels = grain.at(K)
        inlying = labels >= 0
        assert np.array_equal(np.unique(labels[inlying]), np.arange(K))
        np.testing.assert_array_equal(inlying, model.labels_ >= 0)
        if finer is not None:
            assert len(np.unique(np.stack([labels, finer])[:, inlying], axis=1).T) == K + 1
        finer = labels
    np.testing.assert_array_equal(grain.at(model.n_clusters_), model.labels_)


@quiet
@every_grain
def test_the_answer_at_its_own_scale_is_the_answer(case, fitted, global_random_seed):
    model, _ = fitted(case, global_random_seed)
    level = model.at(model.n_clusters_)
    np.testing.assert_array_equal(level.labels, model.labels_)
    assert level.n_clusters == model.n_clusters_
    assert (level.confidence is None) == (not hasattr(model, "confidence_"))
    if level.confidence is not None:
        np.testing.assert_allclose(level.confidence, model.confidence_, atol=1e-9)
    for column, profile in getattr(model, "profiles_", {}).items():
        for name, values in profile.items():
            if name != "levels":
                np.testing.assert_allclose(
                    level.profiles[column][name], values[: model.n_clusters_], rtol=1e-6, atol=1e-6
                )


@quiet
@every_grain
def test_levels_have_confidence_and_profiles_for_each_group(case, fitted, global_random_seed):
    model, X = fitted(case, global_random_seed)
    for K in range(1, min(model.grain_.n_groups, 9) + 1):
        level = model.at(K)
        assert level.support == model.grain_.support[K - 1]
        if level.confidence is not None:
            assert level.confidence.shape == (len(X),)
            assert ((level.confidence >= 0) & (level.confidence <= 1)).all()
        if hasattr(model, "profiles_"):
            assert list(level.profiles) == list(model.profiles_)
            values = [v for p in level.profiles.values() for name, v in p.items() if name != "levels"]
            assert all(len(v) == K and np.isfinite(v).all() for v in values)
    for one in model.alternatives_:
        np.testing.assert_array_equal(model.at(one.name).labels, one.labels)
    with pytest.raises(ValueError, match=f"has groups for 1 to {model.grain_.n_groups}"):
        model.at(model.grain_.n_groups + 1)


@quiet
@every_grain
def test_predictions_at_a_scale_are_sums_and_agree_with_the_labels(case, fitted, global_random_seed):
    model, X = fitted(case, global_random_seed)
    if not hasattr(model, "predict"):
        assert case[0] in ("Agglomerative", "Diana")
        return
    own = model.n_clusters_
    np.testing.assert_array_equal(model.predict(X, at=own), model.predict(X))
    for K in range(1, own + 1):
        labels = model.predict(X, at=K)
        assert set(labels) <= set(range(-1, K))
        to = np.full(own, -1)
        to[model.labels_[model.labels_ >= 0]] = model.grain_.at(K)[model.labels_ >= 0]
        if hasattr(model, "predict_proba"):
            proba = model.predict_proba(X, at=K)
            assert proba.shape == (len(X), K)
            assert (proba.sum(axis=1) <= 1 + 1e-9).all()
        same = (
            model.predict(X) == model.labels_
        )  # at coarser levels the same holds, but for rows between groups
        assert (labels == model.grain_.at(K))[same].mean() > 0.9
    if hasattr(model, "predict_proba"):
        np.testing.assert_allclose(model.predict_proba(X, at=own), model.predict_proba(X)[:, :own], atol=1e-6)


@quiet
@every_grain
def test_a_saved_model_has_the_same_grain(case, fitted, global_random_seed, tmp_path):
    model, X = fitted(case, global_random_seed)
    model.save(tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    for mine, theirs in zip(model.grain_, again.grain_, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    for K in (1, min(2, model.grain_.n_groups), model.grain_.n_groups):
        one, other = model.at(K), again.at(K)
        np.testing.assert_array_equal(one.labels, other.labels)
        if one.confidence is not None:
            np.testing.assert_array_equal(one.confidence, other.confidence)
    if hasattr(model, "predict"):
        np.testing.assert_array_equal(model.predict(X, at=1), again.predict(X, at=1))


@quiet
@every_grain
def test_nothing_is_computed_before_it_is_asked_for(case, global_random_seed, monkeypatch):
    name, settings, kind = case
    cls = getattr(partita, name)

    def refuse(self):
        raise AssertionError("the grain was grown")

    monkeypatch.setattr(cls, "_grow_grain", refuse)
    random = {"random_state": 0} if "random_state" in inspect.signature(cls).parameters else {}
    X = data_of(kind, global_random_seed)
    model = cls(**settings, **random).fit(X)
    if hasattr(model, "predict"):
        model.predict(X)
    assert "_grain" not in vars(model)
    with pytest.raises(AssertionError, match="the grain was grown"):
        model.grain_


def test_an_estimator_that_is_not_fitted_has_no_grain():
    assert not hasattr(partita.Mixture(), "grain_") and not hasattr(partita.Consensus(), "alternatives_")


def test_a_new_fit_forgets_the_grain_of_the_last_one():
    model = partita.Mixture(inference="em", n_clusters=3, random_state=0)
    X = data_of(TABLES, 0)
    first = model.fit(X).grain_
    assert model.fit(X[:30]).grain_ is not first and len(model.grain_.labels) == 30


# ---- mixtures ----------------------------------------------------------------------------------------------------


@pytest.fixture
def overlapping(rng):
    """Two groups, one of which has two parts that overlap, far from the other."""
    z = np.repeat([0, 1, 2], [80, 70, 60])
    return np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 12.0]])[z] + rng.normal(size=(210, 2)), z


def test_overlapping_components_are_joined_first(overlapping):
    X, z = overlapping
    start = {"init": z, "inference": "em", "n_clusters": 3, "n_init": 1, "family": "gaussian"}
    model = partita.Mixture(**start).fit(X)
    parts = {frozenset(np.unique(z[model.at(2).labels == k])) for k in range(2)}
    assert parts == {frozenset({0, 1}), frozenset({2})}
    assert model.grain_.heights[0] > 0.02 > model.grain_.heights[1]


@quiet
def test_the_tree_of_a_mixture_is_that_of_all_its_responsibilities(overlapping):
    X, z = overlapping
    start = {"init": z, "inference": "em", "n_clusters": 3, "n_init": 1, "family": "gaussian"}
    model = partita.Mixture(**start).fit(X)
    mixture = model._fitted
    separation = EvidenceLoss([b.family for b in mixture.blocks], mixture.statistics.S, mixture.statistics.n)
    found = join_most_confused(model.predict_proba(X), np.ones(len(X)), np.zeros(3), separation)
    np.testing.assert_array_equal(found.joins, model.grain_.joins)
    np.testing.assert_allclose(
        found.heights, model.grain_.heights, atol=2e-3
    )  # small probabilities are dropped


def test_separate_components_are_joined_with_their_neighbours(rng):
    z = np.repeat(np.arange(4), 30)
    X = np.array([[0.0, 0.0], [20.0, 0.0], [0.0, 60.0], [20.0, 60.0]])[z] + rng.normal(size=(120, 2))
    model = partita.Mixture(init=z, inference="em", n_clusters=4, n_init=1, family="gaussian").fit(X)
    parts = {frozenset(np.unique(z[model.at(2).labels == k])) for k in range(2)}
    assert parts == {frozenset({0, 1}), frozenset({2, 3})}
    assert model.n_clusters_ == 4
    assert (model.grain_.heights < 0.01).all()


@quiet
@pytest.mark.parametrize("inference", ["em", "vb"])
def test_confidence_of_engines_rises_towards_coarse_levels(inference, overlapping):
    X, _ = overlapping
    model = partita.Mixture(inference=inference, n_clusters=5, n_init=1, random_state=0).fit(X)
    levels = [model.at(K).confidence for K in range(model.grain_.n_groups, 0, -1)]
    for finer, coarser in itertools.pairwise(levels):
        assert (coarser >= finer - 1e-9).all()
    np.testing.assert_allclose(levels[-1], 1.0, atol=5e-3)


def test_profiles_of_groups_are_those_of_their_rows(overlapping):
    X, z = overlapping
    model = partita.Mixture(
        init=z, inference="em", n_clusters=3, estimate="ml", n_init=1, family="gaussian"
    ).fit(X)
    mean = model.at(1).profiles["x0"]["mean"]
    np.testing.assert_allclose(mean, X[:, 0].mean(), atol=0.2)
    two = model.at(2)
    by_rows = [X[two.labels == k, 0].mean() for k in range(2)]
    np.testing.assert_allclose(two.profiles["x0"]["mean"], by_rows, atol=0.3)


@quiet
def test_the_order_of_rows_does_not_matter(overlapping, rng):
    X, z = overlapping
    mixed = rng.permutation(len(X))
    start = {"inference": "em", "n_clusters": 3, "n_init": 1, "family": "gaussian"}
    one = partita.Mixture(init=z, **start).fit(X)
    other = partita.Mixture(init=z[mixed], **start).fit(X[mixed])
    for K in (1, 2, 3):
        np.testing.assert_array_equal(one.at(K).labels[mixed], other.at(K).labels)
    np.testing.assert_allclose(one.grain_.heights, other.grain_.heights, atol=1e-6)
    np.testing.assert_allclose(one.grain_.support, other.grain_.support, atol=1e-6)


@quiet
def test_weights_of_rows_are_duplicates(overlapping, rng):
    X, z = overlapping
    weights = rng.integers(1, 4, len(X))
    start = {"inference": "em", "n_clusters": 3, "n_init": 1, "family": "gaussian"}
    copies = np.repeat(np.arange(len(X)), weights)
    one = partita.Mixture(init=z, **start).fit(X, sample_weight=weights.astype(float))
    other = partita.Mixture(init=z[copies], **start).fit(X[copies])
    for K in (1, 2, 3):
        np.testing.assert_array_equal(one.at(K).labels[copies], other.at(K).labels)
    np.testing.assert_allclose(one.grain_.heights, other.grain_.heights, atol=1e-5)
    np.testing.assert_allclose(one.grain_.support, other.grain_.support, atol=1e-5)
    np.testing.assert_allclose(one.grain_.sizes, other.grain_.sizes)


@quiet
@pytest.mark.parametrize("name", ["Consensus", "EvidenceAccumulation", "LACA"])
def test_weights_of_objects_are_duplicates_in_consensus(name, rng, global_random_seed):
    Y = data_of(LABELS, global_random_seed)
    weights = rng.integers(1, 4, len(Y))
    copies = np.repeat(np.arange(len(Y)), weights)
    cls = getattr(partita, name)
    one = cls(random_state=0).fit(Y, sample_weight=weights.astype(float))
    other = cls(random_state=0).fit(Y[copies])
    assert one.grain_.n_groups == other.grain_.n_groups
    np.testing.assert_allclose(one.grain_.heights, other.grain_.heights, atol=1e-9)
    np.testing.assert_allclose(one.grain_.support, other.grain_.support, atol=1e-9)
    for K in range(1, one.grain_.n_groups + 1):
        assert partita.metrics.adjusted_rand(one.at(K).labels[copies], other.at(K).labels) == 1.0


def test_outliers_belong_to_no_group_at_any_level():
    X = data_of(TABLES, 0)
    model = partita.Mixture(outliers=True, random_state=0, **CHAINS).fit(X)
    out = model.labels_ < 0
    assert out[-1]
    for K in range(1, model.grain_.n_groups + 1):
        level = model.at(K)
        assert (level.labels[out] == -1).all() and (level.labels[~out] >= 0).all()
        np.testing.assert_array_equal(level.confidence[out], model.confidence_[out])
    assert model.predict([[1e6, 1e6]], at=1).tolist() == [-1]


def test_rows_of_weight_zero_have_labels_at_every_level():
    X = data_of(TABLES, 0)
    weights = np.ones(len(X))
    weights[:5] = 0.0
    for inference in ("vb", "gibbs"):
        settings = CHAINS if inference == "gibbs" else {"n_init": 1}
        model = partita.Mixture(inference=inference, random_state=0, **settings).fit(X, sample_weight=weights)
        assert model.grain_.sizes.sum() == len(X) - 5
        for K in range(1, model.grain_.n_groups + 1):
            assert (model.at(K).labels >= 0).all() and np.isfinite(model.at(K).confidence).all()


def test_partial_fit_grows_a_new_grain(rng):
    X = rng.normal(size=(60, 2))
    model = partita.Mixture("gaussian", random_state=0, **CHAINS).partial_fit(X)
    assert model.grain_.n_groups == model.n_clusters_
    model.partial_fit(X[:20] + 50)
    assert model.grain_.n_groups == model.n_clusters_ > 1
    assert len(model.at(1).labels) == 20


@quiet
def test_chunks_are_predicted_at_a_scale_as_arrays_are(tmp_path):
    X = data_of(TABLES, 0)
    np.save(tmp_path / "X.npy", X)
    source = partita.execution.open_chunks(tmp_path / "X.npy")
    model = partita.Mixture(inference="vb", n_init=1, random_state=0).fit(X)
    np.testing.assert_array_equal(model.predict(source, at=2), model.predict(X, at=2))
    np.testing.assert_allclose(model.predict_proba(source, at=2), model.predict_proba(X, at=2))
    shards = partita.Mixture(inference="vb", n_init=1, random_state=0).fit(source)
    np.testing.assert_array_equal(shards.at(2).labels, model.at(2).labels)
    np.testing.assert_allclose(shards.grain_.heights, model.grain_.heights, atol=1e-6)


# ---- views -------------------------------------------------------------------------------------------------------


@pytest.fixture
def two_views(rng):
    a, b = np.repeat(np.arange(3), 20), np.tile([0, 1], 30)
    views = [9.0 * z[:, None] + rng.normal(size=(60, 3)) for z in (a, b)]
    return np.concatenate(views, axis=1)


@quiet
@pytest.mark.parametrize("inference", ["gibbs", "vb", "search"])
def test_each_view_has_a_grain(inference, two_views, tmp_path):
    settings = {"n_chains": 2, "n_draws": 6, "burn_in": 6} if inference == "gibbs" else {}
    model = partita.CrossCat("gaussian", inference=inference, random_state=0, **settings).fit(two_views)
    assert len(model.grain_) == len(model.alternatives_) == model.view_labels_.shape[1]
    model.save(tmp_path / "views.npz")
    again = load(tmp_path / "views.npz")
    for view, grain in enumerate(model.grain_):
        labels = model.view_labels_[:, view]
        checked_grain(grain, 60)
        np.testing.assert_array_equal(grain.at(int(labels.max()) + 1), labels)
        level = model.at(int(labels.max()) + 1, view=view)
        np.testing.assert_array_equal(level.confidence, model.confidence_[:, view])
        for column, profile in model.profiles_[view].items():
            np.testing.assert_allclose(level.profiles[column]["mean"], profile["mean"])
        assert (model.at(1, view=view).labels == 0).all()
        for mine, theirs in zip(grain, again.grain_[view], strict=True):
            np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(model.predict(two_views, at=1), np.zeros_like(model.view_labels_))
    with pytest.raises(ValueError, match="view is 9: the estimate has the views 0 to"):
        model.at(1, view=9)
    too_many = len(model.grain_) + 1
    with pytest.raises(ValueError, match=f"at has {too_many} scales"):
        model.predict(two_views, at=[1] * too_many)


# ---- where there is nothing to divide, and files -------------------------------------------------------------------


@quiet
def test_members_that_do_not_agree_have_one_group(rng):
    Y = rng.integers(3, size=(80, 6))
    model = partita.Consensus(random_state=0).fit(Y)
    assert model.n_clusters_ == 1 and model.grain_.n_groups == 1 and model.alternatives_ == []
    with pytest.raises(ValueError, match="it has no alternatives"):
        model.at("coarse")


@quiet
@pytest.mark.parametrize("name", ["Consensus", "EvidenceAccumulation", "LACA", "LWEA"])
def test_the_support_of_members_that_agree_rises_up_to_their_groups(name, rng):
    z = rng.permutation(np.repeat(np.arange(5), [12, 10, 9, 8, 7]))
    Y = np.stack([rng.permutation(5)[z] for _ in range(6)], axis=1)
    options = {"n_clusters": 5} if name == "LWEA" else {}
    support = getattr(partita, name)(**options).fit(Y).grain_.support
    assert support[4] == pytest.approx(1.0) and (np.diff(support[:5]) > 0).all()


def test_members_that_are_all_the_same_join_the_smallest_groups():
    z = np.repeat([0, 1, 2, 3], [9, 3, 2, 8])
    model = partita.Consensus(random_state=0).fit(np.stack([z, 3 - z], axis=1))
    assert model.grain_.n_groups == 4
    assert sorted(np.bincount(model.at(3).labels).tolist()) == [5, 8, 9]
    np.testing.assert_array_equal(model.predict(np.stack([z, 3 - z], axis=1), at=2), model.at(2).labels)
    alone = partita.Consensus(random_state=0).fit(z[:, None])
    assert np.isnan(alone.at(2).confidence).all()


def test_altered_evidence_of_a_file_is_refused():
    X = data_of(TABLES, 0)
    model = partita.Mixture(inference="vb", n_init=1, random_state=0).fit(X)
    for change in (
        lambda state: state["uncertain"].__setitem__(0, np.array([len(X)])),
        lambda state: state["uncertain"].__setitem__(1, np.full(len(state["uncertain"][1]) + 1, 0, np.int32)),
        lambda state: state.__setitem__("row_weights", np.ones(3)),
    ):
        state = model._state()
        change(state)
        with pytest.raises(ValueError, match=r"uncertain|weights of the rows"):
            partita.Mixture()._restore(state)
    Y = data_of(LABELS, 0)
    consensus = partita.Consensus(random_state=0).fit(Y)
    for name, value, message in (
        ("_tree_children", consensus._tree_children[::-1].copy(), "not a tree"),
        ("_leaf_codes", consensus._leaf_codes[:, :2], "not rows of 12 members"),
        ("_row_of", consensus._row_of + 1000, "not one of the"),
        ("_rows", consensus._rows + 50, r"labels that their members do not have|levels of the members"),
    ):
        state = consensus._state()
        state["fitted"][name] = value
        with pytest.raises(ValueError, match=message):
            partita.Consensus()._restore(state)
