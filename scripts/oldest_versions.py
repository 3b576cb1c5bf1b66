"""Print the lower bounds of pyproject.toml as constraints for pip: ``pip install -c oldest.txt -e ".[test]"``."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
BOUND = re.compile(r"([A-Za-z0-9._-]+)(?:\[.*?\])?\s*>=\s*([0-9.]+)")


def oldest_versions(project: dict, extras: list[str]) -> dict[str, str]:
    """The lower bound of each requirement of the package and of some extras; the highest if there are several.

    Examples
    --------
    >>> oldest_versions(
    ...     {"dependencies": ["numpy>=1.26"], "optional-dependencies": {"io": ["pyarrow>=15"]}}, ["io"]
    ... )
    {'numpy': '1.26', 'pyarrow': '15'}
    """
    wanted = [
        *project["dependencies"],
        *(item for extra in extras for item in project["optional-dependencies"][extra]),
    ]
    found: dict[str, str] = {}
    for requirement in wanted:
        match = BOUND.match(requirement)
        if match and _key(match[2]) >= _key(found.get(match[1], "0")):
            found[match[1]] = match[2]
    return found


def _key(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def main() -> None:
    """Print one constraint per line; the arguments are the extras."""
    project = tomllib.loads(PROJECT.read_text())["project"]
    for name, version in oldest_versions(project, sys.argv[1:] or ["test"]).items():
        print(f"{name}=={version}.*" if version.count(".") < 2 else f"{name}=={version}")


if __name__ == "__main__":
    main()
