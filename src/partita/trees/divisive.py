"""Trees from the root down: the widest group is divided in two, until every object is alone.

The width of a group is its diameter, the largest dissimilarity between two of its members. It is also the height of the
node, so heights decrease on the way down for any rule that divides the groups.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.cluster.hierarchy import linkage as scipy_linkage
from scipy.spatial.distance import squareform
from sklearn.cluster import KMeans
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from partita.engines.checkpoints import Checkpoint, open_checkpoint
from partita.engines.run import Control, iterate_from_checkpoint
from partita.estimator import RUNNING_CONSTRAINTS, RunningMixin
from partita.estimator.judging import note_stop
from partita.fitting.out_of_core import reads_chunks
from partita.trees.base import PairwiseTree
from partita.trees.pairs import distances_to, keep_points, keep_rows

# (members, random generator) -> True for the members that leave the group
Split = Callable[[np.ndarray, np.random.Generator], np.ndarray]


class _Divisive(RunningMixin, PairwiseTree):
    """Parameters of all divisive trees, and the divisions themselves."""

    _array_laws: tuple[str, ...] = (
        "fitted._top_children int (A,2) -1-n..A-1",
        "fitted._side_medoids int (B) 0..",
        "fitted._side_means float (X,Y)",
        "fitted._side_rows.points float (w,Z)",
        "fitted._side_rows.means float (u)",
        "fitted._side_rows.scales float (...) 0..",
        "fitted._side_rows.comparison.*.weights float (g) 0..",
        "fitted._side_rows.comparison.*.means float (g) 0..",
        "fitted._side_rows.comparison.*.centers float (g)",
        "fitted._side_rows.comparison.*.scales float (g) 0..",
        "fitted._side_rows.comparison.*.ranks.* float (r)",
        "fitted._side_rows.values.* number (B,g) nan",
    )
    _parameter_constraints: dict[str, Any] = {**PairwiseTree._parameter_constraints, **RUNNING_CONSTRAINTS}

    def __init__(
        self,
        n_clusters=None,
        *,
        metric="auto",
        criterion="lifetime",
        max_exact=5000,
        n_centers=1000,
        kinds=None,
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
        self.metric = metric
        self.criterion = criterion
        self.max_exact = max_exact
        self.n_centers = n_centers
        self.kinds = kinds
        self.random_state = random_state
        self.time_limit = time_limit
        self.callback = callback
        self.keep_partial = keep_partial
        self.n_jobs = n_jobs
        self.executor = executor
        self.resume = resume
        self.verbose = verbose

    def _divide(
        self,
        D: np.ndarray,
        split: Split,
        n_groups: int,
        rng: np.random.Generator,
        control: Control | None,
        about: str,
    ) -> np.ndarray:
        """The linkage matrix of all objects; groups that were not divided are joined by complete linkage."""
        if control is None:
            found = divide(D, split, n_groups, rng=rng)
        else:
            checkpoint = open_checkpoint(self.resume, 0, (D, n_groups, about))
            found = divide(D, split, n_groups, rng=rng, control=control, checkpoint=checkpoint)
            kept = f"there are {len(found.linkage) + 1} groups, whose members are joined by complete linkage"
            note_stop(self.fit_report_, found.reason, kept)
        return found.linkage if len(found.linkage) + 1 == len(D) else _with_members(D, found)


class Diana(_Divisive):
    """Divisive analysis: the widest group loses a splinter group, until every row is alone.

    The row with the largest mean dissimilarity to the others starts the splinter group, and other rows follow while
    they are nearer to the splinter group than to the remaining rows (Macnaughton-Smith et al. 1964). Means are over the
    *other* rows of a group. A split takes all members of a group into account, while a merge takes only two groups into
    account.

    Good for the few large groups at the top of a tree. Not for thousands of leaves: memory grows with the square of
    their number.

    Parameters
    ----------
    n_clusters : int, optional
        Number of clusters. By default ``criterion`` chooses it.
    metric : str or mapping, default="auto"
        How rows are compared, as in :class:`~partita.Agglomerative`; "precomputed" for given dissimilarities.
    criterion : {"lifetime", "gap"}, default="lifetime"
        How the number of clusters is chosen, as in :class:`~partita.Agglomerative`.
    max_exact : int, default=5000
        A table of numbers with more rows is first reduced to k-means centers.
    n_centers : int, default=1000
        Number of these centers.
    kinds : None, str, mapping or sequence, optional
        Kinds of columns; inferred by default.
    random_state : None, int, RandomState, Generator or SeedSequence
        For the k-means centers and the gap statistic; the divisions themselves are deterministic.
    time_limit : float, optional
        Wall seconds; no division begins after it. Groups that are not divided by then are joined by complete linkage.
    callback : callable, optional
        Called after each division with a :class:`~partita.engines.run.Progress`, whose objective is the diameter of the
        group that was divided; returning True stops the fit.
    keep_partial : bool, default=False
        Whether an interrupt (Ctrl-C) keeps the divisions so far instead of raising.
    n_jobs : int, optional
        Not used: divisions are made one after the other.
    executor : None, "threads", "processes", Dask client or address, optional
        Not used, as ``n_jobs``.
    resume : path, optional
        A folder that keeps the divisions so far: the same call after a kill continues from there.
    verbose : bool, optional
        Whether to show the progress on standard error. None, the default, shows a bar in terminals and notebooks and
        nothing elsewhere; True prints lines where there is no terminal.

    Attributes
    ----------
    labels_ : ndarray (n_rows,)
        Cluster of each row, the largest cluster first.
    n_clusters_ : int
        Number of clusters.
    n_clusters_scores_ : dict
        Score per number of clusters, high is good: lifetime or gap statistic, as in :class:`~partita.Agglomerative`.
    linkage_ : ndarray (n_leaves - 1, 4)
        scipy's linkage matrix; leaves are rows or k-means centers. Heights are diameters.
    row_leaves_ : ndarray (n_rows,)
        Leaf of each row.
    fit_report_ : FitReport
        What was unusual about the data.
    schema_, n_features_in_, feature_names_in_
        The table that was fitted.

    Examples
    --------
    >>> from partita import Diana
    >>> model = Diana(2).fit([[0.0], [1.0], [9.0], [10.0], [10.5]])
    >>> model.labels_
    array([1, 1, 0, 0, 0])
    """

    def _grow(self, pairs, points, rng, control) -> np.ndarray:
        D = pairs.matrix()
        return self._divide(D, lambda members, _: diana_split(D, members), pairs.n, rng, control, "diana")


class BisectingClusters(_Divisive):
    """The group with the largest diameter is divided in two by k-means or two medoids, repeatedly.

    With ``n_clusters`` the divisions stop there, and the members of each cluster are joined by complete linkage.

    Good for large numbers of round clusters, and for new rows: ``predict`` descends the tree. Not for clusters of
    other shapes.

    Parameters
    ----------
    n_clusters : int, optional
        Number of clusters. By default ``criterion`` chooses it.
    metric : str or mapping, default="auto"
        How rows are compared, as in :class:`~partita.Agglomerative`; "precomputed" for given dissimilarities.
    criterion : {"lifetime", "gap"}, default="lifetime"
        How the number of clusters is chosen, as in :class:`~partita.Agglomerative`.
    max_exact : int, default=5000
        A table of numbers with more rows is first reduced to k-means centers.
    n_centers : int, default=1000
        Number of these centers.
    kinds : None, str, mapping or sequence, optional
        Kinds of columns; inferred by default.
    splitter : {"auto", "kmeans", "kmedoids"}, default="auto"
        What divides a group: k-means with two centers (complete tables of numbers), or two medoids (any dissimilarity).
        "auto" is k-means where it is possible.
    random_state : None, int, RandomState, Generator or SeedSequence
        For k-means, the k-means centers of large tables and the gap statistic.
    time_limit : float, optional
        Wall seconds; no division begins after it. Groups that are not divided by then are joined by complete linkage.
    callback : callable, optional
        Called after each division with a :class:`~partita.engines.run.Progress`, whose objective is the diameter of the
        group that was divided; returning True stops the fit.
    keep_partial : bool, default=False
        Whether an interrupt (Ctrl-C) keeps the divisions so far instead of raising.
    n_jobs : int, optional
        Not used: divisions are made one after the other.
    executor : None, "threads", "processes", Dask client or address, optional
        Not used, as ``n_jobs``.
    resume : path, optional
        A folder that keeps the divisions so far: the same call after a kill continues from there.
    verbose : bool, optional
        Whether to show the progress on standard error. None, the default, shows a bar in terminals and notebooks and
        nothing elsewhere; True prints lines where there is no terminal.

    Attributes
    ----------
    labels_ : ndarray (n_rows,)
        Cluster of each row, the largest cluster first.
    n_clusters_ : int
        Number of clusters.
    n_clusters_scores_ : dict
        Score per number of clusters, high is good: lifetime or gap statistic, as in :class:`~partita.Agglomerative`.
    linkage_ : ndarray (n_leaves - 1, 4)
        scipy's linkage matrix; leaves are rows or k-means centers. Heights are diameters.
    row_leaves_ : ndarray (n_rows,)
        Leaf of each row.
    fit_report_ : FitReport
        What was unusual about the data.
    schema_, n_features_in_, feature_names_in_
        The table that was fitted.

    Examples
    --------
    >>> from partita import BisectingClusters
    >>> model = BisectingClusters(2, random_state=0).fit([[0.0], [1.0], [9.0], [10.0], [10.5]])
    >>> model.labels_
    array([1, 1, 0, 0, 0])
    >>> model.predict([[2.0], [12.0]])
    array([1, 0])
    """

    _parameter_constraints: dict[str, Any] = {
        **_Divisive._parameter_constraints,
        "splitter": [StrOptions({"auto", "kmeans", "kmedoids"})],
    }

    def __init__(
        self,
        n_clusters=None,
        *,
        splitter="auto",
        metric="auto",
        criterion="lifetime",
        max_exact=5000,
        n_centers=1000,
        kinds=None,
        random_state=None,
        time_limit=None,
        callback=None,
        keep_partial=False,
        n_jobs=None,
        executor=None,
        resume=None,
        verbose=None,
    ):
        super().__init__(
            n_clusters,
            metric=metric,
            criterion=criterion,
            max_exact=max_exact,
            n_centers=n_centers,
            kinds=kinds,
            random_state=random_state,
            time_limit=time_limit,
            callback=callback,
            keep_partial=keep_partial,
            n_jobs=n_jobs,
            executor=executor,
            resume=resume,
            verbose=verbose,
        )
        self.splitter = splitter

    def _by_medoids(self, points: np.ndarray | None) -> bool:
        return self.splitter == "kmedoids" or points is None

    def _grow(self, pairs, points, rng, control) -> np.ndarray:
        if self.splitter == "kmeans" and points is None:
            raise ValueError(
                "splitter='kmeans' needs a table of numbers without missing values: use splitter='kmedoids'"
            )
        D, by_medoids = pairs.matrix(), self._by_medoids(points)

        def split(members: np.ndarray, rng: np.random.Generator) -> np.ndarray:
            if by_medoids or len(members) == 2 or not np.ptp(points[members], axis=0).any():
                return medoid_split(D, members)
            seed = int(rng.integers(2**31))
            found = KMeans(2, n_init=1, random_state=seed).fit(points[members]).labels_ == 1
            return found if found.any() and not found.all() else medoid_split(D, members)

        n_groups = pairs.n if self.n_clusters is None else min(self.n_clusters, pairs.n)
        return self._divide(D, split, n_groups, rng, control, f"bisecting {by_medoids}")

    # ---- new rows ------------------------------------------------------------------------------------------

    def _fit_pairs(self, pairs, points, rng, control) -> None:
        super()._fit_pairs(pairs, points, rng, control)
        top = top_divisions(self.linkage_, self.n_clusters_)
        self._top_children = top.children
        self._side_medoids, self._side_means = np.zeros(0, np.int64), np.zeros((0, 0))
        if self._by_medoids(points):
            D = pairs.matrix()
            medoids = [side[D[np.ix_(side, side)].sum(axis=1).argmin()] for side in top.sides]
            self._side_medoids = np.array(medoids, np.int64)
        elif top.sides:
            self._side_means = np.stack([points[side].mean(axis=0) for side in top.sides])

    def _keep_points(self, table, points) -> None:
        if self._by_medoids(points):
            self._side_rows = keep_rows(table, self.metric, points, self._side_medoids)
        else:
            self._side_rows = keep_points(table, self._side_means)

    def _restore(self, state):
        super()._restore(state)
        children = self._top_children
        if (children >= np.arange(len(children))[:, None]).any():
            raise ValueError("the divisions are not a tree")
        n_sides = max(len(self._side_medoids), len(self._side_means))
        if n_sides != 2 * len(children) or len(children) != self.n_clusters_ - 1:
            raise ValueError(f"{n_sides} sides do not belong to {self.n_clusters_} clusters")
        points = vars(self).get("_side_rows", {}).get("points")  # None where rows are kept
        if points is not None and len(points) != n_sides:
            raise ValueError(f"{len(points)} points do not belong to {n_sides} sides")

    @reads_chunks
    def predict(self, X, at=None):
        """Cluster of each row: at every division it goes to the side with the nearer mean (or medoid).

        Parameters
        ----------
        X : array or data frame
            Rows like those of ``fit``; with ``metric="precomputed"`` dissimilarities, new objects x objects of ``fit``.
        at : int or str, optional
            The scale, as in :meth:`at`, with at most ``n_clusters_`` groups: finer divisions have no means.

        Returns
        -------
        ndarray (n_rows,)
        """
        check_is_fitted(self)
        labels = self.labels_
        if at is not None:
            K = self.grain_.n_clusters_at(at)
            if self.n_clusters_ < K:
                raise ValueError(
                    f"at is {at!r}, {K} groups: predict knows the divisions into up to {self.n_clusters_} clusters; "
                    f"fit the model with n_clusters={K}"
                )
            labels = self.grain_.at(K)
        if self._is_precomputed:
            distances = self._new_dissimilarities(X)[:, self._side_medoids]
        else:
            table = self._read_new(X)
            by_means = len(self._side_medoids) == 0
            if self.n_clusters_ == 1:
                return np.zeros(table.n_rows, np.int64)
            distances = distances_to(self._side_rows, table, "euclidean" if by_means else self.metric)
        leaf_labels = np.zeros(len(self.linkage_) + 1, np.int64)
        leaf_labels[self.row_leaves_] = labels
        return leaf_labels[_descend(self._top_children, distances)]


# ---- divisions ---------------------------------------------------------------------------------------------


class _Division(NamedTuple):
    """The divisions so far, as an engine state.

    A group is named by its smallest member: ``owners`` holds the group of each object, ``widths`` the diameter of each
    group (-1 for a single object, -inf where there is no group of that name). ``divided`` has one row per division:
    width, and the names of both sides.
    """

    owners: np.ndarray
    widths: np.ndarray
    divided: np.ndarray
    rng: np.random.Generator

    @property
    def n_iter(self) -> int:
        return len(self.divided)

    @property
    def objective(self) -> float:
        return float(self.divided[-1, 0])

    @property
    def change(self) -> float:
        return np.inf  # the number of divisions is known, there is no convergence


class DivisionResult(NamedTuple):
    """A linkage matrix over the groups that are left, the group of each object, and why the divisions ended."""

    linkage: np.ndarray
    labels: np.ndarray
    reason: str


def divide(
    D: np.ndarray,
    split: Split,
    n_groups: int,
    *,
    rng: np.random.Generator,
    control: Control | None = None,
    checkpoint: Checkpoint | None = None,
) -> DivisionResult:
    """Divide the widest group until there are ``n_groups``.

    Parameters
    ----------
    D : ndarray (N, N)
        Dissimilarities.
    split : callable
        ``split(members, rng)`` says which of the members (two at least) leave the group; some do, and some stay.

    Examples
    --------
    >>> D = np.abs(np.subtract.outer([0.0, 1.0, 9.0], [0.0, 1.0, 9.0]))
    >>> found = divide(D, lambda members, rng: diana_split(D, members), 3, rng=np.random.default_rng(0))
    >>> found.linkage
    array([[0., 1., 1., 2.],
           [2., 3., 9., 3.]])
    """
    N = len(D)

    def width(members: np.ndarray) -> float:
        return float(D[np.ix_(members, members)].max()) if len(members) > 1 else -1.0

    def start() -> _Division:
        widths = np.full(N, -np.inf)
        widths[0] = width(np.arange(N))
        return _Division(np.zeros(N, np.int64), widths, np.empty((0, 3)), rng)

    def step(state: _Division) -> _Division:
        group = int(state.widths.argmax())
        members = np.flatnonzero(state.owners == group)
        leave = split(members, state.rng)
        owners, widths = state.owners.copy(), state.widths.copy()
        names = []
        for side in (members[~leave], members[leave]):
            names.append(side[0])
            owners[side], widths[side[0]] = side[0], width(side)
        divided = np.vstack([state.divided, [state.widths[group], *names]])
        return _Division(owners, widths, divided, state.rng)

    run = iterate_from_checkpoint(
        step,
        start,
        checkpoint=checkpoint,
        max_iter=n_groups - 1,
        tol=0.0,
        control=control,
        n_clusters=lambda state: state.n_iter + 1,
    )
    names, labels = np.unique(run.state.owners, return_inverse=True)
    return DivisionResult(_linkage(run.state.divided, labels, len(names)), labels, run.reason)


def _linkage(divided: np.ndarray, labels: np.ndarray, n_groups: int) -> np.ndarray:
    """Divisions in reverse order are merges; their heights increase, because a part is never wider than the whole."""
    node = np.arange(n_groups)  # root of the subtree that holds each group
    count = np.ones(2 * n_groups - 1)
    out = np.empty((n_groups - 1, 4))
    held: list[list[int]] = [[g] for g in range(n_groups)] + [[] for _ in range(n_groups - 1)]
    for t, (width, left, right) in enumerate(divided[::-1]):
        i, j = sorted((int(node[labels[int(left)]]), int(node[labels[int(right)]])))
        count[n_groups + t] = count[i] + count[j]
        out[t] = i, j, width, count[n_groups + t]
        held[n_groups + t] = held[i] + held[j]
        node[held[n_groups + t]] = n_groups + t
        held[i] = held[j] = []
    return out


def diana_split(D: np.ndarray, members: np.ndarray) -> np.ndarray:
    """Divisive analysis (Macnaughton-Smith et al. 1964): a splinter group grows from the most distant member.

    A member's distance to its group is the mean over the *other* members. Members move while they are nearer to the
    splinter group than to their own, the one that gains most first; ties go to the first member.

    Examples
    --------
    >>> D = np.abs(np.subtract.outer([0.0, 1.0, 8.0, 9.0, 9.5], [0.0, 1.0, 8.0, 9.0, 9.5]))
    >>> diana_split(D, np.arange(5))
    array([ True,  True, False, False, False])
    """
    own = D[np.ix_(members, members)]
    n = len(members)
    leave = np.zeros(n, bool)
    to_group, to_splinters = own.sum(axis=1), np.zeros(n)
    i = int(to_group.argmax())
    while True:
        leave[i] = True
        to_group -= own[i]
        to_splinters += own[i]
        n_splinters = int(leave.sum())
        if n - n_splinters < 2:
            return leave
        gain = to_group / (n - n_splinters - 1) - to_splinters / n_splinters
        gain[leave] = -np.inf
        i = int(gain.argmax())
        if not gain[i] > 0.0:
            return leave


def medoid_split(D: np.ndarray, members: np.ndarray, max_iter: int = 50) -> np.ndarray:
    """Two medoids, starting from the most distant pair: assign members to the nearer one, update the medoids, repeat.

    Examples
    --------
    >>> D = np.abs(np.subtract.outer([0.0, 1.0, 8.0, 9.0, 9.5], [0.0, 1.0, 8.0, 9.0, 9.5]))
    >>> medoid_split(D, np.arange(5))
    array([False, False,  True,  True,  True])
    """
    own = D[np.ix_(members, members)]
    first, second = np.unravel_index(int(own.argmax()), own.shape)
    if first == second:  # all members are equal
        second = first + 1
    leave = np.zeros(len(members), bool)
    for _ in range(max_iter):
        before = first, second
        leave = own[:, second] < own[:, first]
        leave[second], leave[first] = True, False
        stay = np.flatnonzero(~leave)
        gone = np.flatnonzero(leave)
        first = stay[own[np.ix_(stay, stay)].sum(axis=1).argmin()]
        second = gone[own[np.ix_(gone, gone)].sum(axis=1).argmin()]
        if (first, second) == before:
            break
    return leave


# ---- below and above the groups ----------------------------------------------------------------------------


def _with_members(D: np.ndarray, found: DivisionResult) -> np.ndarray:
    """The tree over groups, with a tree of complete linkage below each of them."""
    N, K = len(D), len(found.linkage) + 1
    rows: list[tuple[float, int, int, int]] = []  # height, children, count
    roots = []
    for g in range(K):
        members = np.flatnonzero(found.labels == g)
        names = members.tolist()
        if len(members) > 1:
            within = squareform(D[np.ix_(members, members)], checks=False)
            for i, j, height, count in scipy_linkage(within, "complete"):
                names.append(N + len(rows))
                rows.append((height, names[int(i)], names[int(j)], int(count)))
        roots.append((names[-1], len(members)))
    for i, j, height, _ in found.linkage:
        (left, a), (right, b) = roots[int(i)], roots[int(j)]
        roots.append((N + len(rows), a + b))
        rows.append((height, left, right, a + b))
    return _sorted(rows, N)


def _sorted(rows: list[tuple[float, int, int, int]], N: int) -> np.ndarray:
    """Merges in scipy's order; no group is wider than one that was divided, so the divisions come last."""
    heights = np.array([row[0] for row in rows])
    n_inner = len(rows)
    order = np.argsort(heights, kind="stable")
    name = np.arange(N + n_inner)
    name[N + order] = N + np.arange(n_inner)
    out = np.empty((n_inner, 4))
    for t, e in enumerate(order):
        height, i, j, count = rows[e]
        out[t] = *sorted((name[i], name[j])), height, count
    return out


