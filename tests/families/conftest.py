"""Every law runs on every registered example of every family."""

import numpy as np
import pytest

from partita.families import FAMILIES
from partita.testing import with_missing_cells


def _examples():
    """(identifier, family, data): as registered, and with holes."""
    for name, entry in FAMILIES.items():
        for j, (lik, data) in enumerate(entry.examples(np.random.default_rng(11))):
            yield f"{name}-{j}", lik, data
            yield f"{name}-{j}-holes", lik, with_missing_cells(data, 0.25, np.random.default_rng(12))


EXAMPLES = {key: (lik, data) for key, lik, data in _examples()}


def pytest_generate_tests(metafunc):
    if "example" in metafunc.fixturenames:
        complete = [key for key in EXAMPLES if not key.endswith("holes")]
        metafunc.parametrize("example", [pytest.param(EXAMPLES[key], id=key) for key in complete])
    if "any_example" in metafunc.fixturenames:
        metafunc.parametrize("any_example", [pytest.param(pair, id=key) for key, pair in EXAMPLES.items()])


@pytest.fixture
def rng():
    return np.random.default_rng(20240607)
