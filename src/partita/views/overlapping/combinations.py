"""Columns of any conjugate family in overlapping views, with a component for every combination of clusters.

A column has its own parameters in each occupied combination of the clusters of its views; a column in no view has one
set of parameters. All parameters are integrated out.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

from partita.engines.gibbs.chain import _slice_entries, _walk_columns
from partita.engines.passes.rows import n_stats
from partita.families.bernoulli import Bernoulli
from partita.families.categorical import Categorical
from partita.families.contract import n_columns, stats_start, unconstrained
from partita.families.crossed import CrossedData, crossed
from partita.families.data import n_rows
from partita.families.poisson import Poisson
from partita.families.registry import Block
from partita.families.rows import add_statistics, log_marginals
from partita.views.overlapping.state import OverlapState, by_views


def combination_labels(Z: Any, views: tuple[int, ...], n: int) -> np.ndarray:
    """One label per occupied combination of the labels in some views.

    Examples
    --------
    >>> combination_labels((np.array([0, 0, 1]), np.array([1, 0, 0])), (0, 1), 3)
    array([1, 0, 2])
    >>> combination_labels((), (), 3)
    array([0, 0, 0])
    """
    code = np.zeros(n, dtype=np.int64)
    for v in views:
        code = code * (int(Z[v].max()) + 1) + Z[v]
    return np.unique(code, return_inverse=True)[1].ravel().astype(np.int64)


class CombinationScores:
    """Log marginal likelihood of every column under any set of views, given the labels of the rows."""

    def __init__(self, data: CombinationColumns, Z: Any, families: tuple[Any, ...]):
        self.data, self.Z, self.families = data, Z, families
        self.memo: dict[tuple[int, ...], np.ndarray] = {}

    def __call__(self, views: tuple[int, ...]) -> np.ndarray:
        """Scores under one set of views, in increasing order: [column]."""
        if views not in self.memo:
            z = combination_labels(self.Z, views, self.data.n_rows)
            parts = []
            for block, family in zip(self.data.blocks, self.families, strict=True):
                S = np.zeros((n_stats(family), int(z.max()) + 1))
                add_statistics(family, block.data, z, S)
                parts.append(log_marginals(family, S).sum(axis=1))
            self.memo[views] = np.concatenate(parts)
        return self.memo[views]

    def total(self, found: dict[tuple[int, ...], list[int]]) -> float:
        """Sum of the scores of all columns, each under its own set of views."""
        return sum(float(self(views)[columns].sum()) for views, columns in found.items())

    def of_columns(self, views: tuple[int, ...], columns: Any) -> np.ndarray:
        """Scores of some columns under one set of views."""
        return self(views)[columns]

    def of(self, subsets: list[tuple[int, ...]]) -> np.ndarray:
        """Scores under several sets of views: [subset, column]."""
        return np.array([self(views) for views in subsets])


class CombinationColumns(NamedTuple):
    """Blocks of columns; columns are numbered block after block."""

    blocks: tuple[Block, ...]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return n_rows(self.blocks[0].data)

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return sum(int(n_columns(block.family)) for block in self.blocks)

    @property
    def spans(self) -> list[tuple[int, int]]:
        """First column of each block, and the column after its last."""
        ends = np.cumsum([0] + [int(n_columns(block.family)) for block in self.blocks])
        return [(int(a), int(b)) for a, b in itertools.pairwise(ends)]

    def scores(self, Z: Any, families: tuple[Any, ...]) -> CombinationScores:
        """Log marginal likelihoods given the labels of all views."""
        return CombinationScores(self, Z, families)

    def mixture_blocks(self, Z: Any, Y: np.ndarray, v: int, families: tuple[Any, ...]) -> list[Block]:
        """The columns of view v as blocks of a mixture, given the labels in the other views.

        Every block of the table is included, even without columns, so that all views have blocks of the same types.
        """
        groups: dict[tuple[int, ...], np.ndarray] = {}
        out = []
        for (first, last), block, family in zip(self.spans, self.blocks, families, strict=True):
            columns = np.flatnonzero(Y[first:last, v])
            code = np.zeros((self.n_rows, len(columns)), dtype=np.int64)
            for j, d in enumerate(columns):
                others = tuple(int(u) for u in np.flatnonzero(Y[first + d]) if u != v)
                if others not in groups:
                    groups[others] = combination_labels(Z, others, self.n_rows)
                code[:, j] = groups[others]
            n_groups = code.max(axis=0, initial=0) + 1
            out.append(Block(crossed(family, columns, n_groups), CrossedData(block.data, code), ()))
        return out

    def statistics(self, Z: Any, Y: np.ndarray, families: tuple[Any, ...]) -> list[np.ndarray]:
        """Statistics of each block, [statistic, combination]; entries beyond the combinations of a column are 0."""
        found = by_views(Y)
        labels = {views: combination_labels(Z, views, self.n_rows) for views in found}
        K = max(int(z.max()) + 1 for z in labels.values())
        out = []
        for (first, last), block, family in zip(self.spans, self.blocks, families, strict=True):
            total = np.zeros((n_stats(family), K))
            for views, columns in found.items():
                mine = [d - first for d in columns if first <= d < last]
                if mine:
                    S = np.zeros_like(total)
                    add_statistics(family, block.data, labels[views], S)
                    for d in mine:
                        at = slice(int(stats_start(family, d)), int(stats_start(family, d + 1)))
                        total[at] = S[at]
            out.append(total)
        return out

    def learn(
        self, state: OverlapState, families: tuple[Any, ...], rng: np.random.Generator
    ) -> tuple[Any, ...]:
        """Draw the hyper-parameters of the families, as in :mod:`partita.engines.gibbs.chain`."""
        out = []
        Y = state.Y[-self.n_columns :]
        statistics = self.statistics(state.Z, Y, families)
        for block, family, S in zip(self.blocks, families, statistics, strict=True):
            for name, mean in unconstrained(block.family).items():
                alone = n_columns(family) > 1 and len(mean) == n_columns(family)
                family = (_walk_columns if alone else _slice_entries)(family, name, mean, S, rng)
            out.append(family)
        return tuple(out)

    def numbers(self) -> tuple[np.ndarray, np.ndarray]:
        """The data as numeric columns for screening: (rows x numbers, the column of each)."""
        parts, owners = [], []
        for (first, _), block in zip(self.spans, self.blocks, strict=True):
            for d in range(int(n_columns(block.family))):
                values = _as_numbers(block, d)
                parts.append(values)
                owners += [first + d] * values.shape[1]
        return np.hstack(parts), np.array(owners)


def _as_numbers(block: Block, d: int) -> np.ndarray:
    """One column as numbers: categories one-hot encoded, square roots of rates."""
    if isinstance(block.family, Poisson):
        return np.sqrt(block.data.X[:, [d]] / block.data.exposure[:, None])
    x = np.asarray(block.data[:, d])
    if isinstance(block.family, (Bernoulli, Categorical)):
        levels = [1] if isinstance(block.family, Bernoulli) else range(int(x.max()) + 1)
        hot = np.column_stack([x == level for level in levels]).astype(float)
        hot[x < 0] = np.nan
        return hot
    return x[:, None].astype(float)
