import importlib.util
import os
import pathlib
import warnings

import numpy as np
import pytest

from partita import Agglomerative, Consensus, EvidenceAccumulation
from partita.report import write_report

NASTY = "<script>document.title = 'taken'</script><img src=x onerror=\"document.title='taken'\">"

_spec = importlib.util.spec_from_file_location("chromium", pathlib.Path(__file__).with_name("chromium.py"))
chromium = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(chromium)


@pytest.fixture(scope="session")
def browser():
    path = chromium.find()
    if path is None or os.name == "nt":
        pytest.skip(
            "no Chromium here: install it, or name one in PARTITA_CHROMIUM, to test the page in a browser"
        )
    try:
        one = chromium.Chromium(path)
    except (OSError, RuntimeError, TimeoutError) as error:
        if os.environ.get("PARTITA_CHROMIUM"):
            raise
        pytest.skip(f"{path} does not start here: {error}")
    yield one
    one.close()


def planted(n=120, n_members=12):
    rng = np.random.default_rng(0)
    z = np.repeat([0, 1, 2], n // 3)
    flips = rng.random((n, n_members)) < 0.15
    Y = np.where(flips, rng.integers(3, size=(n, n_members)), z[:, None])
    return z, Y, rng.normal(size=(n, 2)) + 4 * z[:, None]


@pytest.fixture(scope="session")
def page(tmp_path_factory):
    """A consensus with its members, a table, known groups and names that try to break out."""
    z, Y, table = planted()
    members = {f"{NASTY} {m}" if m == 0 else f"run {m}": column for m, column in enumerate(Y.T)}
    import pandas as pd

    X = pd.DataFrame(members)
    columns = pd.DataFrame(table, columns=[NASTY, "width"])
    names = [NASTY if i == 0 else f"case {i}" for i in range(len(z))]
    truth = [NASTY if k == 0 else f"type {k}" for k in z]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = Consensus(random_state=0).fit(X)
    path = tmp_path_factory.mktemp("page") / "report.html"
    return write_report(model, path, X=X, title=NASTY, truth=truth, table=columns, names=names)


@pytest.fixture(scope="session")
def tree_page(tmp_path_factory):
    _, Y, _ = planted(60)
    path = tmp_path_factory.mktemp("page") / "tree.html"
    return write_report(EvidenceAccumulation().fit(Y), path, X=Y)


@pytest.fixture(scope="session")
def portrait_page(tmp_path_factory):
    """A tree over a table with everything that the box on the data tells."""
    import pandas as pd

    rng = np.random.default_rng(0)
    z = np.arange(120) % 3
    table = pd.DataFrame(
        {
            "height": np.where(rng.random(120) < 0.05, -999.0, rng.normal(100.0 + 20.0 * z, 3.0)),
            "visits": rng.poisson(3 + 9 * z),
            "channel": np.array(["web", NASTY, "shop"])[
                np.where(rng.random(120) < 0.2, rng.integers(3, size=120), z)
            ],
            "same": np.ones(120),
            NASTY: rng.normal(size=120),
        }
    )
    table.loc[3, "visits"] = np.nan
    table.loc[7] = table.loc[8]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = Agglomerative(n_clusters=3).fit(table)
    path = tmp_path_factory.mktemp("page") / "portraits.html"
    return write_report(model, path, X=table)


@pytest.fixture(scope="session")
def grain_page(tmp_path_factory):
    """A consensus with several levels and a table; the page and the model."""
    rng = np.random.default_rng(0)
    z = np.arange(150) % 6
    Y = np.where(rng.random((150, 10)) < 0.3, rng.integers(6, size=(150, 10)), z[:, None])
    table = rng.normal(size=(150, 3)) + 3 * np.stack([z, z % 3, z % 2], axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = Consensus(random_state=0).fit(Y)
    path = tmp_path_factory.mktemp("page") / "grain.html"
    return write_report(model, path, X=Y, table=table, truth=z), model
