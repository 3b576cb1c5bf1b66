"""From blocks of columns to a Bayesian tree: starting values, learning on a sample, and trees over many rows.

Many rows are divided by the tree of a sample, in the spirit of the randomized algorithm of Heller and Ghahramani
(2005): every row goes to the part of that tree that predicts it best, a tree is grown over each part, and these trees
are merged as leaves that already have their weight. The result is one binary tree over all rows, whose odds and bound
are computed as for any other tree; only the search was restricted. Time is O(N m) evaluations for groups of about m
rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from partita.engines.checkpoints import Checkpoint
from partita.engines.passes.rows import predictive
from partita.engines.run import Control
from partita.execution import Serial, check_memory, row_chunks
from partita.families import Bernoulli, Block, Ordinal, entry_of
from partita.families.contract import is_conjugate, n_columns, partly_seen, stats_start
from partita.families.data import take
from partita.trees.bayesian.cut import leaf_labels
from partita.trees.bayesian.learning import GrowthResult, climb, evidence_of, grow_and_learn
from partita.trees.bayesian.merging import Merges, TreeLeaves, grow, log_bound, row_leaves

LEARNING_ROWS = 600  # size of the sample on which hyper-parameters are learned
PSEUDO_ROWS = 2.0  # weight of the observed shares of a binary column in its starting prior
GROUP_ROWS = 500  # maximum number of rows of a group
SAMPLE_ROWS = 1000  # maximum size of the sample whose tree divides the other rows
MAX_PARTS = 200  # maximum number of parts into which this tree is cut


def check_blocks(blocks: Sequence[Block]) -> None:
    """Refuse families without a log marginal, and vectors that are only partly observed."""
    for block in blocks:
        name = type(block.family).__name__
        if not is_conjugate(block.family):
            raise ValueError(
                f"{name} is not conjugate, and a tree needs marginal likelihoods: choose another family, or use "
                "Mixture(inference='gibbs')"
            )
        if isinstance(block.family, Ordinal):
            raise ValueError(
                "trees cannot draw the latent variables of ordinal columns "
                f"({', '.join(map(str, block.columns[:5]))}): declare them 'categorical' (or 'real' if the levels are "
                "numbers), or use Mixture"
            )
        if partly_seen(block.family, block.data):
            raise ValueError(
                f"trees cannot complete partly observed vectors ({name}, columns "
                f"{', '.join(map(str, block.columns[:5]))}): use a family that reads single cells (gaussian, poisson), "
                "or rows without missing values"
            )


def starting_families(blocks: Sequence[Block], plan: Any, learn_hyper: bool) -> tuple[Any, ...]:
    """The default families; if they will be learned, binary columns start from their observed shares.

    Starting from equal pseudo-counts, learning ends in a poorer optimum for columns of rare ones (words in documents).
    """
    out = []
    for block in blocks:
        family, options = block.family, plan.families[entry_of(block.family).kind][1]
        if learn_hyper and not options and isinstance(family, Bernoulli):
            seen = (block.data >= 0).sum(axis=0)
            share = ((block.data == 1).sum(axis=0) + 0.5) / (seen + 1.0)
            family = Bernoulli(PSEUDO_ROWS * share, PSEUDO_ROWS * (1.0 - share))
        out.append(family)
    return tuple(out)


def grow_tree(
    blocks: Sequence[Block],
    families: Sequence[Any],
    n_rows: int,
    model: Any,
    rng: np.random.Generator,
    *,
    control: Control,
    executor: Any,
    checkpoint: Checkpoint | None = None,
) -> tuple[GrowthResult, TreeLeaves]:
    """The tree for the parameters of a :class:`BayesianTree`, and its leaves."""
    _check_size(blocks, n_rows)
    concentration = 1.0 if model.concentration is None else float(model.concentration)
    learning = {
        "learn_likelihood": model.learn_hyper,
        "learn_concentration": model.learn_hyper and model.concentration is None,
    }
    rounds = {"n_rounds": model.max_iter, "tol": model.tol, "control": control, "checkpoint": checkpoint}
    if n_rows <= min(LEARNING_ROWS, model.max_exact):
        grown = grow_and_learn(families, _leaves(blocks, n_rows), concentration, **learning, **rounds)
        return grown, row_leaves(blocks, grown.families, n_rows, grown.concentration)
    centers, n_iter, reason = tuple(families), 0, "converged"
    if model.learn_hyper:
        rows = np.sort(rng.choice(n_rows, size=min(LEARNING_ROWS, n_rows), replace=False))
        sample = [block._replace(data=take(block.data, rows)) for block in blocks]
        found = grow_and_learn(families, _leaves(sample, len(rows)), concentration, **learning, **rounds)
        families, concentration = found.families, found.concentration
        n_iter, reason = found.n_iter, found.reason
    leaves = row_leaves(blocks, families, n_rows, concentration)
    if n_rows <= model.max_exact:
        merges = grow(families, leaves, concentration)
    else:
        merges = grow_in_groups(families, blocks, leaves, concentration, rng, executor=executor)
    if model.learn_hyper and not (control.halted or control.late):
        families, concentration, _ = climb(
            families, merges.children, leaves, concentration, centers=centers, **learning
        )
    evidence = evidence_of(families, merges.children, leaves, concentration)
    bound = log_bound(evidence, n_rows, concentration)
    merges = Merges(merges.children, evidence.log_odds)
    return GrowthResult(tuple(families), concentration, merges, bound, n_iter + 1, reason), leaves


def _leaves(blocks: Sequence[Block], n_rows: int) -> Any:
    return lambda families, concentration: row_leaves(blocks, families, n_rows, concentration)


def _check_size(blocks: Sequence[Block], n_rows: int) -> None:
    """Refuse what does not fit into memory: statistics of all nodes, in at most two layouts."""
    numbers = sum(int(stats_start(block.family, n_columns(block.family))) for block in blocks)
    check_memory(
        8 * 6 * n_rows * numbers,
        f"statistics of {n_rows:,} leaves",
        "fit a sample of the rows, or a family with fewer statistics ('gaussian')",
    )


# ---- many rows ---------------------------------------------------------------------------------------------


def grow_in_groups(
    families: Sequence[Any],
    blocks: Sequence[Block],
    leaves: TreeLeaves,
    concentration: float,
    rng: np.random.Generator,
    *,
    max_rows: int = GROUP_ROWS,
    executor: Any = None,
) -> Merges:
    """One tree over all leaves, from the trees of groups of at most ``max_rows`` rows.

    Examples
    --------
    >>> from partita.families import GaussianDiagonal
    >>> X = np.random.default_rng(0).normal(size=(60, 2)) + 9.0 * (np.arange(60) % 2)[:, None]
    >>> block = Block(GaussianDiagonal.default(2), (X - 4.5) / 5, ("x", "y"))
    >>> leaves = row_leaves([block], [block.family], 60, 1.0)
    >>> merges = grow_in_groups([block.family], [block], leaves, 1.0, np.random.default_rng(0), max_rows=10)
    >>> int((merges.log_odds < 0).sum())  # two groups: one merge is unlikely
    1
    """
    N = len(leaves.n)
    blocks = [block._replace(family=family) for block, family in zip(blocks, families, strict=True)]
    groups = _divide(families, blocks, leaves, concentration, rng, max_rows, np.arange(N))
    children, log_odds, roots = [], [], []
    next_node = N
    executor = Serial() if executor is None else executor
    trees = executor.map(lambda rows: grow(families, _some(leaves, rows), concentration), groups)
    for rows, merges in zip(groups, trees, strict=True):
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


def _some(leaves: TreeLeaves, rows: np.ndarray) -> TreeLeaves:
    return TreeLeaves(tuple(s[rows] for s in leaves.S), leaves.n[rows], leaves.log_weight[rows])


def _roots(leaves: TreeLeaves, groups: Sequence[np.ndarray], log_odds: Sequence[np.ndarray]) -> TreeLeaves:
    """Whole trees as leaves: the weight of a merge is the product of both weights times one plus the odds."""
    S = tuple(np.stack([s[rows].sum(axis=0) for rows in groups]) for s in leaves.S)
    n = np.array([leaves.n[rows].sum() for rows in groups])
    weight = [
        leaves.log_weight[rows].sum() + np.logaddexp(0.0, odds).sum()
        for rows, odds in zip(groups, log_odds, strict=True)
    ]
    return TreeLeaves(S, n, np.array(weight))


def _divide(families, blocks, leaves, concentration, rng, max_rows, rows) -> list[np.ndarray]:
    """Groups of at most ``max_rows`` rows."""
    if len(rows) <= max_rows:
        return [rows]
    sample = rng.choice(rows, size=min(2 * max_rows, SAMPLE_ROWS, len(rows)), replace=False)
    merges = grow(families, _some(leaves, sample), concentration)
    n_parts = int(min(MAX_PARTS, len(sample) // 2, max(2, 2 * len(rows) // max_rows)))
    labels, _ = leaf_labels(merges, _parts_of_tree(merges, n_parts))
    S = tuple(
        np.stack([s[sample[labels == g]].sum(axis=0) for g in range(n_parts)], axis=1) for s in leaves.S
    )
    score = predictive(blocks, S, np.log(np.bincount(labels)))
    part = np.empty(len(rows), np.int64)
    for some in row_chunks(len(rows)):
        part[some] = score(rows[some]).argmax(axis=1)
    parts = [rows[part == g] for g in range(n_parts) if (part == g).any()]
    if len(parts) == 1:  # the tree does not distinguish these rows: any division will do
        return np.array_split(rows, -(-len(rows) // max_rows))
    return [
        small
        for large in parts
        for small in _divide(families, blocks, leaves, concentration, rng, max_rows, large)
    ]


def _parts_of_tree(merges: Merges, n_parts: int) -> np.ndarray:
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
