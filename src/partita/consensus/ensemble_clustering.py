"""From raw data to a consensus in one step."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import ClusterMixin, clone
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from partita.ensembles import (
    Features,
    Recipe,
    Scaling,
    fit_members,
    learn_scaling,
    member_from_state,
    member_state,
    scaled,
)
from partita.estimator import DataWarning, FitReport, TableEstimator, as_generator
from partita.estimator.storage import part_state, restore_part
from partita.table import Schema

# notes on the label matrix that say nothing about the user's table: holes are objects that a member did not draw
OF_OUR_MAKING = ("missing_code", "missing", "kinds", "constant")


def _has_proba(estimator: Any) -> bool:
    consensus = getattr(estimator, "consensus_", estimator.consensus)
    return consensus is None or hasattr(consensus, "predict_proba")


class EnsembleClustering(ClusterMixin, TableEstimator):
    """Cluster a table many times over, and return what the clusterings agree on.

    Raw data in, consensus out. Good where one run of k-means depends on its start, on the number of clusters or on
    the columns; of little use where all members make the same mistake (k-means on rings, say). The members are made
    by :func:`partita.ensembles.generate` and combined by a consensus estimator.

    Parameters
    ----------
    base : str, clusterer, or a sequence of them, default "kmeans"
        What clusters: "kmeans", "minibatch_kmeans" (large tables), "ward", "gmm", "spectral", or a scikit-learn
        clusterer; a sequence is taken in turn.
    consensus : consensus estimator, optional
        What combines the members; by default :class:`~partita.Consensus`. A copy is fitted, as ``consensus_``.
    n_clusters : int, optional
        Number of clusters of the consensus, where it is known. Left out, the consensus finds it.
    n_members : int, default 20
        Number of clusterings.
    member_clusters : int, pair, list or None
        Clusters of a member: a number; a pair ``(low, high)``, from which each member draws; a list, taken in turn.
        None draws from 2 to the square root of the rows (and leaves a clusterer of yours as it is).
    space : {"all", "subspace", "projection"}, default "all"
        What a member sees of the columns.
    rows : {"all", "bootstrap"} or float, default "all"
        Which objects a member sees: all, a bootstrap sample, or a share of them. Those it does not see miss its label.
    max_exact : int, default 2000
        "ward" and "spectral" see a sample of this size of a larger table.
    kinds : None, str, mapping or sequence, optional
        Kinds of columns ("real", "count", "binary", "categorical", "ignore"); what is left out is inferred.
    standardize : bool, default True
        False leaves real and count columns in their own units.
    handle_unknown : {"missing", "error"}, default "missing"
        What ``predict`` does with categories that were not seen in ``fit``.
    random_state : None, int, RandomState, Generator or SeedSequence
        Source of randomness; the global generator is never touched.
    n_jobs : int, optional
        Members at a time (threads); the answer does not depend on their number.
    callback : callable, optional
        Called after each member with a :class:`~partita.ensembles.MemberProgress`; returning True stops, and the
        members so far are combined.
    verbose : bool, default False
        Print a line a member to standard error.

    Attributes
    ----------
    labels_ : ndarray (n_rows,)
        Cluster of each row, the largest cluster first.
    n_clusters_ : int
        Number of clusters.
    confidence_ : ndarray (n_rows,)
        How much the members agree on each row's label (see the consensus estimator): no chance of being right.
    label_matrix_ : ndarray (n_rows, n_members)
        Labels that the members gave, -1 missing.
    consensus_ : estimator
        The fitted consensus, with all that it found.
    members_ : list of Member
        The fitted members.
    fit_report_ : FitReport
        What was unusual about the data and the fit.
    n_features_in_, feature_names_in_, schema_
        The table that was fitted.

    See Also
    --------
    partita.ensembles.generate : the members alone.

    Examples
    --------
    >>> from partita import EnsembleClustering
    >>> from partita.datasets import make_gaussian_clusters
    >>> planted = make_gaussian_clusters(150, n_clusters=3, separation=9.0, random_state=2)
    >>> model = EnsembleClustering(random_state=0).fit(planted.X)
    >>> model.n_clusters_
    3
    >>> bool((model.predict(planted.X) == model.labels_).all())
    True
    """

    _parameter_constraints: dict[str, Any] = {
        "base": "no_validation",
        "consensus": [None, HasMethods("fit")],
        "n_clusters": [None, Interval(Integral, 1, None, closed="left")],
        "n_members": [Interval(Integral, 1, None, closed="left")],
        "member_clusters": "no_validation",
        "space": [StrOptions({"all", "subspace", "projection"})],
        "rows": [StrOptions({"all", "bootstrap"}), Interval(Real, 0, 1, closed="right")],
        "max_exact": [Interval(Integral, 2, None, closed="left")],
        "kinds": "no_validation",
        "standardize": ["boolean"],
        "handle_unknown": [StrOptions({"missing", "error"})],
        "random_state": "no_validation",
        "n_jobs": [None, Integral],
        "callback": [None, callable],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        base="kmeans",
        consensus=None,
        *,
        n_clusters=None,
        n_members=20,
        member_clusters=None,
        space="all",
        rows="all",
        max_exact=2000,
        kinds=None,
        standardize=True,
        handle_unknown="missing",
        random_state=None,
        n_jobs=None,
        callback=None,
        verbose=False,
    ):
        self.base = base
        self.consensus = consensus
        self.n_clusters = n_clusters
        self.n_members = n_members
        self.member_clusters = member_clusters
        self.space = space
        self.rows = rows
        self.max_exact = max_exact
        self.kinds = kinds
        self.standardize = standardize
        self.handle_unknown = handle_unknown
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.callback = callback
        self.verbose = verbose

    # ---- fitting -------------------------------------------------------------------------------------------

    def fit(self, X, y=None):
        """Make the members and find their consensus.

        Parameters
        ----------
        X : array or data frame
            The table; see :func:`partita.table.read_table` for what is understood.
        y : ignored

        Returns
        -------
        EnsembleClustering
        """
        self._validate_params()
        with self._whole_or_not_at_all():
            table = self._read_training(X, self.kinds, None)
            self._scaling = learn_scaling(table, standardize=self.standardize)
            features = Features(scaled(table, self._scaling), self._scaling, table.schema)
            rng = as_generator(self.random_state)
            recipe = Recipe(
                self.base, self.member_clusters, self.space, self.rows, "missing", max_exact=self.max_exact
            )
            self.members_ = fit_members(
                features, recipe, self.n_members, rng, self.n_jobs, self.callback, self.verbose
            )
            self.label_matrix_ = self._labels_of_members(features.values)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DataWarning)  # what it has to say comes with our own report
                self.consensus_ = self._new_consensus(rng).fit(self.label_matrix_)
            self._take_over()
            notes = getattr(self.consensus_, "fit_report_", ())
            self.fit_report_.notes += [note for note in notes if note.code not in OF_OUR_MAKING]
        self.fit_report_.warn()
        return self

    def _labels_of_members(self, values: np.ndarray) -> np.ndarray:
        Y = np.column_stack([member.labels for member in self.members_])
        unseen = (Y < 0).all(axis=1)
        if unseen.any():  # no member drew these objects: each says where it would put them
            Y[unseen] = self._predict_members(values[unseen])
        return Y

    def _predict_members(self, values: np.ndarray) -> np.ndarray:
        return np.column_stack([member.predict(values) for member in self.members_])

    def _new_consensus(self, rng: np.random.Generator) -> Any:
        consensus = _default_consensus() if self.consensus is None else clone(self.consensus)
        known = consensus.get_params(deep=False)
        asked: dict[str, Any] = {}
        if self.n_clusters is not None:
            if "n_clusters" not in known:
                raise ValueError(
                    f"n_clusters is {self.n_clusters}, and {type(consensus).__name__} has no such parameter: leave it "
                    "out, or choose a consensus that can be told"
                )
            asked["n_clusters"] = self.n_clusters
        if known.get("random_state", 0) is None:
            asked["random_state"] = int(rng.integers(2**31))
        return consensus.set_params(**asked)

    def _take_over(self) -> None:
        """What the consensus found, under the names of this estimator."""
        self.labels_ = np.asarray(self.consensus_.labels_)
        self.n_clusters_ = int(np.unique(self.labels_[self.labels_ >= 0]).size)
        if hasattr(self.consensus_, "confidence_"):
            self.confidence_ = self.consensus_.confidence_
        elif hasattr(self, "confidence_"):
            del self.confidence_

    def fit_predict(self, X, y=None):
        """Fit, and return ``labels_``."""
        return self.fit(X).labels_

    # ---- new rows ------------------------------------------------------------------------------------------

    def _new_labels(self, X) -> np.ndarray:
        check_is_fitted(self)
        return self._predict_members(scaled(self._read_new(X, self.handle_unknown), self._scaling))

    def predict(self, X):
        """Cluster of each row: the members label it, and the consensus reads their labels.

        k-means and Gaussian mixtures label new rows by their own rule; Ward's trees, spectral clustering and other
        clusterers without ``predict`` give a row the label of the nearest row that they saw.

        Parameters
        ----------
        X : array or data frame

        Returns
        -------
        ndarray (n_rows,)
        """
        Y = self._new_labels(X)
        return self.consensus_.predict(Y)

    @available_if(_has_proba)
    def predict_proba(self, X):
        """Probability of each cluster for each row, as the consensus gives it.

        Parameters
        ----------
        X : array or data frame

        Returns
        -------
        ndarray (n_rows, n_clusters)
        """
        Y = self._new_labels(X)
        return self.consensus_.predict_proba(Y)

    # ---- scikit-learn and storage ----------------------------------------------------------------------------

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    def _state(self) -> dict[str, Any]:
        return {
            "schema": self.schema_.to_dict(),
            "report": self.fit_report_.to_list(),
            "scaling": self._scaling._asdict(),
            "members": [member_state(member) for member in self.members_],
            "consensus": part_state(self.consensus_),
            "label_matrix": self.label_matrix_,
        }

    def _restore(self, state: dict[str, Any]) -> None:
        self._remember(Schema.from_dict(state["schema"]))
        self.fit_report_ = FitReport.from_list(state["report"])
        self._scaling = Scaling(**state["scaling"])
        self.members_ = [member_from_state(saved) for saved in state["members"]]
        self.consensus_ = restore_part(state["consensus"])
        self.label_matrix_ = state["label_matrix"]
        if self.label_matrix_.shape[1] != len(self.members_):
            raise ValueError(
                f"the label matrix has {self.label_matrix_.shape[1]} columns for {len(self.members_)} members"
            )
        self._take_over()


def _default_consensus() -> Any:
    import partita.consensus

    return partita.consensus.Consensus()
