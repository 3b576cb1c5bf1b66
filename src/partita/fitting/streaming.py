"""A fitted mixture that is updated with new rows, batch by batch, by a particle filter, and how a batch differs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from partita.engines.passes.rows import Statistics
from partita.engines.sequential import particles
from partita.estimator import FitReport
from partita.families import Block
from partita.families.contract import is_conjugate
from partita.fitting.fitted_mixture import FittedMixture
from partita.fitting.objects import rows_of_objects
from partita.fitting.predictive import PredictiveDraw
from partita.partitions import DirichletProcess

N_PARTICLES = 50


SURPRISE = 4.0  # standard errors from which a batch is said to differ


class DriftResult(NamedTuple):
    """How a batch of a stream differs from the rows before it.

    ``surprise`` is the difference of the mean log density of the batch, under the mixture before it, from that of the
    rows of the batch before it, in standard errors; it is negative for rows that the mixture describes worse. It is NaN
    without a batch before.
    """

    n_rows: int
    new_clusters: tuple[int, ...]  # that the batch has opened
    weights_before: np.ndarray  # of the clusters, 0 for new ones
    shares: np.ndarray  # of the rows of the batch, by their most probable cluster
    log_density: float  # mean log density of the rows of the batch, under the mixture before it
    surprise: float


class Reference(NamedTuple):
    """Number, mean and variance of the log densities of rows, under a mixture that has seen them."""

    n: float
    mean: float
    variance: float

    @classmethod
    def of(cls, log_densities: np.ndarray, weights: np.ndarray) -> Reference:
        """Of rows with weights; rows of density 0 are left out."""
        finite = np.isfinite(log_densities) & (weights > 0)
        if not finite.any():
            return cls(0.0, np.nan, np.nan)
        values, own = log_densities[finite], weights[finite]
        mean = float(np.average(values, weights=own))
        return cls(float(own.sum()), mean, float(np.average((values - mean) ** 2, weights=own)))


def describe_drift(
    before: np.ndarray,
    now: Reference,
    reference: Reference | None,
    labels: np.ndarray,
    weights: np.ndarray,
    n_clusters: int,
) -> DriftResult:
    """What a batch with these labels changes; ``before`` has the weights of the clusters before it.

    Examples
    --------
    >>> one, other = Reference(100.0, -2.0, 1.0), Reference(300.0, -1.0, 1.0)
    >>> found = describe_drift(np.array([1.0]), one, other, np.array([0, 1, 1, 0]), np.ones(4), 2)
    >>> found.new_clusters, found.shares, round(found.surprise, 1)
    ((1,), array([0.5, 0.5]), -8.7)
    """
    surprise = np.nan
    if reference is not None and min(now.n, reference.n) > 0:
        error = np.sqrt(now.variance / now.n + reference.variance / reference.n)
        surprise = float((now.mean - reference.mean) / error) if error > 0 else np.nan
    held = np.zeros(n_clusters)
    held[: min(len(before), n_clusters)] = before[:n_clusters]
    sizes = np.bincount(labels, weights, minlength=n_clusters)
    new = tuple(range(len(before), n_clusters))
    return DriftResult(len(labels), new, held, sizes / max(float(sizes.sum()), 1e-300), now.mean, surprise)


def note_drift(report: FitReport, drift: DriftResult, previous: Reference | None) -> None:
    """Announce new clusters, and a batch that the mixture describes much worse or better than the rows before."""
    report.notes[:] = [note for note in report.notes if note.code not in ("new_clusters", "drift")]
    if drift.new_clusters:
        listed = ", ".join(f"{k} ({drift.shares[k]:.1%} of the rows)" for k in drift.new_clusters)
        report.add("new_clusters", f"the last batch of {drift.n_rows} rows has opened new clusters: {listed}")
    if previous is not None and abs(drift.surprise) > SURPRISE:
        report.add(
            "drift",
            f"the mean log density of the last batch is {drift.log_density:.3g}, that of the batch before "
            f"{previous.mean:.3g} ({drift.surprise:+.1f} standard errors): its rows are "
            f"{'less' if drift.surprise < 0 else 'more'} like the fitted clusters (forget= discounts earlier rows)",
        )


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
    fitted: FittedMixture,
    stream: particles.ParticleFilter,
    blocks: tuple[Block, ...],
    weights: np.ndarray,
    forget: float = 0.0,
) -> StreamResult:
    """Process the rows one by one: clusters grow, and new ones are added where rows do not fit the others.

    Before that, all clusters lose the share ``forget`` of their weight.
    """
    stream = particles.update(particles.forget(stream, forget), blocks, rows_of_objects(weights))
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
