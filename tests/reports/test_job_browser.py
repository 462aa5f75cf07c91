"""A post-mortem's page in a real browser: at 1, 4 and 512 ranks, on a desk, a phone and paper."""

import pytest
import sample_job
from recorded_jobs import INDEX, diagnosis
from screen import COLLISIONS, WIDE, fits, look, open_everything, show, weak

from traceview.reports import html

pytestmark = pytest.mark.browser
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


@pytest.mark.parametrize("name", [*SHOWN, "twelve", "hostile", "absurd"])
def test_it_fits_every_screen(browser, addresses, name):
    show(browser, addresses[name])
    for width in (380, 1280):
        look(browser, width)
        assert browser.execute_script(COLLISIONS) == [], "words of a picture stay in it and apart"
    open_everything(browser)
    for width in (380, 768, 1280):
        look(browser, width)
        assert fits(browser, width)
    assert browser.execute_script(WIDE) == [] or name not in SHOWN


@pytest.mark.parametrize("name", ["four", "many", *REAL])
def test_contrast(browser, addresses, name):
    show(browser, addresses[name])
    open_everything(browser)
    for theme in ("light", "dark"):
        look(browser, theme=theme)
        assert weak(browser) == []


@pytest.mark.parametrize("name", ["four", "many", *REAL])
def test_a_sheet_of_paper_is_wide_enough(browser, addresses, name):
    show(browser, addresses[name], width=680, media="print")
    assert fits(browser, 680)


def test_ranks_sort_by_their_seconds(browser, addresses):
    show(browser, addresses["many"])
    open_everything(browser)
    browser.find_element("css selector", "#ranks th:nth-child(2)").click()
    first = browser.find_element("css selector", "#ranks tbody td")
    assert first.text.splitlines()[0] == "rank 256"
