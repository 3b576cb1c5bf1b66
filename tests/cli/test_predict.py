"""`partita predict`: new rows by every kind of saved model, columns by name, and what could not be read."""

import json

import numpy as np
import pytest

import partita
from partita import load
from partita.cli import main
from partita.table import read_file

HEAD = "id,x,y,kind\n"


def rows_of(rng, n, start=0):
    """Lines of a table with three groups; the last column names the group."""
    z = np.arange(n) % 3
    X = rng.normal(size=(n, 2)) + 9.0 * np.column_stack([z == 1, z == 2])
    return [f"c{start + i:03d},{x:.3f},{y:.3f},{'abc'[k]}\n" for i, ((x, y), k) in enumerate(zip(X, z))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, global_random_seed):
    folder = tmp_path_factory.mktemp("predict")
    rng = np.random.default_rng(global_random_seed)
    (folder / "people.csv").write_text(HEAD + "".join(rows_of(rng, 90)))
    (folder / "new.csv").write_text(HEAD + "".join(rows_of(rng, 30, 90)))
    options = ["--ignore", "kind", "--inference", "em", "-K", "3", "-q"]
    assert main(["cluster", str(folder / "people.csv"), *options]) == 0
    return folder


def json_of(capsys, *arguments):
    capsys.readouterr()
    assert main([*map(str, arguments), "--json"]) == 0
    printed = capsys.readouterr()
    return json.loads(printed.out), printed.err


def test_the_groups_of_the_fit_are_those_of_prediction(folder, capsys):
    found, _ = json_of(capsys, "predict", folder / "people-partita", folder / "people.csv")
    fitted = read_file(folder / "people-partita" / "labels.csv").columns
    again = read_file(folder / "people-groups.csv").columns
    assert list(again) == ["id", "group", "confidence"]
    np.testing.assert_array_equal(again["group"], fitted["group"])
    assert set(again["group"]) == {1, 2, 3} and again["id"][0] == "c000"
    assert found["sizes"] == [30, 30, 30] and found["n_clusters"] == 3 and found["n_uncertain"] == 0
    assert found["method"] == "Mixture" and found["files"] == [str(folder / "people-groups.csv")]


def test_columns_are_matched_by_name(folder, capsys):
    lines = (folder / "new.csv").read_text().splitlines()
    moved = [",".join(np.array(line.split(","))[[2, 0, 3, 1]]) for line in lines]
    (folder / "moved.csv").write_text("\n".join(moved) + "\n")
    found, told = json_of(capsys, "predict", folder / "people-partita" / "model.npz", folder / "moved.csv")
    plain, _ = json_of(capsys, "predict", folder / "people-partita", folder / "new.csv")
    assert found["sizes"] == plain["sizes"] == [10, 10, 10]
    assert "matched by their names" in told and "does not use: 'kind'" in told
    moved, new = (read_file(folder / f"{name}-groups.csv").columns for name in ("moved", "new"))
    np.testing.assert_array_equal(moved["group"], new["group"])
    assert moved["id"].tolist() == new["id"].tolist()


def test_missing_columns_are_refused_by_name(folder, capsys):
    (folder / "short.csv").write_text("id,x,Y \na,1,2\nb,2,3\n")
    assert main(["predict", str(folder / "people-partita"), str(folder / "short.csv")]) == 2
    told = capsys.readouterr().err
    assert (
        "columns that the file does not have: 'y'" in told and "the file has 'Y' for 'y': rename it" in told
    )
    assert not (folder / "short-groups.csv").exists()


