"""The page of a comparison in a real browser: no message, no sideways scroll, contrast."""

import shutil
from itertools import product

import pytest
from sides import moved, poisoned, side

from traceview.compare import compare
from traceview.reports.compare import pages

pytestmark = pytest.mark.browser
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
    "--disable-background-networking", "--no-first-run", "--hide-scrollbars",
)  # fmt: skip
NAMES = ("fixed", "devices", "hostile")
# Text with its colour and that of the nearest ancestor that has a background.
COLOURS = """
const seen = [];
for (const element of document.querySelectorAll("body *")) {
  const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
  const box = element.getBoundingClientRect();
  if (!own || !box.width || element.classList.contains("skip")) continue;
  let back = null;
  for (let up = element; up; up = up.parentElement) {
    const colour = getComputedStyle(up).backgroundColor;
    if (!/rgba\\(.*, 0\\)/.test(colour)) { back = colour; break; }
  }
  seen.push([element.tagName + "." + element.className, getComputedStyle(element).color, back]);
}
return seen;
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip("chromium and chromedriver are not both on PATH")
    webdriver = pytest.importorskip("selenium.webdriver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    service = webdriver.ChromeService(executable_path=driver)
    opened = webdriver.Chrome(options=options, service=service)
    yield opened
    opened.quit()
    if service.process is not None:
        service.process.wait(10)


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
        (folder / f"{name}.html").write_text(pages.html(comparison), encoding="utf-8")
    return {name: (folder / f"{name}.html").as_uri() for name in made}


def look(browser, width, theme):
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    feature = {"name": "prefers-color-scheme", "value": theme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": [feature]})


@pytest.mark.parametrize("name", NAMES)
def test_readable_at_every_width_and_in_both_themes(browser, addresses, name):
    browser.get(addresses[name])
    assert browser.get_log("browser") == []
    for width, theme in product((380, 1280), ("light", "dark")):
        look(browser, width, theme)
        across = "return [innerWidth, document.documentElement.scrollWidth]"
        screen, page = browser.execute_script(across)
        assert page <= width <= screen
        seen = browser.execute_script(COLOURS)
        assert [item for item in seen if contrast(item[1], item[2]) < 4.5] == []
        heading = browser.find_element("tag name", "h1")
        assert heading.is_displayed()
        if name != "hostile":
            assert heading.location["y"] + heading.size["height"] < 900


def contrast(one, other):
    """WCAG 2's contrast ratio."""
    bright, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def luminance(colour):
    numbers = colour[colour.index("(") + 1 : colour.index(")")].split(",")
    scaled = [float(number) / 255 for number in numbers[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in scaled]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
