"""Write docs/tables.md from the kept results: the papers' tables, ours beside the printed figures.

With ``--check`` nothing is written: the exit code is 1 if the page would change. A result that is not kept yet has no
section.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # benchmarks, for printed figures
sys.path.insert(0, str(Path(__file__).resolve().parent))

from paper_tables import beside, laca, murphy, nbce, ofv, topchy

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "tables.md"
RESULTS = ROOT / "benchmarks" / "results"
OPENING = """# The papers' tables

Ours beside the printed figures, with what agrees and what does not. The page is written by `scripts/write_tables.py` from
`benchmarks/results`; the command above each section repeats it (`PARTITA_DATA` names the folder of data sets).
"""


SECTIONS = {
    "nbce": nbce.nbce,
    "topchy": topchy.topchy,
    "laca": laca.laca,
    "murphy": murphy.figures,
    "bhc": murphy.bhc,
    "irm": murphy.irm,
    "ofv": ofv.ofv,
    "ofv_real": ofv.ofv_real,
    "ofv_text": ofv.ofv_text,
    "ofv_speed": ofv.ofv_speed,
    "crosscat": ofv.crosscat,
    "engines": beside.engines,
    "tree_reduction": beside.tree_reduction,
}


def main(arguments: list[str]) -> int:
    page = OPENING
    for name, section in SECTIONS.items():
        path = RESULTS / f"{name}.json"
        if path.exists():
            page += "\n" + section(json.loads(path.read_text(encoding="utf-8"))).rstrip() + "\n"
    if "--check" in arguments:
        same = PAGE.exists() and PAGE.read_text(encoding="utf-8") == page
        if not same:
            print("docs/tables.md is not that of the results: run scripts/write_tables.py", file=sys.stderr)
        return int(not same)
    PAGE.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
