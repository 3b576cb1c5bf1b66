"""Bayesian hierarchical clustering of mixed, incomplete tables."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

from sklearn.base import ClusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from partita.estimator import TableEstimator, as_generator, warn_user
from partita.fitting.families import assemble, plan_families, reassemble
from partita.fitting.request import kinds_asked
from partita.table import Table
from partita.trees.bayesian.cut import cut_nodes, in_height_order, leaf_labels, n_clusters_posterior
from partita.trees.bayesian.growing import check_blocks, grow_tree, starting_families
from partita.trees.bayesian.state import Answering, answering, restore_state, saved_state
from partita.trees.bayesian.state import probabilities as cluster_probabilities

__all__ = ["BayesianTree"]


class BayesianTree(ClusterMixin, TableEstimator):
    """Bayesian hierarchical clustering: a tree whose merges have probabilities.

    Starts from single rows and merges the two trees that are most probably one cluster of a Dirichlet process mixture,
    until one tree is left (Heller and Ghahramani 2005). It is cut where a merge is less likely than not, so the number
    of clusters need not be given, and data without groups give one cluster. Columns may be real, count, binary or
    categorical, in any mixture, with missing cells.

    Good for a few thousand rows whose groups have groups in them, and for a first answer without chains. Not for the
    posterior: merges are never undone, and the sum runs over the partitions of one tree only; use
    :class:`~partita.Mixture` for that.

    Parameters
    ----------
    family : "auto", str, pair or mapping, default "auto"
        The likelihood, as in :class:`~partita.Mixture`. Real columns with missing cells have independent columns
        ("gaussian") under "auto".
    n_clusters : int, optional
        Cut the tree into so many clusters, undoing the least likely merges from the root down. Left out, the odds
        decide.
    concentration : float, optional
        Concentration of the Dirichlet process; left out, it is learned (or 1 with ``learn_hyper=False``).
    learn_hyper : bool, default True
        Whether the hyper-parameters of the likelihood are learned: they climb the lower bound of the evidence by
        gradients through the tree, and trees are grown anew under them. With more than 600 rows that happens on a
        sample of 600, followed by one climb on the tree of all rows.
    max_exact : int, default 5000
        Up to so many rows the greedy algorithm is exact, in time O(N^2). Above, rows are first dealt out into groups of
        at most 500 by the tree of a sample; each group is exact, and the groups' trees are merged.
    max_iter : int, default 20
        Trees that are grown while hyper-parameters are learned.
    tol : float, default 1e-3
        Stop learning when a round raises the bound by less than this a row.
    kinds : None, str, mapping or sequence, optional
        Kinds of columns ("real", "count", "binary", "categorical", "ignore"); what is left out is inferred.
    exposure : str, optional
        Name of a column that holds the exposure of each row (for counts).
    handle_unknown : {"missing", "error"}, default "missing"
        What ``predict`` does with categories that were not seen in ``fit``.
    random_state : None, int, RandomState, Generator or SeedSequence
        Picks the samples; up to 600 rows nothing is random.

    Attributes
    ----------
    labels_ : ndarray (n_rows,)
        Cluster of each row, the largest cluster first. ``predict`` asks which cluster predicts a row best and may
        differ on rows between clusters, because merges are never undone.
    n_clusters_ : int
        Number of clusters.
    n_clusters_posterior_ : dict
        Probability of each number of clusters, over the partitions that the tree allows.
    confidence_ : ndarray (n_rows,)
        Probability of each row's own label, by ``predict_proba``.
    linkage_ : ndarray (n_rows - 1, 4)
        The tree as scipy's linkage matrix. The height of a merge is minus the log of its probability, raised to that of
        the merges below it where it is smaller.
    log_odds_ : ndarray (n_rows - 1,)
        Log odds of each merge of ``linkage_``: that its rows are one cluster, against all other partitions that the
        tree allows.
    lower_bound_ : float
        Lower bound of the log evidence of the Dirichlet process mixture (of standardised real columns).
    concentration_ : float
        The concentration, learned or given.
    n_iter_ : int
        Trees that were grown.
    converged_ : bool
        Whether learning ended before ``max_iter``.
    weights_ : ndarray (n_clusters,)
        Share of each cluster.
    profiles_ : dict
        For each column, what each cluster looks like, in the user's units and labels.
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

    _parameter_constraints = {
        "family": "no_validation",
        "n_clusters": [None, Interval(Integral, 1, None, closed="left")],
        "concentration": [None, Interval(Real, 0, None, closed="neither")],
        "learn_hyper": ["boolean"],
        "max_exact": [Interval(Integral, 2, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "kinds": "no_validation",
        "exposure": [None, str],
        "handle_unknown": [StrOptions({"missing", "error"})],
        "random_state": "no_validation",
    }

    _answering: Answering

    def __init__(
        self,
        family="auto",
        *,
        n_clusters=None,
        concentration=None,
        learn_hyper=True,
        max_exact=5000,
        max_iter=20,
        tol=1e-3,
        kinds=None,
        exposure=None,
        handle_unknown="missing",
        random_state=None,
    ):
        self.family = family
        self.n_clusters = n_clusters
        self.concentration = concentration
        self.learn_hyper = learn_hyper
        self.max_exact = max_exact
        self.max_iter = max_iter
        self.tol = tol
        self.kinds = kinds
        self.exposure = exposure
        self.handle_unknown = handle_unknown
        self.random_state = random_state

    def fit(self, X, y=None):
        """Grow the tree.

        Parameters
        ----------
        X : array, data frame or sparse count matrix
            The table; see :func:`partita.table.read_table` for what is understood.
        y : ignored

        Returns
        -------
        BayesianTree
        """
        self._validate_params()
        with self._whole_or_not_at_all():
            plan = plan_families(self.family, self.kinds)
            table = self._read_training(X, kinds_asked(plan, self.exposure), None)
            blocks = assemble(table, plan, self.exposure, completes=False)
            check_blocks(blocks)
            families = starting_families(blocks, plan, self.learn_hyper)
            grown, leaves = grow_tree(blocks, families, table.n_rows, self, as_generator(self.random_state))
            self._settle(grown, leaves, blocks, table)
        if not self.converged_:
            warn_user(
                f"{type(self).__name__} was still learning hyper-parameters after {self.max_iter} trees: raise "
                "max_iter or tol",
                ConvergenceWarning,
            )
        self.fit_report_.warn()
        return self

    def _settle(self, grown: Any, leaves: Any, blocks: Any, table: Table) -> None:
        merges, self.linkage_ = in_height_order(grown.merges)
        self.log_odds_ = merges.log_odds
        self.lower_bound_, self.concentration_ = grown.bound, grown.concentration
        self.n_iter_, self.converged_ = grown.n_iter, grown.converged
        self.n_clusters_posterior_ = n_clusters_posterior(merges)
        if self.n_clusters is not None and self.n_clusters > table.n_rows:
            self.fit_report_.add(
                "few_rows",
                f"{self.n_clusters} clusters were asked for, and there are only {table.n_rows} rows: each is its own",
                level="warning",
            )
        wanted = None if self.n_clusters is None else min(self.n_clusters, table.n_rows)
        self.labels_, nodes = leaf_labels(merges, cut_nodes(merges, wanted))
        self.n_clusters_ = len(nodes)
        blocks = [block._replace(family=family) for block, family in zip(blocks, grown.families, strict=True)]
        self._answering = answering(merges, nodes, leaves, blocks)
        self._describe()
        own = cluster_probabilities(self._answering, blocks, table.n_rows, own=self.labels_)
        self.confidence_ = own

    def _describe(self) -> None:
        found = self._answering
        self.weights_ = found.sizes[: found.n_clusters] / found.sizes[: found.n_clusters].sum()
        self.profiles_ = found.profiles(self.schema_)

    def predict_proba(self, X):
        """Probability of each cluster for each row, by descending the tree from the root.

        At every node above the clusters a row divides itself between the two sides as they predict it, each side by
        its own clusters and by the chance that they are one. A row without any observed cell gets the shares of the
        clusters.

        Parameters
        ----------
        X : array, data frame or sparse count matrix

        Returns
        -------
        ndarray (n_rows, n_clusters)
        """
        table = self._read_new(X, self.handle_unknown)
        families = [block.family for block in self._answering.blocks]
        blocks = reassemble(table, self._answering.blocks, families, self.exposure)
        return cluster_probabilities(self._answering, blocks, table.n_rows)

    def predict(self, X):
        """Most probable cluster of each row.

        Parameters
        ----------
        X : array, data frame or sparse count matrix

        Returns
        -------
        ndarray (n_rows,)
        """
        return self.predict_proba(X).argmax(axis=1)

    def fit_predict(self, X, y=None):
        """Fit, and return ``labels_``."""
        return self.fit(X).labels_

    def _state(self) -> dict[str, Any]:
        return saved_state(self)

    def _restore(self, state: dict[str, Any]) -> None:
        restore_state(self, state)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = self.family == "multinomial"
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags
