"""Numbers and dates in text: which formats are found, and which are refused."""

import numpy as np
import pytest

from partita.table.formats import TextFormat, find_format

NUMBERS = [
    (["$340.76", "$1,340.76"], [340.76, 1340.76]),
    (["€ 5", "€ 12,50"], [5, 12.5]),
    (["5 EUR", "1.250 EUR"], [5, 1250]),
    (["1.477 €"], [1477]),
    (["CHF 1'250.50", "CHF 3"], [1250.5, 3]),
    (["12.0%", "0", "3 %"], [12, 0, 3]),
    (["1,477", "1,5"], [1.477, 1.5]),
    (["1.477", "1,5"], [1477, 1.5]),
    (["1.477,18", "399"], [1477.18, 399]),
    (["1,234", "999"], [1234, 999]),
    (["1.234", "999"], [1.234, 999]),
    (["0,123", "1,234"], [0.123, 1.234]),
    (["1 234,5", "2\u00a0345,5", "3\u202f456"], [1234.5, 2345.5, 3456]),
    (["1,00,000", "12,345"], [100000, 12345]),
    (["(1,234)", "5", "-7", "8-", "\u22129"], [-1234, 5, -7, -8, -9]),
    (["($3.50)", "-$4", "$-5", "$6"], [-3.5, -4, -5, 6]),
    (["1e3", "2.5E-2", ".5", "+4"], [1000, 0.025, 0.5, 4]),
]


@pytest.mark.parametrize(("texts", "values"), NUMBERS, ids=lambda one: str(one[0]))
def test_numbers(texts, values):
    found = find_format(texts)
    assert found.holds == "number"
    np.testing.assert_allclose(found.read(texts), values)
    assert TextFormat.from_dict(found.to_dict()) == found


@pytest.mark.parametrize(
    "texts",
    [
        ["$5", "€5"],  # two currencies
        ["12%", "0.12"],  # a percentage beside a fraction
        ["1,5", "1.5"],  # both marks are decimal
        ["1,2,3"],
        ["1.234,5.6"],
        ["00501", "10115"],
        ["12345678901234567890"],
        ["(5", "6)"],
        ["-(5)"],
        ["--5"],
        ["five", "6"],
        ["5 6"],
        ["1-2"],
        ["red"],
        ["2024-13-45"],
        [],
    ],
    ids=str,
)
def test_text_that_stays_text(texts):
    assert find_format(texts) is None


def test_the_file_decides_where_the_column_does_not():
    assert find_format(["1,234"], ",").read(["1,234"]) == [1.234]
    assert find_format(["1.234"], ",").read(["1.234"]) == [1234.0]
    assert find_format(["1.5"], ",").read(["1.5"]) == [1.5]


DATES = [
    (["1970-01-02", "1970-01-03 12:00"], [1, 2.5]),
    (["1970-01-02T00:00:00Z", "1970-01-02T02:00:00+02:00"], [1, 1]),
    (["31/01/1970", "01/02/1970"], [30, 31]),
    (["01/31/1970", "02/01/1970"], [30, 31]),
    (["02.01.1970", "3.1.1970"], [1, 2]),
    (["02 Jan 1970", "3 Feb 1970"], [1, 33]),
    (["January 2, 1970"], [1]),
    (["02-Jan-1970"], [1]),
    (["1970/01/02"], [1]),
    (["02.01.1970 06:00"], [1.25]),
    (["06:00", "18:30"], [0.25, 18.5 / 24]),
]


@pytest.mark.parametrize(("texts", "days"), DATES, ids=lambda one: str(one[0]))
def test_dates(texts, days):
    found = find_format(texts)
    assert found.holds == "date" and not found.ambiguous
    np.testing.assert_allclose(found.read(texts), days)
    assert TextFormat.from_dict(found.to_dict()) == found


def test_day_and_month_that_nothing_decides():
    slashes, points = find_format(["03/04/1970", "01/02/1970"]), find_format(["03.04.1970"])
    assert slashes.ambiguous and slashes.pattern == "%m/%d/%Y" and "the other way round" in slashes.describe()
    assert not points.ambiguous and points.pattern == "%d.%m.%Y"


def test_texts_of_another_format_are_not_read():
    dollars = find_format(["$5"])
    assert np.isnan(dollars.read(["€5", "five", "5%", "1,5", ""])).all()
    assert np.isnan(find_format(["2024-01-31"]).read(["31.01.2024", "soon"])).all()
