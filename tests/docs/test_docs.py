import contextlib
import importlib.util
import io
import re
from pathlib import Path

import pytest

import partita

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs").glob("*.md"))]


def script(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def blocks(page):
    return re.findall(
        r"^```python\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )


@pytest.mark.parametrize("code", blocks("README.md"))
def test_the_examples_of_the_readme_print_what_they_say(code):
    assert len([line for line in code.splitlines() if line.strip()]) <= 10
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "README.md", "exec"), {})
    assert out.getvalue().splitlines() == re.findall(r"# prints: (.*)", code)


@pytest.mark.parametrize(
    "page", ["docs/mixture.md", "docs/posterior.md", "docs/consensus.md", "docs/views.md"]
)
def test_the_examples_of_the_guide_run(page):
    space = {}
    with contextlib.redirect_stdout(io.StringIO()):
        for code in blocks(page):
            exec(compile(code, page, "exec"), space)


def test_every_estimator_is_in_the_reference():
    listed = set(re.findall(r"^::: partita\.\w+\.(\w+)$", (ROOT / "docs/api.md").read_text(), re.MULTILINE))
    assert {name for name in partita.__all__ if not name.startswith("_")} <= listed


def test_every_marked_figure_is_the_measured_one(capsys):
    assert script("sync_results").main(["--check"]) == 0, capsys.readouterr().err


def test_figures_are_filled_from_their_file(tmp_path):
    sync = script("sync_results")
    (tmp_path / "speed.json").write_text('{"summary": {"times": [0.5, 1.25]}}')
    page = "a <!-- result: speed summary.times.1 .1f -->9<!-- /result --> b"
    assert sync.fill(page, tmp_path) == page.replace("9", "1.2")
    with pytest.raises(KeyError):
        sync.fill("<!-- result: speed summary.nothing s -->9<!-- /result -->", tmp_path)


def test_all_marked_pages_are_known_to_the_script():
    marked = {page for page in PAGES if "<!-- result:" in (ROOT / page).read_text(encoding="utf-8")}
    assert marked <= set(script("sync_results").PAGES)


def test_no_line_begins_with_a_marker():
    """Markdown would take it for a block of its own and break the paragraph."""
    for page in PAGES:
        assert not re.search(r"^<!-- /?result", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE), page


def test_speed_is_claimed_with_a_marker_only():
    """A number of seconds, megabytes or times outside the markers would be a claim without a measurement."""
    for page in ("README.md", "docs/benchmarks.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        bare = re.sub(r"<!-- result:.*?<!-- /result -->", "", text, flags=re.DOTALL)
        assert not re.findall(r"\b\d+(?:\.\d+)?\s*(?:s|ms|seconds|MB|GB|times)\b", bare), page


def test_contributing_quotes_the_source(capsys):
    assert script("sync_contributing").main(["--check"]) == 0, capsys.readouterr().err
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (claimed,) = re.findall(r"^## Add a family in about (\d+) lines", page, re.MULTILINE)
    (path,) = re.findall(r"family-source: (\S+) -->", page)
    lines = sum(bool(line.strip()) for line in (ROOT / path).read_text(encoding="utf-8").splitlines())
    assert abs(lines - int(claimed)) <= 7


def test_links_between_pages_lead_somewhere():
    for page in ["CONTRIBUTING.md", *PAGES]:
        here = (ROOT / page).parent
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", (ROOT / page).read_text(encoding="utf-8")):
            if "://" not in target:
                assert (here / target).exists(), f"{page}: {target}"


def test_pictures_are_small():
    for picture in (ROOT / "docs" / "images").iterdir():
        assert picture.stat().st_size < 200_000
