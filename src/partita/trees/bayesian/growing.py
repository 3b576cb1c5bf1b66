"""From blocks of columns to a Bayesian tree: starting values, learning on a sample, and trees over many rows.

Many rows are divided by the tree of a sample, in the spirit of the randomized algorithm of Heller and Ghahramani
(2005): every row goes to the part of that tree that predicts it best, a tree is grown over each part, and these trees
are merged as leaves that already have their weight. The result is one binary tree over all rows, whose odds and bound
are computed as for any other tree; only the search was restricted. Time is O(N m) evaluations for groups of about m
rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from partita.engines.checkpoints import Checkpoint
from partita.engines.passes.rows import predictive
from partita.engines.run import Control
from partita.execution import Serial, check_memory, row_chunks
from partita.families import Bernoulli, Block, Ordinal, entry_of
from partita.families.contract import is_conjugate, n_columns, partly_seen, stats_start
from partita.families.data import take_block
from partita.fitting.families import Plan
from partita.trees.bayesian.cut import cut_nodes, leaf_labels
from partita.trees.bayesian.learning import GrowthResult, Regrow, climb, evidence_of, grow_and_learn
from partita.trees.bayesian.merging import Merges, TreeLeaves, grow, log_bound, row_leaves
from partita.trees.bayesian.regrowing import (
    SEARCH_SEED,
    grow_around,
    join_trees,
    search_from_afar,
    search_partition,
    some_leaves,
)

LEARNING_ROWS = 600  # size of the sample on which hyper-parameters are learned
PSEUDO_ROWS = 2.0  # weight of the observed shares of a binary column in its starting prior
GROUP_ROWS = 500  # maximum number of rows of a group
SAMPLE_ROWS = 1000  # maximum size of the sample whose tree divides the other rows
NO_MERGES = Merges(np.zeros((0, 2), np.int64), np.zeros(0))
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


def without_ties(plan: Plan) -> Plan:
    """The plan without intervals for tied values: a tree needs the value of every cell, and these are drawn."""
    name, options = plan.families.get("real", ("", {}))
    if name != "auto":
        return plan
    return plan._replace(families=plan.families | {"real": (name, {**options, "ties": False})})


def starting_families(blocks: Sequence[Block], plan: Plan, learn_hyper: bool) -> tuple[Any, ...]:
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
    regrow = _make_regrow(blocks) if model.regrow else None
    rounds = {"n_rounds": model.max_iter, "tol": model.tol, "control": control, "checkpoint": checkpoint}
    centers = tuple(families)
    if n_rows <= min(LEARNING_ROWS, model.max_exact):
        grown = grow_and_learn(
            families, _leaves(blocks, n_rows), concentration, regrow=regrow, **learning, **rounds
        )
    else:
        found = GrowthResult(centers, concentration, NO_MERGES, -np.inf, 0)
        if model.learn_hyper:
            rows = np.sort(rng.choice(n_rows, size=min(LEARNING_ROWS, n_rows), replace=False))
            sample = [take_block(block, rows) for block in blocks]
            some = _make_regrow(sample) if model.regrow else None
            found = grow_and_learn(
                families, _leaves(sample, len(rows)), concentration, regrow=some, **learning, **rounds
            )
        leaves = row_leaves(blocks, found.families, n_rows, found.concentration)
        if n_rows <= model.max_exact:
            merges = grow(found.families, leaves, found.concentration)
        else:
            merges = grow_in_groups(
                found.families, blocks, leaves, found.concentration, rng, executor=executor
            )
        grown = _with_bound(found._replace(merges=merges, n_iter=found.n_iter + 1), leaves)
        if model.learn_hyper and not (control.halted or control.late):
            grown = _learned(grown, leaves, centers, learning)
    if control.halted or control.late:
        return grown, row_leaves(blocks, grown.families, n_rows, grown.concentration)
    return _finish(
        grown, blocks, rng, executor, model, lambda one, leaves: _learned(one, leaves, centers, learning)
    )


def _finish(
    grown: GrowthResult, blocks: Sequence[Block], rng: Any, executor: Any, model: Any, learn: Callable
) -> tuple[GrowthResult, TreeLeaves]:
    """Search from other starts; a tree around the best partition, and its hyper-parameters, if its bound is higher."""
    families, alpha, n_rows = grown.families, grown.concentration, len(grown.merges.children) + 1
    leaves = row_leaves(blocks, families, n_rows, alpha)
    own = [block._replace(family=family) for block, family in zip(blocks, families, strict=True)]
    found = search_from_afar(own, leaves, alpha)
    grown = grown._replace(others=tuple(one.labels for one in found))
    if not model.regrow:
        return grown, leaves
    labels, _ = leaf_labels(grown.merges, cut_nodes(grown.merges))
    near = search_partition(own, leaves, labels, alpha, SEARCH_SEED)
    best = max((near, *found), key=lambda one: one.log_joint)

    def grow_group(rows: np.ndarray) -> Merges:
        if len(rows) <= model.max_exact:
            return grow(families, some_leaves(leaves, rows), alpha)
        mine = [take_block(block, rows) for block in own]
        return grow_in_groups(families, mine, some_leaves(leaves, rows), alpha, rng, executor=executor)

    merges = grow_around(families, leaves, best.labels, alpha, grow_group=grow_group)
    other = _with_bound(grown._replace(merges=merges, n_iter=grown.n_iter + 1), leaves)
    if other.bound <= grown.bound:
        return grown, leaves
    if model.learn_hyper:
        other = learn(other, leaves)
    return other, row_leaves(blocks, other.families, n_rows, other.concentration)


def _make_regrow(blocks: Sequence[Block]) -> Regrow:
    """A tree around the partition that a search from the clusters of a tree finds; None if it finds no better one."""

    def regrow(
        families: Sequence[Any], leaves: TreeLeaves, concentration: float, merges: Merges
    ) -> Merges | None:
        own = [block._replace(family=family) for block, family in zip(blocks, families, strict=True)]
        labels, _ = leaf_labels(merges, cut_nodes(merges))
        found = search_partition(own, leaves, labels, concentration, SEARCH_SEED)
        if found.labels is labels:
            return None
        return grow_around(families, leaves, found.labels, concentration)

    return regrow


def _with_bound(grown: GrowthResult, leaves: TreeLeaves) -> GrowthResult:
    """The odds and the bound of a tree under its hyper-parameters."""
    evidence = evidence_of(grown.families, grown.merges.children, leaves, grown.concentration)
    bound = log_bound(evidence, float(leaves.n.sum()), grown.concentration)
    return grown._replace(merges=Merges(grown.merges.children, evidence.log_odds), bound=bound)


def _learned(
    grown: GrowthResult, leaves: TreeLeaves, centers: Any, learning: dict[str, bool]
) -> GrowthResult:
    """The same tree with better hyper-parameters."""
    families, concentration, _ = climb(
        grown.families, grown.merges.children, leaves, grown.concentration, centers=centers, **learning
    )
    return _with_bound(grown._replace(families=tuple(families), concentration=concentration), leaves)


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
    executor = Serial() if executor is None else executor
    trees = list(executor.map(lambda rows: grow(families, some_leaves(leaves, rows), concentration), groups))
    return join_trees(families, leaves, groups, trees, concentration)


def _divide(families, blocks, leaves, concentration, rng, max_rows, rows) -> list[np.ndarray]:
    """Groups of at most ``max_rows`` rows."""
    if len(rows) <= max_rows:
        return [rows]
    sample = rng.choice(rows, size=min(2 * max_rows, SAMPLE_ROWS, len(rows)), replace=False)
    merges = grow(families, some_leaves(leaves, sample), concentration)
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
