import gzip
import os

import numpy as np
import pytest

from benchmarks.data import load_benchmark

needs_data = pytest.mark.skipif(
    not os.environ.get("PARTITA_DATA"), reason="PARTITA_DATA does not name a folder of benchmark tables"
)


@pytest.fixture
def write(tmp_path):
    def put(name, text):
        (tmp_path / f"{name}.csv.gz").write_bytes(gzip.compress(text.encode()))
        return tmp_path

    return put


def test_one_labeling(write):
    folder = write("leaves", "length,width,class\n1.5,2,oak\n,3,elm\n4,5,oak\n")
    table = load_benchmark("leaves", folder=folder)
    np.testing.assert_array_equal(table.X, [[1.5, 2], [np.nan, 3], [4, 5]])
    assert table.X.dtype == float
    assert table.feature_names == ["length", "width"]
    assert table.target.tolist() == [1, 0, 1]
    assert table.target_names == [["elm", "oak"]]
    assert table.ids is None


def test_several_labelings_keep_their_order(write):
    folder = write("faces", "p,class_1,class_2\n1,a,up\n2,b,up\n3,a,down\n")
    table = load_benchmark("faces", folder=folder)
    assert table.target.tolist() == [[0, 1], [1, 1], [0, 0]]
    assert table.target_names == [["a", "b"], ["down", "up"]]


def test_no_labels_strings_and_ids(write):
    folder = write("satellites", 'id,country,mass\n"one, two",Denmark,0.8\nthree,,\n')
    table = load_benchmark("satellites", folder=folder)
    assert table.target is None
    assert table.target_names == []
    assert table.ids.tolist() == ["one, two", "three"]
    assert table.feature_names == ["country", "mass"]
    assert table.X.dtype == object
    assert table.X.tolist() == [["Denmark", 0.8], [None, None]]


def test_the_variable_names_the_folder(write, monkeypatch):
    monkeypatch.setenv("PARTITA_DATA", str(write("one", "x\n1\n")))
    assert load_benchmark("one").X.tolist() == [[1.0]]


def test_without_the_variable_the_error_names_it(monkeypatch):
    monkeypatch.delenv("PARTITA_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match="PARTITA_DATA"):
        load_benchmark("iris")


def test_absent_folder_and_absent_table(write, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"PARTITA_DATA.*does not exist"):
        load_benchmark("iris", folder=tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match="no table 'iris'; it has: one"):
        load_benchmark("iris", folder=write("one", "x\n1\n"))


def test_a_name_cannot_leave_the_folder(write, tmp_path):
    write("secret", "x\n1\n")
    (tmp_path / "inner").mkdir()
    with pytest.raises(FileNotFoundError, match="has no table"):
        load_benchmark("../secret", folder=tmp_path / "inner")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("x,y\n", "no line after the header"),
        ("x,y\n1,2\n3\n", "line 3 has 1 cells, the header has 2"),
        ("id,class\na,b\n", "names no feature column"),
    ],
)
def test_bad_files(write, text, message):
    with pytest.raises(ValueError, match=message):
        load_benchmark("bad", folder=write("bad", text))


@needs_data
@pytest.mark.parametrize(
    ("name", "shape", "n_classes"),
    [
        ("iris", (150, 4), [3]),
        ("glass", (214, 9), [6]),
        ("webkb_1041", (1041, 350), [4, 4]),
        ("animals_50x85", (50, 85), []),
        ("satellites", (1164, 20), []),
        ("nations_14x111", (14, 111), []),
        ("two_spirals_300_kernlab", (300, 2), []),
    ],
)
def test_real_tables(name, shape, n_classes):
    table = load_benchmark(name)
    assert table.X.shape == shape
    assert len(table.feature_names) == shape[1]
    assert [len(names) for names in table.target_names] == n_classes
    if name == "nations_14x111":
        assert np.isnan(table.X).sum() == 120
    if name == "satellites":
        assert table.X.dtype == object
        assert sum(cell is None for cell in table.X.ravel()) == 3011
