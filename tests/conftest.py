"""Fixtures that several folders share: the seed of the run, random data, and what is said about warnings and labels."""

import os
import warnings
from contextlib import contextmanager, nullcontext

import numpy as np
import pytest

from partita.dispatch import interpreted
from partita.estimator import DataWarning

SEED_VARIABLE = "PARTITA_TESTS_SEED"
DEFAULT_SEED = 42
ALL_SEEDS = range(100)


def parse_seeds(text):
    """The seeds in "7", "3,7", "0-9" or "all" (0 to 99)."""
    if text == "all":
        return list(ALL_SEEDS)
    try:
        ends = [[int(end) for end in part.split("-")] for part in text.split(",")]
        seeds = sorted({seed for end in ends for seed in range(end[0], end[-1] + 1)})
    except ValueError:
        seeds = []
    if not seeds or seeds[0] < 0:
        raise pytest.UsageError(f"{SEED_VARIABLE} is {text!r}: use a seed, '3,7', '0-9' or 'all'")
    return seeds


def chosen_seeds(config):
    """The seeds of this run: the option, else the environment variable, else one fixed seed."""
    text = config.getoption("--tests-seed", None) or os.environ.get(SEED_VARIABLE)
    return parse_seeds(text) if text else [DEFAULT_SEED]


def pytest_report_header(config):
    return f"global_random_seed: {', '.join(map(str, chosen_seeds(config)))}"


def pytest_generate_tests(metafunc):
    if "global_random_seed" in metafunc.fixturenames:
        metafunc.parametrize("global_random_seed", chosen_seeds(metafunc.config), scope="session")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """A file of tests that cannot be imported is an error.

    The option that skips modules of the package whose optional dependencies are missing holds for test files too, and
    all their tests would be left out without a word.
    """
    option = collector.config.option
    ignored, option.doctest_ignore_import_errors = option.doctest_ignore_import_errors, False
    try:
        return (yield)
    finally:
        option.doctest_ignore_import_errors = ignored


@pytest.fixture
def rng(global_random_seed):
    """A generator for tests whose assertion holds for any data."""
    return np.random.default_rng(global_random_seed)


@pytest.fixture
def two_groups(global_random_seed):
    """Two Gaussian groups that no method can confuse (12 standard deviations apart), of 44 and 36 rows."""
    rng = np.random.default_rng([global_random_seed, 1])
    z = np.repeat([0, 1], [44, 36])
    return rng.normal(12.0 * z[:, None] - 6.0, 1.0, (80, 2)), z


@pytest.fixture
def two_answers(global_random_seed):
    """Two latent classes over six items: 95% against 5%; 44 and 36 rows, as codes 0 and 1."""
    rng = np.random.default_rng([global_random_seed, 2])
    z = np.repeat([0, 1], [44, 36])
    return np.where(rng.random((80, 6)) < 0.95, z[:, None], 1 - z[:, None]), z


@pytest.fixture
def uncompiled():
    """The kernels as plain Python: faster than compiling them where the data are tiny."""
    with interpreted():
        yield


@pytest.fixture
def uncompiled_unless_slow(request):
    """As ``uncompiled``, but slow tests have data for which compiling pays."""
    with nullcontext() if "slow" in request.keywords else interpreted():
        yield


@pytest.fixture
def quiet():
    """A block in which any warning is an error."""

    @contextmanager
    def silence():
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            yield

    return silence


@pytest.fixture
def one_warning():
    """A block that gives exactly one warning, a DataWarning that contains the text."""

    @contextmanager
    def expect(match, category=DataWarning):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        assert [w.category for w in caught] == [category], [str(w.message) for w in caught]
        assert match in str(caught[0].message)
        assert "/partita/" not in caught[0].filename  # it points at the user's line

    return expect


class Clock:
    """A clock that moves when it is told to, and by ``tick`` seconds each time it is read."""

    def __init__(self):
        self.seconds = 0.0
        self.tick = 0.0

    def read(self):
        self.seconds += self.tick
        return self.seconds

    def advance(self, seconds):
        self.seconds += seconds


@pytest.fixture
def clock(monkeypatch):
    """A clock in the place of the real one: time limits do not depend on how fast the machine is."""
    clock = Clock()
    monkeypatch.setattr("time.perf_counter", clock.read)
    return clock


@pytest.fixture
def same_partition():
    """A check that two labelings are equal up to the names of the clusters."""

    def check(a, b):
        a, b = np.asarray(a).tolist(), np.asarray(b).tolist()
        assert len(set(zip(a, b, strict=True))) == len(set(a)) == len(set(b)), (a, b)

    return check
