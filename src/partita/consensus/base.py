"""What all consensus estimators share: reading label matrices, settling the answer, new rows, storage."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp
from sklearn.base import ClusterMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from partita.consensus.labelings import (
    NOISE,
    Labelings,
    Members,
    code_members,
    gather,
    open_members,
    open_report,
    other_negatives,
    reading_options,
)
from partita.consensus.out_of_core import label_silent, read_sharded
from partita.estimator import FitReport, TableEstimator, as_generator, diagnose_chains
from partita.execution import ChunkSource, ShardData, find_chunks
from partita.fitting.out_of_core import predict_blocks
from partita.fitting.storage import checked_trace
from partita.labels import label_histograms, signatures
from partita.table import Schema, read_table

__all__ = ["ConsensusEstimator", "Found"]

CHUNK_ROWS = 1 << 16  # rows that are scored at a time
SMOOTHING = 0.5  # pseudo-count of a label where new rows are compared with finished clusters
NOT_SAVED = ("schema_", "fit_report_", "n_features_in_", "feature_names_in_", "diagnostics_")


class Found(NamedTuple):
    """What ``_fit_labelings`` returns; everything after ``confidence`` may be left out.

    ``labels`` are clusters 0, 1, ... in any order (the estimator puts the largest first), one for each row of the
    ``Labelings``; ``clusters`` holds arrays whose first axis is the cluster, ``attributes`` any other: both become
    attributes of the estimator under their names, ``clusters`` in the final order of the clusters.
    """

    labels: np.ndarray
    confidence: np.ndarray
    member_weights: np.ndarray | None = None  # of the columns of the Labelings; None: as given
    n_clusters_posterior: dict[int, float] | None = None
    n_iter: int | None = None
    converged: bool | None = None
    n_components: int | None = None  # keep so many clusters, objects or not; None: those that have objects
    clusters: dict[str, np.ndarray] = {}
    attributes: dict[str, Any] = {}


class ConsensusEstimator(ClusterMixin, TableEstimator):
    """Base of the estimators that make one clustering from many.

    A subclass

    - has the parameters ``noise``, ``handle_unknown`` and ``random_state`` beside its own, with
      ``_parameter_constraints = {**ConsensusEstimator._parameter_constraints, ...}``;
    - writes ``_fit_labelings(self, labelings, rng) -> Found``: ``labelings`` (:class:`Labelings`) holds only rows and
      members that take part, ``rng`` is a numpy Generator, and ``self.fit_report_.add(code, message, level=...)`` is
      open for notes (a note of level "warning" is warned of once, at the end of ``fit``);
    - may write ``_log_scores(self, codes) -> (rows x clusters)``, log of the weight of each cluster for coded rows
      with the columns of the ``Labelings`` (any constant a row), from the attributes it has put into ``Found``. Left
      out, new rows are compared with the label histograms of the finished clusters, and a row that was there in
      ``fit`` keeps its label;
    - extends ``_state`` and ``_restore`` if it keeps anything but arrays, numbers, text, dicts, lists and priors.

    The base sets ``labels_``, ``n_clusters_``, ``confidence_``, ``member_weights_``, ``fit_report_``, ``schema_``,
    ``n_features_in_`` (members) and, where found, ``n_clusters_posterior_``, ``n_iter_``, ``converged_``. Fitted
    attributes of an earlier ``fit`` are removed first.
    """

    _parameter_constraints: dict[str, Any] = {
        "noise": [StrOptions(set(NOISE))],
        "handle_unknown": [StrOptions({"missing", "error"})],
        "random_state": "no_validation",
    }

    noise: str
    handle_unknown: str
    _fitted_names: list[str]

    # ---- fitting -------------------------------------------------------------------------------------------

    def fit(self, X, y=None, sample_weight=None, member_weight=None):
        """Find the consensus of the labelings in X.

        Parameters
        ----------
        X : array or data frame (objects x members), or list or mapping of members
            Labels of any type; NaN, None and, by default, -1 are missing. In a list or mapping a member may also be an
            (objects x labels) matrix of memberships. A path (Parquet, Arrow, .npy), a memory map, a Dask collection
            or what :func:`partita.execution.open_chunks` has opened is read in blocks.
        y : ignored
        sample_weight : array of shape (n_objects,), optional
            How many objects each row stands for. A row of weight 0 takes no part, but gets a label.
        member_weight : array of shape (n_members,), optional
            How much each member counts; a member of weight 0 takes no part.

        Returns
        -------
        self
        """
        self._validate_params()
        with self._whole_or_not_at_all():
            self._forget()
            before = set(self.__dict__)
            rng = as_generator(getattr(self, "random_state", 0))
            labelings, codes = self._read_members(X, sample_weight, member_weight, rng)
            found = self._fit_labelings(labelings, rng)
            self._settle(found, labelings, codes)
            self._fitted_names = sorted(set(self.__dict__) - before)
        self.fit_report_.warn()
        return self

    def _fit_labelings(self, labelings: Labelings, rng: np.random.Generator) -> Found:
        raise NotImplementedError

    def _forget(self) -> None:
        for name in getattr(self, "_fitted_names", ()):
            self.__dict__.pop(name, None)
        self._fitted_names = []

    def _read_members(self, X, sample_weight, member_weight, rng) -> tuple[Labelings, np.ndarray]:
        """What takes part, and the codes of all rows in the same columns."""
        own = rng.spawn(1)[0]
        source = find_chunks(X)
        if source is not None:
            asked = isinstance(X, ChunkSource)
            X, codes = read_sharded(self, source, asked, sample_weight, member_weight)
            if codes is not None:
                return X, codes
        members = open_members(X, own)
        options = {"sample_weight": sample_weight, "estimator_name": type(self).__name__}
        table = read_table(members.X, "categorical", **options, **reading_options(self.noise))
        if self.noise != "missing" and other_negatives(table.schema):
            # refuses the cell, unless the container itself calls its values categories
            read_table(members.X, "categorical", **options, missing_code=-1)
        self._remember(table.schema, members.names)
        self.fit_report_ = open_report(table, self.noise)
        labelings, self._columns, codes = gather(table, members, self.noise, member_weight, self.fit_report_)
        return labelings, codes

    def _passes_over_shards(self) -> bool:
        """Whether the method can leave the codes in parts; others have them in memory."""
        return False

    def _remember(self, schema: Schema, names: tuple[str, ...] | None = None) -> None:
        super()._remember(schema)
        self._soft_names = names
        if names is not None:  # the schema is that of the hard members that stand for the soft ones
            self.n_features_in_ = len(names)
            del self.feature_names_in_

    def _settle(self, found: Found, labelings: Labelings, codes: np.ndarray) -> None:
        """The largest cluster first; labels for the rows that took no part; everything under its name."""
        sizes = np.bincount(found.labels, labelings.weights, minlength=found.n_components or 0)
        order = np.argsort(-sizes, kind="stable")
        if found.n_components is None:
            order = order[: np.count_nonzero(sizes)]
        place = np.full(len(sizes), -1)
        place[order] = np.arange(len(order))
        for name, values in found.clusters.items():
            setattr(self, name, np.ascontiguousarray(values[order]))
        for name, value in found.attributes.items():
            setattr(self, name, value)
        labels = place[found.labels]
        if self._by_histograms():
            self._keep_histograms(labelings, labels, len(order))
        if isinstance(codes, ShardData):
            labels, confidence = labels.astype(np.int64), np.array(found.confidence, dtype=np.float64)
            label_silent(self, codes, labelings.weights, labels, confidence)
            self.labels_, self.confidence_ = labels, confidence
        else:
            self.labels_, self.confidence_ = self._all_rows(labels, found.confidence, labelings.rows, codes)
        self.n_clusters_ = int(np.count_nonzero(sizes))
        self.member_weights_ = self._of_members(found.member_weights, labelings)
        for name in ("n_clusters_posterior", "n_iter", "converged"):
            if getattr(found, name) is not None:
                setattr(self, f"{name}_", getattr(found, name))

    def _all_rows(self, labels, confidence, rows, codes) -> tuple[np.ndarray, np.ndarray]:
        """Labels and confidence of the rows that took part, and for the others those of new rows."""
        if len(rows) == len(codes):
            return labels.astype(np.int64), np.array(confidence, dtype=np.float64)
        all_labels, all_confidence = np.empty(len(codes), np.int64), np.empty(len(codes))
        all_labels[rows], all_confidence[rows] = labels, confidence
        others = np.setdiff1d(np.arange(len(codes)), rows)
        proba = self._probabilities(codes[others])
        all_labels[others], all_confidence[others] = proba.argmax(axis=1), proba.max(axis=1)
        return all_labels, all_confidence

    def _of_members(self, found: np.ndarray | None, labelings: Labelings) -> np.ndarray:
        weights = labelings.member_weights if found is None else found
        return np.bincount(labelings.owners, weights, minlength=self.n_features_in_)

    # ---- new rows ------------------------------------------------------------------------------------------

    def predict(self, X):
        """The cluster of each row of new labels; a row without known labels goes to the largest cluster.

        Parameters
        ----------
        X : as in ``fit``, with the same members

        Returns
        -------
        ndarray (n_rows,)
        """
        source = find_chunks(X)
        if source is not None:
            return predict_blocks(self, source, "predict")
        codes = self._new_codes(X)
        labels = self._probabilities(codes).argmax(axis=1)
        if not self._by_histograms():
            return labels
        known = self._known_labels(codes)
        return np.where(known >= 0, known, labels)

    def predict_proba(self, X):
        """Probability of each cluster for each row of new labels.

        Parameters
        ----------
        X : as in ``fit``, with the same members

        Returns
        -------
        ndarray (n_rows, n_clusters)
        """
        source = find_chunks(X)
        if source is not None:
            return predict_blocks(self, source, "predict_proba")
        return self._probabilities(self._new_codes(X))

    def fit_predict(self, X, y=None, sample_weight=None, member_weight=None):
        """Fit, and return ``labels_``."""
        return self.fit(X, sample_weight=sample_weight, member_weight=member_weight).labels_

    def _new_codes(self, X) -> np.ndarray:
        check_is_fitted(self)
        members: Members = open_members(X, np.random.default_rng(0))
        if (members.names is None) != (self._soft_names is None):
            had, has = ("soft", "hard") if members.names is None else ("hard", "soft")
            raise ValueError(f"the members were {had} at fit and are {has} now: give them as they were")
        table = self._read_new(members.X, self.handle_unknown)
        codes, _ = code_members(table, self.noise, fitting=False)
        return codes[:, self._columns]

    def _probabilities(self, codes: np.ndarray) -> np.ndarray:
        parts = []
        for start in range(0, len(codes), CHUNK_ROWS):
            scores = self._log_scores(codes[start : start + CHUNK_ROWS])
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
        totals = np.add.reduceat(counts, offsets[:-1], axis=1)
        theta = np.log(counts + SMOOTHING) - np.repeat(
            np.log(totals + SMOOTHING * labelings.n_levels), labelings.n_levels, axis=1
        )
        powers = np.repeat(labelings.member_weights, labelings.n_levels)
        self._histogram_scores = np.ascontiguousarray((powers * theta).T)
        self._histogram_offsets = offsets[:-1]
        self._histogram_shares = np.log(np.maximum(sizes, SMOOTHING) / sizes.sum())

    def _log_scores(self, codes: np.ndarray) -> np.ndarray:
        scores = np.tile(self._histogram_shares, (len(codes), 1))
        for m, start in enumerate(self._histogram_offsets):
            seen = codes[:, m] >= 0
            scores[seen] += self._histogram_scores[start + codes[seen, m].astype(np.int64)]
        return scores

    def _known_labels(self, codes: np.ndarray) -> np.ndarray:
        """The label of each row that was there in ``fit``, -1 for the others."""
        known = len(self._known_rows)
        wide = np.promote_types(self._known_rows.dtype, codes.dtype)
        both = signatures(np.concatenate([self._known_rows.astype(wide), codes.astype(wide)]))
        labels = np.full(len(both.rows), -1)
        labels[both.inverse[:known]] = self._known
        return labels[both.inverse[known:]]

    # ---- scikit-learn and storage ----------------------------------------------------------------------------

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    def _state(self) -> dict[str, Any]:
        kept = {name: getattr(self, name) for name in self._fitted_names if name not in NOT_SAVED}
        return {"schema": self.schema_.to_dict(), "report": self.fit_report_.to_list(), "fitted": kept}

    def _restore(self, state: dict[str, Any]) -> None:
        fitted = state["fitted"]
        self._remember(Schema.from_dict(state["schema"]), fitted["_soft_names"])
        self.fit_report_ = FitReport.from_list(state["report"])
        for name, value in fitted.items():
            setattr(self, name, value)
        self._fitted_names = [*fitted, *(name for name in NOT_SAVED if hasattr(self, name))]
        n_modelled = len(self.schema_.of_kind("categorical"))
        columns = self._columns
        if columns.dtype.kind != "i" or not ((columns >= 0) & (columns < n_modelled)).all():
            raise ValueError(f"the columns {columns} are not those of the {n_modelled} members")
        if self.labels_.shape != self.confidence_.shape or self.labels_.dtype.kind != "i":
            raise ValueError("labels and confidence do not belong together")
        if "trace_" in fitted:
            self.trace_ = checked_trace(fitted["trace_"], len(self.object_rows_))
            provisional = "provisional" in self.fit_report_
            self.diagnostics_ = diagnose_chains(self.trace_, provisional=provisional)
