"""From the result of an engine to the fitted mixture and the attributes of the estimator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from partita.engines.climb.vb import bound
from partita.engines.passes.rows import Assignment, Partition, UncertainRows, partition_of
from partita.estimator import FitReport, have_converged, judge_chains, note_early_end, note_stop
from partita.execution.device import is_on_device, to_host
from partita.execution.device_labels import DeviceDraws, renamed
from partita.execution.later import Later, mapped
from partita.execution.weights import are_ones, total_weight
from partita.families import Block
from partita.families.contract import is_conjugate
from partita.fitting.contract import EngineResult, Settings
from partita.fitting.engines import ENGINES
from partita.fitting.fitted_mixture import FittedMixture, fitted_mixture
from partita.fitting.hyper_bounds import note_bounds
from partita.fitting.out_of_core import Training
from partita.fitting.second_opinion import ask_ensemble
from partita.fitting.settling import note_settling
from partita.table import Table

MAX_SHARE_AT_BOUND = 0.05  # of draws that use all clusters that are allowed, before the report says so
KIND_OF_CHAINS, KIND_OF_OTHERS = "co-clustering probability", "posterior probability"


def settle(
    result: EngineResult, training: Training, settings: Settings, executor: Any
) -> tuple[FittedMixture, dict[str, Any]]:
    """The fitted mixture, the largest cluster first, and the public attributes by name.

    Clusters without rows are dropped unless their number was given. Notes are added to the report of ``training``.
    """
    table, report = training.table, training.report
    at_parameters = ENGINES[settings.inference].at_parameters or not all(map(is_conjugate, result.families))
    whole = fitted_mixture(
        result, training.blocks, table.schema, exposure=settings.exposure, at_parameters=at_parameters
    )
    blocks = [
        block._replace(family=family) for block, family in zip(training.blocks, result.families, strict=True)
    ]
    arrange = _ordered if result.labels is None else _partitioned
    if is_on_device(result.labels):
        arrange = _partitioned_on_device
    fitted, partition = arrange(result, whole, blocks, table, settings, executor)
    found: dict[str, Any] = {
        "labels_": partition.labels,
        "confidence_": partition.confidence,
        "confidence_kind_": KIND_OF_OTHERS if result.confidence is None else KIND_OF_CHAINS,
        "n_clusters_": int(np.count_nonzero(partition.sizes)),
        "label_entropy_": partition.entropy,
        "log_likelihood_": fitted.log_likelihood(blocks, table.weights, partition, executor),
        "weight_total_": total_weight(table.weights),
        "n_iter_": result.n_iter,
        "objective_trace_": np.array(result.run.objectives),
        "_uncertain": partition.uncertain,
        "_row_weights": None if are_ones(table.weights) else table.weights,
    } | attributes_of(fitted)
    if result.outliers is not None:
        found |= _outlier_attributes(result, fitted, found["labels_"], training, blocks, executor)
    if result.trace is None:
        return fitted, found | _run_attributes(result, found["n_clusters_"], table.n_rows, settings, report)
    return fitted, found | _chain_attributes(result, table, training.blocks, settings, report)


def attributes_of(fitted: FittedMixture) -> dict[str, Any]:
    """Public attributes that are read from the fitted mixture."""
    return {
        "weights_": fitted.weights,
        "profiles_": fitted.profiles(),
        "prior_": fitted.prior,
        "n_parameters_": fitted.n_parameters,
    }


def _ordered(
    result: EngineResult,
    whole: FittedMixture,
    blocks: Sequence[Block],
    table: Table,
    settings: Settings,
    executor: Any,
) -> tuple[FittedMixture, Partition]:
    """The clusters by their number of rows, and the most probable one of each row.

    One pass over the rows is enough, unless a cluster that may have rows has none and is dropped.
    """
    order = np.argsort(-whole.log_weights, kind="stable")
    if settings.n_clusters is None:
        order = order[_may_have_rows(whole.statistics.n, table.weights)[order]]
    fitted = whole.take(order)
    partition = fitted.partition(blocks, table.weights, executor)
    order = _order(partition.sizes, settings, result)
    if np.array_equal(order, np.arange(fitted.n_components)):
        return fitted, partition
    if len(order) == fitted.n_components:
        return fitted.take(order), _renumbered(partition, order)
    fitted = fitted.take(order)
    return fitted, fitted.partition(blocks, table.weights, executor)


def _may_have_rows(n: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Which of the clusters with these expected sizes may be the most probable one of a row.

    Where a cluster is, its probability is at least one over their number. Half of that is allowed for, because the
    sizes are those of the pass before the last parameters.

    Examples
    --------
    >>> _may_have_rows(np.array([3.5, 0.26, 0.24]), np.ones(4))[:2], _may_have_rows(np.zeros(2), np.ones(4))
    (array([ True,  True]), array([ True,  True]))
    """
    least = 1.0 if are_ones(weights) else float(weights[weights > 0].min(initial=np.inf))
    found = n * len(n) >= 0.5 * least
    return found if found.any() else np.ones(len(n), bool)


