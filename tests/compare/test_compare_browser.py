"""The page of a comparison in a real browser: no message, no sideways scroll, contrast."""

from itertools import product

import pytest
from screen import fits, look, show, weak
from sides import moved, poisoned, side

from traceview.compare import compare
from traceview.reports.compare import html

pytestmark = pytest.mark.browser
NAMES = ("fixed", "devices", "hostile")


@pytest.fixture(scope="module")
def addresses(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    bad, gpu = side("bad-gb_item"), side("gpu-transformer_training")
    made = {
        "fixed": compare(moved(bad, "import os\n" * 3, "renamed.py"), side("good-gb_item")),
        "devices": compare(side("bad-rc_limit_hit"), gpu),
        "hostile": compare(poisoned(bad), poisoned(gpu)),
    }
    for name, comparison in made.items():
        (folder / f"{name}.html").write_text(html(comparison), encoding="utf-8")
    return {name: (folder / f"{name}.html").as_uri() for name in made}


@pytest.mark.parametrize("name", NAMES)
def test_readable_at_every_width_and_in_both_themes(browser, addresses, name):
    show(browser, addresses[name])
    assert browser.get_log("browser") == []
    for width, theme in product((380, 1280), ("light", "dark")):
        look(browser, width, theme)
        assert fits(browser, width)
        assert weak(browser) == []
        heading = browser.find_element("tag name", "h1")
        assert heading.is_displayed()
        if name != "hostile":
            assert heading.location["y"] + heading.size["height"] < 900
