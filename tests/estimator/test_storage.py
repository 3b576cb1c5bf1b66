"""Models on disk."""

import io
import json
import os
import pickle
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp

import partita
from partita import LatentClass, Mixture, load
from partita.dispatch import interpreted
from partita.estimator import ModelFileError, storage
from partita.partitions import specify

RNG = np.random.default_rng(0)
Z = np.repeat([0, 1], 20)
REAL = RNG.normal(8.0 * Z[:, None], 1.0, (40, 2))
HOLES = np.where(RNG.random(REAL.shape) < 0.1, np.nan, REAL)
CODES = np.where(RNG.random((40, 4)) < 0.9, Z[:, None], 1 - Z[:, None])
COUNTS = RNG.poisson(2.0 + 10.0 * Z[:, None], (40, 3))
MIXED = np.column_stack(
    [HOLES.astype(object), np.array(["no", "yes"], dtype=object)[CODES], COUNTS.astype(object)]
)
EM = {"inference": "em", "n_clusters": 2}
FAST = {"n_init": 1, "random_state": 0}

CHAINS = {"n_chains": 2, "n_draws": 2, "burn_in": 1, "random_state": 0}
VB = {"inference": "vb", "max_clusters": 5, "max_iter": 8, **FAST}

CASES = {
    "em-real": (Mixture(**EM, **FAST), HOLES),
    "cvb-real": (Mixture(inference="cvb", max_clusters=4, max_iter=8, **FAST), REAL),
    "vb-finite": (Mixture(prior="finite", **VB), REAL),
    "latent-class": (LatentClass(2, **FAST), CODES),
    "gibbs-finite": (Mixture(prior="finite", max_clusters=5, **CHAINS), REAL),
}
for kind, X in (
    ("auto", HOLES),
    ("gaussian", HOLES),
    ("poisson", COUNTS),
    ("bernoulli", CODES),
    (("categorical", {"alpha": 1.0}), CODES),
    ("multinomial", sp.csr_array(COUNTS)),
    ("exponential", np.exp(REAL / 4)),
):
    name = kind if isinstance(kind, str) else kind[0]
    CASES[f"vb-{name}"] = (Mixture(family=kind, **VB), X)
    CASES[f"gibbs-{name}"] = (Mixture(family=kind, **CHAINS), X)
CASES["vb-mixed"] = (Mixture(**VB), MIXED)
CASES["gibbs-mixed"] = (Mixture(**CHAINS), MIXED)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.npz"


@pytest.fixture
def saved(path):
    Mixture(**EM, **FAST).fit(REAL).save(path)
    return path


def equal(a, b):
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, np.ndarray) and a.dtype.kind == "f":
        return np.array_equal(a, b, equal_nan=True)
    if isinstance(a, np.ndarray):
        return np.array_equal(a, b) and a.dtype == b.dtype
    if isinstance(a, float) and a != a:
        return b != b
    return repr(a) == repr(b) if type(a).__module__.startswith("partita") else a == b


@pytest.mark.parametrize("case", CASES)
@pytest.mark.filterwarnings("ignore::UserWarning")  # chains this short warn that they are not diagnosed
def test_round_trip(case, path):
    """This tests the file, not the engines, so nothing is compiled."""
    with interpreted():
        check_round_trip(*CASES[case], path)


def check_round_trip(model, X, path):
    model.fit(X).save(path)
    again = load(path)
    assert type(again) is type(model) and equal(again.get_params(), model.get_params())
    assert np.array_equal(again.predict(X), model.predict(X))
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    assert np.array_equal(again.score_samples(X), model.score_samples(X))
    assert np.array_equal(again.sample(5)[1], model.sample(5)[1])
    assert set(vars(again)) == set(vars(model))
    for name, value in vars(model).items():
        if name.endswith("_") and name != "schema_":
            assert equal(value, getattr(again, name)), name
    assert again.schema_.to_dict() == model.schema_.to_dict()
    again.fit(X)
    assert np.array_equal(again.labels_, model.labels_)


def test_feature_names_and_levels_come_back(path):
    import pandas as pd

    frame = pd.DataFrame({"sex": np.array(["f", "m"])[Z], "age": REAL[:, 0]})
    model = Mixture(**VB).fit(frame)
    model.save(path)
    again = load(path)
    assert again.feature_names_in_.tolist() == ["sex", "age"]
    assert again.profiles_["sex"]["levels"].tolist() == ["f", "m"]
    with pytest.raises(ValueError, match="feature names"):
        again.predict(frame[["age"]])


