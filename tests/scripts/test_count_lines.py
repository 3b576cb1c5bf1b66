import count_lines
import pytest

SOURCE = '''\
"""Head.

More of it.
"""

import os
from typing import (
    Any,  # the type of everything
)

# a remark
TEXT = """not a docstring

at all"""


def double(x):  # a remark behind code
    """Twice."""
    return (
        # inside
        2 * x
    )
'''


def test_each_line_has_one_kind():
    lines = count_lines.count_lines(SOURCE)
    assert lines == count_lines.Lines(code=7, imports=4, docstring=5, comment=2, blank=4)
    assert sum(lines) == len(SOURCE.splitlines())


def test_a_docstring_behind_code_is_code():
    assert count_lines.count_lines('def f(): "text"\n') == count_lines.Lines(code=1)


def test_counts_add_up():
    assert count_lines.add([]) == count_lines.Lines()
    assert count_lines.add([count_lines.Lines(1, 2, 3, 4, 5)] * 2) == count_lines.Lines(2, 4, 6, 8, 10)


SOURCES = {
    "p": "",
    "p.engines": "",
    "p.engines.shared": "import numpy",
    "p.engines.deep.own": "from p.engines.shared import step",
    "p.engines.asked": "def run():\n    from p.engines.deep import own",
    "p.engines.typed": "",
    "p.engines.unused": "from p.engines import asked",
    "p.one": "from p.engines.asked import run",
    "p.two": "from p.engines import shared\nif TYPE_CHECKING:\n    from p.engines import typed",
}


def test_the_graph_knows_modules_from_names():
    graph = count_lines.import_graph(SOURCES)
    assert graph["p.engines.deep.own"] == {"p.engines.shared"}
    assert graph["p.two"] == {"p.engines.shared"}
    assert graph["p.engines.shared"] == set()


@pytest.mark.parametrize(
    ("module", "users"),
    [
        ("shared", {"p.one", "p.two"}),
        ("deep.own", {"p.one"}),
        ("asked", {"p.one"}),
        ("typed", set()),
        ("unused", set()),
    ],
)
def test_packages_are_served_through_other_engines(module, users):
    graph = count_lines.import_graph({**SOURCES, "p.engines.deep": ""})
    served = count_lines.served_packages(graph, "p.engines", ["p.one", "p.two"])
    assert served[f"p.engines.{module}"] == users


def test_names_of_modules():
    assert count_lines.module_name("p/engines/em.py") == "p.engines.em"
    assert count_lines.module_name("p/engines/__init__.py") == "p.engines"
