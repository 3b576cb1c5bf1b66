"""Sections about the fit: how it went, the fit report, and the call that repeats it."""

from __future__ import annotations

import datetime
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from partita._version import __version__
from partita.report import charts
from partita.report.markup import fold, note, section, table
from partita.summaries.context import is_sampled
from partita.wording import count, number, safe

ENGINES = {
    "vb": "variational Bayes",
    "memoized": "memoized variational Bayes",
    "em": "expectation maximization",
    "cvb": "collapsed variational Bayes",
}
SAMPLERS = {"gibbs": "Collapsed Gibbs sampling", "subclusters": "Sub-cluster split-merge sampling"}
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba")
MAX_NOTES = 50
CRITERIA = {
    "lower_bound_": "lower bound of the log evidence",
    "log_evidence_": "log evidence",
    "log_likelihood_": "log likelihood",
    "bic_": "BIC",
    "aic_": "AIC",
    "entropy_r2_": "relative entropy R²",
    "mean_nmi_": "mean normalized mutual information with the members",
    "modularity_": "modularity",
    "utility_": "category utility",
    "explained_": "share of the members' information about pairs that is explained",
}
CHAINS_NOTE = "The log joint of labels and data by draw, one line per chain. Chains that agree overlap."


def fit_section(model: Any) -> str:
    """Chains, or the objective by iteration, or the number of iterations; then the criteria."""
    inner = getattr(model, "consensus_", model)
    trace = getattr(inner, "objective_trace_", None)
    if is_sampled(inner):
        parts = _chains(inner)
    elif trace is None or np.ndim(trace) != 1:
        parts = [_without_trace(inner)]
    else:
        parts = _objective(inner, np.asarray(trace, float))
    return section("How the fit went", *parts, _criteria(inner))


def chain_diagnosis(model: Any) -> str:
    """How far the groups and their number can be relied on, in the words of the diagnostics of the chains."""
    found = getattr(model, "diagnostics_", getattr(model, "row_diagnostics_", None))
    if found is None:
        return "The chains are too short to judge whether they agree."
    return safe(found.sentence, 800)


def _inference(model: Any) -> str:
    """The engine that was used; of estimators that choose none, the one that was asked for."""
    return getattr(model, "inference_", getattr(model, "inference", ""))


def _chains(model: Any) -> list[str]:
    """What ran, the diagnostics, and the log joint of each chain."""
    trace = model.trace_
    sizes = np.unique(trace.chain, return_counts=True)[1]
    draws = f"{sizes.min()} to {sizes.max()}" if sizes.min() < sizes.max() else f"{sizes[0]}"
    sampler = SAMPLERS.get(_inference(model), "Sampling")
    text = f"{sampler}: {count(len(sizes), 'chain')}, {draws} draws per chain"
    burn_in = getattr(model, "burn_in_", getattr(model, "burn_in", None))
    if burn_in is not None:
        text += f" after {count(int(burn_in), 'iteration')} of burn-in"
    if getattr(model, "thin", 1) > 1:
        text += f", one draw every {model.thin} iterations"
    svg, drawn = charts.chains(trace.log_joint, trace.chain)
    below = CHAINS_NOTE
    if drawn < len(trace.log_joint):
        below += f" {drawn:,} of {len(trace.log_joint):,} draws are shown."
    return [f"<p>{text}. {chain_diagnosis(model)}</p>", svg, note(below), _diagnosed_quantities(model)]


def _diagnosed_quantities(model: Any) -> str:
    found = getattr(getattr(model, "diagnostics_", None), "quantities", None)
    if not found:
        return ""
    rows = [
        f"<tr><td>{safe(q.name.replace('n_clusters', 'number of groups').replace('_', ' '))}</td>"
        f'<td class="n">{number(q.mean)}</td>'
        f'<td class="n">{number(q.sd)}</td><td class="n">{q.rhat:.3f}</td><td class="n">{q.ess_bulk:,.0f}</td>'
        f'<td class="n">{q.ess_tail:,.0f}</td></tr>'
        for q in found
    ]
    head = [
        "quantity",
        "mean",
        "standard deviation",
        "R-hat",
        "effective draws",
        "effective draws in the tails",
    ]
    return fold("R-hat and effective draws", table(head, rows, numeric=range(1, 6)))


