"""Every law runs on every registered example of every prior that has what the law speaks of."""

import pytest

from partita.dispatch import lacks
from partita.partitions import PRIORS, examples, log_eppf, log_labelled


def _examples_with(*generics):
    return [
        pytest.param(prior, id=f"{name}-{i}")
        for name, factory in PRIORS.items()
        if not lacks(type(factory()), *generics)
        for i, prior in enumerate(examples(type(factory())))
    ]


def pytest_generate_tests(metafunc):
    for fixture, generics in {
        "prior": (),
        "exchangeable": (log_eppf,),
        "labelled": (log_labelled,),
        "both": (log_eppf, log_labelled),
    }.items():
        if fixture in metafunc.fixturenames:
            metafunc.parametrize(fixture, _examples_with(*generics))
