"""Every public name is documented, and every documented thing exists."""

import inspect
import re

import numpy as np
import pytest

import partita

NAMES = [name for name in partita.__all__ if not name.startswith("__")]
ESTIMATORS = [name for name in NAMES if isinstance(getattr(partita, name), type)]

# what a model cannot be fitted without
EXTRAS = {
    "CSPA": "pymetis",
    "MCLA": "pymetis",
    "HGPA": "mtkahypar",
    "BipartiteModularity": "leidenalg",
    "KMedoids": "kmedoids",
}
# estimators that have no rule to find the number of clusters
NEEDS_N_CLUSTERS = ("CSPA", "HBGF", "HGPA", "LatentClass", "MCLA", "QMI")


def sections(doc):
    """Text of each numpydoc section."""
    parts = re.split(r"\n([A-Z][A-Za-z ]+)\n-{3,}\n", "\n" + inspect.cleandoc(doc))
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def documented(section):
    """The names that a section lists, several to a line allowed."""
    heads = [line for line in section.splitlines() if line and not line.startswith(" ")]
    names = {name.strip() for head in heads for name in head.split(" : ")[0].split(",")}
    return {name for name in names if name.isidentifier()}


@pytest.mark.parametrize("name", NAMES)
def test_docstring_has_examples(name):
    assert "Examples" in sections(getattr(partita, name).__doc__), name


@pytest.mark.parametrize("name", ESTIMATORS)
def test_parameters_are_documented(name):
    cls = getattr(partita, name)
    assert documented(sections(cls.__doc__)["Parameters"]) == set(inspect.signature(cls).parameters)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_attributes_are_documented(name):
    if name in EXTRAS:
        pytest.importorskip(EXTRAS[name])
    cls = getattr(partita, name)
    listed = set()
    for base in cls.__mro__:  # a preset documents what it adds
        if "Attributes" in sections(base.__doc__ or "") and base.__module__.startswith("partita"):
            listed |= documented(sections(base.__doc__)["Attributes"])
    rng = np.random.default_rng(0)
    required = {"n_clusters": 2} if name in NEEDS_N_CLUSTERS else {}
    model = cls(random_state=0, **required).fit(rng.integers(2, size=(40, 3)))
    computed = {attribute for attribute in dir(cls) if isinstance(getattr(cls, attribute, None), property)}
    present = set(vars(model)) | {attribute for attribute in computed if hasattr(model, attribute)}
    fitted = {attribute for attribute in present if attribute.endswith("_") and attribute[0] != "_"}
    assert fitted <= listed, f"not documented: {sorted(fitted - listed)}"
    # an array has no names; variational engines alone have a bound, and chains alone a trace
    elsewhere = {"feature_names_in_", "lower_bound_", "outlier_probability_", "outlier_share_"}
    if not hasattr(model, "trace_"):
        elsewhere |= {"trace_", "burn_in_", "object_rows_", "n_clusters_posterior_", "diagnostics_"}
        elsewhere.add("n_clusters_prior_")
    assert listed - fitted <= elsewhere, f"not there: {sorted(listed - fitted)}"


@pytest.mark.parametrize("name", ESTIMATORS)
def test_methods_are_documented(name):
    cls = getattr(partita, name)
    for method in dir(cls):
        if not method.startswith("_") and callable(getattr(cls, method)):
            assert getattr(cls, method).__doc__, f"{name}.{method}"
