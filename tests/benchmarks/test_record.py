import json

import pytest

from benchmarks.record import as_text


def test_scalar_lists_stay_on_one_line():
    document = {"times": [0.5, 1.25, None], "points": [{"n": 1, "names": ["a", "b"]}, []], "none": {}}
    text = as_text(document)
    assert json.loads(text) == document
    assert ' "times": [0.5, 1.25, null],' in text.splitlines()
    assert '   "names": ["a", "b"]' in text.splitlines()


@pytest.mark.parametrize("value", [3, "x", [], {}, [[1, 2], [3]], {"a": {"b": [{}]}}])
def test_text_reads_back_as_the_value(value):
    assert json.loads(as_text(value)) == value
