import math

import numpy as np
import pytest

from partita.datasets import load_visitors

REAL = ["minutes_inside", "spend"]
COUNT = ["rooms_visited", "photos_taken"]
BINARY = ["member", "audio_guide"]
LEVELS = {
    "ticket": {"full", "family", "student", "senior"},
    "arrival": {"foot", "bus", "car", "train"},
}


def test_kinds_and_missing_cells():
    frame = load_visitors().frame
    assert list(frame) == REAL + COUNT + BINARY + list(LEVELS)
    assert all(column.shape == (600,) for column in frame.values())
    for name in REAL + COUNT:
        assert frame[name].dtype == float
        assert np.nanmin(frame[name]) >= 0
    for name in COUNT:
        seen = frame[name][~np.isnan(frame[name])]
        np.testing.assert_array_equal(seen, np.round(seen))
    for name in BINARY:
        assert set(frame[name]) == {True, False, None}
    for name, levels in LEVELS.items():
        assert set(frame[name]) == levels | {None}
    holes = sum(sum(x is None or x != x for x in column) for column in frame.values())
    assert 0.04 < holes / (600 * len(frame)) < 0.08


def test_groups():
    visitors = load_visitors()
    assert visitors.target_names == ["tourist", "family", "student", "connoisseur"]
    assert np.bincount(visitors.target).tolist() == [240, 180, 120, 60]
    assert "museum" in visitors.description
    # shuffled: the first rows are not all of one group
    assert len(set(visitors.target[:20])) > 1


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames_hold_the_same_cells(library):
    pytest.importorskip(library)
    nw = pytest.importorskip("narwhals")
    expected = load_visitors().frame
    frame = nw.from_native(load_visitors(as_frame=library).frame, eager_only=True)
    assert frame.columns == list(expected)
    for name, column in expected.items():
        for left, right in zip(frame[name].to_list(), column, strict=True):
            if right is None or right != right:
                assert left is None or math.isnan(left)
            else:
                assert left == right


def test_unknown_frame():
    with pytest.raises(ValueError, match="'polars'"):
        load_visitors(as_frame="excel")


def test_every_call_gives_fresh_arrays():
    load_visitors().frame["spend"][:] = 0
    assert np.nanmax(load_visitors().frame["spend"]) > 0
