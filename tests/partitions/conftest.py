"""Every law runs on every registered example of every prior that has the functions in the law."""

import pytest

from partita.dispatch import lacks
from partita.partitions import PRIORS, examples, log_eppf, log_labeled


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
        "labeled": (log_labeled,),
        "both": (log_eppf, log_labeled),
    }.items():
        if fixture in metafunc.fixturenames:
            metafunc.parametrize(fixture, _examples_with(*generics))
