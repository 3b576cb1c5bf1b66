"""Bayesian hierarchical clustering of mixed, incomplete tables."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from partita.engines.checkpoints import open_checkpoint
from partita.engines.passes.rows import Statistics, UncertainRows
from partita.engines.passes.values import joined_uncertain, uncertain_rows
from partita.estimator import (
    RUNNING_CONSTRAINTS,
    GrainMixin,
    RunningMixin,
    TableEstimator,
    as_generator,
    sum_probabilities,
    warn_user,
)
from partita.estimator.array_laws import uncertain_laws
from partita.estimator.judging import note_stop
from partita.fitting.families import assemble, plan_families, reassemble
from partita.fitting.grain import (
    GrainEvidence,
    confidence_in,
    joined_profiles,
    pack_uncertain,
    unpack_uncertain,
)
from partita.fitting.out_of_core import reads_chunks
from partita.fitting.real_columns import describe_steps
from partita.fitting.request import kinds_asked
from partita.fitting.storage import check_array
from partita.posterior.grain import check_joins
from partita.table import Table
from partita.trees.bayesian.cut import (
    cut_nodes,
    in_height_order,
    leaf_labels,
    most_probable_number,
    n_clusters_posterior,
)
from partita.trees.bayesian.grain import finest_nodes, owners, tree_grain
from partita.trees.bayesian.growing import check_blocks, grow_tree, starting_families, without_ties
from partita.trees.bayesian.judging import TreeDiagnostics, judge_tree
from partita.trees.bayesian.merging import Merges
from partita.trees.bayesian.prediction import (
    UpperTree,
    coarsened,
    fine_probabilities,
    pack_tree,
    probabilities,
    unpack_tree,
    upper_tree,
)
from partita.trees.choosing import limit_clusters


class BayesianTree(GrainMixin, RunningMixin, ClusterMixin, TableEstimator):
    """Bayesian hierarchical clustering: a tree whose merges have probabilities.

    Each row is a tree at first. In each step, the two trees whose rows most probably form one cluster of a Dirichlet
    process mixture are merged, until one tree is left (Heller and Ghahramani 2005). The greedy tree is
    then improved (see ``regrow``). The tree is cut where the number of clusters is most probable, so it need not be
    given, and data without groups give one cluster.
    Columns may be real, count, binary or categorical, in any combination, with missing cells.

    Good for a few thousand rows with nested groups, and for a first result without chains. Not for the full posterior
    (use :class:`~partita.Mixture`): merges are never undone, and only the partitions that are cuts of this tree are
    considered.

    Parameters
    ----------
    family : "auto", str, pair or mapping, default="auto"
        The likelihood, as in :class:`~partita.Mixture`. With "auto", real columns with missing cells are independent
        ("gaussian").
    n_clusters : int, optional
        Number of clusters: beginning at the root, the least probable merges are undone until there are so many. By
        default it is the most probable number in ``n_clusters_posterior_``.
    concentration : float, optional
        Concentration of the Dirichlet process; learned by default (or 1 with ``learn_hyper=False``).
    learn_hyper : bool, default=True
        Whether the hyper-parameters of the likelihood are learned. Two steps alternate: the lower bound of the evidence
        is maximized by a gradient method for the current tree, and a new tree is built with the result. With more than
        600 rows this is done on a sample of 600, followed by one maximization for the tree of all rows.
    regrow : bool, default=True
        Whether the greedy tree is improved. The greedy algorithm never undoes a merge, and its best partition can be
        far from the most probable one. Short chains search for a better partition, a tree is grown around it (a greedy
        tree in each of its clusters, and one above them), and the tree with the higher ``lower_bound_`` is kept. False
        is the algorithm as it was published.
    max_exact : int, default=5000
        Up to this number of rows, each merge is the best of all pairs of trees, in time O(N^2). More rows are first
        divided into groups of at most 500 by the tree of a sample; the tree of each group is built in this way, and
        then the trees of the groups are merged.
    max_iter : int, default=20
        Maximum number of trees that are grown while hyper-parameters are learned.
    tol : float, default=1e-3
        Learning stops when the bound per row increases by less than ``tol`` in one round.
    kinds : None, str, mapping or sequence, optional
        Kinds of columns ("real", "count", "binary", "categorical", "date", "ignore"), as in :class:`~partita.Mixture`;
        those that are not given are inferred.
    missing_codes : number, str, sequence or mapping, optional
        Values that mean missing, as in :class:`~partita.Mixture`.
    exposure : str, optional
        Name of a column that holds the exposure of each row (for counts).
    handle_unknown : {"missing", "error"}, default="missing"
        How ``predict`` treats categories that did not occur in ``fit``.
    random_state : None, int, RandomState, Generator or SeedSequence
        Source of randomness for the samples of rows; with at most 600 rows the result is deterministic.
    time_limit : float, optional
        Wall seconds; no round of learning begins after it. The tree of all rows is grown in any case.
    callback : callable, optional
        Called after each round of learning with a :class:`~partita.engines.run.Progress`, whose objective is the lower
        bound; returning True stops the learning.
    keep_partial : bool, default=False
        Whether an interrupt (Ctrl-C) ends the learning with the result so far instead of raising.
    n_jobs : int, optional
        Number of threads that grow the trees of groups of rows (above ``max_exact`` rows); the result does not depend
        on it.
    executor : None, "threads", "processes", Dask client or address, optional
        Where the trees of groups are grown; the result does not depend on it.
    resume : path, optional
        A folder in which the learned hyper-parameters are stored. If the process is killed, the same call continues
        from there.
    verbose : bool, optional
        Whether to show the progress on standard error. None, the default, shows a bar in terminals and notebooks and
        nothing elsewhere; True prints lines where there is no terminal.

    Attributes
    ----------
    labels_ : ndarray (n_rows,)
        Cluster of each row; cluster 0 is the largest. On the training rows ``predict``, which returns the most probable
        cluster, may differ for rows between clusters, because merges are never undone.
    n_clusters_ : int
        Number of clusters.
    n_clusters_posterior_ : dict
        Probability of each number of clusters, over the partitions that the tree allows: given the tree and the learned
        hyper-parameters. It is not the posterior of the number of clusters, which sums over all partitions;
        ``diagnostics_`` says whether searches without the tree find other numbers.
    diagnostics_ : TreeDiagnostics
        How far the groups can be relied on: ``grade`` ("firm", "fair" or "weak"), with its reasons in ``sentence``.
    confidence_ : ndarray (n_rows,)
        Probability of the label of each row, by ``predict_proba``.
    confidence_kind_ : str
        "posterior probability": ``confidence_`` is the probability of the row's label given the tree.
    linkage_ : ndarray (n_rows - 1, 4)
        The tree as a linkage matrix of scipy. The height of a merge is minus the log of its probability, but at least
        the height of the merges below it.
    log_odds_ : ndarray (n_rows - 1,)
        Log odds of each merge of ``linkage_``: the probability that its rows form one cluster, against that of all
        other partitions of these rows that the tree allows.
    lower_bound_ : float
        Lower bound of the log evidence of the Dirichlet process mixture (of standardized real columns).
    concentration_ : float
        The concentration, learned or given.
    n_iter_ : int
        Number of trees that were grown.
    converged_ : bool
        Whether learning ended before ``max_iter`` and was not stopped.
    weights_ : ndarray (n_clusters,)
        Share of each cluster.
    profiles_ : dict
        For each column, a description of each cluster in the user's units and labels.
    grain_ : Grain
        The upper part of the tree, with up to 64 groups: labels and support at every number of groups
        (:class:`partita.posterior.Grain`). It passes through ``labels_``.
    alternatives_ : list of Alternative
        The best supported coarse (2 or 3), medium (4 to 8) and fine answers; see :meth:`at`.
    fit_report_ : FitReport
        What was unusual about the data and the fit.
    n_features_in_, feature_names_in_, schema_
        The table that was fitted.

    References
    ----------
    Heller and Ghahramani, Bayesian hierarchical clustering, ICML 2005.

    Examples
    --------
    >>> import numpy as np
    >>> from partita import BayesianTree
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(-4, 1, (30, 2)), rng.normal(4, 1, (20, 2))])
    >>> model = BayesianTree().fit(X)
    >>> model.n_clusters_, model.linkage_.shape
    (2, (49, 4))
    >>> model.predict([[-4.0, -4.0], [4.0, 4.0]])
    array([0, 1])
    """

    _array_laws: tuple[str, ...] = (
        "K = fitted.n_clusters_",
        "fitted.labels_ int (N) 0..K-1",
        "fitted.confidence_ float (N) 0..1",
        "fitted.linkage_ float (n,4) 0..",
        "fitted.log_odds_ float (n) inf -inf",
        "tree.blocks.*.hyper.* number (...)",
        "tree.blocks.*.signal.* float (...)",
        "tree.blocks.*.coding.* float (...) nan",
        "tree.nodes.S.* float (s,F+F-1)",
        "tree.nodes.sizes float (F+F-1) 0..",
        "tree.nodes.pairs int (F-1,2) 0..F+F-1",
        "tree.nodes.log_odds float (F-1) inf -inf",
        "fine_clusters int (F) 0..K-1",
        "fine_confidence float (N) 0..1",
        *uncertain_laws("uncertain"),
    )
    _stored = (
        "labels_",
        "confidence_",
        "confidence_kind_",
        "linkage_",
        "log_odds_",
        "lower_bound_",
        "concentration_",
        "n_clusters_",
        "n_clusters_posterior_",
        "n_iter_",
        "converged_",
    )
    _parameter_constraints = {
        **RUNNING_CONSTRAINTS,
        "family": "no_validation",
        "n_clusters": [None, Interval(Integral, 1, None, closed="left")],
        "concentration": [None, Interval(Real, 0, None, closed="neither")],
        "learn_hyper": ["boolean"],
        "regrow": ["boolean"],
        "max_exact": [Interval(Integral, 2, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "kinds": "no_validation",
        "missing_codes": "no_validation",
        "exposure": [None, str],
        "handle_unknown": [StrOptions({"missing", "error"})],
        "random_state": "no_validation",
    }

    _upper_tree: UpperTree
    _fine_tree: UpperTree  # with the finest nodes of the grain in place of the clusters
    _fine_clusters: np.ndarray  # cluster of each of these nodes
    _fine_groups: np.ndarray  # finest group of the grain of each of these nodes
    _fine_confidence: np.ndarray  # probability of the finest group of each row
    _uncertain: UncertainRows  # in these nodes

    def __init__(
        self,
        family="auto",
        *,
        n_clusters=None,
        concentration=None,
        learn_hyper=True,
        regrow=True,
        max_exact=5000,
        max_iter=20,
        tol=1e-3,
        kinds=None,
        missing_codes=None,
        exposure=None,
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
        self.family = family
        self.n_clusters = n_clusters
        self.concentration = concentration
        self.learn_hyper = learn_hyper
        self.regrow = regrow
        self.max_exact = max_exact
        self.max_iter = max_iter
        self.tol = tol
        self.kinds = kinds
        self.missing_codes = missing_codes
        self.exposure = exposure
        self.handle_unknown = handle_unknown
        self.random_state = random_state
        self.time_limit = time_limit
        self.callback = callback
        self.keep_partial = keep_partial
        self.n_jobs = n_jobs
        self.executor = executor
        self.resume = resume
        self.verbose = verbose

    def fit(self, X, y=None):
        """Grow the tree.

        Parameters
        ----------
        X : array, data frame or sparse count matrix
            The table, as :func:`partita.table.read_table` reads it.
        y : ignored

        Returns
        -------
        BayesianTree
        """
        self._validate_params()
        with self._control() as control, self._new_fit():
            plan = without_ties(plan_families(self.family, self.kinds))
            table = self._read_training(X, kinds_asked(plan, self.exposure), None)
            blocks = assemble(table, plan, self.exposure, completes=False, finds_steps=True)
            for code, sentence in describe_steps(blocks):
                self.fit_report_.add(code, sentence)
            check_blocks(blocks)
            families = starting_families(blocks, plan, self.learn_hyper)
            about = ([block.data for block in blocks], *map(tuple, families), self.tol)
            grown, leaves = grow_tree(
                blocks,
                families,
                table.n_rows,
                self,
                as_generator(self.random_state),
                control=control,
                executor=self._make_executor(),
                checkpoint=open_checkpoint(self.resume, 0, about),
            )
            self._set_attributes(grown, leaves, blocks, table)
        if grown.reason == "max_iter":
            warn_user(
                f"{type(self).__name__} was still learning hyper-parameters after {self.max_iter} trees: increase "
                "max_iter or tol",
                ConvergenceWarning,
            )
        self.fit_report_.warn()
        return self

    def _set_attributes(self, grown: Any, leaves: Any, blocks: Any, table: Table) -> None:
        merges, self.linkage_ = in_height_order(grown.merges)
        self.log_odds_ = merges.log_odds
        self.lower_bound_, self.concentration_ = grown.bound, grown.concentration
        self.n_iter_, self.converged_ = grown.n_iter, grown.reason == "converged"
        note_stop(self.fit_report_, grown.reason, f"hyper-parameters were learned on {grown.n_iter} trees")
        self.n_clusters_posterior_ = n_clusters_posterior(merges)
        if self.n_clusters is None:
            wanted = most_probable_number(self.n_clusters_posterior_)
        else:
            wanted = limit_clusters(self.n_clusters, table.n_rows, self.fit_report_)
        self.labels_, nodes = leaf_labels(merges, cut_nodes(merges, wanted))
        self.n_clusters_ = len(nodes)
        blocks = [block._replace(family=family) for block, family in zip(blocks, grown.families, strict=True)]
        self._fine_tree, self._fine_clusters, own = self._finest_level(merges, nodes, leaves, blocks)
        self._describe()
        self._set_confidence(blocks, own)
        self.diagnostics_ = judge_tree(self.labels_, grown.others, table, self.n_clusters)
        if self.diagnostics_.grade == "weak":
            self.fit_report_.add("weak", self.diagnostics_.sentence, level="warning")

    def _finest_level(self, merges: Merges, nodes: Any, leaves: Any, blocks: Any) -> tuple[Any, ...]:
        """The tree above the finest nodes of the grain, the cluster of each of them, and the one of each row."""
        fine = finest_nodes(merges, self.n_clusters_)
        own = owners(merges, fine)[: len(self.labels_)]
        clusters = np.zeros(len(fine), np.int64)
        clusters[own] = self.labels_
        return upper_tree(merges, fine, leaves, blocks), clusters, own

    def _set_confidence(self, blocks: Any, own: np.ndarray) -> None:
        n_rows = len(own)
        self.confidence_, self._fine_confidence = np.empty((2, n_rows))
        uncertain = []
        for rows, P in fine_probabilities(self._fine_tree, self._fine_clusters, blocks, n_rows):
            at = np.arange(len(rows))
            self._fine_confidence[rows] = P[at, own[rows]]
            self.confidence_[rows] = sum_probabilities(P, self._fine_clusters)[at, self.labels_[rows]]
            uncertain.append(uncertain_rows(P, int(rows[0])))
        self._uncertain = joined_uncertain(uncertain)
        self.confidence_kind_ = "posterior probability"

    def _describe(self) -> None:
        self._upper_tree = found = coarsened(self._fine_tree, self._fine_clusters)
        self.weights_ = found.sizes[: found.n_clusters] / found.sizes[: found.n_clusters].sum()
        self.profiles_ = found.profiles(self.schema_)

    @reads_chunks
    def predict_proba(self, X, at=None):
        """Probability of each cluster for each row, by descending the tree from the root.

        At every node above the clusters the probability of a row is divided between the two sides in proportion to
        their predictive densities, averaged over whether the clusters of a side are one cluster. A row without any
        observed cell gets the shares of the clusters.

        Parameters
        ----------
        X : array, data frame or sparse count matrix
        at : int or str, optional
            The scale, as in :meth:`at`.

        Returns
        -------
        ndarray (n_rows, n_clusters)
        """
        groups = None if at is None else self._groups_at(at)[self._fine_groups]
        table = self._read_new(X, self.handle_unknown)
        families = [block.family for block in self._upper_tree.blocks]
        blocks = reassemble(table, self._upper_tree.blocks, families, self.exposure)
        if groups is None:
            return probabilities(self._upper_tree, blocks, table.n_rows)
        found = fine_probabilities(self._fine_tree, self._fine_clusters, blocks, table.n_rows)
        return np.concatenate([sum_probabilities(P, groups) for _, P in found])

    @reads_chunks
    def predict(self, X, at=None):
        """Most probable cluster of each row.

        Parameters
        ----------
        X : array, data frame or sparse count matrix
        at : int or str, optional
            The scale, as in :meth:`at`.

        Returns
        -------
        ndarray (n_rows,)
        """
        return self.predict_proba(X, at).argmax(axis=1)

    # ---- the grain -----------------------------------------------------------------------------------------

    def _grow_grain(self):
        merges = Merges(self.linkage_[:, :2].astype(np.int64), self.log_odds_)
        grain, self._fine_groups = tree_grain(merges, self.labels_, self.n_clusters_)
        return grain

    def _grain_confidence(self, groups):
        grain = self.grain_
        if np.array_equal(groups[grain.labels], self.labels_):
            return self.confidence_
        evidence = GrainEvidence(grain.labels, np.ones(len(grain.labels)), self._uncertain)
        return confidence_in(groups, self._fine_groups, grain.labels, self._fine_confidence, evidence)

    def _grain_profiles(self, groups):
        fine, G = self._fine_tree, self._fine_tree.n_clusters
        S = tuple(np.ascontiguousarray(s[:, :G]) for s in fine.S)
        statistics = Statistics(fine.sizes[:G], S, np.nan, np.nan, 0.0)
        return joined_profiles(fine.blocks, statistics, groups[self._fine_groups], self.schema_)

    def fit_predict(self, X, y=None):
        """Fit, and return ``labels_``."""
        return self.fit(X).labels_

    def _state(self) -> dict[str, Any]:
        return super()._state() | {
            "diagnostics": list(self.diagnostics_),
            "tree": pack_tree(self._fine_tree),
            "fine_clusters": self._fine_clusters,
            "fine_confidence": self._fine_confidence,
            "uncertain": pack_uncertain(self._uncertain),
        }

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        grade, agreement, second, numbers, trusted, sentence = state["diagnostics"]
        self.diagnostics_ = TreeDiagnostics(
            str(grade), float(agreement), float(second), tuple(numbers), bool(trusted), str(sentence)
        )
        self._fine_tree = unpack_tree(state["tree"], self.schema_)
        n_rows, G = len(self.labels_), self._fine_tree.n_clusters
        self._fine_clusters, self._fine_confidence = state["fine_clusters"], state["fine_confidence"]
        check_array("clusters of the finest nodes", self._fine_clusters, (G,), np.int64)
        check_array("confidence of the finest groups", self._fine_confidence, (n_rows,))
        if not np.array_equal(np.unique(self._fine_clusters), np.arange(self.n_clusters_)):
            raise ValueError(f"the finest nodes are not those of {self.n_clusters_} clusters")
        check_joins(self.linkage_[:, :2].astype(np.int64))
        if self.log_odds_.shape != (n_rows - 1,) or self.linkage_.shape != (n_rows - 1, 4):
            raise ValueError(f"the tree does not have {n_rows} leaves")
        self._uncertain = unpack_uncertain(state["uncertain"], n_rows, G)
        self._describe()

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.family == "multinomial"
        return tags
