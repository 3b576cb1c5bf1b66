from benchmarks import regression


def test_keys_with_points_are_found():
    document = {"quality": {"s = 2.0": {"gibbs": {"nmi": {"median": 0.9}}}}, "data1_s2.0": 3}
    assert regression.look_up(document, "quality.s = 2.0.gibbs.nmi.median") == 0.9
    assert regression.look_up(document, "data1_s2.0") == 3
    assert regression.look_up(document, "quality.nothing") is None


def test_a_fall_is_marked_and_noise_is_not():
    ratio = next(figure for figure in regression.FIGURES if figure.ratio)
    quality = next(figure for figure in regression.FIGURES if not figure.ratio)
    text, n_worse = regression.page(
        {ratio.words: 10.0, quality.words: 0.90}, {ratio.words: 14.0, quality.words: 0.93}
    )
    assert n_worse == 0 and "worse" not in text
    text, n_worse = regression.page(
        {ratio.words: 10.0, quality.words: 0.80}, {ratio.words: 21.0, quality.words: 0.93}
    )
    assert n_worse == 2 and text.count("**worse**") == 2
    assert "not run" in regression.page({ratio.words: 1.0}, {})[0]


def test_the_last_run_is_read(tmp_path):
    (tmp_path / "dp_gaussian.json").write_text('{"summary": {"ratio": 16}}')
    assert regression.found(tmp_path) == {regression.FIGURES[1].words: 16.0}


def test_critical_differences_are_those_of_the_tables():
    """Nemenyi at 5%: q = 2.343 for three methods, 2.728 for five (Demsar 2006, table 5)."""
    import math

    import draw_results
    import numpy as np
    import pytest

    for k, q in ((3, 2.343), (5, 2.728), (10, 3.164)):
        expected = q * math.sqrt(k * (k + 1) / (6 * 14))
        assert draw_results.critical_difference(k, 14) == pytest.approx(expected, abs=2e-3)
    assert draw_results.cliques(np.array([1.0, 1.4, 3.0, 3.1]), 0.5) == [(0, 1), (2, 3)]
