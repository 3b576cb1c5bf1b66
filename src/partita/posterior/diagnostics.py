"""The verdict on chains: a grade of the partition, and diagnostics that do not depend on the labels of clusters."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partita.execution.device_labels import DeviceDraws, labels_at
from partita.labels.information import entropy
from partita.posterior.agreement import (
    agreement_matrix,
    mean_agreement,
    sampled_objects,
    votes_of_chains,
)
from partita.posterior.convergence import MIN_DRAWS, ess_bulk, ess_tail, rhat
from partita.randomness import as_generator
from partita.trace import Trace

MAX_RHAT = 1.1
MIN_ESS = 20.0
N_PAIRS = 50
WORST_PAIR = "worst of"  # how the name of that quantity begins
NOT_CONVERGED = "The number of groups has not converged"
FIRM, WEAK = 0.9, 0.7  # agreement of the chains from which an answer is firm, and below which it is weak
SECOND_FIRM, SECOND_WEAK = 0.5, 0.2  # the same of a second opinion


class Quantity(NamedTuple):
    """One quantity over all chains."""

    name: str
    mean: float
    sd: float
    rhat: float
    ess_bulk: float
    ess_tail: float


class Diagnostics(NamedTuple):
    """Result of `diagnose`.

    `grade` says how far the groups can be relied on: "firm", "fair" or "weak"; it is empty for a single group, for a
    single chain and where there are too few draws. `sentence` states it with its reasons. `trust_n_clusters` says
    whether the chains have the same number of clusters and have mixed, `n_clusters_by_chain[c]` is P(K) in chain c
    alone.
    """

    quantities: tuple[Quantity, ...]
    n_clusters_by_chain: dict[int, dict[int, float]]
    n_chains: int
    n_draws: int  # of each chain
    trust_n_clusters: bool
    chains_agree: bool  # on the partition
    sentence: str
    grade: str = ""
    agreement: float = float("nan")  # mean adjusted Rand index between the partitions of single chains
    second_opinion: float = float("nan")  # the same between the answer and another method's

    def __str__(self) -> str:
        head = f"{'quantity':<24}{'mean':>12}{'sd':>10}{'R-hat':>8}{'bulk':>8}{'tail':>8}"
        rows = [
            f"{q.name:<24}{q.mean:>12.4g}{q.sd:>10.3g}{q.rhat:>8.3f}{q.ess_bulk:>8.0f}{q.ess_tail:>8.0f}"
            for q in self.quantities
        ]
        return "\n".join([self.sentence, head, *rows])


def diagnose(
    trace: Trace,
    *,
    second_opinion: float | None = None,
    n_pairs: int = N_PAIRS,
    random_state: Any = 0,
    max_rhat: float = MAX_RHAT,
    min_ess: float = MIN_ESS,
) -> Diagnostics:
    """How far the groups and their number can be relied on, from the agreement of the chains.

    Each chain gives one partition (by `vote` over its own draws). The grade depends on the adjusted Rand index between
    these partitions, averaged over pairs of chains: "firm" if it is at least 0.9, "weak" if it is below 0.7, otherwise
    "fair". If the agreement of the result with another method is given (`second_opinion`), it must be at least 0.5 for
    "firm", and the grade is "weak" if it is below 0.2. The grade says whether the same groups are found again, not
    whether they are the classes that a user has in mind. The number of clusters K is trusted if its split R-hat and its
    effective sample size are sufficient, and if no sampled pair of objects has an infinite R-hat (together in all draws
    of some chains and in none of others). The same diagnostics of the log joint, the concentration, the entropy and the
    worst of these pairs are shown, but they do not affect the grade: they converge long after the partition. A quantity
    that is the same in every draw has R-hat 1 by definition.

    Parameters
    ----------
    trace : Trace
        Draws of one or several chains; of longer chains, as many of the first draws are used as the shortest has.
    second_opinion : float, optional
        Agreement of another method with the answer (adjusted Rand index).
    n_pairs : int, default=50
        Number of pairs of objects that are sampled; half of the pairs share a cluster in some draw.
    random_state : int, RandomState, Generator, SeedSequence or None, default=0
        Choice of the pairs.
    max_rhat : float, default=1.1
        Largest R-hat with which K is trusted.
    min_ess : float, default=20.0
        Smallest bulk effective sample size with which K is trusted.

    Returns
    -------
    Diagnostics

    Examples
    --------
    >>> stuck = np.repeat([[0, 0, 0, 1, 1, 1], [0, 1, 0, 1, 2, 2]], 100, axis=0)
    >>> flat = np.zeros(200)
    >>> trace = Trace(stuck, flat, stuck.max(axis=1) + 1, flat, flat, np.repeat([0, 1], 100))
    >>> print(diagnose(trace).sentence)
    Weak: the chains find different groups (adjusted Rand index 0.24). The number of groups has not converged: K is 2
    and 3 in the chains. Run longer chains (raise burn_in and n_draws) or more chains.
    """
    chains = by_chain(trace)
    n_draws = chains.shape[1]
    if n_draws < MIN_DRAWS:
        raise ValueError(
            f"the shortest chain has {n_draws} draws: at least {MIN_DRAWS} per chain are needed to diagnose mixing"
        )
    columns = {
        "n_clusters": trace.n_clusters,
        "log_joint": trace.log_joint,
        "concentration": trace.concentration,
        "discount": trace.discount,
        "entropy": size_entropy(trace.labels),
    }
    quantities = [
        _measure(name, _significant(np.asarray(values, dtype=float))[chains])
        for name, values in columns.items()
        if np.isfinite(np.asarray(values, dtype=float)).all()
    ]
    quantities += _worst_pair(trace.labels, chains, n_pairs, as_generator(random_state))
    names = np.asarray(trace.chain)[chains[:, 0]].astype(int).tolist()
    K_by_chain = {
        name: _shares(np.asarray(trace.n_clusters)[rows]) for name, rows in zip(names, chains, strict=True)
    }
    K = next(q for q in quantities if q.name == "n_clusters")
    settled = K.rhat <= max_rhat and K.ess_bulk >= min_ess
    stuck = any(np.isinf(q.rhat) for q in quantities if q.name.startswith(WORST_PAIR))
    agreement = mean_agreement(agreement_matrix(votes_of_chains(trace)))
    second = float("nan") if second_opinion is None else float(second_opinion)
    posterior = trace.n_clusters_posterior
    grade = "" if _mode(posterior) == 1 or len(chains) == 1 else grade_of(agreement, second)
    sentence = _tell(grade, agreement, second, posterior, K_by_chain, settled, stuck)
    return Diagnostics(
        tuple(quantities), K_by_chain, len(chains), n_draws, settled and not stuck, not agreement < FIRM,
        sentence, grade, agreement, second,
    )  # fmt: skip


def grade_of(agreement: float, second_opinion: float = float("nan")) -> str:
    """The grade of a partition, by the agreement of single chains and of another method (NaN: not asked).

    Examples
    --------
    >>> grade_of(0.95), grade_of(0.95, 0.3), grade_of(0.95, 0.1), grade_of(0.8, 0.9), grade_of(0.6, 0.9)
    ('firm', 'fair', 'weak', 'fair', 'weak')
    """
    if agreement < WEAK or second_opinion < SECOND_WEAK:
        return "weak"
    return "fair" if agreement < FIRM or second_opinion < SECOND_FIRM else "firm"


def by_chain(trace: Trace) -> NDArray[np.int64]:
    """Rows of the draws of each chain [chain, draw], all cut to the shortest chain.

    Examples
    --------
    >>> zeros = np.zeros(5)
    >>> by_chain(Trace(np.zeros((5, 1), int), zeros, zeros, zeros, zeros, np.array([0, 0, 1, 1, 1]))).tolist()
    [[0, 1], [2, 3]]
    """
    chain = np.asarray(trace.chain)
    rows = [np.flatnonzero(chain == one) for one in np.unique(chain)]
    shortest = min(len(one) for one in rows)
    return np.stack([one[:shortest] for one in rows]).astype(np.int64)


def size_entropy(draws: Any) -> NDArray[np.float64]:
    """Entropy of the cluster sizes of each draw, in bits: how evenly the objects are spread.

    Examples
    --------
    >>> size_entropy(np.array([[0, 0, 1, 1], [0, 0, 0, 0]])).tolist()
    [1.0, 0.0]
    """
    if isinstance(draws, DeviceDraws):
        sizes: Any = draws.sizes()
    else:
        sizes = (np.bincount(row[row >= 0]) for row in np.asarray(draws))  # outliers (-1) are in no cluster
    return np.array([entropy(own) for own in sizes]) / np.log(2.0)


def _significant(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values rounded to ten digits: sums in another order differ in the last ones, and R-hat uses ranks."""
    largest = float(np.abs(values).max(initial=0.0))
    return values if largest == 0.0 else np.round(values, 10 - int(np.ceil(np.log10(largest))))


