"""Rules of the source tree that no linter knows: what compiled code imports, who owns an engine, numbered faults."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
FILES = sorted((SOURCE / "partita").rglob("*.py"))
PACKAGES = {path.name for path in (SOURCE / "partita").iterdir() if (path / "__init__.py").exists()}
ESTIMATOR_PACKAGES = {"mixture", "similarity", "consensus", "views", "trees", "blocks"}


def module_of(path):
    """The dotted name of a file of the source."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in FILES}


def imported(path):
    """Dotted names of all that a file imports, inside functions too; an imported name may be a module."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


IMPORTS = {module: imported(path) for module, path in MODULES.items()}


def room_of(module):
    """The package directly under partita, or None for what lies beside the packages."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in PACKAGES else None


def users_of(engine):
    """The packages outside engines/ that import a module of engines/, directly or through others of it."""
    using, waiting = set(), {engine}
    while waiting:
        module = waiting.pop()
        using.add(module)
        waiting |= {
            other for other, names in IMPORTS.items() if module in names and other not in using
        } & ENGINES
    outside = {other for other, names in IMPORTS.items() if names & using and other not in ENGINES}
    return {room_of(module) or module for module in outside}


ENGINES = {module for module in MODULES if module.startswith("partita.engines")}
ENGINE_FILES = sorted(module for module in ENGINES if MODULES[module].name != "__init__.py")


def test_no_scikit_learn_in_compiled_code():
    """A kernel is what `partita.dispatch` compiles: numpy and scipy are its world."""
    guilty = {
        module
        for module, names in IMPORTS.items()
        if any(name.startswith("partita.dispatch") for name in names)
        and any(name.split(".")[0] == "sklearn" for name in names)
    }
    assert guilty == set()


@pytest.mark.parametrize("module", ENGINE_FILES)
def test_a_module_of_engines_does_not_repeat_a_package_in_its_name(module):
    name, owner = module.split(".")[-1], module.split(".")[-2]
    prefixes = {prefix for package in PACKAGES | {owner} for prefix in (package, package.removesuffix("s"))}
    assert not [prefix for prefix in prefixes if name.startswith(f"{prefix}_")]


@pytest.mark.parametrize("module", ENGINE_FILES)
def test_a_module_of_engines_serves_more_than_one_estimator_package(module):
    """What only one package of estimators uses belongs into that package; `fitting` is shared by several."""
    users = users_of(module)
    assert users, f"nothing outside engines/ uses {module}"
    assert not (len(users) == 1 and users <= ESTIMATOR_PACKAGES), f"only {users} uses {module}"


# ---- docs/faults.md ----------------------------------------------------------------------------------------------

TEST = re.compile(r"^def (test_\w+)\(", re.MULTILINE)
NUMBERED = re.compile(r"test_(?:rows?|faults)_(\d+(?:_(?:(?:and|to)_)?\d+)*)(?:_|$)")


def names_of_tests():
    """The names of all tests."""
    paths = (ROOT / "tests").rglob("test_*.py")
    return {name for path in paths for name in TEST.findall(path.read_text(encoding="utf-8"))}


def numbers_in(name):
    """The lines of the page that a test's name speaks of: "row_7", "rows_7_and_32", "rows_13_to_16"."""
    match = NUMBERED.match(name)
    if match is None:
        return set()
    numbers = [int(number) for number in re.findall(r"\d+", match[1])]
    if "_to_" in match[1]:
        return set(range(numbers[0], numbers[-1] + 1))
    return set(numbers)


def fault_lines():
    """Number of each line of the page and the tests that it names."""
    page = (ROOT / "docs" / "faults.md").read_text(encoding="utf-8")
    lines = re.findall(r"^\| (\d+) \|.*\|([^|]*)\|$", page, re.MULTILINE)
    return {int(number): set(re.findall(r"`(test_\w+)`", tests)) for number, tests in lines}


def test_a_class_name_has_one_meaning():
    """Two classes of one name in different modules would be mistaken for each other."""
    places = {}
    for module, path in MODULES.items():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(module)
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_numbers_in_names_are_read():
    assert numbers_in("test_row_27_unseen_category") == {27}
    assert numbers_in("test_rows_13_to_16_members") == {13, 14, 15, 16}
    assert numbers_in("test_row_09_10_13_sizes") == {9, 10, 13}
    assert numbers_in("test_rows_39_and_40_chains") == {39, 40}
    assert numbers_in("test_row_order_does_not_matter") == set()


def test_every_fault_has_a_test_and_every_number_a_fault():
    lines, names = fault_lines(), names_of_tests()
    assert list(lines) == list(range(1, len(lines) + 1))
    numbered = set().union(*map(numbers_in, names))
    assert numbered <= set(lines), "tests with a number that docs/faults.md does not have"
    assert {number for number, tests in lines.items() if not tests} <= numbered, "lines without a test"
    assert set().union(*lines.values()) <= names, "docs/faults.md names tests that do not exist"
