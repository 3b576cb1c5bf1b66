"""The commands in processes of their own, on good files and bad ones."""

import json
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from partita import load
from partita.cli import main, warming
from partita.cli.results import notes_of
from partita.cli.sources import open_table, open_typed
from partita.table import read_file

COMMAND = [sys.executable, "-c", "from partita.cli.start import script; script()"]
SHORT = ["--chains", "2", "--draws", "20", "--burn-in", "20", "-q"]


def partita(*arguments, folder):
    """A command in a process of its own."""
    done = subprocess.run(
        [*COMMAND, *map(str, arguments)], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    print(done.stdout, done.stderr)
    return done


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table of two clear groups, and six clusterings of it, one with holes."""
    folder = tmp_path_factory.mktemp("cli")
    rng = np.random.default_rng(0)
    z = np.repeat([0, 1], 30)
    X = rng.normal(size=(60, 2)) + 8 * z[:, None]
    Y = np.where(rng.random((60, 6)) < 0.05, 1 - z[:, None], z[:, None]).astype(object)
    Y[::7, 2] = ""
    names = [f"row{i}" for i in range(60)]
    with open(folder / "table.csv", "w") as file:
        file.write("id,x,y,kind\n")
        file.writelines(f"{n},{a:.4f},{b:.4f},{'ab'[k]}\n" for n, (a, b), k in zip(names, X, z))
    with open(folder / "labels.csv", "w") as file:
        file.write(",".join(f"m{m}" for m in range(6)) + "\n")
        file.writelines(",".join(map(str, row)) + "\n" for row in Y)
    return folder


def test_cluster_reads_ordered_levels(tmp_path):
    rng = np.random.default_rng(0)
    mean = np.repeat([-1.5, 1.5], 30)[:, None]
    words = np.array(["low", "mid", "high"])[np.digitize(mean + rng.normal(size=(60, 4)), [-1.0, 1.0])]
    lines = ["q0,q1,q2,q3", *(",".join(row) for row in words)]
    (tmp_path / "survey.csv").write_text("\n".join(lines) + "\n")
    kinds = [part for d in range(4) for part in ("--kind", f"q{d}=low < mid < high")]
    done = partita("cluster", "survey.csv", "--json", "-o", "found", *kinds, *SHORT, folder=tmp_path)
    assert done.returncode == 0
    found = json.loads(done.stdout)
    assert found["n_clusters"] == 2 and found["kinds"] == "ordinal: q0, q1, q2, q3"
    assert load(tmp_path / "found" / "model.npz").schema_.column("q0").levels == ("low", "mid", "high")
    assert "high" in (tmp_path / "found" / "report.html").read_text()


def test_cluster(folder):
    done = partita(
        "cluster",
        "table.csv",
        "--id",
        "id",
        "--truth",
        "kind",
        "--json",
        "-o",
        "found",
        *SHORT,
        folder=folder,
    )
    assert done.returncode == 0
    found = json.loads(done.stdout)
    assert found["n_clusters"] == 2 and sorted(found["sizes"]) == [30, 30]
    assert found["adjusted_rand"] == 1.0 and found["kinds"] == "real: x, y"
    labels = read_file(folder / "found" / "labels.csv").columns
    assert list(labels)[:3] == ["id", "group", "confidence"] and labels["id"][0] == "row0"
    assert set(list(labels)[3:]) <= {"coarse", "medium", "fine"}
    assert (load(folder / "found" / "model.npz").labels_ + 1 == labels["group"]).all()
    page = (folder / "found" / "report.html").read_text()
    assert "2 groups" in page and "table.csv" in page


def test_report_of_a_saved_model(folder):
    done = partita(
        "cluster", "table.csv", "--ignore", "kind", "--ignore", "id", "--inference", "vb", folder=folder
    )
    assert done.returncode == 0 and "groups" in done.stdout and "report.html" in done.stdout
    again = partita("report", "table-partita", "-o", "again.html", "--title", "Once more", folder=folder)
    assert again.returncode == 0 and "row0" not in (folder / "table-partita" / "report.html").read_text()
    assert "Once more" in (folder / "again.html").read_text()
    (folder / "not_a_model").mkdir()
    (folder / "not_a_model" / "model.npz").write_bytes(b"no")
    for name in ("not_a_model", "nowhere", "table.csv"):
        wrong = partita("report", name, folder=folder)
        assert (
            wrong.returncode == 2 and wrong.stderr.count("\n") == 1 and wrong.stderr.startswith("partita: ")
        )


def test_consensus(folder):
    done = partita("consensus", "labels.csv", "--json", "-q", folder=folder)
    assert done.returncode == 0
    found = json.loads(done.stdout)
    assert found["method"] == "Consensus" and found["n_clusters"] == 2
    assert (folder / "labels-partita" / "report.html").exists()
    told = partita("consensus", "labels.csv", "--method", "qmi", "-K", "3", "-o", "told", folder=folder)
    assert told.returncode == 0 and "3 groups" in told.stdout
    compared = partita("compare", "labels-partita/labels.csv", "told/labels.csv", "--json", folder=folder)
    compared = json.loads(compared.stdout)
    assert compared["n_clusters"] == [2, 3] and compared["columns"] == ["group", "group"]


def test_ensemble_then_consensus(folder):
    done = partita(
        "ensemble",
        "table.csv",
        "--ignore",
        "kind",
        "--id",
        "id",
        "-m",
        "5",
        "-o",
        "five.parquet",
        folder=folder,
    )
    assert done.returncode == 0 and "5 clusterings of 60 rows" in done.stdout
    members = read_file(folder / "five.parquet").columns
    assert list(members)[0] == "id" and len(members) == 6
    assert (
        main(["consensus", str(folder / "five.parquet"), "--id", "id", "-q", "-o", str(folder / "five")]) == 0
    )
    assert read_file(folder / "five" / "labels.csv").columns["id"][0] == "row0"


@pytest.mark.slow  # its table of four kinds is compiled by the README's example too, at the same time
def test_demo(tmp_path):
    done = partita("demo", "-q", folder=tmp_path)
    assert done.returncode == 0 and "4 groups" in done.stdout
    assert (tmp_path / "partita-demo" / "report.html").exists()


def test_warm_remembers_what_is_compiled(tmp_path, monkeypatch):
    ran = []
    monkeypatch.setattr(warming, "record_path", lambda: tmp_path / "record.json")
    monkeypatch.setattr(
        warming,
        "tasks",
        lambda kinds: {name: lambda name=name: ran.append(name) for name in kinds or ("real", "count")},
    )
    assert warming.warm(check=True).figures["missing"] == ["real", "count"] and not ran
    assert warming.warm(["real"], verbose=False).figures["compiled"] == ["real"] == ran
    assert warming.warm(check=True).words == "Not compiled yet: count. Run: partita warm"
    assert warming.warm(verbose=False).figures["compiled"] == ["count"]
    assert warming.warm(check=True).words == "All 2 tasks are compiled."
    (tmp_path / "record.json").write_text("{}")  # of another version
    assert warming.tasks_done() == set()


@pytest.mark.slow  # compiles every engine for every family
def test_warm_needs_no_more_compilation(tmp_path):
    assert partita("warm", folder=tmp_path).returncode == 0
    assert "All" in partita("warm", "--check", folder=tmp_path).stdout


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the file is empty"),
        ("x,y\n1,2\n1\n", "line 3"),
        ("x;y\n1;2\n", "no column 'x,y'"),
    ],
)
def test_files_at_fault_are_told_in_one_line(tmp_path, capsys, text, words):
    (tmp_path / "bad.csv").write_text(text)
    assert main(["cluster", str(tmp_path / "bad.csv"), "--column", "x,y" if ";" in text else "x"]) == 2
    told = capsys.readouterr().err
    assert told.startswith("partita: ") and told.count("\n") == 1 and words in told


def test_a_first_column_of_names_is_found(folder, capsys):
    """Text that never comes twice, or a count of the rows; said, and not done where the caller says what to use."""
    found = open_table(folder / "table.csv")
    assert (
        found.id_column == "id"
        and list(found.columns) == ["x", "y", "kind"]
        and "'id'" in found.notes[0].message
    )
    assert found.names[0] == "row0"
    for options in ({"columns": ["id", "x"]}, {"ignore": ["id"]}, {"id_column": "kind"}):
        assert open_table(folder / "table.csv", **options).id_column in (None, "kind")
    (folder / "numbered.csv").write_text(",x\n" + "".join(f"{i},{i % 7}\n" for i in range(30)))
    assert list(open_table(folder / "numbered.csv").columns) == ["x"]
    (folder / "few.csv").write_text("a,x\n" + "".join(f"n{i},{i}\n" for i in range(5)))
    (folder / "twice.csv").write_text("a,x\n" + "".join(f"n{i % 29},{i}\n" for i in range(30)))
    (folder / "alone.csv").write_text("a\n" + "".join(f"n{i}\n" for i in range(30)))
    for name in ("few.csv", "twice.csv", "alone.csv"):
        assert open_table(folder / name).id_column is None
    (folder / "mixed.csv").write_text("a,x\n" + "".join(f"n{i % 3},{i}\n" for i in range(30)))
    assert main(["blocks", str(folder / "mixed.csv")]) == 2
    assert "column 'a' holds text and others hold numbers" in capsys.readouterr().err


def test_commands_at_fault(folder, capsys):
    table = str(folder / "table.csv")
    for arguments, words in (
        (["cluster", table, "--kind", "x=color"], "write --kind column=kind"),
        (["cluster", table, "--kind", "z=real"], "no column 'z'"),
        (["cluster", table, "--ignore", "z"], "no column 'z'"),
        (["cluster", table, "--inference", "magic"], "magic"),
        (["consensus", table, "--ignore", "id"], "use `partita cluster`"),
        (["consensus", str(folder / "labels.csv"), "--method", "guess"], "no method 'guess'"),
        (["consensus", str(folder / "labels.csv"), "--method", "modularity", "-K", "2"], "its own number"),
        (["ensemble", table, "-o", str(folder / "x.doc")], "write to .csv"),
        (["ensemble", table, "-o", str(folder / "x.csv"), "--kind", "odd"], "no ensemble 'odd'"),
        (["compare", table, str(folder / "labels.csv"), "--column", "z"], "no column 'z'"),
        (["clutser", table], "clutser"),
    ):
        assert main(arguments) == 2
        told = capsys.readouterr().err
        assert words in told, told
    assert not list(folder.glob(".*"))  # nothing half-written


def test_version_and_help(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.strip()[0].isdigit()
    assert main(["cluster", "--help"]) == 0
    assert "--kind" in capsys.readouterr().out


def test_blocks(folder):
    rng = np.random.default_rng(1)
    P = np.array([[0.95, 0.05], [0.05, 0.95]])
    X = (rng.random((14, 10)) < P[np.repeat([0, 1], 7)][:, np.repeat([0, 1], 5)]).astype(int)
    with open(folder / "matrix.csv", "w") as file:
        file.write(",".join(f"c{j}" for j in range(10)) + "\n")
        file.writelines(",".join(map(str, row)) + "\n" for row in X)
    done = partita("blocks", "matrix.csv", "--json", "-q", folder=folder)
    assert done.returncode == 0
    found = json.loads(done.stdout)
    assert found["n_row_clusters"] >= 2 and found["n_column_clusters"] >= 2
    assert len(read_file(folder / "matrix-partita" / "columns.csv").columns["group"]) == 10


def test_tree(folder):
    done = partita(
        "tree", "table.csv", "--id", "id", "--truth", "kind", "--json", "-q", "-o", "tree", folder=folder
    )
    assert done.returncode == 0
    found = json.loads(done.stdout)
    assert found["n_clusters"] == 2 and found["adjusted_rand"] == 1.0
    assert (folder / "tree" / "report.html").exists() and load(
        folder / "tree" / "model.npz"
    ).linkage_.shape == (59, 4)


def test_views(folder):
    rng = np.random.default_rng(2)
    first, second = rng.integers(2, size=80), rng.integers(2, size=80)
    X = rng.normal(size=(80, 6)) + 5 * np.column_stack([first] * 3 + [second] * 3)
    with open(folder / "wide.csv", "w") as file:
        file.write("a1,a2,a3,b1,b2,b3\n")
        file.writelines(",".join(f"{x:.4f}" for x in row) + "\n" for row in X)
    done = partita("views", "wide.csv", "--inference", "vb", "--json", "-q", folder=folder)
    assert done.returncode == 0
    views = json.loads(done.stdout)["views"]
    assert {tuple(view["columns"]) for view in views} == {("a1", "a2", "a3"), ("b1", "b2", "b3")}
    assert (folder / "wide-partita" / "report.html").exists()


def test_only_shared_groupings_are_views(folder):
    """Noise, and a column with groups of its own, are in no view: not in the answer, its posterior or the files."""
    rng = np.random.default_rng(4)
    first, peaks = rng.integers(2, size=(2, 120))
    X = rng.normal(size=(120, 6))
    X[:, :3] += 6 * first[:, None]
    X[:, 3] += 9 * peaks
    with open(folder / "alone.csv", "w") as file:
        file.write("a1,a2,a3,peaks,n1,n2\n")
        file.writelines(",".join(f"{x:.4f}" for x in row) + "\n" for row in X)
    done = partita("views", "alone.csv", "--json", "-q", folder=folder)
    assert done.returncode == 0
    found = json.loads(done.stdout)
    assert found["n_views"] == len(found["views"]) == 1
    assert max(found["n_views_posterior"], key=found["n_views_posterior"].get) == "1"
    own = set(found["views"][0]["columns"])  # a column of noise may join by chance
    assert {"a1", "a2", "a3"} <= own <= {"a1", "a2", "a3", "n1", "n2"}
    assert "in no view: peaks (2 groups)" in found["words"]
    summary = load(folder / "alone-partita" / "model.npz").summary_
    assert len(summary.views) == 1 and "1 view of 120 rows" in str(summary)
    labels = read_file(folder / "alone-partita" / "labels.csv").columns
    assert list(labels) == ["row", "view_1", "view_1_confidence"]
    assert labels["view_1_confidence"].min() > 0.9
    done = partita("predict", "alone-partita", "alone.csv", folder=folder)
    assert list(read_file(folder / "alone-groups.csv").columns) == ["row", "view_1"], done.stderr


def test_python_m_partita_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "partita", "--help"], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0 and "cluster" in done.stdout


def test_results_of_another_command_are_not_replaced_silently(folder):
    done = [
        partita(*command, "table.csv", "--id", "id", "--json", "-q", "-o", "both", folder=folder)
        for command in (("cluster", "--inference", "em", "--clusters", "2"), ("tree",), ("tree",))
    ]
    notes = [json.loads(one.stdout)["notes"] for one in done]
    told = [[note for note in own if "are replaced" in note] for own in notes]
    assert told[0] == told[2] == []
    assert told[1] == ["the results of `partita cluster` in both are replaced; -o writes to another folder"]


@pytest.mark.parametrize(("name", "is_id"), [("emp_id", True), ("wage", False)])
def test_whole_numbers_that_identify_rows_name_them(tmp_path, name, is_id):
    numbers = np.random.default_rng(0).permutation(100_000)[:40]
    lines = [f"{name},x", *(f"{n},{x:.3f}" for n, x in zip(numbers, np.linspace(0, 1, 40) ** 2))]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    found = open_table(tmp_path / "t.csv")
    assert found.id_column == (name if is_id else None)
    assert not is_id or list(map(str, found.names)) == list(map(str, numbers))  # 7, not 7.0


def test_suspected_missing_codes_are_the_first_note(tmp_path):
    """A few of them are enough to make a group of their own."""
    rng = np.random.default_rng(0)
    pain = np.where(rng.random(80) < 0.1, 999, rng.integers(0, 11, 80))
    lines = ["pressure,pain", *(f"{s}/{s - 40},{p}" for s, p in zip(rng.integers(100, 160, 80), pain))]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    table, _, X = open_typed(tmp_path / "t.csv")
    notes = notes_of(SimpleNamespace(fit_report_=X.notes), table)
    assert "may be missing codes: 'pain' (999" in notes[0] and any(
        "two numbers" in note for note in notes[1:]
    )


def test_the_command_line_knows_every_engine():
    """It has the names itself, because importing the engines takes seconds."""
    from partita.cli.clustering import INFERENCES, ORDER_INFERENCES
    from partita.fitting.engines import ENGINES

    assert set(INFERENCES) == {"auto", *ENGINES}
    assert set(ORDER_INFERENCES) == {
        "auto",
        *(n for n, engine in ENGINES.items() if engine.completes_vectors),
    }
