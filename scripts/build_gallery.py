"""Run the scripts of examples/gallery and make docs/gallery.md of them: picture, words, code.

Each script begins with a docstring (first line: the title) and leaves a matplotlib figure in the name `figure`. With
``--check`` no script is run: the exit code is 1 if the page lacks a script or shows other code.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = ROOT / "examples" / "gallery"
PAGE = ROOT / "docs" / "gallery.md"
IMAGES = ROOT / "docs" / "images"


def main(arguments: list[str]) -> int:
    scripts = sorted(SCRIPTS.glob("*.py"))
    page = "\n".join(
        [
            "# Gallery\n",
            "Every picture is made by the code below it (`make gallery`).\n",
            *map(entry, scripts),
        ]
    )
    if "--check" in arguments:
        same = PAGE.exists() and PAGE.read_text(encoding="utf-8") == page
        if not same:
            print("docs/gallery.md is not that of examples/gallery: run `make gallery`", file=sys.stderr)
        return int(not same)
    import matplotlib

    matplotlib.use("Agg")
    for script in scripts:
        print(script.stem, flush=True)
        run(script).savefig(IMAGES / f"gallery_{script.stem}.png", dpi=100)
    PAGE.write_text(page, encoding="utf-8")
    return 0


def run(script: Path):
    """The figure that a script draws."""
    space: dict = {"__name__": "__gallery__"}
    exec(compile(script.read_text(encoding="utf-8"), str(script), "exec"), space)
    return space["figure"]


def entry(script: Path) -> str:
    """A script on the page: title, picture, words, code without the docstring."""
    source = script.read_text(encoding="utf-8")
    tree = ast.parse(source)
    title, _, words = (ast.get_docstring(tree) or script.stem).partition("\n")
    code = "\n".join(source.splitlines()[tree.body[0].end_lineno :]).strip()
    picture = f"![{title.rstrip('.')}](images/gallery_{script.stem}.png)"
    return f"## {title.rstrip('.')}\n\n{picture}\n\n{words.strip()}\n\n```py\n{code}\n```\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
