"""How the fit went, what was unusual, how to do it again."""

from __future__ import annotations

from typing import Any

import numpy as np

from partita.fitting.engines import ENGINES
from partita.report import pictures, sampled
from partita.report.context import is_sampled
from partita.report.markup import note, section, table
from partita.summaries.words import count, number, safe

__all__ = ["course", "notes"]

MOST_NOTES = 50
CRITERIA = {
    "lower_bound_": "lower bound of the log evidence",
    "log_evidence_": "log evidence",
    "log_likelihood_": "log likelihood",
    "bic_": "BIC",
    "aic_": "AIC",
    "entropy_r2_": "relative entropy R²",
    "mean_nmi_": "mean normalised mutual information with the members",
    "modularity_": "modularity",
    "utility_": "category utility",
    "explained_": "share of the pairs of the members that is explained",
}


def course(model: Any) -> str:
    """Chains, or the objective by iteration, or the number of iterations; then the criteria."""
    inner = getattr(model, "consensus_", model)
    if is_sampled(inner):
        return section("How the fit went", *sampled.course(inner), _criteria(inner))
    trace = getattr(inner, "objective_trace_", None)
    if trace is None or np.ndim(trace) != 1:
        return section("How the fit went", _without_trace(inner), _criteria(inner))
    values = np.asarray(trace, float)
    svg, drawn = pictures.line(values)
    engine = ENGINES.get(getattr(inner, "inference", ""))
    if engine is not None and engine.samples:
        return section("How the fit went", _one_chain(engine.title, values, drawn), svg, _criteria(inner))
    end = "converged" if getattr(inner, "converged_", True) else "<strong>did not converge</strong>"
    text = f"The best start of {engine.title if engine else 'the engine'} {end} after {count(len(values), 'iteration')}"
    text += f"; its objective rose to {values[-1]:,.2f}." if len(values) else "."
    if drawn < len(values):
        text += f" {drawn} of {len(values)} iterations are drawn."
    return section("How the fit went", f"<p>{text}</p>", svg, _criteria(inner))


def _one_chain(title: str, values: np.ndarray, drawn: int) -> str:
    """Words for samplers that keep the log joint of a chain, and no trace."""
    text = f"{title[0].upper()}{title[1:]}: the log joint of a chain by iteration"
    text += f", {values[-1]:,.2f} at the end." if len(values) else "."
    if drawn < len(values):
        text += f" {drawn} of {len(values)} iterations are drawn."
    return f"<p>{text}</p>"


def _without_trace(model: Any) -> str:
    parts = []
    values = getattr(model, "log_joint_", None)
    if values is not None and np.ndim(values) == 2 and np.size(values):
        n_chains, n_draws = np.shape(values)
        svg, _ = pictures.chains(np.ravel(values), np.repeat(np.arange(n_chains), n_draws))
        rhat = getattr(model, "rhat_", None)
        parts.append(svg + note(
            "The log joint by draw, one line a chain: chains that agree lie over each other."
            + (f" R-hat {float(rhat):.3f}." if rhat is not None and np.ndim(rhat) == 0 else "")
        ))  # fmt: skip
    n_iter = getattr(model, "n_iter_", None)
    if isinstance(n_iter, (int, np.integer)) and n_iter > 0 and not parts:
        end = (
            "and converged" if getattr(model, "converged_", True) else "and <strong>did not converge</strong>"
        )
        parts.append(f"<p>It took {count(int(n_iter), 'iteration')} {end}.</p>")
    return "".join(parts)


def _criteria(model: Any) -> str:
    rows = []
    for name, words in CRITERIA.items():
        value: Any = getattr(model, name, None)
        if isinstance(value, (int, float, np.integer, np.floating)):
            text = f"{value:,.2f}" if abs(float(value)) >= 10 else number(float(value))
            rows.append(f'<tr><td>{words}</td><td class="n">{text}</td></tr>')
    return table(["", ""], rows, kind="plain") if rows else ""


def notes(model: Any) -> str:
    """Everything in the fit report."""
    found = list(getattr(model, "fit_report_", ()))
    items = "".join(
        f"<li>{'<strong>warning:</strong> ' if one.level == 'warning' else ''}{safe(one.message, 600)}</li>"
        for one in found[:MOST_NOTES]
    )
    more = len(found) - MOST_NOTES
    return section(
        "The fit report: what was unusual",
        f"<ul>{items}</ul>" if items else "<p>Nothing unusual.</p>",
        note(f"{more} more notes are not shown.") if more > 0 else "",
    )