def _measure(name: str, values: NDArray[np.float64]) -> Quantity:
    return Quantity(
        name, float(values.mean()), float(values.std()), rhat(values), ess_bulk(values), ess_tail(values)
    )


def _worst_pair(labels, chains, n_pairs: int, rng: np.random.Generator) -> list[Quantity]:
    """The sampled pair with the largest R-hat; half of the pairs are together in some draw.

    Of more than `MAX_ROWS` objects, so many at equal distances are looked at.
    """
    objects = sampled_objects(labels.shape[1])
    labels = labels_at(labels, objects)
    T, N = labels.shape
    if N < 2 or n_pairs < 1:
        return []
    found = []
    for pair in range(n_pairs):
        i = int(rng.integers(N))
        j = int((i + 1 + rng.integers(N - 1)) % N)
        if pair % 2:
            row = labels[rng.integers(T)]
            together = np.flatnonzero(row == row[i])
            if len(together) > 1:
                j = int(rng.choice(together[together != i]))
        same = (labels[:, i] == labels[:, j]).astype(float)
        found.append((rhat(same[chains]), i, j))
    _, i, j = max(found)
    same = (labels[:, i] == labels[:, j]).astype(float)
    return [_measure(f"{WORST_PAIR} {n_pairs} pairs ({objects[i]}, {objects[j]})", same[chains])]