def _renumbered(partition: Partition, order: np.ndarray) -> Partition:
    """The partition with its clusters in another order; -1 is no cluster."""
    names = np.full(len(order) + 1, -1)
    names[order] = np.arange(len(order))

    def of_rows(found: UncertainRows | None) -> UncertainRows | None:
        if found is None:
            return None
        clusters = names[found.clusters].astype(np.int32)
        place = np.lexsort((clusters, found.rows))  # the clusters of a row are in ascending order
        return UncertainRows(found.rows, clusters[place], found.probabilities[place])

    return partition._replace(
        labels=mapped(partition.labels, lambda labels: names[labels]),
        uncertain=mapped(partition.uncertain, of_rows),
        sizes=partition.sizes[order],
    )


def _partitioned(
    result: EngineResult,
    whole: FittedMixture,
    blocks: Sequence[Block],
    table: Table,
    settings: Settings,
    executor: Any,
) -> tuple[FittedMixture, Partition]:
    """The clusters of the partition that the engine found, and the cluster of each row."""
    labels = _labels(result, whole.take(np.arange(whole.n_components)), blocks, table.n_rows, executor)
    inlying = labels >= 0
    sizes = np.bincount(labels[inlying], table.weights[inlying], minlength=whole.n_components)
    order = _order(sizes, settings, result)
    fitted = whole.take(order)
    assigned = fitted.assign(blocks, table.n_rows, executor, uncertain=True)
    names = np.full(whole.n_components + 1, -1)  # an outlier stays -1
    names[order] = np.arange(len(order))
    assigned = _with_partition(result, fitted, assigned, names[labels], blocks, executor)
    return fitted, partition_of(assigned, table.weights, fitted.n_components)


def _partitioned_on_device(
    result: EngineResult,
    whole: FittedMixture,
    blocks: Sequence[Block],
    table: Table,
    settings: Settings,
    executor: Any,
) -> tuple[FittedMixture, Partition]:
    """The same for rows on a device, which all have a label; labels and confidence stay there until they are read."""
    order = _order(result.statistics.n, settings, result)
    fitted = whole.take(order)
    names = np.empty(len(order), np.int64)
    names[order] = np.arange(len(order))
    labels, sure = renamed(result.labels, names, "int32"), result.confidence
    partition = fitted.partition(blocks, table.weights, executor)
    return fitted, partition._replace(
        labels=Later(lambda: to_host(labels).astype(np.int64)),
        confidence=Later(lambda: to_host(sure).astype(np.float64)),
        sizes=result.statistics.n[order],
    )


def _order(sizes: np.ndarray, settings: Settings, result: EngineResult) -> np.ndarray:
    """The clusters to keep, the largest first."""
    order = np.argsort(-sizes, kind="stable")
    if settings.n_clusters is not None and result.labels is None:
        return order
    return order[: max(np.count_nonzero(sizes), 1)]


def _labels(
    result: EngineResult, fitted: FittedMixture, blocks: Any, n_rows: int, executor: Any
) -> np.ndarray:
    """The partition of the engine; other rows have the most probable cluster."""
    assert result.labels is not None
    took_part = _took_part(result)
    if took_part.all():
        return result.labels
    return np.where(took_part, result.labels, fitted.assign(blocks, n_rows, executor).labels)


def _took_part(result: EngineResult) -> np.ndarray:
    """Rows whose label the engine has found: those of a cluster, and outliers."""
    assert result.labels is not None
    inlying = result.labels >= 0
    if result.outliers is None or result.outlier_probability is None:
        return inlying
    return inlying | np.isfinite(result.outlier_probability)


