"""A small fit of every estimator that can be saved, and the tables that they are fitted to."""

from __future__ import annotations

import functools
import warnings
from importlib.util import find_spec
from typing import Any

import numpy as np
import scipy.sparse as sp

import partita
from partita.dispatch import interpreted

N = 18
RNG = np.random.default_rng(0)
TRUTH = np.arange(N) % 3
NUMBERS = RNG.normal(size=(N, 3)) + 8.0 * (TRUTH > 0)[:, None]
HOLES = np.where(RNG.random(NUMBERS.shape) < 0.1, np.nan, NUMBERS)
LABELS = np.column_stack([np.where(RNG.random(N) < 0.2, RNG.integers(3, size=N), TRUTH) for _ in range(4)])
COUNTS = RNG.poisson(2.0 + 6.0 * TRUTH[:, None], (N, 4))
MIXED = np.column_stack(
    [
        NUMBERS[:, :2].astype(object),
        np.array(["a", "b", "c"], object)[LABELS[:, 0]],
        (LABELS[:, 1] > 0).astype(object),
    ]
)
MANY = np.tile(NUMBERS, (3, 1)) + RNG.normal(size=(3 * N, 3))
# many zeros, rounded, and with few values beside the lump: such columns are prepared in tables of this length
SPENDING = np.column_stack(
    [
        np.where(RNG.random(3 * N) < 0.6, 0.0, MANY[:, 0]),
        MANY[:, 1].round(),
        np.where(np.arange(3 * N) < 3 * N - 5, 1.0, MANY[:, 2]),
    ]
)
CHAIN = {"n_chains": 1, "n_draws": 2, "burn_in": 1, "random_state": 0}
CLIMB = {"n_init": 1, "max_iter": 2, "random_state": 0}
SEED = {"random_state": 0}

CASES: dict[str, tuple[str, dict[str, Any], Any]] = {
    "Mixture gibbs mixed": ("Mixture", CHAIN, MIXED),
    "Mixture em": ("Mixture", {"inference": "em", "n_clusters": 2, **CLIMB}, MIXED),
    "Mixture vb": ("Mixture", {"inference": "vb", "max_clusters": 3, **CLIMB}, HOLES),
    "Mixture outliers": ("Mixture", {"outliers": True, "family": "gaussian", **CHAIN}, NUMBERS),
    "Mixture poisson": ("Mixture", {"family": "poisson", **CHAIN}, COUNTS),
    "Mixture student": ("Mixture", {"family": "student", **CHAIN}, NUMBERS),
    "Mixture exponential": ("Mixture", {"family": "exponential", **CHAIN}, np.exp(NUMBERS / 8)),
    "Mixture multinomial": ("Mixture", {"family": "multinomial", **CHAIN}, sp.csr_array(COUNTS)),
    "Mixture ordinal": ("Mixture", {"family": "ordinal", **CHAIN}, LABELS),
    "LatentClass": ("LatentClass", {"n_clusters": 2, **CLIMB}, LABELS),
    "DPGaussian": ("DPGaussian", CHAIN, NUMBERS),
    "DPMultinomial": ("DPMultinomial", CHAIN, COUNTS),
    "NBCE vb": ("NBCE", {"power": 1.0, "inference": "vb", **CLIMB}, LABELS),
    "NBCE gibbs": ("NBCE", {"power": 1.0, **CHAIN}, LABELS),
    "MixtureConsensus": ("MixtureConsensus", {"n_clusters": 3, **CLIMB}, LABELS),
    "BCE vb": ("BCE", {"n_clusters": 3, **CLIMB}, LABELS),
    "BCE gibbs": ("BCE", {"n_clusters": 3, "inference": "gibbs", **CHAIN}, LABELS),
    "Consensus": ("Consensus", SEED, LABELS),
    "Consensus of one": ("Consensus", SEED, LABELS[:, :1]),
    "LACA": ("LACA", SEED, LABELS),
    "QMI": ("QMI", {"n_clusters": 3, **CLIMB}, LABELS),
    "Voting": ("Voting", {"n_clusters": 3, **SEED}, LABELS),
    "Voting with noise": ("Voting", {"n_clusters": 3, "noise": "cluster", **SEED}, LABELS - 1),
    "HBGF": ("HBGF", {"n_clusters": 3, **SEED}, LABELS),
    "LWEA": ("LWEA", {"n_clusters": 3}, LABELS),
    "EvidenceAccumulation": ("EvidenceAccumulation", {}, LABELS),
    "EnsembleClustering": ("EnsembleClustering", {"n_members": 3, "n_clusters": 2, **SEED}, NUMBERS),
    "CrossCat": ("CrossCat", CHAIN, MIXED),
    "OverlappingViews": ("OverlappingViews", {**CHAIN, "n_init": 1}, NUMBERS),
    "CrossCat parts": ("CrossCat", CHAIN, SPENDING),
    "OverlappingViews parts": ("OverlappingViews", {**CHAIN, "n_init": 1}, SPENDING),
    "OverlappingViews text": (
        "OverlappingViews",
        {**CHAIN, "n_init": 1, "kinds": "count", "exposure": "length"},
        COUNTS,
    ),
    "DecorrelatedKMeans": ("DecorrelatedKMeans", {"n_clusters": 2, **CLIMB}, NUMBERS),
    "OrthogonalViews": ("OrthogonalViews", {"n_clusters": 2, "n_init": 1, **SEED}, NUMBERS),
    "AffinityPropagation": ("AffinityPropagation", {"max_iter": 30, **SEED}, MIXED),
    "SpectralClustering": ("SpectralClustering", {"n_clusters": 2, **SEED}, NUMBERS),
    "RelationalBlocks": ("RelationalBlocks", CHAIN, LABELS),
    "BayesianTree": ("BayesianTree", {"max_iter": 1, **SEED}, MIXED),
    "Agglomerative": ("Agglomerative", {"n_clusters": 2}, MIXED),
    "BisectingClusters": ("BisectingClusters", {"n_clusters": 3, **SEED}, NUMBERS),
    "BisectingClusters medoids": (
        "BisectingClusters",
        {"n_clusters": 3, "splitter": "kmedoids", **SEED},
        MIXED,
    ),
    "Diana": ("Diana", {"n_clusters": 2, **SEED}, NUMBERS),
}
if find_spec("kmedoids"):
    CASES["KMedoids"] = ("KMedoids", {"n_clusters": 2, **SEED}, NUMBERS)
    CASES["KMedoids mixed"] = ("KMedoids", {"n_clusters": 2, **SEED}, MIXED)
if find_spec("pymetis") and find_spec("mtkahypar"):
    CASES["CSPA"] = ("CSPA", {"n_clusters": 3, **SEED}, LABELS)
    CASES["HGPA"] = ("HGPA", {"n_clusters": 3, **SEED}, LABELS)
    CASES["MCLA"] = ("MCLA", {"n_clusters": 3, **SEED}, LABELS)
if find_spec("leidenalg"):
    CASES["BipartiteModularity"] = ("BipartiteModularity", SEED, LABELS)


@functools.cache
def fitted(case: str) -> Any:
    """The fitted model of a case, without compilation."""
    name, options, X = CASES[case]
    with interpreted(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(partita, name)(**options).fit(X)
