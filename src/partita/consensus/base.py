"""What all consensus estimators share: reading label matrices, fitted attributes, new rows, storage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import logsumexp
from sklearn.base import ClusterMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from partita.consensus.labelings import (
    NOISE,
    Labelings,
    code_members,
    gather,
    open_members,
    open_report,
    other_negatives,
    reading_options,
)
from partita.consensus.member_statistics import log_label_probabilities
from partita.consensus.on_device import read_on_device
from partita.consensus.out_of_core import (
    ShardReading,
    cluster_sizes,
    label_silent,
    read_sharded,
    renumbered,
)
from partita.consensus.reduction import Reduction, label_everything, reduce_rows
from partita.engines.passes.device_rows import DeviceCodes
from partita.engines.run import Control
from partita.estimator import RunningMixin, TableEstimator, as_generator, claim_folder, diagnose_chains
from partita.estimator.array_laws import trace_laws
from partita.estimator.judging import REASONS
from partita.execution import ChunkSource, ShardData, find_chunks, make_executor
from partita.execution.device import is_on_device
from partita.execution.later import mapped
from partita.fitting.engines import ENGINES
from partita.fitting.out_of_core import takes_chunks
from partita.fitting.storage import checked_trace
from partita.labels import label_histograms, signatures

CHUNK_ROWS = 1 << 16  # rows that are scored at a time
SMOOTHING = 0.5  # pseudo-count of a label in the label histograms of the finished clusters
# what `confidence_` can be; defined in the docstring of ConsensusEstimator
CONFIDENCE_KINDS = (
    "share of members",
    "membership",
    "posterior probability",
    "co-clustering probability",
    "probability and share of members",
)
# fitted arrays whose last axis is a level of a member
LEVEL_ARRAYS = {"_beta", "_folding", "_ballot", "_association", "_column_gains", "_log_probabilities"}


class Found(NamedTuple):
    """What ``_fit_labelings`` returns; everything after ``confidence`` is optional.

    ``labels`` are clusters 0, 1, ... in any order (the estimator puts the largest first), one for each row of the
    ``Labelings``; ``clusters`` holds arrays whose first axis is the cluster, ``attributes`` any other. Both become
    attributes of the estimator under their names, ``clusters`` in the final order of the clusters.
    """

    labels: Any
    confidence: Any
    confidence_kind: str | None = None  # a key of CONFIDENCE_KINDS; None: that of the class
    member_weights: np.ndarray | None = None  # of the columns of the Labelings; None: as given
    n_clusters_posterior: dict[int, float] | None = None
    n_iter: int | None = None
    converged: bool | None = None
    n_components: int | None = None  # keep so many clusters, objects or not; None: those that have objects
    sizes: np.ndarray | None = None  # of the clusters; None: they are counted
    clusters: dict[str, np.ndarray] = {}
    attributes: dict[str, Any] = {}


def required_n_clusters(model: Any) -> int:
    """The parameter ``n_clusters`` of a method that cannot find it."""
    if model.n_clusters is None:
        name = type(model).__name__
        raise ValueError(
            f"{name} needs n_clusters: give the number of clusters, as in {name}(n_clusters=3), or use Consensus, "
            "which finds it"
        )
    return int(model.n_clusters)


def labels_of_known(known_rows: np.ndarray, known: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Label of each row of codes that is one of the known rows, the last one of equal rows; -1 for the others.

    Examples
    --------
    >>> labels_of_known(np.array([[0, 1], [1, 1]]), np.array([5, 7]), np.array([[1, 1], [2, 0]])).tolist()
    [7, -1]
    """
    wide = np.promote_types(known_rows.dtype, codes.dtype)
    both = signatures(np.concatenate([known_rows.astype(wide), codes.astype(wide)]))
    labels = np.full(len(both.rows), -1)
    labels[both.inverse[: len(known_rows)]] = known
    return labels[both.inverse[len(known_rows) :]]


