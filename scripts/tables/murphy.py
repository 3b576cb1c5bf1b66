"""Murphy's chapter: trees and blocks."""

from __future__ import annotations

from tables.markdown import command


def irm(result: dict) -> str:
    return (
        "## Kemp et al. 2006, animals in blocks (Murphy's figure 25.18)\n\n"
        f"{command('irm')}: see [blocks](blocks.md).\n\n"
        "![Animals and features in blocks](images/irm_animals.png)\n"
    )
