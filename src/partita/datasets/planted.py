"""Tables and ensembles drawn from a known model, with the best possible labels given its parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from partita.randomness import RandomState, as_generator


class Planted(NamedTuple):
    """Data drawn from a mixture, and all that is known about them.

    Attributes
    ----------
    X : ndarray, or dict of str to ndarray
        The data.
    labels : ndarray of int, shape (n_samples,)
        The component that each row was drawn from.
    oracle : ndarray of int, shape (n_samples,)
        The most probable component of each row under the true parameters, from the cells that are seen: no
        method can be expected to agree better with `labels`.
    parameters : dict of str to array
        The true parameters, the cluster axis first; "weights" is always there.
    """

    X: Any
    labels: NDArray[np.int64]
    oracle: NDArray[np.int64]
    parameters: dict[str, Any]


def make_gaussian_clusters(
    n_samples: int = 500,
    n_features: int = 2,
    n_clusters: int = 4,
    separation: float = 3.0,
    *,
    weights_concentration: float = 5.0,
    random_state: RandomState = None,
) -> Planted:
    """Draw from a Gaussian mixture with full covariances.

    Weights are Dirichlet(`weights_concentration`), means normal with standard deviation `separation` in each
    coordinate, and covariances ``0.7 A A'/D + 0.3 I`` with A a standard normal D x D matrix (D features).

    Parameters
    ----------
    n_samples, n_features, n_clusters : int
        Sizes. A cluster of small weight may stay empty.
    separation : float, default=3.0
        Standard deviation of the means; that within a cluster is about 1.
    weights_concentration : float, default=5.0
        The larger, the more alike the weights.
    random_state : int, RandomState, Generator, SeedSequence or None, default=None
        Source of randomness.

    Returns
    -------
    Planted
        `parameters` has "weights", "means" (K, D) and "covariances" (K, D, D).

    Examples
    --------
    >>> from partita.datasets import make_gaussian_clusters
    >>> planted = make_gaussian_clusters(300, 5, 3, separation=4.0, random_state=0)
    >>> planted.X.shape
    (300, 5)
    >>> bool((planted.labels == planted.oracle).mean() > 0.9)
    True
    """
    rng = as_generator(random_state)
    _check_sizes(n_samples=n_samples, n_features=n_features, n_clusters=n_clusters)
    _check_positive(weights_concentration=weights_concentration)
    if not separation >= 0:
        raise ValueError(f"separation must not be negative; got {separation}")
    weights, z = _draw_labels(rng, n_samples, n_clusters, weights_concentration)
    means = separation * rng.standard_normal((n_clusters, n_features))
    A = rng.standard_normal((n_clusters, n_features, n_features))
    covariances = 0.7 * A @ A.transpose(0, 2, 1) / n_features + 0.3 * np.eye(n_features)
    factors = np.linalg.cholesky(covariances)
    noise = rng.standard_normal((n_samples, n_features))
    X = np.empty((n_samples, n_features))
    log_joint = np.empty((n_samples, n_clusters))
    for k in range(n_clusters):
        X[z == k] = means[k] + noise[z == k] @ factors[k].T
    for k in range(n_clusters):
        whitened = solve_triangular(factors[k], (X - means[k]).T, lower=True)
        log_joint[:, k] = (
            np.log(weights[k]) - np.log(np.diag(factors[k])).sum() - 0.5 * (whitened**2).sum(axis=0)
        )
    parameters = {"weights": weights, "means": means, "covariances": covariances}
    return Planted(X, z, log_joint.argmax(axis=1), parameters)


def make_categorical_clusters(
    n_samples: int = 500,
    n_features: int = 10,
    n_levels: int | Sequence[int] = 4,
    n_clusters: int = 4,
    *,
    cell_concentration: float = 0.5,
    missing: float = 0.0,
    weights_concentration: float = 5.0,
    random_state: RandomState = None,
) -> Planted:
    """Draw from a latent class model: categorical columns, independent within a cluster.

    Parameters
    ----------
    n_samples, n_features, n_clusters : int
        Sizes. A cluster of small weight may stay empty.
    n_levels : int or sequence of int, default=4
        Number of levels, of every column or of each.
    cell_concentration : float, default=0.5
        The probabilities of a column's levels in a cluster are Dirichlet with this parameter: the smaller,
        the more each cluster prefers few levels.
    missing : float, default=0.0
        Chance that a cell is missing, in [0, 1).
    weights_concentration : float, default=5.0
        The larger, the more alike the weights.
    random_state : int, RandomState, Generator, SeedSequence or None, default=None
        Source of randomness.

    Returns
    -------
    Planted
        `X` holds the codes 0, 1, ...: integers if `missing` is 0, else floats with NaN. `parameters` has
        "weights" and "probabilities", a list with one array (K, levels) for each column.

    Examples
    --------
    >>> from partita.datasets import make_categorical_clusters
    >>> planted = make_categorical_clusters(200, 3, [2, 3, 5], n_clusters=2, random_state=0)
    >>> planted.X.max(axis=0)
    array([1, 2, 4])
    >>> [p.shape for p in planted.parameters["probabilities"]]
    [(2, 2), (2, 3), (2, 5)]
    """
    rng = as_generator(random_state)
    _check_sizes(n_samples=n_samples, n_features=n_features, n_clusters=n_clusters)
    _check_positive(cell_concentration=cell_concentration, weights_concentration=weights_concentration)
    levels = _check_levels(n_levels, n_features)
    weights, z = _draw_labels(rng, n_samples, n_clusters, weights_concentration)
    seen = _draw_seen(rng, n_samples, n_features, missing)
    log_joint = np.tile(np.log(weights), (n_samples, 1))
    codes = np.empty((n_samples, n_features), dtype=np.int64)
    probabilities = []
    for d, V in enumerate(levels):
        p, codes[:, d], log_p = _draw_categorical(rng, z, n_clusters, V, cell_concentration)
        probabilities.append(p)
        log_joint += np.where(seen[:, d, None], log_p, 0.0)
    X = np.where(seen, codes, np.nan) if missing else codes
    return Planted(X, z, log_joint.argmax(axis=1), {"weights": weights, "probabilities": probabilities})


def make_mixed_clusters(
    n_samples: int = 500,
    n_clusters: int = 4,
    *,
    n_real: int = 2,
    n_count: int = 2,
    n_binary: int = 2,
    n_categorical: int = 2,
    n_levels: int | Sequence[int] = 4,
    separation: float = 2.0,
    cell_concentration: float = 0.5,
    missing: float = 0.0,
    weights_concentration: float = 5.0,
    random_state: RandomState = None,
) -> Planted:
    """Draw a table of mixed kinds: real, count, yes/no and categorical columns, independent within a cluster.

    Parameters
    ----------
    n_samples, n_clusters : int
        Sizes. A cluster of small weight may stay empty.
    n_real, n_count, n_binary, n_categorical : int, default=2
        How many columns of each kind.
    n_levels : int or sequence of int, default=4
        Number of levels, of every categorical column or of each.
    separation : float, default=2.0
        Standard deviation of the means of real columns (within a cluster it is 1). The rates of the counts
        are gamma with mean 8 and standard deviation ``separation * sqrt(8)``: as far apart in units of the
        standard deviation within a cluster.
    cell_concentration : float, default=0.5
        Dirichlet (beta) parameter of the probabilities of levels, and of yes and no.
    missing : float, default=0.0
        Chance that a cell is missing, in [0, 1).
    weights_concentration : float, default=5.0
        The larger, the more alike the weights.
    random_state : int, RandomState, Generator, SeedSequence or None, default=None
        Source of randomness.

    Returns
    -------
    Planted
        `X` is a dict of columns named real_0, count_0, binary_0, categorical_0 and so on. Numbers are floats
        with NaN where missing; truth values and strings are object arrays with None where missing.
        `parameters` has "weights" and for each column: mean (K,), rate (K,), chance of True (K,) or
        probabilities of the levels (K, levels).

    Examples
    --------
    >>> from partita.datasets import make_mixed_clusters
    >>> planted = make_mixed_clusters(
    ...     100, 3, n_real=1, n_count=1, n_binary=1, n_categorical=1, random_state=0
    ... )
    >>> list(planted.X)
    ['real_0', 'count_0', 'binary_0', 'categorical_0']
    >>> sorted(set(planted.X["categorical_0"]))
    ['a', 'b', 'c', 'd']
    """
    rng = as_generator(random_state)
    _check_sizes(n_samples=n_samples, n_clusters=n_clusters)
    _check_positive(
        separation=separation,
        cell_concentration=cell_concentration,
        weights_concentration=weights_concentration,
    )
    kinds = {"real": n_real, "count": n_count, "binary": n_binary, "categorical": n_categorical}
    if min(kinds.values()) < 0 or sum(kinds.values()) == 0:
        raise ValueError(f"the numbers of columns must not be negative, nor all be 0; got {kinds}")
    levels = _check_levels(n_levels, n_categorical)
    weights, z = _draw_labels(rng, n_samples, n_clusters, weights_concentration)
    seen = iter(_draw_seen(rng, n_samples, sum(kinds.values()), missing).T)
    log_joint = np.tile(np.log(weights), (n_samples, 1))
    X: dict[str, NDArray[Any]] = {}
    x: Any
    parameters: dict[str, Any] = {"weights": weights}
    for kind, number in kinds.items():
        for j in range(number):
            name = f"{kind}_{j}"
            if kind == "real":
                parameters[name], x, log_p = _draw_real(rng, z, n_clusters, separation)
            elif kind == "count":
                parameters[name], x, log_p = _draw_count(rng, z, n_clusters, separation)
            elif kind == "binary":
                p, codes, log_p = _draw_categorical(rng, z, n_clusters, 2, cell_concentration)
                parameters[name], x = p[:, 1], codes.astype(bool).astype(object)
            else:
                parameters[name], codes, log_p = _draw_categorical(
                    rng, z, n_clusters, levels[j], cell_concentration
                )
                x = np.array(_level_names(levels[j]), dtype=object)[codes]
            here = next(seen)
            unseen: Any = None if x.dtype == object else np.nan
            X[name] = np.where(here, x, unseen)
            log_joint += np.where(here[:, None], log_p, 0.0)
    return Planted(X, z, log_joint.argmax(axis=1), parameters)


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
    random_state : int, RandomState, Generator, SeedSequence or None, default=None
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
    rng = as_generator(random_state)
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


# Each of these draws one column given the labels, and returns its parameters, its values, and the log
# probability [N, K] of each value in each cluster up to a constant of the row.


def _draw_real(rng: np.random.Generator, z: NDArray[np.int64], K: int, separation: float) -> Any:
    mean = separation * rng.standard_normal(K)
    x = mean[z] + rng.standard_normal(z.size)
    return mean, x, -0.5 * (x[:, None] - mean) ** 2


def _draw_count(rng: np.random.Generator, z: NDArray[np.int64], K: int, separation: float) -> Any:
    typical = 8.0
    shape = typical / separation**2
    rate = np.maximum(rng.gamma(shape, typical / shape, size=K), 1e-3)  # log(0) would rule a cluster out
    x = rng.poisson(rate[z]).astype(float)
    return rate, x, x[:, None] * np.log(rate) - rate


def _draw_categorical(
    rng: np.random.Generator, z: NDArray[np.int64], K: int, V: int, concentration: float
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]:
    p = np.maximum(rng.dirichlet(np.full(V, concentration), size=K), 1e-12)  # tiny draws underflow to 0
    p /= p.sum(axis=1, keepdims=True)
    upper = np.cumsum(p, axis=1)[z, :-1]
    codes = (rng.random((z.size, 1)) >= upper).sum(axis=1)
    return p, codes, np.log(p).T[codes]


def _draw_labels(
    rng: np.random.Generator, N: int, K: int, concentration: float
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    weights = rng.dirichlet(np.full(K, concentration))
    return weights, rng.choice(K, size=N, p=weights)


def _draw_seen(rng: np.random.Generator, N: int, D: int, missing: float) -> NDArray[np.bool_]:
    if not 0 <= missing < 1:
        raise ValueError(f"missing must lie in [0, 1); got {missing}")
    return rng.random((N, D)) >= missing


def _level_names(V: int) -> list[str]:
    return [chr(ord("a") + v) for v in range(V)] if V <= 26 else [f"level_{v}" for v in range(V)]


def _check_sizes(**sizes: int) -> None:
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name} must be at least 1; got {size}")


def _check_positive(**values: float) -> None:
    for name, value in values.items():
        if not value > 0:
            raise ValueError(f"{name} must be positive; got {value}")


def _check_levels(n_levels: int | Sequence[int], D: int) -> list[int]:
    levels = [int(n_levels)] * D if np.ndim(n_levels) == 0 else [int(V) for V in n_levels]  # type: ignore
    if len(levels) != D:
        raise ValueError(f"n_levels names {len(levels)} columns, and there are {D}")
    if any(V < 1 for V in levels):
        raise ValueError(f"n_levels must be at least 1; got {n_levels}")
    return levels
