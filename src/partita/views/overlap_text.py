"""The words of a document given its length, under draws of views whose words are Poisson."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import gammaln, logsumexp, xlogy

from partita.families.contract import summarize
from partita.views.base import Draw

__all__ = ["log_words"]

SAMPLES = 2000  # states of all factors together, for the law of the total


def log_words(draws: Sequence[Draw], data: Sequence[Any], length: np.ndarray) -> np.ndarray:
    """Log probability of each document's counts given their sum, averaged over draws.

    Words are independent Poisson given the states of the factors; what conditions on the length is the probability of
    the sum, whose rate depends on all states together and is averaged over states drawn from their weights.
    """
    rng = np.random.default_rng(0)  # the same question has the same answer
    each = []
    for draw in draws:
        log_counts, total = np.zeros(len(length)), np.zeros(SAMPLES)
        for factor in draw.factors:
            L = np.tile(factor.log_weights, (len(length), 1))
            rate_of_state = np.zeros(len(factor.log_weights))
            for cells in factor.cells:
                rates = summarize(cells.family, cells.S)["rates"]  # [state, word]
                x = data[cells.block].X[:, cells.positions]
                L += x @ np.log(rates).T - np.outer(length, rates.sum(axis=1))
                L += (xlogy(x, length[:, None]) - gammaln(x + 1.0)).sum(axis=1, keepdims=True)
                rate_of_state += rates.sum(axis=1)
            log_counts += logsumexp(L, axis=1)
            total += rng.choice(rate_of_state, size=SAMPLES, p=np.exp(factor.log_weights))
        mean = np.outer(length, total)
        log_total = logsumexp(xlogy(length[:, None], mean) - mean, axis=1) - np.log(SAMPLES)
        each.append(log_counts - (log_total - gammaln(length + 1.0)))
    return logsumexp(np.stack(each), axis=0) - np.log(len(each))
