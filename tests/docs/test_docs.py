import contextlib
import importlib
import importlib.util
import io
import re
import shlex
import shutil
from pathlib import Path

import pytest

import partita
from partita.cli import main
from partita.datasets import load_visitors

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs").rglob("*.md"))]
WORKED = [page for page in PAGES if page.startswith(("docs/tasks/", "docs/stories/"))]  # Python and commands
APART = ("README.md", "docs/first_result.md", *WORKED)  # have tests of their own
INSTALL = 'pip install ".[recommended]"'


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


def test_the_sentences_that_pages_quote_are_those_of_the_example():
    space = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(blocks("README.md")[0], "README.md", "exec"), space)
    summary = space["model"].summary_
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    quoted = re.search(r"The third one is \*(.*?), \.\.\.\*", readme)[1]
    assert summary.sentences[2].startswith(quoted)
    page = (ROOT / "docs/tasks/describe_groups.md").read_text(encoding="utf-8")
    line = re.search(r"^    (3  .*), \.\.\.$", page, re.MULTILINE)[1]
    assert any(told.strip().startswith(line) for told in str(summary).splitlines())


@pytest.mark.parametrize("page", [page for page in PAGES if page not in APART and blocks(page)])
def test_the_examples_of_the_guide_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    space, out = {}, io.StringIO()
    with contextlib.redirect_stdout(out):
        for code in blocks(page):
            if "anndata" in code and importlib.util.find_spec("anndata") is None:
                continue
            exec(compile(code, page, "exec"), space)
    told = re.findall(r"# prints: (.*)", "".join(blocks(page)))
    assert not told or out.getvalue().splitlines() == told


@pytest.mark.parametrize(
    "page", [page for page in WORKED if "```" in (ROOT / page).read_text(encoding="utf-8")]
)
def test_tasks_and_stories_run_from_top_to_bottom(page, tmp_path, monkeypatch, capsys):
    """Python and commands in their order, in a folder with the tables that the pages name."""
    monkeypatch.chdir(tmp_path)
    load_visitors(as_frame="pandas").frame.to_csv("visitors.csv", index=False)
    shutil.copy(ROOT / "examples/data/election_1996.csv", tmp_path)
    text = (ROOT / page).read_text(encoding="utf-8")
    space = {}
    for kind, block, output in re.findall(
        r"^```(python|sh)\n(.*?)^```(?:\n\n```text\n(.*?)^```)?", text, re.DOTALL | re.MULTILINE
    ):
        if kind == "python":
            exec(compile(block, page, "exec"), space)
            printed = capsys.readouterr().out.splitlines()
            told = output.splitlines() or re.findall(r"# prints: (.*)", block)
            assert not told or printed == told
            continue
        for line in block.splitlines():
            command = shlex.split(line, comments=True)
            assert command[0] == "partita" or line.startswith(INSTALL), line
            if command[0] == "partita":
                assert main(command[1:]) == 0, (line, capsys.readouterr())
        capsys.readouterr()


@pytest.mark.parametrize("page", [page for page in WORKED if page.startswith("docs/tasks/")])
def test_a_task_opens_with_code_and_is_one_click_away(page):
    lines = [line for line in (ROOT / page).read_text(encoding="utf-8").splitlines() if line]
    assert lines[0].startswith("# ")
    assert any(line.startswith(("```python", "```sh")) for line in lines[1:4]), (
        f"{page} does not open with code"
    )
    assert f"({page.removeprefix('docs/')})" in (ROOT / "docs/index.md").read_text(encoding="utf-8")


def test_every_page_installs_with_the_same_line():
    for page in PAGES:
        for line in re.findall(
            r"^(?:    |```sh\n)?(pip install .*)", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE
        ):
            assert line.startswith(INSTALL) or page == "README.md" or page == "docs/tasks/install.md", (
                page,
                line,
            )


def test_every_page_is_in_the_navigation():
    named = set(re.findall(r"([\w/]+\.md)", (ROOT / "mkdocs.yml").read_text(encoding="utf-8")))
    assert {page.removeprefix("docs/") for page in PAGES} - {"README.md"} == named


def test_the_way_to_a_first_answer(tmp_path, monkeypatch, capsys):
    """The page's Python and its commands in their order, as a newcomer would run them."""
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/first_result.md").read_text(encoding="utf-8")
    steps = re.findall(r"^```(python|console)\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert sum(kind == "console" for kind, _ in steps) == 2
    space, printed = {}, []
    for kind, text in steps:
        if kind == "python":
            exec(compile(text, "first_result.md", "exec"), space)
            printed += capsys.readouterr().out.splitlines()
            continue
        for line in text.splitlines():
            assert line.startswith("$ partita ")
            assert main([*shlex.split(line)[2:]]) == 0
        told = capsys.readouterr()
        if "partita cluster" in text:
            promised = re.search(r"^```text\n(.*?)^```", page, re.DOTALL | re.MULTILINE)[1].splitlines()
            assert told.out.splitlines()[0].split(",")[0] == promised[0].split(",")[0]
            assert promised[-1] in told.err
            assert [line.split()[0] for line in told.out.splitlines()[1:]] == [
                line.split()[0] for line in promised[1:-1]
            ]
    assert printed == re.findall(r"# prints: (.*)", page)
    assert "Who came in May" in (tmp_path / "visitors.html").read_text(encoding="utf-8")


def test_every_estimator_is_in_the_reference():
    listed = set(re.findall(r"^::: partita\.\w+\.(\w+)$", (ROOT / "docs/api.md").read_text(), re.MULTILINE))
    assert {name for name in partita.__all__ if not name.startswith("_")} <= listed


def test_names_in_the_reference_exist():
    page = (ROOT / "docs/api.md").read_text(encoding="utf-8")
    entries = re.findall(r"^::: (\S+)\n((?:    .*\n)+)", page, re.MULTILINE)
    assert len(entries) > 40
    for name, options in entries:
        module, _, attribute = name.rpartition(".")
        parent = importlib.import_module(module)
        assert hasattr(parent, attribute) or importlib.util.find_spec(name), name
        for listed in re.findall(r"members: \[(.*)\]", options):
            package = importlib.import_module(name)
            assert set(listed.split(", ")) <= set(package.__all__), name
    for package in ("plotting", "summaries"):
        (listed,) = (
            re.search(r"members: \[(.*)\]", options)[1] for name, options in entries if name.endswith(package)
        )
        assert set(listed.split(", ")) == set(importlib.import_module(f"partita.{package}").__all__)


def test_names_on_the_page_of_the_papers_can_be_imported():
    names = re.findall(r"`(partita(?:\.\w+)+)`", (ROOT / "docs/papers.md").read_text())
    assert len(names) > 30
    for name in set(names):
        module, _, attribute = name.rpartition(".")
        assert hasattr(importlib.import_module(module), attribute), name


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


@pytest.mark.parametrize("path", sorted((ROOT / "examples/gallery").glob("*.py")), ids=lambda path: path.stem)
def test_scripts_of_the_gallery_draw(path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure = script("build_gallery").run(path)
    assert figure.get_axes()
    plt.close("all")


def test_the_gallery_shows_its_scripts(capsys):
    assert script("build_gallery").main(["--check"]) == 0, capsys.readouterr().err
