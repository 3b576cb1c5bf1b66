"""The words of a document given its length, under draws of overlapping views whose words are Poisson."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln, logsumexp, xlogy

from partita.families.contract import summarize
from partita.views.crosscat.layout import take_columns
from partita.views.overlapping.draws import cell_statistics
from partita.views.overlapping.state import State, by_views
from partita.views.overlapping.table import OverlapTable

__all__ = ["WordDraw", "WordGroup", "log_words", "word_draw"]

TOTALS = 2000  # labels in all views together, drawn for the law of the length
SAMPLES = 200  # labels of a document, drawn for its probability
ROUNDS = 15  # of the mean field that they are drawn from


class WordGroup(NamedTuple):
    """Words with the same views: their rates in every combination of clusters, new ones included."""

    views: tuple[int, ...]
    columns: np.ndarray
    shape: tuple[int, ...]  # clusters of each view, and one more
    rates: np.ndarray  # [combination, word]


class WordDraw(NamedTuple):
    """What one draw says about words."""

    log_shares: tuple[np.ndarray, ...]  # of the clusters of each view, a new one last
    groups: tuple[WordGroup, ...]


def word_draw(table: OverlapTable, state: State) -> WordDraw:
    """Rates of all words, at their posterior means, and shares of the clusters."""
    assert table.cells is not None
    (block,), (family,) = table.cells.blocks, state.hyper.families
    sizes = [np.append(np.bincount(z), state.concentration) for z in state.Z]
    groups = []
    for views, found in by_views(state.Y).items():
        columns, shape = np.array(found), tuple(len(sizes[v]) for v in views)
        codes = np.array(list(itertools.product(*[range(K) for K in shape])), dtype=np.int64)
        codes = codes.reshape(int(np.prod(shape)), len(views))
        S = cell_statistics(block, family, state, views, codes, columns, 0)
        rates = summarize(take_columns(family, columns), S)["rates"]
        groups.append(WordGroup(views, columns, shape, rates))
    return WordDraw(tuple(np.log(n / n.sum()) for n in sizes), tuple(groups))


def log_words(draws: Sequence[WordDraw], X: np.ndarray, length: np.ndarray) -> np.ndarray:
    """Log probability of each document's counts given their sum, averaged over draws.

    Words are independent Poisson given the labels. The labels of a document are summed over by importance sampling from
    a mean field, exact in the limit and a little too low else; what conditions on the length is the probability of the
    sum, whose rate is averaged over labels drawn from their shares.
    """
    rng = np.random.default_rng(0)  # the same question has the same answer
    constant = (xlogy(X, length[:, None]) - gammaln(X + 1.0)).sum(axis=1)
    each = []
    for draw in draws:
        fields = [_potential(group, X, length) for group in draw.groups]
        q = _mean_field(draw, fields)
        log_counts = _importance(draw, fields, q, rng) + constant
        each.append(log_counts - _log_total(draw, length, rng))
    return logsumexp(np.stack(each), axis=0) - np.log(len(each))


def _potential(group: WordGroup, X: np.ndarray, length: np.ndarray) -> np.ndarray:
    """Log likelihood of a group's words in every combination: [document, cluster of view 1, ...]."""
    L = X[:, group.columns] @ np.log(group.rates).T - np.outer(length, group.rates.sum(axis=1))
    return L.reshape(len(X), *group.shape)


def _mean_field(draw: WordDraw, fields: list[np.ndarray]) -> list[np.ndarray]:
    """Independent labels of each document that explain it best: [document, cluster] of each view."""
    N = len(fields[0])
    q = [np.tile(np.exp(share), (N, 1)) for share in draw.log_shares]
    for _ in range(ROUNDS):
        for v, share in enumerate(draw.log_shares):
            L = np.tile(share, (N, 1))
            for group, field in zip(draw.groups, fields, strict=True):
                if v in group.views:
                    L += _expected(field, group.views, v, q)
            q[v] = np.exp(L - logsumexp(L, axis=1, keepdims=True))
    return q


def _expected(field: np.ndarray, views: tuple[int, ...], v: int, q: list[np.ndarray]) -> np.ndarray:
    """Mean of a potential over the labels of all its views but v: [document, cluster of v]."""
    for j in reversed(range(len(views))):
        if views[j] != v:
            weight = np.expand_dims(q[views[j]], [k for k in range(1, field.ndim) if k != j + 1])
            field = (field * weight).sum(axis=j + 1)
    return field


def _importance(draw: WordDraw, fields: list[np.ndarray], q: list[np.ndarray], rng: Any) -> np.ndarray:
    """Log of the mean weight of labels drawn from q."""
    N = len(fields[0])
    rows = np.arange(N)
    weights = np.empty((SAMPLES, N))
    for s in range(SAMPLES):
        total, z = np.zeros(N), []
        for share, each in zip(draw.log_shares, q, strict=True):
            k = np.minimum((rng.random((N, 1)) > np.cumsum(each, axis=1)).sum(axis=1), each.shape[1] - 1)
            total += share[k] - np.log(np.maximum(each[rows, k], 1e-300))
            z.append(k)
        for group, field in zip(draw.groups, fields, strict=True):
            total += field[(rows, *(z[v] for v in group.views))]
        weights[s] = total
    return logsumexp(weights, axis=0) - np.log(SAMPLES)


def _log_total(draw: WordDraw, length: np.ndarray, rng: Any) -> np.ndarray:
    """Log probability that all words together come to the length."""
    z = [rng.choice(len(share), size=TOTALS, p=np.exp(share)) for share in draw.log_shares]
    rate = np.zeros(TOTALS)
    for group in draw.groups:
        rate += group.rates.sum(axis=1).reshape(group.shape)[tuple(z[v] for v in group.views)]
    mean = np.outer(length, rate)
    log_p = xlogy(length[:, None], mean) - mean - gammaln(length + 1.0)[:, None]
    return logsumexp(log_p, axis=1) - np.log(TOTALS)