def test_what_could_not_be_read_is_told(tmp_path, capsys, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    table = HEAD.replace("kind", "shop") + "".join(rows_of(rng, 60))
    (tmp_path / "people.csv").write_text(table)
    assert main(["cluster", str(tmp_path / "people.csv"), "--inference", "em", "-K", "3", "-q"]) == 0
    (tmp_path / "new.csv").write_text("id,x,y,shop\nn1,0.1,about 3,z\nn2,9.1,0.2,b\nn3,,,\n")
    capsys.readouterr()
    assert main(["predict", str(tmp_path / "people-partita"), str(tmp_path / "new.csv")]) == 0
    told = capsys.readouterr().err
    assert "values not seen at fit are read as missing: 'shop' (1)" in told
    assert (
        "texts that do not have the format of the fitted column are read as missing: 'y' (1, the first is 'about 3'"
        in told
    )
    groups = read_file(tmp_path / "new-groups.csv").columns
    assert len(groups["group"]) == 3 and set(groups["group"]) <= {1, 2, 3}


def test_other_levels_of_the_grain(folder, capsys):
    found, _ = json_of(capsys, "predict", folder / "people-partita", folder / "new.csv", "--grain", "2")
    model = load(folder / "people-partita" / "model.npz")
    names = list(model.schema_.names)
    X = {name: read_file(folder / "new.csv").columns[name] for name in names}
    assert found["sizes"] == np.bincount(model.predict(X, at=2), minlength=2).tolist()
    assert main(["predict", str(folder / "people-partita"), str(folder / "new.csv"), "--grain", "huge"]) == 2


def test_the_table_with_its_groups(folder, capsysbinary):
    assert main(["predict", str(folder / "people-partita"), str(folder / "new.csv"), "--output", "-"]) == 0
    printed = capsysbinary.readouterr()
    lines = printed.out.decode().splitlines()
    assert lines[0] == "id,x,y,kind,group,confidence" and len(lines) == 31
    plain = (folder / "new.csv").read_text().splitlines()
    assert all(line.startswith(f"{own},") for line, own in zip(lines, plain))
    assert "30 rows in 3 groups of the model" in printed.err.decode()


def models(rng):
    """A fitted model of every estimator that labels new rows, with the table that it reads."""
    z = np.arange(40) % 2
    X = rng.normal(size=(40, 3)) + 7.0 * z[:, None]
    Y = np.repeat(z[:, None], 4, axis=1)
    B = (rng.random((20, 8)) < np.where(np.arange(20)[:, None] % 2 == np.arange(8) % 2, 0.95, 0.05)).astype(
        int
    )
    short = {"n_chains": 1, "n_draws": 4, "burn_in": 2, "random_state": 0}
    real, labels = {f"x{j}": X[:, j] for j in range(3)}, {f"m{j}": Y[:, j] for j in range(4)}
    yield partita.Mixture(inference="vb", random_state=0), real
    yield partita.LatentClass(2, random_state=0), labels
    yield partita.DPGaussian(inference="vb", random_state=0), X
    yield partita.BayesianTree(random_state=0), real
    yield partita.KMedoids(2, random_state=0), real
    yield partita.BisectingClusters(random_state=0), real
    yield partita.AffinityPropagation(random_state=0), real
    yield partita.SpectralClustering(2, random_state=0), X
    yield partita.EnsembleClustering(n_members=5, random_state=0), real
    yield partita.Consensus(random_state=0), labels
    yield partita.Voting(2), Y
    yield partita.CrossCat(**short), real
    yield partita.OverlappingViews(n_init=1, **short), real
    yield partita.RelationalBlocks(n_moves=1, **short), B


@pytest.mark.slow  # a fit of every kind
def test_every_model_that_can_predict(tmp_path, capsys, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    for model, X in models(rng):
        name = type(model).__name__
        model.fit(X).save(tmp_path / f"{name}.npz")
        columns = X if isinstance(X, dict) else {f"x{j}": X[:, j] for j in range(X.shape[1])}
        lines = [",".join(columns), *(",".join(map(repr, map(float, row))) for row in zip(*columns.values()))]
        if all(np.asarray(values).dtype.kind == "i" for values in columns.values()):
            lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values()))]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
        found, _ = json_of(capsys, "predict", tmp_path / f"{name}.npz", tmp_path / f"{name}.csv")
        written = read_file(tmp_path / f"{name}-groups.csv").columns
        expected = np.asarray(model.predict(X))
        got = np.column_stack(
            [values for key, values in written.items() if key.startswith(("group", "view"))]
        )
        np.testing.assert_array_equal(got, expected.reshape(len(expected), -1) + 1, err_msg=name)
        assert found["n_objects"] == len(expected)


def test_clusterings_in_a_file_have_the_labels_of_the_fit(tmp_path, capsys):
    """Integers stay integers, and labels that were text at the fit stay text, 007 as well as 7."""
    z = np.arange(40) % 2
    members = {"a": z, "b": np.where(z == 0, "007", "7"), "c": np.where(z == 0, "x", "3")}
    model = partita.Voting(2).fit(members)
    model.save(tmp_path / "model.npz")
    (tmp_path / "new.csv").write_text("a,b,c\n1,7,3\n1,7,3\n1,7,3\n")
    found, _ = json_of(capsys, "predict", tmp_path / "model.npz", tmp_path / "new.csv")
    group = int(model.labels_[1])
    assert found["sizes"] == [3 * (group == k) for k in range(2)]
    (tmp_path / "new.csv").write_text("a,b,c\n0,007,x\n1,7,3\n")
    json_of(capsys, "predict", tmp_path / "model.npz", tmp_path / "new.csv")
    groups = read_file(tmp_path / "new-groups.csv").columns["group"]
    assert groups.tolist() == [int(label) + 1 for label in model.labels_[:2]]


def test_a_model_without_a_rule_for_new_rows(tmp_path, capsys):
    partita.Agglomerative(n_clusters=2).fit(np.arange(8.0)[:, None]).save(tmp_path / "model.npz")
    (tmp_path / "new.csv").write_text("x0\n1\n2\n")
    assert main(["predict", str(tmp_path / "model.npz"), str(tmp_path / "new.csv")]) == 2
    assert "has no rule for new rows" in capsys.readouterr().err
