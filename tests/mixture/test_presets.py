"""Presets store their parameters and nothing else; what they fix of Mixture is a class attribute."""

import inspect

import numpy as np
import pytest
from sklearn.base import clone

from partita import DPGaussian, DPMultinomial, LatentClass, Mixture
from partita.estimator import RUNNING_CONSTRAINTS
from partita.fitting.contract import Settings

PRESETS = [DPGaussian, DPMultinomial, LatentClass]


@pytest.mark.parametrize("preset", PRESETS)
def test_only_parameters_are_stored(preset):
    model = preset()
    assert set(vars(model)) == set(model.get_params(deep=False))
    assert set(RUNNING_CONSTRAINTS) <= set(model.get_params(deep=False))
    assert set(preset._parameter_constraints) == set(model.get_params(deep=False))


@pytest.mark.parametrize("preset", PRESETS)
def test_what_a_preset_does_not_have_is_at_the_default_of_mixture(preset):
    defaults = {name: p.default for name, p in inspect.signature(Mixture).parameters.items()}
    settings = Settings.of(preset())
    own = set(preset().get_params(deep=False))
    fixed = {name for name in Settings._fields if hasattr(preset, name)}
    for name in set(Settings._fields) - own - fixed:
        assert getattr(settings, name) == defaults[name], name


def test_the_settings_have_the_defaults_of_mixture():
    defaults = {name: p.default for name, p in inspect.signature(Mixture).parameters.items()}
    assert Settings()._asdict() == {name: defaults[name] for name in Settings._fields}


def test_the_family_follows_the_covariance():
    model = DPGaussian(covariance="full")
    assert model.family == {"real": "gaussian_full"}
    assert clone(model).set_params(covariance="diagonal").family == {"real": "gaussian"}
    with pytest.raises(AttributeError):
        model.family = "auto"


@pytest.mark.filterwarnings("ignore:.*Do not trust")
@pytest.mark.parametrize(
    "inference, kind", [("gibbs", "co-clustering probability"), ("vb", "posterior probability")]
)
def test_confidence_says_what_it_is(inference, kind):
    X = np.random.default_rng(0).normal(size=(20, 1))
    model = DPGaussian(inference=inference, n_chains=1, n_draws=10, burn_in=5, random_state=0).fit(X)
    assert model.confidence_kind_ == kind
