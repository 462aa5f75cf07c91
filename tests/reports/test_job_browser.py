"""A post-mortem's page in a real browser: at 1, 4 and 512 ranks, on a desk, a phone and paper."""

import pytest
import sample_job
from recorded_jobs import INDEX, diagnosis
from test_report_browser import (
    COLLISIONS,
    COLOURS,
    browser,
    contrast,
    open_everything,
    rgb,
    show,
)

from traceview.reports import html

pytestmark = pytest.mark.browser
__all__ = ["browser"]
REAL = tuple(INDEX)
SHOWN = ("one", "four", "many", *REAL)


@pytest.fixture(scope="module")
def addresses(tmp_path_factory):
    folder = tmp_path_factory.mktemp("jobs")
    made = {name: make() for name, make in sample_job.ALL.items()}
    made |= {name: diagnosis(name) for name in REAL}
    for name, found in made.items():
        (folder / f"{name}.html").write_text(html.render(found), encoding="utf-8")
    return {name: (folder / f"{name}.html").as_uri() for name in made}


@pytest.mark.parametrize("name", ["many", "hostile", "absurd", *REAL])
def test_no_console_message(browser, addresses, name):
    show(browser, addresses[name])
    assert browser.get_log("browser") == []


@pytest.mark.parametrize("name", ["one", "four", "many"])
def test_the_first_screen_reaches_the_timeline_without_scripts(browser, addresses, name):
    show(browser, addresses[name], script=False)
    heading = browser.find_element("tag name", "h1")
    assert "of compilation" in heading.text
    lane = browser.find_element("css selector", "#timeline svg")
    assert lane.location["y"] + 60 < 900


@pytest.mark.parametrize("width", [380, 768, 1280])
@pytest.mark.parametrize("name", [*SHOWN, "hostile", "absurd"])
def test_page_never_scrolls_sideways(browser, addresses, name, width):
    show(browser, addresses[name], width=width)
    open_everything(browser)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [380, 1280])
@pytest.mark.parametrize("name", [*SHOWN, "twelve", "hostile", "absurd"])
def test_words_of_a_picture_stay_in_it_and_apart(browser, addresses, name, width):
    show(browser, addresses[name], width=width)
    assert browser.execute_script(COLLISIONS) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", ["four", "many", *REAL])
def test_contrast(browser, addresses, name, theme):
    show(browser, addresses[name], theme=theme)
    open_everything(browser)
    seen = browser.execute_script(COLOURS)
    assert len(seen) > 50
    assert [item for item in seen if contrast(rgb(item[1]), rgb(item[2])) < 4.5] == []


@pytest.mark.parametrize("name", SHOWN)
def test_tables_need_no_scrolling_at_a_desk(browser, addresses, name):
    show(browser, addresses[name])
    open_everything(browser)
    wide = browser.execute_script(
        "return [...document.querySelectorAll('.scroll')].filter(b => b.scrollWidth > "
        "b.clientWidth + 1).map(b => b.closest('section').id)"
    )
    assert wide == []


@pytest.mark.parametrize("name", ["four", "many", *REAL])
def test_a_sheet_of_paper_is_wide_enough(browser, addresses, name):
    show(browser, addresses[name], width=680, media="print")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 680


def test_ranks_sort_by_their_seconds(browser, addresses):
    show(browser, addresses["many"])
    open_everything(browser)
    browser.find_element("css selector", "#ranks th:nth-child(2)").click()
    first = browser.find_element("css selector", "#ranks tbody td")
    assert first.text.splitlines()[0] == "rank 256"
