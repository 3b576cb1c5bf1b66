"""Data for consensus: planted ensembles, and the two clusters with outliers of the NBCE paper."""

from __future__ import annotations

import numpy as np

from partita.datasets.planted import Planted, RandomState, _check_sizes, _generator

__all__ = ["make_planted_ensemble", "make_two_clusters_with_outliers"]


def make_planted_ensemble(
    n_samples: int = 500,
    n_clusters: int = 5,
    n_members: int = 20,
    *,
    redrawn: float = 0.1,
    missing: float = 0.0,
    random_state: RandomState = None,
) -> Planted:
    """An ensemble of which everything is known: equal groups, and members that err independently.

    The groups are equal (to within one object) and their order is random. Each label of each member is, with
    probability `redrawn`, drawn anew from all groups alike; then it is missing with probability `missing`. Every member
    has its own names for the groups.

    Parameters
    ----------
    n_samples, n_clusters, n_members : int
        Sizes.
    redrawn : float, default=0.1
        Chance that a label is drawn anew (it may come out right); 1 gives an ensemble of pure noise.
    missing : float, default=0.0
        Chance that a label is missing, in [0, 1].
    random_state : int, RandomState, Generator, SeedSequence or None
        Source of randomness.

    Returns
    -------
    Planted
        `X` is the label matrix (objects x members, -1 missing), `labels` the groups. `oracle` is the group that most
        members vote for once their names are known (the first of equals), which is the most probable one. `parameters`
        has "weights" and "names" (clusters x members): what each member calls each group.

    Examples
    --------
    >>> from partita.datasets import make_planted_ensemble
    >>> planted = make_planted_ensemble(100, 5, 20, redrawn=0.1, random_state=0)
    >>> planted.X.shape
    (100, 20)
    >>> bool((planted.labels == planted.oracle).all())
    True
    """
    rng = _generator(random_state)
    _check_sizes(n_samples=n_samples, n_clusters=n_clusters, n_members=n_members)
    for name, share in (("redrawn", redrawn), ("missing", missing)):
        if not 0 <= share <= 1:
            raise ValueError(f"{name} must lie between 0 and 1; got {share}")
    z = rng.permutation(np.arange(n_samples) % n_clusters)
    anew = rng.random((n_samples, n_members)) < redrawn
    groups = np.where(anew, rng.integers(n_clusters, size=anew.shape), z[:, None])
    names = np.column_stack([rng.permutation(n_clusters) for _ in range(n_members)])
    unseen = rng.random(anew.shape) < missing
    Y = np.where(unseen, -1, np.take_along_axis(names, groups, axis=0))
    votes = np.stack([((groups == k) & ~unseen).sum(axis=1) for k in range(n_clusters)], axis=1)
    weights = np.full(n_clusters, 1.0 / n_clusters)
    return Planted(Y, z, votes.argmax(axis=1), {"weights": weights, "names": names})


def make_two_clusters_with_outliers(
    n_samples: int = 200,
    outliers: float = 0.1,
    separation: float = 6.0,
    *,
    outlier_scale: float = 5.0,
    random_state: RandomState = None,
) -> Planted:
    """Two round clusters in the plane, some of whose objects lie far out (after figure 3 of the NBCE paper).

    The paper prints no parameters; these are ours. An object belongs to either cluster with the same chance; its
    distance from the middle of its cluster is standard normal in each coordinate, times `outlier_scale` if it is an
    outlier. Give the labels to :func:`partita.ensembles.noisy_copies` for the paper's ensembles.

    Parameters
    ----------
    n_samples : int
        Number of objects.
    outliers : float, default=0.1
        Share of the objects that are outliers, in [0, 1].
    separation : float, default=6.0
        Distance between the middles.
    outlier_scale : float, default=5.0
        Spread of the outliers; that of the others is 1.
    random_state : int, RandomState, Generator, SeedSequence or None
        Source of randomness.

    Returns
    -------
    Planted
        `labels` has two values, `oracle` is the nearer middle, `parameters` has "weights", "means" (2, 2) and
        "outliers" (bool, one for each object).

    Examples
    --------
    >>> from partita.datasets import make_two_clusters_with_outliers
    >>> planted = make_two_clusters_with_outliers(200, 0.1, random_state=0)
    >>> planted.X.shape, int(planted.parameters["outliers"].sum())
    ((200, 2), 20)
    """
    rng = _generator(random_state)
    _check_sizes(n_samples=n_samples)
    if not 0 <= outliers <= 1:
        raise ValueError(f"outliers must lie between 0 and 1; got {outliers}")
    if not (separation >= 0 and outlier_scale > 0):
        raise ValueError(f"got separation={separation}, outlier_scale={outlier_scale}: give positive numbers")
    z = rng.permutation(np.arange(n_samples) % 2)
    outlying = np.zeros(n_samples, bool)
    outlying[rng.choice(n_samples, size=round(outliers * n_samples), replace=False)] = True
    means = np.array([[-separation / 2, 0.0], [separation / 2, 0.0]])
    X = means[z] + rng.standard_normal((n_samples, 2)) * np.where(outlying, outlier_scale, 1.0)[:, None]
    parameters = {"weights": np.full(2, 0.5), "means": means, "outliers": outlying}
    return Planted(X, z, (X[:, 0] > 0).astype(np.int64), parameters)
