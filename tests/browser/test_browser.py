"""The page in a real browser: it is drawn, it asks nobody for anything, and it answers a pointer."""

import pytest

PHONE, DESK = 390, 1100


@pytest.mark.parametrize("width", [DESK, PHONE])
@pytest.mark.parametrize("dark", [False, True])
def test_no_complaint_and_no_request(browser, page, width, dark):
    browser.open(page, width, dark=dark)
    assert browser.complaints() == [] and browser.requests() == []


@pytest.mark.parametrize("width", [DESK, PHONE])
def test_nothing_is_wider_than_the_window(browser, page, tree_page, width):
    for one in (page, tree_page):
        assert browser.open(one, width).run("document.documentElement.scrollWidth") == width


def test_the_figures_are_drawn(browser, page):
    boxes = browser.open(page).run(
        "[...document.querySelectorAll('svg')].map(e => [e.getAttribute('aria-label'), e.getBoundingClientRect().width,"
        " e.getBoundingClientRect().height, e.children.length])"
    )
    labels = [box[0] for box in boxes]
    for name in ("Probability of each number of groups", "Co-clustering", "Histogram of confidence"):
        assert name in labels
    assert {"Confidence by object", "Columns by groups", "Agreement of members"} <= set(labels)
    assert all(width > 100 and height > 30 and n > 2 for _, width, height, n in boxes)
    # the image inside the heat map is decoded: full color on the diagonal, next to none between far clusters
    width, height, same, other = browser.run(
        "(async () => {const i = new Image(); i.src = document.querySelector('svg image').getAttribute('href');"
        "await i.decode(); const c = document.createElement('canvas'); c.width = i.width; c.height = i.height;"
        "const g = c.getContext('2d'); g.drawImage(i, 0, 0);"
        "const alpha = (x, y) => g.getImageData(x, y, 1, 1).data[3];"
        "return [i.naturalWidth, i.naturalHeight, alpha(5, 5), alpha(i.width - 1, 0)];})()"
    )
    assert (width, height, same) == (120, 120, 254) and other < 80


def test_a_pointer_on_the_heat_map_reads_the_pair(browser, page):
    browser.open(page)
    assert browser.run("document.querySelector('#tip').hidden")
    browser.hover("svg[aria-label=Co-clustering] .sense", dx=-3, dy=-3)
    text = browser.run("document.querySelector('#tip').textContent")
    assert "together: " in text and text.count("group ") == 2 and text.endswith("%")
    assert not browser.run("document.querySelector('#tip').hidden")
    browser.hover("h1")
    assert browser.run("document.querySelector('#tip').hidden")
    assert browser.complaints() == []


def test_the_heat_map_reads_the_cell_that_is_pointed_at(browser, page):
    sense = "svg[aria-label=Co-clustering] .sense"
    half = browser.open(page).run(f"document.querySelector('{sense}').getBoundingClientRect().width / 2 - 1")
    read = "document.querySelector('#tip').textContent"
    for sign in (-1, 1):  # the first and the last object with themselves
        browser.hover(sense, dx=sign * half, dy=sign * half)
        first, second, value = browser.run(read).split("\n")
        assert first == second and value == "together: 100%"
    browser.hover(sense, dx=half, dy=-half)  # the first with the last: another cluster
    first, second, value = browser.run(read).split("\n")
    assert "group 1" in first and "group 3" in second and int(value[10:-1]) < 30


def test_a_pointer_on_a_bar_reads_its_number(browser, page):
    browser.open(page).hover("svg[aria-label='Probability of each number of groups'] rect.after")
    assert "groups: " in browser.run("document.querySelector('#tip').textContent")


def test_the_tip_stays_in_the_window(browser, page):
    browser.open(page, PHONE).hover("svg[aria-label=Co-clustering] .sense", dx=140, dy=0)
    left, right = browser.run(
        "(() => {const b = document.querySelector('#tip').getBoundingClientRect(); return [b.left, b.right];})()"
    )
    assert 0 <= left < right <= PHONE


def test_a_click_highlights_a_cluster_everywhere(browser, page):
    browser.open(page).click("button.pick[data-k='1']")
    shown = (
        "[...document.querySelectorAll('{}')].map(e => [e.dataset.k, Number(getComputedStyle(e).opacity)])"
    )
    for where in ("svg circle[data-k]", "svg rect.group", ".card[data-k]", "table.sort td[data-k]"):
        found = browser.run(shown.format(where))
        assert {k for k, _ in found} >= {"0", "1", "2"}, where
        assert all((opacity == 1) == (k == "1") for k, opacity in found), where
    assert (
        browser.run("document.querySelector(\"button.pick[data-k='1']\").getAttribute('aria-pressed')")
        == "true"
    )
    browser.press("Escape")
    assert browser.run("document.querySelectorAll('.on').length") == 0
    browser.click("svg[aria-label='Co-clustering'] rect.strip[data-k='2']")  # pictures are buttons, too
    assert browser.run("document.querySelector('button.pick[aria-pressed=true]').dataset.k") == "2"
    assert browser.complaints() == []


def test_a_click_on_a_heading_sorts(browser, page):
    browser.open(page)
    column = "[...document.querySelectorAll('table.sort')].find(t => t.textContent.includes('agreement'))"
    values = f"[...{column}.rows].slice(1).map(r => Number(r.cells[5].textContent))"
    browser.run(f"{column}.id = 'members'")
    for turn in (1, -1):
        browser.click("#members th:nth-child(6)")
        found = browser.run(values)
        assert len(found) == 12 and found == sorted(found)[::turn]


def test_text_from_the_data_stays_text(browser, page):
    browser.open(page)
    assert browser.run("document.title").startswith("<script>document.title")
    assert browser.run("document.querySelectorAll('script').length") == 1
    assert browser.run("document.querySelectorAll('img, iframe, a, link').length") == 0
    names = browser.run("[...document.querySelectorAll('td')].map(e => e.textContent).join('|')")
    assert "<script>" in names


def test_a_script_that_is_not_ours_does_not_run(browser, page, tmp_path):
    """Were the escaping to fail one day, the policy of the page stands."""
    broken = tmp_path / "broken.html"
    inserted = "<script>document.title = 'taken'</script><img src='x' onerror=\"document.title='taken'\">"
    broken.write_text(page.read_text(encoding="utf-8").replace("</h1>", f"</h1>{inserted}"), encoding="utf-8")
    browser.open(broken)
    assert browser.run("document.title") != "taken"
    assert browser.run("document.body.classList.contains('live')")
    assert browser.complaints()  # and the browser says so


def test_dark_and_light_differ(browser, page):
    background = "getComputedStyle(document.body).backgroundColor"
    assert browser.open(page, dark=True).run(background) != browser.open(page).run(background)


def test_the_tree_is_drawn(browser, tree_page):
    browser.open(tree_page)
    assert browser.complaints() == []
    assert browser.run("document.querySelectorAll('path.link').length") > 5
    browser.hover("svg[aria-label='Tree of merges'] circle")
    assert "in this branch" in browser.run("document.querySelector('#tip').textContent")


def test_the_pictures_can_be_taken(browser, page, tmp_path):
    for width in (DESK, PHONE):
        shot = tmp_path / f"{width}.png"
        browser.open(page, width).screenshot(shot)
        assert shot.read_bytes()[:4] == b"\x89PNG" and shot.stat().st_size > 50_000
