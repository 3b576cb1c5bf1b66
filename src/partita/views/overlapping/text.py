"""Probability of the words of a document given its length, under draws of overlapping views with Poisson counts."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln, logsumexp, xlogy

from partita.families.columns import take_columns
from partita.families.contract import summarize
from partita.views.overlapping.draws import combination_statistics
from partita.views.overlapping.state import OverlapState, by_views
from partita.views.overlapping.table import OverlapTable

N_LENGTH_SAMPLES = 2000  # draws of the labels, for the probability of the length
N_LABEL_SAMPLES = 200  # draws of the labels of a document, for its probability
N_MEAN_FIELD_ITERATIONS = 15


class WordGroup(NamedTuple):
    """Words with the same views, and their rates in every combination of clusters, new clusters included."""

    views: tuple[int, ...]
    columns: np.ndarray
    shape: tuple[int, ...]  # number of clusters of each view, plus one for a new cluster
    rates: np.ndarray  # [combination, word]


class WordDraw(NamedTuple):
    """Word rates of one draw."""

    log_shares: tuple[np.ndarray, ...]  # log weights of the clusters of each view; a new cluster is last
    groups: tuple[WordGroup, ...]


def word_draw(table: OverlapTable, state: OverlapState) -> WordDraw:
    """Posterior means of the rates of all words, and weights of the clusters."""
    assert table.combined is not None
    (block,), (family,) = table.combined.blocks, state.hyper.families
    sizes = [np.append(np.bincount(z), state.concentration) for z in state.Z]
    groups = []
    for views, found in by_views(state.Y).items():
        columns, shape = np.array(found), tuple(len(sizes[v]) for v in views)
        codes = np.array(list(itertools.product(*[range(K) for K in shape])), dtype=np.int64)
        codes = codes.reshape(int(np.prod(shape)), len(views))
        S = combination_statistics(block, family, state, views, codes, columns, 0)
        rates = summarize(take_columns(family, columns), S)["rates"]
        groups.append(WordGroup(views, columns, shape, rates))
    return WordDraw(tuple(np.log(n / n.sum()) for n in sizes), tuple(groups))


def log_words(draws: Sequence[WordDraw], X: np.ndarray, length: np.ndarray) -> np.ndarray:
    """Log probability of the counts of each document given their sum, averaged over draws.

    Words are independent Poisson given the labels. The sum over the labels of a document is estimated by importance
    sampling from a mean-field approximation; the log of this estimate is slightly too low on average. It is divided by
    the probability of the length, averaged over labels drawn from the weights of the clusters.
    """
    rng = np.random.default_rng(0)  # so that the same call returns the same values
    constant = (xlogy(X, length[:, None]) - gammaln(X + 1.0)).sum(axis=1)
    each = []
    for draw in draws:
        fields = [_potential(group, X, length) for group in draw.groups]
        q = _mean_field(draw, fields)
        log_counts = _importance(draw, fields, q, rng) + constant
        each.append(log_counts - _log_total(draw, length, rng))
    return logsumexp(np.stack(each), axis=0) - np.log(len(each))


def _potential(group: WordGroup, X: np.ndarray, length: np.ndarray) -> np.ndarray:
    """Log likelihood of the words of a group in every combination: [document, cluster of view 1, ...]."""
    L = X[:, group.columns] @ np.log(group.rates).T - np.outer(length, group.rates.sum(axis=1))
    return L.reshape(len(X), *group.shape)


def _mean_field(draw: WordDraw, fields: list[np.ndarray]) -> list[np.ndarray]:
    """Mean-field approximation of the labels of each document: [document, cluster] of each view."""
    N = len(fields[0])
    q = [np.tile(np.exp(share), (N, 1)) for share in draw.log_shares]
    for _ in range(N_MEAN_FIELD_ITERATIONS):
        for v, share in enumerate(draw.log_shares):
            L = np.tile(share, (N, 1))
            for group, field in zip(draw.groups, fields, strict=True):
                if v in group.views:
                    L += _expected(field, group.views, v, q)
            q[v] = np.exp(L - logsumexp(L, axis=1, keepdims=True))
    return q


def _expected(field: np.ndarray, views: tuple[int, ...], v: int, q: list[np.ndarray]) -> np.ndarray:
    """Mean of a potential over the labels of all its views except v: [document, cluster of v]."""
    for j in reversed(range(len(views))):
        if views[j] != v:
            weight = np.expand_dims(q[views[j]], [k for k in range(1, field.ndim) if k != j + 1])
            field = (field * weight).sum(axis=j + 1)
    return field


def _importance(draw: WordDraw, fields: list[np.ndarray], q: list[np.ndarray], rng: Any) -> np.ndarray:
    """Log of the mean importance weight of labels drawn from q."""
    N = len(fields[0])
    rows = np.arange(N)
    weights = np.empty((N_LABEL_SAMPLES, N))
    for s in range(N_LABEL_SAMPLES):
        total, z = np.zeros(N), []
        for share, each in zip(draw.log_shares, q, strict=True):
            k = np.minimum((rng.random((N, 1)) > np.cumsum(each, axis=1)).sum(axis=1), each.shape[1] - 1)
            total += share[k] - np.log(np.maximum(each[rows, k], 1e-300))
            z.append(k)
        for group, field in zip(draw.groups, fields, strict=True):
            total += field[(rows, *(z[v] for v in group.views))]
        weights[s] = total
    return logsumexp(weights, axis=0) - np.log(N_LABEL_SAMPLES)


def _log_total(draw: WordDraw, length: np.ndarray, rng: Any) -> np.ndarray:
    """Log probability of the length of each document."""
    z = [rng.choice(len(share), size=N_LENGTH_SAMPLES, p=np.exp(share)) for share in draw.log_shares]
    rate = np.zeros(N_LENGTH_SAMPLES)
    for group in draw.groups:
        rate += group.rates.sum(axis=1).reshape(group.shape)[tuple(z[v] for v in group.views)]
    mean = np.outer(length, rate)
    log_p = xlogy(length[:, None], mean) - mean - gammaln(length + 1.0)[:, None]
    return logsumexp(log_p, axis=1) - np.log(N_LENGTH_SAMPLES)
