"""Six dirty files with planted groups: the groups of the clean table come back, and every oddity is named."""

import csv
import datetime

import numpy as np
import pytest

from partita.cli import main
from partita.metrics import adjusted_rand

N = 240
QUICK = ["-q", "--chains", "2", "--draws", "40", "--burn-in", "40"]
WORDS = np.array(["strongly disagree", "disagree", "neutral", "agree", "strongly agree"])


def planted():
    """Three groups: spending, a share, an age, a date and answers."""
    rng = np.random.default_rng(5)
    z = rng.integers(3, size=N)
    begin = datetime.date(2010, 1, 1)
    days = (np.array([0, 900, 1800])[z] + rng.normal(0, 500, N)).round().astype(int)
    answers = np.clip(np.array([1, 3, 5])[z][:, None] + rng.integers(-2, 3, size=(N, 4)), 1, 5)
    clean = {
        "spend": (np.array([400.0, 1500.0, 2600.0])[z] + rng.normal(0, 600, N)).round(2),
        "share": (np.array([15.0, 45.0, 75.0])[z] + rng.normal(0, 15, N)).clip(1, 99).round(1),
        "age": (np.array([25, 45, 65])[z] + rng.normal(0, 10, N)).round().clip(18, 90).astype(int),
        "since": np.array([begin + datetime.timedelta(days=int(day)) for day in days]),
        **{f"q{j + 1}": answers[:, j] for j in range(4)},
    }
    return clean, z, rng


def write(path, columns, *, separator=",", encoding="utf-8"):
    with open(path, "w", newline="", encoding=encoding) as file:
        rows = csv.writer(file, delimiter=separator)
        rows.writerow(columns)
        rows.writerows(zip(*columns.values(), strict=True))


def with_holes(values, code, share, rng):
    return [code if rng.random() < share else value for value in values]


def money(clean, rng):
    spend = [f"(${-value:,.2f})" if value < 0 else f"${value:,.2f}" for value in clean["spend"]]
    return clean | {"spend": spend}, {}, [], ["'spend' (numbers in $, with thousands separated by a comma)"]


def percent_and_dashes(clean, rng):
    share = with_holes([f"{value:.1f}%" for value in clean["share"]], "-", 0.1, rng)
    told = ["'share' (percent: 12.0% is read as 12)", "words that are read as missing: 'share' ('-')"]
    return clean | {"share": share}, {}, [], told


def codes(clean, rng):
    dirty = clean | {"age": with_holes(clean["age"], 999, 0.15, rng)}
    return dirty, {}, ["--na", "age=999"], ["missing code are read as missing: 'age'"]


def dates(clean, rng):
    since = with_holes([day.strftime("%d/%m/%Y") for day in clean["since"]], "NA", 0.05, rng)
    names = [f"Zoë {k}" for k in range(N)]
    told = [
        "'since' (dates, written as day/month/year",
        "'since' ('NA')",
        "read as cp1252",
        "'name' is taken as the names",
    ]
    return {"name": names, **clean, "since": since}, {"encoding": "cp1252"}, [], told


def decimal_commas(clean, rng):
    spend = [f"{value:,.2f}".translate(str.maketrans(",.", ".,")) for value in clean["spend"]]
    share = [str(value).replace(".", ",") for value in clean["share"]]
    told = [
        "'spend' (numbers, with decimal comma and thousands separated by a point)",
        "numbers with a decimal comma: 'share'",
    ]
    return clean | {"spend": spend, "share": share}, {"separator": ";"}, [], told


def answers_and_skips(clean, rng):
    asked = rng.random(N) < 0.8
    dirty = dict(clean)
    for name in ("q1", "q2"):
        dirty[name] = WORDS[clean[name] - 1]
    for name in ("q3", "q4"):  # asked only if another answer was yes
        dirty[name] = [
            "n/a" if not was else 9 if rng.random() < 0.08 else value
            for was, value in zip(asked, clean[name])
        ]
    dirty["zip"] = [f"{code:05d}" for code in rng.integers(50_000, size=N)]
    dirty["remark"] = [f"came by tram {k % 90} and was happy" for k in range(N)]
    told = [
        "words that are read as missing: 'q3' ('n/a'), 'q4' ('n/a')", "missing code are read as missing: 'q3'", "'zip'",
        "looks like names or remarks: 'remark'",
    ]  # fmt: skip
    return dirty, {}, ["--na", "q3=9", "--na", "q4=9"], told


@pytest.fixture(scope="module")
def clean_score(tmp_path_factory):
    clean, z, _ = planted()
    return score(tmp_path_factory.mktemp("clean"), clean, z, {}, [])


def score(folder, columns, z, form, options):
    write(folder / "table.csv", columns, **form)
    assert main(["cluster", str(folder / "table.csv"), *options, *QUICK]) == 0
    with open(folder / "table-partita" / "labels.csv", encoding="utf-8") as file:
        return adjusted_rand(z, np.array([row["group"] for row in csv.DictReader(file)]))


