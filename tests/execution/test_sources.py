"""Chunks of rows are read correctly, and errors name what cannot be read."""

import pickle

import numpy as np
import pytest

from partita import Mixture
from partita.execution import make_executor, open_chunks, row_chunks
from partita.execution.shards import fold, fold_with, local_shards
from partita.execution.sources import find_chunks

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def write(path, rows, **columns):
    pq.write_table(pa.table(columns), path, row_group_size=rows)


def test_rows_are_those_of_the_array_however_it_is_cut():
    X = np.arange(40).reshape(20, 2)
    for rows in (1, 7, 20, None):
        source = open_chunks(X, rows=rows)
        np.testing.assert_array_equal(source.rows(3, 17), X[3:17])
        assert sum(source.sizes) == 20
    again = pickle.loads(pickle.dumps(open_chunks(X, rows=7)))
    np.testing.assert_array_equal(again.defer(5, 9).load(), X[5:9])


def test_memory_maps_and_npy_files(tmp_path):
    X = np.arange(60.0).reshape(20, 3)
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    for given in (mapped, tmp_path / "x.npy", str(tmp_path / "x.npy")):
        np.testing.assert_array_equal(open_chunks(given, rows=6).rows(4, 15), X[4:15])
    np.testing.assert_array_equal(open_chunks(mapped[3:9]).rows(0, 6), X[3:9])  # a view has lost its place


def test_parquet_by_row_groups_and_folders(tmp_path):
    for part in range(3):
        write(tmp_path / f"p{part}.parquet", 4, a=np.arange(10) + 10 * part, b=["x"] * 10)
    source = open_chunks(tmp_path)
    assert source.sizes == (4, 4, 2) * 3
    assert source.rows(8, 13).column("a").to_pylist() == [8, 9, 10, 11, 12]


def test_arrow_files_by_record_batches(tmp_path):
    table = pa.table({"a": np.arange(10)})
    with pa.OSFile(str(tmp_path / "t.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=4)
    source = open_chunks(tmp_path / "t.arrow")
    assert source.sizes == (4, 4, 2) and source.rows(3, 6).column("a").to_pylist() == [3, 4, 5]


def test_a_file_with_another_schema_is_named(tmp_path):
    write(tmp_path / "a.parquet", 4, a=np.arange(10))
    write(tmp_path / "b.parquet", 4, a=np.arange(10) * 0.5)
    with pytest.raises(ValueError, match=r"b\.parquet has another schema .* holds double, not int64"):
        Mixture(inference="vb").fit(tmp_path)


def test_a_damaged_file_is_named_before_anything_is_fitted(tmp_path):
    write(tmp_path / "a.parquet", 4, a=np.arange(10))
    (tmp_path / "b.parquet").write_bytes(b"no parquet at all")
    with pytest.raises(ValueError, match=r"b\.parquet cannot be read"):
        Mixture(inference="vb").fit(tmp_path)
    whole = (tmp_path / "a.parquet").read_bytes()
    (tmp_path / "b.parquet").write_bytes(b"PAR1" + b"\0" * 40 + whole[44:])  # a good footer, bad pages
    steps = []
    with pytest.raises(ValueError, match=r"b\.parquet, row group 0 cannot be read"):
        Mixture(inference="vb", callback=steps.append).fit(open_chunks(tmp_path))
    assert not steps


def test_empty_files_are_no_trouble(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)) + np.repeat([[0], [9]], 30, axis=0)
    for part, rows in enumerate((X[:20], X[:0], X[20:])):
        write(tmp_path / f"p{part}.parquet", 8, a=rows[:, 0], b=rows[:, 1])
    model = Mixture("gaussian", inference="em", n_clusters=2, random_state=0)
    np.testing.assert_array_equal(model.fit_predict(open_chunks(tmp_path)), model.fit_predict(X))


@pytest.mark.parametrize(
    ("name", "what"), [("missing.parquet", "no such file"), ("table.csv", "cannot be read in chunks")]
)
def test_what_is_no_source_says_so(tmp_path, name, what):
    if name.endswith("csv"):
        (tmp_path / name).write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=what):
        Mixture(inference="vb").fit(tmp_path / name)


def test_an_array_is_no_source_of_its_own_accord():
    assert find_chunks(np.zeros((3, 2))) is None


def test_chunks_end_where_those_of_the_whole_table_do():
    assert [rows.tolist() for rows in row_chunks(6, size=4, start=7)] == [[0], [1, 2, 3, 4], [5]]


def test_the_tree_keeps_the_order():
    words = [chr(65 + i % 26) for i in range(300)]
    assert fold(words, lambda a, b: a + b) == fold_with(words, "".join) == "".join(words)


def test_shards_in_scratch_files_are_the_same_and_vanish(tmp_path):
    X = np.arange(20.0).reshape(10, 2)
    raw = local_shards(10, open_chunks(X).defer, 4, None)
    spilled = raw.derive(_twice, None, spill=True)
    folder = spilled._folder.path
    for kept, read in zip(raw.derive(_twice, None).map(_whole, None), spilled.map(_whole, None), strict=True):
        np.testing.assert_array_equal(kept[0], read[0])
        assert kept[1][1] == read[1][1]
    assert folder.exists()
    del spilled
    assert not folder.exists()


def _twice(container, _common, _own):
    return 2 * container, (container[:, 0].astype(np.int8), "name")


def _whole(data, _common, _own):
    return data


def test_executors_that_do_not_exist_are_refused():
    for wrong in ("cluster", 3):
        with pytest.raises(ValueError, match="threads"):
            make_executor(None, wrong)
