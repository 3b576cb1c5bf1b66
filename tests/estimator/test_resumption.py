"""The folder of ``resume=``: it belongs to one fit, and what differs is named."""

import contextlib
import json
import os
import warnings

import numpy as np
import pytest

import partita
from partita import Mixture
from partita.dispatch import interpreted
from partita.estimator.resumption import FILE
from partita.execution import open_chunks
from partita.execution.digests import CHUNK_BYTES, digest
from partita.fitting import chains

N = 24


def points(seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(N, 3)) + 8.0 * (np.arange(N) % 2)[:, None]


def labelings(seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    truth = np.arange(N) % 3
    return np.column_stack([np.where(rng.random(N) < 0.2, rng.integers(3, size=N), truth) for _ in range(3)])


def changed(X: np.ndarray) -> np.ndarray:
    """The same table with other values in ten rows."""
    out = X.copy()
    out[:10] = out[:10][::-1]
    return out


SHORT = {"n_chains": 1, "n_draws": 3, "burn_in": 2, "random_state": 0}
CLIMB = {"n_init": 1, "max_iter": 3, "random_state": 0}
# class, parameters, table, another value of one parameter
FITS = {
    "gibbs": ("Mixture", {"inference": "gibbs", **SHORT}, points, {"concentration": 7.0}),
    "subclusters": ("Mixture", {"inference": "subclusters", **SHORT}, points, {"concentration": 7.0}),
    "em": ("Mixture", {"inference": "em", "n_clusters": 2, **CLIMB}, points, {"n_clusters": 3}),
    "vb": ("Mixture", {"inference": "vb", **CLIMB}, points, {"concentration": 7.0}),
    "cvb": ("Mixture", {"inference": "cvb", **CLIMB}, points, {"concentration": 7.0}),
    "LatentClass": ("LatentClass", {"n_clusters": 2, **CLIMB}, labelings, {"n_clusters": 3}),
    "DPGaussian": ("DPGaussian", {**SHORT}, points, {"concentration": 7.0}),
    "DPMultinomial": ("DPMultinomial", {**SHORT}, labelings, {"concentration": 7.0}),
    "NBCE": ("NBCE", {"power": 1.0, **CLIMB}, labelings, {"concentration": 7.0}),
    "MixtureConsensus": ("MixtureConsensus", {"n_clusters": 3, **CLIMB}, labelings, {"n_clusters": 2}),
    "BCE": ("BCE", {"n_clusters": 3, **CLIMB}, labelings, {"smoothing": 3.0}),
    "Consensus": ("Consensus", {"random_state": 0}, labelings, {"n_clusters": 2}),
    "LACA": ("LACA", {"random_state": 0}, labelings, {"min_clusters": 3}),
    "QMI": ("QMI", {"n_clusters": 3, **CLIMB}, labelings, {"n_clusters": 2}),
    "Voting": ("Voting", {"n_clusters": 3, "max_iter": 3, "random_state": 0}, labelings, {"n_clusters": 2}),
    "EnsembleClustering": (
        "EnsembleClustering",
        {"n_members": 4, "n_clusters": 2, "random_state": 0},
        points,
        {"n_members": 5},
    ),
    "CrossCat": ("CrossCat", {**SHORT}, points, {"view_concentration": 7.0}),
    "OverlappingViews": ("OverlappingViews", {**SHORT, "n_init": 1}, points, {"concentration": 7.0}),
    "DecorrelatedKMeans": ("DecorrelatedKMeans", {"n_clusters": 2, **CLIMB}, points, {"penalty": 9.0}),
    "OrthogonalViews": (
        "OrthogonalViews",
        {"n_clusters": 2, "n_init": 1, "random_state": 0},
        points,
        {"n_clusters": 3},
    ),
    "AffinityPropagation": (
        "AffinityPropagation",
        {"max_iter": 5, "random_state": 0},
        points,
        {"damping": 0.9},
    ),
    "RelationalBlocks": ("RelationalBlocks", {**SHORT}, labelings, {"concentration": 7.0}),
    "BayesianTree": ("BayesianTree", {"max_iter": 1, "random_state": 0}, points, {"concentration": 7.0}),
    "BisectingClusters": (
        "BisectingClusters",
        {"n_clusters": 2, "random_state": 0},
        points,
        {"n_clusters": 3},
    ),
    "Diana": ("Diana", {"n_clusters": 2, "random_state": 0}, points, {"n_clusters": 3}),
    "KMedoids": ("KMedoids", {"n_clusters": 2, "random_state": 0}, points, {"n_clusters": 3}),
}
WITH_WEIGHTS = {
    "gibbs",
    "subclusters",
    "em",
    "vb",
    "cvb",
    "NBCE",
    "MixtureConsensus",
    "Voting",
    "AffinityPropagation",
}


def fit(name, X, folder, **more):
    cls, options, _, _ = FITS[name]
    weights = {"sample_weight": more.pop("sample_weight")} if "sample_weight" in more else {}
    with warnings.catch_warnings(), interpreted():
        warnings.simplefilter("ignore")
        return getattr(partita, cls)(**{**options, **more}, resume=folder).fit(X, **weights)


class Killed(Exception):
    pass


def begin(name, folder):
    """A fit that is killed in its first iteration, if it tells of one."""

    def kill(progress):
        raise Killed

    with contextlib.suppress(Killed):
        fit(name, FITS[name][2](), folder, callback=kill)


@pytest.fixture(params=FITS)
def begun(request, tmp_path):
    """The name of a fit, and its folder after a kill."""
    if request.param == "KMedoids":
        pytest.importorskip("kmedoids")
    begin(request.param, tmp_path)
    return request.param, tmp_path


def test_every_estimator_with_resume_is_in_the_table():
    named = {cls for cls, *_ in FITS.values()}
    for name in partita.__all__:
        cls = getattr(partita, name)
        if isinstance(cls, type) and "resume" in getattr(cls, "_parameter_constraints", {}):
            assert name in named


def test_row_78_a_folder_of_other_data(begun):
    name, folder = begun
    _, _, table, other = FITS[name]
    X = table()
    with pytest.raises(
        ValueError, match=r"belongs to another fit: the data differ\. Give resume= a folder of its own"
    ):
        fit(name, changed(X), folder)
    ((parameter, value),) = other.items()
    words = (
        rf"belongs to another fit: the (prior|model parameters) differs?: {parameter}={value!r} instead of "
    )
    with pytest.raises(ValueError, match=words):
        fit(name, X, folder, **other)
    with pytest.raises(ValueError, match="the model parameters differ: random_state=1 instead of 0"):
        fit(name, X, folder, random_state=1)
    if name in WITH_WEIGHTS:
        with pytest.raises(ValueError, match="belongs to another fit: the weights differ"):
            fit(name, X, folder, sample_weight=1.0 + np.arange(N) % 2)
    begin(name, folder)  # its own fit is welcome


def test_row_78_a_table_that_is_not_in_memory(tmp_path):
    X = points()
    fit("em", open_chunks(X, rows=7), tmp_path)
    fit("em", open_chunks(X, rows=20), tmp_path)  # the digest does not depend on the chunks
    with pytest.raises(ValueError, match="belongs to another fit: the data differ"):
        fit("em", open_chunks(changed(X), rows=7), tmp_path)


def test_other_levels_are_other_data(tmp_path):
    """Equal codes with other meanings."""
    X = labelings().astype(str)
    fit("LatentClass", X, tmp_path)
    with pytest.raises(ValueError, match="the data differ"):
        fit("LatentClass", np.char.add("level ", X), tmp_path)


def test_row_78_files_of_killed_writers_are_removed(tmp_path):
    unfinished = [
        ".chain0.npz.0123abcd.npz",
        ".fit.json.89abcdef.json",
        "chain0.npz.part",
        "pass000001.part7",
    ]
    kept = ["notes.txt", ".hidden", "model.partita", "table.csv.part", ".cache.0123abcd", "archive.part1"]
    for name in (*unfinished, *kept):
        (tmp_path / name).write_text("half a file")
    begin("em", tmp_path)
    assert not set(unfinished) & set(os.listdir(tmp_path))
    assert set(kept) <= set(os.listdir(tmp_path))


def test_checkpoints_without_a_record_are_refused(tmp_path):
    fit("em", points(), tmp_path)
    (tmp_path / FILE).unlink()
    with pytest.raises(ValueError, match=f"it has checkpoints but no {FILE}"):
        fit("em", points(), tmp_path)


def test_a_damaged_record_is_named(tmp_path):
    for text in (
        "{",
        "[]",
        "{}",
        json.dumps(dict.fromkeys(("version", "estimator", "data", "weights", "parameters"))),
    ):
        (tmp_path / FILE).write_text(text)
        with pytest.raises(ValueError, match=f"{FILE} cannot be read"):
            fit("em", points(), tmp_path)


def test_a_damaged_checkpoint_is_named(tmp_path):
    """Files that were exchanged or changed: an error with the path and the remedy, whatever reading them raises."""
    fit("gibbs", points(), tmp_path)
    state, draw = tmp_path / "chain0.npz", tmp_path / "chain0_draw000000.npz"
    whole = {path: path.read_bytes() for path in (state, draw)}
    newer = bytearray(whole[draw])
    newer[newer.rfind(b"PK\x01\x02") + 6] = 172  # the archive asks for a version of zip that does not exist
    damages = [(state, whole[draw]), (draw, whole[state]), (draw, bytes(newer)), (state, b""), (draw, b"PK")]
    for path, content in damages:
        path.write_bytes(content)
        with pytest.raises(ValueError, match=rf"{path.name} (cannot be read|does not hold|belongs)"):
            fit("gibbs", points(), tmp_path)
        path.write_bytes(whole[path])
    fit("gibbs", points(), tmp_path)


def test_what_a_default_stands_for_counts(tmp_path, monkeypatch):
    """Checkpoints of chains that held another Dirichlet parameter under the same name of a prior."""
    begin("gibbs", tmp_path)
    monkeypatch.setattr(chains, "AUTO_GAMMA", 1.0)
    said = r"the prior differs: prior=MixtureOfFinite\(gamma=1\.0, .* instead of MixtureOfFinite\(gamma=3\.0"
    with pytest.raises(ValueError, match=said):
        fit("gibbs", points(), tmp_path)
    monkeypatch.undo()
    fit("gibbs", points(), tmp_path)


def test_the_length_of_a_fit_is_not_its_identity(tmp_path):
    fit("em", points(), tmp_path)
    longer, whole = (fit("em", points(), folder, max_iter=50) for folder in (tmp_path, None))
    assert np.array_equal(longer.labels_, whole.labels_)


# ---- digests -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "one, other",
    [
        (np.zeros(3), np.zeros((3, 1))),
        (np.zeros(3), np.zeros(3, np.float32)),
        (np.array([0.0]), np.array([-0.0])),
        (np.array(["a", "b"]), np.array(["a", "c"])),
        (np.array(["a", None], dtype=object), np.array(["a", "None"], dtype=object)),
        ((1, (2,)), ((1, 2),)),
        ({"a": 1}, {"a": 2}),
        (range(3), range(4)),
        (np.random.default_rng(0), np.random.default_rng(1)),
        (np.random.RandomState(0), np.random.RandomState(1)),
        (Mixture(n_clusters=2), Mixture(n_clusters=3)),
        (len, repr),
    ],
)
def test_digests_differ(one, other):
    assert digest(one) == digest(one) and digest(one) != digest(other)


def test_a_digest_does_not_depend_on_the_layout_of_an_array(global_random_seed):
    A = np.random.default_rng(global_random_seed).normal(size=(700, 9))
    for same in (np.asfortranarray(A), np.repeat(A, 2, axis=1)[:, ::2], A[::-1].copy()[::-1]):
        assert digest(same) == digest(A)
    assert digest(np.broadcast_to(np.ones(1), 5)) == digest(np.ones(5))


def test_every_byte_of_a_large_array_counts():
    large = np.zeros(CHUNK_BYTES // 8 + 3)
    before = digest(large)
    for place in (0, CHUNK_BYTES // 8 - 1, CHUNK_BYTES // 8, -1):
        large[place] = 1.0
        assert digest(large) != before
        large[place] = 0.0
    assert digest(large) == before
