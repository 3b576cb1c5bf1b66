"""A fitted mixture that goes on with new rows, batch by batch, by a particle filter."""

from __future__ import annotations

from typing import Any

import numpy as np

from partita.engines.passes.rows import Statistics
from partita.engines.sequential import particles
from partita.estimator import as_generator
from partita.families.contract import is_conjugate
from partita.fitting.chains import check_copies
from partita.fitting.profiles import profile_columns
from partita.partitions import DirichletProcess, StickBreaking
from partita.table import check_weights

__all__ = ["go_on"]

N_PARTICLES = 50
OF_THE_FIT = (
    "trace_",
    "object_rows_",
    "diagnostics_",
    "lower_bound_",
)  # what says nothing of rows that came later


def go_on(model: Any, X: Any, sample_weight: Any) -> None:
    """Show the rows of X to the model, one by one: clusters grow, and new ones are opened where rows call for them."""
    if not all(is_conjugate(block.family) for block in model._blocks):
        raise ValueError("partial_fit needs conjugate families: fit all rows at once")
    if model._noise is not None:
        raise ValueError(
            "partial_fit cannot tell outliers among later rows: fit all rows at once, or leave noise out"
        )
    table = model._read_new(X, model.handle_unknown)
    weights = check_weights(sample_weight, table.n_rows)
    blocks = model._with_data(table)
    state = particles.update(_stream(model), blocks, check_copies(weights))
    model._stream = state
    found = particles.clusters(state)
    n, K = found.n[:-1], len(found.n) - 1  # the empty cluster comes last
    S = tuple(np.ascontiguousarray(s[:, :K]) for s in found.S)
    model._statistics = Statistics(n, S, np.nan, 0.0, 0.0)
    model._log_weights = found.log_weights[:K] - np.logaddexp.reduce(found.log_weights[:K])
    model._parameters = None
    model.weights_ = np.exp(model._log_weights)
    model.n_clusters_ = K
    posterior = particles.n_clusters_posterior(state)
    model.n_clusters_posterior_ = {int(k): float(posterior[k]) for k in np.flatnonzero(posterior)}
    model.profiles_ = profile_columns(model._blocks, model._statistics, model.schema_)
    assigned = model._assign(table, blocks)
    model.labels_, model.confidence_ = assigned.labels, assigned.confidence
    model.label_entropy_ = float(weights @ assigned.entropy)
    model.log_likelihood_ = float(weights @ model._densities(table, blocks))
    model.weight_total_ += float(weights.sum())
    for name in OF_THE_FIT:
        model.__dict__.pop(name, None)


def _stream(model: Any) -> particles.ParticleFilter:
    """The filter so far; the first time, one that knows the fitted clusters."""
    if getattr(model, "_stream", None) is not None:
        return model._stream
    prior = model.prior_
    if isinstance(prior, StickBreaking):  # labels that are fixed have no seat for a new cluster
        prior = DirichletProcess(prior.concentration)
    statistics = model._statistics
    used = np.flatnonzero(statistics.n > 0)
    families = [block.family for block in model._blocks]
    S = [np.ascontiguousarray(s[:, used]) for s in statistics.S]
    seed = int(as_generator(model.random_state).integers(2**63))
    return particles.resume(families, prior, statistics.n[used], S, N_PARTICLES, seed=seed)
