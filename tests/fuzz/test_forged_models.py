"""Saved models whose arrays were altered: they are refused by name, or their predictions are defined."""

import numpy as np
import pytest

import partita
from partita.estimator.array_laws import array_laws, arrays_in, check_arrays
from partita.estimator.storage import part_state, restore_part
from tests.fuzz.model_files import CHANGES, check_forgery, places, replaced
from tests.fuzz.small_models import CASES, fitted


@pytest.mark.parametrize("case", CASES)
def test_row_79_forged_arrays(case, global_random_seed):
    """A few random changes of the arrays of each model; `test_every_change_of_every_array` tries all."""
    rng = np.random.default_rng(global_random_seed)
    found = places(case)
    for k in rng.permutation(len(found))[:5]:
        change = list(CHANGES)[int(rng.integers(len(CHANGES)))]
        check_forgery(case, *found[k], change, global_random_seed)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_every_change_of_every_array(case, global_random_seed):
    outcomes = [
        check_forgery(case, path, array, change, global_random_seed)
        for path, array in places(case)
        for change in CHANGES
    ]
    assert outcomes.count("refused") > len(outcomes) / 3


@pytest.mark.parametrize("case", CASES)
def test_shape_type_and_finiteness_of_every_array_are_checked(case):
    """Compiled code never sees an array of another type, with NaN where none belongs, or cut along a shared axis."""
    model = fitted(case)
    state, laws = part_state(model)["state"], array_laws(type(model))
    for path, array in arrays_in(state):
        for change in ("complex", "text"):
            with pytest.raises(ValueError, match=path.replace(".", r"\.")):
                check_arrays(replaced(state, path, CHANGES[change](array, None)), laws)


def test_every_saved_class_has_laws():
    tested = {type(fitted(case)) for case in CASES}
    for name in partita.__all__:
        cls = getattr(partita, name)
        if isinstance(cls, type) and hasattr(cls, "_restore"):
            assert array_laws(cls), name
            optional = {"KMedoids", "CSPA", "HGPA", "MCLA", "BipartiteModularity"}
            assert cls in tested or name in optional, name


@pytest.mark.parametrize(
    "path, change, words",
    [
        ("fitted._theta", "cut", "_theta"),
        ("fitted._family.1", "offset", "_family"),
        ("fitted.labels_", "huge", r"labels_ has the value 1000000000, outside of 0\.\.K-1"),
        ("fitted._counts", "nan", "_counts has the value nan"),
    ],
)
def test_row_79_a_forged_consensus_model_is_refused_by_name(path, change, words, tmp_path):
    """The arrays from which compiled ``predict`` read out of bounds."""
    part = part_state(fitted("NBCE vb"))
    array = dict(arrays_in(part["state"]))[path]
    part["state"] = replaced(part["state"], path, CHANGES[change](array, np.random.default_rng(0)))
    with pytest.raises(ValueError, match=words):
        restore_part(part)
