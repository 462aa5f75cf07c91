"""The page in a real browser: no error, readable without scripts, no sideways scroll, contrast."""

import shutil

import pytest
import sample
from recordings import diagnosis_of

from traceview.reports import html

pytestmark = pytest.mark.browser
REAL = ("gpu-transformer_training", "gpu-cudagraph_overwritten", "bad-rc_limit_hit")
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--no-first-run", "--disable-default-apps", "--hide-scrollbars",
)  # fmt: skip
# Every element that has text of its own, with its colours as the browser computed them. A label in
# a bar lies on its neighbour's fill; anything else on the nearest ancestor that has a background.
COLOURS = """
const seen = [];
for (const element of document.querySelectorAll("body *")) {
  const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
  if (!own || ["SCRIPT", "title", "desc", "TITLE"].includes(element.tagName)) continue;
  const style = getComputedStyle(element);
  const box = element.getBoundingClientRect();
  if (!box.width || style.visibility === "hidden" || element.classList.contains("skip")) continue;
  const svg = element.ownerSVGElement;
  let back = null;
  if (svg && element.classList.contains("inside")) {
    back = getComputedStyle(element.parentElement.querySelector("rect")).fill;
  } else {
    for (let up = svg || element; up; up = up.parentElement) {
      const colour = getComputedStyle(up).backgroundColor;
      if (!/rgba\\(.*, 0\\)/.test(colour)) { back = colour; break; }
    }
  }
  const name = element.tagName + "." + (element.getAttribute("class") || "");
  seen.push([name, svg ? style.fill : style.color, back, element.textContent.trim().slice(0, 40)]);
}
return seen;
"""
# Text of a picture that leaves it, and pairs of texts that lie on each other.
COLLISIONS = """
const found = [];
for (const svg of document.querySelectorAll("svg.picture")) {
  const room = svg.getBoundingClientRect();
  const texts = [...svg.querySelectorAll("text")]
    .map((text) => [text.textContent.slice(0, 40), text.getBoundingClientRect()])
    .filter(([words, box]) => box.width > 0);
  for (const [words, box] of texts) {
    if (box.left < room.left - 1 || box.right > room.right + 1 || box.top < room.top - 1
        || box.bottom > room.bottom + 1) found.push([svg.id, "leaves", words]);
  }
  texts.forEach(([words, one], index) => texts.slice(index + 1).forEach(([others, other]) => {
    const across = Math.min(one.right, other.right) - Math.max(one.left, other.left);
    const down = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
    if (across > 2 && down > 4) found.push([words, "lies on", others]);
  }));
}
return found;
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
    for name, make in sample.ALL.items():
        (folder / f"{name}.html").write_text(html.render(make()), encoding="utf-8")
    for name in REAL:
        page = html.render(diagnosis_of(name))
        (folder / f"{name}.html").write_text(page, encoding="utf-8")
    return {name: (folder / f"{name}.html").as_uri() for name in (*sample.ALL, *REAL)}


def show(browser, address, width=1280, theme="light", script=True, media=""):
    """Load a page as a reader of that screen, theme and script setting would."""
    look(browser, width, theme, media)
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not script})
    browser.get(address)


def look(browser, width=1280, theme="light", media=""):
    """Have the page that is shown laid out and coloured for that screen."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    feature = {"name": "prefers-color-scheme", "value": theme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": [feature]})


def fits(browser, width):
    """Whether the page needs no scrolling sideways on a screen of that width."""
    across = "return [innerWidth, document.documentElement.scrollWidth]"
    screen, page = browser.execute_script(across)
    assert screen >= width, "the screen is as wide as asked"
    return page <= width


def weak(browser):
    """What is written with too little contrast; what is looked at is not nothing."""
    seen = browser.execute_script(COLOURS)
    assert len(seen) > 20
    return [item for item in seen if contrast(rgb(item[1]), rgb(item[2])) < 4.5]


