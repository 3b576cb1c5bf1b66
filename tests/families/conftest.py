"""Every law runs on every registered example of every family, with and without missing cells."""

from functools import cache

import numpy as np
import pytest

from partita.families import FAMILIES
from partita.testing import with_missing_cells

NAMES = [
    f"{name}-{j}"
    for name, entry in FAMILIES.items()
    for j in range(len(entry.examples(np.random.default_rng(0))))
]


@cache
def _example(key, seed):
    """A registered example, its data drawn with this seed; "name-j-holes" has a quarter of its cells missing."""
    name, j, *holes = key.split("-")
    lik, data = FAMILIES[name].examples(np.random.default_rng(seed))[int(j)]
    return lik, with_missing_cells(data, 0.25, np.random.default_rng([seed, 1])) if holes else data


@pytest.fixture(params=NAMES)
def example(request, global_random_seed):
    """A registered example: the family and complete data."""
    return _example(request.param, global_random_seed)


@pytest.fixture(params=[key + holes for key in NAMES for holes in ("", "-holes")])
def any_example(request, global_random_seed):
    """A registered example as it is, or with missing cells."""
    return _example(request.param, global_random_seed)
