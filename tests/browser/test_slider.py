"""The slider over the levels of the grain, moved by a pointer, by its value and by keys."""

import numpy as np
import pytest

from partita.summaries import grain_levels

PHONE, DESK = 390, 1100
SIZE_SECTION = (
    "[...document.querySelectorAll('section')]"
    ".find(e => e.querySelector('h2')?.textContent === 'Sizes of the groups')"
)
SIZES = (
    f"[...{SIZE_SECTION}"
    ".querySelectorAll('tr')].slice(1).map(row => Number(row.cells[2].textContent.replaceAll(',', '')))"
)
COLORS = (
    "[...document.querySelectorAll('svg[aria-label=\"Objects by two columns\"] circle')]"
    ".map(e => [Number(e.dataset.tip.match(/row (\\d+)/)[1]), Number(e.dataset.k), e.getAttribute('class'),"
    " e.dataset.tip])"
)
KEYS = {"ArrowRight": 39, "ArrowLeft": 37, "Home": 36, "End": 35}


def press(browser, key):
    """A key with its code, as an input of the browser's own needs it."""
    for kind in ("rawKeyDown", "keyUp"):
        browser.send("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=KEYS[key])


def set_value(browser, at):
    """What a pointer that drags the handle does."""
    browser.run(
        "(() => {const r = document.querySelector('#level'); "
        f"r.value = {at}; r.dispatchEvent(new Event('input', {{bubbles: true}}));}})()"
    )


def check_level(browser, model, K):
    """Everything that depends on the level agrees with ``model.at(K)``."""
    labels = model.at(K).labels
    sizes = np.bincount(labels).tolist()
    assert browser.run(SIZES) == sizes
    points = browser.run(COLORS)
    assert len(points) == len(labels)
    for row, k, names, tip in points:
        assert k == labels[row] and f"k{k % 10}" in names.split() and f"group {k + 1}" in tip
    told = browser.run("document.querySelector('output').textContent")
    assert told.startswith(f"{K} groups")
    assert browser.run("document.querySelector('#level').getAttribute('aria-valuetext')") == told
    cards = browser.run(
        "[...document.querySelectorAll('.card')].map(e => [e.querySelector('h3').textContent.split(':')[0],"
        " e.querySelector('.note').textContent.split(' (')[0]])"
    )
    assert cards == [[f"group {k + 1}", f"{n} objects"] for k, n in enumerate(sizes)]
    drawn = (
        "[...document.querySelectorAll('.card')].map(e => e.querySelectorAll('svg.small-multiple').length)"
    )
    assert min(browser.run(drawn)) >= 1  # the portraits are those of the level
    assert browser.run("document.querySelectorAll('nav.legend button').length") == K
    known = browser.run(
        "[...[...document.querySelectorAll('section')].find(e => e.querySelector('h2')?.textContent === "
        "'Comparison with the known groups').querySelectorAll('tr')].slice(1)"
        ".map(row => [...row.cells].slice(1).map(cell => Number(cell.textContent)))"
    )
    expected = np.zeros((6, K), int)
    np.add.at(expected, (np.arange(len(labels)) % 6, labels), 1)
    assert known == expected.tolist()
    assert browser.run("document.querySelectorAll('g.line.here').length") == 1


@pytest.mark.parametrize("width", [DESK, PHONE])
def test_the_slider_regroups_the_page(browser, grain_page, width):
    page, model = grain_page
    levels = [level.n_clusters for level in grain_levels(model).levels]
    browser.open(page, width, dark=width == PHONE)
    assert not browser.run("document.querySelector('.grain').hidden")
    check_level(browser, model, model.n_clusters_)
    for at in (0, len(levels) - 1, 2, levels.index(model.n_clusters_)):
        set_value(browser, at)
        check_level(browser, model, levels[at])
        assert browser.run("document.documentElement.scrollWidth") == width
    assert browser.complaints() == [] and browser.requests() == []


def test_keys_move_it(browser, grain_page):
    page, model = grain_page
    levels = [level.n_clusters for level in grain_levels(model).levels]
    browser.open(page).run("document.querySelector('#level').focus()")
    press(browser, "Home")
    check_level(browser, model, levels[0])
    press(browser, "ArrowRight")
    check_level(browser, model, levels[1])
    press(browser, "End")
    check_level(browser, model, levels[-1])
    press(browser, "ArrowLeft")
    check_level(browser, model, levels[-2])
    assert browser.complaints() == []


def test_a_pointer_moves_it(browser, grain_page):
    page, model = grain_page
    levels = [level.n_clusters for level in grain_levels(model).levels]
    browser.open(page)
    x, y = browser.place("#level")
    half = browser.run("document.querySelector('#level').getBoundingClientRect().width") / 2
    for kind in ("mousePressed", "mouseReleased"):
        browser.send("Input.dispatchMouseEvent", type=kind, x=x - half + 3, y=y, button="left", clickCount=1)
    check_level(browser, model, levels[0])
    name = model.alternatives_[-1]
    at = levels.index(name.n_clusters)
    browser.click(f".jump[data-to='{at}']")
    check_level(browser, model, name.n_clusters)
    assert browser.run("document.querySelector('#level').value") == str(at)
    browser.click(f"g.line[data-to='{1}'] rect")
    check_level(browser, model, levels[1])


def test_new_tables_can_be_sorted_and_clusters_highlighted(browser, grain_page):
    page, model = grain_page
    browser.open(page)
    set_value(browser, 1)
    sizes = browser.run(SIZES)
    browser.run(f"{SIZE_SECTION}.querySelectorAll('th')[2].click()")
    assert browser.run(SIZES) == sorted(sizes)
    browser.click("nav.legend button.pick[data-k='1']")
    opacity = (
        "[...document.querySelectorAll('.card')].map(e => [e.dataset.k, Number(getComputedStyle(e).opacity)])"
    )
    assert all((value == 1) == (k == "1") for k, value in browser.run(opacity))
    set_value(browser, 2)  # the numbers of clusters are others now: nothing is highlighted
    assert {value for _, value in browser.run(opacity)} == {1}


def test_without_scripts_the_page_shows_the_answer(browser, grain_page):
    page, model = grain_page
    browser.send("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(page)
    finally:
        browser.send("Emulation.setScriptExecutionDisabled", value=False)
    assert browser.run("getComputedStyle(document.querySelector('.grain')).display") == "none"
    assert browser.run(SIZES) == np.bincount(model.labels_).tolist()


def test_the_levels_are_in_the_page_once(grain_page):
    page, model = grain_page
    text = page.read_text(encoding="utf-8")
    levels = grain_levels(model).levels
    assert text.count("<template") == 5 * (len(levels) - 1)
    assert text.count('aria-label="Objects by two columns"') == 1
