import warnings

import numpy as np
import pandas as pd
import pytest

from partita import LatentClass, Mixture
from partita.dispatch import interpreted

NASTY = "<script>alert('x')</script>"
LONG = "b" * 10_000


def fitted(model, X, **options):
    # interpreted: tables this small need no compiled code
    with interpreted(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, **options)


@pytest.fixture(scope="session")
def fit():
    return fitted


@pytest.fixture(scope="session")
def frame():
    rng = np.random.default_rng(0)
    z = np.repeat([0, 1], 20)
    table = pd.DataFrame(
        {
            "height": rng.normal(0, 1, 40) + 6 * z,
            "width": rng.normal(0, 1, 40) - 6 * z,
            "visits": rng.poisson(3 + 9 * z),
            "answer": np.where(z == 1, NASTY, np.where(np.arange(40) % 2, LONG, "plain & simple")),
            NASTY: np.where(rng.random(40) < 0.5, "u", "v"),
            "flag": z == 1,
        }
    )
    table.loc[3, "height"] = np.nan
    table.loc[5, "answer"] = None
    return table


@pytest.fixture(scope="session")
def model(frame):
    kinds = {"visits": "count"}
    return fitted(
        Mixture(
            {"real": "gaussian"},
            inference="em",
            n_clusters=2,
            kinds=kinds,
            n_init=1,
            max_iter=8,
            random_state=0,
        ),
        frame,
    )


@pytest.fixture(scope="session")
def classes(frame):
    return fitted(LatentClass(2, n_init=1, max_iter=5), frame[["answer", "flag"]])


@pytest.fixture(scope="session")
def sampled(frame):
    """The same table by two short chains."""
    settings = {"kinds": {"visits": "count"}, "n_chains": 2, "n_draws": 10, "burn_in": 3, "random_state": 0}
    return fitted(Mixture({"real": "gaussian"}, **settings), frame)
