"""Regions of a page that are written from the results: everything between an opening and a closing comment.

<!-- results: name in docs/tables.toml -->
...
<!-- /results -->
"""

from __future__ import annotations

import re
from collections.abc import Callable

REGION = re.compile(r"^<!-- results: (\S+) -->\n(.*?)^<!-- /results -->$", re.DOTALL | re.MULTILINE)


def contents(page: str) -> list[tuple[str, str]]:
    """Name and content of each region."""
    return [(match[1], match[2].strip()) for match in REGION.finditer(page)]


def rewrite(page: str, content: Callable[[str], str]) -> str:
    """Return the page with `content(name)` in every region."""
    return REGION.sub(
        lambda match: f"<!-- results: {match[1]} -->\n\n{content(match[1])}\n\n<!-- /results -->", page
    )


def blank(page: str) -> str:
    """The page with spaces for the regions, so that what is outside them keeps its place."""
    return REGION.sub(lambda match: re.sub(r"\S", " ", match[0]), page)
