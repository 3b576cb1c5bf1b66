"""Look up values in the kept results and put them into templates.

A path names a result file and the way to a value in it: ``startup.summary.import.partita.cpu_s.median`` is a number in
``startup.json``. Steps through lists are numbers, and ``length`` is the length of a list. A template is text with paths
in braces, each followed by a format: ``{startup.summary.import.partita.cpu_s.median:.3f} s``.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

FIGURE = re.compile(r"\{([^{}:]+)(?::([^{}]*))?\}")


class Results:
    """The result files of a folder, each read once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._documents: dict[str, Any] = {}

    def look_up(self, path: str) -> Any:
        """The value at a path; KeyError names the path if there is none."""
        name, _, rest = path.partition(".")
        if name not in self._documents:
            file = self.folder / f"{name}.json"
            if not file.exists():
                raise KeyError(f"{path}: there is no {file.name} in {self.folder.name}")
            self._documents[name] = json.loads(file.read_text(encoding="utf-8"))
        try:
            return descend(self._documents[name], rest)
        except (KeyError, IndexError, ValueError):
            raise KeyError(f"{path}: {name}.json has no such value") from None

    def figure(self, path: str, spec: str) -> str:
        """The value at a path as it is to be printed."""
        return format(self.look_up(path), spec)

    def fill(self, template: str, under: str = "") -> str:
        """Put the figures into a template whose paths begin below `under`."""
        return FIGURE.sub(lambda match: self.figure(below(under, match[1]), match[2] or ""), template)


def below(under: str, path: str) -> str:
    return f"{under}.{path}" if under else path


def descend(document: Any, path: str) -> Any:
    """Follow a path; keys may have dots in them, so the longest key that begins the rest of the path is taken."""
    while path:
        if isinstance(document, list):
            step, _, path = path.partition(".")
            document = len(document) if step == "length" else document[int(step)]
        elif isinstance(document, dict):
            fitting = [key for key in document if path == key or path.startswith(key + ".")]
            if not fitting:
                raise KeyError(path)
            step = max(fitting, key=len)
            document, path = document[step], path[len(step) + 1 :]
        else:
            raise KeyError(path)
    return document
