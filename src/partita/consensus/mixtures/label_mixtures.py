"""Consensus as a mixture of label vectors: what the estimators that fit one share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from partita.consensus.base import ConsensusEstimator, Found
from partita.consensus.labelings import Labelings
from partita.engines.climb.seeding import label_statistics
from partita.engines.passes.rows import Parameters, assign_rows, log_joint_rows, plug_in, predictive
from partita.estimator import RunningMixin
from partita.execution import ShardData
from partita.families import Block, Categorical
from partita.fitting.contract import EngineResult, Request
from partita.fitting.storage import check_hyper
from partita.metrics import perplexity
from partita.table import check_weights

__all__ = ["PSEUDO_COUNT", "LabelMixture", "label_block"]

PSEUDO_COUNT = 0.5  # of every label: Jeffreys' prior, and where its learning starts


def label_block(
    codes: np.ndarray, n_levels: np.ndarray, power: np.ndarray, alpha: float = PSEUDO_COUNT
) -> Block:
    """Labels as categorical columns: members count as their power says, and share one pseudo-count of a label.

    Examples
    --------
    >>> label_block(np.array([[0, 1]]), [2, 2], np.array([1.0, 0.5])).family.power
    array([1. , 0.5])
    """
    family = Categorical.default(n_levels, alpha=alpha, power=power, tied=True)
    data = codes if isinstance(codes, ShardData) else np.ascontiguousarray(codes)
    return Block(family, data, tuple(range(len(family.power))))


class LabelMixture(RunningMixin, ConsensusEstimator):
    """A consensus whose clusters are distributions over the labels of every member.

    Fitted: ``_family`` (the fields of a :class:`Categorical`), ``_counts`` (clusters x statistics),
    ``_log_weights`` and, where clusters are scored at their parameters rather than by their data, ``_theta``.
    """

    _array_laws: tuple[str, ...] = (
        "fitted._family.0 float (M) 0..",
        "fitted._family.1 int (M+1) 0..P rising total",
        "fitted._family.2 float (M) 0..",
        "fitted._counts float (K,P) 0..",
        "fitted._theta float (K,P) -inf",
        "fitted._log_weights float (K) -inf",
        "fitted.weights_ float (K) 0..1",
    )
    _confidence_kind = "posterior probability"
    _n_clusters_score = "criterion"
    _family: Sequence[Any]
    _counts: np.ndarray
    _log_weights: np.ndarray
    _theta: np.ndarray

    def _request(self, rngs: Sequence[np.random.Generator], **asked: Any) -> Request:
        """What an engine is asked for; the defaults are of parameters that it does not read."""
        silent: dict[str, Any] = {
            "exact": True, "learn_concentration": False, "learn_likelihood": False, "maximum_likelihood": False,
            "order": 1, "init": "seeds", "tol": 1e-5, "max_iter": 500, "debug": False,
        }  # fmt: skip
        return Request(**{**silent, "rngs": rngs, **asked})

    def _kept(
        self, fitted: EngineResult, family: Categorical
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """What ``Found`` keeps of a fit: by cluster, and as a whole."""
        clusters = {"_counts": fitted.statistics.S[0].T, "_log_weights": fitted.log_weights}
        if fitted.parameters is not None:
            clusters["_theta"] = fitted.parameters.thetas[0].T
        return clusters | {"weights_": np.exp(fitted.log_weights)}, {"_family": tuple(family)}

    def _one_labeling(self, labelings: Labelings, **attributes: Any) -> Found:
        """Of one member alone no mixture can tell the clusters from its labels: they are the consensus."""
        self.fit_report_.add(
            "one_labeling", "there is one labeling alone, and it is returned: nothing supports it"
        )
        block = label_block(labelings.codes, labelings.n_levels, labelings.member_weights)
        z, K = labelings.codes[:, 0].astype(np.int64), int(labelings.n_levels[0])
        statistics = label_statistics([block], labelings.weights, z, K)
        shares = statistics.n / statistics.n.sum()
        clusters = {"_counts": statistics.S[0].T, "_log_weights": np.log(shares), "weights_": shares}
        sure = np.ones(len(z))
        return Found(
            z,
            sure,
            n_iter=0,
            converged=True,
            clusters=clusters,
            attributes={"_family": tuple(block.family)} | attributes,
        )

    def _new_block(self, codes: np.ndarray) -> Block:
        return Block(Categorical(*self._family), np.ascontiguousarray(codes), tuple(range(codes.shape[1])))

    def _check_levels(self, columns: np.ndarray) -> None:
        super()._check_levels(columns)
        family = Categorical(*self._family)
        check_hyper(family)
        n_levels = np.array([self.schema_.of_kind("categorical")[m].n_levels for m in columns], np.int64)
        if (family.n_levels < n_levels).any():
            raise ValueError("the offsets of the family do not fit the levels of the members")

    def _log_scores(self, codes: np.ndarray) -> np.ndarray:
        block, rows = self._new_block(codes), np.arange(len(codes))
        counts = np.ascontiguousarray(self._counts.T)
        by_data = predictive([block], [counts], self._log_weights)
        if not hasattr(self, "_theta"):
            return by_data(rows)
        parameters = Parameters(self._log_weights, (np.ascontiguousarray(self._theta.T),))
        scores = log_joint_rows([block], parameters, rows)
        lost = np.flatnonzero(~np.isfinite(scores.max(axis=1)))
        if len(lost):  # labels that no cluster has together: pseudo-counts tell which of them comes closest
            scores[lost] = by_data(lost)
        return scores

    def _log_probabilities(self, codes: np.ndarray) -> np.ndarray:
        """Log p(labels of a row): the sum over clusters at the posterior means of the label probabilities."""
        family = Categorical(*self._family)
        S = self._counts.T
        spread = np.repeat(family.alpha, np.diff(family.offsets))[:, None]
        totals = S[family.offsets[:-1]] + (family.alpha * family.n_levels)[:, None]
        theta = np.log(S + spread) - np.log(np.repeat(totals, np.diff(family.offsets), axis=0))
        theta[family.offsets[:-1]] = 0.0
        plain = family._replace(power=np.ones_like(family.power))
        block = self._new_block(codes)._replace(family=plain)
        log_weights = self._log_weights - np.logaddexp.reduce(self._log_weights)
        return assign_rows(plug_in([block], Parameters(log_weights, (theta,))), len(codes)).log_likelihood

    def score_samples(self, X):
        """Log probability of the labels of each row: the sum over clusters at the posterior means, members independent
        given the cluster, and each counted once whatever its weight.

        Missing labels do not count; nor do those of members that took no part, or labels that were not there in
        ``fit``.

        Parameters
        ----------
        X : as in ``fit``, with the same members

        Returns
        -------
        ndarray (n_rows,)
        """
        return self._log_probabilities(self._new_codes(X))

    def perplexity(self, X, sample_weight=None):
        """``exp(-log p(Y) / observed labels)``: how many labels a member might as well have chosen from.

        At least 1; ``p(Y)`` is that of ``score_samples``. On rows held out of ``fit`` it says how well the model
        foresees labels.

        Parameters
        ----------
        X : as in ``fit``, with the same members
        sample_weight : array of shape (n_rows,), optional

        Returns
        -------
        float
        """
        codes = self._new_codes(X)
        weights = check_weights(sample_weight, len(codes))
        cells = float(weights @ (codes >= 0).sum(axis=1))
        return perplexity(float(weights @ self._log_probabilities(codes)), cells)