def open_everything(browser):
    browser.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")


@pytest.mark.parametrize("name", sample.ALL)
def test_no_console_message_and_the_script_has_run(browser, addresses, name):
    show(browser, addresses[name])
    assert browser.get_log("browser") == []
    if name == "helped":
        assert browser.find_elements("css selector", "button.copy")


@pytest.mark.parametrize("name", sample.ALL)
def test_verdict_is_on_the_first_screen_without_scripts(browser, addresses, name):
    show(browser, addresses[name], script=False)
    headings = browser.find_elements("tag name", "h1")
    assert len(headings) == 1
    assert headings[0].is_displayed()
    assert headings[0].text.strip()
    if name != "hostile":
        assert headings[0].location["y"] + headings[0].size["height"] < 900
    assert not browser.find_elements("css selector", "button.copy")


@pytest.mark.parametrize("name", ["helped", "failed", "hostile", "absurd", *REAL])
def test_no_width_scrolls_sideways_and_words_of_a_picture_stay_apart(browser, addresses, name):
    show(browser, addresses[name])
    open_everything(browser)
    for width in (380, 768, 1280):
        look(browser, width)
        assert fits(browser, width) or name == "absurd"
        assert browser.execute_script(COLLISIONS) == []


def test_every_picture_has_a_table_or_a_sentence_below_it(browser, addresses):
    show(browser, addresses["helped"], script=False)
    without = browser.execute_script(
        "return [...document.querySelectorAll('figure')].filter(f => f.querySelector('svg') && "
        "!f.querySelector('figcaption')?.textContent.trim()).length"
    )
    assert without == 0


def test_sizes_in_mixed_units_sort_by_their_bytes(browser, addresses):
    show(browser, addresses["helped"])
    open_everything(browser)
    head = "#limits table.sortable th:nth-child(4)"
    browser.find_element("css selector", head).click()
    cells = browser.find_elements("css selector", "#limits table.sortable td:nth-child(4)")
    shown = [cell.text.splitlines()[0] for cell in cells]
    assert shown == ["1.25 GiB", "36.0 MiB", "36.0 MiB", "32.0 MiB", "not known"]


@pytest.mark.parametrize("name", ["helped", "hurt", "failed", "not_compiled", *REAL])
def test_contrast(browser, addresses, name):
    show(browser, addresses[name])
    open_everything(browser)
    for theme in ("light", "dark"):
        look(browser, theme=theme)
        assert weak(browser) == []


def test_the_themes_differ_and_print_is_light(browser, addresses):
    back = "return getComputedStyle(document.body).backgroundColor"
    show(browser, addresses["helped"])
    found = []
    for theme, media in (("light", ""), ("dark", ""), ("dark", "print")):
        look(browser, theme=theme, media=media)
        found.append(sum(rgb(browser.execute_script(back))))
    assert found[1] < 150 < found[0]
    assert found[2] == 3 * 255


def test_a_column_sorts_by_its_numbers(browser, addresses):
    show(browser, addresses["helped"])
    open_everything(browser)
    column = "#time table.accounts tbody tr td:nth-child(2)"
    browser.find_element("css selector", "#time table.accounts th:nth-child(2)").click()
    shown = [cell.text for cell in browser.find_elements("css selector", column)]
    numbers = [float(text) for text in shown if text != "–"]
    assert numbers == sorted(numbers, reverse=True)
    assert shown[: len(numbers)] == [text for text in shown if text != "–"]


@pytest.mark.parametrize("name", ["helped", *REAL])
def test_a_sheet_of_paper_is_wide_enough(browser, addresses, name):
    show(browser, addresses[name], width=680, media="print")  # A4 less its margins
    assert fits(browser, 680)


WIDE = (
    "return [...document.querySelectorAll('.scroll')].filter(b => b.scrollWidth > "
    "b.clientWidth + 1).map(b => b.closest('section').id)"
)


