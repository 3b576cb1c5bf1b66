"""What very many labels take, by the model of scripts/cost_of_labels.py."""

from __future__ import annotations

from typing import Any

from cost_of_labels import DEFAULTS, HEAD, all_costs, cells, read_results

from paper_tables.markdown import table


def of_labels(_: Any) -> str:
    return table(HEAD, [cells(cost) for cost in all_costs(read_results(), DEFAULTS)])
