"""A fitted mixture that is updated with new rows, batch by batch, by a particle filter."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from partita.engines.passes.rows import Statistics
from partita.engines.sequential import particles
from partita.families import Block
from partita.families.contract import is_conjugate
from partita.fitting.fitted_mixture import FittedMixture
from partita.fitting.objects import rows_of_objects
from partita.fitting.predictive import PredictiveDraw
from partita.partitions import DirichletProcess

N_PARTICLES = 50


class StreamResult(NamedTuple):
    """The mixture after a batch, the state of the filter, and the probability of each number of clusters."""

    fitted: FittedMixture
    stream: particles.ParticleFilter
    n_clusters_posterior: dict[int, float]


def check_streamable(fitted: FittedMixture) -> None:
    """Refuse mixtures that a particle filter cannot update."""
    if not all(is_conjugate(block.family) for block in fitted.blocks):
        raise ValueError("partial_fit needs conjugate families: fit all rows at once")
    if fitted.outliers is not None:
        raise ValueError(
            "partial_fit cannot tell outliers from clusters in later batches: fit all rows at once, or leave outliers "
            "out"
        )


def start_stream(fitted: FittedMixture, seed: int) -> particles.ParticleFilter:
    """A filter that begins with the fitted clusters."""
    prior: Any = fitted.prior
    if prior.fixed_labels:  # such a prior has no place for a new cluster
        prior = DirichletProcess(prior.concentration)
    used = np.flatnonzero(fitted.statistics.n > 0)
    families = [block.family for block in fitted.blocks]
    S = [np.ascontiguousarray(s[:, used]) for s in fitted.statistics.S]
    return particles.resume(families, prior, fitted.statistics.n[used], S, N_PARTICLES, seed=seed)


def update_mixture(
    fitted: FittedMixture, stream: particles.ParticleFilter, blocks: tuple[Block, ...], weights: np.ndarray
) -> StreamResult:
    """Process the rows one by one: clusters grow, and new ones are added where rows do not fit the others."""
    stream = particles.update(stream, blocks, rows_of_objects(weights))
    found = particles.clusters(stream)
    n, K = found.n[:-1], len(found.n) - 1  # the empty cluster comes last
    S = tuple(np.ascontiguousarray(s[:, :K]) for s in found.S)
    fitted = fitted._replace(
        statistics=Statistics(n, S, np.nan, 0.0, 0.0),
        log_weights=found.log_weights[:K] - np.logaddexp.reduce(found.log_weights[:K]),
        parameters=None,
        at_parameters=False,
        draws=(_average_over_particles(stream),),
    )
    posterior = particles.n_clusters_posterior(stream)
    return StreamResult(fitted, stream, {int(k): float(posterior[k]) for k in np.flatnonzero(posterior)})


def _average_over_particles(stream: particles.ParticleFilter) -> PredictiveDraw:
    """The clusters of all particles, with their weights; they have the same hyper-parameters."""
    found = particles.mixture(stream)
    return PredictiveDraw(
        stream.families, tuple(np.ascontiguousarray(s[:, :-1]) for s in found.S), found.log_weights
    )