@pytest.mark.parametrize(
    "parameters",
    [
        {"init": np.repeat([0, 1], 20)},
        {"init": Z.tolist()},
        {"kinds": {0: "real", "x1": "real"}},
        {"kinds": ("real", "real")},
        {"family": {"real": ("gaussian", {"k": 0.2})}},
        {"family": ("gaussian_full", {"kappa": np.float64(0.2)})},
        {"prior": specify("finite", n_components=3)},
        {"prior": specify("dirichlet_process", concentration=2.0)},
        {"tol": 0.0, "max_iter": 7, "n_clusters": np.int64(2)},
    ],
    ids=lambda p: "-".join(p),
)
@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_parameters_come_back(path, parameters):
    model = Mixture(**{**VB, **parameters})
    with interpreted():
        model.fit(REAL).save(path)
        again = load(path)
        assert equal(again.get_params(), model.get_params())
        assert np.array_equal(again.fit(REAL).labels_, model.labels_)


def test_what_no_file_can_hold_becomes_none(path):
    model = Mixture(
        **(EM | FAST | {"callback": lambda progress: None, "random_state": np.random.default_rng(0)})
    )
    model.fit(REAL).save(path)
    assert load(path).callback is None and load(path).random_state is None


def test_failed_save_leaves_the_old_file(saved, monkeypatch):
    before, names = saved.read_bytes(), sorted(saved.parent.iterdir())

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    model = Mixture(**EM, **FAST).fit(REAL * 2)
    for place, name in ((np, "save"), (os, "replace"), (storage.json, "dumps")):
        with monkeypatch.context() as patch:
            patch.setattr(place, name, full)
            with pytest.raises(OSError, match="No space left"):
                model.save(saved)
        assert saved.read_bytes() == before and sorted(saved.parent.iterdir()) == names
    model.save(saved)
    assert saved.read_bytes() != before


def test_interrupted_save_leaves_the_old_file(saved, monkeypatch):
    before = saved.read_bytes()

    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(storage.np, "save", interrupt)
    with pytest.raises(KeyboardInterrupt):
        load(saved).save(saved)
    assert saved.read_bytes() == before and [p.name for p in saved.parent.iterdir()] == ["model.npz"]


def test_missing_file_and_folder(tmp_path, saved):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none.npz")
    with pytest.raises(FileNotFoundError):
        load(saved).save(tmp_path / "no" / "folder" / "model.npz")


def test_truncated_at_any_place(saved, path):
    whole = saved.read_bytes()
    for length in [0, 1, 4, 100, *np.linspace(101, len(whole) - 1, 40).astype(int)]:
        path.write_bytes(whole[:length])
        with pytest.raises(ModelFileError, match="copy it again, or fit and save"):
            load(path)


def test_a_changed_byte_anywhere_is_refused_or_harmless(saved):
    """Bytes of the metadata of the archive may not matter; only ModelFileError may be raised."""
    whole = saved.read_bytes()
    expected = load(saved).predict(REAL)
    refused = 0
    rng = np.random.default_rng(0)
    for position in rng.choice(len(whole), size=150, replace=False):
        altered = bytearray(whole)
        altered[position] ^= 1 << int(rng.integers(8))
        saved.write_bytes(bytes(altered))
        try:
            assert np.array_equal(load(saved).predict(REAL), expected)
        except ModelFileError:
            refused += 1
    assert refused > 75


