import pytest

from partita import LatentClass, Mixture

INFERENCES = {
    "em": {"inference": "em", "n_clusters": 2},
    "vb": {"inference": "vb", "max_clusters": 6},
    "cvb": {"inference": "cvb", "max_clusters": 3, "tol": 1e-3},  # slow: a sweep is one object at a time
}


@pytest.fixture(params=list(INFERENCES))
def mixture(request, global_random_seed):
    """A maker of mixtures for two groups, once for each inference."""

    def make(**parameters):
        return Mixture(
            **({"n_init": 2, "random_state": global_random_seed} | INFERENCES[request.param] | parameters)
        )

    make.inference = request.param
    return make


@pytest.fixture(params=[*INFERENCES, "latent_class"])
def categorical(request, global_random_seed):
    """A maker of models for categorical tables, once for each estimator and inference."""

    def make(**parameters):
        if request.param == "latent_class":
            return LatentClass(2, n_init=2, random_state=global_random_seed, **parameters)
        defaults = {"kinds": "categorical", "n_clusters": 2, "n_init": 2, "random_state": global_random_seed}
        return Mixture(**(defaults | INFERENCES[request.param] | parameters))

    make.inference = request.param
    return make
