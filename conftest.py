"""Which modules' examples are left out: those that need an extra that is not installed."""

from importlib.util import find_spec

NEEDS_GRAPH = [
    "consensus/graphs/cspa.py",
    "consensus/graphs/hgpa.py",
    "consensus/graphs/mcla.py",
    "consensus/graphs/partitioner.py",
]

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
