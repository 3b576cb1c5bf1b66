"""Consensus as a mixture of label vectors: what the estimators that fit one share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from partita.consensus.base import Found
from partita.consensus.grain import ConsensusGrain
from partita.consensus.labelings import Labelings
from partita.engines.climb.seeding import label_statistics
from partita.engines.passes.device_rows import DeviceCodes
from partita.engines.passes.rows import (
    Parameters,
    Statistics,
    UncertainRows,
    assign_rows,
    log_joint_rows,
    predictive,
)
from partita.estimator import RunningMixin, sum_probabilities
from partita.estimator.array_laws import draw_laws, uncertain_laws
from partita.execution import ShardData
from partita.execution.later import mapped
from partita.execution.weights import are_ones
from partita.families import Block, Categorical
from partita.fitting.contract import EngineResult, Request
from partita.fitting.grain import (
    LACKS_UNCERTAIN,
    GrainEvidence,
    confidence_in,
    grow_grain,
    lacks_uncertain,
    no_uncertain_rows,
    renamed,
    unpack_uncertain,
)
from partita.fitting.out_of_core import reads_chunks
from partita.fitting.predictive import average_log_density
from partita.fitting.storage import check_array, check_hyper, pack_draws, unpack_draws
from partita.metrics import perplexity
from partita.posterior import Grain
from partita.table import check_weights

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
    data = codes if isinstance(codes, (ShardData, DeviceCodes)) else np.ascontiguousarray(codes)
    return Block(family, data, tuple(range(len(family.power))))


class LabelMixture(RunningMixin, ConsensusGrain):
    """A consensus whose clusters are distributions over the labels of every member.

    Fitted: ``_family`` (the fields of a :class:`Categorical`), ``_counts`` (clusters x statistics),
    ``_log_weights`` and, where clusters are scored at their parameters rather than by their data, ``_theta`` and
    ``_theta_log_weights``: for variational Bayes the expectations of logarithms, as in its responsibilities. For the
    grain, ``_uncertain`` holds the rows of X that more than one cluster may contain.

    Attributes
    ----------
    grain_ : Grain
        The tree over the clusters, from coarse groups to the clusters of ``labels_``: labels and support at every
        number of groups (:class:`partita.posterior.Grain`).
    alternatives_ : list of Alternative
        The best supported coarse (2 or 3), medium (4 to 8) and fine answers; see :meth:`at`.
    """

    _fits_reduced = False  # it has passes over the rows of its own
    _array_laws: tuple[str, ...] = (
        "fitted._family.0 float (M) 0..",
        "fitted._family.1 int (M+1) 0..P rising total",
        "fitted._family.2 float (M) 0..",
        "fitted._counts float (K,P) 0..",
        "fitted._theta float (K,P) -inf",
        "fitted._theta_log_weights float (K) -inf",
        "fitted._log_weights float (K) -inf",
        "fitted.weights_ float (K) 0..1",
        *draw_laws("fitted._draws"),
        *uncertain_laws("fitted._uncertain"),
        "fitted._row_weights float (N) 0..",
    )
    _confidence_kind = "posterior probability"
    _n_clusters_score = "criterion"
    _family: Sequence[Any]
    _counts: np.ndarray
    _log_weights: np.ndarray
    _theta: np.ndarray
    _theta_log_weights: np.ndarray
    _uncertain: Sequence[np.ndarray]
    _row_weights: np.ndarray | None  # None: all are 1
    _component_groups: np.ndarray  # for each component, the finest group of the grain
    _rebuilt = (*ConsensusGrain._rebuilt, "_component_groups")
    _draws: dict[str, Any] | None  # of chains: what probabilities of rows are averaged over, packed

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
            clusters["_theta_log_weights"] = fitted.parameters.log_weights
        clusters |= {
            "weights_": np.exp(fitted.log_weights),
            "_engine_clusters": np.arange(len(fitted.log_weights)),
        }
        return clusters, {"_family": tuple(family), "_draws": pack_draws(fitted.draws, [family])}

    def _one_labeling(self, labelings: Labelings, **attributes: Any) -> Found:
        """Of one member alone no mixture can tell the clusters from its labels: they are the consensus."""
        self.fit_report_.add(
            "one_labeling", "there is one labeling alone, and it is returned: nothing supports it"
        )
        block = label_block(labelings.codes, labelings.n_levels, labelings.member_weights)
        z, K = labelings.codes[:, 0].astype(np.int64), int(labelings.n_levels[0])
        statistics = label_statistics([block], labelings.weights, z, K)
        shares = statistics.n / statistics.n.sum()
        clusters = {
            "_counts": statistics.S[0].T,
            "_log_weights": np.log(shares),
            "weights_": shares,
            "_engine_clusters": np.arange(K),
        }
        sure = np.ones(len(z))
        return Found(
            z,
            sure,
            n_iter=0,
            converged=True,
            clusters=clusters,
            attributes={"_family": tuple(block.family)} | attributes,
        )

    def _settle(self, found: Found, labelings: Labelings, codes: Any) -> None:
        uncertain = found.attributes.pop("_uncertain_objects", None)
        super()._settle(found, labelings, codes)
        if uncertain is None:
            uncertain = no_uncertain_rows()
        kept, rows = self._engine_clusters, labelings.rows
        self._keep({"_uncertain": mapped(uncertain, lambda found: tuple(renamed(found, kept, rows)))})
        del self._engine_clusters
        if isinstance(labelings.codes, DeviceCodes):
            self._row_weights = None if are_ones(labelings.weights) else labelings.weights
            return
        if lacks_uncertain(UncertainRows(*self._uncertain), self.confidence_):
            self.fit_report_.add("uncertain_rows", LACKS_UNCERTAIN)
        if labelings.weights.strides == (0,) and are_ones(labelings.weights):
            self._row_weights = None
            return
        weights = np.zeros(len(self.labels_))
        weights[labelings.rows] = labelings.weights
        self._row_weights = None if np.all(weights == 1.0) else weights

    # ---- the grain -----------------------------------------------------------------------------------------

    def _grow_grain(self) -> Grain:
        evidence = self._grain_evidence()
        n = np.bincount(self.labels_, evidence.weights, minlength=len(self._log_weights)).astype(float)
        statistics = Statistics(n, (np.ascontiguousarray(self._counts.T),), np.nan, np.nan, 0.0)
        grain, self._component_groups = grow_grain(
            [Categorical(*self._family)], statistics, self.n_clusters_, evidence
        )
        return grain

    def _grain_evidence(self) -> GrainEvidence:
        return GrainEvidence(
            self.labels_,
            np.ones(len(self.labels_)) if self._row_weights is None else self._row_weights,
            UncertainRows(*self._uncertain),
            self.trace_.labels if hasattr(self, "trace_") else None,
            getattr(self, "object_rows_", None),
        )

    def _grain_confidence(self, groups: np.ndarray) -> np.ndarray:
        labels, onto = self.grain_.labels, self._component_groups
        return confidence_in(groups, onto, labels, self.confidence_, self._grain_evidence())

    def _group_probabilities(self, codes: np.ndarray, groups: np.ndarray) -> np.ndarray:
        return sum_probabilities(self._probabilities(codes), groups[self._component_groups])

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._uncertain = tuple(unpack_uncertain(self._uncertain, len(self.labels_), len(self._log_weights)))
        if self._row_weights is not None:
            check_array("weights of the rows", self._row_weights, self.labels_.shape)

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
        parameters = Parameters(self._theta_log_weights, (np.ascontiguousarray(self._theta.T),))
        scores = log_joint_rows([block], parameters, rows)
        lost = np.flatnonzero(~np.isfinite(scores.max(axis=1)))
        if len(lost):  # labels that no cluster has together: pseudo-counts tell which of them comes closest
            scores[lost] = by_data(lost)
        return scores

    def _log_probabilities(self, codes: np.ndarray) -> np.ndarray:
        """Log p(labels of a row), with the label probabilities of the clusters integrated out."""
        family, block = Categorical(*self._family), self._new_block(codes)
        plain = np.ones_like(family.power)
        draws = [
            draw._replace(families=(draw.families[0]._replace(power=plain),))
            for draw in unpack_draws(getattr(self, "_draws", None), [family])
        ]
        if draws:
            return average_log_density(draws, [block], len(codes))
        log_weights = self._log_weights - np.logaddexp.reduce(self._log_weights)
        score = predictive(
            [block._replace(family=family._replace(power=plain))],
            [np.ascontiguousarray(self._counts.T)],
            log_weights,
        )
        return assign_rows(score, len(codes)).log_likelihood

    @reads_chunks
    def score_samples(self, X):
        """Log probability of the labels of each row: members are independent given the cluster, and each is counted
        once whatever its weight.

        For chains this is the posterior predictive probability: an average over 20 draws, evenly spread over the draws
        of all chains, in each of which the row may be in any cluster or in a new one. For other engines it is the sum
        over the fitted clusters. Label probabilities are integrated out. Missing labels do not count; nor do those of
        members that took no part, or labels that were not there in ``fit``.

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
