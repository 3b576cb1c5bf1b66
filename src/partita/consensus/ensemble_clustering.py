"""EnsembleClustering: many clusterings of a table and their consensus, in one estimator."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import ClusterMixin, clone
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from partita.consensus.base import ConsensusEstimator
from partita.engines.run import Control
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
from partita.estimator import (
    RUNNING_CONSTRAINTS,
    DataWarning,
    FitReport,
    GrainMixin,
    RunningMixin,
    as_generator,
)
from partita.estimator.describing import profiles_as_plain, profiles_from_plain
from partita.estimator.judging import REASONS
from partita.estimator.storage import part_state, restore_part
from partita.execution import mapped, read_whole
from partita.fitting.out_of_core import reads_chunks, without_rows
from partita.fitting.sampled import ReadsSample, SampledTable
from partita.table import Schema

# notes on the label matrix that do not concern the user's table: missing labels are objects that a member did not use
LABEL_MATRIX_NOTES = ("missing_code", "missing", "kinds", "constant", "execution")
MAX_ROWS = 200_000  # that members are fitted to
MIN_SECONDS = 1e-3  # time limit of the consensus if the members have used up that of the fit


def _has_proba(estimator: Any) -> bool:
    consensus = getattr(estimator, "consensus_", estimator.consensus)
    return consensus is None or hasattr(consensus, "predict_proba")


class EnsembleClustering(GrainMixin, RunningMixin, ClusterMixin, ReadsSample):
    """Cluster a table many times, and return the consensus of the clusterings.

    The members are generated as by :func:`partita.ensembles.generate` and combined by a consensus estimator.

    Good for: data on which one run of k-means depends on its start, on the number of clusters or on the columns. Not
    for: data on which all members make the same mistake (k-means on rings, say).

    Parameters
    ----------
    base : str, clusterer, or a sequence of them, default="kmeans"
        The algorithm: "kmeans", "minibatch_kmeans" (large tables), "ward", "gmm", "spectral", or a scikit-learn
        clusterer; the members use the algorithms of a sequence in turn.
    consensus : consensus estimator, optional
        The estimator that combines the members; by default :class:`~partita.Consensus`. A copy is fitted, as
        ``consensus_``.
    n_clusters : int, optional
        Number of clusters of the consensus. None: the consensus finds it.
    n_members : int, default=20
        Number of clusterings.
    member_clusters : int, pair, list or None, default=None
        Number of clusters of a member: a number; a pair ``(low, high)``, from which each member draws; a list, used in
        turn. None draws from 2 to the square root of the number of rows (and leaves a scikit-learn clusterer as it is).
    space : {"all", "subspace", "projection"}, default="all"
        Columns that a member uses: all, a random subset, or a random projection.
    rows : {"all", "bootstrap"} or float, default="all"
        Objects that a member uses: all, a bootstrap sample, or a share of them. The others have no label in it.
    max_exact : int, default=2000
        With more rows than this, "ward" and "spectral" use a random sample of this size.
    kinds : None, str, mapping or sequence, optional
        Kinds of columns ("real", "count", "binary", "categorical", "ordinal", "date", "ignore"), as in
        :class:`~partita.Mixture`; those that are not given are inferred.
    missing_codes : number, str, sequence or mapping, optional
        Values that mean missing, as in :class:`~partita.Mixture`.
    standardize : bool, default=True
        False leaves real and count columns in their own units.
    handle_unknown : {"missing", "error"}, default="missing"
        What ``predict`` does with categories that were not present in ``fit``.
    random_state : int, RandomState, Generator, SeedSequence or None, default=None
        Source of randomness; the global generator is never used.
    time_limit : float, optional
        Wall seconds for the whole fit; no member begins after it, and the consensus has the time that is left.
    callback : callable, optional
        Called after each member with a :class:`~partita.ensembles.MemberProgress`; returning True stops, and the
        members so far are combined.
    keep_partial : bool, default=False
        Whether an interrupt (Ctrl-C) combines the members so far instead of raising.
    n_jobs : int, optional
        Number of members that are fitted at a time; the answer does not depend on it.
    executor : None, "threads", "processes", Dask client or address, optional
        Where the members are fitted; the answer does not depend on it.
    resume : path, optional
        A folder that keeps the finished members: the same call after a kill continues from there. The base algorithms
        must be given by name.
    verbose : bool, optional
        Whether to show the progress on standard error. None, the default, shows a bar in terminals and notebooks and
        nothing elsewhere; True prints lines where there is no terminal.

    Attributes
    ----------
    labels_ : ndarray (n_rows,)
        Cluster of each row; 0 is the largest cluster.
    n_clusters_ : int
        Number of clusters.
    confidence_ : ndarray (n_rows,)
        How strongly the members support the label of each row (see the consensus estimator): agreement, not the
        probability that the label is right.
    confidence_kind_ : str
        What the confidence is, as in the consensus estimator.
    label_matrix_ : ndarray (n_rows, n_members)
        Labels of the members, -1 missing; of the sampled rows, if a sample was clustered.
    grain_ : Grain
        The tree of the consensus, if it has one: labels and support at every number of groups
        (:class:`partita.posterior.Grain`).
    alternatives_ : list of Alternative
        The best supported coarse (2 or 3), medium (4 to 8) and fine answers; see :meth:`at`.
    consensus_ : estimator
        The fitted consensus estimator.
    members_ : list of Member
        The fitted members.
    fit_report_ : FitReport
        Notes on the data and on the fit.
    n_features_in_, feature_names_in_, schema_
        Number, names and kinds of the columns.

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

    _array_laws: tuple[str, ...] = (
        "scaling.center float (F)",
        "scaling.scale float (F) 0..",
        "scaling.source int (F) 0..",
        "members.*.labels int (N) -1..",
        "members.*.columns int (f) 0..F-1",
        "members.*.projection float (...)",
        "members.*.predictor.* number (...)",
        "label_matrix int (N,M) -1..",
    )
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
        "missing_codes": "no_validation",
        "standardize": ["boolean"],
        "handle_unknown": [StrOptions({"missing", "error"})],
        "random_state": "no_validation",
        **RUNNING_CONSTRAINTS,
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
        missing_codes=None,
        standardize=True,
        handle_unknown="missing",
        random_state=None,
        time_limit=None,
        callback=None,
        keep_partial=False,
        n_jobs=None,
        executor=None,
        resume=None,
        verbose=None,
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
        self.missing_codes = missing_codes
        self.standardize = standardize
        self.handle_unknown = handle_unknown
        self.random_state = random_state
        self.time_limit = time_limit
        self.callback = callback
        self.keep_partial = keep_partial
        self.n_jobs = n_jobs
        self.executor = executor
        self.resume = resume
        self.verbose = verbose

    # ---- fitting -------------------------------------------------------------------------------------------

    def fit(self, X, y=None):
        """Fit the members and their consensus.

        Parameters
        ----------
        X : array or data frame
            The table, in any form that :func:`partita.table.read_table` reads. A path (Parquet, Arrow, .npy), a memory
            map, a Dask collection or a source that :func:`partita.execution.open_chunks` returned is read in chunks.
            Of a table of more than 200,000 rows, in memory or in chunks, a sample of so many is clustered; all rows
            are then labeled by the members, and these labels are combined.
        y : ignored

        Returns
        -------
        EnsembleClustering
        """
        self._validate_params()
        control: Any
        with self._control() as control, self._new_fit():
            read = self._read_sample(X, self.kinds, MAX_ROWS)
            table = read.table
            self._scaling = learn_scaling(table, standardize=self.standardize)
            features = Features(scaled(table, self._scaling), self._scaling, table.schema)
            rng = as_generator(self.random_state)
            recipe = Recipe(
                self.base, self.member_clusters, self.space, self.rows, "missing", max_exact=self.max_exact
            )
            with control.runs(self.n_members, "member", 1, is_limit=False):
                self.members_ = fit_members(  # the control passes any progress on to the callback
                    features, recipe, self.n_members, rng, self.n_jobs, control.after,
                    executor=self.executor, resume=self.resume, keep_partial=self.keep_partial,
                )  # fmt: skip
            self._note_early_end(control)
            self.label_matrix_ = self._labels_of_members(features.values)
            with warnings.catch_warnings():
                warnings.simplefilter(
                    "ignore", DataWarning
                )  # its notes become part of the report of this fit
                self.consensus_ = self._new_consensus(rng, control).fit(self._labels_to_combine(read))
            self._take_over()
            notes = getattr(self.consensus_, "fit_report_", ())
            self.fit_report_.notes += [note for note in notes if note.code not in LABEL_MATRIX_NOTES]
        self.fit_report_.warn()
        return self

    def _note_early_end(self, control: Control) -> None:
        if len(self.members_) < self.n_members:
            how = REASONS[control.reason or "interrupted"]
            self.fit_report_.add(
                "cut_short",
                f"the fit was stopped {how} after {len(self.members_)} of {self.n_members} members: these are combined",
            )

    def _labels_of_members(self, values: np.ndarray) -> np.ndarray:
        Y = np.column_stack([member.labels for member in self.members_])
        unseen = (Y < 0).all(axis=1)
        if unseen.any():  # no member used these objects: all members predict their labels
            Y[unseen] = self._predict_members(values[unseen])
        return Y

    def _labels_to_combine(self, read: SampledTable) -> Any:
        """The label matrix of all rows; where the members have seen a sample, they predict it chunk by chunk."""
        if read.everything is None:
            return self.label_matrix_
        light = without_rows(self)
        light.members_ = [member._replace(labels=member.labels[:0]) for member in self.members_]
        source = mapped(read.everything, light._new_labels, len(self.members_))
        return source if isinstance(self.consensus, (ConsensusEstimator, type(None))) else read_whole(source)

    def _predict_members(self, values: np.ndarray) -> np.ndarray:
        return np.column_stack([member.predict(values) for member in self.members_])

    def _new_consensus(self, rng: np.random.Generator, control: Control) -> Any:
        consensus = _default_consensus() if self.consensus is None else clone(self.consensus)
        known = consensus.get_params(deep=False)
        asked: dict[str, Any] = {}
        if self.n_clusters is not None:
            if "n_clusters" not in known:
                raise ValueError(
                    f"n_clusters is {self.n_clusters}, but {type(consensus).__name__} has no such parameter: omit it, "
                    "or choose another consensus estimator"
                )
            asked["n_clusters"] = self.n_clusters
        if known.get("random_state", 0) is None:
            asked["random_state"] = int(rng.integers(2**31))
        if self.time_limit is not None and known.get("time_limit", 0) is None:
            asked["time_limit"] = max(self.time_limit - control.seconds, MIN_SECONDS)
        if self.resume is not None and known.get("resume", 0) is None:
            asked["resume"] = Path(self.resume) / "consensus"
        if known.get("verbose", 0) is None:
            asked["verbose"] = self.verbose
        if "keep_partial" in known:
            asked["keep_partial"] = known["keep_partial"] or self.keep_partial
        return consensus.set_params(**asked)

    def _take_over(self) -> None:
        """Set the attributes that this estimator has in common with the consensus."""
        self.labels_ = np.asarray(self.consensus_.labels_)
        self.n_clusters_ = int(np.unique(self.labels_[self.labels_ >= 0]).size)
        for name in ("confidence_", "confidence_kind_"):
            if hasattr(self.consensus_, name):
                setattr(self, name, getattr(self.consensus_, name))

    def fit_predict(self, X, y=None):
        """Fit, and return ``labels_``."""
        return self.fit(X).labels_

    # ---- new rows ------------------------------------------------------------------------------------------

    def _new_labels(self, X) -> np.ndarray:
        check_is_fitted(self)
        return self._predict_members(scaled(self._read_new(X, self.handle_unknown), self._scaling))

    @reads_chunks
    def predict(self, X, at=None):
        """Cluster of each row: that of the consensus for the labels that the members predict.

        k-means and Gaussian mixtures label new rows by their own rule; for Ward's trees, spectral clustering and other
        clusterers without ``predict`` a row takes the label of the nearest row that was clustered.

        Parameters
        ----------
        X : array or data frame
        at : int or str, optional
            The scale, as in :meth:`at`, if the consensus has a grain.

        Returns
        -------
        ndarray (n_rows,)
        """
        Y = self._new_labels(X)
        return self.consensus_.predict(Y) if at is None else self._with_grain().predict(Y, at=at)

    @available_if(_has_proba)
    @reads_chunks
    def predict_proba(self, X, at=None):
        """Probability of each cluster for each row, as predicted by the consensus.

        Parameters
        ----------
        X : array or data frame
        at : int or str, optional
            The scale, as in :meth:`at`, if the consensus has a grain.

        Returns
        -------
        ndarray (n_rows, n_clusters)
        """
        Y = self._new_labels(X)
        return self.consensus_.predict_proba(Y) if at is None else self._with_grain().predict_proba(Y, at=at)

    # ---- the grain -------------------------------------------------------------------------------------------

    def _with_grain(self) -> Any:
        if not isinstance(self.consensus_, GrainMixin):
            name = type(self.consensus_).__name__
            raise AttributeError(
                f"{name} has no grain: use Consensus, LACA, EvidenceAccumulation, LWEA or NBCE"
            )
        return self.consensus_

    def _grow_grain(self) -> Any:
        return self._with_grain().grain_

    def _grain_confidence(self, groups: np.ndarray) -> np.ndarray | None:
        return self._with_grain()._grain_confidence(groups)

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
            "profiles": profiles_as_plain(vars(self).get("_profiles", [])),
        }

    def _restore(self, state: dict[str, Any]) -> None:
        self._remember(Schema.from_dict(state["schema"]))
        self.fit_report_ = FitReport.from_list(state["report"])
        self._scaling = Scaling(**state["scaling"])
        n_modeled = sum(column.kind != "ignore" for column in self.schema_.columns)
        if self._scaling.source.max(initial=0) >= n_modeled:
            raise ValueError("features come from columns that the table does not have")
        self.members_ = [member_from_state(saved) for saved in state["members"]]
        self.consensus_ = restore_part(state["consensus"])
        self.label_matrix_ = state["label_matrix"]
        if self.label_matrix_.shape[1] != len(self.members_):
            raise ValueError(
                f"the label matrix has {self.label_matrix_.shape[1]} columns for {len(self.members_)} members"
            )
        self._take_over()
        if state.get("profiles"):
            self._profiles = profiles_from_plain(state["profiles"], self._column_of)


def _default_consensus() -> Any:
    import partita.consensus

    return partita.consensus.Consensus()
