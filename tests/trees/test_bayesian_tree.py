"""BayesianTree as users meet it: tables of all sorts, bad inputs, new rows, files."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from partita import BayesianTree, load
from partita.estimator import ModelFileError


def mixed_table(two_groups, two_answers):
    X, z = two_groups
    Y, _ = two_answers
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "length": X[:, 0],
            "width": X[:, 1],
            "visits": rng.poisson(np.where(z == 0, 3, 30)),
            "smoker": Y[:, 0].astype(bool),
            "town": np.array(["Ulm", "Bonn"])[Y[:, 1]],
        }
    ), z


def test_mixed_table_with_holes(two_groups, two_answers, quiet, same_partition):
    frame, z = mixed_table(two_groups, two_answers)
    frame.loc[3, "length"] = np.nan
    frame.loc[5, "town"] = None
    with quiet():
        model = BayesianTree(kinds={"visits": "count"}).fit(frame)
    same_partition(model.labels_, z)
    assert {type(block.family).__name__ for block in model._upper_tree.blocks} == {
        "GaussianDiagonal",
        "Poisson",
        "Bernoulli",
        "Categorical",
    }
    assert model.profiles_["visits"]["rate"][0] < 6 < model.profiles_["visits"]["rate"][1]
    assert "'length' (1), 'town' (1)" in model.fit_report_["missing"].message
    assert model.linkage_.shape == (79, 4) and len(model.log_odds_) == 79
    assert sum(model.n_clusters_posterior_.values()) == pytest.approx(1.0)


def test_predict_proba(two_groups):
    X, z = two_groups
    model = BayesianTree().fit(X)
    P = model.predict_proba([[-6.0, -6.0], [6.0, 6.0], [np.nan, np.nan]])
    assert P.shape == (3, 2) and np.allclose(P.sum(axis=1), 1.0)
    assert P[0, 0] > 0.99 and P[1, 1] > 0.99
    assert np.allclose(P[2], model.weights_) and np.allclose(model.weights_, [0.55, 0.45])
    assert np.array_equal(model.predict(X), model.labels_)
    assert (model.confidence_ > 0.99).all()


def test_one_group_is_one_cluster(global_random_seed):
    """Noise has no groups, and the tree says so."""
    rng = np.random.default_rng(global_random_seed)
    found = [BayesianTree().fit(rng.normal(size=(60, 2))).n_clusters_ for _ in range(10)]
    assert sum(n == 1 for n in found) >= 8, found


def test_n_clusters_is_obeyed(two_groups, one_warning):
    X, _ = two_groups
    for K in (1, 2, 5, 80):
        assert BayesianTree(n_clusters=K, learn_hyper=False).fit(X).n_clusters_ == K
    with one_warning("n_clusters is 100, and there are only 80 rows"):
        assert BayesianTree(n_clusters=100, learn_hyper=False).fit(X).n_clusters_ == 80


def test_units_and_layout_do_not_matter(two_groups, quiet):
    X, _ = two_groups
    expected = BayesianTree().fit(X)
    for scale, offset in [(1e200, 0.0), (1e-200, 0.0), (1.0, 1e9)]:
        with quiet():
            model = BayesianTree().fit(X * scale + offset)
        assert np.array_equal(model.labels_, expected.labels_)
    frozen = np.asfortranarray(X)
    frozen.setflags(write=False)
    for Y in (frozen, X[::-1][::-1], np.repeat(X, 2, axis=1)[:, ::2], X.tolist()):
        assert np.array_equal(BayesianTree().fit(Y).linkage_, expected.linkage_)


def test_permuted_rows_give_the_same_tree(two_groups, same_partition, global_random_seed):
    X, _ = two_groups
    order = np.random.default_rng(global_random_seed).permutation(80)
    model, other = BayesianTree().fit(X), BayesianTree().fit(X[order])
    same_partition(model.labels_[order], other.labels_)
    assert model.lower_bound_ == pytest.approx(other.lower_bound_, rel=1e-3)


def test_learning_raises_the_bound(two_answers):
    X, z = two_answers
    fixed, learned = (BayesianTree("bernoulli", learn_hyper=learn).fit(X) for learn in (False, True))
    assert learned.lower_bound_ > fixed.lower_bound_
    assert fixed.concentration_ == 1.0 and BayesianTree(concentration=0.4).fit(X).concentration_ == 0.4


def test_more_rows_than_the_exact_algorithm_takes(two_groups, same_partition, global_random_seed):
    X, z = two_groups
    model = BayesianTree("gaussian", max_exact=40, random_state=global_random_seed).fit(X)
    same_partition(model.labels_, z)
    again = BayesianTree("gaussian", max_exact=40, random_state=global_random_seed).fit(X)
    assert np.array_equal(model.linkage_, again.linkage_)


def test_groups_of_many_rows(global_random_seed):
    """1,500 rows: learned on a sample, grown in groups; four groups 8 standard deviations apart are found."""
    rng = np.random.default_rng(global_random_seed)
    z = rng.integers(4, size=1500)
    X = rng.normal(size=(1500, 2)) + 8.0 * np.array([[0, 0], [1, 0], [0, 1], [1, 1]])[z]
    model = BayesianTree(max_exact=600, random_state=global_random_seed).fit(X)
    assert model.n_clusters_ >= 4
    own = [np.bincount(z[model.labels_ == k]).max() for k in range(model.n_clusters_)]
    assert sum(own) > 1490 and model.weights_[3] > 0.15


# ---- the table of bad inputs -------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_row_02_infinity(two_groups, value):
    X, _ = two_groups
    X[5, 1] = value
    with pytest.raises(ValueError, match=r"column 'x1', row 5 .*replace inf"):
        BayesianTree().fit(X)


def test_row_04_all_missing_row(two_groups, one_warning):
    X, _ = two_groups
    X[3] = np.nan
    with one_warning("1 row without any observed value"):
        model = BayesianTree().fit(X)
    assert np.isfinite(model.lower_bound_) and len(model.labels_) == 80
    assert model.confidence_[3] == pytest.approx(model.weights_[model.labels_[3]])


def test_row_05_all_missing_column(two_groups, one_warning):
    X, _ = two_groups
    with one_warning("columns without any observed value are ignored: 'x1'"):
        model = BayesianTree("gaussian").fit(np.column_stack([X[:, :1], np.full(80, np.nan), X[:, 1:]]))
    assert np.array_equal(model.labels_, BayesianTree("gaussian").fit(X).labels_)


def test_row_06_everything_missing():
    with pytest.raises(ValueError, match=r"every cell is missing"):
        BayesianTree().fit(np.full((10, 3), np.nan))


def test_row_07_constant_column(two_groups, quiet, same_partition):
    X, z = two_groups
    with quiet():
        model = BayesianTree().fit(np.column_stack([X, np.full(80, 3.0)]))
    same_partition(model.labels_, z)


@pytest.mark.parametrize("value", [0.25, 1e9])
def test_row_08_identical_rows(quiet, value):
    with quiet():
        assert BayesianTree().fit(np.full((20, 3), value)).n_clusters_ == 1
        assert BayesianTree().fit([["a", "b"]] * 20).n_clusters_ == 1


def test_row_09_no_rows():
    with pytest.raises(ValueError, match=r"0 sample\(s\).*minimum of 1"):
        BayesianTree().fit(np.empty((0, 3)))


def test_row_10_one_row(quiet):
    with quiet():
        model = BayesianTree().fit([[1.5, 2.0]])
    assert model.labels_.tolist() == [0] and model.linkage_.shape == (0, 4)
    assert model.predict_proba([[1.5, 2.0]]).tolist() == [[1.0]]
    assert model.n_clusters_posterior_ == {1: 1.0}


def test_row_20_mixed_text_and_numbers():
    with pytest.raises(ValueError, match=r"column 'x0' mixes text"):
        BayesianTree().fit(np.array([[1, "a"], ["b", "a"], [2, "c"]], dtype=object))


def test_row_27_unseen_category(two_answers, one_warning):
    X = np.array(["no", "yes"])[two_answers[0]].astype(object)
    new = X[:5].copy()
    new[2, 1] = "perhaps"
    model = BayesianTree().fit(X)
    with one_warning("values not seen at fit are read as missing: 'x1' (1)"):
        model.predict(new)
    with pytest.raises(ValueError, match=r"'perhaps' was not seen"):
        BayesianTree(handle_unknown="error").fit(X).predict(new)


def test_row_28_feature_names(two_groups):
    frame = pd.DataFrame(two_groups[0], columns=["height", "weight"])
    model = BayesianTree().fit(frame)
    with pytest.raises(ValueError, match=r"now missing:\n- weight"):
        model.predict(frame[["height"]])


def test_row_33_duplicates_on_two_points(quiet):
    X = np.repeat([[0.0, 0.0], [1.0, 1.0]], 25, axis=0)
    with quiet():
        model = BayesianTree().fit(X)
    assert model.n_clusters_ == 2 and np.isfinite(model.lower_bound_)


def test_row_42_sparse_counts(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    P = np.array([[0.4, 0.4, 0.1, 0.1], [0.1, 0.1, 0.4, 0.4]])
    z = np.repeat([0, 1], 20)
    X = np.stack([rng.multinomial(60, P[k]) for k in z])
    model = BayesianTree("multinomial").fit(sp.csr_matrix(X))
    assert model.n_clusters_ == 2
    assert np.array_equal(model.labels_, BayesianTree("multinomial").fit(X).labels_)
    with pytest.raises(ValueError, match=r"toarray"):
        BayesianTree("poisson").fit(sp.csr_matrix(X))


def test_partly_seen_vectors_are_refused(two_groups):
    X, _ = two_groups
    X[3, 0] = np.nan
    with pytest.raises(
        ValueError, match=r"cannot complete partly observed vectors.*use a family that reads single"
    ):
        BayesianTree("gaussian_full").fit(X)
    with pytest.raises(ValueError, match=r"not conjugate.*Mixture"):
        BayesianTree("student").fit(X)


@pytest.mark.parametrize("parameters", [{"n_clusters": 0}, {"concentration": -1.0}, {"max_exact": 1}])
def test_bad_parameters(two_groups, parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        BayesianTree(**parameters).fit(two_groups[0])


def test_row_51_random_states(two_groups, global_random_seed):
    X, _ = two_groups
    for state in (
        None,
        0,
        np.random.RandomState(0),
        np.random.default_rng(global_random_seed),
        np.random.SeedSequence(0),
    ):
        BayesianTree(random_state=state, learn_hyper=False).fit(X)
    with pytest.raises(ValueError, match="random_state is -1"):
        BayesianTree(random_state=-1).fit(X)


def test_row_64_no_hidden_state(two_groups):
    X, _ = two_groups
    model = BayesianTree()
    with pytest.raises(NotFittedError):
        model.predict(X)
    first = model.fit(X).linkage_
    for other in (clone(model).fit(X), model.fit(X), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(other.linkage_, first)


def test_row_38_not_converged(two_answers):
    from sklearn.exceptions import ConvergenceWarning

    with pytest.warns(ConvergenceWarning, match="still learning hyper-parameters after 1 trees"):
        model = BayesianTree(max_iter=1, tol=0.0).fit(two_answers[0])
    assert not model.converged_


def test_a_failed_fit_changes_nothing(two_groups):
    X, _ = two_groups
    model = BayesianTree().fit(X)
    with pytest.raises(ValueError):
        model.fit(np.full((3, 2), np.inf))
    assert len(model.labels_) == 80


def test_save_and_load(tmp_path, two_groups, two_answers):
    frame, _ = mixed_table(two_groups, two_answers)
    model = BayesianTree(kinds={"visits": "count"}).fit(frame)
    model.save(tmp_path / "tree.npz")
    other = load(tmp_path / "tree.npz")
    for name in ("labels_", "linkage_", "log_odds_", "confidence_"):
        assert np.array_equal(getattr(model, name), getattr(other, name))
    assert np.array_equal(model.predict_proba(frame), other.predict_proba(frame))
    assert other.n_clusters_posterior_ == model.n_clusters_posterior_
    assert other.lower_bound_ == model.lower_bound_ and other.profiles_.keys() == model.profiles_.keys()


def test_a_file_that_does_not_fit_together_is_refused(tmp_path, two_groups):
    model = BayesianTree().fit(two_groups[0])
    pairs = model._fine_tree.pairs.copy()
    pairs[0] = [0, 99]
    model._fine_tree = model._fine_tree._replace(pairs=pairs)
    model.save(tmp_path / "tree.npz")
    with pytest.raises(ModelFileError, match=r"tree\.nodes\.pairs has the value"):
        load(tmp_path / "tree.npz")
