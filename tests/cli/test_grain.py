"""--grain, the table of alternatives, and the columns of the levels in the labels file."""

import itertools
import json

import numpy as np
import pytest

from partita import load
from partita.cli import clustering, tools
from partita.table import read_file


@pytest.fixture(scope="module")
def path(tmp_path_factory, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    z = np.arange(90) % 5
    Y = np.where(rng.random((90, 8)) < 0.25, rng.integers(5, size=(90, 8)), z[:, None])
    path = tmp_path_factory.mktemp("grain") / "labels.csv"
    head = ",".join(f"m{m}" for m in range(8))
    np.savetxt(path, Y, fmt="%d", delimiter=",", header=head, comments="")
    return path


@pytest.fixture(scope="module")
def answer(path):
    return clustering.consensus(path, out=path.parent / "answer", verbose=False)


def labels_of(folder):
    found = read_file(folder / "labels.csv").columns
    return {name: np.asarray(values, float) for name, values in found.items()}


def test_the_answer_comes_with_its_alternatives(path, answer):
    model = load(path.parent / "answer" / "model.npz")
    assert [(one["name"], one["n_clusters"]) for one in answer.figures["alternatives"]] == [
        (one.name, one.n_clusters) for one in model.alternatives_
    ]
    for one in answer.figures["alternatives"]:
        assert one["sizes"] == np.bincount(model.at(one["name"]).labels).tolist()
    for before, one in itertools.pairwise(answer.figures["alternatives"]):
        a, b = model.at(before["name"]).labels + 1, model.at(one["name"]).labels + 1
        parts = {k: sorted({int(part) for part in b[a == k]}) for k in range(1, before["n_clusters"] + 1)}
        assert one["splits"] == {str(k): own for k, own in parts.items() if len(own) > 1}
        for k, own in list(one["splits"].items())[:3]:  # the words count groups from 1, as the labels do
            assert f"group {k} into {', '.join(map(str, own))}" in answer.table
    lines = answer.table[answer.table.index("  alternatives ") :].split("\n")  # after the groups in words
    assert len(lines) == 1 + len(model.alternatives_) and "alternatives" in lines[0]
    assert lines[0] not in answer.words
    json.dumps(answer.figures)
    written = labels_of(path.parent / "answer")
    assert list(written) == ["object", "group", "confidence", *(one.name for one in model.alternatives_)]
    np.testing.assert_array_equal(written["group"], model.labels_ + 1)
    for one in model.alternatives_:
        np.testing.assert_array_equal(written[one.name], one.labels + 1)


@pytest.mark.parametrize("grain", ["coarse", "2", "4"])
def test_another_grain_is_written_and_reported(path, answer, grain):
    folder = path.parent / f"grain-{grain}"
    found = clustering.consensus(path, out=folder, grain=grain, verbose=False)
    model = load(folder / "model.npz")
    level = model.at(int(grain) if grain.isdigit() else grain)
    assert found.figures["n_clusters"] == level.n_clusters
    assert found.figures["sizes"] == np.bincount(level.labels).tolist()
    assert found.figures["n_clusters_of_answer"] == model.n_clusters_ == answer.figures["n_clusters"]
    assert found.words.startswith(f"{level.n_clusters} groups, as asked")
    written = labels_of(folder)
    np.testing.assert_array_equal(written["group"], level.labels + 1)
    np.testing.assert_allclose(written["confidence"], level.confidence, atol=1e-5)
    # the report of the saved model begins at the same level, or at another one that is asked for
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert f'aria-valuetext="{level.n_clusters} groups' in page
    assert f"groups</strong>, as asked (the answer has {model.n_clusters_} groups), in" in page
    tools.report(folder, out=folder / "again.html")
    assert f'aria-valuetext="{level.n_clusters} groups' in (folder / "again.html").read_text(encoding="utf-8")
    tools.report(folder, out=folder / "three.html", grain="3")
    assert 'aria-valuetext="3 groups' in (folder / "three.html").read_text(encoding="utf-8")


def test_what_is_no_grain_is_refused(path):
    with pytest.raises(
        ValueError, match="no grain 'big': give coarse, medium, fine, agreed or a number of groups"
    ):
        clustering.consensus(path.with_name("missing.csv"), grain="big")  # before the file is opened
    with pytest.raises(ValueError, match="no grain '0'"):
        clustering.cluster(path.with_name("missing.csv"), grain="0")
    with pytest.raises(ValueError, match="no grain '-2'"):
        clustering.tree(path.with_name("missing.csv"), grain="-2")


@pytest.mark.parametrize(
    ("grain", "options", "message"),
    [
        ("90", {}, "--grain 90: no level with 90 groups: this answer has groups for 1 to"),
        ("2", {"method": "voting", "n_clusters": 2}, "--grain 2: this Voting has no grain"),
    ],
)
def test_a_fit_is_not_lost_because_its_answer_lacks_the_level(path, answer, grain, options, message):
    folder = path.parent / f"lacks-{grain}"
    with pytest.raises(ValueError, match=message) as told:
        clustering.consensus(path, out=folder, grain=grain, verbose=False, **options)
    model = load(folder / "model.npz")
    assert str(told.value).endswith(f"the answer, {model.n_clusters_} groups, is written to {folder}")
    np.testing.assert_array_equal(labels_of(folder)["group"], model.labels_ + 1)
    assert json.loads((folder / "source.json").read_text(encoding="utf-8"))["grain"] is None
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert f"{model.n_clusters_} groups" in page


def test_methods_without_a_grain_are_written_as_before(path):
    found = clustering.consensus(
        path, out=path.parent / "voting", method="voting", n_clusters=3, verbose=False
    )
    assert found.figures["alternatives"] == [] and found.table == ""
    assert list(labels_of(path.parent / "voting")) == ["object", "group", "confidence"]


def test_tables_and_trees_have_a_grain_too(path):
    rng = np.random.default_rng(0)
    table = path.with_name("table.csv")
    X = rng.normal(size=(60, 2)) + 7.0 * (np.arange(60) % 4)[:, None]
    np.savetxt(table, X, fmt="%.4f", delimiter=",", header="x,y", comments="")
    for command, options in (
        (clustering.cluster, {"inference": "vb"}),
        (clustering.tree, {}),
    ):
        found = command(table, out=path.parent / command.__name__, grain="coarse", verbose=False, **options)
        model = load(path.parent / command.__name__ / "model.npz")
        assert found.figures["sizes"] == np.bincount(model.at("coarse").labels).tolist()
        assert [one["name"] for one in found.figures["alternatives"]] == [
            one.name for one in model.alternatives_
        ]
