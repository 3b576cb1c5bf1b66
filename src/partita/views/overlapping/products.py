"""Products of the labels of overlapping views with the data: what scores and parameters of additive columns need.

W is the matrix of the one-hot encoded clusters of all views and a column of ones, both times the size of the row, and
the row factors (:mod:`partita.views.overlapping.additive`). Most steps change one view, so the products of the latest
labels are kept, and new ones take from them all parts that belong to the same labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from partita.dispatch import kernel

if TYPE_CHECKING:
    from partita.views.overlapping.additive import AdditiveColumns, Effects

MAX_RECENT = 2  # products that are kept


@kernel
def cross_products(Z, offset, fresh, seen, sizes, F, G):
    """Add the entries of ``G = W' diag(seen) W`` that belong to fresh parts of W.

    W is the one-hot matrix of all labels and a column of ones, both times the sizes of the rows, and F. Its parts are
    the views; the last part is the column of ones with F.
    """
    V, N = Z.shape
    P, R = offset[V], F.shape[1]
    at = np.empty(V + 1, np.int64)
    at[V] = P
    for i in range(N):
        if seen[i] == 0.0:
            continue
        for v in range(V):
            at[v] = offset[v] + Z[v, i]
        size = sizes[i]
        for v in range(V + 1):
            if not fresh[v]:
                continue
            for u in range(V + 1):
                G[at[v], at[u]] += size * size
                if not fresh[u]:
                    G[at[u], at[v]] += size * size
        for r in range(R):
            for v in range(V + 1):
                if fresh[v] or fresh[V]:
                    G[at[v], P + 1 + r] += size * F[i, r]
                    G[P + 1 + r, at[v]] += size * F[i, r]
            if fresh[V]:
                for t in range(R):
                    G[P + 1 + r, P + 1 + t] += F[i, r] * F[i, t]


@kernel
def cross_products_with(Z, offset, fresh, sizes, F, X, T):
    """Add the rows of ``T = W'X`` that belong to fresh parts of W, as in :func:`cross_products`."""
    V, N = Z.shape
    P, D, R = offset[V], X.shape[1], F.shape[1]
    for i in range(N):
        for v in range(V + 1):
            if fresh[v]:
                at = offset[v] + Z[v, i] if v < V else P
                for d in range(D):
                    T[at, d] += sizes[i] * X[i, d]
        if fresh[V]:
            for r in range(R):
                for d in range(D):
                    T[P + 1 + r, d] += F[i, r] * X[i, d]


@kernel
def subtract_fit(X, Z, offset, sizes, F, coefficients, out):
    """``out = X - W coefficients``, with W as in :func:`cross_products`."""
    V, N = Z.shape
    P, D, R = offset[V], X.shape[1], F.shape[1]
    for i in range(N):
        for d in range(D):
            out[i, d] = X[i, d] - sizes[i] * coefficients[P, d]
        for r in range(R):
            for d in range(D):
                out[i, d] -= F[i, r] * coefficients[P + 1 + r, d]
        for v in range(V):
            at = offset[v] + Z[v, i]
            for d in range(D):
                out[i, d] -= sizes[i] * coefficients[at, d]


class Products(NamedTuple):
    """``W'X`` and, for each pattern of missing cells, ``W'W`` of the columns W that belong to some labels."""

    Z: tuple[np.ndarray, ...]
    rows: np.ndarray | None
    gain: np.ndarray | None
    offset: np.ndarray  # first column of W of each view, and that of the intercept
    T: np.ndarray
    G: list[np.ndarray]


class RecentProducts(NamedTuple):
    """The latest products of labels, of which new ones take all parts that belong to the same labels.

    Labels are recognized as the same object (arrays of states are never changed in place), so most steps compute the
    parts of one view only. The numbers do not depend on what is kept.
    """

    kept: list[Products]  # changed in place

    def __reduce__(self) -> tuple[type, tuple[list]]:
        return RecentProducts, ([],)

    def products(
        self, data: AdditiveColumns, Z: Sequence[np.ndarray], hyper: Effects
    ) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
        """Offsets, ``W'X`` and ``W'W``."""
        old, where = None, [-1] * len(Z)
        for one in tuple(self.kept):  # chains in other threads may change it
            if one.rows is hyper.rows and one.gain is hyper.gain:
                places = [_position(one.Z, z) for z in Z]
                if old is None or places.count(-1) < where.count(-1):
                    old, where = one, places
        if old is not None and len(old.Z) == len(Z) and where == list(range(len(Z))):
            return old[3:]
        found = self._computed(data, Z, hyper, old, where)
        self.kept[:] = [found, *self.kept[: MAX_RECENT - 1]]
        return found[3:]

    @staticmethod
    def _computed(
        data: AdditiveColumns, Z: Sequence[np.ndarray], hyper: Effects, old: Products | None, where: list[int]
    ) -> Products:
        widths = [int(z.max()) + 1 for z in Z]
        offset = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
        P = int(offset[-1]) + 1 + hyper.rank
        T, G = np.zeros((P, data.n_columns)), [np.zeros((P, P)) for _ in data.patterns]
        fresh = np.ones(len(Z) + 1, dtype=bool)
        if old is not None:
            fresh = np.append(np.array(where) < 0, False)
            kept = [v for v in range(len(Z)) if not fresh[v]]
            to = [np.arange(offset[v], offset[v + 1]) for v in kept]
            of = [np.arange(old.offset[where[v]], old.offset[where[v] + 1]) for v in kept]
            into = np.concatenate([*to, np.arange(offset[-1], P)])
            source = np.concatenate([*of, np.arange(old.offset[-1], len(old.T))])
            T[into] = old.T[source]
            for new, before in zip(G, old.G, strict=True):
                new[into[:, None], into] = before[source[:, None], source]
        if fresh.any():
            labels, sizes, F = data.design(Z, hyper)
            cross_products_with(labels, offset, fresh, sizes, F, data.filled, T)
            for (_, seen), new in zip(data.patterns, G, strict=True):
                cross_products(labels, offset, fresh, seen, sizes, F, new)
        return Products(tuple(Z), hyper.rows, hyper.gain, offset, T, G)


def _position(Z: Sequence[np.ndarray], z: np.ndarray) -> int:
    """Where an array is among others, as the same object; -1 if it is not."""
    for v, one in enumerate(Z):
        if one is z:
            return v
    return -1
