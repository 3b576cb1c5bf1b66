"""`confidence_` is what `confidence_kind_` says, in every estimator: each kind is computed again by its definition."""

import inspect

import numpy as np
import pytest

import partita
from partita.consensus.base import CONFIDENCE_KINDS
from partita.views.summary import summarize_views

CHAINS = {"n_chains": 2, "n_draws": 8, "burn_in": 6}
TABLES, VIEWS, LABELS, COUNTS, CLASSES = "table", "views", "labels", "counts", "classes"
CASES = [
    ("BCE", {"n_clusters": 3, "n_init": 1}, LABELS),
    ("BayesianTree", {"family": "gaussian"}, TABLES),
    ("BipartiteModularity", {}, LABELS),
    ("CSPA", {"n_clusters": 3}, LABELS),
    ("Consensus", {}, LABELS),
    ("Consensus", {"n_clusters": 5}, LABELS),
    ("CrossCat", CHAINS, VIEWS),
    ("DPGaussian", CHAINS, TABLES),
    ("DPMultinomial", {"inference": "vb"}, COUNTS),
    ("EnsembleClustering", {"n_members": 8}, TABLES),
    ("EvidenceAccumulation", {}, LABELS),
    ("HBGF", {"n_clusters": 3}, LABELS),
    ("HGPA", {"n_clusters": 3}, LABELS),
    ("LACA", {}, LABELS),
    ("LWEA", {"n_clusters": 3}, LABELS),
    ("LatentClass", {"n_clusters": 3, "n_init": 2}, CLASSES),
    ("MCLA", {"n_clusters": 3}, LABELS),
    ("Mixture", CHAINS, TABLES),
    ("Mixture", {"inference": "vb", "n_init": 1}, TABLES),
    ("Mixture", {"inference": "em", "n_clusters": 3, "n_init": 1}, TABLES),
    ("Mixture", {"inference": "cvb", "n_init": 1}, TABLES),
    ("MixtureConsensus", {"n_clusters": 3, "n_init": 1}, LABELS),
    ("NBCE", CHAINS, LABELS),
    ("NBCE", {"inference": "vb", "n_init": 1}, LABELS),
    ("OverlappingViews", {**CHAINS, "partition": "averaged"}, VIEWS),
    ("QMI", {"n_clusters": 3}, LABELS),
    ("RelationalBlocks", CHAINS, CLASSES),
    ("Voting", {"n_clusters": 3}, LABELS),
]
NEEDS = {"BipartiteModularity": "leidenalg", "CSPA": "pymetis", "MCLA": "pymetis", "HGPA": "mtkahypar"}


