"""From what an engine found to the attributes of a fitted mixture."""

from __future__ import annotations

from typing import Any

import numpy as np

from partita.engines.climb.vb import bound
from partita.engines.passes.rows import Parameters, Statistics
from partita.estimator import judge_chains, note_early_end
from partita.families import Block
from partita.families.contract import n_parameters, widened
from partita.fitting.climb import Fitted
from partita.fitting.profiles import profile_columns
from partita.table import Table

__all__ = ["settle"]

ONLY_OF_SOME = ("lower_bound_", "trace_", "object_rows_", "n_clusters_posterior_", "diagnostics_", "_stream")
ONLY_OF_NOISE = ("noise_probability_", "noise_share_")


def settle(model: Any, fitted: Fitted, blocks: Any, table: Table) -> None:
    """Labels, then everything in the order of the clusters' sizes; clusters without rows are dropped unless their
    number was given.
    """
    for name in ONLY_OF_SOME + ONLY_OF_NOISE:
        model.__dict__.pop(name, None)
    model._blocks = tuple(
        Block(family, None, block.columns) for family, block in zip(fitted.families, blocks, strict=True)
    )
    blocks = [block._replace(family=family) for block, family in zip(blocks, fitted.families, strict=True)]
    _take(model, fitted, np.arange(len(fitted.statistics.n)))
    model._noise = fitted.noise
    labels = _labels(model, fitted, table, blocks)
    seated = labels >= 0
    sizes = np.bincount(labels[seated], table.weights[seated], minlength=len(model._log_weights))
    order = np.argsort(-sizes, kind="stable")
    keep_all = model.n_clusters is not None and fitted.labels is None
    order = order if keep_all else order[: max(np.count_nonzero(sizes), 1)]
    _take(model, fitted, order)
    assigned = model._assign(table, blocks)
    model.labels_, model.confidence_ = assigned.labels, assigned.confidence
    if fitted.labels is not None:
        known = _took_part(fitted)
        names = np.full(len(sizes) + 1, -1)  # an outlier stays -1
        names[order] = np.arange(len(order))
        model.labels_ = np.where(known, names[labels], model.labels_)
        model.confidence_ = np.where(known, fitted.confidence, model.confidence_)
    if fitted.noise is not None:
        _note_noise(model, fitted, table, blocks)
    model.n_clusters_ = len(np.unique(model.labels_[(table.weights > 0) & (model.labels_ >= 0)]))
    model.label_entropy_ = float(table.weights @ assigned.entropy)
    model.log_likelihood_ = float(table.weights @ model._densities(table, blocks))
    model.profiles_ = profile_columns(model._blocks, model._statistics, model.schema_)
    model.weights_ = np.exp(model._log_weights)
    _note_model(model, fitted, table)
    if fitted.trace is None:
        _note_run(model, fitted, table)
    else:
        _note_chains(model, fitted)


def _labels(model: Any, fitted: Fitted, table: Table, blocks: Any) -> np.ndarray:
    if fitted.labels is not None and _took_part(fitted).all():
        return fitted.labels
    found = model._assign(table, blocks).labels
    return found if fitted.labels is None else np.where(_took_part(fitted), fitted.labels, found)


def _took_part(fitted: Fitted) -> np.ndarray:
    """Rows whose labels the draws say: those of a cluster, and outliers."""
    assert fitted.labels is not None
    seated = fitted.labels >= 0
    if fitted.noise is None or fitted.noise_probability is None:
        return seated
    return seated | np.isfinite(fitted.noise_probability)


def _take(model: Any, fitted: Fitted, order: np.ndarray) -> None:
    """Keep these clusters, in this order."""
    statistics = fitted.statistics
    model._statistics = Statistics(
        statistics.n[order],
        tuple(
            np.ascontiguousarray(widened(family, S[:, order])[0])
            for family, S in zip(fitted.families, statistics.S, strict=True)
        ),
        *statistics[2:],
    )
    log_weights = fitted.log_weights[order]
    model._log_weights = log_weights - np.logaddexp.reduce(log_weights)
    model._parameters = None
    if fitted.parameters is not None:
        thetas = tuple(np.ascontiguousarray(theta[:, order]) for theta in fitted.parameters.thetas)
        model._parameters = Parameters(fitted.parameters.log_weights[order], thetas)


def _note_noise(model: Any, fitted: Fitted, table: Table, blocks: Any) -> None:
    """Rows that took no part have the probability that the fitted model gives them."""
    found, model.noise_share_ = fitted.noise_probability, fitted.noise.share
    assert found is not None
    if np.isnan(found).any():
        found = np.where(np.isnan(found), model._noise_probabilities(table, blocks), found)
    model.noise_probability_ = found
    n_out = int(table.weights[model.labels_ < 0].sum())
    if n_out:
        model.fit_report_.add("outliers", f"{n_out} of {table.weights.sum():.0f} rows are outliers, label -1")


def _note_model(model: Any, fitted: Fitted, table: Table) -> None:
    model.converged_, model.n_iter_ = fitted.run.converged, fitted.n_iter
    model.objective_trace_ = np.array(fitted.run.objectives)
    model.prior_ = fitted.prior
    K = len(model.weights_)
    model.n_parameters_ = K - 1 + K * sum(n_parameters(block.family) for block in model._blocks)
    model.weight_total_ = float(table.weights.sum())


def _note_run(model: Any, fitted: Fitted, table: Table) -> None:
    run = fitted.run
    if model.inference != "em":
        model.lower_bound_ = bound(fitted.families, fitted.prior, fitted.statistics)
    if run.worst_fall > 0:
        model.fit_report_.add(
            "objective_fell", f"the objective fell by {run.worst_fall:.3g} on the way up", level="warning"
        )
    if not run.converged:
        model.fit_report_.add("not_converged", f"the best start ended by {run.reason}, not by convergence")
    if model.n_clusters is None and model.n_clusters_ >= len(fitted.statistics.n) > 1:
        model.fit_report_.add(
            "bound_reached",
            f"all {model.n_clusters_} clusters that were allowed are in use: raise max_clusters",
            level="warning" if len(fitted.statistics.n) < table.n_rows else "info",
        )


def _note_chains(model: Any, fitted: Fitted) -> None:
    trace, reason = fitted.trace, fitted.run.reason
    assert trace is not None
    model.trace_, model.object_rows_ = trace, fitted.object_rows
    model.n_clusters_posterior_ = {} if fitted.provisional else trace.n_clusters_posterior
    n_draws = 0 if fitted.provisional else len(trace.labels)
    note_early_end(model.fit_report_, reason, n_draws, provisional=fitted.provisional)
    model.diagnostics_ = judge_chains(model.fit_report_, trace, reason, provisional=fitted.provisional)
    model.converged_ = bool(reason == "done" and model.diagnostics_.trust_n_clusters)
    if model.max_clusters is not None and model.n_clusters is None:
        share = float(np.mean(trace.n_clusters >= model.max_clusters))
        if share > 0.05:
            model.fit_report_.add(
                "bound_reached",
                f"{share:.0%} of the draws use all {model.max_clusters} clusters that were allowed: raise max_clusters",
                level="warning",
            )
