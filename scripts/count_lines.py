"""Count the lines of the source by kind, and the engine files that serve only one package of estimators.

Every line of a Python file below ``src`` has one kind:

- code: part of a statement is on it (a string that is no docstring is one), but not of an import;
- imports: part of an import is on it;
- docstring: it belongs to the docstring of a module, class or function (blank lines inside included);
- comment: a comment stands alone on it;
- blank: nothing is on it.

An engine file serves a package of estimators if a module of that package imports it, directly or through other engine
files; imports for type checking do not count.

    python scripts/count_lines.py                    the figures of this checkout
    python scripts/count_lines.py --source DIR       those of another checkout (the folder that contains src)
    python scripts/count_lines.py --list             with the packages that each engine file serves
"""

from __future__ import annotations

import argparse
import ast
import io
import sys
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PACKAGE, ENGINES = "partita", "engines"
ESTIMATORS = ("mixture", "consensus", "views", "trees", "blocks", "similarity")
NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


class Lines(NamedTuple):
    """Numbers of lines of each kind."""

    code: int = 0
    imports: int = 0
    docstring: int = 0
    comment: int = 0
    blank: int = 0


# ---- lines ---------------------------------------------------------------------------------------------------------


def count_lines(source: str) -> Lines:
    """The lines of a source text by kind."""
    tree = ast.parse(source)
    docstrings = dict(docstring_spans(tree))
    imports = {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    code: set[int] = set()
    described: set[int] = set()
    commented: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        lines = range(token.start[0], token.end[0] + 1)
        if token.type == tokenize.COMMENT:
            commented.update(lines)
        elif token.type == tokenize.STRING and token.start in docstrings:
            described.update(range(token.start[0], docstrings[token.start] + 1))
        elif token.type not in NO_CODE:
            code.update(lines)
    described -= code
    commented -= code | described | imports
    code -= imports
    filled = Lines(len(code), len(imports), len(described), len(commented))
    return filled._replace(blank=len(source.splitlines()) - sum(filled))


def docstring_spans(tree: ast.AST) -> Iterator[tuple[tuple[int, int], int]]:
    """Where each docstring begins (line and column) and the line on which it ends."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                yield (first.lineno, first.col_offset), first.end_lineno or first.lineno


def add(counts: Iterable[Lines]) -> Lines:
    """The sum of several counts."""
    return Lines(*map(sum, zip(Lines(), *counts)))


# ---- who imports what ----------------------------------------------------------------------------------------------


def imported_names(tree: ast.AST) -> Iterator[str]:
    """Full names that a module imports, inside functions too: modules, and ``module.name`` for ``from`` imports."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        else:
            yield from imported_names(node)


def import_graph(sources: Mapping[str, str]) -> dict[str, set[str]]:
    """For each module (full name to source text) the modules among them that it imports."""
    graph = {}
    for module, source in sources.items():
        targets = set()
        for name in imported_names(ast.parse(source)):
            # the name itself is a module, or something defined in the module before the last dot
            targets |= {found for found in (name, name.rpartition(".")[0]) if found in sources}
            if name in sources:
                targets.discard(name.rpartition(".")[0])
        graph[module] = targets - {module}
    return graph


def served_packages(
    graph: Mapping[str, set[str]], engines: str, packages: Iterable[str]
) -> dict[str, set[str]]:
    """For each module below ``engines`` the packages that use it, directly or through other engine modules."""
    served: dict[str, set[str]] = {module: set() for module in graph if _is_below(module, engines)}
    for package in packages:
        to_visit = [target for module in graph if _is_below(module, package) for target in graph[module]]
        while to_visit:
            module = to_visit.pop()
            if module in served and package not in served[module]:
                served[module].add(package)
                to_visit.extend(graph[module])
    return served


def _is_below(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


# ---- telling -------------------------------------------------------------------------------------------------------


def read_sources(folder: Path) -> dict[str, str]:
    """The source text of each file, by its path below ``folder`` with forward slashes."""
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*.py"))
    }


def module_name(file: str) -> str:
    """``partita/engines/em.py`` is partita.engines.em; ``partita/engines/__init__.py`` is partita.engines."""
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def print_lines(sources: Mapping[str, str]) -> None:
    """Print a row for each package, and the total."""
    by_package: dict[str, list[Lines]] = {}
    for file, source in sources.items():
        parts = file.split("/")
        by_package.setdefault(parts[1].removesuffix(".py") if len(parts) > 1 else file, []).append(
            count_lines(source)
        )
    print(f"{'package':14} {'files':>6} {'lines':>7}" + "".join(f"{kind:>10}" for kind in Lines._fields))
    everything = [lines for counts in by_package.values() for lines in counts]
    for package, counts in [*sorted(by_package.items()), ("total", everything)]:
        summed = add(counts)
        print(f"{package:14} {len(counts):6} {sum(summed):7}" + "".join(f"{n:10}" for n in summed))


def print_engines(sources: Mapping[str, str], listed: bool) -> None:
    """Print how many engine files serve no, one and several packages of estimators."""
    graph = import_graph({module_name(file): source for file, source in sources.items()})
    engines = f"{PACKAGE}.{ENGINES}"
    served = served_packages(graph, engines, [f"{PACKAGE}.{name}" for name in ESTIMATORS])
    # the file that only makes a folder a package serves nobody
    files = {module: users for module, users in served.items() if graph[module] or users}
    alone = [users for users in files.values() if len(users) == 1]
    several = sum(len(users) > 1 for users in files.values())
    print(f"engine files: {len(files)}; for several packages of estimators: {several}, for one: {len(alone)}")
    for name in ESTIMATORS:
        print(f"    only for {name}: {alone.count({f'{PACKAGE}.{name}'})}")
    if listed:
        for module, users in sorted(files.items()):
            names = sorted(user.removeprefix(f"{PACKAGE}.") for user in users)
            print(f"    {module.removeprefix(engines + '.'):28} {', '.join(names) or '-'}")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Count the lines of the source by kind.")
    parser.add_argument("--source", type=Path, default=ROOT, help="checkout to measure: the folder with src")
    parser.add_argument("--list", action="store_true", help="also list whom each engine file serves")
    options = parser.parse_args(arguments)
    sources = read_sources(options.source / "src")
    print_lines(sources)
    print_engines(sources, options.list)
    return 0


if __name__ == "__main__":
    sys.exit(main())
