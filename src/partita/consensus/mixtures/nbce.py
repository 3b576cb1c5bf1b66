"""Nonparametric Bayesian clustering ensembles (NBCE): a mixture of label vectors with any number of clusters."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from partita.consensus.base import Found
from partita.consensus.labelings import Labelings
from partita.consensus.member_statistics import independent_members, relative_weights
from partita.consensus.mixtures.distinct import DistinctRows, distinct_rows
from partita.consensus.mixtures.label_mixtures import PSEUDO_COUNT, LabelMixture, label_block
from partita.consensus.mixtures.nbce_notes import (
    note_agreement,
    note_bound,
    note_few,
    note_run,
    singleton_share,
)
from partita.engines.passes.rows import Assignment, assign_rows, plug_in, predictive
from partita.engines.run import Control
from partita.estimator import RUNNING_CONSTRAINTS, HasClusterPrior
from partita.families import Block
from partita.fitting.chains import resolve_sampling_prior
from partita.fitting.climb import resolve_prior
from partita.fitting.contract import EngineResult
from partita.fitting.engines import ENGINES
from partita.fitting.grain import spread_uncertain
from partita.fitting.objects import rows_of_objects

DEFAULT_BOUND = 30  # clusters of truncated priors, or twice as many as the finest member has
FIRST_MEMBERS = 3.5  # independent members assumed for the first partition, where their number is estimated
N_ROUNDS = 2  # of estimating their number
INFERENCES = ("gibbs", "subclusters", "vb", "memoized", "cvb")


class NBCE(HasClusterPrior, LabelMixture):
    """Consensus by a Bayesian mixture of label vectors that finds its own number of clusters.

    Each cluster has a distribution over the labels of every member, with a symmetric Dirichlet prior. Its pseudo-count
    is shared by all members, as in the paper, because members are exchangeable a priori; it is learned from all of
    them. The partition has a nonparametric prior. Missing labels are left out.

    The likelihood counts every member as independent evidence. Real members are not independent: they split the same
    clusters in the same places, so the posterior is very certain of too many clusters. ``power`` corrects for this.

    Good for: the posterior of the partition and its number of clusters, members with missing labels. Not for: a quick
    result for hundreds of thousands of objects (use ``inference="vb"``).

    Parameters
    ----------
    prior : str or prior, default="dirichlet_process"
        Prior of the partition: "dirichlet_process", "stick_breaking" (truncated, TSB), "finite" (symmetric Dirichlet,
        FSD), "pitman_yor", "mfm", or a prior of :mod:`partita.partitions`. Variational engines accept the first three,
        and replace the first by the second.
    inference : {"gibbs", "subclusters", "vb", "memoized", "cvb"}, default="gibbs"
        "gibbs": chains of collapsed Gibbs sweeps and split-merge moves, which sample the posterior. "subclusters":
        chains whose steps run on many cores, for many objects (any prior but the truncated one). "vb": variational
        Bayes on the distinct rows. "cvb": its collapsed form.
    power : "independent", "estimated" or float, default="independent"
        Power on the marginal likelihood of every member (its label probabilities integrated out, so that ten copies of
        a member with the power 1/10 are exactly one member). "independent": 1, as in the paper. A number in (0, 1] is
        the part of an independent member that each member counts as. "estimated": the power at which, given a first
        partition, the joint surprise of the members equals that of independent members
        (:func:`partita.consensus.member_statistics.independent_members`).
    n_clusters : int, default=None
        Number of clusters, if it is known (some of them may stay empty).
    max_clusters : int, default=None
        Upper bound if ``n_clusters`` is not given. By default there is none for chains with an untruncated prior;
        otherwise it is 30, or twice the largest number of clusters of a member.
    concentration : float, default=None
        Concentration of the prior (the paper's alpha_0); None to learn it.
    smoothing : float, default=None
        Pseudo-count of every label (the paper's beta). None to learn it: chains sample it, other engines maximize the
        bound by Newton's method.
    order : {1, 2}, default=1
        Order of collapsed variational Bayes (1 is known as CVB0).
    n_chains : int, default=4
        Number of chains. Half of them start from one cluster, the other half from many.
    n_draws, burn_in : int, optional
        Number of draws that each chain keeps, and of iterations before the first draw. By default the chains run until
        they agree; see :class:`Mixture`.
    thin : int, default=1
        Number of iterations per draw.
    partition : {"votes", "vi", "binder", "nvi", "nid", "map"}, default="votes"
        How the draws of chains become one partition; see :class:`Mixture`.
    n_init : int, default=3
        Number of starts of variational engines; the one with the highest bound is kept.
    max_iter : int, default=500
        Maximum number of iterations per start.
    tol : float, default=1e-5
        Stop when the bound per object increases by less than ``tol`` in one iteration.
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
        A folder that keeps the result of every pass ("vb"), or every iteration of the chains ("subclusters"): the same
        call after an interruption continues from there.
    verbose : bool, optional
        Whether to show the progress on standard error. None, the default, shows a bar in terminals and notebooks and
        nothing elsewhere; True prints lines where there is no terminal.

    Attributes
    ----------
    labels_ : ndarray (n_objects,)
        Cluster of each object; 0 is the largest cluster. For chains it summarizes all draws (``partition``);
        ``predict`` returns the cluster that predicts a row best, which may differ for rows between clusters.
    n_clusters_ : int
        Number of clusters that have objects.
    n_clusters_posterior_ : dict
        Chains: probability of each number of clusters.
    n_clusters_prior_ : dict
        Chains: the same before the labels are seen. If the concentration is learned, this is the average over its
        prior.
    confidence_ : ndarray (n_objects,)
        Chains: mean probability that an object shares a cluster with the other objects of its cluster. Other engines:
        probability of its label. It measures agreement under the model, not the probability that the label is right.
    confidence_kind_ : str
        "co-clustering probability" for chains, otherwise "posterior probability".
    singleton_share_ : float
        Share of the objects that are alone in their cluster: the mean over the draws, or the share in ``labels_``.
    member_weights_ : ndarray (n_members,)
        Power on the likelihood of each member: its weight times ``power_``; 0 for members that took no part.
    power_ : float
        Power on the likelihood of a member of weight 1.
    trace_ : Trace
        Chains: the draws (labels, log joint, number of clusters, concentration, chain). Labels are of objects: a row
        of weight w is w objects.
    object_rows_ : ndarray
        Chains: the row of each object (rows without any label are left out).
    burn_in_ : int
        Chains: number of iterations before the first draw that is kept.
    diagnostics_ : Diagnostics
        Chains: a grade of the groups with its reasons, R-hat and effective sample sizes.
    lower_bound_ : float
        VB and CVB: lower bound of the log evidence.
    weights_ : ndarray (n_components,)
        Share of each cluster.
    prior_ : prior
        The prior with the learned concentration (chains: its geometric mean over all draws).
    smoothing_ : float
        The pseudo-count of every label, given or learned.
    n_iter_, converged_, objective_trace_
        Number of iterations, whether the fit converged, and its objective by iteration.
    fit_report_ : FitReport
        What was unusual about the labels and the fit.
    n_features_in_, feature_names_in_, schema_
        The members.

    References
    ----------
    Wang, Domeniconi and Laskey (2010), Nonparametric Bayesian clustering ensembles, ECML PKDD.

    Examples
    --------
    >>> import numpy as np
    >>> from partita import NBCE
    >>> z = np.repeat([0, 1, 2], 20)
    >>> Y = np.column_stack([z, z // 2, np.minimum(z, 1), z])
    >>> NBCE(n_chains=2, n_draws=20, burn_in=20, random_state=0).fit(Y).n_clusters_
    3
    """

    _parameter_constraints = {
        **LabelMixture._parameter_constraints,
        "prior": "no_validation",
        "inference": [StrOptions(set(INFERENCES))],
        "power": [StrOptions({"independent", "estimated"}), Interval(Real, 0, 1, closed="right")],
        "n_clusters": [None, Interval(Integral, 1, None, closed="left")],
        "max_clusters": [None, Interval(Integral, 1, None, closed="left")],
        "concentration": [None, Interval(Real, 0, None, closed="neither")],
        "smoothing": [None, Interval(Real, 0, None, closed="neither")],
        "order": [Interval(Integral, 1, 2, closed="both")],
        "n_chains": [Interval(Integral, 1, None, closed="left")],
        "n_draws": [None, Interval(Integral, 1, None, closed="left")],
        "burn_in": [None, Interval(Integral, 0, None, closed="left")],
        "thin": [Interval(Integral, 1, None, closed="left")],
        "partition": [StrOptions({"votes", "vi", "binder", "nvi", "nid", "map"})],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        **RUNNING_CONSTRAINTS,
    }

    def __init__(
        self,
        prior="dirichlet_process",
        inference="gibbs",
        *,
        power="independent",
        n_clusters=None,
        max_clusters=None,
        concentration=None,
        smoothing=None,
        order=1,
        n_chains=4,
        n_draws=None,
        burn_in=None,
        thin=1,
        partition="votes",
        n_init=3,
        max_iter=500,
        tol=1e-5,
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
        self.prior = prior
        self.inference = inference
        self.power = power
        self.n_clusters = n_clusters
        self.max_clusters = max_clusters
        self.concentration = concentration
        self.smoothing = smoothing
        self.order = order
        self.n_chains = n_chains
        self.n_draws = n_draws
        self.burn_in = burn_in
        self.thin = thin
        self.partition = partition
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

    # ---- fitting -------------------------------------------------------------------------------------------

    def _passes_over_shards(self) -> bool:
        return ENGINES[self.inference].reads_chunks and self.power != "estimated"

    def _fit_labelings(self, labelings: Labelings, rng: np.random.Generator, control: Control) -> Found:
        if len(labelings.n_levels) == 1 and self.n_clusters in (None, int(labelings.n_levels[0])):
            evidence = self.power if isinstance(self.power, Real) else 1.0
            alone = singleton_share(None, labelings.codes[:, 0], labelings.weights)
            return self._one_labeling(labelings, power_=float(evidence), singleton_share_=alone)
        executor = self._make_executor()
        powers, evidence = self._powers(labelings, rng, control, executor)
        rows = self._rows(labelings, self.inference)
        block = self._block(rows.codes, labelings, powers)
        fitted = self._run(self.inference, block, rows, labelings, rng, control, executor)
        block = block._replace(family=fitted.families[0])
        clusters, attributes = self._kept(fitted, block.family)
        assigned = _assign(fitted, block, rows.weights)
        assert assigned.uncertain is not None
        labels, sure = (assigned.labels, assigned.confidence) if fitted.labels is None else _drawn(fitted)
        attributes |= {
            "power_": evidence,
            "prior_": fitted.prior,
            "smoothing_": float(block.family.alpha[0]),
            "objective_trace_": np.array(fitted.run.objectives),
            "_uncertain_objects": spread_uncertain(assigned.uncertain, rows.inverse, len(rows.weights)),
        }
        converged = note_run(self, fitted, labelings, attributes)
        note_bound(self, fitted, labels)
        note_agreement(self, fitted, sure, rows.weights)
        labels = rows.spread(labels)
        attributes["singleton_share_"] = singleton_share(fitted.trace, labels, labelings.weights)
        return Found(
            labels=labels,
            confidence=rows.spread(sure),
            confidence_kind=None if fitted.trace is None else "co-clustering probability",
            member_weights=powers,
            n_clusters_posterior=_posterior(fitted),
            n_iter=fitted.n_iter,
            converged=converged,
            n_components=self._n_kept(fitted),
            clusters=clusters,
            attributes=attributes,
        )

    def _powers(
        self, labelings: Labelings, rng: np.random.Generator, control: Control, executor: Any
    ) -> tuple[np.ndarray, float]:
        """Power on the likelihood of each column, and what a member of weight 1 has."""
        if self.power != "estimated":
            evidence = 1.0 if self.power == "independent" else float(self.power)
            return evidence * labelings.member_weights, evidence
        rows = self._rows(labelings, "vb")
        weights = relative_weights(labelings.member_weights, labelings.owners)
        scale = labelings.member_weights / weights
        labels = float(rows.weights @ ((rows.codes >= 0) @ weights)) / float(rows.weights.sum())
        power = min(1.0, FIRST_MEMBERS / labels)
        for _ in range(N_ROUNDS):
            block = self._block(rows.codes, labelings, power * weights)
            fitted = self._run("vb", block, rows, labelings, rng, control, executor, n_init=1)
            z = _assign(fitted, block._replace(family=fitted.families[0]), rows.weights).labels
            votes = independent_members(z, rows.codes, labelings.n_levels, rows.weights, weights)
            power = votes / labels
        self.fit_report_.add(
            "independent_members",
            f"the {labels:.3g} labels that an object has are worth {votes:.3g} independent votes: each counts "
            f"{power:.3g}",
        )
        return power * weights, power / float(scale[0])

    def _rows(self, labelings: Labelings, inference: str) -> DistinctRows:
        if ENGINES[inference].merges_equal_rows:
            return distinct_rows(labelings)
        return DistinctRows(labelings.codes, labelings.weights)

    def _block(self, codes: np.ndarray, labelings: Labelings, powers: np.ndarray) -> Block:
        alpha = PSEUDO_COUNT if self.smoothing is None else float(self.smoothing)
        return label_block(codes, labelings.n_levels, powers, alpha)

    def _run(
        self,
        inference: str,
        block: Block,
        rows: DistinctRows,
        labelings: Labelings,
        rng: Any,
        control: Control,
        executor: Any,
        n_init: int | None = None,
    ) -> EngineResult:
        """One engine on these rows."""
        chains = ENGINES[inference].samples
        if chains:
            copies = np.zeros(int(labelings.rows[-1]) + 1)
            copies[np.asarray(labelings.rows)] = labelings.weights
            rows_of_objects(copies)  # an error names the user's row
        n_objects = max(len(rows.weights), int(labelings.weights.sum()))
        most = min(n_objects, self.max_clusters or max(DEFAULT_BOUND, 2 * int(labelings.n_levels.max())))
        n_components = min(self.n_clusters or most, n_objects)
        if self.n_clusters is not None and self.n_clusters > n_objects:
            note_few(self, n_objects)
        ask = self._request(
            rng.spawn(self.n_chains if chains else n_init or self.n_init),
            n_components=n_components,
            exact=self.n_clusters is not None,
            prior=self._prior(chains, most, n_components),
            learn_concentration=self.n_clusters is None and self.concentration is None,
            learn_likelihood=self.smoothing is None,
            order=self.order,
            tol=self.tol,
            max_iter=self.max_iter,
            n_chains=self.n_chains,
            n_draws=self.n_draws,
            burn_in=self.burn_in,
            thin=self.thin,
            limit=n_components if self.n_clusters or self.max_clusters else None,
            partition=self.partition,
            objects=rows.objects,
            executor=executor,
            control=control,
            folder=self.resume,
        )
        try:
            return ENGINES[inference].fit([block], rows.weights, ask)
        except FloatingPointError as error:
            raise ValueError(str(error)) from error

    def _prior(self, chains: bool, most: int, n_components: int) -> Any:
        n_clusters = None if self.n_clusters is None else n_components
        if chains:
            return resolve_sampling_prior(self.prior, n_clusters, most, self.concentration)
        exact = self.n_clusters is not None
        return resolve_prior(self.prior, self.inference, n_components, exact, self.concentration)

    def _n_kept(self, fitted: EngineResult) -> int | None:
        """A given number of clusters is kept, objects or not; chains keep those that their partition has."""
        if self.n_clusters is None or fitted.labels is not None:
            return None
        return len(fitted.log_weights)


def _posterior(fitted: EngineResult) -> dict[int, float] | None:
    """P(K) of chains; empty where no draw was kept."""
    if fitted.trace is None:
        return None
    return {} if fitted.provisional else fitted.trace.n_clusters_posterior


def _assign(fitted: EngineResult, block: Block, weights: np.ndarray) -> Assignment:
    if fitted.parameters is not None:
        score = plug_in([block], fitted.parameters)
    else:
        score = predictive([block], fitted.statistics.S, fitted.log_weights)
    return assign_rows(score, len(weights), uncertain=True, totals_of=weights)


def _drawn(fitted: EngineResult) -> tuple[np.ndarray, np.ndarray]:
    """Labels and confidence of chains; rows in parts that took no part (-1) get theirs in the end."""
    assert fitted.labels is not None and fitted.confidence is not None
    return np.maximum(fitted.labels, 0), np.nan_to_num(fitted.confidence)