def _with_partition(
    result: EngineResult,
    fitted: FittedMixture,
    assigned: Assignment,
    labels: np.ndarray,
    blocks: Any,
    executor: Any,
) -> Assignment:
    """The labels of the engine in place of the most probable ones, with the confidence in them."""
    known = _took_part(result)
    if result.confidence is None:
        proba = fitted.probabilities(blocks, len(labels), executor)
        own = proba[np.arange(len(labels)), labels]
    else:
        own = result.confidence
    return assigned._replace(
        labels=np.where(known, labels, assigned.labels), confidence=np.where(known, own, assigned.confidence)
    )


def _outlier_attributes(
    result: EngineResult,
    fitted: FittedMixture,
    labels: np.ndarray,
    training: Training,
    blocks: Any,
    executor: Any,
) -> dict[str, Any]:
    """Rows of weight 0 have the probability under the fitted mixture."""
    table, found = training.table, result.outlier_probability
    assert found is not None and result.outliers is not None
    if np.isnan(found).any():
        new = fitted.outlier_probabilities(blocks, table.n_rows, executor)
        found = np.where(np.isnan(found), new, found)
    n_out = int(table.weights[labels < 0].sum())
    if n_out:
        training.report.add("outliers", f"{n_out} of {table.weights.sum():.0f} rows are outliers, label -1")
    return {"outlier_probability_": found, "outlier_share_": result.outliers.share}


def _run_attributes(
    result: EngineResult, n_clusters: int, n_rows: int, settings: Settings, report: FitReport
) -> dict[str, Any]:
    engine, run, K = ENGINES[settings.inference], result.run, len(result.statistics.n)
    if run.worst_fall > 0:
        report.add("objective_fell", f"the objective fell by up to {run.worst_fall:.3g}", level="warning")
    if not run.converged:
        report.add("not_converged", f"the best start did not converge: it was ended by {run.reason}")
        note_stop(report, run.reason, "the best start so far is kept", level="info")
    if settings.n_clusters is None and result.labels is None and n_clusters >= K > 1:
        report.add(
            "bound_reached",
            f"all {n_clusters} clusters that were allowed are in use: raise max_clusters",
            level="warning" if n_rows > K else "info",
        )
    found: dict[str, Any] = {"converged_": run.converged}
    if engine.bounds_evidence:
        found["lower_bound_"] = bound(result.families, result.prior, result.statistics)
    return found


def _chain_attributes(
    result: EngineResult, table: Table, blocks: Sequence[Block], settings: Settings, report: FitReport
) -> dict[str, Any]:
    trace, reason = result.trace, result.run.reason
    assert trace is not None
    note_early_end(
        report, reason, 0 if result.provisional else len(trace.labels), provisional=result.provisional
    )
    note_settling(report, result, settings)
    if settings.learn_hyper and not result.provisional:
        note_bounds(report, blocks, result.families)
    opinion, agreement = None, None
    drawn, on_device = result.labels, isinstance(trace.labels, DeviceDraws)
    if drawn is not None and not on_device and int(drawn.max()) > 0 and not result.provisional:
        opinion = ask_ensemble(table, drawn)
        agreement = None if opinion is None else opinion.agreement(drawn)
    diagnostics = judge_chains(
        report, trace, reason, provisional=result.provisional, second_opinion=agreement
    )
    if settings.max_clusters is not None and settings.n_clusters is None:
        share = float(np.mean(trace.n_clusters >= settings.max_clusters))
        if share > MAX_SHARE_AT_BOUND:
            report.add(
                "bound_reached",
                f"{share:.0%} of the draws use all {settings.max_clusters} clusters that were allowed: raise "
                "max_clusters",
                level="warning",
            )
    return {
        "trace_": Later(lambda: trace._replace(labels=trace.labels.on_host())) if on_device else trace,
        "burn_in_": result.burn_in,
        "object_rows_": Later(lambda: np.arange(table.n_rows)) if on_device else result.object_rows,
        "n_clusters_posterior_": {} if result.provisional else trace.n_clusters_posterior,
        "diagnostics_": diagnostics,
        "_second_opinion": opinion,
        "converged_": have_converged(diagnostics, reason),
    }