class TopDivisions(NamedTuple):
    """The divisions above the clusters, the root last.

    ``children[t]`` are the two sides of division t: the number of a further division, or ``-1 - leaf`` for a cluster,
    where ``leaf`` is one of its leaves. ``sides[2 t]`` and ``sides[2 t + 1]`` are the leaves of both sides.
    """

    children: np.ndarray
    sides: list[np.ndarray]


def top_divisions(linkage: np.ndarray, n_clusters: int) -> TopDivisions:
    """The last ``n_clusters - 1`` merges of a tree as divisions.

    Examples
    --------
    >>> tree = scipy_linkage([[0.0], [1.0], [5.0], [9.0]], "complete")
    >>> top_divisions(tree, 3).children
    array([[-3, -4],
           [-1,  0]])
    """
    m = len(linkage) + 1
    first = 2 * m - n_clusters
    children = np.empty((n_clusters - 1, 2), np.int64)
    sides = []
    for t in range(n_clusters - 1):
        for s, node in enumerate(linkage[first - m + t, :2].astype(int)):
            sides.append(_leaves_below(linkage, node))
            children[t, s] = node - first if node >= first else -1 - sides[-1][0]
    return TopDivisions(children, sides)


def _leaves_below(linkage: np.ndarray, node: int) -> np.ndarray:
    m = len(linkage) + 1
    leaves, stack = [], [node]
    while stack:
        node = stack.pop()
        if node < m:
            leaves.append(node)
        else:
            stack.extend(linkage[node - m, :2].astype(int).tolist())
    return np.sort(leaves)


def _descend(children: np.ndarray, distances: np.ndarray) -> np.ndarray:
    """A leaf of the cluster that each row reaches from the root; distances [row, side] to both sides per division."""
    at = np.full(len(distances), len(children) - 1)
    if len(children) == 0:
        return np.zeros(len(distances), np.int64)
    for t in range(len(children) - 1, -1, -1):  # divisions further down have smaller numbers
        rows = np.flatnonzero(at == t)
        nearer = (distances[rows, 2 * t + 1] < distances[rows, 2 * t]).astype(int)
        at[rows] = children[t, nearer]
    return -1 - at
