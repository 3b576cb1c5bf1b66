"""Clusters: how large, how sure, and what makes each of them different.

How strongly a column sets a cluster apart is measured by the relative entropy of the cluster's distribution to that
of the whole table (both as the model sees them): the information that one cell of an object of this cluster gives on
average about its membership, comparable across kinds of columns. It cannot exceed
``-log(share of the cluster)``, which is all there is to know, so it is given as a part of that.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.special import logsumexp, rel_entr

from partita.metrics import adjusted_rand, normalized_mutual_info
from partita.summaries.doubt import Doubt, doubts
from partita.summaries.pairs import spread
from partita.summaries.words import number, percent, shown
from partita.table import Table

__all__ = ["Agreement", "Findings", "Trait", "compare", "describe_groups", "examine"]


QUANTILES = 60  # where densities are compared
MOST_DENSITIES, FEWEST_POINTS = 250_000, 500  # points x clusters
MOST_LEVELS = 2000


class Trait(NamedTuple):
    """One column of one cluster beside the whole table, in words."""

    column: str
    kind: str
    here: str
    whole: str
    strength: float  # from 0 (like the whole table) to 1 (one cell is enough to tell the cluster)


class Findings(NamedTuple):
    """What the page is made from. Components are clusters, those without rows among them."""

    n_rows: int
    n_columns: int  # described ones
    sizes: NDArray[np.int64]  # rows of each component
    uncertain: NDArray[np.int64]  # uncertain rows, by component
    looked_at: NDArray[np.int64]  # rows that the last figure was found from, by component
    confidence: NDArray[np.float64]  # mean by component
    traits: list[list[Trait]]  # by component, the most telling column first
    telling: list[tuple[str, float]]  # columns by the information they carry about the clusters
    threshold: float
    doubt: Doubt | None

    @property
    def n_uncertain(self) -> int:
        """How many rows are uncertain, of those looked at."""
        return int(self.uncertain.sum())


class Agreement(NamedTuple):
    """The clusters beside groups that are known."""

    names: list[str]
    table: NDArray[np.int64]  # groups x components
    adjusted_rand: float
    normalized_mutual_info: float


def examine(
    model: Any, threshold: float = 0.8, *, table: Table | None = None, doubt: Doubt | None = None
) -> Findings:
    """Sizes, uncertainty and the traits of each cluster.

    The traits are those of the model's ``profiles_`` or, where it has none, of a table of the same objects.

    Examples
    --------
    >>> from partita import Consensus
    >>> from partita.table import read_table
    >>> model = Consensus(random_state=0).fit([[0, 0], [0, 0], [1, 1], [1, 1]])
    >>> found = examine(model, table=read_table([[1.0, 5.0], [1.2, 4.0], [8.0, 4.5], [8.4, 5.0]]))
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
    traits, telling = _traits(profiles, kinds, weights, K)
    doubt = doubts(model, None, threshold) if doubt is None else doubt
    uncertain, looked_at = np.zeros(K, np.int64), np.zeros(K, np.int64)
    if doubt is not None:
        of = labels[doubt.objects]
        looked_at = np.bincount(of[of >= 0], minlength=K)
        uncertain = np.bincount(of[doubt.uncertain & (of >= 0)], minlength=K)
    return Findings(
        n_rows=len(labels),
        n_columns=len(profiles),
        sizes=sizes,
        uncertain=uncertain,
        looked_at=looked_at,
        confidence=_mean_confidence(model, labels, sizes),
        traits=traits,
        telling=telling,
        threshold=threshold,
        doubt=doubt,
    )


def _mean_confidence(model: Any, labels: np.ndarray, sizes: np.ndarray) -> NDArray[np.float64]:
    if getattr(model, "confidence_", None) is None:
        return np.full(len(sizes), np.nan)
    seated = labels >= 0  # outliers (-1) are in no cluster
    own = np.asarray(model.confidence_, float)[seated]
    return np.bincount(labels[seated], weights=own, minlength=len(sizes)) / np.maximum(sizes, 1)


def _traits(
    profiles: dict[str, Any], kinds: dict[str, str], weights: np.ndarray, K: int
) -> tuple[list[list[Trait]], list[tuple[str, float]]]:
    """Each cluster's columns, the most telling first, and the columns by what they tell about all clusters."""
    weights = np.maximum(weights, 1e-300) / np.sum(weights)
    possible = -np.log(weights)
    traits: list[list[Trait]] = [[] for _ in range(K)]
    telling = []
    for name, profile in profiles.items():
        nats, texts, whole = _describe(profile, kinds[name], weights)
        nats = np.clip(np.nan_to_num(nats), 0.0, possible)
        for k in range(K):
            strength = nats[k] / possible[k] if possible[k] > 0 else 0.0
            traits[k].append(Trait(name, kinds[name], texts[k], whole[k], float(strength)))
        telling.append((name, float(weights @ nats)))
    for one in traits:
        one.sort(key=lambda trait: -trait.strength)
    return traits, sorted(telling, key=lambda item: -item[1])