def test_the_keyboard_sorts_and_opens(browser, addresses):
    show(browser, addresses["helped"])
    open_everything(browser)
    head = browser.find_element("css selector", "#time table.accounts th:nth-child(2)")
    head.send_keys(" ")
    assert head.get_attribute("aria-sort") == "descending"
    head.send_keys("\n")
    assert head.get_attribute("aria-sort") == "ascending"
    box = browser.find_element("css selector", "#pairs details")
    browser.execute_script("arguments[0].open = false", box)
    box.find_element("tag name", "summary").send_keys("\n")
    assert box.get_attribute("open")


@pytest.mark.parametrize("name", REAL)
def test_a_page_is_short_until_unfolded_and_no_table_scrolls_at_a_desk(browser, addresses, name):
    show(browser, addresses[name])
    height = "return document.documentElement.scrollHeight"
    assert browser.execute_script(height) < 6000
    open_everything(browser)
    assert browser.execute_script(height) > 6000
    assert browser.execute_script(WIDE) == []
    findings = "return document.getElementById('findings').getBoundingClientRect().top + scrollY"
    assert browser.execute_script(findings) < 900


@pytest.mark.parametrize("script", [True, False])
def test_a_link_opens_what_it_leads_to(browser, addresses, script):
    show(browser, addresses["helped"], script=script)
    browser.get(addresses["helped"] + "#pairs")
    section = browser.find_element("css selector", "#pairs")
    assert section.is_displayed()
    assert abs(section.rect["y"] - browser.execute_script("return scrollY")) < 900


def test_a_link_to_nothing_leaves_the_page_whole(browser, addresses):
    show(browser, addresses["helped"])
    browser.get("about:blank")
    browser.get(addresses["helped"] + "#%")
    assert browser.get_log("browser") == []
    assert browser.find_element("id", "find").is_displayed()


def test_print_holds_what_is_folded(browser, addresses):
    show(browser, addresses["helped"])
    closed = "return document.querySelectorAll('.fold:not([open])').length"
    before = browser.execute_script(closed)
    assert before > 5
    browser.execute_script("dispatchEvent(new Event('beforeprint'))")
    assert browser.execute_script(closed) == 0
    browser.execute_script("dispatchEvent(new Event('afterprint'))")
    assert browser.execute_script(closed) == before


def test_the_filter_keeps_what_matches_and_gives_the_rest_back(browser, addresses):
    show(browser, addresses["helped"])
    shown = (
        "return [...document.querySelectorAll('main .finding, main .fold tbody > tr')]"
        ".filter(e => e.checkVisibility({contentVisibilityAuto: true})).map(e => e.textContent)"
    )
    before = browser.execute_script(shown)
    box = browser.find_element("id", "find")
    output = browser.find_element("css selector", "output[for=find]")
    set_text = "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input'))"
    wait = pytest.importorskip("selenium.webdriver.support.ui").WebDriverWait(browser, 5)
    browser.execute_script(set_text, box, "REDUCE_kernel eager")
    wait.until(lambda _: "match" in output.text)
    found = browser.execute_script(shown)
    assert found
    assert all("reduce_kernel" in text and "eager" in text for text in found)
    browser.execute_script(set_text, box, "")
    wait.until(lambda _: output.text == "")
    assert browser.execute_script(shown) == before


def test_without_scripts_there_is_no_filter(browser, addresses):
    show(browser, addresses["helped"], script=False)
    assert not browser.find_element("id", "find").is_displayed()


def rgb(colour):
    """The three channels of ``rgb(…)`` or ``rgba(…)`` as the browser writes it."""
    numbers = colour[colour.index("(") + 1 : colour.index(")")].split(",")
    return [float(number) for number in numbers[:3]]


def contrast(one, other):
    """WCAG 2's contrast ratio."""
    bright, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def luminance(channels):
    scaled = [channel / 255 for channel in channels]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in scaled]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
