"""Bayesian trees over many rows: a tree of a sample deals the rows out into small groups, each of which is exact.

In the spirit of the randomised algorithm of Heller and Ghahramani (2005): a sample is clustered, every row goes to the
part of that tree that predicts it best, each part grows a tree of its own, and the trees are merged as leaves that
already have their weight. The result is one binary tree over all rows, with the same odds and the same bound as any
other; only the search was narrower. Time is O(N m) evaluations for groups of about m rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from partita.engines.passes.rows import predictive
from partita.execution import row_chunks
from partita.families.registry import Block
from partita.trees.bayesian.cut import leaf_labels
from partita.trees.bayesian.merging import Leaves, Merges, grow

__all__ = ["grow_in_groups"]

GROUP, SAMPLE, MOST_GROUPS = 500, 1000, 200  # rows of a group, rows of the sample, parts that it is cut into


def grow_in_groups(
    families: Sequence[Any],
    blocks: Sequence[Block],
    leaves: Leaves,
    concentration: float,
    rng: np.random.Generator,
    group: int = GROUP,
) -> Merges:
    """One tree over all leaves, groups of at most ``group`` rows first.

    Examples
    --------
    >>> from partita.trees.bayesian.merging import row_leaves
    >>> from partita.families import GaussianDiagonal
    >>> X = np.random.default_rng(0).normal(size=(60, 2)) + 9.0 * (np.arange(60) % 2)[:, None]
    >>> block = Block(GaussianDiagonal.default(2), (X - 4.5) / 5, ("x", "y"))
    >>> leaves = row_leaves([block], [block.family], 60, 1.0)
    >>> merges = grow_in_groups([block.family], [block], leaves, 1.0, np.random.default_rng(0), group=10)
    >>> int((merges.log_odds < 0).sum())  # two groups: one merge is unlikely
    1
    """
    N = len(leaves.n)
    blocks = [block._replace(family=family) for block, family in zip(blocks, families, strict=True)]
    groups = _deal(families, blocks, leaves, concentration, rng, group, np.arange(N))
    children, log_odds, roots = [], [], []
    next_node = N
    for rows in groups:
        merges = grow(families, _some(leaves, rows), concentration)
        names = np.concatenate([rows, next_node + np.arange(len(rows) - 1)])
        children.append(names[merges.children].reshape(-1, 2))
        log_odds.append(merges.log_odds)
        next_node += len(rows) - 1
        roots.append(names[-1])
    top = grow(families, _roots(leaves, groups, log_odds), concentration)
    names = np.concatenate([roots, next_node + np.arange(len(groups) - 1)])
    children.append(names[top.children].reshape(-1, 2))
    log_odds.append(top.log_odds)
    return Merges(np.concatenate(children).astype(np.int64), np.concatenate(log_odds))


def _some(leaves: Leaves, rows: np.ndarray) -> Leaves:
    return Leaves(tuple(s[rows] for s in leaves.S), leaves.n[rows], leaves.log_weight[rows])


def _roots(leaves: Leaves, groups: Sequence[np.ndarray], log_odds: Sequence[np.ndarray]) -> Leaves:
    """Whole trees as leaves: each merge multiplies the weights of its sides by one plus its odds."""
    S = tuple(np.stack([s[rows].sum(axis=0) for rows in groups]) for s in leaves.S)
    n = np.array([leaves.n[rows].sum() for rows in groups])
    weight = [
        leaves.log_weight[rows].sum() + np.logaddexp(0.0, odds).sum()
        for rows, odds in zip(groups, log_odds, strict=True)
    ]
    return Leaves(S, n, np.array(weight))


def _deal(families, blocks, leaves, concentration, rng, group, rows) -> list[np.ndarray]:
    """Rows in groups of at most ``group``."""
    if len(rows) <= group:
        return [rows]
    sample = rng.choice(rows, size=min(2 * group, SAMPLE, len(rows)), replace=False)
    merges = grow(families, _some(leaves, sample), concentration)
    n_parts = int(min(MOST_GROUPS, len(sample) // 2, max(2, 2 * len(rows) // group)))
    labels, _ = leaf_labels(merges, _largest_halved(merges, n_parts))
    S = tuple(
        np.stack([s[sample[labels == g]].sum(axis=0) for g in range(n_parts)], axis=1) for s in leaves.S
    )
    score = predictive(blocks, S, np.log(np.bincount(labels)))
    part = np.empty(len(rows), np.int64)
    for some in row_chunks(len(rows)):
        part[some] = score(rows[some]).argmax(axis=1)
    parts = [rows[part == g] for g in range(n_parts) if (part == g).any()]
    if len(parts) == 1:  # nothing tells these rows apart: any division will do
        return np.array_split(rows, -(-len(rows) // group))
    return [
        small for big in parts for small in _deal(families, blocks, leaves, concentration, rng, group, big)
    ]


def _largest_halved(merges: Merges, n_parts: int) -> np.ndarray:
    """Nodes of a tree: from the root down, the one with the most leaves is divided until there are ``n_parts``."""
    m = len(merges.children) + 1
    counts = np.ones(2 * m - 1)
    for t, pair in enumerate(merges.children):
        counts[m + t] = counts[pair].sum()
    nodes = [2 * m - 2]
    while len(nodes) < n_parts:
        largest = max(nodes, key=lambda node: counts[node])
        nodes.remove(largest)
        nodes += merges.children[largest - m].tolist()
    return np.array(nodes)