@pytest.mark.parametrize("make", [money, percent_and_dashes, codes, dates, decimal_commas, answers_and_skips])
def test_a_dirty_file_gives_the_groups_of_the_clean_one(tmp_path, capsys, clean_score, make):
    clean, z, rng = planted()
    dirty, form, options, told = make(clean, rng)
    capsys.readouterr()
    found = score(tmp_path, dirty, z, form, options)
    printed = capsys.readouterr().err
    print(make.__name__, round(found, 3), "clean", round(clean_score, 3))
    assert clean_score > 0.8 and found >= 0.95 * clean_score
    for words in told:
        assert words in printed, printed
    with open(tmp_path / "table-partita" / "columns.csv", encoding="utf-8") as file:
        assert [row["column"] for row in csv.DictReader(file)] == [name for name in dirty if name != "name"]


def test_a_code_that_nobody_declared_is_named_with_the_remedy(tmp_path, capsys):
    clean, z, rng = planted()
    dirty, *_ = codes(clean, rng)
    score(tmp_path, dirty, z, {}, ["--verbose"])
    printed = capsys.readouterr()
    assert "may be missing codes: 'age' (999 in " in printed.err and "--na column=code" in printed.err
    assert printed.out.startswith("column") and "missing code? 999" in printed.out  # the account comes first


def test_codes_and_kinds_of_many_columns(tmp_path, capsys):
    clean, z, rng = planted()
    dirty = clean | {name: with_holes(clean[name], 9, 0.1, rng) for name in ("q1", "q2", "q3", "q4")}
    score(tmp_path, dirty, z, {}, ["--na", "9", "-", "--kind", "q*=real", "--kind", "q4=categorical"])
    printed = capsys.readouterr()
    assert "real: spend, share, age, q1, q2, q3; date: since; categorical: q4" in printed.out
    assert "missing code are read as missing" in printed.err and all(
        f"'q{j}' (" in printed.err for j in (1, 2, 3, 4)
    )
    assert main(["cluster", str(tmp_path / "table.csv"), "--na", "salary=9"]) == 2
    assert "no column 'salary'" in capsys.readouterr().err
    assert main(["cluster", str(tmp_path / "table.csv"), "--encoding", "klingon"]) == 2
    assert "no encoding 'klingon'" in capsys.readouterr().err


def test_repeated_and_constant_columns_are_named(tmp_path, capsys):
    clean, z, _ = planted()
    score(tmp_path, clean | {"age_again": clean["age"], "same": ["x"] * N}, z, {}, [])
    printed = capsys.readouterr().err
    assert "columns that repeat another one count twice: 'age_again' (repeats 'age')" in printed
    assert "constant columns carry no information: 'same'" in printed


TITLE = "Customers of May,,\n,,\n"
BODY = "name,spend,visits\n" + "".join(f"c{i},{10 + 90 * (i % 2) + i % 7},{i % 5}\n" for i in range(60))


def test_lines_that_are_no_part_of_the_table_are_left_out(tmp_path, capsys):
    (tmp_path / "plain.csv").write_text(BODY)
    (tmp_path / "titled.csv").write_text(
        TITLE + BODY.replace("\n", "\n(text),(euro),(number)\n", 1) + "Total,1,1\n"
    )
    found = [
        main(["cluster", str(tmp_path / name), *QUICK, "--output", "table", *skip])
        for name, skip in (("plain.csv", []), ("titled.csv", ["--skip", "1-2,4,65"]))
    ]
    assert found == [0, 0]
    plain, titled = ((tmp_path / f"{name}-partita" / "table.csv").read_text() for name in ("plain", "titled"))
    assert plain == titled
    assert main(["report", str(tmp_path / "titled-partita")]) == 0  # which reads the same lines
    capsys.readouterr()
    assert main(["cluster", str(tmp_path / "titled.csv"), "--skip", "first"]) == 2
    assert "--skip 1-3" in capsys.readouterr().err


def test_a_title_above_the_names_is_noted(tmp_path, capsys):
    (tmp_path / "table.csv").write_text(TITLE + BODY)
    assert main(["cluster", str(tmp_path / "table.csv"), *QUICK]) == 0
    assert "which are left out: 'Customers of May' (--skip 0 keeps all lines)" in capsys.readouterr().err
    (tmp_path / "short.csv").write_text("Customers of May\n" + BODY)
    assert main(["cluster", str(tmp_path / "short.csv"), "--skip", "0", *QUICK]) == 2
    assert "leave out lines above the table (--skip 1-3)" in capsys.readouterr().err


def test_infinity_is_missing_if_it_is_declared(tmp_path, capsys):
    (tmp_path / "table.csv").write_text(BODY.replace("c3,103", "c3,inf"))
    assert main(["cluster", str(tmp_path / "table.csv"), *QUICK]) == 2
    assert "give --na inf if it means missing" in capsys.readouterr().err
    assert main(["cluster", str(tmp_path / "table.csv"), *QUICK, "--na", "inf"]) == 0
    assert "'spend' ('inf')" in capsys.readouterr().err


def test_the_index_that_pandas_writes_names_the_rows(tmp_path, capsys):
    lines = BODY.splitlines()
    rows = [f"{(i * 7) % 40},{line}" for i, line in enumerate(lines[1:])]  # some numbers twice
    (tmp_path / "table.csv").write_text("\n".join([f",{lines[0]}", *rows]) + "\n")
    assert main(["cluster", str(tmp_path / "table.csv"), *QUICK]) == 0
    assert "column 'column_1' is taken as the names of the rows" in capsys.readouterr().err
