"""Topchy's mixture model of clusterings (MM): EM over product-multinomials of labels."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from partita.consensus.base import Found
from partita.consensus.labelings import Labelings
from partita.consensus.mixtures.criteria import CRITERIA
from partita.consensus.mixtures.distinct import DistinctRows, distinct_rows
from partita.consensus.mixtures.label_mixtures import LabelMixture, label_block
from partita.engines.passes.rows import Assignment, assign_rows, plug_in, total_of
from partita.engines.run import Control
from partita.estimator import RUNNING_CONSTRAINTS, warn_user
from partita.families import Block
from partita.families.contract import n_parameters
from partita.fitting.climb import fit_em
from partita.fitting.contract import EngineResult
from partita.fitting.grain import spread_uncertain
from partita.partitions import FiniteDirichlet

MAX_TRIED = 30  # clusters that are tried without n_clusters
PATIENCE = 4  # numbers of clusters that are tried after the best one


class MixtureConsensus(LabelMixture):
    """Consensus by a finite mixture of label vectors (MM), fitted by expectation maximization.

    The labels that the members give to an object are independent given its cluster, which has a distribution over the
    labels of each member; missing labels are left out. The mixture is fitted on the distinct rows of the label matrix
    with their weights, which is exact.

    Good for: a known number of clusters, any number of objects, members that saw different objects. Not for: members
    that are copies of each other (every member counts as independent evidence; give such members smaller weights), or
    the uncertainty of the result.

    Parameters
    ----------
    n_clusters : int, default=None
        Number of clusters. None: ``criterion`` chooses it.
    max_clusters : int, default=None
        Largest number of clusters that is tried without ``n_clusters``; by default the largest number of clusters of a
        member, but at most 30.
    criterion : {"bic", "mdl", "icl"}, default="bic"
        The criterion for the number of clusters; the lowest value is the best. "bic"; "mdl": the length of the shortest
        code of clusters and labels, by normalized maximum likelihood; "icl": BIC plus twice the entropy of the clusters
        of all objects. Numbers are tried in increasing order until four in a row are no better.
    stop : {"likelihood", "assignments"}, default="likelihood"
        When EM has converged: the likelihood no longer increases, or no object changes its cluster.
    n_init : int, default=10
        Number of starts; the one with the highest likelihood is kept.
    max_iter : int, default=500
        Maximum number of iterations per start.
    tol : float, default=1e-7
        Stop when the log likelihood per object increases by less than ``tol`` in one iteration.
    noise : {"missing", "cluster", "singletons"}, default="missing"
        Meaning of the label -1: not seen, one further cluster of its member, or an object that is alone.
    handle_unknown : {"missing", "error"}, default="missing"
        What ``predict`` does with labels that were not present in ``fit``.
    random_state : None, int, RandomState, Generator or SeedSequence
        Source of randomness; the global generator is never used.
    time_limit : float, default=None
        Wall seconds for the whole fit, compilation included; no iteration begins after it.
    callback : callable, default=None
        Called after each iteration with a :class:`~partita.engines.run.Progress`; returning True stops the fit.
    keep_partial : bool, default=False
        Whether an interrupt (Ctrl-C) keeps the result so far instead of raising.
    n_jobs : int, default=None
        Number of threads; the result does not depend on it.
    executor : None, "threads", "processes", Dask client or address, default=None
        Where passes over chunks of rows run; the result does not depend on it.
    resume : path, default=None
        A folder that keeps the result of every pass: the same call after an interruption continues from there.
    verbose : bool, optional
        Whether to show the progress on standard error. None, the default, shows a bar in terminals and notebooks and
        nothing elsewhere; True prints lines where there is no terminal.

    Attributes
    ----------
    labels_ : ndarray (n_objects,)
        Cluster of each object; 0 is the largest cluster.
    n_clusters_ : int
        Number of clusters that have objects.
    confidence_ : ndarray (n_objects,)
        Probability of the object's cluster under the fitted mixture. It measures the agreement of the members, not the
        probability that the label is right.
    confidence_kind_ : str
        "posterior probability".
    member_weights_ : ndarray (n_members,)
        Powers on the likelihoods of the members, as given; 0 for members that took no part.
    weights_ : ndarray (n_components,)
        Share of each cluster.
    n_clusters_scores_ : dict
        Number of clusters -> value of the criterion; only the given number if ``n_clusters`` was given.
    log_likelihood_ : float
        Log likelihood of the labels, with weights.
    n_parameters_ : int
        Number of free parameters of the mixture.
    n_iter_, converged_, objective_trace_
        Number of iterations of the best start, whether it converged, and its objective by iteration.
    fit_report_ : FitReport
        What was unusual about the labels and the fit.
    n_features_in_, feature_names_in_, schema_
        The members.

    References
    ----------
    Topchy, Jain and Punch (2004), A mixture model for clustering ensembles, SDM; Kontkanen, Myllymaki, Buntine,
    Rissanen and Tirri (2005), An MDL framework for data clustering; Biernacki, Celeux and Govaert (2000), PAMI 22(7).

    Examples
    --------
    >>> from partita import MixtureConsensus
    >>> Y = [["a", 1, "x"], ["a", 1, "x"], ["b", 2, "y"], ["b", 2, "x"], ["b", None, "y"]] * 5
    >>> MixtureConsensus(n_clusters=2, random_state=0).fit(Y).labels_[:5]
    array([1, 1, 0, 0, 0])
    """

    _parameter_constraints = {
        **LabelMixture._parameter_constraints,
        "n_clusters": [None, Interval(Integral, 1, None, closed="left")],
        "max_clusters": [None, Interval(Integral, 1, None, closed="left")],
        "criterion": [StrOptions({"mdl", "bic", "icl"})],
        "stop": [StrOptions({"likelihood", "assignments"})],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        **RUNNING_CONSTRAINTS,
    }

    def __init__(
        self,
        n_clusters=None,
        *,
        max_clusters=None,
        criterion="bic",
        stop="likelihood",
        n_init=10,
        max_iter=500,
        tol=1e-7,
        noise="missing",
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
        self.n_clusters = n_clusters
        self.max_clusters = max_clusters
        self.criterion = criterion
        self.stop = stop
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.noise = noise
        self.handle_unknown = handle_unknown
        self.random_state = random_state
        self.time_limit = time_limit
        self.callback = callback
        self.keep_partial = keep_partial
        self.n_jobs = n_jobs
        self.executor = executor
        self.resume = resume
        self.verbose = verbose

    def _passes_over_shards(self) -> bool:
        return True

    def _fit_labelings(self, labelings: Labelings, rng: np.random.Generator, control: Control) -> Found:
        if len(labelings.n_levels) == 1 and self.n_clusters in (None, int(labelings.n_levels[0])):
            return self._one_labeling(labelings)
        distinct = distinct_rows(labelings)
        block = label_block(distinct.codes, labelings.n_levels, labelings.member_weights)
        fitted, assigned, curve = self._choose(block, distinct, labelings, rng, control)
        clusters, attributes = self._kept(fitted, block.family)
        if fitted.run.reason == "max_iter":
            self._say_not_converged()
        self._note_early_end(control.reason)
        K = len(fitted.log_weights)
        return Found(
            labels=distinct.spread(assigned.labels),
            confidence=distinct.spread(assigned.confidence),
            n_iter=fitted.n_iter,
            converged=fitted.run.converged,
            n_components=K,
            clusters=clusters,
            attributes=attributes
            | {
                "n_clusters_scores_": curve,
                "log_likelihood_": total_of(assigned.log_likelihood, distinct.weights),
                "n_parameters_": K - 1 + K * n_parameters(block.family),
                "objective_trace_": np.array(fitted.run.objectives),
                "_uncertain_objects": spread_uncertain(
                    assigned.uncertain, distinct.inverse, len(distinct.weights)
                ),
            },
        )

    def _choose(self, block: Block, distinct: DistinctRows, labelings: Labelings, rng: Any, control: Control):
        """The fit with the lowest criterion, its assignments, and the curve of the criterion."""
        curve: dict[int, float] = {}
        best: tuple[EngineResult, Assignment] | None = None
        weights, executor = distinct.weights, self._make_executor()
        for K in self._numbers(int(np.count_nonzero(weights)), labelings):
            fitted = fit_em([block], weights, self._ask(K, rng, distinct.objects, executor, control))
            assert fitted.parameters is not None
            scorer = plug_in([block], fitted.parameters)
            assigned = assign_rows(scorer, len(weights), uncertain=True, totals_of=weights)
            curve[K] = CRITERIA[self.criterion](block, weights, assigned, K)
            if best is None or curve[K] < min(list(curve.values())[:-1]):
                best = fitted, assigned
            if control.reason or K - min(curve, key=curve.__getitem__) >= PATIENCE:
                break
        assert best is not None
        lowest = min(curve, key=curve.__getitem__)
        if self.n_clusters is None and lowest == max(curve) and len(curve) > 1 and lowest < len(weights):
            self.fit_report_.add(
                "bound_reached",
                f"{lowest} clusters, the most that were tried, are the best by {self.criterion}: raise max_clusters",
                level="warning" if self.max_clusters is not None else "info",
            )
        return *best, curve

    def _numbers(self, n_distinct: int, labelings: Labelings) -> range:
        """The numbers of clusters that are tried."""
        if self.n_clusters is None:
            most = self.max_clusters or min(max(int(labelings.n_levels.max()), 2), MAX_TRIED)
            return range(1, min(int(most), n_distinct) + 1)
        if self.n_clusters > n_distinct:
            self.fit_report_.add(
                "few_rows",
                f"{self.n_clusters} clusters were asked for, and there are only {n_distinct} different rows of labels: "
                "at most that many are found",
                level="warning",
            )
        K = min(int(self.n_clusters), n_distinct)
        return range(K, K + 1)

    def _ask(self, K: int, rng: np.random.Generator, objects: Any, executor: Any, control: Control):
        return self._request(
            rng.spawn(self.n_init),
            n_components=K,
            objects=objects,
            executor=executor,
            control=control,
            prior=FiniteDirichlet(float(K), K),
            maximum_likelihood=True,
            tol=self.tol,
            max_iter=self.max_iter,
            stop="objective" if self.stop == "likelihood" else "assignments",
        )

    def _say_not_converged(self) -> None:
        self.fit_report_.add("not_converged", "the best start ended by max_iter, not by convergence")
        warn_user(
            f"{type(self).__name__} did not converge in {self.max_iter} iterations: raise max_iter or tol",
            ConvergenceWarning,
        )
