"""Compiled and interpreted kernels over rows give the same results, for every container of codes."""

import numpy as np
import pytest

from partita.families import FAMILIES
from partita.testing import LawViolation, check_compiled, with_missing_cells

CODES = {"categorical": (np.int16, np.int8), "bernoulli": (np.int16, np.int8)}


# one family per type of container; the others take half a minute to compile and are in the slow tests
@pytest.mark.parametrize("name", ["categorical", "gaussian", "multinomial", "ordinal", "poisson"])
def test_compiled_twins(name, rng):
    lik, data = FAMILIES[name].examples(rng)[0]
    check_compiled(lik, with_missing_cells(data, 0.2, rng), rng)


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_compiled_twins_of_every_example_and_code(name, rng):
    for lik, data in FAMILIES[name].examples(rng):
        for dtype in CODES.get(name, [None]):
            coded = data if dtype is None else data.astype(dtype)
            check_compiled(lik, coded, rng)
            check_compiled(lik, with_missing_cells(coded, 0.2, rng), rng)


def test_a_twin_that_differs_is_named(rng, monkeypatch):
    from partita.testing import twins

    lik, data = FAMILIES["bernoulli"].examples(rng)[0]
    answers = iter([{"project_rows": np.zeros(1)}, {"project_rows": np.ones(1)}])
    monkeypatch.setattr(twins, "_all_kernels", lambda *_: next(answers))
    with pytest.raises(LawViolation, match="compiled project_rows = interpreted project_rows"):
        check_compiled(lik, data, rng)
