"""Every figure in README and docs is that of a kept result: in a region, or in a sentence of docs/figures.toml."""

import re
from pathlib import Path

import pytest
import sync_results
from quoting import prose, regions, tables
from quoting.results import Results

ROOT = Path(__file__).resolve().parents[2]
WRITTEN = ("docs/gallery.md", "docs/api.md")  # from examples and docstrings, which quote no results
CLAIM = re.compile(r"\b\d+(?:\.\d+)?\s*(?:s|ms|seconds|minutes|MB|GB|times)\b|\b0\.\d\d+")
NOT_MEASURED = {  # with two decimals or a unit, and yet no result
    "docs/report.md": {"15 MB"},  # a limit that the writer of reports keeps to
    "docs/execution.md": {"32 MB"},  # a limit of the code
}


@pytest.fixture(scope="module")
def specs():
    return tables.specifications(sync_results.read_toml("tables.toml"))


def sentences(page):
    return prose.sentences_of(sync_results.read_toml("figures.toml").get(page, []))


def text(page):
    return (ROOT / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", sync_results.PAGES)
def test_figures_are_those_of_the_results(page, specs):
    said = sync_results.complaints(page, text(page), specs, sentences(page), sync_results.RESULTS)
    assert not said, "\n".join([*said, "python scripts/sync_results.py rewrites figures"])


@pytest.mark.parametrize("page", [page for page in sync_results.PAGES if page not in WRITTEN])
def test_no_figure_is_without_a_result(page):
    """Seconds, megabytes, times and two decimals are claims: of a region, of a template, or exempt for a reason."""
    bare = prose.blank(text(page), sentences(page), sync_results.RESULTS)
    bare = re.sub(r"```.*?```|`[^`\n]*`", "", bare, flags=re.DOTALL)
    unknown = {claim for claim in CLAIM.findall(bare)} - NOT_MEASURED.get(page, set())
    assert not unknown, (
        f"{page}: {sorted(unknown)} are in no region and no sentence of docs/figures.toml: add the sentence there, "
        "or the figure to NOT_MEASURED with its reason"
    )


def test_specifications_and_pages_belong_together(specs):
    used = [name for page in sync_results.PAGES for name, _ in regions.contents(text(page))]
    assert sorted(used) == sorted(specs)  # each in one region
    assert set(sync_results.read_toml("figures.toml")) <= set(sync_results.PAGES)
    for page in sync_results.PAGES:
        assert len(re.findall("<!-- /?results", text(page))) == 2 * len(regions.contents(text(page))), page


# ---- how figures are written ----------------------------------------------------------------------------------------


@pytest.fixture
def results(tmp_path):
    (tmp_path / "speed.json").write_text(
        '{"cpu": "AMD EPYC", "summary": {"s = 1.5": {"times": [0.5, 1.25], "mb": 1404}, "big, slow": {"mb": null}}}'
    )
    return Results(tmp_path)


def test_paths_lead_to_values(results):
    assert results.look_up("speed.summary.s = 1.5.times.1") == 1.25
    assert results.look_up("speed.summary.s = 1.5.times.length") == 2
    assert results.fill("{mb:,} MB of {times.length}", "speed.summary.s = 1.5") == "1,404 MB of 2"
    for path in ("speed.nothing", "speed.cpu.more", "speed.summary.s = 1.5.times.7", "slow.summary"):
        with pytest.raises(KeyError, match=path):
            results.look_up(path)


def test_a_table_from_its_specification(results):
    spec = {"under": "speed.summary", "head": ["", "MB"], "cells": ["{*.mb:,}"], "missing": "not run"}
    rows = {"s = 1.5": "small", "big, slow": "big"}
    assert tables.write("t", {"t": {**spec, "rows": rows}}, results) == (
        "|  | MB |\n|---|---|\n| small | 1,404 |\n| big | not run |"
    )
    explicit = {"under": "speed", "head": ["on {cpu}"], "rows": [["{summary.s = 1.5.mb}"]]}
    assert tables.write("t", {"t": explicit}, results) == "| on AMD EPYC |\n|---|\n| 1404 |"
    listed = {"under": "speed.summary.s = 1.5", "head": ["s"], "rows": "times", "cells": ["{*:.1f}"]}
    assert tables.write("t", {"t": listed}, results).endswith("| 0.5 |\n| 1.2 |")


def test_a_wrong_specification_is_refused(results):
    spec = {"under": "speed.summary", "head": ["", "MB"], "rows": {"s = 1.5": "small"}}
    with pytest.raises(KeyError, match="gb"):
        tables.write("t", {"t": {**spec, "cells": ["{*.gb}"]}}, results)
    with pytest.raises(ValueError, match="no row has a value in column 'MB'"):
        tables.write("t", {"t": {**spec, "cells": ["{*.gb}"], "missing": ""}}, results)
    with pytest.raises(ValueError, match=r"no \[other\]"):
        tables.write("other", {"t": spec}, results)
    with pytest.raises(ValueError, match="unknown colums"):
        tables.write("t", {"t": {**spec, "colums": []}}, results)


def test_a_stale_sentence_is_reported_and_rewritten(results):
    page = "On an\nAMD Athlon, a fit takes 7.3 s\nand 0.5 s (9 MB)."
    spec = {
        "under": "speed",
        "sentences": [
            "an {cpu}, a fit takes {summary.s = 1.5.times.1:.2f} s and",
            "({summary.s = 1.5.mb:,} MB)",
        ],
    }
    first, second = prose.sentences_of([spec])
    assert prose.faults(page, first, results) == [
        prose.Fault("an AMD Athlon, a fit takes 7.3 s and", "an AMD EPYC, a fit takes 1.25 s and")
    ]
    (fault,) = prose.faults(page, second, results)
    assert fault.message("docs/x.md") == "docs/x.md says '(9 MB)'; the results give '(1,404 MB)'"
    assert prose.blank(page, [first, second], results).count("#") == len("AMD Athlon") + len("7.3") + len("9")
    for sentence in (first, second):
        page = prose.rewrite(page, sentence, results)
    assert page == "On an\nAMD EPYC, a fit takes 1.25 s\nand 0.5 s (1,404 MB)."
    assert not prose.faults(page, first, results) + prose.faults(page, second, results)


def test_a_missing_sentence_is_reported(results):
    sentence = prose.Sentence("in {summary.s = 1.5.mb} MB", "speed")
    (fault,) = prose.faults("<!-- results: t -->\n\nin 1404 MB\n\n<!-- /results -->", sentence, results)
    assert fault.found is None and "'in 1404 MB'" in fault.message("docs/x.md")


def test_a_template_that_fits_two_places_rewrites_neither(results):
    page = "Printed: AMD EPYC. Here: 5. And another one. Printed: something else. Here: 7."
    sentence = prose.Sentence("Printed: {cpu}. Here:", "speed")
    (fault,) = prose.faults(page, sentence, results)
    assert fault.n_places == 2 and "2 places like 'Printed: AMD EPYC. Here:'" in fault.message("docs/x.md")
    assert prose.rewrite(page, sentence, results) == page


@pytest.mark.parametrize("page", ["in 21404 MB", "in 0.1404 MB", "in -1404 MB"])
def test_a_figure_is_matched_as_a_whole(page, results):
    assert prose.faults(page, prose.Sentence("{summary.s = 1.5.mb} MB", "speed"), results)
