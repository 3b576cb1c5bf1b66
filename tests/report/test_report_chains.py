"""The page of a fit by chains says what chains can say, and nothing that only other engines can."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

from partita import Consensus, Mixture
from partita.dispatch import interpreted
from partita.report import write_report
from partita.report.charts import MAX_POINTS, chains
from partita.report.overview import _grade
from partita.summaries.counts import counts_in_words


@pytest.fixture(scope="module")
def source(sampled, frame, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    with interpreted():
        write_report(sampled, path, X=frame)
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(source):
    """The words of the page."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", source))


def test_the_opening_gives_the_probabilities_of_k(page, sampled):
    K, p = max(sampled.n_clusters_posterior_.items(), key=lambda pair: pair[1])
    words = f"{K} in every draw" if p == 1 else f"most likely {K} ({100 * p:.0f}%)"
    assert f"{sampled.n_clusters_} groups , {words}" in page


def test_the_verdict_is_said(page, sampled):
    assert sampled.diagnostics_.sentence in page
    assert f"{sampled.diagnostics_.quantities[0].rhat:.3f}" in page


def test_confidence_is_that_of_the_draws(page):
    assert "is in the same group as another row of its group" in page and "under the fitted model" not in page
    assert "mean probability to share a cluster with the rows of its cluster" in page


def test_the_course_is_that_of_chains(page, source):
    assert "Collapsed Gibbs sampling: 2 chains, 10 draws per chain after 3 iterations of burn-in" in page
    assert "The best start of" not in page and "lower bound" not in page
    assert 'class="before"' in source  # the prior, beside the probabilities of each number


def test_a_given_number_is_no_finding(fit, frame, tmp_path):
    model = Mixture({"real": "gaussian"}, n_clusters=2, n_chains=1, n_draws=3, burn_in=1, random_state=0)
    with interpreted():
        page = write_report(fit(model, frame[["height", "width"]]), tmp_path / "r.html").read_text(
            encoding="utf-8"
        )
    opening = page[page.index("answer") : page.index("<section")]
    assert "most likely" not in opening and "too short to" in opening


def test_the_least_certain_rows_name_another_group(sampled, frame, tmp_path):
    with interpreted():
        page = write_report(sampled, tmp_path / "r.html", X=frame).read_text(encoding="utf-8")
    table = page[page.index("least certain rows") :]
    pairs = re.findall(
        r"group (\d+)</td><td class=\"n\">[\d.]+</td><td class=\"c pick\"[^>]*>.*?group (\d+)</td>", table
    )
    assert len(pairs) == 12 and all(own != other for own, other in pairs)


def test_numbers_of_groups_in_words():
    assert counts_in_words({2: 0.5, 3: 0.3, 4: 0.2}) == "most likely 2 (50%), 3 (30%) or 4 (20%)"
    assert counts_in_words({5: 0.99, 6: 0.01}) == "most likely 5 (99%)"
    assert counts_in_words({K: 0.125 for K in range(3, 11)}).endswith("or 6 (12%), or others")


def test_many_draws_are_thinned_in_the_picture():
    svg, drawn = chains(np.arange(10_000.0), np.repeat([0, 1], 5000))
    assert drawn == MAX_POINTS and svg.count("<polyline") == 2
    svg, drawn = chains([1.0, 1.0, 1.0], [0, 0, 2])  # equal values, one chain cut short
    assert drawn == 3 and "nan" not in svg


def test_a_number_of_groups_that_has_not_converged_is_told_above():
    reason = "Fair: the chains agree on most of the groups (adjusted Rand index 0.89)."
    told = "The number of groups has not converged: K is 20 and 22 in the chains."
    model = SimpleNamespace(
        diagnostics_=SimpleNamespace(grade="fair", sentence=f"{reason} {told} Run longer.")
    )
    shown = _grade(model)
    assert shown.endswith("(adjusted Rand index 0.89). The number of groups has not converged.")
    model.diagnostics_.sentence = f"{reason} Something else."
    assert _grade(model).endswith("(adjusted Rand index 0.89).")


def test_members_without_weight_are_told_above(rng, tmp_path):
    z = np.repeat([0, 1, 2], 40)
    Y = np.column_stack([np.where(rng.random(120) < 0.1, rng.integers(3, size=120), z) for _ in range(9)])
    Y = np.column_stack([Y, rng.integers(3, size=120)])
    model = Consensus(random_state=0).fit(Y)
    page = write_report(model, tmp_path / "report.html", X=Y).read_text(encoding="utf-8")
    assert "almost no weight: x9" in page.partition("</div>")[0]
