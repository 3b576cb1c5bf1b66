"""The box on the data and the portraits of the groups in a real browser."""

import pytest

PHONE, DESK = 390, 1100
BOX = "document.querySelector('.data')"


@pytest.mark.parametrize("width", [DESK, PHONE])
@pytest.mark.parametrize("dark", [False, True])
def test_the_page_is_quiet_and_fits(browser, portrait_page, width, dark):
    browser.open(portrait_page, width, dark=dark)
    assert browser.complaints() == [] and browser.requests() == []
    browser.run("document.querySelectorAll('details').forEach(e => { e.open = true; })")
    assert browser.run("document.documentElement.scrollWidth") == width


def test_the_box_on_the_data_comes_before_the_answer_and_names_what_is_odd(browser, portrait_page):
    browser.open(portrait_page)
    text = browser.run(f"{BOX}.textContent")
    assert "120 rows and 5 columns" in text and "is missing" in text and "is constant" in text
    assert "missing code? -999" in text and "1 row repeats an earlier one" in text
    after = f"{BOX}.compareDocumentPosition(document.querySelector('.answer'))"
    assert browser.run(after) & 4  # DOCUMENT_POSITION_FOLLOWING


def test_the_fold_out_opens_by_keys(browser, portrait_page):
    browser.open(portrait_page)
    hidden = f"{BOX}.querySelector('table').checkVisibility()"
    assert not browser.run(hidden)
    browser.run(f"{BOX}.querySelector('summary').focus()")
    assert browser.run("document.activeElement.tagName") == "SUMMARY"
    for kind in ("keyDown", "keyUp"):
        browser.send(
            "Input.dispatchKeyEvent",
            type=kind,
            key="Enter",
            code="Enter",
            windowsVirtualKeyCode=13,
            text="\r",
        )
    assert browser.run(hidden)
    assert browser.run(f"{BOX}.querySelectorAll('tr').length") == 6


def test_each_group_has_a_portrait_with_drawn_pictures(browser, portrait_page):
    browser.open(portrait_page)
    cards = browser.run(
        "[...document.querySelectorAll('.card')].map(card => [card.querySelector('h3').textContent,"
        " [...card.querySelectorAll('svg.small-multiple')].map(e => [e.getBoundingClientRect().width,"
        " e.querySelectorAll('.whole').length, e.querySelectorAll('.here').length])])"
    )
    assert len(cards) == 3 and len({title for title, _ in cards}) == 3
    assert all(pictures and all(w > 100 and a and a == b for w, a, b in pictures) for _, pictures in cards)
    color = "getComputedStyle(document.querySelector('.card.k{} .here')).fill"
    assert browser.run(color.format(0)) != browser.run(color.format(1))


def test_text_from_the_data_stays_text(browser, portrait_page):
    browser.open(portrait_page)
    assert not browser.run("document.title").startswith("taken")
    assert browser.run("document.querySelectorAll('img, iframe').length") == 0
    assert browser.run("document.querySelectorAll('script').length") == 1
    assert "<script>" in browser.run("document.body.textContent")


def test_a_pointer_on_a_picture_reads_it(browser, portrait_page):
    browser.open(portrait_page).hover("svg.small-multiple")
    assert "group 1" in browser.run("document.querySelector('#tip').textContent")