def describe_groups(labels: np.ndarray, table: Table, n_clusters: int) -> dict[str, dict[str, Any]]:
    """What each column of a table looks like in each cluster, in the form of ``profiles_``.

    Real and count columns have mean and standard deviation, the others shares of their levels; missing cells and
    outliers are left out, and so are columns of more than 2,000 levels. A cluster without a known cell looks like all.

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
        elif len(levels) <= MOST_LEVELS:
            counts = np.zeros((n_clusters, max(int(x.max()) + 1, len(levels))))
            np.add.at(counts, (z, x.astype(np.int64)), 1.0)
            counts[empty] = counts.sum(axis=0)
            profiles[column.name] = {
                "probabilities": counts / counts.sum(axis=1, keepdims=True),
                "levels": levels,
            }
    return profiles


def compare(model: Any, truth: Any) -> Agreement:
    """The clusters beside known groups; objects without a known group are left out, and outliers."""
    labels = np.asarray(model.labels_)
    known = np.asarray(truth, dtype=object)
    if known.shape != (len(labels),):
        raise ValueError(f"truth has shape {known.shape}: give one group for each of {len(labels)} rows")
    seen = np.array([value is not None and value == value for value in known])  # NaN is not itself
    seen &= labels >= 0
    names, codes = np.unique([str(value) for value in known[seen]], return_inverse=True)
    K = max(len(getattr(model, "weights_", ())), int(labels.max(initial=-1)) + 1)
    table = np.zeros((len(names), K), np.int64)
    np.add.at(table, (codes, labels[seen]), 1)
    return Agreement(
        list(names),
        table,
        float(adjusted_rand(codes, labels[seen])),
        float(normalized_mutual_info(codes, labels[seen])),
    )


def _describe(
    profile: dict[str, np.ndarray], kind: str, weights: np.ndarray
) -> tuple[np.ndarray, list[str], list[str]]:
    """Relative entropy of each cluster, its words, and the words for the whole table beside them."""
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
        beside = f"{number(whole)} ± {number(whole_deviation, 2)}"
        least = max(1e-9 * float(whole_deviation), 1e-300)  # a cluster of equal values
        law = stats.norm(mean, np.maximum(deviation, least))
        return _information(law, weights), texts, [beside] * len(mean)
    rate = np.asarray(profile["rate"])
    mean, law = (rate, stats.poisson(rate)) if kind == "count" else (1 / rate, stats.expon(scale=1 / rate))
    return _information(law, weights), [number(x) for x in mean], [number(weights @ mean)] * len(mean)


def _information(law: Any, weights: np.ndarray) -> np.ndarray:
    """Mean of ``log p_k(x) - log p(x)`` over evenly spaced quantiles of each cluster's law.

    The density p of the whole table is a sum over all clusters: for many clusters it is found at some of the points,
    and interpolated at the others.
    """
    x = law.ppf((np.arange(QUANTILES)[:, None] + 0.5) / QUANTILES)  # [quantile, cluster]
    log_p = law.logpmf if law.dist.name == "poisson" else law.logpdf
    points = np.unique(x)
    points = points[spread(len(points), max(FEWEST_POINTS, MOST_DENSITIES // len(weights)))]
    log_whole = logsumexp(log_p(points[:, None]) + np.log(weights), axis=1)
    return (log_p(x) - np.interp(x, points, log_whole)).mean(axis=0)


def _describe_levels(
    profile: dict[str, np.ndarray], kind: str, weights: np.ndarray
) -> tuple[np.ndarray, list[str], list[str]]:
    P = np.asarray(profile["probabilities"])
    p = weights @ P
    differs = np.full(len(P), 1) if kind == "binary" else np.abs(P - p).argmax(axis=1)
    levels = [*profile["levels"], *(["(other)"] if len(profile["levels"]) < P.shape[1] else [])]
    texts = [f"{percent(row[v])} {shown(levels[v], 30)}" for row, v in zip(P, differs)]
    return rel_entr(P, p).sum(axis=1), texts, [percent(p[v]) for v in differs]
