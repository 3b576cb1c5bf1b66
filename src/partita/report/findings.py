"""What a report says, worked out from a fitted model before anything is written.

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
from partita.report.words import number, percent, shown

__all__ = ["Agreement", "Findings", "Trait", "compare", "examine"]


QUANTILES = 60  # where densities are compared


class Trait(NamedTuple):
    """One column of one cluster beside the whole table, in words."""

    column: str
    kind: str
    here: str
    whole: str
    strength: float  # from 0 (like the whole table) to 1 (one cell is enough to tell the cluster)


class Findings(NamedTuple):
    """What the page is made from."""

    n_rows: int
    n_columns: int
    sizes: NDArray[np.int64]  # rows of each component, also of those that have none
    uncertain: NDArray[np.int64]  # rows below the threshold, by component
    confidence: NDArray[np.float64]  # mean by component
    traits: list[list[Trait]]  # by component, the most telling column first
    telling: list[tuple[str, float]]  # columns by the information they carry about the clusters
    threshold: float

    @property
    def n_uncertain(self) -> int:
        """How many rows are uncertain."""
        return int(self.uncertain.sum())


class Agreement(NamedTuple):
    """The clusters beside groups that are known."""

    names: list[str]
    table: NDArray[np.int64]  # groups x components
    adjusted_rand: float
    normalized_mutual_info: float


def examine(model: Any, threshold: float = 0.8) -> Findings:
    """Sizes, uncertainty and the traits of each cluster."""
    K, labels, confidence = len(model.weights_), np.asarray(model.labels_), np.asarray(model.confidence_)
    n_rows, seated = len(labels), labels >= 0
    labels, confidence = labels[seated], confidence[seated]  # outliers (-1) are in no cluster
    sizes = np.bincount(labels, minlength=K)
    weights = np.maximum(model.weights_, 1e-300) / np.sum(model.weights_)
    possible = -np.log(weights)
    traits: list[list[Trait]] = [[] for _ in range(K)]
    telling = []
    for name, profile in model.profiles_.items():
        kind = model.schema_.column(name).kind
        nats, texts, whole = _describe(profile, kind, weights)
        nats = np.clip(np.nan_to_num(nats), 0.0, possible)
        for k in range(K):
            strength = nats[k] / possible[k] if possible[k] > 0 else 0.0
            traits[k].append(Trait(name, kind, texts[k], whole[k], float(strength)))
        telling.append((name, float(weights @ nats)))
    for one in traits:
        one.sort(key=lambda trait: -trait.strength)
    return Findings(
        n_rows=n_rows,
        n_columns=len(model.profiles_),
        sizes=sizes,
        uncertain=np.bincount(labels[confidence < threshold], minlength=K),
        confidence=np.bincount(labels, weights=confidence, minlength=K) / np.maximum(sizes, 1),
        traits=traits,
        telling=sorted(telling, key=lambda item: -item[1]),
        threshold=threshold,
    )


def compare(model: Any, truth: Any) -> Agreement:
    """The clusters beside known groups; objects without a known group are left out, and outliers."""
    known = np.asarray(truth, dtype=object)
    if known.shape != (len(model.labels_),):
        raise ValueError(
            f"truth has shape {known.shape}: give one group for each of {len(model.labels_)} rows"
        )
    seen = np.array([value is not None and value == value for value in known])  # NaN is not itself
    seen &= np.asarray(model.labels_) >= 0
    names, codes = np.unique([str(value) for value in known[seen]], return_inverse=True)
    labels = np.asarray(model.labels_)[seen]
    table = np.zeros((len(names), len(model.weights_)), np.int64)
    np.add.at(table, (codes, labels), 1)
    return Agreement(
        list(names),
        table,
        float(adjusted_rand(codes, labels)),
        float(normalized_mutual_info(codes, labels)),
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
        texts = [f"{number(a)} ± {number(b)}" for a, b in zip(mean, deviation)]
        beside = f"{number(whole)} ± {number(whole_deviation)}"
        return _information(stats.norm(mean, deviation), weights), texts, [beside] * len(mean)
    rate = np.asarray(profile["rate"])
    mean, law = (rate, stats.poisson(rate)) if kind == "count" else (1 / rate, stats.expon(scale=1 / rate))
    return _information(law, weights), [number(x) for x in mean], [number(weights @ mean)] * len(mean)


def _information(law: Any, weights: np.ndarray) -> np.ndarray:
    """Mean of ``log p_k(x) - log p(x)`` over evenly spaced quantiles of each cluster's law."""
    x = law.ppf((np.arange(QUANTILES)[:, None] + 0.5) / QUANTILES)
    log_p = law.logpmf if law.dist.name == "poisson" else law.logpdf
    L = log_p(x[:, :, None])  # the quantiles of cluster k under cluster j: [quantile, k, j]
    log_whole = logsumexp(L + np.log(weights), axis=2)
    return (np.diagonal(L, axis1=1, axis2=2) - log_whole).mean(axis=0)


def _describe_levels(
    profile: dict[str, np.ndarray], kind: str, weights: np.ndarray
) -> tuple[np.ndarray, list[str], list[str]]:
    P = np.asarray(profile["probabilities"])
    p = weights @ P
    differs = np.full(len(P), 1) if kind == "binary" else np.abs(P - p).argmax(axis=1)
    levels = [*profile["levels"], *(["(other)"] if len(profile["levels"]) < P.shape[1] else [])]
    texts = [f"{percent(row[v])} {shown(levels[v], 30)}" for row, v in zip(P, differs)]
    return rel_entr(P, p).sum(axis=1), texts, [percent(p[v]) for v in differs]
