"""Copy measured figures from benchmarks/results/*.json into the pages that quote them.

A figure stands between two comments; the first names the result file, the path of the value and its format:

    <!-- result: em_latent_class summary.partita.peak_mb.median .0f -->404<!-- /result -->

(not at the beginning of a line, where Markdown would begin a new block)

    python scripts/sync_results.py            rewrite the pages
    python scripts/sync_results.py --check    exit with 1 if a page is out of date
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("README.md", "docs/index.md", "docs/mixture.md", "docs/benchmarks.md", "docs/answers.md", "docs/trees.md")
FIGURE = re.compile(r"(<!-- result: (\S+) (\S+) (\S+) -->)(.*?)(<!-- /result -->)", re.DOTALL)


def fill(page: str, results: Path) -> str:
    """Return `page` with every marked figure replaced by the measured one."""

    def figure(match: re.Match[str]) -> str:
        opening, name, path, spec, _, closing = match.groups()
        value = look_up(json.loads((results / f"{name}.json").read_text(encoding="utf-8")), path)
        return f"{opening}{format(value, '' if spec == 's' else spec)}{closing}"

    return FIGURE.sub(figure, page)


def look_up(document: Any, path: str) -> Any:
    """The value at a path such as ``summary.points.0.n_rows``; a space in a key is written as an underscore."""
    for step in path.split("."):
        if isinstance(document, list):
            document = document[int(step)]
        else:
            document = {key.replace(" ", "_"): value for key, value in document.items()}[step]
    return document


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Fill measured figures into the pages that quote them.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if out of date")
    options = parser.parse_args(arguments)
    stale = 0
    for name in PAGES:
        target = ROOT / name
        page = target.read_text(encoding="utf-8")
        filled = fill(page, ROOT / "benchmarks" / "results")
        if filled == page:
            continue
        stale += 1
        if options.check:
            print(f"{name} is out of date: run python scripts/sync_results.py", file=sys.stderr)
        else:
            target.write_text(filled, encoding="utf-8")
            print(f"{name} was rewritten")
    return int(bool(stale) and options.check)


if __name__ == "__main__":
    sys.exit(main())
