"""Every equation of `partita.testing.LAWS` on every example of every family, complete and with holes."""

import numpy as np
import pytest

from partita.dispatch import interpreted
from partita.families import FAMILIES, GaussianFull, Multinomial, Ordinal
from partita.families.contract import partly_seen
from partita.testing import LAWS, check_family

APPROXIMATE = {(GaussianFull, "curvature")}  # a Gaussian closure of fourth moments: see test_family_textbook


@pytest.mark.parametrize("name", LAWS)
def test_law(name, any_example, rng):
    lik, data = any_example
    if not LAWS[name].applies(lik, data):
        pytest.skip("the law does not apply to this example")
    if (type(lik), name) in APPROXIMATE:
        pytest.skip("approximate by design")
    with interpreted():
        LAWS[name].check(lik, data, rng)


def test_every_family_meets_every_law_it_can(global_random_seed):
    """No law is skipped by accident: what does not apply is listed here."""
    for name, entry in FAMILIES.items():
        lik, data = entry.examples(np.random.default_rng(global_random_seed))[0]
        absent = {law for law, (_, _, applies) in LAWS.items() if not applies(lik, data)}
        allowed = {"hidden likelihood", "hidden predictive", "hidden statistics"}
        assert absent <= allowed | (
            {"curvature"} if name in ("exponential", "ordinal", "vonmises_fisher") else set()
        )


def test_examples_with_holes_hide_coordinates_of_vectors(any_example, request):
    lik, data = any_example
    holes = request.node.callspec.params["any_example"].endswith("holes")
    assert partly_seen(lik, data) == (holes and isinstance(lik, (GaussianFull, Multinomial, Ordinal)))


def test_check_family_says_what_it_checked(rng):
    lik, data = FAMILIES["poisson"].examples(rng)[0]
    assert {"chain rule", "curvature", "simulate"} <= set(check_family(lik, data, rng))
    assert "mode" not in check_family(lik, data, rng, skip=["mode"])
