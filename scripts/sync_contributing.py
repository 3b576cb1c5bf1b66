"""Copy the source files that CONTRIBUTING.md quotes into it.

A marker line ``<!-- family-source: PATH -->`` is followed by a fenced block of Python; the block becomes
the present content of the file at PATH (relative to the root of the repository).

    python scripts/sync_contributing.py            rewrite the page
    python scripts/sync_contributing.py --check    exit with 1 if the page is out of date
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
QUOTE = re.compile(
    r"^(?P<marker><!-- family-source: (?P<path>\S+) -->\n)(?P<fence>`{3,})python\n(?:.*?\n)??(?P=fence)$",
    re.DOTALL | re.MULTILINE,
)


def fill(page: str, root: Path) -> str:
    """Return `page` with every quoted block replaced by the file that its marker names."""

    def block(match: re.Match[str]) -> str:
        source = (root / match["path"]).read_text(encoding="utf-8").strip("\n")
        # a fence longer than any in the source, so that a fence inside a docstring cannot end the block
        longest = max((len(run) for run in re.findall(r"`{3,}", source)), default=2)
        fence = "`" * (longest + 1)
        return f"{match['marker']}{fence}python\n{source}\n{fence}"

    filled, count = QUOTE.subn(block, page)
    if count == 0:
        raise ValueError("no marker line '<!-- family-source: PATH -->' followed by a python block")
    return filled


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Copy quoted source files into CONTRIBUTING.md.")
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 if out of date")
    parser.add_argument("--root", type=Path, default=ROOT, help="root of the repository")
    options = parser.parse_args(arguments)

    target = options.root / "CONTRIBUTING.md"
    page = target.read_text(encoding="utf-8")
    try:
        filled = fill(page, options.root)
    except FileNotFoundError as missing:
        print(f"{target.name} quotes {missing.filename}, which is not there", file=sys.stderr)
        return 1
    if filled == page:
        print(f"{target.name} is up to date")
        return 0
    if options.check:
        print(f"{target.name} is out of date: run python scripts/sync_contributing.py", file=sys.stderr)
        return 1
    target.write_text(filled, encoding="utf-8")
    print(f"{target.name} was rewritten")
    return 0


if __name__ == "__main__":
    sys.exit(main())