def data_of(kind, seed):
    rng = np.random.default_rng([seed, 23])
    z = np.arange(42) % 3
    if kind == TABLES:
        return np.array([[0.0, 0.0, 1.0], [3.0, 0.0, 0.0], [1.0, 3.0, 2.0]])[z] + rng.normal(size=(42, 3))
    if kind == VIEWS:
        parts = np.stack([z, np.arange(42) // 21], axis=1)
        return 5.0 * np.repeat(parts, 3, axis=1) + rng.normal(size=(42, 6))
    if kind == LABELS:
        Y = np.where(rng.random((42, 7)) < 0.3, rng.integers(4, size=(42, 7)), z[:, None])
        Y[rng.random(Y.shape) < 0.1] = -1
        Y[:, 0] = z
        return Y
    if kind == COUNTS:
        return rng.poisson(np.where(np.arange(6) // 2 == z[:, None], 7.0, 2.0)).astype(float)
    return rng.binomial(1, np.where(np.arange(9) // 3 == z[:, None], 0.9, 0.2)).astype(float)


# ---- the definitions, pair by pair ---------------------------------------------------------------------------------


def together(draws, labels):
    """Mean share of the draws in which an object has a cluster with another one of its group; alone: is alone."""
    same = (draws[:, :, None] == draws[:, None, :]).mean(axis=0)
    own = labels[:, None] == labels[None, :]
    np.fill_diagonal(own, False)
    alone = np.array([((draws == draws[:, [i]]).sum(axis=1) == 1).mean() for i in range(len(labels))])
    return np.where(own.any(axis=1), (same * own).sum(axis=1) / np.maximum(own.sum(axis=1), 1), alone)


def share_of_members(Y, labels, weights):
    """Share of the members that put an object with another one of its cluster, of those that saw both."""
    found = np.empty(len(Y))
    for i in range(len(Y)):
        others = [j for j in range(len(Y)) if labels[j] == labels[i] and j != i]
        saw = [
            (m, Y[i, m] == Y[j, m]) for j in others for m in range(Y.shape[1]) if min(Y[i, m], Y[j, m]) >= 0
        ]
        if saw:
            found[i] = sum(weights[m] * same for m, same in saw) / sum(weights[m] for m, _ in saw)
        else:
            there = Y[i] >= 0
            is_alone = np.array([(Y[:, m] == Y[i, m]).sum() == 1 for m in range(Y.shape[1])])
            found[i] = weights[there & is_alone].sum() / weights[there].sum()
    return found


def own_entry(memberships, labels):
    return memberships[np.arange(len(labels)), labels]


def of_consensus(model, Y):
    """The mean of the probability of the label, the share of the members, and the mean pair probability."""
    labels, P = model.labels_, model.coclustering()
    own = labels[:, None] == labels[None, :]
    np.fill_diagonal(own, False)
    i, j = np.nonzero(own)
    pairs = np.zeros(own.shape)
    pairs[i, j] = P.pairs(i, j)
    paired = own.any(axis=1)
    within = (pairs.sum(axis=1) / np.maximum(own.sum(axis=1), 1))[paired].mean()
    share = share_of_members(Y, labels, model._column_weights)
    return (own_entry(model.predict_proba(Y), labels) + share + within) / 3.0


def expected(name, model, X):
    """The confidence by its kind, from what the model shows otherwise."""
    kind = model.confidence_kind_
    if name == "EnsembleClustering":
        X, model = model.label_matrix_, model.consensus_
    if name == "Voting":  # its clusters are voted for
        return model.votes_.max(axis=1)
    if name in ("CrossCat", "OverlappingViews"):
        drawn = summarize_views(model.draws_, model._estimate.membership).drawn_labels
        assert drawn
        return np.column_stack(
            [together(np.asarray(d), z) for d, z in zip(drawn, model.view_labels_.T, strict=True)]
        )
    if kind == "membership":
        return own_entry(getattr(model, "memberships_", model.predict_proba(X)), model.labels_)
    if kind == "posterior probability":
        return own_entry(model.predict_proba(X), model.labels_)
    if kind == "co-clustering probability":
        return together(np.asarray(model.trace_.labels), model.labels_)
    if kind == "share of members":
        return share_of_members(X, model.labels_, np.ones(X.shape[1]))
    assert kind == "probability and share of members"
    return of_consensus(model, X)


every_kind = pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[1]}")


def test_every_estimator_that_names_a_kind_is_among_the_cases():
    public = [getattr(partita, name) for name in partita.__all__]
    told = {
        cls.__name__ for cls in public if isinstance(cls, type) and "confidence_kind_" in (cls.__doc__ or "")
    }
    presets = {"DPGaussian", "DPMultinomial", "LatentClass"}  # their attributes are those of `Mixture`
    assert told == {name for name, _, _ in CASES} - presets


@pytest.mark.filterwarnings("ignore")
@every_kind
def test_the_confidence_is_what_its_kind_says(case, global_random_seed):
    name, settings, kind = case
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    X = data_of(kind, global_random_seed)
    cls = getattr(partita, name)
    random = {"random_state": 0} if "random_state" in inspect.signature(cls).parameters else {}
    model = cls(**settings, **random).fit(X)
    assert model.confidence_kind_ in CONFIDENCE_KINDS
    found = getattr(model, "confidence_", None)
    climbs = settings.get("inference") == "vb"  # and `predict_proba` leaves out clusters without rows
    np.testing.assert_allclose(found, expected(name, model, X), atol=1e-3 if climbs else 1e-6)
