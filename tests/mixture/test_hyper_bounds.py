"""The warning of learned hyper-parameters near the end of their support covers all that chains learn."""

import numpy as np
import pytest

from partita.engines.gibbs.chain import HYPER_CUT, HYPER_SPREAD
from partita.estimator import FitReport
from partita.families import FAMILIES, Block
from partita.families.contract import breadth, constrained, held, n_columns, unconstrained
from partita.fitting.hyper_bounds import MEANINGS, at_the_end, note_bounds


def moved(family, name, share):
    """The family with one hyper-parameter this share of the way from its default to the end of its support."""
    value = unconstrained(family)[name]
    return constrained(family, name, value + share * HYPER_CUT * HYPER_SPREAD * breadth(family, name))


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_every_hyper_parameter_that_is_learned_is_watched(name, rng):
    for family, _ in FAMILIES[name].examples(rng):
        free = set(unconstrained(family)) - set(held(family))
        for one in free:
            for side in (-1.0, 1.0):
                assert at_the_end(family, moved(family, one, 0.95 * side))[one].all(), (one, side)
                assert not at_the_end(family, moved(family, one, 0.85 * side))[one].any(), (one, side)
        assert set(at_the_end(family, family)) == free


def test_the_note_names_the_hyper_parameter_and_the_columns(rng):
    family = FAMILIES["gaussian"].examples(rng)[0][0]
    columns = tuple(f"c{d}" for d in range(n_columns(family)))
    report = FitReport()
    note_bounds(report, [Block(family, None, columns)], [family])
    assert "hyper_at_end" not in report
    value = unconstrained(family)["b"]
    outer = np.where(np.arange(len(value)) == 0, value - 0.95 * HYPER_CUT * HYPER_SPREAD, value)
    note_bounds(report, [Block(family, None, columns)], [constrained(family, "b", outer)])
    text = report["hyper_at_end"].message
    assert MEANINGS["b"] in text and "c0" in text and "c1" not in text
