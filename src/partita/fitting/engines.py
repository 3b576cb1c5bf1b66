"""The engines that fit a mixture, and what each of them can do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from partita.families.registry import Block
from partita.fitting.beam import fit_beam
from partita.fitting.chains import fit_chains, fit_subclusters
from partita.fitting.climb import fit_cvb, fit_em, fit_memoized, fit_vb
from partita.fitting.contract import EngineResult, Request


class Engine(NamedTuple):
    """An engine; capabilities that are not given are absent."""

    title: str
    fit: Callable[[Sequence[Block], np.ndarray, Request], EngineResult]
    samples: bool = False  # runs chains: draws, a trace, diagnostics, the posterior of the number of clusters
    counts_objects: bool = False  # a row of weight w is w objects, so weights are whole numbers
    reads_chunks: bool = False  # passes over tables that are read in chunks
    reads_columns_apart: bool = False  # passes over label matrices whose columns are on different workers
    merges_equal_rows: bool = False  # equal rows may be replaced by one row with their total weight
    completes_vectors: bool = False  # completes partly observed vectors
    on_device: bool = False  # fits arrays on a device
    needs_n_clusters: bool = False
    bounds_n_clusters: bool = False  # observes max_clusters
    takes_non_conjugate: bool = False
    finds_outliers: bool = False
    at_parameters: bool = False  # densities of new rows are those at one set of parameters
    bounds_evidence: bool = False  # has a lower bound of the log evidence


ENGINES = {
    "gibbs": Engine(
        "collapsed Gibbs sampling",
        fit_chains,
        samples=True,
        counts_objects=True,
        completes_vectors=True,
        bounds_n_clusters=True,
        takes_non_conjugate=True,
        finds_outliers=True,
    ),
    "subclusters": Engine(
        "sub-cluster split-merge sampling",
        fit_subclusters,
        samples=True,
        counts_objects=True,
        reads_chunks=True,
        on_device=True,
    ),
    "vb": Engine(
        "variational Bayes",
        fit_vb,
        reads_chunks=True,
        reads_columns_apart=True,
        merges_equal_rows=True,
        completes_vectors=True,
        on_device=True,
        bounds_n_clusters=True,
        bounds_evidence=True,
    ),
    "memoized": Engine(
        "memoized variational Bayes",
        fit_memoized,
        reads_chunks=True,
        merges_equal_rows=True,
        completes_vectors=True,
        on_device=True,
        bounds_n_clusters=True,
        bounds_evidence=True,
    ),
    "em": Engine(
        "expectation maximization",
        fit_em,
        reads_chunks=True,
        reads_columns_apart=True,
        merges_equal_rows=True,
        completes_vectors=True,
        on_device=True,
        needs_n_clusters=True,
        bounds_n_clusters=True,
        at_parameters=True,
    ),
    "cvb": Engine(
        "collapsed variational Bayes",
        fit_cvb,
        bounds_n_clusters=True,
        bounds_evidence=True,
    ),
    "beam": Engine("beam search", fit_beam, counts_objects=True),
}


def names_of(capability: str) -> str:
    """The engines that have a capability, as text.

    Examples
    --------
    >>> names_of("on_device")
    "'em', 'memoized', 'subclusters' or 'vb'"
    >>> names_of("reads_chunks")
    "'em', 'memoized', 'subclusters' or 'vb'"
    """
    names = [repr(name) for name, engine in sorted(ENGINES.items()) if getattr(engine, capability)]
    return " or ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]
