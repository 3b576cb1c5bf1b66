"""The methods that the consensus benchmark compares, by name. A method whose extra is not installed is skipped.

Each takes a label matrix (objects x members, -1 missing), the number of classes (used only by the methods that need K)
and a seed, and returns labels and, if it has them, probabilities that two objects belong together. The names are keys
of the result files; "told K" in them means that K is given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

SWEEPS = 100  # of the sampler as published, from one cluster
SHORT = {"n_chains": 2, "n_draws": 40, "burn_in": 40}


class Outcome(NamedTuple):
    labels: np.ndarray
    pairs: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None  # None: those of the hard partition
    model: Any = None  # of `Consensus`, whose grain and former probabilities are judged too

    def probabilities(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        return (self.labels[i] == self.labels[j]).astype(float) if self.pairs is None else self.pairs(i, j)


def estimator(name: str) -> Any:
    """A class of partita by its name."""
    import partita

    return getattr(partita, name)


# ---- methods that find their number of clusters ------------------------------------------------------------------


def consensus(Y: np.ndarray, K: int, seed: int) -> Outcome:
    model = estimator("Consensus")(random_state=seed).fit(Y)
    return Outcome(model.labels_, model.coclustering, model)


def laca(Y: np.ndarray, K: int, seed: int) -> Outcome:
    return Outcome(estimator("LACA")(random_state=seed).fit(Y).labels_)


def nbce(Y: np.ndarray, K: int, seed: int) -> Outcome:
    model = estimator("NBCE")(random_state=seed, **SHORT).fit(Y)
    if len(getattr(model, "object_rows_", Y)) != len(Y):  # an object without any label is in no draw
        return Outcome(model.labels_)
    return Outcome(model.labels_, coassociation(model.trace_.labels.T))


def nbce_from_one(Y: np.ndarray, K: int, seed: int) -> Outcome:
    """The sampler as published: single-site sweeps from one cluster, hyper-parameters fixed, last sweep."""
    from partita.engines.gibbs import chain as chains
    from partita.engines.gibbs import sweep
    from partita.families import Block, Categorical
    from partita.partitions import DirichletProcess

    Y = np.ascontiguousarray(Y[:, Y.max(axis=0) > 0], dtype=np.int16)
    n_levels = (Y.max(axis=0) + 1).tolist()
    block = Block(Categorical.default(n_levels), Y, tuple(range(Y.shape[1])))
    chain = chains.start([block], DirichletProcess(1.0), np.zeros(len(Y), np.int64), seed)
    schedule = chains.Schedule(n_moves=0, learn_concentration=False, learn_likelihood=False)
    for _ in range(SWEEPS):
        chain = chains.step(chain, schedule)
    return Outcome(sweep.labels(chain.seating))


def mixture(Y: np.ndarray, K: int, seed: int) -> Outcome:
    return _soft(estimator("MixtureConsensus")(n_init=2, random_state=seed).fit(Y), Y)


def modularity(Y: np.ndarray, K: int, seed: int) -> Outcome:
    return Outcome(estimator("BipartiteModularity")(random_state=seed).fit(Y).labels_)


def eac_lifetime(Y: np.ndarray, K: int, seed: int) -> Outcome:
    """Average link on the co-association matrix, cut at the number of clusters with the longest lifetime.

    With ten members the heights are tenths, and the longest lifetime is often that of hundreds of clusters. As for
    the others, numbers above twice the square root of the objects are left out.
    """
    tree = _average_link(Y)
    lifetimes = np.diff(tree[:, 2])[::-1][: int(2 * np.sqrt(len(Y)))]  # of 2, 3, ... clusters
    return Outcome(_cut(tree, 2 + int(lifetimes.argmax()) if lifetimes.size else 1), coassociation(Y))


# ---- methods that are given the number of classes ----------------------------------------------------------------


def consensus_given_k(Y: np.ndarray, K: int, seed: int) -> Outcome:
    model = estimator("Consensus")(n_clusters=K, random_state=seed).fit(Y)
    return Outcome(model.labels_, model.coclustering)


def laca_given_k(Y: np.ndarray, K: int, seed: int) -> Outcome:
    return Outcome(estimator("LACA")(n_clusters=K, random_state=seed).fit(Y).labels_)


def mixture_given_k(Y: np.ndarray, K: int, seed: int) -> Outcome:
    return _soft(estimator("MixtureConsensus")(K, n_init=5, random_state=seed).fit(Y), Y)


def bce_given_k(Y: np.ndarray, K: int, seed: int) -> Outcome:
    model = estimator("BCE")(K, n_init=3, random_state=seed).fit(Y)
    return Outcome(model.labels_, lambda i, j: (model.memberships_[i] * model.memberships_[j]).sum(axis=1))


def given_k(name: str, **options: Any) -> Callable[[np.ndarray, int, int], Outcome]:
    """A method that only needs the number of classes."""

    def labels(Y: np.ndarray, K: int, seed: int) -> Outcome:
        return Outcome(estimator(name)(K, random_state=seed, **options).fit(Y).labels_)

    return labels


def eac_given_k(Y: np.ndarray, K: int, seed: int) -> Outcome:
    return Outcome(_cut(_average_link(Y), K), coassociation(Y))


def _soft(model: Any, Y: np.ndarray) -> Outcome:
    R = model.predict_proba(Y)
    return Outcome(model.labels_, lambda i, j: (R[i] * R[j]).sum(axis=1))


def coassociation(Y: np.ndarray) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Share of members that put two objects together, of those that saw both; 0 where none did."""
    from partita.labels import Coassociation

    operator = Coassociation(Y)
    return lambda i, j: np.nan_to_num(operator.pairs(i, j))


