"""Hostile tiny tables: a few for the default tests, many with `make fuzz`."""

import numpy as np
import pytest

from tests.fuzz.tiny_tables import a_table, try_one


def test_row_85_hostile_tiny_tables(global_random_seed):
    outcomes = {try_one(1000 * global_random_seed + k, compiled=False) for k in range(40)}
    assert "fitted" in outcomes


@pytest.mark.slow
def test_many_hostile_tiny_tables(global_random_seed):
    for k in range(1500):
        try_one(1_000_000 + 10_000 * global_random_seed + k, compiled=False)


def test_tables_are_reproduced_from_their_seeds():
    for labels in (False, True):
        one, two = (a_table(np.random.default_rng(5), labels=labels) for _ in range(2))
        assert repr(one) == repr(two)
