"""Scores of a clustering against another one, or against known classes.

All functions of two labelings are called as in scikit-learn, `score(labels_true, labels_pred)`, take
labels of any type, and refuse missing labels (-1, None, NaN) unless `missing="drop"`.
"""

from partita.metrics.agreement import (
    PermutationTestResult,
    adjusted_rand,
    error_rate,
    permutation_significance,
    purity,
    rand,
)
from partita.metrics.information import (
    adjusted_mutual_info,
    mutual_info,
    normalized_mutual_info,
    variation_of_information,
)
from partita.metrics.likelihood import perplexity
from partita.metrics.matching import MatchingResult, match_labelings
from partita.metrics.pairs import (
    Interval,
    PairCounts,
    PairIntervals,
    PairScores,
    pair_counts,
    pairwise_f,
    pairwise_intervals,
    pairwise_precision,
    pairwise_recall,
    pairwise_scores,
)
from partita.metrics.sets import SetMatchingResult, set_matching, set_matching_f1
from partita.metrics.trees import dendrogram_purity

__all__ = [
    "Interval",
    "MatchingResult",
    "PairCounts",
    "PairIntervals",
    "PairScores",
    "PermutationTestResult",
    "SetMatchingResult",
    "adjusted_mutual_info",
    "adjusted_rand",
    "dendrogram_purity",
    "error_rate",
    "match_labelings",
    "mutual_info",
    "normalized_mutual_info",
    "pair_counts",
    "pairwise_f",
    "pairwise_intervals",
    "pairwise_precision",
    "pairwise_recall",
    "pairwise_scores",
    "permutation_significance",
    "perplexity",
    "purity",
    "rand",
    "set_matching",
    "set_matching_f1",
    "variation_of_information",
]
