"""A survey with two groupings of the respondents, each in its own questions, and a response style per respondent.

A respondent's answer on the latent scale is the mean of the group in this question plus normal noise, multiplied by
how extreme the respondent answers, plus how much the respondent tends to agree (the two styles of van Rosmalen, van
Herk and Groenen, 2010, as continuous effects). It is cut into five levels. A quarter of the questions depend on
neither grouping.
"""

from __future__ import annotations

import numpy as np

from benchmarks.quality.known_views import KnownViews

GROUPINGS = {"values": (12, 3), "habits": (12, 4)}  # questions and groups of each
N_OTHER = 8  # questions that depend on no grouping
SEPARATION, AGREEMENT, EXTREMITY = 1.5, 0.5, 0.3  # deviations of means, of agreement, and of log extremity
CUTS = (-1.6, -0.55, 0.55, 1.6)


def make_styled_survey(n_rows: int = 600, seed: int = 0) -> KnownViews:
    """Answers 1 to 5."""
    rng = np.random.default_rng(seed)
    n_questions = N_OTHER + sum(n for n, _ in GROUPINGS.values())
    order = rng.permutation(n_questions)
    means, labels, columns = np.zeros((n_rows, n_questions)), {}, {}
    for name, (n, n_groups) in GROUPINGS.items():
        labels[name] = rng.integers(n_groups, size=n_rows)
        columns[name], order = np.sort(order[:n]), order[n:]
        means[:, columns[name]] = rng.normal(0.0, SEPARATION, (n_groups, n))[labels[name]]
    extreme = np.exp(rng.normal(0.0, EXTREMITY, (n_rows, 1)))
    agreeing = rng.normal(0.0, AGREEMENT, (n_rows, 1))
    latent = extreme * (means + rng.normal(size=means.shape)) + agreeing
    return KnownViews(1 + np.digitize(latent, CUTS), labels, columns)
