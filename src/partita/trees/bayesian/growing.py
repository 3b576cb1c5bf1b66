"""From blocks of columns to a Bayesian tree: where learning starts, and how much of the table it sees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from partita.execution import check_memory
from partita.families import Bernoulli, Block, entry_of
from partita.families.contract import is_conjugate, n_columns, partly_seen, stats_start
from partita.families.data import take
from partita.trees.bayesian.growing import grow_in_groups
from partita.trees.bayesian.learning import Grown, climb, evidence_of, grow_and_learn
from partita.trees.bayesian.merging import Leaves, Merges, grow, log_bound, row_leaves

__all__ = ["check_blocks", "grow_tree", "starting_families"]

LEARNING_ROWS = 600  # of the sample on which hyper-parameters are learned
PSEUDO_ROWS = 2.0  # what a binary column's own shares count for where learning starts


def check_blocks(blocks: Sequence[Block]) -> None:
    """Refuse families that have no log marginal, and vectors of which only a part was seen."""
    for block in blocks:
        name = type(block.family).__name__
        if not is_conjugate(block.family):
            raise ValueError(
                f"{name} is not conjugate, and a tree needs marginal likelihoods: choose another family, or use "
                "Mixture(inference='gibbs')"
            )
        if partly_seen(block.family, block.data):
            raise ValueError(
                f"trees cannot complete partly seen vectors ({name}, columns "
                f"{', '.join(map(str, block.columns[:5]))}): use a family that reads single cells (gaussian, poisson), "
                "or rows without missing values"
            )


def starting_families(blocks: Sequence[Block], plan: Any, learn_hyper: bool) -> tuple[Any, ...]:
    """The families' defaults; where they will be learned, binary columns start from their own shares.

    From equal pseudo-counts, columns of rare ones (words in documents) climb to a poorer optimum.
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
    blocks: Sequence[Block], families: Sequence[Any], n_rows: int, ask: Any, rng: np.random.Generator
) -> tuple[Grown, Leaves]:
    """The tree that the parameters of a :class:`BayesianTree` ask for, and its leaves."""
    _check_size(blocks, n_rows)
    concentration = 1.0 if ask.concentration is None else float(ask.concentration)
    learning = {
        "learn_likelihood": ask.learn_hyper,
        "learn_concentration": ask.learn_hyper and ask.concentration is None,
    }
    rounds = {"n_rounds": ask.max_iter, "tol": ask.tol}
    if n_rows <= min(LEARNING_ROWS, ask.max_exact):
        grown = grow_and_learn(families, _leaves(blocks, n_rows), concentration, **learning, **rounds)
        return grown, row_leaves(blocks, grown.families, n_rows, grown.concentration)
    centres, n_iter, converged = tuple(families), 0, True
    if ask.learn_hyper:
        rows = np.sort(rng.choice(n_rows, size=min(LEARNING_ROWS, n_rows), replace=False))
        sample = [block._replace(data=take(block.data, rows)) for block in blocks]
        found = grow_and_learn(families, _leaves(sample, len(rows)), concentration, **learning, **rounds)
        families, concentration = found.families, found.concentration
        n_iter, converged = found.n_iter, found.converged
    leaves = row_leaves(blocks, families, n_rows, concentration)
    if n_rows <= ask.max_exact:
        merges = grow(families, leaves, concentration)
    else:
        merges = grow_in_groups(families, blocks, leaves, concentration, rng)
    if ask.learn_hyper:
        families, concentration, _ = climb(
            families, merges.children, leaves, concentration, centres=centres, **learning
        )
    evidence = evidence_of(families, merges.children, leaves, concentration)
    bound = log_bound(evidence, n_rows, concentration)
    merges = Merges(merges.children, evidence.log_odds)
    return Grown(tuple(families), concentration, merges, bound, n_iter + 1, converged), leaves


def _leaves(blocks: Sequence[Block], n_rows: int) -> Any:
    return lambda families, concentration: row_leaves(blocks, families, n_rows, concentration)


def _check_size(blocks: Sequence[Block], n_rows: int) -> None:
    """Statistics of all nodes, in two layouts at most."""
    numbers = sum(int(stats_start(block.family, n_columns(block.family))) for block in blocks)
    check_memory(
        8 * 6 * n_rows * numbers,
        f"statistics of {n_rows:,} leaves",
        "fit a sample of the rows, or a family with fewer statistics ('gaussian')",
    )