def _average_link(Y: np.ndarray) -> np.ndarray:
    from scipy.cluster.hierarchy import linkage

    i, j = np.triu_indices(len(Y), 1)
    return linkage(1.0 - coassociation(Y)(i, j), "average")


def _cut(tree: np.ndarray, K: int) -> np.ndarray:
    from scipy.cluster.hierarchy import cut_tree

    return cut_tree(tree, K).ravel()


FINDS_K: dict[str, Callable[[np.ndarray, int, int], Outcome]] = {
    "Consensus": consensus,
    "LACA": laca,
    "NBCE from one cluster": nbce_from_one,
    "NBCE": nbce,
    "MixtureConsensus": mixture,
    "EAC lifetime": eac_lifetime,
    "modularity": modularity,
}
GIVEN_K: dict[str, Callable[[np.ndarray, int, int], Outcome]] = {
    "Consensus told K": consensus_given_k,
    "k-LACA": laca_given_k,
    "MixtureConsensus told K": mixture_given_k,
    "BCE told K": bce_given_k,
    "QMI told K": given_k("QMI"),
    "Voting told K": given_k("Voting"),
    "EAC told K": eac_given_k,
    "LWEA told K": given_k("LWEA"),
    "HBGF told K": given_k("HBGF"),
    "CSPA told K": given_k("CSPA"),
    "MCLA told K": given_k("MCLA"),
    "HGPA told K": given_k("HGPA", balance=0.05, identical="apart"),
}
METHODS = {**FINDS_K, **GIVEN_K}
# most of the time of all the others together
ONE_SEED = {"NBCE", "MixtureConsensus", "modularity", "HBGF told K", "MCLA told K", "HGPA told K"}
NEEDS = {  # what a method needs that may not be installed
    "modularity": ("leidenalg", "igraph"),
    "CSPA told K": ("pymetis",),
    "MCLA told K": ("pymetis",),
    "HGPA told K": ("mtkahypar",),
}


def present() -> tuple[list[str], list[str]]:
    """Names of the methods that can run here, and of those that cannot."""
    from importlib.util import find_spec

    missing = [name for name in METHODS if any(find_spec(package) is None for package in NEEDS.get(name, ()))]
    return [name for name in METHODS if name not in missing], missing