def _objective(model: Any, values: np.ndarray) -> list[str]:
    """The objective by iteration; of samplers without a trace, the log joint of one chain."""
    svg, drawn = charts.line(values)
    inference = _inference(model)
    if inference in SAMPLERS:
        text = f"{SAMPLERS[inference]}: the log joint of one chain by iteration"
        text += f", {values[-1]:,.2f} at the end." if len(values) else "."
    else:
        end = "converged" if getattr(model, "converged_", True) else "<strong>did not converge</strong>"
        text = f"The best start of {ENGINES.get(inference, 'the engine')} {end} after {count(len(values), 'iteration')}"
        text += f"; its objective increased to {values[-1]:,.2f}." if len(values) else "."
    if drawn < len(values):
        text += f" {drawn} of {len(values)} iterations are shown."
    return [f"<p>{text}</p>", svg]


def _without_trace(model: Any) -> str:
    n_iter = getattr(model, "n_iter_", None)
    if isinstance(n_iter, (int, np.integer)) and n_iter > 0:
        end = "converged" if getattr(model, "converged_", True) else "<strong>did not converge</strong>"
        return f"<p>The fit {end} after {count(int(n_iter), 'iteration')}.</p>"
    return ""


def _criteria(model: Any) -> str:
    rows = []
    for name, words in CRITERIA.items():
        value: Any = getattr(model, name, None)
        if isinstance(value, (int, float, np.integer, np.floating)):
            text = f"{value:,.2f}" if abs(float(value)) >= 10 else number(float(value))
            rows.append(f'<tr><td>{words}</td><td class="n">{text}</td></tr>')
    return table(["", ""], rows, kind="plain") if rows else ""


def notes_section(model: Any) -> str:
    """All notes of the fit report."""
    found = list(getattr(model, "fit_report_", ()))
    items = "".join(
        f"<li>{'<strong>warning:</strong> ' if one.level == 'warning' else ''}{safe(one.message, 600)}</li>"
        for one in found[:MAX_NOTES]
    )
    more = len(found) - MAX_NOTES
    return section(
        "Notes of the fit",
        f"<ul>{items}</ul>" if items else "<p>There are no notes.</p>",
        note(f"{more} more notes are not shown.") if more > 0 else "",
    )


def repeat_section(model: Any, weighted: bool) -> str:
    """The call that repeats the fit, with the versions of the packages."""
    call = safe(_call(model), 3000)
    lines = [f"partita {__version__}, Python {platform.python_version()}, {platform.system()}"]
    lines.append(", ".join(f"{name} {_version(name)}" for name in PACKAGES))
    seed = getattr(model, "random_state", None)
    fit = f"{call}.fit(X{', sample_weight=...' if weighted else ''})"
    parts = [f"<pre>{fit}\n\n{chr(10).join(lines)}</pre>"]
    if seed is None:
        parts.append(note("No random_state was given: another fit may give a slightly different result."))
    elif not isinstance(seed, (int, np.integer)):
        parts.append(
            note("random_state was a generator, and its state at the start of the fit is not recorded.")
        )
    parts.append(note(f"Written on {datetime.date.today().isoformat()}."))
    return section("How to repeat the fit", *parts)


def _call(model: Any) -> str:
    """The constructor call with all parameters that differ from their defaults."""
    try:
        defaults = type(model)().get_params(deep=False)
    except (AttributeError, TypeError):  # not a scikit-learn estimator, or one with required arguments
        return f"{type(model).__name__}(...)"
    changed = {
        name: value
        for name, value in model.get_params(deep=False).items()
        if not (value is defaults[name] or (np.isscalar(value) and value == defaults[name]))
    }
    return f"{type(model).__name__}({', '.join(f'{name}={value!r}' for name, value in changed.items())})"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not found"
