"""Summary of the clusters: sizes, confidence, and the columns that distinguish each cluster.

How strongly a column distinguishes a cluster is measured by the relative entropy of the distribution of the column in
the cluster to its distribution in the whole table: the information that one cell of a row of the cluster gives about
its membership, on average. It is comparable across kinds of columns. It cannot exceed
``-log(share of the cluster)``, and is given as a fraction of this bound.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.special import logsumexp, rel_entr

from partita.summaries.formatting import number, one_line, percent
from partita.summaries.pairs import spread
from partita.summaries.uncertainty import Uncertainty, find_uncertain
from partita.table import Table

N_QUANTILES = 60  # per cluster, where densities are compared
MAX_DENSITIES, MIN_POINTS = 250_000, 500  # densities are evaluated at points x clusters
MAX_LEVELS = 2000


class Trait(NamedTuple):
    """One column in one cluster, compared with the whole table, as text."""

    column: str
    kind: str
    here: str
    whole: str
    strength: float  # from 0 (as in the whole table) to 1 (one cell identifies the cluster)


class ClusterSummary(NamedTuple):
    """Sizes, uncertainty and traits per cluster. Clusters without rows are included."""

    n_rows: int
    n_columns: int  # columns that are described
    sizes: NDArray[np.int64]  # rows per cluster
    uncertain: NDArray[np.int64]  # uncertain rows per cluster
    examined: NDArray[np.int64]  # rows per cluster of which it is known whether they are uncertain
    confidence: NDArray[np.float64]  # mean per cluster
    traits: list[list[Trait]]  # per cluster, the most informative column first
    informative_columns: list[tuple[str, float]]  # name and information about the clusters, the largest first
    threshold: float  # confidence below which a row is uncertain
    uncertainty: Uncertainty | None

    @property
    def n_uncertain(self) -> int:
        """Number of uncertain rows among the examined ones."""
        return int(self.uncertain.sum())


def summarize_clusters(
    model: Any, threshold: float = 0.8, *, table: Table | None = None, uncertainty: Uncertainty | None = None
) -> ClusterSummary:
    """Sizes, uncertainty and traits of each cluster.

    Parameters
    ----------
    model : fitted estimator
    threshold : float, default=0.8
        Confidence below which an object is uncertain.
    table : Table, default=None
        Table of the same objects to describe the clusters by, for models without ``profiles_``.
    uncertainty : Uncertainty, default=None
        The uncertain objects, if they were found before.

    Returns
    -------
    ClusterSummary

    Examples
    --------
    >>> from partita import Consensus
    >>> from partita.table import read_table
    >>> model = Consensus(random_state=0).fit([[0, 0], [0, 0], [1, 1], [1, 1]])
    >>> found = summarize_clusters(model, table=read_table([[1.0, 5.0], [1.2, 4.0], [8.0, 4.5], [8.4, 5.0]]))
    >>> found.sizes, [trait.column for trait in found.traits[0]], found.traits[0][0].here
    (array([2, 2]), ['x0', 'x1'], '1.1 ± 0.1')
    """
    labels = np.asarray(model.labels_)
    fitted = isinstance(getattr(model, "profiles_", None), dict) and hasattr(model, "weights_")
    K = max(len(model.weights_) if fitted else 0, int(labels.max(initial=-1)) + 1)
    sizes = np.bincount(labels[labels >= 0], minlength=K)
    if fitted:
        profiles, weights = model.profiles_, np.asarray(model.weights_, float)
        kinds = {name: model.schema_.column(name).kind for name in profiles}
    else:
        profiles = {} if table is None else describe_groups(labels, table, K)
        kinds = {column.name: column.kind for column in table.columns} if table is not None else {}
        weights = sizes.astype(float)
    traits, informative_columns = _traits(profiles, kinds, weights, K)
    uncertainty = find_uncertain(model, None, threshold) if uncertainty is None else uncertainty
    uncertain, examined = np.zeros(K, np.int64), np.zeros(K, np.int64)
    if uncertainty is not None:
        of = labels[uncertainty.objects]
        examined = np.bincount(of[of >= 0], minlength=K)
        uncertain = np.bincount(of[uncertainty.uncertain & (of >= 0)], minlength=K)
    return ClusterSummary(
        n_rows=len(labels),
        n_columns=len(profiles),
        sizes=sizes,
        uncertain=uncertain,
        examined=examined,
        confidence=_mean_confidence(model, labels, sizes),
        traits=traits,
        informative_columns=informative_columns,
        threshold=threshold,
        uncertainty=uncertainty,
    )


def _mean_confidence(model: Any, labels: np.ndarray, sizes: np.ndarray) -> NDArray[np.float64]:
    if getattr(model, "confidence_", None) is None:
        return np.full(len(sizes), np.nan)
    inside = labels >= 0  # outliers (-1) are in no cluster
    own = np.asarray(model.confidence_, float)[inside]
    return np.bincount(labels[inside], weights=own, minlength=len(sizes)) / np.maximum(sizes, 1)


def _traits(
    profiles: dict[str, Any], kinds: dict[str, str], weights: np.ndarray, K: int
) -> tuple[list[list[Trait]], list[tuple[str, float]]]:
    """Traits per cluster, the strongest first, and all columns by their information about the clusters."""
    weights = np.maximum(weights, 1e-300) / np.sum(weights)
    possible = -np.log(weights)
    traits: list[list[Trait]] = [[] for _ in range(K)]
    informative = []
    for name, profile in profiles.items():
        nats, texts, whole = _describe(profile, kinds[name], weights)
        nats = np.clip(np.nan_to_num(nats), 0.0, possible)
        for k in range(K):
            strength = nats[k] / possible[k] if possible[k] > 0 else 0.0
            traits[k].append(Trait(name, kinds[name], texts[k], whole[k], float(strength)))
        informative.append((name, float(weights @ nats)))
    for one in traits:
        one.sort(key=lambda trait: -trait.strength)
    return traits, sorted(informative, key=lambda item: -item[1])


def describe_groups(labels: np.ndarray, table: Table, n_clusters: int) -> dict[str, dict[str, Any]]:
    """Describe each column of a table in each cluster, in the format of ``profiles_``.

    Real and count columns have mean and standard deviation, the others the shares of their levels. Missing cells,
    outliers and columns with more than 2,000 levels are left out. A cluster without an observed cell gets the values
    of the whole table.

    Examples
    --------
    >>> from partita.table import read_table
    >>> found = describe_groups(np.array([0, 0, 1]), read_table([["u", 1.5], ["v", 2.5], ["u", 8.5]]), 2)
    >>> found["x0"]["probabilities"], found["x1"]["mean"]
    (array([[0.5, 0.5],
           [1. , 0. ]]), array([2. , 8.5]))
    """
    profiles: dict[str, dict[str, Any]] = {}
    for column in table.columns:
        values, levels = np.asarray(column.values), table.schema.column(column.name).levels
        seen = (labels >= 0) & ~(np.isnan(values) if values.dtype.kind == "f" else values < 0)
        if not seen.any():
            continue
        z, x = labels[seen], values[seen]
        n = np.bincount(z, minlength=n_clusters)
        empty = n == 0
        if values.dtype.kind == "f":
            mean = np.bincount(z, x, minlength=n_clusters) / np.maximum(n, 1)
            mean[empty] = x.mean()
            deviation = np.sqrt(np.bincount(z, (x - mean[z]) ** 2, minlength=n_clusters) / np.maximum(n, 1))
            deviation[empty] = x.std()
            profiles[column.name] = {"mean": mean, "sd": deviation}
        elif len(levels) <= MAX_LEVELS:
            counts = np.zeros((n_clusters, max(int(x.max()) + 1, len(levels))))
            np.add.at(counts, (z, x.astype(np.int64)), 1.0)
            counts[empty] = counts.sum(axis=0)
            profiles[column.name] = {
                "probabilities": counts / counts.sum(axis=1, keepdims=True),
                "levels": levels,
            }
    return profiles


def _describe(
    profile: dict[str, np.ndarray], kind: str, weights: np.ndarray
) -> tuple[np.ndarray, list[str], list[str]]:
    """Relative entropy per cluster, its text, and the text of the whole table."""
    if "probabilities" in profile:
        return _describe_levels(profile, kind, weights)
    if "share" in profile:
        share = np.asarray(profile["share"])
        whole = weights @ share
        return (
            rel_entr(share, whole) - share + whole,
            [percent(x) for x in share],
            [percent(whole)] * len(share),
        )
    if "mean" in profile:
        mean, deviation = np.asarray(profile["mean"]), np.asarray(profile["sd"])
        whole = weights @ mean
        whole_deviation = np.sqrt(weights @ (deviation**2 + (mean - whole) ** 2))
        texts = [f"{number(a)} ± {number(b, 2)}" for a, b in zip(mean, deviation)]
        whole_text = f"{number(whole)} ± {number(whole_deviation, 2)}"
        least = max(1e-9 * float(whole_deviation), 1e-300)  # for clusters of equal values
        distribution = stats.norm(mean, np.maximum(deviation, least))
        return _information(distribution, weights), texts, [whole_text] * len(mean)
    rate = np.asarray(profile["rate"])
    mean, distribution = (
        (rate, stats.poisson(rate)) if kind == "count" else (1 / rate, stats.expon(scale=1 / rate))
    )
    return (
        _information(distribution, weights),
        [number(x) for x in mean],
        [number(weights @ mean)] * len(mean),
    )


def _information(distribution: Any, weights: np.ndarray) -> np.ndarray:
    """Mean of ``log p_k(x) - log p(x)`` over evenly spaced quantiles of each cluster's distribution.

    The density p of the whole table is a sum over all clusters. For many clusters it is evaluated at some of the
    points and interpolated at the others.
    """
    x = distribution.ppf((np.arange(N_QUANTILES)[:, None] + 0.5) / N_QUANTILES)  # [quantile, cluster]
    log_p = distribution.logpmf if distribution.dist.name == "poisson" else distribution.logpdf
    points = np.unique(x)
    points = points[spread(len(points), max(MIN_POINTS, MAX_DENSITIES // len(weights)))]
    log_whole = logsumexp(log_p(points[:, None]) + np.log(weights), axis=1)
    return (log_p(x) - np.interp(x, points, log_whole)).mean(axis=0)


def _describe_levels(
    profile: dict[str, np.ndarray], kind: str, weights: np.ndarray
) -> tuple[np.ndarray, list[str], list[str]]:
    P = np.asarray(profile["probabilities"])
    p = weights @ P
    differs = np.full(len(P), 1) if kind == "binary" else np.abs(P - p).argmax(axis=1)
    levels = [*profile["levels"], *(["(other)"] if len(profile["levels"]) < P.shape[1] else [])]
    texts = [f"{percent(row[v])} {one_line(levels[v], 30)}" for row, v in zip(P, differs)]
    return rel_entr(P, p).sum(axis=1), texts, [percent(p[v]) for v in differs]
