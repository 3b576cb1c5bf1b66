"""Write the figures of benchmarks/results/*.json into the pages that quote them.

Tables stand in regions between two comments and are written from docs/tables.toml. Sentences have plain numbers;
docs/figures.toml has a template of each, and stale numbers in them are replaced.

    python scripts/sync_results.py            rewrite the pages
    python scripts/sync_results.py --check    write nothing, say what is out of date and exit with 1 if anything is

A sentence of docs/figures.toml that a page does not have cannot be rewritten: both ways say what to write.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # benchmarks, for printed figures

from quoting import prose, regions, tables
from quoting.results import Results

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("README.md", *sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md")))
RESULTS = Results(ROOT / "benchmarks" / "results")


def read_toml(name: str) -> dict[str, Any]:
    return tomllib.loads((ROOT / "docs" / name).read_text(encoding="utf-8"))


def synced(page: str, specs: dict[str, Any], sentences: list[prose.Sentence], results: Results) -> str:
    """Return the page with the figures of the results."""
    page = regions.rewrite(page, lambda name: tables.write(name, specs, results))
    for sentence in sentences:
        page = prose.rewrite(page, sentence, results)
    return page


def complaints(
    name: str, page: str, specs: dict[str, Any], sentences: list[prose.Sentence], results: Results
) -> list[str]:
    """What the page says otherwise than the results."""
    said = [
        f"{name}: the region {region} is not that of the results"
        for region, content in regions.contents(page)
        if content != tables.write(region, specs, results)
    ]
    for sentence in sentences:
        said += [fault.message(name) for fault in prose.faults(page, sentence, results)]
    return said


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description="Write the figures of the results into the pages that quote them."
    )
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if out of date")
    options = parser.parse_args(arguments)
    specs, figures = tables.specifications(read_toml("tables.toml")), read_toml("figures.toml")
    said = []
    for name in PAGES:
        target, sentences = ROOT / name, prose.sentences_of(figures.get(name, []))
        page = target.read_text(encoding="utf-8")
        if not options.check:
            written = synced(page, specs, sentences, RESULTS)
            if written != page:
                target.write_text(written, encoding="utf-8")
                print(f"{name} was rewritten")
            page = written
        said += complaints(name, page, specs, sentences, RESULTS)
    for line in said:
        print(line, file=sys.stderr)
    return int(bool(said))


if __name__ == "__main__":
    sys.exit(main())