class ConsensusEstimator(ClusterMixin, TableEstimator):
    """Base of the estimators that make one clustering from many.

    A subclass

    - has the parameters ``noise``, ``handle_unknown`` and ``random_state`` beside its own, with
      ``_parameter_constraints = {**ConsensusEstimator._parameter_constraints, ...}``;
    - implements ``_fit_labelings(self, labelings, rng, control) -> Found``: ``labelings`` (:class:`Labelings`) holds
      only the rows and members that take part, ``rng`` is a numpy Generator, ``control`` may end the fit early
      (:class:`~partita.engines.run.Control`), and notes go to
      ``self.fit_report_.add(code, message, level=...)`` (a note of level "warning" is raised as a warning once, at the
      end of ``fit``);
    - says by ``_confidence_kind`` (or ``Found.confidence_kind``) what its confidence is;
    - may implement ``_log_scores(self, codes) -> (rows x clusters)``, the log weight of each cluster for coded rows
      with the columns of the ``Labelings`` (up to a constant per row), from the attributes it has put into ``Found``.
      Without it, new rows are compared with the label histograms of the finished clusters, and a row that was present
      in ``fit`` keeps its label;
    - extends ``_state`` and ``_restore`` if it keeps anything but arrays, numbers, text, dicts, lists and priors.

    Fitted attributes of an earlier ``fit`` are removed first. ``n_clusters_posterior_``, ``n_iter_`` and ``converged_``
    are set where the method finds them.

    Attributes
    ----------
    labels_ : ndarray (n_objects,)
        Cluster of each object; 0 is the largest cluster.
    n_clusters_ : int
        Number of clusters that have objects.
    confidence_ : ndarray (n_objects,)
        How strongly the members support the label of each object, from 0 to 1. It is agreement among the members, not
        the probability that the label is right: members that make the same mistake agree.
    confidence_kind_ : str
        What the confidence is. "share of members": the weighted share of the members that put the object with the
        other objects of its cluster. "membership": the part of the object that belongs to its cluster, where an object
        may belong to several. "posterior probability": the probability of its cluster under the fitted model.
        "co-clustering probability": the mean probability, over draws, of sharing a cluster with the other objects of
        its cluster. "probability and share of members": the mean of the probability of the label, of the share of
        members, and of the mean probability that two objects of one cluster belong together.
    member_weights_ : ndarray (n_members,)
        Weight of each member; 0 for members that took no part.
    fit_report_ : FitReport
        Notes on the labels and on the fit.
    n_features_in_, feature_names_in_, schema_
        Number, names and labels of the members.
    """

    _describes_members = True

    _parameter_constraints: dict[str, Any] = {
        "noise": [StrOptions(set(NOISE))],
        "handle_unknown": [StrOptions({"missing", "error"})],
        "random_state": "no_validation",
    }

    noise: str
    handle_unknown: str
    _confidence_kind = "share of members"
    _n_clusters_score = "score"  # what `n_clusters_scores_` holds, in words
    _rebuilt: ClassVar[tuple[str, ...]] = ("diagnostics_",)
    _fits_reduced: ClassVar[bool] = True  # to distinct rows or a sample, where there are too many rows
    _of_objects: ClassVar[tuple[str, ...]] = ("labels_", "confidence_")  # attributes with a row per object
    _array_laws: tuple[str, ...] = (
        "K = fitted.n_clusters_",
        "D = n_features_in",
        "fitted._columns int (M) 0..",
        "fitted.labels_ int (N) 0..K-1",
        "fitted.confidence_ float (N) 0..1 nan",
        "fitted.member_weights_ float (D) 0..",
        "fitted._n_levels int (M) 0..N+N",
        "fitted._powers float (M) 0..",
        "fitted._known_rows int (G,M) -1..N+N",
        "fitted._known int (G) 0..K-1",
        "fitted._histogram_scores float (L,K)",
        "fitted._histogram_offsets int (M) 0..L rising",
        "fitted._histogram_shares float (K)",
        "fitted.objective_trace_ float (T)",
        "fitted.object_rows_ int (O) 0..N-1",
        *trace_laws("fitted.trace_"),
        "fitted.prior_.* number (...) inf -inf",
    )
    trace_: Any  # of chains

    # ---- fitting -------------------------------------------------------------------------------------------

    def fit(self, X, y=None, sample_weight=None, member_weight=None):
        """Find the consensus of the labelings in X.

        Parameters
        ----------
        X : array or data frame (objects x members), or list or mapping of members
            Labels of any type; NaN, None and, by default, -1 are missing. In a list or mapping a member may also be an
            (objects x labels) matrix of memberships. A path (Parquet, Arrow, .npy), a memory map, a Dask collection
            or a source that :func:`partita.execution.open_chunks` returned is read in chunks.
        y : ignored
        sample_weight : array of shape (n_objects,), optional
            Number of objects that each row stands for. A row of weight 0 takes no part, but gets a label.
        member_weight : array of shape (n_members,), optional
            Weight of each member; a member of weight 0 takes no part.

        Returns
        -------
        self
        """
        self._validate_params()
        control = self._control() if isinstance(self, RunningMixin) else Control()
        with control, self._new_fit():
            rng = as_generator(getattr(self, "random_state", 0))
            labelings, codes = self._read_members(X, sample_weight, member_weight, rng)
            meanings = [(column.name, column.levels) for column in self.schema_.columns]
            weights = labelings.weights, labelings.rows, labelings.member_weights, labelings.owners
            claim_folder(self, (meanings, codes), weights)
            reduced = reduce_rows(labelings, codes, rng) if self._fits_reduced else None
            own = labelings if reduced is None else reduced.labelings
            found = self._fit_labelings(own, rng, control)
            self._settle(found, own, codes if reduced is None else reduced.codes)
            if reduced is not None:
                self._extend(reduced, labelings, codes)
        self.fit_report_.warn()
        return self

    def _claim_folder(self, table: Any) -> None:
        """Later, with the weights of the members."""

    def _fit_labelings(self, labelings: Labelings, rng: np.random.Generator, control: Control) -> Found:
        raise NotImplementedError

    def _read_members(self, X, sample_weight, member_weight, rng) -> tuple[Labelings, np.ndarray]:
        """The labelings that take part, and the codes of all rows in the same columns."""
        own = rng.spawn(1)[0]
        if is_on_device(X):
            read = read_on_device(X, sample_weight, member_weight, self._shard_reading(), type(self).__name__)
            self._remember(read.schema)
            self._name_members(None)
            self.fit_report_, self._columns = read.report, read.columns
            return read.labelings, read.codes
        source = find_chunks(X)
        if source is not None:
            asked = isinstance(X, ChunkSource)
            X, read = read_sharded(source, asked, sample_weight, member_weight, self._shard_reading())
            if read is not None:
                self._remember(read.schema)
                self._name_members(None)
                self.fit_report_, self._columns = read.report, read.columns
                return read.labelings, read.codes
        members = open_members(X, own)
        table = self._read_training(members.X, "categorical", sample_weight, **reading_options(self.noise))
        if self.noise != "missing" and other_negatives(table.schema):
            # raises for the cell, unless the container declares its values as categories
            self._read_training(members.X, "categorical", sample_weight, missing_codes=-1)
        self._name_members(members.names)
        self.fit_report_ = open_report(table, self.noise)
        labelings, self._columns, codes = gather(table, members, self.noise, member_weight, self.fit_report_)
        return labelings, codes

    def _shard_reading(self) -> ShardReading:
        """How this estimator reads matrices that are not in memory."""
        engine = ENGINES[getattr(self, "inference", "em")]
        return ShardReading(
            make_executor(getattr(self, "n_jobs", None), getattr(self, "executor", None)),
            getattr(self, "n_clusters", None),
            self.noise,
            self._passes_over_shards(),
            self._fits_reduced,
            engine.reads_columns_apart,
            bool(getattr(self, "verbose", False)),
        )

    def _passes_over_shards(self) -> bool:
        """Whether the method can pass over codes in chunks; the other methods hold them in memory."""
        return False

    def _name_members(self, names: tuple[str, ...] | None) -> None:
        """Keep the names of the members if some of them are soft, otherwise None."""
        self._soft_names = names
        if names is not None:  # the schema is that of the hard members that replace the soft ones
            self.n_features_in_ = len(names)
            del self.feature_names_in_

    def _settle(self, found: Found, labelings: Labelings, codes: np.ndarray) -> None:
        """Set the fitted attributes: the largest cluster first, and labels for the rows that took no part."""
        sizes = found.sizes
        if sizes is None:
            sizes = cluster_sizes(found.labels, labelings.weights, found.n_components or 0)
        order = np.argsort(-sizes, kind="stable")
        if found.n_components is None:
            order = order[: np.count_nonzero(sizes)]
        place = np.full(len(sizes), -1)
        place[order] = np.arange(len(order))
        for name, values in found.clusters.items():
            setattr(self, name, np.ascontiguousarray(values[order]))
        self._keep(found.attributes)
        in_place = isinstance(codes, ShardData)
        labels = mapped(found.labels, lambda values: renumbered(values, place, in_place=in_place))
        if self._by_histograms():
            self._keep_histograms(labelings, labels, len(order))
        if isinstance(codes, DeviceCodes):
            self._keep({"labels_": labels, "confidence_": found.confidence})
        elif isinstance(codes, ShardData):
            confidence = np.require(found.confidence, np.float64, "W")
            label_silent(self, codes, labelings.weights, labels, confidence)
            self.labels_, self.confidence_ = labels, confidence
        else:
            self.labels_, self.confidence_ = self._all_rows(labels, found.confidence, labelings.rows, codes)
        self.confidence_kind_ = found.confidence_kind or self._confidence_kind
        self.n_clusters_ = int(np.count_nonzero(sizes))
        self.member_weights_ = self._of_members(found.member_weights, labelings)
        for name in ("n_clusters_posterior", "n_iter", "converged"):
            if getattr(found, name) is not None:
                setattr(self, f"{name}_", getattr(found, name))

    def _extend(self, reduced: Reduction, labelings: Labelings, codes: Any) -> None:
        """From the rows that the method was fitted to, to all objects."""
        if reduced.row_of is not None:
            for name in self._of_objects:
                if hasattr(self, name):
                    setattr(self, name, getattr(self, name)[reduced.row_of])
            return
        assert reduced.sample is not None
        n = len(codes)
        self.fit_report_.add(
            "sample",
            f"of {n} rows too many are distinct: the clusters were found from a sample of {len(reduced.sample)} rows, "
            "and all rows were labeled as new rows are; there are no answers at other scales",
        )
        self.labels_, self.confidence_ = label_everything(
            self._labels_of, labelings, codes, max(int(self.labels_.max()) + 1, self.n_clusters_)
        )
        self.confidence_kind_ = "share of members"
        for name in self._of_objects:
            if name not in ("labels_", "confidence_") and hasattr(self, name):
                found = self.__dict__.pop(name)
                if found.dtype.kind == "f":  # of the rows of the sample alone
                    continue
                whole = np.full((n, *found.shape[1:]), -1, found.dtype)
                whole[reduced.sample] = found
                setattr(self, name, whole)

    def _all_rows(self, labels, confidence, rows, codes) -> tuple[np.ndarray, np.ndarray]:
        """Labels and confidence of the rows that took part; the other rows are labeled as new rows are."""
        if len(rows) == len(codes):
            return labels.astype(np.int64), np.array(confidence, dtype=np.float64)
        all_labels, all_confidence = np.empty(len(codes), np.int64), np.empty(len(codes))
        all_labels[rows], all_confidence[rows] = labels, confidence
        others = np.setdiff1d(np.arange(len(codes)), rows)
        proba = self._probabilities(codes[others])
        all_labels[others], all_confidence[others] = proba.argmax(axis=1), proba.max(axis=1)
        return all_labels, all_confidence

    def _note_early_end(self, reason: str) -> None:
        """Note that a loop was stopped before it converged."""
        if reason in REASONS:
            self.fit_report_.add(
                "cut_short", f"the fit was stopped {REASONS[reason]}: the best result so far is kept"
            )

    def _of_members(self, found: np.ndarray | None, labelings: Labelings) -> np.ndarray:
        weights = labelings.member_weights if found is None else found
        return np.bincount(labelings.owners, weights, minlength=self.n_features_in_)

    # ---- new rows ------------------------------------------------------------------------------------------

    @takes_chunks
    def predict(self, X):
        """Cluster of each row of new labels; a row without known labels is assigned to the largest cluster.

        Parameters
        ----------
        X : as in ``fit``, with the same members

        Returns
        -------
        ndarray (n_rows,)
        """
        return self._labels_of(self._new_codes(X))

    def _labels_of(self, codes: np.ndarray) -> np.ndarray:
        """Label of each coded row, as a new one."""
        labels = self._probabilities(codes).argmax(axis=1)
        if not self._by_histograms():
            return labels
        known = self._known_labels(codes)
        return np.where(known >= 0, known, labels)

    @takes_chunks
    def predict_proba(self, X):
        """Probability of each cluster for each row of new labels.

        Parameters
        ----------
        X : as in ``fit``, with the same members

        Returns
        -------
        ndarray (n_rows, n_clusters)
        """
        return self._probabilities(self._new_codes(X))

    def fit_predict(self, X, y=None, sample_weight=None, member_weight=None):
        """Fit, and return ``labels_``."""
        return self.fit(X, sample_weight=sample_weight, member_weight=member_weight).labels_

    def _new_codes(self, X) -> np.ndarray:
        check_is_fitted(self)
        members = open_members(X, np.random.default_rng(0))
        if (members.names is None) != (self._soft_names is None):
            had, has = ("soft", "hard") if members.names is None else ("hard", "soft")
            raise ValueError(f"the members were {had} in fit and are {has} now: give them as in fit")
        table = self._read_new(members.X, self.handle_unknown)
        codes, _ = code_members(table, self.noise, fitting=False)
        return codes[:, self._columns]

    def _probabilities(self, codes: np.ndarray) -> np.ndarray:
        return self._normalized(codes, self._log_scores)

    def _normalized(self, codes: np.ndarray, score: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Probabilities from log scores, chunk by chunk."""
        parts = []
        for start in range(0, len(codes), CHUNK_ROWS):
            scores = score(codes[start : start + CHUNK_ROWS])
            parts.append(np.exp(scores - logsumexp(scores, axis=1, keepdims=True)))
        return np.concatenate(parts)

    def _by_histograms(self) -> bool:
        return type(self)._log_scores is ConsensusEstimator._log_scores

    def _keep_histograms(self, labelings: Labelings, labels: np.ndarray, K: int) -> None:
        distinct = signatures(labelings.codes)
        self._known_rows, self._known = distinct.rows, labels[distinct.first]
        counts, offsets = label_histograms(
            labels, labelings.codes, labelings.n_levels, weights=labelings.weights, n_clusters=K
        )
        sizes = np.bincount(labels, labelings.weights, minlength=K)
        log_probabilities = log_label_probabilities(counts, offsets, SMOOTHING)
        powers = np.repeat(labelings.member_weights, labelings.n_levels)
        self._histogram_scores = np.ascontiguousarray((powers * log_probabilities).T)
        self._histogram_offsets = offsets[:-1]
        self._histogram_shares = np.log(np.maximum(sizes, SMOOTHING) / sizes.sum())

    def _log_scores(self, codes: np.ndarray) -> np.ndarray:
        scores = np.tile(self._histogram_shares, (len(codes), 1))
        for m, start in enumerate(self._histogram_offsets):
            seen = codes[:, m] >= 0
            scores[seen] += self._histogram_scores[start + codes[seen, m].astype(np.int64)]
        return scores

    def _known_labels(self, codes: np.ndarray) -> np.ndarray:
        """Label of each row that was present in ``fit``, -1 for the others."""
        return labels_of_known(self._known_rows, self._known, codes)

    # ---- scikit-learn and storage ----------------------------------------------------------------------------

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._name_members(self._soft_names)
        n_modeled = len(self.schema_.of_kind("categorical"))
        columns = self._columns
        if columns.dtype.kind != "i" or not ((columns >= 0) & (columns < n_modeled)).all():
            raise ValueError(f"the columns {columns} are not those of the {n_modeled} members")
        self._check_levels(columns)
        if self.labels_.shape != self.confidence_.shape or self.labels_.dtype.kind != "i":
            raise ValueError("labels_ and confidence_ have different shapes, or the labels are not integers")
        if hasattr(self, "trace_"):
            self.trace_ = checked_trace(self.trace_, len(self.object_rows_))
            provisional = "provisional" in self.fit_report_
            self.diagnostics_ = diagnose_chains(self.trace_, provisional=provisional)

    def _levels_used(self, n_levels: np.ndarray) -> np.ndarray:
        """The numbers of levels that arrays over levels must have at least, given those of the schema."""
        return n_levels

    def _check_levels(self, columns: np.ndarray) -> None:
        """Refuse arrays over the levels of the members that are too short for the labels of new rows."""
        known = vars(self)
        starts = {
            "_n_levels": lambda n: np.append(0, np.cumsum(n)),
            "_offsets": lambda offsets: offsets,
            "_histogram_offsets": lambda starts: np.append(starts, len(self._histogram_scores)),
        }
        n_levels = np.array([self.schema_.of_kind("categorical")[m].n_levels for m in columns], np.int64)
        for name in known.keys() & starts.keys():
            ends = starts[name](known[name])
            if (np.diff(ends) < self._levels_used(n_levels)).any():
                raise ValueError(f"{name} does not fit the levels of the members")
            for array in known.keys() & LEVEL_ARRAYS:
                if known[array].shape[-1] != ends[-1]:
                    raise ValueError(f"{array} has {known[array].shape[-1]} levels, {name} has {ends[-1]}")
