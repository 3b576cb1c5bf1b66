"""Write one table from its specification in docs/tables.toml (the file's first lines explain the keys)."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from paper_tables.markdown import table

from quoting.results import Results, below

KEYS = {"under", "head", "rows", "cells", "missing", "written_by", "with"}


def specifications(document: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The tables of docs/tables.toml by name, those that are `like` another one completed."""
    return {
        name: {**document[spec["like"]], **{key: value for key, value in spec.items() if key != "like"}}
        if "like" in spec
        else spec
        for name, spec in document.items()
    }


def write(name: str, specs: dict[str, dict[str, Any]], results: Results) -> str:
    """The Markdown of the table, or of the lines that a function writes."""
    if name not in specs:
        raise ValueError(f"docs/tables.toml has no [{name}]")
    spec = specs[name]
    unknown = set(spec) - KEYS
    if unknown:
        raise ValueError(f"docs/tables.toml, [{name}]: unknown {', '.join(sorted(unknown))}")
    if "written_by" in spec:
        module, function = spec["written_by"].split(".")
        writer = getattr(import_module(f"paper_tables.{module}"), function)
        return writer(results.look_up(spec["under"]), **spec.get("with", {})).strip()
    rows = [
        [cell_text(template, spec, results) for template in templates]
        for templates in row_templates(spec, results)
    ]
    refuse_empty_columns(name, spec, rows)
    return table([results.fill(title, spec["under"]) for title in spec["head"]], rows).strip()


def row_templates(spec: dict[str, Any], results: Results) -> list[list[str]]:
    """The cells of every row, with the row's key in the place of the asterisk."""
    rows, cells = spec["rows"], spec.get("cells", [])
    if isinstance(rows, list):
        return rows
    if isinstance(rows, dict):
        return [[title, *(cell.replace("*", key) for cell in cells)] for key, title in rows.items()]
    found = results.look_up(below(spec["under"], rows))
    keys = found if isinstance(found, dict) else range(len(found))
    return [[cell.replace("*", f"{rows}.{key}") for cell in cells] for key in keys]


def cell_text(template: str, spec: dict[str, Any], results: Results) -> str:
    try:
        return results.fill(template, spec["under"])
    except (KeyError, TypeError):  # no such value, or null
        if "missing" not in spec:
            raise
        return spec["missing"]


def refuse_empty_columns(name: str, spec: dict[str, Any], rows: list[list[str]]) -> None:
    """A path that leads nowhere in any row is a mistake in the specification, not a missing value."""
    for title, *cells in zip(spec["head"], *rows, strict=True):
        if "missing" in spec and all(cell == spec["missing"] for cell in cells):
            raise ValueError(f"docs/tables.toml, [{name}]: no row has a value in column {title!r}")
