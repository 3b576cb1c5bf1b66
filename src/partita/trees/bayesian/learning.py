"""Hyper-parameters of a Bayesian tree, learned by maximizing its lower bound of the evidence.

For a given tree the gradient of log W at the root is the sum over the nodes of (probability that the node is a cluster)
times (gradient of its log marginal): one pass up, one pass down, and the derivatives of single log marginals, which are
central differences, so that every family has them. A quasi-Newton climb on the given tree and a new greedy tree
alternate; the bound never decreases.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import minimize
from scipy.special import digamma

from partita.engines.checkpoints import Checkpoint
from partita.engines.run import Control, iterate_from_checkpoint
from partita.families.contract import constrained, learn, n_columns, unconstrained
from partita.families.rows import log_marginals
from partita.trees.bayesian.cut import cut_nodes
from partita.trees.bayesian.merging import Evidence, Merges, TreeLeaves, grow, log_bound, node_sums, weigh

STEP = 1e-5  # of the central differences, on the unconstrained scale
# How far hyper-parameters may move from where they start, on the unconstrained scale. Wide enough for ordinary tables;
# without this bound, the width of clusters of repeated values (zeros of a chemical analysis) is learned to be 0.
MAX_MOVE = 2.0
MAX_SHAPE_MOVE = 4.0  # the same for each direction of a scale matrix
MIN_PROBABILITY = 1e-9  # nodes that are a cluster with a smaller probability do not enter the gradient
LOG_CONCENTRATION = (np.log(1e-3), np.log(1e3))


class GrowthResult(NamedTuple):
    """A tree, its hyper-parameters, their lower bound of the log evidence, and how learning ended."""

    families: tuple[Any, ...]
    concentration: float
    merges: Merges
    bound: float
    n_iter: int = 1  # trees that were grown
    reason: str = "converged"  # or "max_iter", "time_limit", "callback", "interrupted"
    others: tuple[np.ndarray, ...] = ()  # partitions that searches without knowledge of the tree have found


# (families, leaves, concentration, a tree over these leaves) -> another tree, or None
Regrow = Callable[[Sequence[Any], TreeLeaves, float, Merges], Merges | None]


class _Nodes(NamedTuple):
    """Statistics [statistic, node] of each block, and sizes, of all nodes of a tree."""

    children: np.ndarray
    S: tuple[np.ndarray, ...]
    n: np.ndarray


def _nodes(children: np.ndarray, leaves: TreeLeaves) -> _Nodes:
    S = tuple(np.ascontiguousarray(node_sums(children, s).T) for s in leaves.S)
    return _Nodes(children, S, node_sums(children, leaves.n))


def _weigh(families: Sequence[Any], nodes: _Nodes, concentration: float) -> Evidence:
    total = np.zeros(len(nodes.n))
    for family, S in zip(families, nodes.S, strict=True):
        total += log_marginals(family, S).sum(axis=0)
    return weigh(nodes.children, total, nodes.n, concentration)


def evidence_of(
    families: Sequence[Any], children: np.ndarray, leaves: TreeLeaves, concentration: float
) -> Evidence:
    """Odds, weights and probabilities of a tree over single rows under these hyper-parameters.

    Examples
    --------
    >>> from partita.trees.bayesian.merging import row_leaves
    >>> from partita.families import Bernoulli, Block
    >>> block = Block(Bernoulli.default(1), np.array([[1], [1]], np.int8), ("a",))
    >>> leaves = row_leaves([block], [block.family], 2, 1.0)
    >>> np.exp(evidence_of([block.family], np.array([[0, 1]]), leaves, 1.0).log_odds)
    array([1.5])
    """
    return _weigh(families, _nodes(children, leaves), concentration)


def climb(
    families: Sequence[Any],
    children: np.ndarray,
    leaves: TreeLeaves,
    concentration: float,
    *,
    centers: Sequence[Any] | None = None,
    learn_likelihood: bool = True,
    learn_concentration: bool = True,
    max_iter: int = 50,
) -> tuple[tuple[Any, ...], float, float]:
    """Better hyper-parameters for a given tree: families, concentration, and the bound that they reach.

    The search is bounded by a box around ``centers`` (default: the given families).

    Examples
    --------
    >>> from partita.trees.bayesian.merging import row_leaves
    >>> from partita.families import Bernoulli, Block
    >>> block = Block(Bernoulli.default(4), np.eye(4, dtype=np.int8).repeat(3, axis=0), tuple("abcd"))
    >>> leaves = row_leaves([block], [block.family], 12, 1.0)
    >>> merges = grow([block.family], leaves, 1.0)
    >>> before = log_bound(evidence_of([block.family], merges.children, leaves, 1.0), 12, 1.0)
    >>> families, concentration, after = climb([block.family], merges.children, leaves, 1.0)
    >>> bool(after > before + 1)
    True
    """
    nodes = _nodes(children, leaves)
    N = float(nodes.n[-1])
    centers = tuple(centers or families)
    if learn_likelihood:
        families = _propose(tuple(families), centers, nodes, concentration)
    parts = [_free(family) if learn_likelihood else {} for family in families]
    start = _flatten(parts, np.log(concentration))
    middle = _flatten([_free(center) if learn_likelihood else {} for center in centers], 0.0)
    box = [(value - MAX_MOVE, value + MAX_MOVE) for value in middle[:-1]]
    box.append(LOG_CONCENTRATION if learn_concentration else (start[-1], start[-1]))
    low, high = np.array(box).T

    def read(vector: np.ndarray) -> tuple[list[Any], float]:
        out, at = [], 0
        for family, part in zip(families, parts, strict=True):
            for name, value in part.items():
                family = constrained(family, name, vector[at : at + value.size].reshape(value.shape))
                at += value.size
            out.append(family)
        return out, float(np.exp(vector[-1]))

    def fall(vector: np.ndarray) -> tuple[float, np.ndarray]:
        now, alpha = read(vector)
        found = _weigh(now, nodes, alpha)
        slope = [_slopes(f, p, S, found.cluster_probability) for f, p, S in zip(now, parts, nodes.S)]
        expected_clusters = found.cluster_probability.sum()
        slope.append(np.array([expected_clusters + alpha * (digamma(alpha) - digamma(N + alpha))]))
        return -log_bound(found, N, alpha), -np.concatenate(slope)

    start = np.clip(start, low, high)
    before, _ = fall(start)
    found = minimize(
        fall, start, jac=True, method="L-BFGS-B", bounds=box, options={"maxiter": max_iter, "ftol": 1e-8}
    )
    best = found.x if found.fun <= before else start
    learned, alpha = read(best)
    return tuple(learned), alpha, -min(float(found.fun), before)


def _free(family: Any) -> dict[str, np.ndarray]:
    """Hyper-parameters on the unconstrained scale; empty for a family without any."""
    return {name: np.asarray(value, float) for name, value in unconstrained(family).items()}


def _flatten(parts: Sequence[dict[str, np.ndarray]], log_concentration: float) -> np.ndarray:
    values = [value.ravel() for part in parts for value in part.values()]
    return np.concatenate([*values, [log_concentration]])


def _propose(
    families: tuple[Any, ...], centers: tuple[Any, ...], nodes: _Nodes, concentration: float
) -> tuple[Any, ...]:
    """Empirical Bayes steps of the families on the probable clusters, kept while the bound increases inside the box.

    These steps also change what has no unconstrained scale, such as the shape of a scale matrix.
    """
    found = _weigh(families, nodes, concentration)
    for _ in range(5):
        chosen = found.cluster_probability > 0.5
        new = tuple(learn(f, S[:, chosen], nodes.n[chosen]) for f, S in zip(families, nodes.S, strict=True))
        new = tuple(
            after if _inside(after, center) else before
            for before, after, center in zip(families, new, centers, strict=True)
        )
        then = _weigh(new, nodes, concentration)
        if not then.log_weight[-1] > found.log_weight[-1] + 1e-6 * nodes.n[-1]:
            break
        families, found = new, then
    return families


def _inside(family: Any, center: Any) -> bool:
    """Whether hyper-parameters lie in the box around the center; for a scale matrix, in every direction."""
    here, there = _free(family), _free(center)
    if any((np.abs(here[name] - there[name]) > MAX_MOVE).any() for name in here):
        return False
    if not hasattr(family, "Psi"):
        return True
    width, usual = (f.Psi / (f.nu - len(f.Psi) + 1.0) for f in (family, center))
    ratios = np.log(np.maximum(eigh(width, usual, eigvals_only=True), 1e-300))
    return bool((np.abs(ratios) <= MAX_SHAPE_MOVE).all())


def _slopes(family: Any, part: dict[str, np.ndarray], S: np.ndarray, probability: np.ndarray) -> np.ndarray:
    """Derivatives of log W at the root by the hyper-parameters of a family on the unconstrained scale."""
    chosen = probability > MIN_PROBABILITY
    S, weight, D = np.ascontiguousarray(S[:, chosen]), probability[chosen], int(n_columns(family))
    out = []
    for name, value in _free(family).items():
        if name not in part:
            continue
        if value.size == D:  # one per column: all columns at once, because they are independent
            out.append(_difference(family, name, value, np.ones_like(value), S, weight))
            continue
        for e in range(value.size):
            direction = np.zeros(value.size)
            direction[e] = 1.0
            step = _difference(family, name, value, direction.reshape(value.shape), S, weight)
            out.append(np.array([step.sum()]))
    return np.concatenate([*out, np.zeros(0)])


def _difference(family: Any, name: str, value: Any, direction: Any, S: Any, weight: Any) -> np.ndarray:
    up, down = (constrained(family, name, value + sign * STEP * direction) for sign in (1.0, -1.0))
    return (log_marginals(up, S) - log_marginals(down, S)) @ weight / (2 * STEP)


class _Learning(NamedTuple):
    """State after a round of learning: the best tree so far, and the increase of its bound per object."""

    best: GrowthResult
    change: float
    n_iter: int

    @property
    def objective(self) -> float:
        return self.best.bound


def grow_and_learn(
    families: Sequence[Any],
    leaves_under: Any,
    concentration: float,
    *,
    learn_likelihood: bool,
    learn_concentration: bool,
    n_rounds: int,
    tol: float,
    control: Control | None = None,
    checkpoint: Checkpoint | None = None,
    regrow: Regrow | None = None,
) -> GrowthResult:
    """Alternate between trees and better hyper-parameters for the best of them, while the bound increases.

    ``leaves_under(families, concentration)`` gives the leaves. In each round a greedy tree is grown, and
    ``regrow(families, leaves, concentration, merges)`` may give another one, or None; the tree with the highest bound
    is kept. No further tree is grown when the bound per object increases by no more than ``tol``.
    """
    families = tuple(families)
    learning = {"learn_likelihood": learn_likelihood, "learn_concentration": learn_concentration}
    leaves = leaves_under(families, concentration)
    N = float(leaves.n.sum())

    def best_tree(
        known: GrowthResult | None, families: Any, alpha: float, leaves: TreeLeaves
    ) -> GrowthResult:
        """The known tree, the greedy one, or one that is grown anew: the first with the highest bound."""
        best = known
        ways: list[Callable[[Merges | None], Merges | None]] = [lambda _: grow(families, leaves, alpha)]
        if regrow is not None:
            ways.append(partial(regrow, families, leaves, alpha))
        for way in ways:
            merges = way(None if best is None else best.merges)
            if merges is None:
                continue
            bound = log_bound(evidence_of(families, merges.children, leaves, alpha), N, alpha)
            if best is None or bound > best.bound:
                best = (known or GrowthResult(families, alpha, merges, bound))._replace(
                    merges=merges, bound=bound
                )
        assert best is not None
        return best

    def first() -> _Learning:
        return _Learning(best_tree(None, families, concentration, leaves), np.inf, 0)

    def step(state: _Learning) -> _Learning:
        best, n_iter = state.best, state.n_iter + 1
        children = best.merges.children
        new, alpha, reached = climb(
            best.families, children, leaves, best.concentration, centers=families, **learning
        )
        if reached <= best.bound:
            return _Learning(best, 0.0, n_iter)
        odds = evidence_of(new, children, leaves, alpha).log_odds
        learned = GrowthResult(new, alpha, Merges(children, odds), reached, best.n_iter + 1)
        learned = best_tree(learned, new, alpha, leaves_under(new, alpha))
        return _Learning(learned, (learned.bound - best.bound) / N, n_iter)

    if len(leaves.n) == 1 or not (learn_likelihood or learn_concentration):
        return first().best
    run = iterate_from_checkpoint(
        step,
        first,
        checkpoint=checkpoint,
        max_iter=n_rounds,
        tol=tol,
        control=control,
        n_clusters=lambda state: len(cut_nodes(state.best.merges)),
    )
    return run.state.best._replace(reason=run.reason)
