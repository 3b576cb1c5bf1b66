"""Can this posterior be trusted? Diagnostics of quantities that do not depend on how clusters are named."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from partita.labels.information import entropy
from partita.posterior.convergence import MIN_DRAWS, ess_bulk, ess_tail, rhat
from partita.randomness import as_generator
from partita.trace import Trace

MAX_RHAT = 1.05
MIN_ESS = 100.0
N_PAIRS = 50
MAIN = ("n_clusters", "log_joint", "entropy")  # what the verdict on K looks at


class Quantity(NamedTuple):
    """One quantity over all chains."""

    name: str
    mean: float
    sd: float
    rhat: float
    ess_bulk: float
    ess_tail: float


class Diagnostics(NamedTuple):
    """What `diagnose` found.

    `n_clusters_by_chain[c]` is P(K) in chain c alone. `trust_n_clusters` is the verdict, `sentence` says it in plain
    words with the numbers.
    """

    quantities: tuple[Quantity, ...]
    n_clusters_by_chain: dict[int, dict[int, float]]
    n_chains: int
    n_draws: int  # of each chain
    trust_n_clusters: bool
    chains_agree: bool
    sentence: str

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
    n_pairs: int = N_PAIRS,
    random_state: Any = 0,
    max_rhat: float = MAX_RHAT,
    min_ess: float = MIN_ESS,
) -> Diagnostics:
    """Split R-hat and effective sample sizes of K, log joint, concentration, entropy and pairs of objects.

    The verdict on K looks at K, the log joint and the entropy of the cluster sizes; of the sampled pairs the worst is
    shown for information (the worst of many is bad now and then by chance). A quantity that is the same in every draw
    has R-hat 1 by definition.

    Parameters
    ----------
    trace : Trace
        Draws of one chain or several; longer chains are cut to the length of the shortest, from the start.
    n_pairs : int, default=50
        Pairs of objects whose co-clustering is followed; half of them share a cluster in some draw.
    random_state : int, Generator, SeedSequence or None, default=0
        Which pairs.
    max_rhat, min_ess : float
        Above this R-hat, or below this bulk effective sample size, K is not to be trusted.

    Returns
    -------
    Diagnostics

    Examples
    --------
    >>> stuck = np.repeat([[0, 0, 1, 1], [0, 1, 2, 3]], 100, axis=0)
    >>> flat = np.zeros(200)
    >>> trace = Trace(stuck, flat, stuck.max(axis=1) + 1, flat, flat, np.repeat([0, 1], 100))
    >>> print(diagnose(trace).sentence)
    Do not trust K: n_clusters has R-hat inf and bulk effective sample size 2, entropy has R-hat inf and bulk
    effective sample size 2 (wanted: at most 1.05 and at least 100). The chains disagree: K is 2 in chain 0, 4 in
    chain 1. Run longer (a larger burn_in and n_draws) or more chains.
    """
    chains = by_chain(trace)
    n_draws = chains.shape[1]
    if n_draws < MIN_DRAWS:
        raise ValueError(
            f"the shortest chain has {n_draws} draws: at least {MIN_DRAWS} a chain are needed to look at mixing"
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
    reasons = _reasons([q for q in quantities if q.name in MAIN], max_rhat, min_ess)
    agree = next(q for q in quantities if q.name == "n_clusters").rhat <= max_rhat
    wanted = f"(wanted: at most {max_rhat:g} and at least {min_ess:g})"
    sentence = _tell(reasons, wanted, agree, K_by_chain)
    return Diagnostics(tuple(quantities), K_by_chain, len(chains), n_draws, not reasons, agree, sentence)


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
    labels = np.asarray(draws)
    out = np.empty(len(labels))
    for b, row in enumerate(labels):
        out[b] = entropy(np.bincount(row[row >= 0])) / np.log(2.0)  # outliers (-1) are in no cluster
    return out


def _significant(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ten digits: equal sums of terms in another order differ in the last ones, and R-hat looks at ranks."""
    largest = float(np.abs(values).max(initial=0.0))
    return values if largest == 0.0 else np.round(values, 10 - int(np.ceil(np.log10(largest))))


def _measure(name: str, values: NDArray[np.float64]) -> Quantity:
    return Quantity(
        name, float(values.mean()), float(values.std()), rhat(values), ess_bulk(values), ess_tail(values)
    )


def _worst_pair(labels, chains, n_pairs: int, rng: np.random.Generator) -> list[Quantity]:
    """The sampled pair with the largest R-hat; half of the pairs are together in some draw."""
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
    return [_measure(f"worst of {n_pairs} pairs ({i}, {j})", same[chains])]


def _shares(values: NDArray[Any]) -> dict[int, float]:
    K, counts = np.unique(values, return_counts=True)
    return {int(k): float(c / counts.sum()) for k, c in zip(K, counts, strict=True)}


def _reasons(quantities: list[Quantity], max_rhat: float, min_ess: float) -> list[str]:
    return [
        f"{q.name} has R-hat {q.rhat:.2f} and bulk effective sample size {q.ess_bulk:.0f}"
        for q in quantities
        if q.rhat > max_rhat or q.ess_bulk < min_ess
    ]


def _tell(reasons: list[str], wanted: str, agree: bool, K_by_chain: dict[int, dict[int, float]]) -> str:
    if not reasons:
        return "The chains give no reason to doubt K."
    text = f"Do not trust K: {', '.join(reasons)} {wanted}."
    if not agree and len(K_by_chain) > 1:
        told = ", ".join(f"{_range(shares)} in chain {name}" for name, shares in K_by_chain.items())
        text += f" The chains disagree: K is {told}."
    return f"{text} Run longer (a larger burn_in and n_draws) or more chains."


def _range(shares: dict[int, float]) -> str:
    """The most frequent K, with the range where there are others."""
    top = max(shares, key=lambda K: (shares[K], -K))
    return str(top) if len(shares) == 1 else f"{top} ({min(shares)} to {max(shares)})"
