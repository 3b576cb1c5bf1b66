import base64
import hashlib
import re
import warnings
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest

from partita import LatentClass, Mixture
from partita.dispatch import interpreted
from partita.report import write_report
from partita.report.charts import MAX_POINTS, line, scatter
from partita.report.columns import MAX_ODD, data_box
from partita.summaries import compare_with_truth, summarize_clusters
from partita.table import read_table
from partita.wording import number, one_line, safe

NASTY = "<script>alert('x')</script>"
LONG = "b" * 10_000
VOID = {"meta", "wbr", "br"}


class Balanced(HTMLParser):
    """Every tag that opens closes, in order; scripts and references to elsewhere are noted."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.references, self.text = [], set(), [], []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.references += [
            (name, value) for name, value in attrs if name in ("src", "href", "xlink:href", "action", "data")
        ]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def read(path):
    page = path.read_text(encoding="utf-8")
    parser = Balanced()
    parser.feed(page)
    parser.close()
    assert parser.open == []
    return page, parser


@pytest.fixture(scope="module")
def page(model, frame, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    with interpreted():
        write_report(model, path, X=frame, title="Tall & wide", truth=["a"] * 20 + ["b"] * 19 + [None])
    return path


def test_the_page_opens_with_the_answer(page):
    text = " ".join("".join(read(page)[1].text).split())
    answer = text[text.index("2 groups") :]
    assert answer.startswith("2 groups (the requested number) in 40 rows and 6 columns")
    assert "adjusted Rand index with the known groups is 1.00" in answer
    data = text[text.index("The data. 40 rows and 6 columns") : text.index("2 groups (the requested number)")]
    assert "2 cells are missing" in data and "Sizes of the groups" not in data
    assert "Tall & wide" in text


def test_the_page_needs_nothing_from_elsewhere(page):
    content, parser = read(page)
    assert (
        "http:" not in content
        and "https:" not in content
        and "url(" not in content
        and "@import" not in content
    )
    assert all(value.startswith("data:image/png;base64,") for _, value in parser.references)
    assert not parser.tags & {"link", "img", "iframe", "object", "embed"}
    assert "default-src 'none'" in content


def test_the_only_script_is_the_one_that_the_policy_names(page):
    content, _ = read(page)
    scripts = re.findall(r"<script>(.*?)</script>", content, flags=re.DOTALL)
    known = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    assert len(scripts) == content.count("<script") == 1 and f"script-src 'sha256-{known}'" in content


def test_text_from_the_data_is_escaped_and_shortened(page):
    content, parser = read(page)
    assert content.count("<script") == 1 and NASTY not in content
    assert safe(NASTY, 30)[:20] in content
    assert LONG[:100] not in content
    assert page.stat().st_size < 100_000


def test_a_page_for_light_dark_phone_and_paper(page):
    content = page.read_text(encoding="utf-8")
    for part in ("prefers-color-scheme:dark", "@media print", "max-width:34rem", 'name="viewport"'):
        assert part in content


def test_the_call_and_versions_are_there(page):
    content = page.read_text(encoding="utf-8")
    assert "Mixture(family={" in content and "n_clusters=2" in content and "random_state=0" in content
    assert re.search(r"numpy \d+\.\d+", content) and "Python 3." in content


def test_latent_classes_have_their_criteria(classes, tmp_path):
    content, _ = read(write_report(classes, tmp_path / "classes.html"))
    assert "BIC" in content and "No random_state was given" in content


def test_a_title_from_outside_is_escaped(model, tmp_path):
    content, _ = read(write_report(model, tmp_path / "t.html", title=NASTY, names=[NASTY] * 40))
    assert content.count("<script") == 1 and NASTY not in content


def test_wrong_tables_and_truths_are_refused(model, frame, tmp_path):
    with pytest.raises(ValueError, match="39 rows and the model was fitted to 40"):
        write_report(model, tmp_path / "x.html", X=frame.iloc[:39])
    with pytest.raises(ValueError, match="one group per row, 40 in all"):
        write_report(model, tmp_path / "x.html", truth=[1, 2])
    assert list(tmp_path.iterdir()) == []


def test_the_columns_that_differ_come_first(model):
    found = summarize_clusters(model)
    for traits in found.traits:
        assert [t.column for t in traits][-1] == NASTY  # noise
        assert all(0 <= t.strength <= 1 for t in traits)
        assert {t.column for t in traits[:2]} <= {"height", "width", "answer", "flag", "visits"}
    assert found.sizes.tolist() == [20, 20]
    assert found.informative_columns[-1][0] == NASTY


def test_information_is_that_of_a_label_where_a_column_decides(model):
    # two groups of equal size, twelve standard deviations apart: one cell tells all there is to know
    traits = {t.column: t.strength for t in summarize_clusters(model).traits[0]}
    assert traits["width"] == pytest.approx(1.0, abs=0.02)
    assert traits[NASTY] < 0.1


def test_objects_of_unknown_group_are_left_out(model):
    agreement = compare_with_truth(model, ["a"] * 20 + ["b"] * 10 + [np.nan] * 5 + [None] * 5)
    assert agreement.table.sum() == 30 and agreement.names == ["a", "b"]


def test_one_cluster_is_no_error(tmp_path, fit):
    X = np.random.default_rng(0).normal(size=(10, 2))
    one = fit(Mixture("gaussian", inference="em", n_clusters=1, n_init=1, max_iter=3), X)
    with interpreted():
        content, _ = read(write_report(one, tmp_path / "one.html", X=X))
    assert "1 group" in content and "uncertain</strong>" not in content


def test_many_columns_rows_and_iterations_are_cut_and_it_says_so(tmp_path, fit):
    rng = np.random.default_rng(0)
    n = 3 * MAX_POINTS
    svg, drawn, seen = scatter(
        rng.normal(size=n), rng.normal(size=n), np.zeros(n, int), np.ones(n, bool), ("a", "b")
    )
    assert drawn == MAX_POINTS and seen == n and svg.count("<circle") == drawn
    svg, drawn = line(np.arange(5000.0))
    assert drawn < 5000 and svg.count(",") < 3000
    X = rng.normal(size=(6, 40))
    wide = fit(Mixture("gaussian", inference="em", n_clusters=2, n_init=1, max_iter=2), X)
    assert "of 40 columns" in write_report(wide, tmp_path / "wide.html").read_text(encoding="utf-8")


def test_weights_empty_clusters_and_an_early_end_are_told(tmp_path, fit):
    rng = np.random.default_rng(0)
    X, w = (
        np.repeat([[0, 0], [1, 1]], 15, axis=0),
        rng.uniform(0.5, 2, 30),
    )  # two sorts of rows: two clusters at most
    model = fit(LatentClass(4, n_init=1, max_iter=1, tol=0), X, sample_weight=w)
    content, _ = read(write_report(model, tmp_path / "w.html"))
    assert "The sum of their weights is" in content and "sample_weight=" in content
    assert "of the 4 requested groups" in content
    assert "max_iter" in content[content.index("<p>Notes:") : content.index("Sizes of the groups")]


def test_an_unfitted_model_is_refused(tmp_path):
    with pytest.raises(Exception, match="not fitted"):
        write_report(Mixture(), tmp_path / "x.html")


@pytest.mark.parametrize("text", ["\x00\x1b[31m", "\u202edesrever", "\ud800", "a\nb\tc", "é" * 500, ""])
def test_odd_text_stays_on_one_line_and_can_be_written(text):
    out = one_line(text, 20)
    assert len(out) <= 20 and "\n" not in out and "\u202e" not in out
    out.encode("utf-8")


def test_numbers_are_short():
    assert [number(x) for x in (0.0, 1234.5, -0.00001, float("nan"), 12.0)] == [
        "0",
        "1,234",
        "-1e-05",
        "nan",
        "12",
    ]


def test_import_without_matplotlib():
    import subprocess
    import sys

    code = "import sys; sys.modules['matplotlib'] = None; import partita.report, partita.plotting"
    with warnings.catch_warnings():
        subprocess.run([sys.executable, "-c", code], check=True)


def test_suspected_codes_come_first_in_the_box_on_the_data(rng):
    skewed = {f"s{j}": rng.lognormal(0.0, 2.0, 90) for j in range(8)}
    table = read_table({**skewed, "pain": np.where(rng.random(90) < 0.1, 999, rng.integers(0, 11, 90))})
    box = data_box(SimpleNamespace(schema_=table.schema))
    shown = re.findall(r"<li><em>(\w+)</em>", box)
    assert len(shown) == MAX_ODD and shown[0] == "pain"
