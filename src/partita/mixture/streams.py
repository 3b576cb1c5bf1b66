"""Mixtures of streams: a first batch that is fitted, and later batches that update the mixture."""

from __future__ import annotations

from typing import Any

import numpy as np

from partita.estimator import TableEstimator, as_generator
from partita.execution import find_chunks, make_executor
from partita.execution.device import is_on_device
from partita.fitting.fitted_attributes import KIND_OF_OTHERS, attributes_of
from partita.fitting.fitted_mixture import FittedMixture
from partita.fitting.streaming import (
    Reference,
    check_streamable,
    describe_drift,
    note_drift,
    start_stream,
    update_mixture,
)
from partita.table import check_weights

# not updated by later batches
OF_THE_FIRST_FIT = (
    "trace_", "burn_in_", "object_rows_", "diagnostics_", "lower_bound_", "_grain", "_second_opinion",
)  # fmt: skip


class LearnsFromBatches(TableEstimator):
    """Base of mixtures that read tables: ``partial_fit``."""

    random_state: Any
    n_jobs: int | None
    labels_: np.ndarray
    confidence_: np.ndarray
    weights_: np.ndarray
    weight_total_: float
    _fitted: FittedMixture
    _uncertain: Any  # rows that more than one cluster may contain
    _row_weights: np.ndarray | None  # None: all are 1
    _stream: Any  # the particles of later batches
    _reference: Reference  # the log densities of the last batch

    def partial_fit(self, X, y=None, sample_weight=None, forget=0.0):
        """Fit the first batch; update the mixture with later batches by a particle filter, row by row.

        The schema (columns, kinds, levels) and the hyper-parameters are those of the first batch, so it should be large
        enough to represent later batches. Clusters keep their numbers, and new clusters get the next numbers.
        ``labels_``, ``confidence_`` and ``log_likelihood_`` are those of the last batch; ``weights_``, ``profiles_``,
        ``n_clusters_`` and ``n_clusters_posterior_`` those of all rows so far. Earlier rows are not read again: only
        the statistics of the clusters are updated. A model that was saved and loaded continues from its estimated
        partition, without the other particles.

        Parameters
        ----------
        X : array, data frame or sparse count matrix
        y : ignored
        sample_weight : array of shape (n_rows,), optional
            Whole numbers: how often each row occurs.
        forget : float, default=0.0
            The share of their weight that all earlier rows lose before this batch. With 0.1 in each call, a row counts
            for a half after seven batches.

        Returns
        -------
        Mixture

        Notes
        -----
        ``drift_`` (not after the first batch) describes how the last batch differs from the rows before: the clusters
        it has opened, the weights of the clusters before it and their shares in the batch, the mean log density of its
        rows under the mixture before it, and the difference from that of the batch before in standard errors
        (``surprise``). New clusters, and a surprise of more than 4 standard errors, are notes of ``fit_report_``.

        Examples
        --------
        >>> import numpy as np
        >>> from partita import Mixture
        >>> rng = np.random.default_rng(0)
        >>> model = Mixture("gaussian", n_chains=2, n_draws=20, burn_in=20, random_state=0)
        >>> model.partial_fit(rng.normal(size=(60, 2))).n_clusters_
        1
        >>> model.partial_fit(rng.normal(size=(60, 2)) + 30).n_clusters_
        2
        >>> model.drift_.new_clusters, model.drift_.shares
        ((1,), array([0., 1.]))
        """
        if not hasattr(self, "_fitted"):
            self.fit(X, sample_weight=sample_weight)
            if find_chunks(X) is None and not is_on_device(X):
                densities = self.score_samples(X)
                self._reference = Reference.of(densities, check_weights(sample_weight, len(densities)))
            return self
        check_streamable(self._fitted)
        with self._whole_or_not_at_all():
            self._fetch_all()
            table = self._read_new(X, self._handle_unknown)
            weights = check_weights(sample_weight, table.n_rows)
            blocks = self._fitted.with_data(table)
            stream = getattr(self, "_stream", None)
            if stream is None:
                stream = start_stream(self._fitted, int(as_generator(self.random_state).integers(2**63)))
            executor = make_executor(self.n_jobs)
            now = Reference.of(self._fitted.log_densities(blocks, table.n_rows, executor), weights)
            before = self.weights_
            self._fitted, self._stream, posterior = update_mixture(
                self._fitted, stream, blocks, weights, forget
            )
            assigned = self._fitted.assign(blocks, table.n_rows, executor, uncertain=True)
            log_densities = self._fitted.log_densities(blocks, table.n_rows, executor)
            previous = getattr(self, "_reference", None)
            self.drift_ = describe_drift(
                before, now, previous, assigned.labels, weights, self._fitted.n_components
            )
            note_drift(self.fit_report_, self.drift_, previous)
            self._reference = now
            self._keep(attributes_of(self._fitted))
            self.n_clusters_, self.n_clusters_posterior_ = self._fitted.n_components, posterior
            self.labels_, self.confidence_ = assigned.labels, assigned.confidence
            self.confidence_kind_ = KIND_OF_OTHERS
            self.label_entropy_ = float(weights @ assigned.entropy)
            self.log_likelihood_ = float(weights @ log_densities)
            self.weight_total_ = (1.0 - forget) * self.weight_total_ + float(weights.sum())
            self._uncertain, self._row_weights = assigned.uncertain, weights
            for name in OF_THE_FIRST_FIT:
                self.__dict__.pop(name, None)
        return self
