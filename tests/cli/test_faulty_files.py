"""Faulty files at the command line (FAULTS 58 to 60, 63): one line that says where, exit code 2, nothing torn."""

import json
import os
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from partita import Voting
from partita.cli import main, output
from partita.cli.sources import open_table
from partita.report import page as report_page
from partita.report import write_report

FAULTY = {
    "empty.csv": (b"", "the file is empty"),
    "header_only.csv": (b"x,y\n", "the table has no rows"),
    "ragged.csv": (b"x,y\n1,2\n3\n", "line 3"),
    "names_twice.csv": (b"x,x\n1,2\n", "several columns are called x"),
    "open_quote.csv": (b'x,y\n"1,2\n3,4\n', "quotes"),
    "zeros.csv": (b"x,y\n1,2\n\x00\x00,3\n", "line 3: a zero byte"),
    "bad.parquet": (b"PAR1 but no more", "damaged or has another format"),
    "bad.npy": (b"\x93NUMPY", "bad.npy"),
    "words.doc": (b"x", "files of type .doc"),
}


def told_in_one_line(capsys, words):
    told = capsys.readouterr()
    assert told.out == "" and told.err.startswith("partita: ") and told.err.count("\n") == 1, told
    assert words in told.err, told.err


@pytest.mark.parametrize("command", ["cluster", "consensus"])
@pytest.mark.parametrize("name", FAULTY)
def test_a_faulty_table_is_told_in_one_line(tmp_path, capsys, name, command):
    content, words = FAULTY[name]
    (tmp_path / name).write_bytes(content)
    assert main([command, str(tmp_path / name)]) == 2
    told_in_one_line(capsys, words)
    assert [path.name for path in tmp_path.iterdir()] == [name]  # no folder for an answer that is not there


@pytest.mark.parametrize(
    ("content", "columns", "n_rows"),
    [
        ("\ufeffsize;color\r\n1,5;red\r\n2;blue\r\n", ["size", "color"], 2),
        ('size,"a, b"\n1,"x ""y"", z"\n2,w\n', ["size", "a, b"], 2),
        ("1,2\n3,4\n5,6\n", ["column_1", "column_2"], 3),
        ("size\n1\n\n2\n", ["size"], 2),
    ],
    ids=["byte-order mark, semicolons", "quotes", "no header", "one column"],
)
def test_an_odd_table_is_read(tmp_path, content, columns, n_rows):
    (tmp_path / "odd.csv").write_text(content, encoding="utf-8", newline="")
    table = open_table(tmp_path / "odd.csv")
    assert list(table.columns) == columns and table.n_rows == n_rows


@pytest.fixture
def saved(tmp_path):
    Voting(2).fit([[0, 0], [0, 0], [1, 1], [1, 1]]).save(tmp_path / "model.npz")
    return tmp_path / "model.npz"


def test_a_faulty_model_is_told_in_one_line(saved, capsys):
    whole = saved.read_bytes()
    assert main(["report", str(saved)]) == 0
    capsys.readouterr()
    for length in (0, 10, len(whole) // 2, len(whole) - 1):
        saved.write_bytes(whole[:length])
        assert main(["report", str(saved)]) == 2
        told_in_one_line(capsys, "model.npz")


def test_a_model_of_a_newer_format_is_told_in_one_line(saved, capsys):
    with zipfile.ZipFile(saved) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    (name,) = [name for name in parts if name.endswith(".json")]
    document = json.loads(parts[name])
    (key,) = [key for key in document if key in ("format", "schema", "format_version")]
    document[key] += 1
    with zipfile.ZipFile(saved, "w") as file:
        for part, content in (parts | {name: json.dumps(document).encode()}).items():
            file.writestr(part, content)
    assert main(["report", str(saved)]) == 2
    told_in_one_line(capsys, "model.npz")


def test_a_full_disk_leaves_the_old_files(tmp_path, monkeypatch):
    """Labels and page are replaced as a whole, as the model is (tests/estimator/test_storage.py)."""

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    labels, page = tmp_path / "labels.csv", tmp_path / "report.html"
    model = Voting(2).fit([[0, 0], [0, 0], [1, 1], [1, 1]])
    output.write_columns(labels, {"cluster": np.arange(3)})
    write_report(model, page)
    before = {path: path.read_bytes() for path in (labels, page)}
    for place, name in ((output.csv, "writer"), (os, "replace")):
        with monkeypatch.context() as patch, pytest.raises(OSError, match="No space"):
            patch.setattr(place, name, full)
            output.write_columns(labels, {"cluster": np.zeros(3)})
    for place, name in ((report_page.Path, "write_text"), (os, "replace")):
        with monkeypatch.context() as patch, pytest.raises(OSError, match="No space"):
            patch.setattr(place, name, full)
            write_report(model, page, title="another")
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_full_disk_is_told_in_one_line(saved, capsys, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(report_page.Path, "write_text", full)
    assert main(["report", str(saved)]) == 2
    told_in_one_line(capsys, "No space left on device")
    assert [path.name for path in saved.parent.iterdir()] == ["model.npz"]


BARE = """
import sys
for name in ("matplotlib", "plotly", "pandas"):
    sys.modules[name] = None
import numpy as np
from partita import Voting
from partita.plotting import plot_confidence
from partita.report import write_report
model = Voting(2).fit(np.repeat([[0, 0, 0], [1, 1, 1]], 4, axis=0))
write_report(model, "bare.html")
try:
    plot_confidence(model)
except ImportError as error:
    print(error)
"""
NO_DISPLAY = """
from partita import Voting
from partita.plotting import plot_confidence
model = Voting(2).fit([[0, 0], [0, 0], [1, 1], [1, 1]])
plot_confidence(model).figure.savefig("no_display.png")
"""


def run(code, folder):
    hidden = ("DISPLAY", "WAYLAND_DISPLAY", "MPLBACKEND")
    env = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_report_needs_no_plotting_library_and_pictures_name_theirs(tmp_path):
    assert "partita[plot]" in run(BARE, tmp_path)
    assert "<svg" in (tmp_path / "bare.html").read_text(encoding="utf-8")


def test_pictures_need_no_display(tmp_path):
    pytest.importorskip("matplotlib")
    run(NO_DISPLAY, tmp_path)
    assert (tmp_path / "no_display.png").read_bytes().startswith(b"\x89PNG")
