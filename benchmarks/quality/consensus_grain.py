"""What a user's choice among the alternatives of `Consensus` is worth, and its probabilities before and after.

*Alternatives.* `Consensus.alternatives_` are a coarse, a medium and a fine answer. Two figures show what they are worth
to somebody who knows the data: the score of the best of the three, picked with the classes known, and that of the one
whose band contains the number of classes. Neither is a score of the method alone.

*Before.* Until the pair probabilities were fitted on labeled sets, they were a weighted mean of the probability under
the clusters and of the share of the members that put two objects together; the confidence was the mean of the
probability of the label and of that share. Both are computed here from the same fit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from benchmarks.quality.consensus_methods import Outcome
from partita.consensus.member_statistics import own_agreement
from partita.labels import Coassociation
from partita.metrics import adjusted_rand
from partita.posterior.grain import BANDS

BEST, BAND = "Consensus, best alternative", "Consensus, band of K given"
N_BINS = 10


class Probabilities(NamedTuple):
    """What one fit says about pairs and about objects."""

    pairs: Any  # of (i, j)
    confidence: np.ndarray


def chosen_alternatives(model: Any, classes: np.ndarray) -> dict[str, Outcome]:
    """The best alternative, picked with the classes known, and the one in the band of the number of classes."""
    answers = {one.name: one.labels for one in model.alternatives_} or {"coarse": model.labels_}
    best = max(answers.values(), key=lambda labels: adjusted_rand(classes, labels))
    C = np.unique(classes).size
    bands = [name for name, (low, high) in BANDS.items() if low <= C and (high is None or high >= C)]
    # a grain with fewer groups has no finer answer than its finest
    in_band = answers.get(bands[0] if bands else "coarse", list(answers.values())[-1])
    return {BEST: at_level(model, best), BAND: at_level(model, in_band)}


def at_level(model: Any, labels: np.ndarray) -> Outcome:
    """Labels of another scale with pair probabilities: `Consensus` with other clusters."""
    share = trust(model)
    of_one_cluster = share + (1.0 - share) * 0.26

    def pairs(i: np.ndarray, j: np.ndarray) -> np.ndarray:
        before, now = model.labels_[i] == model.labels_[j], labels[i] == labels[j]
        return model.coclustering(i, j) + of_one_cluster * (now.astype(float) - before)

    return Outcome(labels, pairs)


def trust(model: Any) -> float:
    """Number of independent members over the mean number of labels of an object, at most 1."""
    present = float(((model._rows[model._row_of] >= 0) @ model._column_weights).mean())
    return min(1.0, model.independent_members_ / max(present, 1.0))


def before(model: Any, Y: np.ndarray) -> Probabilities:
    """The pair probabilities and the confidence as they were."""
    codes, z, R = model._rows[model._row_of], model.labels_, model.predict_proba(Y)
    votes, share = Coassociation(codes, model._column_weights), trust(model)

    def pairs(i: np.ndarray, j: np.ndarray) -> np.ndarray:
        together, agreed = (R[i] * R[j]).sum(axis=1), votes.pairs(i, j)
        return np.where(np.isnan(agreed), together, share * together + (1.0 - share) * agreed)

    n_levels = codes.max(axis=0) + 1
    own = own_agreement(z, codes, n_levels, np.ones(len(z)), model._column_weights)
    return Probabilities(pairs, (R[np.arange(len(z)), z] + own) / 2.0)


def judge_probabilities(model: Any, Y: np.ndarray, classes: np.ndarray) -> dict[str, float]:
    """Brier scores and calibration errors of pairs and of the confidence, before and after."""
    from sklearn.metrics import roc_auc_score

    i, j = np.triu_indices(len(classes), 1)
    same = classes[i] == classes[j]
    _, coded = np.unique(classes, return_inverse=True)
    main = np.array([np.bincount(coded[model.labels_ == k]).argmax() for k in range(model.n_clusters_)])
    right = coded == main[model.labels_]
    scores: dict[str, float] = {}
    for suffix, found in (
        ("", Probabilities(model.coclustering, model.confidence_)),
        ("_before", before(model, Y)),
    ):
        p, confidence = found.pairs(i, j), np.clip(found.confidence, 0.0, 1.0)
        scores["brier" + suffix] = float(np.mean((p - same) ** 2))
        scores["ece" + suffix] = calibration_error(p, same)
        scores["confidence_ece" + suffix] = calibration_error(confidence, right)
        if 0 < right.sum() < len(right):
            scores["confidence_auroc" + suffix] = float(roc_auc_score(right, confidence))
    return {name: round(score, 4) for name, score in scores.items()}


def calibration_error(probabilities: np.ndarray, truth: np.ndarray) -> float:
    """Mean over pairs of the distance between the mean probability of their bin and the share that is true."""
    bins = np.minimum((probabilities * N_BINS).astype(int), N_BINS - 1)
    gaps = np.bincount(bins, probabilities - truth, minlength=N_BINS)
    return float(np.abs(gaps).sum() / len(bins))
