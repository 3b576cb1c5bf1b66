"""The option for the seeds of the tests, and the examples in docstrings that need an extra that is not installed."""

from importlib.util import find_spec

NEEDS_GRAPH = [
    "consensus/graphs/cspa.py",
    "consensus/graphs/hgpa.py",
    "consensus/graphs/mcla.py",
    "consensus/graphs/partitioner.py",
]


def pytest_addoption(parser):
    """Add the option that names the seeds of the tests."""
    # here and not in tests/: pytest asks for options before it has seen the folders of the tests
    parser.addoption(
        "--tests-seed",
        metavar="SEEDS",
        help="value of the fixture global_random_seed: '7', '3,7', '0-9' or 'all' (0 to 99); "
        "default: the environment variable PARTITA_TESTS_SEED, else 42",
    )


collect_ignore = []
if find_spec("leidenalg") is None:
    collect_ignore += ["src/partita/consensus/graphs/bipartite_modularity.py"]
if find_spec("pymetis") is None or find_spec("mtkahypar") is None:
    collect_ignore += [f"src/partita/{module}" for module in NEEDS_GRAPH]
if find_spec("anndata") is None:
    collect_ignore += ["src/partita/estimator/annotated.py"]

if find_spec("hypothesis") is not None:
    from hypothesis import settings

    settings.register_profile("partita", deadline=None)  # a busy machine is no fault
    settings.load_profile("partita")
