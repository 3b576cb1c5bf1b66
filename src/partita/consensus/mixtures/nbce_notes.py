"""Notes of NBCE in the fit report: diagnostics, bounds, agreement, singletons."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from partita.consensus.labelings import Labelings
from partita.consensus.out_of_core import cluster_sizes
from partita.engines.climb.vb import bound
from partita.estimator import have_converged, judge_chains, note_early_end, warn_user
from partita.fitting.contract import EngineResult
from partita.fitting.settling import note_settling
from partita.trace import Trace

MIN_AGREEMENT = 0.5  # mean confidence below which draws have no clusters in common


def note_few(model: Any, n_objects: int) -> None:
    """Fewer objects than the clusters that were asked for."""
    if "few_rows" not in model.fit_report_:
        model.fit_report_.add(
            "few_rows",
            f"{model.n_clusters} clusters were asked for, and there are only {n_objects} objects with labels: at "
            "most that many are found",
            level="warning",
        )


def note_run(model: Any, fitted: EngineResult, labelings: Labelings, attributes: dict[str, Any]) -> bool:
    """Diagnostics of chains, or the bound; returns whether the run has converged."""
    if fitted.trace is not None:
        attributes["object_rows_"] = np.asarray(labelings.rows)[fitted.object_rows]
        attributes["trace_"], attributes["burn_in_"] = fitted.trace, fitted.burn_in
        reason, provisional = fitted.run.reason, fitted.provisional
        n_draws = 0 if provisional else len(fitted.trace.labels)
        note_early_end(model.fit_report_, reason, n_draws, provisional=provisional)
        note_settling(model.fit_report_, fitted, model)
        found = judge_chains(model.fit_report_, fitted.trace, reason, provisional=provisional)
        attributes["diagnostics_"] = found
        return have_converged(found, reason)
    attributes["lower_bound_"] = bound(fitted.families, fitted.prior, fitted.statistics)
    if fitted.run.reason == "max_iter":
        model.fit_report_.add("not_converged", "the best start ended by max_iter, not by convergence")
        warn_user(
            f"{type(model).__name__} did not converge in {model.max_iter} iterations: raise max_iter or tol",
            ConvergenceWarning,
        )
    elif not fitted.run.converged:
        model.fit_report_.add(
            "not_converged", f"the best start ended by {fitted.run.reason}, not by convergence"
        )
        model._note_early_end(fitted.run.reason)
    return bool(fitted.run.converged)


def note_bound(model: Any, fitted: EngineResult, labels: np.ndarray) -> None:
    """Warn where a truncation or a bound may have cut the number of clusters short."""
    most = model.max_clusters or getattr(fitted.prior, "n_components", None)
    if model.n_clusters is not None or most is None or most >= len(labels):
        return
    found = np.array([len(np.unique(labels))]) if fitted.trace is None else fitted.trace.n_clusters
    share = float(np.mean(found >= most))
    if share > 0.05:
        model.fit_report_.add(
            "bound_reached",
            f"all {most} clusters that were allowed are in use ({share:.0%} of the draws): raise max_clusters",
            level="warning",
        )


def note_agreement(model: Any, fitted: EngineResult, sure: np.ndarray, weights: np.ndarray) -> None:
    """Warn where the draws have nothing in common: their clusters come from the prior, not from the members."""
    agreement = float(weights @ sure) / float(weights.sum())
    if fitted.trace is not None and agreement < MIN_AGREEMENT:
        model.fit_report_.add(
            "no_consensus",
            f"no consensus: two objects of one cluster share it in only {agreement:.0%} of the draws on average; "
            "the members have little in common",
            level="warning",
        )


def singleton_share(trace: Trace | None, labels: np.ndarray, weights: np.ndarray) -> float:
    """Share of the objects that are a cluster of their own."""
    if trace is None:
        sizes = cluster_sizes(labels, weights, 0)
        return float(np.count_nonzero(sizes == 1.0) / weights.sum())
    alone = [np.count_nonzero(np.bincount(z) == 1) for z in trace.labels]
    return float(np.mean(alone) / trace.labels.shape[1])
