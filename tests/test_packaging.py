"""What the distribution says about itself."""

import re
import tomllib
from pathlib import Path

import pytest

import partita

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "pyproject.toml").read_text()
EXTRAS = tomllib.loads(TEXT)["project"]["optional-dependencies"]
GPL = {"igraph", "leidenalg", "kmedoids"}


def test_type_checkers_find_the_annotations():
    assert (Path(partita.__file__).parent / "py.typed").exists()
    assert '"Typing :: Typed"' in TEXT


def test_every_extra_that_is_named_exists():
    files = [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("src/partita/**/*.py")]
    named = {}
    for path in files:
        for found in re.findall(r"(?:partita|\"\.|whl)\[([a-z, ]+)\]", path.read_text()):
            named.update({extra.strip(): path for extra in found.split(",")})
    assert "io" in named
    assert {extra: path for extra, path in named.items() if extra not in EXTRAS} == {}


def test_the_readme_lists_the_extras_of_users():
    ours = {"test", "dev", "docs", "wheel", "peers"}  # what contributors install; make does it
    listed = set(re.findall(r"^\| `([a-z]+)` \|", (ROOT / "README.md").read_text(), re.MULTILINE))
    assert listed == set(EXTRAS) - ours


def test_every_extra_that_pulls_in_gpl_says_so():
    for extra, requirements in EXTRAS.items():
        pulled = {re.split(r"[ ><=;\[]", requirement)[0] for requirement in requirements}
        if pulled & GPL or any(name in ("partita[test]",) for name in requirements):
            at = re.search(rf"(?:#.*\n)?^{extra} = \[[^\]]*(?:\[[^\]]*\][^\]]*)*\].*$", TEXT, re.MULTILINE)
            assert at and "GPL" in at[0], (
                f"{extra} pulls in {sorted(pulled & GPL)}: mark it GPL in pyproject.toml"
            )


def test_the_declared_versions_print_the_help(capsys):
    """An old typer with a new click builds no command at all; `make test-versions` runs this with the oldest."""
    pytest.importorskip("typer")
    from partita.cli import main

    for command in ([], ["cluster"], ["consensus"], ["predict"]):
        assert main([*command, "--help"]) == 0
        assert "Usage: " in capsys.readouterr().out