def _shares(values: NDArray[Any]) -> dict[int, float]:
    K, counts = np.unique(values, return_counts=True)
    return {int(k): float(c / counts.sum()) for k, c in zip(K, counts, strict=True)}


def _tell(
    grade: str,
    agreement: float,
    second: float,
    posterior: dict[int, float],
    K_by_chain: dict[int, dict[int, float]],
    settled: bool,
    stuck: bool,
) -> str:
    """The verdict in words: the grade with its reasons, then the number of groups if it is one or has not converged."""
    K = _mode(posterior)
    parts = []
    if grade:
        parts.append(tell_grade(grade, agreement, second))
    elif K > 1:
        parts.append("Not graded: one chain cannot be compared with another (raise n_chains).")
    if settled and not stuck and K == 1:
        parts.append(f"One group, with probability {posterior[K]:.2f}.")
    elif not settled:
        *first, last = [_range(shares) for shares in K_by_chain.values()]
        told = (f"{', '.join(first)} and {last}" if first else last) + " in the chains"
        if grade in ("firm", "fair") and not stuck:  # the groups stand; only their number needs more draws
            parts.append(
                f"The probabilities of the number of groups are rough, because the chains differ in it: K is {told}. "
                "Longer chains (raise burn_in and n_draws) make them precise."
            )
        else:
            parts.append(f"{NOT_CONVERGED}: K is {told}.")
    if stuck and settled:
        parts.append(
            "Some pairs of objects share a group in all draws of some chains and in none of others: the chains have "
            "not mixed."
        )
    if grade == "weak" and agreement >= FIRM and not stuck:
        parts.append("Longer chains will not change this: look at the groups before you rely on them.")
    elif grade == "weak" or stuck or (not settled and grade not in ("firm", "fair")):
        parts.append("Run longer chains (raise burn_in and n_draws) or more chains.")
    return " ".join(parts)


def tell_grade(grade: str, agreement: float, second: float, who: str = "the chains") -> str:
    """The grade with its reasons, in words; ``who`` was compared.

    Examples
    --------
    >>> tell_grade("firm", 0.95, float("nan"))
    'Firm: the chains agree on the groups (adjusted Rand index 0.95).'
    """
    chains = (
        f"{who} find different groups"
        if agreement < WEAK
        else f"{who} agree on most of the groups"
        if agreement < FIRM
        else f"{who} agree on the groups"
    )
    text = f"{grade.capitalize()}: {chains} (adjusted Rand index {agreement:.2f})"
    if np.isnan(second):
        return f"{text}."
    joined = "and" if (agreement >= WEAK) == (second >= SECOND_FIRM) else "but"
    does = (
        "finds different groups"
        if second < SECOND_WEAK
        else "agrees with the result only in part"
        if second < SECOND_FIRM
        else "agrees with the result"
    )
    return f"{text}, {joined} another method {does} ({second:.2f})."


def _mode(posterior: dict[int, float]) -> int:
    return max(posterior, key=lambda K: (posterior[K], -K))


def _range(shares: dict[int, float]) -> str:
    """The most frequent K, with the range if there are others."""
    top = _mode(shares)
    return str(top) if len(shares) == 1 else f"{top} ({min(shares)} to {max(shares)})"
