import json

import pytest
from paper_tables import engines, markdown, ofv
from paper_tables import topchy as topchy_tables

from benchmarks.papers import laca, nbce, topchy


def test_a_cell_leaves_out_what_is_not_there():
    assert markdown.cell(12.34, 1) == "12.3"
    assert markdown.cell(12.34, 1, error=0.41, printed=13.5) == "12.3 (0.4) [13.5]"
    assert markdown.cell(1.3171, 3, printed=5.63, printed_digits=2) == "1.317 [5.63]"


def test_lists_and_counts():
    assert markdown.bars({"fast": True, "small": False}) == "- met: fast\n- **not met**: small\n"
    assert markdown.count(x > 1 for x in (1, 2, 3)) == "2 of 3"
    assert markdown.listed(["a", "b", "c"]) == "a, b and c" and markdown.listed([]) == "none"
    assert markdown.p_value(0.0003) == "p < 0.001" and markdown.p_value(0.0404) == "p = 0.040"


def test_printed_figures_are_under_their_sets():
    noise = nbce.printed_values("table_3_synthetic")
    assert noise["MM"]["noise 20%"] == 21.20 and len(noise["NBCE"]) == 4
    train = nbce.printed_values("table_4_train")
    assert train["BCE"]["glass"] == 0.99 and train["MM"]["control_chart"] == 4.34
    assert list(nbce.printed_values("table_7_inference")["NBCE_vb"]) == list(nbce.SETS[:5])
    assert nbce.printed_values("table_7_held_out") == {}


def test_differences_are_paired_over_the_sets():
    rows = [
        {"data": name, "A": {"test": a}, "B": {"test": b}, "C": {"test": 1.0}}
        for name, a, b in (("x", 1.0, 2.0), ("x", 2.0, 3.0), ("y", 3.0, 2.0), ("y", 3.0, 2.0))
    ]
    found = nbce.compared(rows, "test", ("A", "B", "C"))
    assert found["means"]["A"] == {"x": 1.5, "y": 3.0} and found["standard_errors"]["A"] == {
        "x": 0.5,
        "y": 0.0,
    }
    assert found["differences"]["A - B"] == {"mean": 0.0, "standard_error": 1.0, "lower_on": "1 of 2"}
    assert set(found["differences"]) == {"A - B", "A - C", "B - C"}
    assert nbce.standard_error([1.0], 3) is None


def test_laca_is_counted_at_every_k_and_at_the_classes():
    figures = {
        "a": {"k-LACA": {"nmi": [0.5, 0.6]}, "MCLA": {"nmi": [0.6, 0.6]}},
        "b": {"k-LACA": {"nmi": [0.9, 0.1]}, "MCLA": {"nmi": [0.8, 0.2]}},
    }
    assert laca.no_lower(figures, "nmi", "MCLA") == [False, True, True, False]
    assert laca.no_lower(figures, "nmi", "MCLA", at_classes=True) == [False, True]
    found = laca.curves({"k-LACA": [[{"f": 0.2, "nmi": 0.1}], [{"f": 0.4, "nmi": 0.1}]]})
    assert found["k-LACA"] == {"f": [0.3], "f_error": [0.1], "nmi": [0.1], "nmi_error": [0.0]}


def test_the_example_of_topchy_gives_the_printed_consensus():
    found = topchy.table_1(n_starts=20)
    assert found["log_likelihood"] == pytest.approx(-29.9917, abs=1e-4)
    assert found["reach_it_and_give_printed_consensus"] == found["reach_it"] > 10
    assert found["largest_difference"]["converged"] < 0.02
    assert topchy_tables.twelve_objects(json.loads(json.dumps(found))).count("\n| y") == 12


def test_methods_are_counted_at_both_separations():
    def reached(*yes):
        return dict(zip(ofv.CELLS, yes, strict=True))

    assert ofv.above_and_below(reached(*[False] * 6)) == "below its printed row in every column"
    assert ofv.above_and_below(reached(True, True, False, True, False, False)) == (
        "against its printed row: Data 1 at or above, Data 2 at or above at s = 2.0 only, Data 3 below"
    )


def test_a_peer_is_compared_with_engines_that_agree_as_well():
    found = {
        "peer": {"middle_s": 1.0, "quality": 0.9},
        "ours": {"middle_s": 2.0, "quality": 0.9},
        "rough": {"middle_s": 0.1, "quality": 0.5},
    }
    assert engines.is_fastest("peer", ["peer"], found)
    assert not engines.is_fastest("peer", ["peer"], {**found, "quick": {"middle_s": 0.5, "quality": 0.89}})


def test_engines_that_failed_are_reported():
    assert engines.not_measured({"peers_not_there": ["lace"], "failed": {"LACA": "memory"}}) == (
        "- lace was not installed when this was run.\n- LACA failed: memory\n"
    )
    assert "nothing failed" in engines.not_measured({"peers_not_there": [], "failed": {}})
