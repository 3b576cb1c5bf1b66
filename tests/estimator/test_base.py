"""The base class: forgetting of earlier fits, storage of fitted attributes, scikit-learn's tags."""

import copy
import json

import numpy as np
import pandas as pd
import pytest
from sklearn.base import ClusterMixin, TransformerMixin

from partita.estimator import TableEstimator, storage
from partita.partitions import DirichletProcess
from partita.trace import Trace

X = np.arange(12.0).reshape(6, 2)
FRAME = pd.DataFrame(X, columns=["a", "b"])


class Halves(ClusterMixin, TransformerMixin, TableEstimator):
    """Puts the first half of the rows into one cluster, and the second half into another one."""

    def __init__(self, with_trace=True, fails=False):
        self.with_trace = with_trace
        self.fails = fails

    def fit(self, X, y=None):
        with self._new_fit():
            table = self._read_training(X, None, None)
            self.labels_ = (np.arange(table.n_rows) >= table.n_rows // 2).astype(np.int64)
            if self.fails:
                raise RuntimeError("halfway")
            if self.with_trace:
                zeros = np.zeros(1)
                self.trace_ = Trace(self.labels_[None], zeros, zeros + 2, zeros, zeros, zeros)
            self.prior_ = DirichletProcess(2.0)
            self.scores_ = {2: 0.5, 3: -np.inf}
            self._hidden = [np.ones(2), (1, "a", None)]
            self._describe()
        return self

    def _describe(self):
        self.n_clusters_ = len(np.unique(self.labels_))

    def transform(self, X):
        return np.asarray(X)

    def get_feature_names_out(self, input_features=None):
        return np.array(["a", "b"], dtype=object)


class Listed(Halves):
    _stored = ("labels_", "trace_", "_hidden")
    _input_tags = {"positive_only": True, "categorical": False}

    def _restore(self, state):
        super()._restore(state)
        self._describe()


class Rebuilding(Halves):
    _rebuilt = ("n_clusters_",)

    def _restore(self, state):
        super()._restore(state)
        self._describe()


def through_json(state):
    """What a file does with a state."""
    arrays = {}
    document = json.dumps(storage._pack(state, arrays, "state"))
    return storage._unpack(json.loads(document), arrays)


def test_a_new_fit_forgets_the_earlier_one():
    model = Halves().fit(FRAME)
    assert hasattr(model, "trace_") and hasattr(model, "feature_names_in_")
    model.set_params(with_trace=False).set_output(transform="pandas").fit(X)
    assert not hasattr(model, "trace_") and not hasattr(model, "feature_names_in_")
    assert model.get_params() == {"with_trace": False, "fails": False}
    assert isinstance(model.transform(X), pd.DataFrame)  # the setting of set_output is not forgotten
    model._forget()
    assert set(vars(model)) == {"with_trace", "fails", "_sklearn_output_config"}


def test_parameters_of_a_base_class_are_not_forgotten():
    class Preset(Halves):
        def __init__(self, fails=False):
            super().__init__(with_trace=False, fails=fails)

    model = Preset().fit(X).fit(X)
    assert model.with_trace is False and set(model.get_params()) == {"fails"}


@pytest.mark.parametrize("fitted", [False, True])
def test_a_fit_that_fails_leaves_the_estimator_as_it_was(fitted):
    model = Halves()
    if fitted:
        model.fit(FRAME)
    model.set_params(fails=True)
    before = copy.copy(vars(model))
    with pytest.raises(RuntimeError, match="halfway"):
        model.fit(X)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())


@pytest.mark.parametrize("cls", [Halves, Listed, Rebuilding])
@pytest.mark.parametrize("with_trace", [False, True])
@pytest.mark.parametrize("data", [X, FRAME], ids=["array", "frame"])
def test_the_state_comes_back(cls, with_trace, data):
    model = cls(with_trace).fit(data)
    state = model._state()
    assert ("n_clusters_" in state["fitted"]) is (cls is Halves)
    again = cls(with_trace)
    again._restore(through_json(state))
    left_out = {"prior_", "scores_"} if cls is Listed else set()
    assert set(vars(again)) == set(vars(model)) - left_out
    assert again.labels_.tolist() == model.labels_.tolist() and again.n_clusters_ == 2
    assert again.schema_.to_dict() == model.schema_.to_dict()
    assert again._hidden[1] == (1, "a", None) and again._hidden[0].tolist() == [1.0, 1.0]
    if with_trace:
        assert isinstance(again.trace_, Trace)
    if cls is not Listed:
        assert again.prior_ == DirichletProcess(2.0) and again.scores_ == {2: 0.5, 3: -np.inf}
    assert set(vars(again.fit(X))) == set(vars(cls(with_trace).fit(X)))


def test_without_a_table_the_number_of_features_comes_back():
    model = Halves().fit(X)
    model.schema_, model.n_features_in_ = None, 6  # as estimators on ready similarities have it
    again = Halves()
    again._restore(through_json(model._state()))
    assert again.schema_ is None and again.n_features_in_ == 6


@pytest.mark.parametrize("cls", [Halves, Listed])
@pytest.mark.parametrize("name", ["fit", "with_trace", "_read_new", "schema_", "__class__"])
def test_a_state_sets_nothing_but_fitted_attributes(cls, name):
    state = Halves().fit(X)._state()
    state["fitted"] = {name: 1}
    with pytest.raises(ValueError, match=f"{name} is not a fitted attribute of {cls.__name__}"):
        cls()._restore(state)


def test_a_state_sets_only_the_attributes_that_are_listed():
    with pytest.raises(ValueError, match="is not a fitted attribute of Listed"):
        Listed()._restore(Halves().fit(X)._state())


def test_input_tags_are_those_of_all_bases():
    tags = Halves().__sklearn_tags__().input_tags
    assert tags.allow_nan and tags.categorical and tags.string and not tags.positive_only
    tags = Listed().__sklearn_tags__().input_tags
    assert tags.allow_nan and not tags.categorical and tags.string and tags.positive_only