def rewrite(path, change=None, extra=None, replace=None):
    """Write the archive again with an altered document or other members."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    document = json.loads(members["model.json"])
    if change is not None:
        change(document)
    members["model.json"] = json.dumps(document).encode()
    members |= (extra or {}) | (replace or {})
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def npy(array, allow_pickle=False):
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=allow_pickle)
    return buffer.getvalue()


def edit(*keys, value):
    def change(document):
        for key in keys[:-1]:
            document = document[key]
        document[keys[-1]] = value

    return change


@pytest.mark.parametrize(
    "keys, value",
    [
        (("class",), "partita.nowhere.Mixture"),
        (("class",), "os.system"),
        (("class",), "partita.estimator.storage.load"),
        (("class",), "partita.estimator.base.TableEstimator"),
        (("class",), None),
        (("params",), {"n_cluster": 3}),
        (("params",), []),
        (("state",), {}),
        (("state", "mixture", "schema"), {}),
        (("state", "mixture", "schema", "columns", 0, "kind"), "categorical"),
        (("state", "mixture", "schema", "columns"), []),
        (("state", "mixture", "blocks"), []),
        (("state", "mixture", "blocks", 0, "family"), "categorical"),
        (("state", "mixture", "blocks", 0, "hyper"), [1.0]),
        (("state", "mixture", "blocks", 0, "columns"), ["x0"]),
        (("state", "mixture", "blocks", 0, "columns"), ["x0", "x7"]),
        (("state", "mixture", "prior"), ["os.system", ["true"]]),
        (("state", "mixture", "log_weights"), [0.0]),
        (("state", "mixture", "parameters", "thetas"), []),
        (("state", "mixture", "statistics"), []),
        (("arrays",), []),
        (("format",), "1"),
        (("format",), None),
    ],
    ids=lambda part: ".".join(map(str, part)) if isinstance(part, tuple) else "",
)
def test_tampered_document(saved, keys, value):
    rewrite(saved, edit(*keys, value=value))
    with pytest.raises(ModelFileError, match="fit and save"):
        load(saved)


@pytest.mark.parametrize(
    "document", [b"", b"[]", b"3", b"{", b"\xff\xfe", b"[" * 100_000, b'{"format": 1}'], ids=range(7)
)
def test_invalid_document(saved, document):
    rewrite(saved, replace={"model.json": document})
    with pytest.raises(ModelFileError, match="fit and save"):
        load(saved)


def test_newer_format(saved):
    rewrite(saved, lambda d: d.update(format=storage.FORMAT + 1, partita="9.9"))
    with pytest.raises(ModelFileError, match=r"written by partita 9\.9.*newer.*upgrade partita"):
        load(saved)


def test_another_version_warns(saved):
    rewrite(saved, edit("partita", value="0.0.1"))
    with pytest.warns(UserWarning, match=r"written by partita 0\.0\.1, this is") as caught:
        load(saved)
    assert len(caught) == 1 and caught[0].filename == __file__


class Bomb:
    def __reduce__(self):
        return exec, ("import partita; partita.exploded = True",)


def test_pickles_are_never_read(saved):
    array = np.empty(1, dtype=object)
    array[0] = Bomb()
    with zipfile.ZipFile(saved) as archive:
        name = next(name for name in archive.namelist() if name.endswith("thetas.0.npy"))
    document_name = name.removesuffix(".npy")
    for declared in (["float64", [1]], ["object", [1]], ["|O", [1]]):
        rewrite(
            saved,
            edit("arrays", document_name, value=declared),
            replace={name: npy(array, allow_pickle=True)},
        )
        with pytest.raises(ModelFileError):
            load(saved)
    saved.write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(ModelFileError, match="not a complete partita model"):
        load(saved)
    assert not hasattr(partita, "exploded")


def test_declared_sizes(saved):
    with zipfile.ZipFile(saved) as archive:
        name = next(name for name in archive.namelist() if name.endswith("thetas.0.npy"))
        honest = archive.read(name)
    key = name.removesuffix(".npy")
    for shape in ([10**15], [10**9, 10**9], [-1], [2**40]):  # more than there is
        rewrite(saved, edit("arrays", key, value=["float64", shape]))
        with pytest.raises(ModelFileError, match=r"should have|is float64"):
            load(saved)
    # the header of the array itself claims a terabyte
    header = np.lib.format.header_data_from_array_1_0(np.zeros((1, 1)))
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, header | {"shape": (10**6, 10**6)})
    body = buffer.getvalue() + honest[128:]
    rewrite(
        saved,
        edit("arrays", key, value=["float64", list(np.load(io.BytesIO(honest)).shape)]),
        replace={name: body},
    )
    with pytest.raises(ModelFileError, match="declared"):
        load(saved)


def test_only_models_of_the_package_are_saved(path):
    class Mine(Mixture):
        pass

    with pytest.raises(ValueError, match="not a model of partita"):
        Mine(**EM, **FAST).fit(REAL).save(path)
    assert not path.exists()


def test_row_81_a_file_that_expands_is_refused_before_it_is_read(saved, path):
    """Zeros compress a thousandfold: the sizes in the directory of the archive count, not the size of the file."""
    with zipfile.ZipFile(saved) as archive:
        document = json.loads(archive.read("model.json"))
        entries = {name: archive.read(name) for name in archive.namelist()}
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(2_000_000))
    document["arrays"]["bomb"] = ["float64", [2_000_000]]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content if name != "model.json" else json.dumps(document))
        archive.writestr("bomb.npy", buffer.getvalue())
    assert load(path, max_bytes=1_000_000).n_clusters_ == 2  # nothing refers to the array, so it is not read
    document["state"]["attributes"]["labels_"] = {"__array__": "bomb"}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content if name != "model.json" else json.dumps(document))
        archive.writestr("bomb.npy", buffer.getvalue())
    assert path.stat().st_size < 100_000
    with pytest.raises(ModelFileError, match=r"holds 16,.* bytes, and load\(\) reads at most 1,000,000"):
        load(path, max_bytes=1_000_000)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of POSIX")
def test_row_81_devices_and_pipes_are_refused(tmp_path):
    """Reading from them may never end."""
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", "/dev/zero"):
        with pytest.raises(ModelFileError, match="is a device or a pipe"):
            load(place)
